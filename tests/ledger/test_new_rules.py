"""Whole collaborations by betting and by shared-imed: played, resumed from a snapshot, closed and verified."""

import random
from typing import Any

import pytest
from tests.support.faulty_store import all_of
from tests.support.sequences import Table, created

from partage.ledger.events import Claim, Commit, Tick
from partage.ledger.state import State
from partage.ledger.verify import verify
from partage.rules import live_rules

MEANS = (0.9, 0.5, 0.3)
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("balanced-glr", {"evidence": "betting"}),
    ("shared-imed", {"lead": 2.0, "clock": 0.5}),
    ("network-glr", {"lead": 2.0}),
]


def play(table: Table, rounds: int, seed: int) -> None:
    """Let every agent pull in turn. Rewards vary around the means; the last agent reports its commit pulls late."""
    draw = random.Random(seed)
    for turn in range(rounds):
        for agent in table.state.members:
            pull = table.ask(agent, explore_only=agent == "a4")
            if pull is None:
                table.follow(agent, f"{seed} {turn}", 2)
            elif pull.share:
                table.tell(agent, pull.seq, round(MEANS[pull.arm] * draw.random() ** 0.25, 3))
            table.now += draw.randrange(50)


@pytest.mark.parametrize(
    ("rule", "parameters", "settlement"),
    [
        (rule, parameters, settlement)
        for rule, parameters in VARIANTS
        for settlement in ("none", "equal-share-expected", "pool")
        if settlement in live_rules()[rule]().settlements
    ],
)
def test_a_collaboration_from_its_creation_to_its_verified_ledger(
    rule: str, parameters: dict[str, Any], settlement: str
) -> None:
    config = {"arms": ["a", "b", "c"], "horizon": 400, "rule": rule, "parameters": parameters}
    table = Table(created(**config, settlement=settlement))
    for shares in ((0, 1), (1, 2), (0, 2), ()):
        table.join(*shares)
    play(table, 60, seed=1)
    before = all_of(table.state)
    table.state = State.load(table.state.dump())  # as after a restart
    assert all_of(table.state) == before
    play(table, 60, seed=2)

    folded = State(table.events[0])
    for event in table.events[1:]:
        folded.apply(event)
    assert all_of(folded) == all_of(table.state)
    if rule == "balanced-glr":
        assert table.state.board.active == [True, False, False], "the bets eliminate"
        assert table.state.board.state["leader"] == 0
    elif rule == "network-glr":
        assert table.state.target() == 0
        assert table.state.board.state["told"] > 50
    else:
        assert table.state.board.active == [True, True, True], "nothing is eliminated"
    table.close()
    for kind in (Claim, Commit, *([Tick] if table.state.rule.clocked else [])):
        assert any(isinstance(event, kind) for event in table.events)
    whole = verify(table.lines())
    assert whole.ok, whole.problem
    for agent in table.state.members:
        copy = verify(table.lines(agent), agent=agent)
        assert copy.ok, copy.problem
        assert not copy.whole
        assert whole.settlement is not None
        assert copy.row == next(row for row in whole.settlement.rows if row.agent == agent)
