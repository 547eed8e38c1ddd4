"""Setting a member's broadcasts aside: the record without them, what follows from it, and what does not change."""

import math
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from tests.support.sequences import Step, Table, configurations, created, played, sequences

from partage.board import Board
from partage.ledger.chain import GENESIS, line, seal
from partage.ledger.events import FORMAT, AnyEvent, Attach, Create, SetAside, Tell
from partage.ledger.refusals import CODES, Refused
from partage.ledger.settlement import settlement_of
from partage.ledger.state import State
from partage.ledger.verify import verify
from partage.rules import live_rules

REASON = "It told what it did not see."
RULES = [
    ("balanced-etc", {}),
    ("kl-etc", {}),
    ("balanced-glr", {"indifference": False}),
    ("balanced-glr", {"evidence": "betting", "indifference": False}),
    ("shared-imed", {}),
    ("network-glr", {}),
]


def seen(table: Table, without: set[str]) -> Board:
    """The board on which these members never told or attached anything, from these events alone."""
    real = table.state.board
    board = Board(real.horizon, real.tie_order, list(real.public))
    for event in table.events:
        if isinstance(event, Tell) and event.agent not in without:
            board.broadcast(event.agent, event.arm, event.reward)
        elif isinstance(event, Attach) and event.agent not in without:
            for reward in event.rewards:
                board.attach(event.agent, event.arm, reward)
    return board


@settings(max_examples=150)
@given(configurations(formats=[FORMAT]), sequences(30), st.integers(0, 3))
def test_the_board_is_that_of_the_others_broadcasts(create: Create, happens: list[Step], who: int) -> None:
    if create.rule in ("kl-etc", "balanced-glr") and (create.parameters or {}).get("tolerate"):
        create = msgspec.structs.replace(create, histories=UNSET)  # past rewards then enter the record slowly
    table = played(create, [step for step in happens if step[0] not in ("close", "aside")])
    agent = list(table.state.members)[who % len(table.state.members)]
    version, explored = table.state.version, [dict(one.explore) for one in table.state.members.values()]
    pulls = table.state.pulls()
    event = table.set_aside(agent)

    state, expected = table.state, seen(table, {agent})
    assert state.version == event.version == version + 1
    assert state.board.counts == expected.counts
    for mine, theirs in zip(state.board.record.sums, expected.record.sums, strict=True):
        assert math.isclose(mine, theirs, rel_tol=1e-12, abs_tol=1e-12)
    assert state.board.by_member == expected.by_member

    # What is active is what the rule says of this record, from all public arms; betting has to begin again.
    again = Board(expected.horizon, expected.tie_order, list(expected.public))
    again.record = state.board.record.copy()
    again.by_member = {member: record.copy() for member, record in state.board.by_member.items()}
    again.shares, again.lapses = dict(state.board.shares), list(state.board.lapses)
    again.clock, again.all_pulls = state.board.clock, state.board.all_pulls
    for _ in range(again.arms + 1):
        state.rule.revise(again)
    assert state.board.active == again.active
    assert event.active == tuple(state.board.actives())

    # Nothing that is paid changed, and no claim of the member is left.
    assert [one.explore for one in state.members.values()] == explored
    assert state.pulls() == pulls
    assert state.members[agent].shares == frozenset()
    assert agent not in {one.agent for one in [*state.claims.values(), *state.late.values()]}
    assert verify(table.lines()).ok


def two_against_a_liar(rule: str, parameters: dict[str, Any], turns: int = 400) -> Table:
    """The liar promotes the worst of three arms; the others tell the truth."""
    table = Table(
        created(arms=["good", "fair", "bad"], rule=rule, parameters=parameters, horizon=3000, settlement="none")
    )
    draw = random.Random(7)
    agents = [table.join(0, 1, 2) for _ in range(3)]
    for _ in range(turns):
        for agent in agents:
            table.work(agent, lambda arm, liar=agent == "a3": _told(draw, arm, liar))
    return table


def _told(draw: random.Random, arm: int, liar: bool) -> float:
    return float(arm == 2) if liar else float(draw.random() < (0.9, 0.6, 0.3)[arm])


@pytest.mark.parametrize(("rule", "parameters"), RULES)
def test_play_goes_on_without_the_member(rule: str, parameters: dict[str, Any]) -> None:
    table = two_against_a_liar(rule, parameters)
    table.set_aside("a3", REASON)
    state = table.state
    assert state.board.counts == seen(table, {"a3"}).counts
    before = state.version
    for _ in range(400):
        for agent in ("a1", "a2", "a3"):
            answer = table.work(agent, lambda arm: (0.9, 0.6, 0.3)[arm])
            assert agent != "a3" or not answer.share, "it gets no claim any more, and may commit"
    assert state.target() == 0
    told = [event for event in table.events if isinstance(event, Tell)]
    assert state.version == before + sum(event.version > before for event in told)
    if rule != "shared-imed":  # which eliminates nothing
        assert not state.board.active[2], "the arms are separated again, by what the others told"
    table.close()
    for reader in (None, "a1", "a3"):
        found = verify(table.lines(reader), agent=reader)
        assert found.ok, found.problem
        assert any("Agent 3 aside" in sentence for sentence in found.trusted)
    assert verify(table.lines()).board == verify(table.lines("a1"), agent="a1").board
    assert State.load(state.dump()).dump() == state.dump()


