"""Balanced-GLR and Shared-IMED on Bernoulli arms: tables, sleeping arms, the queue and circles change no pull."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.strategies import PARAMETERS, games

from partage import Bernoulli, Game, Sharing, bernoulli, play_run
from partage.engine import Run, balanced_glr, broadcast_by_broadcast, by_betting, by_evidence, shared_imed
from partage.engine import rewards as tape
from partage.engine.evidence_table import SIZE, tables
from partage.evidence import apart, mixture_loss
from partage.rules import BalancedGLR, SharedIMED

MEANS = st.one_of(st.sampled_from([0.0, 1.0, 0.5, 0.9, 0.1, 0.51]), st.floats(0, 1))
RULES = st.one_of(
    st.builds(BalancedGLR, PARAMETERS["lead"], indifference=st.booleans()),
    st.builds(SharedIMED, st.sampled_from([4.0, 1.0, 2.5]), clock=PARAMETERS["clock"]),
)


def played(game, rule, seed, kernel, checkpoints=()):
    """Return the tally and the curve of one run with this kernel."""
    run = Run(game, np.array(checkpoints, np.int64))
    run.start(tape.run_keys(seed, 0, 1)[0])
    table = (balanced_glr if isinstance(rule, BalancedGLR) else shared_imed).rule_table(rule, run.table)
    kernel.play(run, table)
    return run.tally(), run.curve.copy()


@settings(max_examples=80)
@given(game=games(every_arm_shared=True, arms=st.builds(Bernoulli, MEANS)), rule=RULES, seed=st.integers(0, 2**63))
def test_the_kernel_equals_the_reference(game, rule, seed):
    tally, _ = played(game, rule, seed, by_evidence)
    assert tally == play_run(game, rule, seed, reference=True)


@settings(max_examples=30)
@given(
    game=games(
        every_arm_shared=True, arms=st.builds(Bernoulli, MEANS), horizons=st.sampled_from([3_000, 10_000, 40_000])
    ),
    rule=RULES,
    steps=st.lists(st.integers(1, 3_000), max_size=3, unique=True).map(sorted),
    seed=st.integers(0, 2**63),
)
def test_long_games_equal_the_plain_kernel(game, rule, steps, seed):
    tally, curve = played(game, rule, seed, by_evidence, steps)
    plain, its_curve = played(game, rule, seed, broadcast_by_broadcast, steps)
    assert tally == plain
    assert curve == pytest.approx(its_curve)


@pytest.mark.parametrize("rule", [BalancedGLR(), BalancedGLR(1.0, indifference=False), SharedIMED(), SharedIMED(1.0)])
def test_many_arms_equal_the_plain_kernel(rule):
    """Most arms sleep, in several blocks, and the leader changes often."""
    means = np.linspace(0.9, 0.0, 100)
    game = Game(bernoulli(means), Sharing.round_robin(150, 100).in_shuffled_order(), horizon=1_000)
    for seed in range(2):
        assert played(game, rule, seed, by_evidence)[0] == played(game, rule, seed, broadcast_by_broadcast)[0]


@pytest.mark.parametrize("kind", range(4))
def test_random_games_of_many_arms_equal_the_plain_kernel(kind):
    """Arms sleep through ticks, changes of leader and their own broadcasts, in boxes of many shapes."""
    draw = np.random.default_rng(kind)
    for _ in range(40):
        arms = int(draw.integers(6, 60))
        means = (
            draw.random(arms),
            np.linspace(0.9, 0.0, arms),
            np.clip(0.5 + 0.02 * draw.standard_normal(arms), 0, 1),
            1.0 - 0.3 * draw.random(arms) * (draw.random(arms) < 0.7),
        )[kind]
        agents = int(draw.integers(arms, 3 * arms))
        dealt = [sorted({agent % arms, *draw.integers(0, arms, 2).tolist()}) for agent in range(agents)]
        sharing = Sharing.round_robin(agents, arms) if draw.random() < 0.5 else Sharing.lists(dealt, arms)
        game = Game(bernoulli(means), sharing.in_shuffled_order(), horizon=int(10 ** draw.uniform(1, 3.5)))
        lead, seed = float(draw.choice([1.0, 1.5, 4.0, 10.0, 500.0])), int(draw.integers(2**62))
        for rule in (BalancedGLR(lead), SharedIMED(lead, clock=float(draw.choice([0.01, 1.0, 10.0])))):
            assert played(game, rule, seed, by_evidence)[0] == played(game, rule, seed, broadcast_by_broadcast)[0]


@pytest.mark.parametrize("rule", [BalancedGLR(), SharedIMED()])
def test_records_beyond_the_tables_equal_the_plain_kernel(rule):
    """Two equal arms: many changes of leader and, in between, quiet stretches."""
    game = Game(bernoulli([0.5, 0.5, 0.1]), Sharing.round_robin(7, 3), 300_000 if rule == BalancedGLR() else 100_000)
    sizes = []
    for seed in range(2):
        tally, _ = played(game, rule, seed, by_evidence)
        sizes.append(tally.broadcasts.sum())
        assert tally == played(game, rule, seed, broadcast_by_broadcast)[0]
    assert max(sizes) > SIZE


@pytest.mark.parametrize(
    "rule", [BalancedGLR(), BalancedGLR(2.5, indifference=False), BalancedGLR(1.0), SharedIMED(), SharedIMED(1.0)]
)
@pytest.mark.parametrize("shares", [[[0], [1], [0], [1], [1]], [[0, 1], [1], [0, 1, 2]], [[1], [2], [0, 2], [0]]])
def test_circles_in_near_ties_equal_the_plain_kernel(rule, shares):
    """Long quiet stretches, in which agents explore in circles; some agents share several of the arms."""
    game = Game(bernoulli([0.6, 0.599, 0.3]), Sharing.lists([*shares, [2]], 3), horizon=60_000)
    steps = [7_000, 31_111]
    tally, curve = played(game, rule, 3, by_evidence, steps)
    plain, its_curve = played(game, rule, 3, broadcast_by_broadcast, steps)
    assert tally == plain
    assert curve == pytest.approx(its_curve)


@pytest.mark.parametrize(
    ("mean", "shares", "seed"),
    [(0.6, [[0], [0, 1], [1]], 669135115181), (0.5, [[0, 1], [0], [0, 1]], 665133530043)],
)
def test_circles_that_start_with_a_tie_equal_the_plain_kernel(mean, shares, seed):
    """An agent that shares both arms explores the leader once, by the tie order, and then the other arm."""
    game = Game(bernoulli([mean, mean]), Sharing.lists(shares, 2), 60_000)
    for lead in (3.0, 2.5):
        rule = BalancedGLR(lead, indifference=False)
        assert played(game, rule, seed, by_evidence)[0] == played(game, rule, seed, broadcast_by_broadcast)[0]


@pytest.mark.parametrize(
    ("means", "sharing", "horizon", "lead", "seed"),
    [
        ([0.5, 1.0, 0.0], Sharing.lists([[0, 1, 2]], 3).in_shuffled_order(), 20_000, 1000.0, 2418317844517930825),
        ([0.999, 0.749], Sharing.round_robin(3, 2), 100_000, 150.0, 189123),
    ],
)
def test_a_leader_that_hardly_fails_equals_the_plain_kernel(means, sharing, horizon, lead, seed):
    """In a quiet stretch that is read ahead, the mean of the leader stays at most 1."""
    game, rule = Game(bernoulli(means), sharing, horizon), BalancedGLR(lead, indifference=False)
    assert played(game, rule, seed, by_evidence)[0] == played(game, rule, seed, broadcast_by_broadcast)[0]


@pytest.mark.parametrize("rule", [SharedIMED(), SharedIMED(10.0, clock=1e-6), BalancedGLR(evidence="betting")])
def test_nothing_is_read_ahead_while_nothing_is_explored(rule):
    """Else every tick of the clock would read twice as far as the last, and this game would hardly end."""
    game = Game(bernoulli([0.6, 0.55]), Sharing.round_robin(10, 2), horizon=10**13)
    run = Run(game, np.zeros(0, np.int64))
    run.start(tape.run_keys(13, 0, 1)[0])
    kernel = by_betting if isinstance(rule, BalancedGLR) else by_evidence
    table = (balanced_glr if isinstance(rule, BalancedGLR) else shared_imed).rule_table(rule, run.table)
    broadcast_by_broadcast.play(run, table)
    plain = run.tally()
    kernel.play(run, table)
    assert run.tally() == plain


COUNTS = st.one_of(st.integers(1, 40), st.integers(1, int(SIZE) // 2 - 1))


@given(count=COUNTS, other=COUNTS, data=st.data())
def test_tables_are_within_their_margin(count, other, data):
    total, other_total = data.draw(st.integers(0, count)), data.draw(st.integers(0, other))
    power, _, losses, halves, parts, wholes = tables()

    def terms(n, s):
        return power[s] + power[n - s] - power[n]

    evidence = terms(count, total) + terms(other, other_total) - terms(count + other, total + other_total)
    assert evidence == pytest.approx(apart(count, float(total), other, float(other_total)), rel=0, abs=3e-9)
    loss = losses[count] - halves[total] - halves[count - total]
    assert loss == pytest.approx(mixture_loss(count, float(total)), rel=0, abs=3e-9)
    assert parts[total] + parts[count - total] - wholes[count] == pytest.approx(terms(count, total) - loss, abs=3e-9)
