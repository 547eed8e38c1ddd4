"""The equal-share settlement: agents are made whole, and share the bill equally up to what each had to gain.

It reads the public record and the counts of pulls alone, and works with any rule. Let C be the arms left at the
close. A pull of another arm i is compensated with its gap to C: the largest that the record allows (`equal-share`),
or the plain difference of the means (`equal-share-expected`). Everyone pays the same part of the bill, but never more
than her ceiling: what 2-UCB alone would at least have cost her.

What a record allows. For an arm with n broadcasts let `loss` be what a Beta(1/2, 1/2) mixture of likelihoods lacks to
the highest one, at most 0.5 log n + log 2. Then at all times together, but for probability d, the true mean x of an
arm satisfies n kl(mean, x) <= log(1 / d) + loss, and the true means x, y of a pair

    n kl(mean, x) + n' kl(mean', y) <= log(1 / d) + loss + loss'

With d = 1 / ((N - 1) T) the latter holds for the best arm and every other at once, but for probability 1/T; where one
arm is left, that is how its gaps are bounded from above, which is tighter than bounding each mean. From below, which
matters to the ceiling alone, a mixture over the half with a larger gap does (its prior mass is at most 1/2), which
takes log 2 off, as in Balanced-GLR, for another 1/T. Where more arms are left, each mean is bounded with
d = 1 / (2 N T), and the settlement is unfinished: regret on the arms left is not covered.
"""

import math

import numpy as np
from numpy.typing import NDArray

from partage.compiled import compiled
from partage.engine.rewards import bernoulli_sum
from partage.evidence import kl, mixture_loss

TRIALS, PLAYS = 32, 512  # plays of 2-UCB alone: to choose an end of each gap, and to measure
_BLOCKS = 10  # pulls of an arm go in blocks of n / 2^10
LONGEST = 10**6  # steps of such a play; regret never falls with pulls, so a cut play bounds from below
CEILING_SEED = 0  # of the plays: a word of their key, the other is the number of the play


@compiled
def _tilted(mean, tilt):
    """Return the q with (q - mean) / (q (1 - q)) = tilt: where the divergence from `mean` has that slope."""
    if abs(tilt) < 1e-12:
        return mean
    root = math.sqrt((1.0 - tilt) ** 2 + 4.0 * tilt * mean)
    if tilt < 1.0:  # the same root, in the form that does not cancel; 0 only where the mean is, though it underflow
        return min(1.0, max(min(mean, 1e-300), 2.0 * mean / ((1.0 - tilt) + root)))
    return min(1.0, max(0.0, (tilt - 1.0 + root) / (2.0 * tilt)))


@compiled
def gap_end(count, mean, other_count, other_mean, level, side):
    """Return the largest (side = 1) or smallest (side = -1) x - y with n kl(mean, x) + n' kl(mean', y) <= level.

    At such an end both divergences have the same slope, so one slope is searched for, by bisection.
    """
    low, high = 0.0, 1.0

    def spent(slope):
        x, y = _tilted(mean, side * slope / count), _tilted(other_mean, -side * slope / other_count)
        return count * kl(mean, x) + other_count * kl(other_mean, y)

    while high < 1e15 and spent(high) <= level:
        high *= 2.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        if spent(middle) <= level:
            low = middle
        else:
            high = middle
    return _tilted(mean, side * high / count) - _tilted(other_mean, -side * high / other_count)


@compiled
def mean_end(count, mean, level, side):
    """Return the largest (side = 1) or smallest (side = -1) x with n kl(mean, x) <= level, rounded outwards."""
    inside, outside = mean, 0.5 + 0.5 * side
    if count * kl(mean, outside) <= level:
        return outside
    for _ in range(60):
        middle = 0.5 * (inside + outside)
        if count * kl(mean, middle) <= level:
            inside = middle
        else:
            outside = middle
    return outside


