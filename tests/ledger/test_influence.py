"""Liars in a live collaboration: they cannot promote an arm, and the ledger proves it."""

import random
from typing import Any

import pytest
from tests.support.faulty_store import all_of
from tests.support.sequences import Table, created

from partage.ledger.config import Config, checked_config
from partage.ledger.refusals import Refused
from partage.ledger.state import State
from partage.ledger.verify import verify
from partage.ledger.views import board_view, collaboration_view

MEANS = (0.9, 0.8, 0.6)


def table_of(members: int, shares: tuple[int, ...] = (0, 1, 2), **config: Any) -> Table:
    given = {"arms": ["a", "b", "c"], "horizon": 400, "settlement": "none", "rule": "balanced-glr"} | config
    table = Table(created(**given))
    for _ in range(members):
        table.join(*shares)
    return table


def play(table: Table, rounds: int, seed: int, pace: int = 3) -> None:
    """Let all members pull in turn; the last one asks `pace` times, and says that only arm b is good."""
    draw = random.Random(seed)
    *honest, liar = table.state.members
    for _ in range(rounds):
        for agent in honest:
            table.work(agent, lambda arm: float(draw.random() < MEANS[arm]))
        for _ in range(pace):
            table.work(liar, lambda arm: float(arm == 1))
        table.now += 10


@pytest.mark.parametrize("rule", ["balanced-glr", "kl-etc"])
def test_one_liar_of_eleven_who_asks_three_times_as_often(rule: str) -> None:
    """Row 2 of the attacks: without tolerance its arm leads, with tolerance 1 the best one does."""
    leaders = []
    for tolerate in (0, 1):
        table = table_of(11, rule=rule, parameters={"tolerate": tolerate})
        play(table, 100, seed=1)
        leaders.append(table.state.target())
        for arm in range(3) if tolerate else ():
            told = {agent: record.counts[arm] for agent, record in table.state.board.by_member.items()}
            assert told.pop("a11") <= 1 + max(told.values()), "it has its fair share"
    assert leaders == [1, 0]


def test_a_ledger_with_liars_from_its_creation_to_its_verification() -> None:
    table = table_of(5, parameters={"tolerate": 1}, settlement="equal-share-expected")
    play(table, 30, seed=2)
    before = all_of(table.state)
    table.state = State.load(table.state.dump())  # as after a restart
    assert all_of(table.state) == before
    assert table.state.board.leading == 0
    play(table, 30, seed=3)
    folded = State(table.events[0])  # type: ignore[arg-type]
    for event in table.events[1:]:
        folded.apply(event)
    assert all_of(folded) == all_of(table.state)
    table.close()
    assert verify(table.lines()).whole
    verify(table.lines("a1"), agent="a1")


def test_claims_that_lapsed_count_as_broadcasts() -> None:
    """Otherwise a liar could claim again and again, and tell everything at once."""
    table = table_of(4, parameters={"tolerate": 1})
    claims = []
    for _ in range(20):
        answer = table.ask("a4")
        claims += [answer.seq] if answer.share else []
        table.now += 2000
    assert len(claims) == 3, "one of each arm"
    for pull in claims:
        table.tell("a4", pull, 1.0)
    assert not table.ask("a4").share
    assert table.state.board.claimed == {}


def test_a_member_with_its_fair_share_commits_and_may_say_so() -> None:
    table = table_of(4, parameters={"tolerate": 1}, settlement="equal-share", underwriting=0.0)
    while table.work("a1", lambda arm: 0.5).share:
        pass
    leader = table.state.target()
    assert leader is not None
    assert table.state.open_arms()
    table.commits("a1", "first", (table.state.version, leader, 2))


def test_the_board_says_which_arms_too_few_share() -> None:
    table = table_of(3, (0, 1), parameters={"tolerate": 2})
    table.join(2)
    assert [arm.settleable for arm in board_view(table.state).arms] == [True, True, False]
    assert table.state.open_arms() == [0, 1]
    table.leave("a1")
    assert [arm.settleable for arm in board_view(table.state).arms] == [False, False, False]
    assert table.state.open_arms() == []


def test_a_ledger_states_tolerate_only_if_it_is_not_0() -> None:
    """Ledgers of earlier releases do not state it, and mean 0."""
    assert "tolerate" not in table_of(1).state.config.parameters
    table = table_of(1, parameters={"tolerate": 1})
    assert table.state.config.parameters["tolerate"] == 1
    assert collaboration_view(table.state).parameters["tolerate"] == 1


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"rule": "balanced-glr", "parameters": {"tolerate": -1}}, "it must be a whole number of at least 0"),
        ({"rule": "balanced-glr", "parameters": {"tolerate": 0.5}}, "it must be a whole number of at least 0"),
        ({"rule": "balanced-glr", "parameters": {"tolerate": 1, "evidence": "betting"}}, "tolerates no liars"),
        ({"rule": "shared-imed", "parameters": {"tolerate": 1}}, "has no such parameter"),
    ],
)
def test_what_is_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        checked_config(Config(name="Trial", arms=["a", "b"], horizon=100, **given))
