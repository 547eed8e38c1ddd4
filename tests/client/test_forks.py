"""Receipts and witnesses against the real controller: an honest one, and copies of its database that go on apart."""

import shutil
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.live import URL, App, Bridge, Live

from partage.client import Agent, Forked
from partage.client.effects import Wait
from partage.client.statefile import read
from partage.ledger.checkpoints import read_checkpoint
from partage.ledger.verify import verify


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "first"
    made.mkdir()
    return made


@pytest.fixture
def honest(folder: Path) -> Iterator[App]:
    running = App(folder)
    yield running
    running.close()


def copied(folder: Path, name: str) -> Path:
    """Copy the database as it is now, with the server's secret, as an operator could."""
    made = folder.parent / name
    made.mkdir()
    source, target = sqlite3.connect(folder / "partage.db"), sqlite3.connect(made / "partage.db")
    source.backup(target)
    source.close()
    target.close()
    return made


def agents(app: App) -> Any:
    """Agents on the app's time, which speak to it."""

    class Moved(Agent):
        _clock = staticmethod(lambda: app.now)

        def _do(self, step: Any) -> Any:
            if isinstance(step, Wait):
                app.now += step.seconds
                return None
            return super()._do(step)

    return partial(Moved.join, transport=Bridge(app)), partial(Moved.resume, transport=Bridge(app), patience=0.0)


def member(app: App, live: Live, state: Path, name: str) -> Agent:
    join, _ = agents(app)
    found: Agent = join(URL, live.id, live.invite(name), name, ["a", "b"], state=state, listen=False)
    return found


def resumed(app: App, state: Path) -> Agent:
    _, resume = agents(app)
    found: Agent = resume(state, listen=False)
    return found


def explore(agent: Agent, reward: float, times: int = 3) -> None:
    for _ in range(times):
        agent.tell(agent.ask(), reward)


def test_an_honest_controller_is_never_accused(honest: App, tmp_path: Path) -> None:
    live = Live(honest, ["a", "b"], 1000)
    states = [tmp_path / "first.json", tmp_path / "second.json"]
    for number, state in enumerate(states):
        member(honest, live, state, f"Shop {number}").close()
    for _ in range(3):
        for state in states:
            with resumed(honest, state) as agent:
                explore(agent, 0.5)
                agent.share(["a"])
                agent.ask()
                agent.flush()
                agent.share(["a", "b"])
    first, second = (resumed(honest, state) for state in states)
    rows = live.state.seq
    assert max(first.compare(second.checkpoint()), second.compare(first.checkpoint())) <= rows
    first.ledger(tmp_path / "copy.ndjson")
    key = read(states[0]).log_key
    notes = [first.checkpoint(), second.checkpoint()]
    found = verify(tmp_path / "copy.ndjson", checkpoints=notes)
    assert found.problem is None
    assert [(one.signed, one.cosigned) for one in found.checkpoints] == [(True, ["a1"]), (True, ["a2"])]
    assert not any("were not compared" in sentence for sentence in found.trusted)
    assert not any("not signed" in sentence for sentence in found.trusted), "the client signs"
    for note in notes:
        assert read_checkpoint(note, live.id, key) is not None


def test_a_name_that_is_stored_in_another_form_is_no_fork(honest: App, tmp_path: Path) -> None:
    live = Live(honest, ["a", "b"], 1000)
    member(honest, live, tmp_path / "agent.json", "  Cafe\u0301 \uff21 ").close()
    assert next(iter(live.state.members.values())).name == "Caf\u00e9 A"
    with resumed(honest, tmp_path / "agent.json") as agent:
        explore(agent, 0.5)


def test_a_backup_that_lost_rows_is_noticed(honest: App, folder: Path, tmp_path: Path) -> None:
    live, state = Live(honest, ["a", "b"], 1000), tmp_path / "agent.json"
    with member(honest, live, state, "Shop") as agent:
        explore(agent, 0.5)
    backup = copied(folder, "backup")
    with resumed(honest, state) as agent:
        explore(agent, 0.5)
    restored = App(backup)
    try:
        with pytest.raises(Forked, match="now has fewer"):
            explore(resumed(restored, state), 0.5)
        assert read(state).forked
        # A member who accepts what was restored goes on, as docs/client.md says.
        kept = msgspec.json.decode(state.read_bytes())
        for name in ("forked", "evidence", "checkpoint"):
            del kept[name]
        state.write_bytes(msgspec.json.encode(kept))
        with resumed(restored, state) as again:
            explore(again, 0.5)
    finally:
        restored.close()


def test_two_members_of_two_copies_find_the_fork(honest: App, folder: Path, tmp_path: Path) -> None:
    live = Live(honest, ["a", "b"], 1000)
    states = [tmp_path / "first.json", tmp_path / "second.json"]
    for number, state in enumerate(states):
        with member(honest, live, state, f"Shop {number}") as agent:
            explore(agent, 0.5)
    other = App(copied(folder, "other"))
    try:
        with resumed(honest, states[0]) as first:
            explore(first, 0.25)
        with resumed(other, states[1]) as second:
            explore(second, 0.75, 5)
        for app, mine, theirs in ((honest, *states), (other, *states[::-1])):
            saved = tmp_path / f"{mine.stem} again.json"
            shutil.copy(mine, saved)
            with pytest.raises(Forked, match=r"two histories|does not prove"):
                resumed(app, saved).compare(read(theirs).checkpoint)
            assert len(read(saved).evidence) == 2
        # The relay, if the operator lets one member's checkpoint through to the other.
        note = resumed(other, states[1]).checkpoint()
        with resumed(honest, states[0]) as first:
            explore(first, 0.25, 6)
        live.tokens["a2"] = read(states[1]).token
        live.call(live.tokens["a2"], "PUT", "/cosignature", {"checkpoint": note})
        with pytest.raises(Forked, match="two histories"):
            resumed(honest, states[0]).close()
        # Nor does it help to go on with one of them for both.
        with pytest.raises(Forked, match=r"does not continue|now has fewer|two histories"):
            explore(resumed(honest, states[1]), 0.5, 9)
    finally:
        other.close()