@compiled
def gaps_of(counts, sums, active, public, horizon, expected, lower, upper):
    """Write the ends of each arm's gap to the arms left into `lower` and `upper`; return the leader's mean.

    With `expected` both are the difference of the means. They are 0 for arms that nobody shares, and never below: in
    live play a late report may show an arm that is out to be better than those left. For an arm that is left, `lower`
    is 0 and `upper` what it may lack to another one left: 0 if it is the only one.
    """
    arms, left, leader, leader_mean = len(counts), 0, -1, -math.inf
    for arm in range(arms):
        if active[arm] and public[arm]:
            left += 1
            mean = sums[arm] / counts[arm] if counts[arm] > 0 else -1.0
            if mean > leader_mean:
                leader, leader_mean = arm, mean
    for arm in range(arms):
        lower[arm], upper[arm] = 0.0, 0.0
    if leader < 0 or counts[leader] == 0:
        return 0.0

    if expected:
        for arm in range(arms):
            if public[arm] and not active[arm]:
                lower[arm] = upper[arm] = max(0.0, leader_mean - sums[arm] / counts[arm])
        return leader_mean

    if left == 1:
        spend = math.log(arms - 1.0) + math.log(horizon) if arms > 1 else 0.0
        spend_below = math.log((math.exp(spend) + 1.0) / 2.0)  # one-sided, as in Balanced-GLR
        loss = mixture_loss(counts[leader], sums[leader])
        for arm in range(arms):
            if public[arm] and not active[arm]:
                mean, losses = sums[arm] / counts[arm], loss + mixture_loss(counts[arm], sums[arm])
                n, m = counts[leader], counts[arm]
                upper[arm] = min(1.0, max(0.0, gap_end(n, leader_mean, m, mean, spend + losses, 1.0)))
                lower[arm] = max(0.0, gap_end(n, leader_mean, m, mean, spend_below + losses, -1.0))
        return leader_mean

    spend = math.log(2.0 * arms) + math.log(horizon)
    lows, highs = np.zeros(arms), np.ones(arms)
    highest_low, highest = 0.0, 0.0
    for arm in range(arms):
        if counts[arm] > 0:
            mean, level = sums[arm] / counts[arm], spend + mixture_loss(counts[arm], sums[arm])
            lows[arm], highs[arm] = mean_end(counts[arm], mean, level, -1.0), mean_end(counts[arm], mean, level, 1.0)
        if public[arm] and active[arm]:
            highest_low, highest = max(highest_low, lows[arm]), max(highest, highs[arm])
    for arm in range(arms):
        if public[arm]:
            upper[arm] = min(1.0, max(0.0, highest - lows[arm]))
            lower[arm] = 0.0 if active[arm] else max(0.0, highest_low - highs[arm])
    return leader_mean


@compiled
def _play_alone(play, best, gaps, two_log, marks, made):
    """Play 2-UCB once, where the best arm always pays its mean; count pulls up to each of the steps `marks`.

    Between two pulls of other arms the best arm is pulled until its index, best + sqrt(two_log / n), is below theirs:
    one formula. Arms without a gap are left out: they cost nothing. An arm that was pulled n times is pulled in
    blocks of n / 1,024, of the last of which 2-UCB may have made one pull alone: `made[k]` counts that one, whether
    step `marks[k]`, in rising order, ends the block or cuts it.
    """
    arms, steps = len(gaps), marks[-1]
    index, sums = np.full(arms, -math.inf), np.zeros(arms)
    pulls, sure = np.zeros(arms, np.int64), np.zeros(arms, np.int64)
    word, group_of = np.zeros(arms, np.uint64), np.full(arms, -1)
    k0, k1 = np.uint64(CEILING_SEED), np.uint64(play)
    for arm in range(arms):
        if gaps[arm] > 0.0:
            index[arm] = math.inf
    of_best, step = 1, 1
    mark = _note(0, step, marks, sure, made)
    while step < steps:
        arm, second = 0, -math.inf
        for i in range(1, arms):
            if index[i] > index[arm]:
                second = index[arm]
                arm = i
            else:
                second = max(second, index[i])
        if index[arm] <= best:
            _note(mark, steps, marks, sure, made)
            return
        if index[arm] < best + math.sqrt(two_log / of_best):
            until = min(math.floor(two_log / (index[arm] - best) ** 2) + 1.0, 2.0**62)
            step += np.int64(until) - of_best
            of_best = np.int64(until)
            mark = _note(mark, step, marks, sure, made)
            continue
        bar = max(second, best + math.sqrt(two_log / of_best))
        mean = max(0.0, best - gaps[arm])
        while step < steps:
            block = max(1, pulls[arm] >> _BLOCKS)
            sums[arm] += bernoulli_sum(k0, k1, mean, arm, pulls[arm], block, 0, word, group_of)
            sure[arm] = pulls[arm] + 1
            pulls[arm] += block
            step += block
            if marks[mark] <= step:
                mark = _note(mark, step, marks, sure, made)
            index[arm] = sums[arm] / pulls[arm] + math.sqrt(two_log / pulls[arm])
            if index[arm] < bar:
                break


