"""Which commits the board allowed: the quick lookup answers as the plain one."""

from bisect import bisect_left, bisect_right
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from tests.support.sequences import Table, created, perform, sequences

from partage.ledger.events import FORMAT
from partage.ledger.state import State
from partage.ledger.windows import Lookup, Window

CONFIG = {"arms": ["a", "b", "c"], "horizon": 200}


class Plain(State):
    """A state that forgets nothing of what its members shared."""

    def _forget_consents(self, member: Any) -> None:
        pass


def plainly(window: Window, end: int, consents: list[tuple[int, str]], arm: int) -> bool:
    """Look at every moment, and at everything that the agent shared in it."""
    ends = [moment[0] for moment in window.moments[1:]] + [end]
    for (start, led, opened), over in zip(window.moments, ends, strict=True):
        first = bisect_right(consents, start, key=lambda one: one[0]) - 1
        last = bisect_left(consents, over, key=lambda one: one[0])
        shared = [int(shares, 16) for _, shares in consents[max(0, first) : last]]
        if led == arm and any(not int(opened, 16) & shares for shares in shared):
            return True
    return False


@given(
    st.sampled_from([UNSET, 2, 3, 4, FORMAT]),
    st.sampled_from(["balanced-etc", "balanced-glr", "shared-imed"]),
    sequences(),
    st.data(),
)
def test_it_answers_as_the_plain_lookup(format: Any, rule: str, steps: Any, data: st.DataObject) -> None:
    config = {**CONFIG, "rule": rule} | ({} if rule == "balanced-etc" else {"settlement": "equal-share"})
    with patch("tests.support.sequences.State", Plain):
        plain = Table(created(format=format, **config))
    table = Table(created(format=format, **config))
    for step in steps:
        made = [repr(perform(one, step)) for one in (plain, table)]
        assert made[0] == made[1]
        state = table.state
        assert [one.moments for one in state.windows] == [one.moments for one in plain.state.windows]
        if data.draw(st.booleans()):
            continue
        for place, window in enumerate(state.windows):
            end = state.windows[place + 1].moments[0][0] if place + 1 < len(state.windows) else state.seq + 1
            for agent in state.members:
                consents = plain.state.members[agent].consents
                for arm in range(3):
                    assert state.allowed(agent, window, arm) == plainly(window, end, consents, arm)


@given(st.data())
def test_it_does_so_for_any_moments(data: st.DataObject) -> None:
    """Also for those that no board makes."""
    arms, few = st.integers(-1, 2), st.sampled_from(["0", "1", "2", "3", "5"])
    seqs = st.integers(1, 3)
    window, lookup, consents, seq = Window(0, [(1, -1, "0")]), Lookup(), [], 1
    for joins, moment, step in data.draw(st.lists(st.tuples(st.booleans(), st.booleans(), seqs), max_size=25)):
        seq += step
        if joins:
            consents.append((seq, data.draw(few)))
        if moment:
            window.moments.append((seq, data.draw(arms), data.draw(few)))
        for arm in range(3):
            end = seq + 1
            assert lookup.allows(window, end, "a1", consents, arm) == plainly(window, end, consents, arm)


def test_toggling_within_a_version_costs_each_moment_once() -> None:
    table = Table(created(**CONFIG))
    ann, ben = table.join(0, 1), table.join(0, 1, 2)
    for turn in range(400):
        table.consent(ann, *((0, 1) if turn % 2 else (0, 1, 2)))
    (window,) = table.state.windows
    assert len(table.state.members[ann].consents) > 400
    looked = []

    class Counted(list[tuple[int, int, str]]):
        def __getitem__(self, place: Any) -> Any:
            looked.append(place)
            return super().__getitem__(place)

    window.moments = Counted(window.moments)
    for _ in range(3):
        for arm in range(3):
            table.state.allowed(ben, window, arm)
    assert len(looked) <= 4 * len(window.moments) + 20


def test_what_was_shared_long_ago_is_forgotten() -> None:
    table = Table(created(**CONFIG))
    ann = table.join(0, 1)
    for turn in range(50):
        table.consent(ann, *((0, 1) if turn % 2 else (0, 1, 2)))
        table.work(ann, lambda arm: 0.5)
        table.now += 5000
    assert len(table.state.members[ann].consents) < 10
