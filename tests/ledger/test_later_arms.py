"""Arms that the operator adds later, up to the number declared at creation."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from tests.ledger.test_histories import problem, refused
from tests.support.sequences import Table, created, perform, sequences

from partage.ledger.events import FORMAT, AddArm, Close
from partage.ledger.patches import patch_of, patched
from partage.ledger.refusals import Refused
from partage.ledger.state import State, tie_order
from partage.ledger.verify import verify
from partage.ledger.views import board_view, collaboration_view
from partage.rules import live_rules
from partage.rules.balanced_glr import elimination_threshold


def table_with(most: int | None = 4, **config: Any) -> Table:
    given = {"rule": "balanced-glr", "settlement": "pool", "arms": ["a", "b"], "most_arms": most}
    return Table(created(**{**given, **config}))


def test_an_arm_is_added_shared_explored_and_settled() -> None:
    table = table_with(horizon=600, prepaid=5.0)
    one, other = table.join(0, 1), table.join(0, 1)
    for _ in range(20):
        for agent in (one, other):
            table.work(agent, lambda arm: 0.5)
    before = board_view(table.state)
    table.add_arm("c")
    shown = board_view(table.state)
    assert [arm.name for arm in shown.arms] == ["a", "b", "c"]
    assert not shown.arms[2].public
    assert shown.version == before.version
    assert sorted(shown.tie_order) == ["a", "b", "c"]
    assert [name for name in shown.tie_order if name != "c"] == before.tie_order, "the others keep their order"
    assert patched(msgspec.to_builtins(before), patch_of(before, shown)) == msgspec.to_builtins(shown)
    view = collaboration_view(table.state)
    assert (view.arms, view.most_arms) == (["a", "b", "c"], 4)

    table.consent(one, 0, 1, 2)
    assert table.ask(one).arm == 2
    table.tell(one, table.state.members[one].claim or 0, 1.0)
    for _ in range(200):
        for agent in (one, other):
            table.work(agent, lambda arm: float(arm == 2))
    assert table.state.board.actives() == [2]
    assert State.load(table.state.dump()).arms == ["a", "b", "c"]
    table.close()
    assert verify(table.lines()).board == board_view(table.state)
    for agent in (one, other):
        assert verify(table.lines(agent), agent=agent).ok


@pytest.mark.parametrize("rule", list(live_rules()))
@given(happens=sequences(30), at=st.integers(2, 20))
@settings(max_examples=15)
def test_an_arm_that_comes_later_is_one_that_nobody_shared_so_far(rule: str, happens: list[Any], at: int) -> None:
    """The reference: the same collaboration with all arms from the start."""
    happens = [step for step in happens if step[0] != "arm" and not (step[0] == "attach" and step[2] > 1)]
    config = {"rule": rule, "settlement": "none", "horizon": 60}
    later = Table(created(arms=["a", "b"], most_arms=4, **config))
    from_the_start = Table(created(arms=["a", "b", "c", "d"], **config))
    for place, step in enumerate(happens):
        if place == at:
            later.add_arm("c")
            later.add_arm("d")
        if place < at and step[0] in ("commits", "attach"):
            continue  # these take arms modulo their number
        if place < at and step[0] in ("join", "consent"):  # until then, nobody can share the others
            where = 1 if step[0] == "join" else 2
            step = (*step[:where], frozenset(step[where]) & {0, 1}, *step[where + 1 :])[:3]
        perform(later, step)
        perform(from_the_start, step)
    one, other = later.state.board, from_the_start.state.board
    assert (one.record, one.active, one.claims, one.state) == (other.record, other.active, other.claims, other.state)
    assert one.tie_order == other.tie_order
    assert later.state.open_arms() == from_the_start.state.open_arms()
    assert verify(later.lines()).ok


def test_thresholds_and_the_tie_order_are_those_of_the_declared_number() -> None:
    table = table_with(6, arms=["a", "b"], rule="balanced-glr", parameters={"indifference": False})
    table.join(0, 1)
    table.order()
    weighed = table.state.rule.weigh(table.state.board)
    assert weighed is not None
    assert weighed.threshold == elimination_threshold(6, 100)
    assert table.state.board.tie_order == tie_order(str(table.state.tie_seed), 6)
    assert len(board_view(table.state).tie_order) == 2


def test_what_is_refused() -> None:
    table = table_with(3)
    table.join(0)
    written = len(table.events)
    table.add_arm("a")
    assert len(table.events) == written, "an arm that is there is not added again"
    assert refused(table.add_arm, "A") == (409, "arm_taken")
    assert refused(table.add_arm, " x ") == (422, "invalid_field")
    assert refused(table.add_arm, "") == (422, "invalid_field")
    table.add_arm("c")
    assert refused(table.add_arm, "d") == (409, "no_more_arms")
    table.close()
    assert refused(table.add_arm, "e") == (409, "closed")
    closed = table.events[-1]
    assert isinstance(closed, Close)
    assert len(closed.explore) == 3


@pytest.mark.parametrize("format", [FORMAT, 6, 5, 2, UNSET])
def test_without_a_declaration_there_are_no_others(format: Any) -> None:
    table = Table(created(format=format, rule="balanced-glr", settlement="none"))
    assert refused(table.add_arm, "c") == (409, "no_more_arms")
    if format != FORMAT:
        assert created(format=format, most_arms=5, settlement="none", rule="balanced-glr").most_arms is UNSET
    else:
        assert created(most_arms=2).most_arms is UNSET


@pytest.mark.parametrize(
    "config",
    [
        {"most_arms": 1},
        {"most_arms": 1001},
        {"most_arms": 101, "settlement": "equal-share", "underwriting": 1.0},
        {"most_arms": 33, "rule": "network-glr"},
        {"most_arms": 11, "settlement": "equal-share", "underwriting": 1.0, "alone": "two-ucb"},
    ],
)
def test_limits_on_arms_hold_for_the_declared_number(config: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        table_with(**{"most": None, **config})


def a_game() -> Table:
    table = table_with(3, horizon=50)
    one, other = table.join(0, 1), table.join(0)
    table.work(one, lambda arm: 1.0)
    table.add_arm("c")
    table.consent(one, 0, 1, 2)
    for _ in range(10):
        table.work(one, lambda arm: float(arm == 2))
        table.work(other, lambda arm: 0.0)
    table.close()
    return table


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"name": "a"}, "writes nothing"),
        ({"name": "A"}, "another"),
        ({"name": " c"}, "name"),
        ({"most_arms": UNSET}, "may have 2 arms"),  # beyond the declared number
        ({"most_arms": 4}, ""),  # another tie order, and other thresholds
        ({"most_arms": 2}, "never creates"),
        ({"most_arms": 1}, "most_arms"),
    ],
)
def test_forgeries(fields: dict[str, Any], says: str) -> None:
    events = [*a_game().events]
    where = next(place for place, event in enumerate(events) if isinstance(event, AddArm))
    assert problem(events) == problem(events, "a2") == ""
    where = where if "name" in fields else 0
    events[where] = msgspec.structs.replace(events[where], **fields)
    found = problem(events)
    assert found
    assert says.lower() in found.lower()


def test_an_arm_that_was_never_added_is_not_shared() -> None:
    events = [*a_game().events]
    where = next(place for place, event in enumerate(events) if isinstance(event, AddArm))
    del events[where]
    events = [msgspec.structs.replace(event, seq=place) for place, event in enumerate(events, 1)]
    assert "does not have" in problem(events)