@compiled
def _note(mark, step, marks, sure, made):
    """Write the pulls into the rows of all marks up to `step`, from row `mark` on; return the next row."""
    while mark < len(marks) and marks[mark] <= step:
        for arm in range(len(sure)):
            made[mark, arm] = sure[arm]
        mark += 1
    return mark


@compiled
def _ceilings(best, lower, upper, two_log, marks):
    """Return the ceiling over each number of pulls in `marks`: at most `LONGEST`, in rising order, at least one."""
    rows, arms = len(marks), len(lower)
    made = np.zeros((rows, arms), np.int64)
    excess = np.zeros((rows, arms))  # what the upper end costs more than the lower
    for play in range(TRIALS):
        _play_alone(PLAYS + play, best, lower, two_log, marks, made)
        for row in range(rows):
            for arm in range(arms):
                excess[row, arm] -= lower[arm] * made[row, arm]
        _play_alone(PLAYS + play, best, upper, two_log, marks, made)
        for row in range(rows):
            for arm in range(arms):
                excess[row, arm] += upper[arm] * made[row, arm]
    cheaper = np.zeros((rows, arms))
    for row in range(rows):
        for arm in range(arms):
            cheaper[row, arm] = lower[arm] if excess[row, arm] > 0.0 else upper[arm]

    # Which ends are cheaper may differ between rows. Those with the same ends are measured together.
    least, measured, alike = np.zeros(rows), np.zeros(rows, np.bool_), np.zeros(rows, np.int64)
    for first in range(rows):
        if measured[first]:
            continue
        size = 0
        for row in range(first, rows):
            same = not measured[row]
            for arm in range(arms):
                same = same and cheaper[row, arm] == cheaper[first, arm]
            if same:
                alike[size], measured[row] = row, True
                size += 1
        costs = _measured(best, cheaper[first], two_log, marks[alike[:size]])
        for place in range(size):
            least[alike[place]] = costs[place]
    return least


@compiled
def _measured(best, gaps, two_log, marks):
    """Return the mean cost of 2-UCB alone up to each of the steps `marks`, less three standard errors."""
    rows, arms = len(marks), len(gaps)
    made = np.zeros((rows, arms), np.int64)
    total, squares = np.zeros(rows), np.zeros(rows)
    for play in range(PLAYS):
        _play_alone(play, best, gaps, two_log, marks, made)
        for row in range(rows):
            cost = 0.0
            for arm in range(arms):
                cost += gaps[arm] * made[row, arm]
            total[row] += cost
            squares[row] += cost * cost
    least = np.zeros(rows)
    for row in range(rows):
        mean = total[row] / PLAYS
        stderr = math.sqrt(max(0.0, squares[row] / PLAYS - mean * mean) / (PLAYS - 1))
        least[row] = max(0.0, mean - 3.0 * stderr)
    return least


@compiled
def ceiling(best, lower, upper, two_log, steps):
    """Return what 2-UCB alone would at least have cost over `steps` pulls, if gaps are between `lower` and `upper`.

    2-UCB's regret is not monotone in a gap, so each arm contributes the smaller of what its two ends cost; less
    three standard errors of the plays. The plays have a fixed seed: equal records give equal ceilings.
    """
    return _ceilings(best, lower, upper, two_log, np.full(1, min(steps, LONGEST), np.int64))[0]


def ceilings(
    best: float,
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    two_log: float,
    steps: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the `ceiling` over each number of pulls in `steps`, for what a few of them cost.

    A play over fewer steps is the beginning of a longer one, so all of them read the same plays: one set to choose
    the ends, and one to measure for each choice that is made.
    """
    marks, places = np.unique(np.minimum(steps, LONGEST), return_inverse=True)
    if not len(marks):
        return np.zeros(0)
    found: NDArray[np.float64] = _ceilings(best, lower, upper, two_log, marks)[places]
    return found
