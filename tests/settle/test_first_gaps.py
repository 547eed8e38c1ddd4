"""The terms of formats 1 and 2: gaps to the arms that the rule left, and ceilings that have not moved."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from tests.settle.test_equal_share import FEW, HORIZONS, SEEDS, as_played, end_by_search, gap_by_search
from tests.support.strategies import games, rules

from partage import BalancedGLR, play_run
from partage.evidence import mixture_loss
from partage.settle import CEILING_SEED, first_terms, settlement_for
from partage.settle.ceiling import LONGEST, first_ceilings
from partage.settle.first_gaps import gaps_of


def gaps_by_hand(game, tally):
    """Lower and upper end of each arm's gap, plug-in gap, and how many arms are left, from the docstring's words."""
    arms, horizon = len(game.arms), game.horizon
    counts, sums = tally.broadcasts, tally.sums
    public = game.sharing.sharers() > 0
    left = [i for i in range(arms) if tally.active[i] and public[i]]
    gone = [i for i in range(arms) if not tally.active[i] and public[i]]
    lower, upper, plain = np.zeros(arms), np.zeros(arms), np.zeros(arms)
    seen = [i for i in left if counts[i]]
    if not seen:
        return lower, upper, plain, left
    mean = {i: sums[i] / counts[i] for i in range(arms) if counts[i]}
    leader = max(seen, key=lambda i: mean[i])
    for i in gone:
        plain[i] = max(0.0, mean[leader] - mean[i])
    if len(left) == 1:
        for i in gone:
            losses = mixture_loss(counts[leader], sums[leader]) + mixture_loss(counts[i], sums[i])
            pair = counts[leader], mean[leader], counts[i], mean[i]
            pairs = (arms - 1) * horizon
            lower[i] = max(0.0, gap_by_search(*pair, math.log((pairs + 1) / 2) + losses, -1))
            upper[i] = min(1.0, gap_by_search(*pair, math.log(pairs) + losses, 1))
        return lower, upper, plain, left
    ends = {}
    for i in left + gone:
        ends[i] = (0.0, 1.0)
        if counts[i]:
            level = np.array([math.log(2 * arms * horizon) + mixture_loss(counts[i], sums[i])])
            ends[i] = tuple(float(end_by_search(counts[i], mean[i], level, side)[0]) for side in (-1, 1))
    for i in left + gone:
        upper[i] = min(1.0, max(ends[j][1] for j in left) - ends[i][0])
    for i in gone:
        lower[i] = max(0.0, max(ends[j][0] for j in left) - ends[i][1])
    return lower, upper, plain, left


def ends_of(game, tally, expected):
    arms = len(game.arms)
    lower, upper = np.full(arms, np.nan), np.full(arms, np.nan)
    public = game.sharing.sharers() > 0
    best = gaps_of(tally.broadcasts, tally.sums, tally.active, public, game.horizon, expected, lower, upper)
    return best, lower, upper


@settings(max_examples=60)
@given(game=games(arms=FEW, horizons=HORIZONS), rule=rules(), seed=SEEDS)
def test_gaps_of_a_played_record(game, rule, seed):
    tally, game = play_run(game, rule, seed), as_played(game, rule)
    by_hand = gaps_by_hand(game, tally)
    _, lower, upper = ends_of(game, tally, False)
    assert lower == pytest.approx(by_hand[0], abs=1e-5)
    assert upper == pytest.approx(by_hand[1], abs=1e-5)
    gone = [i for i in range(len(game.arms)) if not tally.active[i] and i in game.sharing.shared]
    _, plain, also = ends_of(game, tally, True)
    assert plain.tolist() == also.tolist() == by_hand[2].tolist()
    for i in gone:
        assert lower[i] - 1e-9 <= plain[i] <= upper[i] + 1e-9


def test_the_first_terms_of_a_settlement():
    settlement = first_terms(settlement_for("equal-share", BalancedGLR(), 0.1))
    assert (settlement.name, settlement.fee, settlement.alone, settlement.coverage) == (
        "equal-share",
        0.1,
        "two-ucb",
        None,
    )


def test_ceilings_have_not_moved():
    """As they were computed one by one, each with plays of its own; ledgers name the seed and expect the same."""
    assert CEILING_SEED == 0
    lower, upper = np.array([0.0, 0.05, 0.3, 0.0]), np.array([0.0, 0.15, 0.5, 0.2])
    known = {
        0: 0.0,
        1: 0.0,
        2: 0.05000000000000045,
        3: 0.34999999256766395,
        10: 1.0599668560940623,
        100: 8.386795636787987,
        1000: 44.70190461612102,
        10**4: 140.77184540322594,
        10**5: 197.2257866198393,
        LONGEST: 222.19467942320964,
        10**12: 222.19467942320964,
    }
    assert first_ceilings(0.9, lower, upper, 27.631021115928547, np.array([*known])) == [*known.values()]
    known = {4097: 18.285624529417365, 50_000: 174.25607687866037, 10**6: 839.0038444891956}
    found = first_ceilings(0.5, np.array([0.0, 0.01]), np.array([0.0, 0.02]), 27.631021115928547, np.array([*known]))
    assert found == [*known.values()]
