"""Plays of 2-UCB alone, with a best arm that always pays its mean: what ceilings are measured from.

2-UCB pulls the arm of the highest index, and the index of an arm depends on its own rewards alone. So when all
indices have fallen below some level, each arm has made just the pulls that take its own index there, in whatever
order. A play therefore jumps: it takes one arm after the other to a level that is reached a little before the last
pull, and plays only the rest in order. On the way, pulls that cannot take an index below the level, even if none of
them pays, are counted without computing the index. The pulls are those of a play in order, one by one.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.compiled import compiled, inlined, inner
from partage.engine.rewards import bernoulli_sum, bernoulli_word, ones
from partage.settle import CEILING_SEED

TRIALS, PLAYS = 32, 512  # plays that choose a corner, and plays that measure
_BLOCKS = 10  # an arm with n pulls is pulled in blocks of n / 2^10
_SINGLE = 2 << _BLOCKS  # up to so many pulls, blocks are single pulls
_LOOKS = 4  # pulls in a row whose index is computed, rather than looking how many need none
_SEED = CEILING_SEED
_SPARE = 2.0  # a jump leaves room for arms that are pulled so many times as often as without noise
_U1 = np.uint64(1)


class State(NamedTuple):
    """The arms of a play other than the best: their indices, the sums of their rewards, and their pulls.

    Of `pulls`, only `sure` were surely made: of its last block, an arm may have made a single pull.
    """

    indices: NDArray[np.float64]
    sums: NDArray[np.float64]
    pulls: NDArray[np.int64]
    sure: NDArray[np.int64]


@compiled
def new_state(gaps):
    """Return the state before the first pull. Arms without a gap are never pulled."""
    arms = len(gaps)
    state = State(np.full(arms, -math.inf), np.zeros(arms), np.zeros(arms, np.int64), np.zeros(arms, np.int64))
    for arm in range(arms):
        if gaps[arm] > 0.0:
            state.indices[arm] = math.inf
    return state


@compiled
def tried(best, copies, gaps, two_log, marks, level, at_upper, starts):
    """Return the mean cost of each arm up to each of the steps `marks`, from few plays of 2-UCB alone.

    `starts` are the plays of the lower and of the upper gaps at `level`, by `taken_to`, and `at_upper` says which of
    them `gaps` has. Corners have most arms in common, so each arm goes there once for all of them.
    """
    rows, arms = len(marks), len(gaps)
    made, costs = np.zeros((rows, arms), np.int64), np.zeros((rows, arms))
    levels = levels_of(best, copies, gaps, two_log, marks)
    for play in range(TRIALS):
        state = new_state(gaps)
        if level < math.inf:
            for arm in range(arms):
                start = starts[1] if at_upper[arm] else starts[0]
                state.indices[arm], state.sums[arm] = start.indices[play, arm], start.sums[play, arm]
                state.pulls[arm], state.sure[arm] = start.pulls[play, arm], start.sure[play, arm]
            if not _is_safe(best, copies, two_log, level, marks[0], state):
                state = new_state(gaps)
        play_alone(PLAYS + play, best, copies, gaps, two_log, marks, levels, state, made)
        for row in range(rows):
            for arm in range(arms):
                costs[row, arm] += gaps[arm] * made[row, arm]
    return costs / TRIALS


@compiled
def taken_to(level, best, copies, gaps, two_log, mark):
    """Return the state of each of the plays that choose a corner, one row per play, at a level before step `mark`."""
    arms = len(gaps)
    table = State(
        np.full((TRIALS, arms), -math.inf),
        np.zeros((TRIALS, arms)),
        np.zeros((TRIALS, arms), np.int64),
        np.zeros((TRIALS, arms), np.int64),
    )
    if level == math.inf:
        return table
    for play in range(TRIALS):
        state = new_state(gaps)
        _take_to(level, PLAYS + play, best, copies, gaps, two_log, mark, state)
        for arm in range(arms):
            table.indices[play, arm], table.sums[play, arm] = state.indices[arm], state.sums[arm]
            table.pulls[play, arm], table.sure[play, arm] = state.pulls[arm], state.sure[arm]
    return table


@compiled
def measured(best, copies, gaps, two_log, marks):
    """Return the mean cost of 2-UCB alone up to each of the steps `marks`, less three standard errors."""
    rows, arms = len(marks), len(gaps)
    made = np.zeros((rows, arms), np.int64)
    total, squares = np.zeros(rows), np.zeros(rows)
    levels = levels_of(best, copies, gaps, two_log, marks)
    for play in range(PLAYS):
        play_alone(play, best, copies, gaps, two_log, marks, levels, new_state(gaps), made)
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
def play_alone(play, best, copies, gaps, two_log, marks, levels, state, made):
    """Play 2-UCB once, from a state on; count the pulls up to each of the steps `marks` in `made`.

    Between two pulls of other arms, the best arm is pulled until its index, best + sqrt(two_log / n), falls below
    theirs: a closed formula. There are `copies` of it, which are pulled equally often. An arm with n pulls is pulled
    in blocks of n / 1,024. Of the last block, 2-UCB may have made a single pull only, so `made[k]` counts one,
    whether step `marks[k]` ends the block or cuts it.

    Before each mark, the play jumps to its level; with infinite levels, it makes all pulls in order.
    """
    arms, steps = len(gaps), marks[-1]
    index, sums, pulls, sure = state
    word, group_of = np.zeros(arms, np.uint64), np.full(arms, -1)
    k0, k1 = np.uint64(_SEED), np.uint64(play)
    of_best, step, jumped = 1, copies + pulls.sum(), -1
    mark = _note(0, step, marks, sure, made)
    while step < steps:
        if mark > jumped:
            jumped = mark
            if levels[mark] < math.inf and _jump(play, best, copies, gaps, two_log, levels[mark], marks[mark], state):
                of_best, step = 1, copies + pulls.sum()
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
            until = min(math.floor(two_log / (index[arm] - best) ** 2) + 1.0, 2.0**62 / copies)
            step += copies * (np.int64(until) - of_best)
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


@inner
def _note(mark, step, marks, sure, made):
    """Write the pulls into the rows of all marks up to `step`, from row `mark` on; return the next row."""
    while mark < len(marks) and marks[mark] <= step:
        for arm in range(len(sure)):
            made[mark, arm] = sure[arm]
        mark += 1
    return mark


# --- jumps ----------------------------------------------------------------------------------------------------


@compiled
def levels_of(best, copies, gaps, two_log, marks):
    """Return a level that all indices are likely to be below a little before each of the steps `marks`.

    Without noise, the index of an arm of mean m is x after two_log / (x - m)^2 pulls. Infinite: there is no such
    level.
    """
    levels = np.full(len(marks), math.inf)
    if two_log <= 0.0:
        return levels
    for row in range(len(marks)):
        low, high = 1.0, marks[row] / copies  # pulls of each best arm
        for _ in range(40):
            middle = 0.5 * (low + high)
            radius, total = math.sqrt(two_log / middle), copies * middle
            for arm in range(len(gaps)):
                if gaps[arm] > 0.0:
                    total += _SPARE * two_log / (radius + min(gaps[arm], best)) ** 2
            if total < marks[row]:
                low = middle
            else:
                high = middle
        if low > 1.0:
            levels[row] = best + math.sqrt(two_log / low)
    return levels


@inner
def _jump(play, best, copies, gaps, two_log, level, mark, state):
    """Take all indices below a level and return True, or change nothing if that is not safe."""
    index, sums, pulls, sure = state.indices.copy(), state.sums.copy(), state.pulls.copy(), state.sure.copy()
    _take_to(level, play, best, copies, gaps, two_log, mark, state)
    if _is_safe(best, copies, two_log, level, mark, state):
        return True
    for arm in range(len(index)):
        state.indices[arm], state.sums[arm] = index[arm], sums[arm]
        state.pulls[arm], state.sure[arm] = pulls[arm], sure[arm]
    return False


@inner
def _take_to(level, play, best, copies, gaps, two_log, mark, state):
    """Take the indices of all arms below a level, unless step `mark` would be before that."""
    most = mark - copies * _until(two_log, level - best)
    for arm in range(len(gaps)):
        if state.indices[arm] >= level:
            _take_arm_to(level, play, arm, max(0.0, best - gaps[arm]), two_log, most, state)


@inner
def _is_safe(best, copies, two_log, level, mark, state):
    """Whether a play in order goes through this state, with all indices below the level, before step `mark`.

    The next pull must not depend on what was before. It may if two arms have the highest index, as the one that was
    pulled last goes on, and if it is not clear, due to rounding, when the index of the best arm falls below it.
    """
    first, second, made = -math.inf, -math.inf, np.int64(0)
    for arm in range(len(state.indices)):
        second = max(second, min(first, state.indices[arm]))
        first = max(first, state.indices[arm])
        made += state.pulls[arm]
    if first >= level or first == second or made + copies * (_until(two_log, level - best) + 1.0) >= mark:
        return False
    if first <= best:
        return True
    pulls = two_log / ((first - best) * (first - best))
    return abs(pulls - math.floor(pulls + 0.5)) > 1e-14 * (1.0 + pulls) / (first - best)


@inlined
def _until(two_log, above):
    """Return after how many pulls the index of the best arm is less than this much above its mean."""
    return math.floor(two_log / (above * above)) + 1.0


@inner
def _take_arm_to(level, play, arm, mean, two_log, most, state):
    """Pull one arm until its index is below a level, or until it has more than `most` pulls."""
    count, total, index = state.pulls[arm], state.sums[arm], state.indices[arm]
    k0, k1 = np.uint64(_SEED), np.uint64(play)
    sure, root, word, group = count, math.sqrt(two_log), np.uint64(0), np.int64(-1)
    while index >= level and count <= most:
        # If no pull pays, sums / n + sqrt(two_log / n) = level after this many pulls.
        far = (root + math.sqrt(two_log + 4.0 * total * level)) / (2.0 * level)
        until = np.int64(min(far * far * (1.0 - 1e-12), 2.0**62)) - 1
        if until - count >= _LOOKS:
            end = until
            if until > _SINGLE:  # blocks end where they would
                end = count
                while end + max(1, end >> _BLOCKS) <= until:
                    end += max(1, end >> _BLOCKS)
            paid, word, group = _paid(k0, k1, mean, arm, count, end, word, group)
            total, count = total + paid, end
        for _ in range(_LOOKS):
            sure, end = count + 1, count + max(1, count >> _BLOCKS)
            paid, word, group = _paid(k0, k1, mean, arm, count, end, word, group)
            total, count = total + paid, end
            index = total / count + math.sqrt(two_log / count)
            if index < level:
                break
    state.indices[arm], state.sums[arm], state.pulls[arm], state.sure[arm] = index, total, count, sure


@inlined
def _paid(k0, k1, mean, arm, entry, end, word, group):
    """Return the sum of entries `entry` to `end - 1` of an arm, and the last 64 rewards that were read, with place.

    This is `bernoulli_sum` without arrays.
    """
    paid = np.int64(0)
    while entry < end:
        if entry >> 6 != group:
            group = entry >> 6
            word = bernoulli_word(k0, k1, mean, group, arm, 0)
        stop = min(end, (group + 1) << 6)
        bits = word >> np.uint64(entry & 63)
        if stop - entry < 64:
            bits &= (_U1 << np.uint64(stop - entry)) - _U1
        paid += ones(bits)
        entry = stop
    return paid, word, group
