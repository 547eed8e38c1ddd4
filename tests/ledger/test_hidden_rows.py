"""A copy that hides its owner's own commits: the client's state file shows it, and nothing else can."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.ledger.test_forged_close import a_game, by_counts, close_of, copy_of, true_counts
from tests.support.command_line import partage
from tests.support.log import Log
from tests.support.sequences import TRUTHFUL, Table

from partage.errors import FileError, InputError
from partage.ledger.keys import Key
from partage.ledger.verify import verify

HIDDEN = "No hidden line is of the copy's owner"


def state_file(table: Table, owner: str, folder: Path, **changed: Any) -> Path:
    """The state file of an agent that has receipts for all of its commits."""
    log, member, config = Log(table, Key(b"\x01" * 32)), table.state.members[owner], table.state.config
    kept = {
        "url": "http://controller",
        "collaboration": config.collaboration,
        "agent": owner,
        "log_key": log.key.public,
        "checkpoint": log.note(len(log.rows) - 1),
        "receipted": {
            "commits": {config.arms[arm]: pulls for arm, pulls in member.commit.items()},
            "unnamed": member.unnamed,
        },
    }
    file = folder / "agent.json"
    file.write_bytes(msgspec.json.encode(kept | changed))
    return file


def without_commits(table: Table, agent: str) -> list[bytes]:
    """The agent's copy with its own commits hidden too, and a close in which it made none."""
    event = by_counts(table.state, close_of(table), {**true_counts(table.state), agent: {}})
    return [*table.lines("nobody")[:-1], copy_of(table, event, agent)[-1]]


@pytest.mark.parametrize("settlement", TRUTHFUL)
def test_the_state_file_shows_that_own_commits_are_hidden(settlement: str, tmp_path: Path) -> None:
    table = a_game(settlement)
    state, copy = state_file(table, "a3", tmp_path), without_commits(table, "a3")
    alone = verify(copy, agent="a3")
    assert alone.ok, alone.problem
    assert any(HIDDEN in sentence for sentence in alone.trusted)
    found = verify(copy, state=state)
    assert found.problem is not None
    assert found.problem.line is None
    assert "Rows of agent a3 are hidden: this copy shows 0 of its commit pulls of arm a" in found.problem.sentence
    assert "receipts for 28,003" in found.problem.sentence


@pytest.mark.parametrize("format", [4, 5])
def test_an_honest_copy_shows_them(format: int, tmp_path: Path) -> None:
    table = a_game(format=format)
    for agent in table.state.members:
        state = state_file(table, agent, tmp_path)
        for lines in (table.lines(agent), table.lines()):
            found = verify(lines, state=state)
            assert found.ok, found.problem
            assert found.agent == agent
            assert [one.signed for one in found.checkpoints] == [True]
            assert any(f"that agent {agent} has receipts for are shown" in sentence for sentence in found.checked)
            assert not any(HIDDEN in sentence for sentence in found.trusted)


def test_unnamed_commits_are_compared_too(tmp_path: Path) -> None:
    table = a_game()
    state = state_file(table, "a3", tmp_path, receipted={"unnamed": 1})
    assert "shows 0 of its commit pulls without an arm" in str(verify(table.lines("a3"), state=state).problem)


def test_the_checkpoint_and_the_key_of_the_state_file_count(tmp_path: Path) -> None:
    table = a_game()
    state = state_file(table, "a3", tmp_path)
    assert "The ledger was cut" in str(verify(table.lines("a3")[:-2], state=state).problem)
    assert "not signed" in str(verify(table.lines("a3"), state=state, key=Key(b"\x02" * 32).public).problem)
    state = state_file(table, "a3", tmp_path, log_key="", checkpoint="")
    assert verify(table.lines("a3")[:-1], state=state).ok
    state = state_file(table, "a3", tmp_path, collaboration="c2")
    assert "another collaboration, c2" in str(verify(table.lines("a3"), state=state).problem)
    state = state_file(table, "a3", tmp_path, agent="a99")
    assert "not in this ledger" in str(verify(table.lines(), state=state).problem)


def test_what_is_no_state_file_is_an_error(tmp_path: Path) -> None:
    table = a_game()
    lines, state = table.lines("a3"), state_file(table, "a3", tmp_path)
    with pytest.raises(InputError, match="of agent a3, and the given agent is a1"):
        verify(lines, agent="a1", state=state)
    with pytest.raises(InputError, match="must be a path"):
        verify(lines, state=5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has not joined"):
        verify(lines, state=state_file(table, "a3", tmp_path, agent=""))
    for content in (b"", b"[]", b"\xff", b"[" * 10_000, b'{"agent": 5}'):
        state.write_bytes(content)
        with pytest.raises(FileError, match="state file"):
            verify(lines, state=state)
    with pytest.raises(FileError, match="state file"):
        verify(lines, state=tmp_path / "none.json")


def test_the_command_line_takes_a_state_file(tmp_path: Path) -> None:
    table, copy = a_game(), tmp_path / "copy.ndjson"
    state = str(state_file(table, "a3", tmp_path))
    copy.write_bytes(b"".join(table.lines("a3")))
    ended = partage("verify", str(copy), "--state", state)
    assert ended.code == 0
    assert "28,003 commit pulls that agent a3 has receipts for" in " ".join(ended.out.split())
    copy.write_bytes(b"".join(without_commits(table, "a3")))
    for agent in ([], ["--agent", "a3"]):
        ended = partage("verify", str(copy), "--state", state, *agent)
        assert ended.code == 1
        assert "Rows of agent a3 are hidden" in " ".join(ended.out.split())
    assert partage("verify", str(copy), "--state", str(tmp_path / "none.json")).code == 2
