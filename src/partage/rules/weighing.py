"""What a rule's own test says of each arm: the evidence against it, and what the rule needs to eliminate it.

Pages show it. No decision reads it, so it is computed when somebody looks, and `more` is an estimate.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from partage.board import Board

MOST = 10**9  # broadcasts; an arm that needs more is too close to call
_ROUNDS = 4  # of the iteration in `growth`, which converges quickly


class Weighed(NamedTuple):
    """What a rule's test says of each arm.

    Attributes
    ----------
    threshold
        The evidence from which an arm is eliminated; None if the rule compares intervals.
    evidence
        The evidence that each arm is worse than the leader, at least 0. None for the leader, for arms that were never
        broadcast, and if the rule compares intervals.
    more
        About how many more broadcasts of each arm it takes to eliminate it if all arms are broadcast as often as
        before and their means stay as they are. None where nothing can be said.
    """

    threshold: float | None
    evidence: tuple[float | None, ...]
    more: tuple[int | None, ...]


def growth(evidence: float, needed: float, losses: float = 1.0) -> float:
    """Return by which factor f a record must grow until its evidence suffices: f evidence = needed + losses log f.

    >>> round(growth(2.0, 6.0, 0.0), 3), growth(8.0, 6.0), growth(0.0, 6.0)
    (3.0, 1.0, inf)
    """
    if evidence <= 0.0:
        return math.inf
    factor = max(1.0, needed / evidence)
    for _ in range(_ROUNDS):
        factor = max(1.0, (needed + losses * math.log(factor)) / evidence)
    return factor


def further(count: int, factor: float) -> int | None:
    """Return how many broadcasts are missing if an arm's record must grow by this factor."""
    missing = count * (factor - 1.0)
    return math.ceil(missing) if missing <= MOST else None


def weighed(
    board: Board, leader: int | None, threshold: float, weigh: Callable[[int], tuple[float, float]]
) -> Weighed:
    """Return what a test against the leader says; `weigh(arm)` is its evidence and the factor that is missing."""
    evidence: list[float | None] = [None] * board.arms
    more: list[int | None] = [None] * board.arms
    for arm in range(board.arms):
        if arm == leader or leader is None or not board.counts[arm] or not board.public[arm]:
            continue
        found, factor = weigh(arm)
        evidence[arm] = max(0.0, found)
        if board.active[arm]:
            more[arm] = further(board.counts[arm], factor)
    return Weighed(threshold, tuple(evidence), tuple(more))


def by_intervals(board: Board, radii: Sequence[float]) -> Weighed:
    """Return how many more broadcasts separate the intervals of active arms from the highest lower end."""
    more: list[int | None] = [None] * board.arms
    seen = [arm for arm in range(board.arms) if board.counts[arm]]
    if seen:
        best = max(seen, key=lambda arm: board.mean(arm) - radii[arm])
        for arm in seen:
            gap = board.mean(best) - board.mean(arm)
            if board.active[arm] and arm != best and gap > 0:
                more[arm] = further(board.counts[arm], max(1.0, ((radii[arm] + radii[best]) / gap) ** 2))
    return Weighed(None, (None,) * board.arms, tuple(more))
