"""The decisions of another machine: verified if they are within rounding of a threshold, and only then."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from tests.support.sequences import Step, Table, configurations, created, played, sequences

from partage import board as boards
from partage.ledger.events import Commit, Create, Tell
from partage.ledger.state import State
from partage.ledger.verify import tolerance, verify
from partage.rules import balanced_glr, betting, kl_etc

PAYS = {0: 1.0, 1: 0.6, 2: 0.0}
VARIANTS = {"by-betting": ("balanced-glr", {"evidence": "betting"})}
NEAR = 5e-11  # how far from the threshold the evidence lies


def play(rule: str) -> Table:
    """A game with claims, commit pulls that were asked for, and commit pulls that were reported."""
    name, parameters = VARIANTS.get(rule, (rule, {}))
    config = {"rule": name, "parameters": parameters, "settlement": "equal-share"}  # whose commits are named
    table = Table(created(arms=["a", "b", "c"], horizon=500, **config))
    agents = [table.join(0, 1, 2), table.join(1), table.join(2), table.join(0, 2)]
    for turn in range(80):
        for agent in agents:
            answer = table.ask(agent, explore_only=True)
            if answer is not None:
                table.tell(agent, answer.seq, PAYS[answer.arm])
            elif turn % 2:
                table.follow(agent, f"turn {turn}", 2)
            else:
                table.ask(agent)
    return table


Change = Callable[[pytest.MonkeyPatch], None]


@contextmanager
def patched(*changes: Change) -> Iterator[None]:
    """Change the thresholds or the evidence."""
    with pytest.MonkeyPatch.context() as patch:
        for change in changes:
            change(patch)
        yield


def wobbling(function: Callable[..., float], most: float, seed: int) -> Callable[..., float]:
    """The function of a machine that rounds differently."""

    def other(*given: Any) -> float:
        return function(*given) + random.Random(repr((seed, given))).uniform(-most, most)

    return other


def another_machine(seed: int) -> Change:
    """Evidence as a machine computes it that rounds differently: less than 1e-9 in all from ours."""

    def change(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(balanced_glr, "_apart", wobbling(balanced_glr._apart, 5e-10, seed))
        patch.setattr(balanced_glr, "_loss", wobbling(balanced_glr._loss, 2e-10, seed))
        patch.setattr(boards, "radius", wobbling(boards.radius, 4.5e-10, seed))
        patch.setattr(betting, "largest_bet", wobbling(betting.largest_bet, 5e-10, seed))
        contest, moved = betting.contest, wobbling(lambda *given: 0.0, 5e-10, seed)
        patch.setattr(betting, "contest", lambda level, *given: contest(level + moved(*given), *given))

    return change


# --- thresholds on which a decision of the game lies ----------------------------------------------------------


@cache
def before_first_elimination(rule: str) -> tuple[State, int]:
    """The state with the broadcast that first eliminates an arm, and the arm."""
    table = play(rule)
    state = State(table.events[0])
    for event in table.events[1:]:
        active = list(state.board.active)
        state.apply(event)
        if isinstance(event, Tell) and event.active is not UNSET:
            return state, next(arm for arm in range(3) if active[arm] and not state.board.active[arm])
    raise AssertionError("no arm is eliminated")


@cache
def elimination(rule: str) -> Callable[[float], Change]:
    """Put the threshold of evidence where the first elimination happens."""
    state, arm = before_first_elimination(rule)
    board = state.board
    seen = [other for other in range(3) if board.counts[other] and board.mean(other) > board.mean(arm)]
    evidence = max(balanced_glr.net_evidence(board.record, arm, other) for other in seen)

    def at(offset: float) -> Change:
        def change(patch: pytest.MonkeyPatch) -> None:
            for module in (balanced_glr, kl_etc):
                patch.setattr(module, "elimination_threshold", lambda arms, horizon: evidence + offset)

        return change

    return at


@cache
def interval(rule: str) -> Callable[[float], Change]:
    """Widen all intervals until two of them only just touch at the first elimination."""
    state, arm = before_first_elimination(rule)
    board, radius = state.board, boards.radius
    width = radius(board.horizon, board.counts[arm])
    scale = max(
        (board.mean(other) - board.mean(arm)) / (width + radius(board.horizon, board.counts[other]))
        for other in range(3)
        if other != arm
    )

    def at(offset: float) -> Change:
        return lambda patch: patch.setattr(boards, "radius", lambda T, n: radius(T, n) * scale + offset / 2)

    return at


@cache
def wealth(rule: str) -> Callable[[float], Change]:
    """Put the threshold of wealth where the first elimination happens: between these two, by bisection."""
    state, arm = before_first_elimination(rule)
    low, high = 0.0, 1e3
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if betting._is_beaten(state.board, arm, middle) else (low, middle)

    def at(offset: float) -> Change:
        def change(patch: pytest.MonkeyPatch) -> None:
            for module in (balanced_glr, betting):
                patch.setattr(module, "betting_threshold", lambda horizon: low + offset)

        return change

    return at


def enough(evidence: float) -> Change:
    """Stop exploring an arm when there is more evidence against it than this."""
    return lambda patch: patch.setattr(balanced_glr, "is_indifferent", lambda found, *rest: found > evidence)


@cache
def stop(rule: str) -> Callable[[float], Change]:
    """Stop exploring exactly where the evidence against an arm lies when that decides what is explored."""
    with patched(enough(2.0)):
        table = play(rule)
    state = State(table.events[0])
    for event in table.events[1:]:
        state.apply(event)
        leader = state.target()
        if not isinstance(event, Tell) or leader is None:
            continue
        board = state.board
        counts, sums = board.record.counts, board.record.sums
        for arm in range(3):
            if arm != leader and counts[arm] and counts[leader]:
                if state.rule.evidence == "betting":  # type: ignore[attr-defined]
                    evidence = betting.evidence_of(board)[arm]
                else:
                    evidence = balanced_glr._apart(counts[arm], sums[arm], counts[leader], sums[leader])
                if evidence > 1.0 and differ(rule, enough(evidence + NEAR), enough(evidence - NEAR)):
                    return lambda offset: enough(evidence + offset)
    raise AssertionError("the stop decides nothing")


def level(evidence: float) -> Change:
    """Gather so much evidence about every arm."""
    return lambda patch: patch.setattr(balanced_glr, "free_evidence", lambda count: evidence)


@cache
def pace(rule: str) -> Callable[[float], Change]:
    """Gather as much evidence about every arm as there is about one of them when another is chosen instead."""
    with patched(level(1.0)):
        table = play(rule)
    state = State(table.events[0])
    for event in table.events[1:]:
        state.apply(event)
        leader = state.target()
        if not isinstance(event, Tell) or leader is None:
            continue
        counts, sums = state.board.record.counts, state.board.record.sums
        for arm in range(3):
            if arm != leader and counts[arm]:
                evidence = balanced_glr._apart(counts[arm], sums[arm], counts[leader], sums[leader])
                if evidence > 1.0 and differ(rule, level(evidence + NEAR), level(evidence - NEAR)):
                    return lambda offset: level(evidence + offset)
    raise AssertionError("the pace decides nothing")


def differ(rule: str, one: Change, other: Change) -> bool:
    """Whether a rule plays differently."""
    with patched(one):
        first = play(rule).events
    with patched(other):
        return play(rule).events != first


CASES = {
    "elimination-balanced-glr": ("balanced-glr", elimination),
    "elimination-kl-etc": ("kl-etc", elimination),
    "elimination-balanced-etc": ("balanced-etc", interval),
    "elimination-unbalanced-etc": ("unbalanced-etc", interval),
    "elimination-by-betting": ("by-betting", wealth),
    "open-balanced-glr": ("balanced-glr", pace),
    "stop-balanced-glr": ("balanced-glr", stop),
    "stop-by-betting": ("by-betting", stop),
}


@pytest.mark.parametrize("case", CASES)
def test_a_decision_on_a_threshold_may_go_either_way(case: str) -> None:
    """One machine decides just below the threshold, another just above; both verify the other's ledger."""
    rule, threshold = CASES[case]
    at = threshold(rule)
    assert differ(rule, at(NEAR), at(-NEAR))
    with patched(at(NEAR)):
        one = play(rule)
    with patched(at(-NEAR)):
        other = play(rule)
    for table, offset in ((one, -NEAR), (other, NEAR)):
        with patched(at(offset)):
            found = verify(table.lines())
            assert found.problem is None
            assert found.board is not None
            assert [arm.active for arm in found.board.arms] == table.state.board.active[: len(table.state.arms)]
            for reader in ("a1", "a2"):
                assert verify(table.lines(reader), agent=reader).problem is None
            with patched(lambda patch: patch.setattr(tolerance, "SLACKS", (0.0, 0.0))):
                assert verify(table.lines()).problem is not None, "without the tolerance it would not verify"