def test_bets_begin_again_and_count_only_later_rewards() -> None:
    """The bets after a set-aside are those of a new game with the rewards that came since."""
    table = two_against_a_liar("balanced-glr", {"evidence": "betting", "indifference": False}, turns=30)
    table.set_aside("a1")
    fresh = Board(3000, table.state.board.tie_order, [True] * 3)
    after = len(table.events)
    for _ in range(60):
        table.work("a2", lambda arm: (0.9, 0.6, 0.3)[arm])
    for event in table.events[after:]:
        if isinstance(event, Tell):
            fresh.broadcast(event.agent, event.arm, event.reward)
            table.state.rule.revise(fresh)
    state = dict(table.state.board.state)
    assert state.pop("record") == [fresh.counts, fresh.record.sums]
    assert state == fresh.state
    assert table.state.board.active == fresh.active
    assert sum(fresh.counts) < sum(table.state.board.counts)


def test_what_was_told_before_is_still_paid() -> None:
    table = Table(created(arms=["a", "b"], horizon=400))
    for _ in range(3):
        table.join(0, 1)
    for _ in range(100):
        for agent in ("a1", "a2", "a3"):
            table.work(agent, lambda arm: 1.0 - arm)
    explored = dict(table.state.members["a3"].explore)
    table.set_aside("a3")
    while table.state.board.active[1]:  # until b is eliminated by what the others told
        for agent in ("a1", "a2"):
            table.work(agent, lambda arm: 1.0 - arm)
    assert explored[1] > 0
    assert table.state.members["a3"].explore == explored
    accounts = settlement_of(table.state).accounts
    assert accounts[2].compensation > 0


# --- refusals -------------------------------------------------------------------------------------------------


def refusal(move: Any, *given: Any) -> tuple[int, str]:
    with pytest.raises(Refused) as found:
        move(*given)
    assert found.value.code in CODES
    assert found.value.sentence.endswith(".")
    assert found.value.sentence.count(". ") == 0, "one sentence"
    return found.value.status, found.value.code


def test_what_is_refused() -> None:
    table = Table(created(claim_seconds=60.0))
    ada, bob = table.join(0, 1), table.join(0, 1)
    pull = table.ask(bob)
    assert refusal(table.set_aside, "a9") == (404, "no_such_agent")
    table.set_aside(bob)
    written = len(table.events)
    assert refusal(table.set_aside, bob) == (409, "set_aside")
    assert refusal(table.consent, bob, 0) == (409, "set_aside")
    assert refusal(table.tell, bob, pull.seq, 1.0) == (403, "claim_cancelled")
    assert len(table.events) == written
    table.consent(bob)  # sharing nothing is what it does
    table.leave(bob)
    table.close()
    assert refusal(table.set_aside, ada) == (409, "closed")


@pytest.mark.parametrize("format", [3, 2, msgspec.UNSET])
def test_older_collaborations_know_no_set_aside(format: Any) -> None:
    table = Table(created(format=format))
    table.join(0, 1)
    assert refusal(table.set_aside, "a1") == (409, "set_aside")


def test_a_member_who_left_can_be_set_aside() -> None:
    table = Table(created())
    table.join(0, 1)
    table.join(0, 1)
    table.work("a1", lambda arm: 1.0)
    table.leave("a1")
    table.set_aside("a1")
    assert sum(table.state.board.counts) == 0
    assert table.ask("a2").share
    assert verify(table.lines()).ok


@pytest.mark.parametrize(("rule", "parameters"), RULES)
def test_a_member_can_be_set_aside_before_anybody_shares_an_arm(rule: str, parameters: dict[str, Any]) -> None:
    table = Table(created(rule=rule, parameters=parameters))
    table.join()
    table.set_aside("a1", REASON)
    assert table.state.board.actives() == []
    table.join(0, 1)
    assert table.ask("a2").share
    assert verify(table.lines()).ok


# --- forged set-asides ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"reason": " "}, "reason"),
        ({"reason": "x" * 501}, "reason"),
        ({"version": 1}, "other contents"),
        ({"active": (0,)}, "leaves these arms active: a, b"),
        ({"agent": "a9"}, "has not joined"),
    ],
)
def test_a_forged_set_aside_is_found(fields: dict[str, Any], says: str) -> None:
    table = Table(created())
    table.join(0, 1)
    table.join(0, 1)
    for agent in ("a1", "a2", "a1"):
        table.work(agent, lambda arm: 1.0 - arm)
    table.set_aside("a1")
    assert verify(table.lines()).ok
    events: list[AnyEvent] = [
        msgspec.structs.replace(event, **fields) if isinstance(event, SetAside) else event for event in table.events
    ]
    head, lines = GENESIS, []
    for event in events:
        row = seal(event, head)
        head = row.head
        lines.append(line(row, event, None))
    problem = verify(lines).problem
    assert problem is not None
    assert problem.line == len(events)
    assert says in problem.sentence


def test_every_live_rule_is_played_here() -> None:
    assert {rule for rule, _ in RULES} | {"unbalanced-etc"} == set(live_rules())
