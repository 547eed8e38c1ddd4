"""Every bound and premise of the paper, one small function each, with the paper's own label.

Throughout, c = (1 + sqrt(B))^2 (`balance_factor`) and k = (sqrt(2) - sqrt(3/2))^2 (`K`). `gaps` are the gaps of all
arms, including the best; sub-optimal arms have a positive gap.

| label | number | what it bounds |
|---|---|---|
| `Th1` | Theorem 4.1 | the expected overall regret |
| `event1` | Lemma 4.3 | the probability that the good event E fails |
| `suboptimal` | Lemma 4.4 | broadcasts of a sub-optimal arm, given E |
| `lemma_number_explore` | Lemma 4.5 | broadcasts of an active arm, from below |
| `Lemma_Commit` | Lemma 4.6 | the expected commit regret, given E |
| `Theorem_Min_Info` | Theorem 4.7 | the least sharing that suffices (no constant) |
| `range` | Lemma 5.1 | a gap, from both sides, by an arm's broadcasts, given E |
| `Theorem_IR` | Theorem 5.2 | every agent's incentive regret, by the regret of 2-UCB |
| `range_ucb` | Lemma H.1 | a gap, from below, by the pulls of 2-UCB |
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from partage.evidence import kl
from partage.settle.paper import K, balance_factor


class Premise(NamedTuple):
    """A premise of the form left > right, with its numbers."""

    left: float
    right: float

    @property
    def met(self) -> bool:
        """Whether it holds. Equality is not enough."""
        return self.left > self.right


def positive_gaps(gaps: Iterable[float]) -> list[float]:
    """Return the gaps of the sub-optimal arms."""
    return [float(gap) for gap in gaps if gap > 0]


def smallest_gap(gaps: Iterable[float]) -> float | None:
    """Return the smallest positive gap (the paper's Delta_min); None if every arm is optimal.

    >>> smallest_gap([0.0, 0.0, 0.25]), smallest_gap([0.0])
    (0.25, None)
    """
    return min(positive_gaps(gaps), default=None)


# --- Balanced-ETC -------------------------------------------------------------------------------------------


def overall_regret(gaps: Iterable[float], agents: int, horizon: int, balance: float) -> float:
    """`Th1`: sum over sub-optimal i of 8 c log T / Delta_i, plus 4 e M N^2 / Delta_min, plus 2 M N."""
    gaps = list(gaps)
    explore = sum(8 * balance_factor(balance) * math.log(horizon) / gap for gap in positive_gaps(gaps))
    return explore + commit_regret(gaps, agents) + 2 * agents * len(gaps)


def bad_event(arms: int, horizon: int) -> float:
    """`event1`: 2 N / T, the paper's bound on the probability that E fails."""
    return 2 * arms / horizon


def bad_event_per_broadcast(arms: int, agents: int, horizon: int) -> float:
    """`event1`, by a union bound over all possible broadcasts: N arms, M T broadcasts each, 2 / T^3 per broadcast."""
    return 2 * arms * agents / horizon**2


def broadcasts(gap: float, horizon: int, balance: float) -> int:
    """`suboptimal`: the ceiling of 8 c log T / Delta_i^2."""
    return math.ceil(8 * balance_factor(balance) * math.log(horizon) / gap**2)


def commit_regret(gaps: Iterable[float], agents: int) -> float:
    """`Lemma_Commit`: 4 e M N^2 / Delta_min, for the commit pulls of all agents together."""
    gaps = list(gaps)
    smallest = smallest_gap(gaps)
    assert smallest is not None
    return 4 * math.e * agents * len(gaps) ** 2 / smallest


# --- gaps seen from counts ----------------------------------------------------------------------------------


def gap_floor(count: int, horizon: int) -> float:
    """`range`, left: sqrt(k log T / N_i), infinite for an arm that was never broadcast."""
    return math.sqrt(K * math.log(horizon) / count) if count else math.inf


def gap_ceiling(count: int, horizon: int, balance: float) -> float:
    """`range`, right: sqrt(8 c log T / N_i), infinite for an arm that was never broadcast."""
    return math.sqrt(8 * balance_factor(balance) * math.log(horizon) / count) if count else math.inf


def two_ucb_gap_floor(pulls: int, horizon: int) -> float:
    """`range_ucb`: sqrt(k log T / (4 N'_i)), infinite for an arm that 2-UCB never pulled."""
    return math.sqrt(K * math.log(horizon) / (4 * pulls)) if pulls else math.inf


def all_eliminated(gaps: Iterable[float], horizon: int, balance: float) -> Premise:
    """Premise of `range`: (T - 2 N) / log T > 8 c N / Delta_min^2, so that every sub-optimal arm is eliminated."""
    gaps = list(gaps)
    smallest = smallest_gap(gaps)
    assert smallest is not None
    needed = 8 * balance_factor(balance) * len(gaps) / smallest**2
    return Premise((horizon - 2 * len(gaps)) / math.log(horizon), needed)


def long_enough(gaps: Iterable[float], horizon: int) -> Premise:
    """Premise of `range_ucb` and `Theorem_IR`: T / log^2 T > N / (4 Delta_min^4)."""
    gaps = list(gaps)
    smallest = smallest_gap(gaps)
    assert smallest is not None
    return Premise(horizon / math.log(horizon) ** 2, len(gaps) / (4 * smallest**4))


# --- information --------------------------------------------------------------------------------------------


def information_floor(means: Iterable[float]) -> float:
    """`Theorem_Min_Info`: the sum over sub-optimal arms of 1 / kl(mu_i, mu_1).

    One agent alone needs this many observations, times log T, for a regret of order log T (Lai and Robbins).
    """
    means = [float(mean) for mean in means]
    best = max(means)
    return math.fsum(1 / kl(mean, best) for mean in means if mean < best)
