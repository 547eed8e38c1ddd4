"""Kernels of uneven games equal the reference: on random games with everything at once, and on each feature alone."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.strategies import PARAMETERS, uneven_games

from partage import BalancedETC, BalancedGLR, Game, InputError, NetworkGLR, SharedIMED, Sharing, bernoulli, play
from partage.arms import Bernoulli, Beta, Constant
from partage.board import Pull
from partage.engine import by_reference, play_runs
from partage.engine.rewards import run_keys
from partage.engine.tally import always_shared, gaps_by_phase
from partage.rules import RULES
from partage.traits import Change, Delay, Traits

SEEDS = st.integers(0, 2**63)
NAMES = ["balanced-etc", "unbalanced-etc", "full-sharing", "kl-etc", "balanced-glr", "shared-imed", "network-glr"]


def rules(name):
    """A rule that kernels play on uneven games, with any parameters."""
    known = [one.name for one in RULES[name].parameters if one.name in PARAMETERS and one.name != "own"]
    built = st.builds(RULES[name], **{parameter: PARAMETERS[parameter] for parameter in known})
    if name != "balanced-glr":
        return built
    worst = st.builds(BalancedGLR, PARAMETERS["lead"], st.just("likelihood"), st.booleans(), late=st.just("worst"))
    return st.one_of(built, worst)


def assert_equal(game, rule, seed=0, runs=1):
    """Play a game by its kernel and by the reference, compare the regret over time too, and return the tallies."""
    assert not by_reference(game, rule)
    keys, last = run_keys(seed, 0, runs), max(1, math.ceil(game.end))
    recorded = game.uneven or rule.name == "network-glr"  # other tests have those of even games
    steps = sorted({1, 2, 5, last // 3, last - 1, last, last + 1} - {0}) if recorded else []
    played, expected = (
        [(run.tally(), run.curve.copy()) for run in play_runs(game, rule, keys, steps, reference)]
        for reference in (False, True)
    )
    for (tally, curve), (other, its) in zip(played, expected, strict=True):
        assert tally == other
        assert curve == pytest.approx(its, abs=1e-9)
        if game.uneven:
            pulls = tally.explore_by_phase + tally.commit_by_phase
            assert curve[-1] == pytest.approx((pulls * gaps_by_phase(game)).sum(), abs=1e-9)
    return [tally for tally, _ in played]


def playable(name, game):
    """Return the game; for network-glr one in which the first agent connects all arms that somebody shares."""
    if name != "network-glr":
        return game
    rows = [set(game.sharing.of(agent)) for agent in range(game.agents)]
    rows[0] = set().union(*rows)
    return replace(game, sharing=Sharing.lists(rows, len(game.arms)).in_shuffled_order(game.sharing.shuffled))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(data=st.data(), game=uneven_games(), seed=SEEDS)
def test_kernels_equal_the_reference(name, data, game, seed):
    assert_equal(playable(name, game), data.draw(rules(name)), seed)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(data=st.data(), game=uneven_games(every_arm_shared=True, moves=False), seed=SEEDS)
def test_kernels_equal_the_reference_where_nobody_moves(name, data, game, seed):
    """Every arm has a sharer throughout, so that pulls are not walked one by one."""
    assert_equal(playable(name, game), data.draw(rules(name)), seed)


FEATURES = {
    "pace": {"traits": [Traits(pace=1 / 3), Traits(pace=2.5), Traits(pace=7), Traits()]},
    "horizon": {"traits": [Traits(horizon=30), Traits(horizon=500), Traits(horizon=5), Traits()]},
    "delay": {"traits": [Traits(delay=3), Traits(delay=7.5), Traits(delay=3), Traits()]},
    "random delay": {"traits": [Traits(delay=Delay("exponential", 5)), *[Traits(delay=Delay("uniform", 9))] * 3]},
    "late successes": {"traits": [Traits(delay=Delay("exponential", 5, "successes"))] * 4},
    "late failures": {"traits": [Traits(delay=Delay("constant", 5, "failures"))] * 4},
    "offset": {"traits": [Traits(offset=0.1), Traits(offset=-0.2), Traits(), Traits(offset=0.1)]},
    "means": {"traits": [Traits(means=[0.1, 0.9, 0.5]), *[Traits()] * 3]},
    "rewards": {"traits": [Traits(rewards=[Beta(2, 6), Constant(0.5), Bernoulli(0.1)]), *[Traits()] * 3]},
    "joins": {"traits": [Traits(), Traits(joins=20), Traits(joins=20, pace=0.3), Traits()]},
    "leaves": {"traits": [Traits(), Traits(leaves=20), Traits(delay=3, leaves=20), Traits()]},
    "change": {"changes": [Change(50, 2, Bernoulli(0.8)), Change(120, 0, Bernoulli(0.2))]},
    "lapses": {"traits": [Traits(delay=20), Traits(delay=4), Traits(), Traits(delay=20)], "claim_steps": 4},
}


@pytest.mark.parametrize(
    "rule",
    [
        BalancedETC(),
        BalancedGLR(),
        BalancedGLR(evidence="betting"),
        SharedIMED(),
        NetworkGLR(),
        BalancedGLR(late="worst"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("feature", FEATURES)
def test_each_feature_alone(feature, rule):
    shares = Sharing.lists([[0, 1], [1, 2], [0, 2], [0, 1, 2]], 3)
    plain = Game(bernoulli([0.6, 0.5, 0.3]), shares, horizon=300)
    game = replace(plain, **FEATURES[feature])
    tallies = assert_equal(game, rule, runs=2)
    unchanged = assert_equal(plain, rule, runs=2)
    assert any(
        (a.commit != b.commit).any() or (a.explore != b.explore).any()
        for a, b in zip(tallies, unchanged, strict=True)
    )


@pytest.mark.parametrize("name", NAMES)
def test_default_traits_are_those_of_the_paper(name):
    """What differs changes nothing here: a change to the same arm, and claims that cannot lapse."""
    plain = Game(bernoulli([0.6, 0.5]), Sharing.round_robin(5, 2).in_shuffled_order(), horizon=400)
    plain = playable(name, plain)
    same = replace(plain, changes=[Change(100, 0, plain.arms[0])], claim_steps=5)
    assert same.uneven
    (tally,), (usual,) = (assert_equal(game, RULES[name](), seed=4) for game in (same, plain))
    assert (tally.explore == usual.explore).all()
    assert (tally.commit == usual.commit).all()
    assert (tally.sums == usual.sums).all()
    assert (tally.eliminated_step == usual.eliminated_step).all()


def test_an_arm_whose_sharers_are_done_holds_nobody_back():
    """Also if the last report of those sharers comes after their last pull."""
    own = [Traits(horizon=10, delay=2), Traits(), Traits()]
    game = Game(bernoulli([0.5, 0.5, 0.5]), Sharing.lists([[0], [1], [2]], 3), horizon=1000, traits=own)
    for rule in (BalancedETC(), BalancedGLR()):
        (tally,) = assert_equal(game, rule)
        assert tally.broadcasts[0] <= 10
        assert tally.broadcasts[1:].min() > 50


@pytest.mark.parametrize(
    ("leaves", "joins", "shared"), [(None, 1, True), (11, 11, True), (11, 12, False), (12, 11, True), (11, 1, True)]
)
def test_whether_every_arm_is_always_shared(leaves, joins, shared):
    own = [Traits(leaves=leaves), Traits(joins=joins), Traits()]
    game = Game(bernoulli([0.5, 0.5]), Sharing.lists([[0], [0], [1]], 2), horizon=100, traits=own)
    assert always_shared(game) is shared
    assert_equal(game, SharedIMED())


def test_an_arm_that_is_not_shared_at_times_is_pulled_alone():
    """Its sharer leaves early; an agent that shares nothing then finds out alone that it is best."""
    own = [Traits(leaves=3), Traits(), Traits(), Traits()]
    game = Game(bernoulli([0.9, 0.2, 0.1]), Sharing.lists([[0], [1], [2], []], 3), horizon=400, traits=own)
    for rule in (BalancedETC(), BalancedGLR(), SharedIMED()):
        (tally,) = assert_equal(game, rule)
        assert tally.commit[3, 0] > 200


def test_regret_over_time_is_that_of_all_pulls_until_then():
    """Counted by hand: all agents pull the first arm, whose gap is 0.25 at first and 0.5 from step 5 on."""
    own = [Traits(pace=0.5, horizon=5), Traits(pace=2, joins=3), Traits(offset=-0.25, leaves=4)]
    changes = [Change(5, 1, Bernoulli(1.0))]
    game = Game(bernoulli([0.5, 0.75]), Sharing.lists([[0]] * 3, 2), 12, traits=own, changes=changes)
    times = [one.time_of(pull) for one in own for pull in range(1, one.pulls(12) + 1)]
    steps = [1, 2, 3, 4, 5, 6, 8, 10, 12]

    class First:
        """Always pull the first arm."""

        name, private = "first", False

        def decide(self, board, shares, own=None, draws=None):
            return Pull(0, share=False)

        def revise(self, board):
            """Eliminate nothing."""

    (run,) = play_runs(game, First(), run_keys(0, 0, 1), steps)
    expected = [sum(0.25 if time <= 4 else 0.5 for time in times if time <= step) for step in steps]
    assert run.curve == pytest.approx(expected)


def test_checkpoints_may_be_at_any_step_with_pulls():
    game = Game(bernoulli([0.9, 0.5]), Sharing.everything(2, 2), 20, traits=[Traits(pace=0.5), Traits()])
    result = play(game, BalancedETC(), runs=3, checkpoints=[10, 40], baseline=False)
    assert result.curve[1].mean == pytest.approx(result.overall_regret.mean)
    with pytest.raises(InputError, match="A checkpoint is 41; it must be at most 40, the step of the last pull"):
        play(game, BalancedETC(), runs=3, checkpoints=[41])
