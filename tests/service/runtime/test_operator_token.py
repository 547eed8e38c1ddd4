"""The operator's token: the last one that was set, and no other."""

import asyncio
from pathlib import Path

import pytest

from partage.errors import InputError
from partage.ledger.refusals import Refused
from partage.service.runtime.secrets import hashed
from partage.service.runtime.sessions import OPERATOR_TIME, Sessions, set_operator_token
from partage.service.runtime.system import System
from partage.service.store import open_store

OWN, OTHER = "a token of my own", "another token of my own"


def start(path: Path, token: str = "", new: bool = False) -> tuple[str, str | None]:
    """Do what a start of the server does."""
    store = open_store(f"{path}/partage.db")
    try:
        return set_operator_token(store, System(), token, new=new)
    finally:
        store.close()


def test_a_made_token_stays_valid(tmp_path: Path) -> None:
    valid, made = start(tmp_path)
    assert made is not None
    assert valid == hashed(made)
    assert start(tmp_path) == (valid, None)


def test_a_given_token_ends_a_made_one_for_good(tmp_path: Path) -> None:
    before, _ = start(tmp_path)
    assert start(tmp_path, OWN) == (hashed(OWN), None)
    with pytest.raises(InputError, match=r"PARTAGE_OPERATOR_TOKEN.*--new-token\.$"):
        start(tmp_path)
    assert start(tmp_path, OTHER) == (hashed(OTHER), None)
    with pytest.raises(InputError):
        start(tmp_path)
    valid, made = start(tmp_path, new=True)
    assert made is not None
    assert valid == hashed(made)
    assert valid not in (before, hashed(OWN), hashed(OTHER))
    assert start(tmp_path) == (valid, None)


def test_a_new_token_replaces_one_that_was_lost(tmp_path: Path) -> None:
    before, _ = start(tmp_path)
    valid, made = start(tmp_path, new=True)
    assert made is not None
    assert valid != before
    assert start(tmp_path) == (valid, None)


def test_a_token_that_another_process_changed_ends(tmp_path: Path) -> None:
    now = 0
    store = open_store(f"{tmp_path}/partage.db")

    async def scene() -> None:
        nonlocal now
        sessions = Sessions(store, System(monotonic=lambda: now), OWN)
        session, _ = await sessions.log_in(OWN)
        set_operator_token(store, System(), OTHER)  # as another process does
        now += OPERATOR_TIME
        for refused in (sessions.who(OWN), sessions.session(session)):
            with pytest.raises(Refused):
                await refused
        assert (await sessions.who(OTHER)).operator
        _, made = set_operator_token(store, System(), new=True)
        assert made is not None
        assert (await sessions.who(made)).operator, "a new one is valid at once"
        with pytest.raises(Refused):
            await sessions.who(OTHER)

    try:
        asyncio.run(scene())
    finally:
        store.close()


def test_a_given_token_is_not_stored(tmp_path: Path) -> None:
    start(tmp_path, OWN)
    assert OWN.encode() not in (tmp_path / "partage.db").read_bytes()
