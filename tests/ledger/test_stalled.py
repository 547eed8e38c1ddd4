"""Arms whose claims are never reported: the other arms stop waiting for them, until they are told."""

from typing import Any

import msgspec
import pytest
from tests.support.sequences import Table, created

from partage.board import MOST_LAPSES, Board
from partage.ledger.state import State
from partage.ledger.verify import verify
from partage.ledger.views import board_view
from partage.rules import live_rules, make_rule

MEANS = (0.75, 0.25, 0.5)
MUTE = 2  # the arm whose only sharer never tells


def played(
    rule: str = "balanced-etc", rounds: int = 1200, told: int = 0, reward: float = 0.5, **config: Any
) -> Table:
    """Two honest members share two arms, and a third alone shares another and stops telling after `told` rewards."""
    config = {"arms": ["wheat", "oats", "rye"], "horizon": 2000, "settlement": "none"} | config
    table = Table(created(rule=rule, **config))
    honest = [table.join(0, 1), table.join(0, 1)]
    mute = table.join(MUTE)
    for _ in range(rounds):
        table.now += 100
        for agent in honest:
            table.work(agent, lambda arm: MEANS[arm])
        asked = table.ask(mute)
        if asked.share and table.state.members[mute].explore.get(MUTE, 0) < told:
            table.tell(mute, asked.seq, reward)
    return table


@pytest.mark.parametrize("rule", ["balanced-etc", "kl-etc"])
def test_a_sole_sharer_who_never_tells_stalls_nothing(rule: str) -> None:
    state = played(rule).state
    assert state.board.counts[MUTE] == 0
    assert state.board.lapses[MUTE] >= MOST_LAPSES
    assert state.target() == 0
    assert not state.board.active[1], "wheat and oats were compared to the end"
    assert state.board.shared[MUTE]
    assert MUTE in state.open_arms(), "it can still be claimed"


@pytest.mark.parametrize("rule", ["balanced-etc", "kl-etc"])
@pytest.mark.parametrize("format", [3, 2, msgspec.UNSET])
def test_older_collaborations_wait_as_they_did(rule: str, format: Any) -> None:
    state = played(rule, rounds=200, format=format).state
    assert sum(state.board.counts) <= 4
    assert state.board.lapses == [0, 0, 0]


@pytest.mark.parametrize("evidence", ["likelihood", "betting"])
@pytest.mark.parametrize("reward", [0.25, 0.5, 1.0])
def test_balanced_glr_waits_neither_for_the_slowest_arm_nor_for_the_leader(evidence: str, reward: float) -> None:
    """The mute member tells three rewards; with 1.0 its arm leads for good."""
    parameters = {"evidence": evidence, "indifference": False}
    state = played("balanced-glr", told=3, reward=reward, parameters=parameters).state
    old = played("balanced-glr", told=3, reward=reward, parameters=parameters, format=3).state
    assert state.board.counts[MUTE] == old.board.counts[MUTE] == 3
    assert sum(state.board.counts[:2]) > 4 * sum(old.board.counts[:2]) or not state.board.active[1]
    assert state.board.mean(0) == pytest.approx(0.75)


def test_shared_imed_does_not_wait_for_a_leader_that_is_not_told() -> None:
    state = played("shared-imed", told=1, reward=1.0).state
    old = played("shared-imed", told=1, reward=1.0, format=3).state
    assert state.board.counts[MUTE] == old.board.counts[MUTE] == 1
    assert max(old.board.counts[:2]) <= 3
    assert min(state.board.counts[:2]) > 10


def test_a_told_reward_ends_it() -> None:
    table = played(rounds=100)
    assert table.state.board.stalled(MUTE)
    waiting = [*table.state.late, *table.state.claims]
    table.tell("a3", waiting[0], 0.5)  # a late report does
    assert table.state.board.lapses[MUTE] == 0
    others = table.state.board.counts[:2]
    assert others[0] > 2
    assert table.state.open_arms() == [MUTE], "the others wait again"
    assert State.load(table.state.dump()).board.lapses == table.state.board.lapses


def test_claims_that_are_cancelled_count_too() -> None:
    """Otherwise withdrawing an arm and sharing it again would stall the others as before."""
    table = Table(created(arms=["wheat", "oats", "rye"], settlement="none", claim_seconds=1e5))
    table.join(0, 1)
    table.join(MUTE)
    for lapses in range(1, MOST_LAPSES + 1):
        assert table.ask("a2").arm == MUTE
        table.consent("a2")
        table.consent("a2", MUTE)
        assert table.state.board.lapses[MUTE] == lapses
    for _ in range(20):
        assert table.work("a1", lambda arm: 0.5).share
    assert verify(table.lines()).ok


def test_a_sharer_who_tells_is_waited_for_whoever_else_lets_claims_lapse() -> None:
    table = Table(created(arms=["wheat", "rye"], settlement="none"))
    honest, mute = table.join(0, 1), table.join(1)
    for _ in range(50):
        table.now += 1100
        table.ask(mute)
        table.work(honest, lambda arm: 0.5)
    assert not table.state.board.stalled(1)
    assert abs(table.state.board.counts[0] - table.state.board.counts[1]) <= 2


def test_one_arm_that_is_left_waits_for_the_stalled_one() -> None:
    """More rewards of one arm alone decide nothing, and would be explored for ever."""
    board = Board(1000, [0, 1], [True, True])
    for arm in (0, 1, 0):
        board.broadcast("a", arm, 0.5)
    board.lapses[1] = MOST_LAPSES
    for rule in ("balanced-etc", "kl-etc"):
        assert make_rule(rule).open_arms(board) == [1]


@pytest.mark.parametrize("rule", list(live_rules()))
def test_whoever_verifies_sees_the_same(rule: str) -> None:
    table = played(rule, rounds=150, told=2)
    table.close()
    for reader in (None, "a1", "a3"):
        found = verify(table.lines(reader), agent=reader)
        assert found.ok, found.problem
        assert found.board is not None
        assert found.board.arms == board_view(table.state).arms


def test_the_board_names_the_oldest_claims_and_the_stalled_arms() -> None:
    table = Table(
        created(arms=["wheat", "oats", "rye"], settlement="none", rule="unbalanced-etc", claim_seconds=60.0)
    )
    agents = [table.join(0, 1, 2) for _ in range(5)]
    for agent in agents:
        table.now += 1000
        table.ask(agent)
    board = board_view(table.state)
    arms = table.state.config.arms
    handed = list(table.state.claims.values())
    assert [(one.agent, one.name, one.arm, one.since) for one in board.waiting] == [
        (f"a{place + 1}", f"Agent {place + 1}", arms[handed[place].arm], handed[place].time) for place in range(3)
    ]
    assert not any(arm.stalled or arm.lapses for arm in board.arms)
    table.now += 60_000
    table.ask(agents[0])
    board = board_view(table.state)
    assert [one.agent for one in board.waiting] == ["a1"]
    assert sum(arm.lapses for arm in board.arms) == 5
    table.close()
    assert board_view(table.state).waiting == []
