"""What a good learner alone costs, by formula: the yardstick of the ceilings of KL-UCB, IMED and Thompson sampling.

Let every arm pay its mean. IMED then keeps n kl(mean, best) + log n equal for all arms, so after t pulls an arm of
gap g was pulled n times, and the best arm N_b times, where

    n kl(best - g, best) + log n = log N_b,    N_b + sum of all n = t.

The cost is the sum of g n. With noise it is still close to what IMED, KL-UCB and Thompson sampling cost; how close is
measured by `bench/ceilings.py`, and `FACTORS` are below it.

With z = N_b kl, n = N_b exp(-W(z)) for Lambert's W. All functions here are shared between plain Python and kernels.
"""

import math
from collections.abc import Callable, Sequence

from partage.compiled import shared
from partage.evidence import kl

# Each learner costs at least this fraction of the formula: 5 % or more below every ratio in bench/ceilings.csv whose
# standard error is at most 5 % of it.
FACTORS = {"two-ucb": 0.85, "kl-ucb": 0.7, "imed": 0.75, "thompson": 0.68}
LONGEST = 10**6  # pulls; the cost never falls with pulls, so the cost of fewer is still a lower bound


@shared
def lambert(z: float) -> float:
    """Return Lambert's W for z >= 0: the w with w exp(w) = z, by Newton's method on w + log w = log z."""
    if z <= 0.0:
        return 0.0
    if z >= math.inf:
        return math.inf
    w, log_z = math.log(1.0 + z) if z > 1e-3 else z, math.log(z)
    for _ in range(5):
        w *= (1.0 + log_z - math.log(w)) / (1.0 + w)
    return w


@shared
def pulls_of(divergence: float, of_best: float) -> float:
    """Return the n with n kl + log n = log N_b: rising with N_b, falling with kl."""
    return of_best * math.exp(-lambert(divergence * of_best)) if divergence < math.inf else 0.0


@shared
def pulls_of_best(divergences: Sequence[float], steps: float) -> float:
    """Return N_b after `steps` pulls of the best arm and of arms with these divergences from it.

    The sum is concave in N_b, so Newton's method rises to the solution from below.
    """
    of_best = steps / (len(divergences) + 1.0)
    for _ in range(60):
        total, slope = of_best, 1.0
        for divergence in divergences:
            if divergence < math.inf:
                w = lambert(divergence * of_best)
                total += of_best * math.exp(-w)
                slope += math.exp(-w) / (1.0 + w)
        step = (steps - total) / slope
        of_best += max(0.0, step)
        if step <= 1e-12 * of_best:
            break
    return of_best


@shared
def luck(best: float, steps: float) -> float:
    """Return how much of the formula is left for KL-UCB where the best arm may pay 1 at every pull: from 1/2 up to 1.

    KL-UCB stays with an arm that never failed, and tries none of those that come later. With `steps` pulls, the best
    arm fails (1 - best) steps times; from ten on this does not matter.
    """
    return min(1.0, 0.5 + 0.05 * ((1.0 - best) * steps))


@shared
def cost_alone(best: float, gaps: Sequence[float], steps: float) -> float:
    """Return the cost of `steps` pulls of the best arm and of arms with these gaps to it."""
    divergences = [kl(max(0.0, best - gap), best) for gap in gaps]
    of_best, cost = pulls_of_best(divergences, min(steps, 1.0 * LONGEST)), 0.0
    for place in range(len(gaps)):
        cost += gaps[place] * pulls_of(divergences[place], of_best)
    return cost


@shared
def least_cost(low: float, high: float, lower: Sequence[float], upper: Sequence[float], steps: float) -> float:
    """Return the least cost over a box: a best mean from `low` to `high`, and gaps from `lower` to `upper`.

    `lower` and `upper` have no entry for the best arm. Arms with a gap of 0 cost nothing, but share the pulls.
    An arm's n rises with N_b, so N_b takes its least value in the box: that of the divergences that are smallest. For
    this N_b, g n rises and then falls both in the gap and in the best mean, so it is least at a corner.
    """
    divergences = [least_divergence(low, high, gap) for gap in lower]
    of_best, cost = pulls_of_best(divergences, min(steps, 1.0 * LONGEST)), 0.0
    for place in range(len(lower)):
        least, most = min(lower[place], high), min(upper[place], high)  # no mean is below 0
        if least <= 0.0:
            continue
        found = math.inf
        for best, gap in (
            (max(low, least), least),
            (high, least),
            (low, min(most, low)),
            (max(low, most), most),
            (high, most),
        ):
            if gap >= least:
                found = min(found, gap * pulls_of(kl(max(0.0, best - gap), best), of_best))
        cost += found
    return cost


@shared
def least_divergence(low: float, high: float, gap: float) -> float:
    """Return the least kl(best - gap, best) for a best mean from `low` to `high`: it is convex in the best mean."""
    low, high = max(low, gap), max(low, high, gap)
    if gap <= 0.0:
        return 0.0
    if low < high:
        for _ in range(30):
            middle = 0.5 * (low + high)
            if _slope(middle, gap) > 0.0:
                high = middle
            else:
                low = middle
    return min(kl(low - gap, low), kl(high - gap, high))


@shared
def _slope(best: float, gap: float) -> float:
    """Return the derivative of kl(best - gap, best) in `best`."""
    mean = best - gap
    if mean <= 0.0:
        return -math.inf
    if best >= 1.0:
        return math.inf
    return math.log(mean / best) - math.log((1.0 - mean) / (1.0 - best)) + gap / (best * (1.0 - best))


def lower_bound(
    alone: str,
    low: float,
    high: float,
    lower: Sequence[float],
    upper: Sequence[float],
    steps: int,
    cost: Callable[..., float] | None = None,
) -> float:
    """Return the ceiling of an agent with `steps` pulls: a lower bound on what a learner alone would have cost it.

    Parameters
    ----------
    alone
        The learner: one of `FACTORS`, or "best" for whichever costs least.
    low, high, lower, upper
        The box, as for `least_cost`.
    steps
        The agent's pulls.
    cost
        `least_cost`, or its compiled twin.
    """
    longest = float(min(steps, LONGEST))
    factors = {**FACTORS, "kl-ucb": FACTORS["kl-ucb"] * luck(high, longest)}
    factor = min(factors.values()) if alone == "best" else factors[alone]
    return factor * (cost or least_cost)(low, high, lower, upper, longest)
