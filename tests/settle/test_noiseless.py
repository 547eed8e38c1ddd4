"""The formula of ceilings: against a root finder, over boxes, and below what learners alone cost."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special
from tests.settle.test_equal_share import divergence

from partage import IMED, KLUCB, Game, Sharing, Thompson, TwoUCB, bernoulli, play
from partage.settle import ALONE
from partage.settle.noiseless import (
    FACTORS,
    LONGEST,
    cost_alone,
    lambert,
    least_cost,
    least_divergence,
    lower_bound,
    luck,
    pulls_of,
    pulls_of_best,
)

BESTS = st.one_of(st.floats(0.01, 0.99), st.sampled_from([0.0, 0.001, 0.999, 1.0]))
PARTS = st.lists(st.floats(0, 1), min_size=1, max_size=6)  # of the best mean
STEPS = st.one_of(st.integers(1, 50), st.integers(1, 10**6))


def cost_by_root(best, gaps, steps):
    """The cost from the two equations, each solved by a root finder."""
    divergences = [max(0.0, float(divergence(max(0.0, best - gap), best))) for gap in gaps]

    def pulls(k, of_best):
        if k == math.inf:
            return 0.0
        highest = math.log(of_best) + 1e-9
        return math.exp(optimize.brentq(lambda x: k * math.exp(x) + x - math.log(of_best), -1e4, highest, xtol=1e-13))

    def excess(of_best):
        return of_best + sum(pulls(k, of_best) for k in divergences) - steps

    of_best = optimize.brentq(excess, steps / (len(gaps) + 2), steps + 1e-9, xtol=1e-13)
    return sum(gap * pulls(k, of_best) for gap, k in zip(gaps, divergences, strict=True))


@given(z=st.one_of(st.floats(0, 1e12), st.floats(0, 1e-12), st.sampled_from([0.0, 1e-300, 1e-3, 2.7, math.inf])))
def test_lamberts_function(z):
    assert lambert(z) == lambert.compiled(z)
    assert lambert(z) == (pytest.approx(special.lambertw(z).real, rel=1e-12) if z < math.inf else math.inf)


@settings(max_examples=60)
@given(best=BESTS, parts=PARTS, steps=STEPS)
def test_the_cost_solves_its_equations(best, parts, steps):
    gaps = [best * part for part in parts]
    assert cost_alone(best, gaps, float(steps)) == pytest.approx(cost_by_root(best, gaps, steps), rel=1e-8, abs=1e-9)


@settings(max_examples=60)
@given(low=BESTS, high=BESTS, parts=PARTS, wider=PARTS, steps=STEPS)
def test_the_formula_is_the_same_compiled(low, high, parts, wider, steps):
    low, high, arms = min(low, high), max(low, high), min(len(parts), len(wider))
    lower = np.array([high * part for part in parts[:arms]])
    upper = np.minimum(1.0, lower + wider[:arms])
    plain = least_cost(low, high, lower.tolist(), upper.tolist(), float(steps))
    assert plain == least_cost.compiled(low, high, lower, upper, float(steps))


@settings(max_examples=100)
@given(data=st.data(), low=BESTS, high=BESTS, parts=PARTS, steps=STEPS)
def test_no_game_in_the_box_costs_less(data, low, high, parts, steps):
    low, high = min(low, high), max(low, high)
    lower = [high * part * data.draw(st.floats(0, 1)) for part in parts]
    upper = [min(1.0, gap + data.draw(st.floats(0, 0.5))) for gap in lower]
    least = least_cost(low, high, lower, upper, float(steps))
    for _ in range(10):
        best = data.draw(st.floats(low, high))
        if best >= max(lower):
            gaps = [data.draw(st.floats(a, max(a, min(b, best)))) for a, b in zip(lower, upper, strict=True)]
            assert least <= cost_alone(best, gaps, float(steps)) * (1 + 1e-7) + 1e-9


@given(best=BESTS, parts=PARTS, steps=STEPS)
def test_a_box_of_one_game_costs_what_the_game_costs(best, parts, steps):
    gaps = [best * part for part in parts if part]
    assert least_cost(best, best, gaps, gaps, float(steps)) == pytest.approx(
        cost_alone(best, gaps, float(steps)), rel=1e-9, abs=1e-12
    )


def rises_and_falls(values):
    """Whether values rise and then fall: none is below one on its left and one on its right."""
    left, right = np.maximum.accumulate(values), np.maximum.accumulate(values[::-1])[::-1]
    return bool((values >= np.minimum(left, right) * (1 - 1e-9)).all())


@pytest.mark.parametrize("of_best", [1.0, 5.0, 40.0, 600.0, 1e4, 1e6])
def test_a_cost_is_least_at_an_end_of_the_gap_and_of_the_best_mean(of_best):
    """The corners of `least_cost` rest on this."""
    for best in (1e-4, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1 - 1e-5):
        gaps = best * np.geomspace(1e-6, 1, 400)
        assert rises_and_falls(np.array([g * pulls_of(float(divergence(best - g, best)), of_best) for g in gaps]))
    for gap in (1e-4, 0.01, 0.1, 0.5, 0.9):
        bests = np.linspace(gap, 1, 400)[:-1]
        pulls = np.array([pulls_of(float(divergence(b - gap, b)), of_best) for b in bests])
        assert rises_and_falls(pulls)
        assert least_divergence(gap, 1.0, gap) == pytest.approx(divergence(bests - gap, bests).min(), rel=1e-3)
        assert least_divergence(0.0, 1.0, gap) <= divergence(bests - gap, bests).min() * (1 + 1e-9)
    diagonal = np.linspace(1e-3, 1 - 1e-3, 400)  # an arm of mean 0
    assert rises_and_falls(np.array([g * pulls_of(float(divergence(0.0, g)), of_best) for g in diagonal]))


@given(parts=PARTS, steps=st.lists(STEPS, min_size=2, max_size=2).map(sorted))
def test_more_pulls_cost_no_less(parts, steps):
    gaps = [0.9 * part for part in parts]
    fewer, more = (cost_alone(0.9, gaps, float(count)) for count in steps)
    assert fewer <= more * (1 + 1e-9) + 1e-12
    assert fewer <= steps[0]


def test_by_hand():
    """Two equal arms share the pulls; an arm at a distance of nothing is not pulled."""
    assert pulls_of_best([0.0], 10.0) == pytest.approx(5)
    assert pulls_of_best([math.inf], 10.0) == pytest.approx(10)
    assert cost_alone(1.0, [0.5], 1000.0) == 0
    assert lower_bound("imed", 0.9, 0.9, [0.4], [0.4], 10**15) == lower_bound("imed", 0.9, 0.9, [0.4], [0.4], LONGEST)
    assert lower_bound("best", 0.9, 0.9, [], [], 100) == 0


def test_the_best_learner_costs_the_least_of_all():
    box = 0.8, 0.9, [0.1, 0.3], [0.2, 0.4]
    found = {alone: lower_bound(alone, *box, 5000) for alone in ALONE}
    assert found["best"] == min(found[alone] for alone in FACTORS) > 0
    assert luck(1.0, 1e6) == 0.5
    assert luck(0.9, 1e6) == 1
    assert lower_bound("kl-ucb", 0.999, 0.999, [0.1], [0.1], 100) < FACTORS["kl-ucb"] * cost_alone(0.999, [0.1], 100)


# 30 games, as bench/ceilings.py draws them but short; that bench has a thousand of them.
GENERATOR = np.random.default_rng(2)
GAMES = [
    (np.clip(GENERATOR.random() * spread + GENERATOR.random(arms) * (1 - spread), 0.02, 0.98), int(horizon))
    for arms, horizon, spread in zip(
        GENERATOR.integers(2, 7, 30), 10 ** GENERATOR.uniform(1, 3, 30), GENERATOR.choice([0.0, 0.7], 30), strict=True
    )
]


@pytest.mark.parametrize("learner", [TwoUCB(), KLUCB(), IMED(), Thompson()], ids=lambda learner: learner.name)
def test_learners_alone_cost_more_than_their_ceiling(learner):
    for means, horizon in GAMES:
        game = Game(bernoulli(means), Sharing.nothing(1, len(means)), horizon)
        cost = play(game, learner, runs=100, seed=3, settlement="none", baseline=False, jobs=1).overall_regret
        best, gaps = float(means.max()), np.delete(means.max() - means, means.argmax()).tolist()
        assert lower_bound(learner.name, best, best, gaps, gaps, horizon) <= cost.mean + 3 * cost.stderr