@pytest.mark.parametrize("case", CASES)
def test_a_decision_away_from_the_threshold_is_wrong(case: str) -> None:
    rule, threshold = CASES[case]
    at = threshold(rule)
    for here, there in ((1e-8, -1e-8), (-1e-8, 1e-8)):
        with patched(at(here)):
            lines = play(rule).lines()
            assert verify(lines).problem is None
        with patched(at(there)):
            problem = verify(lines).problem
        assert problem is not None
        assert "does not follow" in problem.sentence or "would have refused" in problem.sentence


@settings(max_examples=25)
@given(case=st.sampled_from(sorted(CASES)), offset=st.floats(-NEAR, NEAR), seed=st.integers(0, 2**32))
@example(case="elimination-balanced-glr", offset=0.0, seed=0)
def test_another_machines_evidence_on_a_threshold(case: str, offset: float, seed: int) -> None:
    rule, threshold = CASES[case]
    with patched(threshold(rule)(offset)):
        table = play(rule)
        with patched(another_machine(seed)):
            assert verify(table.lines()).problem is None


@settings(max_examples=100)
@given(create=configurations(("none",)), happens=sequences(), seed=st.integers(0, 2**32))
def test_another_machines_evidence_anywhere(create: Create, happens: list[Step], seed: int) -> None:
    table = played(create, happens)
    with patched(another_machine(seed)):
        found = verify(table.lines())
    assert found.problem is None
    assert found.board is not None
    assert [arm.active for arm in found.board.arms] == table.state.board.active[: len(table.state.arms)]


def test_the_games_have_everything_that_is_decided() -> None:
    for rule, _ in CASES.values():
        events = play(rule).events
        assert any(isinstance(event, Commit) and event.asked for event in events)
        assert any(isinstance(event, Commit) and not event.asked for event in events)
        assert any(isinstance(event, Tell) and event.active is not UNSET for event in events)
