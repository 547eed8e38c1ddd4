"""The server's secret: made once, the same in every process, and never used if it is damaged."""

from contextlib import closing
from pathlib import Path

import pytest

from partage.service.runtime.server_secret import ServerSecret
from partage.service.runtime.system import System
from partage.service.store import StoreError, open_store


def test_it_is_made_once(database_url: str) -> None:
    with closing(open_store(database_url)) as store:
        first = ServerSecret(store, System())
        second = ServerSecret(store, System())
    with closing(open_store(database_url)) as store:
        third = ServerSecret(store, System())
    assert first.key.public == second.key.public == third.key.public
    seeds = {name: first.tie_seed(name) for name in ("c1", "c2")}
    assert {name: third.tie_seed(name) for name in seeds} == seeds
    assert seeds["c1"] != seeds["c2"]
    assert {len(seed) for seed in seeds.values()} == {16}


def test_stores_have_different_secrets(tmp_path: Path) -> None:
    keys = set()
    for name in ("one", "two"):
        with closing(open_store(str(tmp_path / name))) as store:
            keys.add(ServerSecret(store, System()).key.public)
    assert len(keys) == 2


@pytest.mark.parametrize(
    "change", [lambda text: text[:-1], lambda text: "x" + text[1:], lambda text: text[2:] + "00"]
)
def test_a_damaged_one_is_not_used(change, tmp_path: Path) -> None:
    with closing(open_store(str(tmp_path / "one"))) as store:
        ServerSecret(store, System())
        good = store.meta("secret")
    with closing(open_store(str(tmp_path / "two"))) as store:
        store.set_meta_once("secret", change(good))
        with pytest.raises(StoreError, match="secret in the database is damaged"):
            ServerSecret(store, System())
