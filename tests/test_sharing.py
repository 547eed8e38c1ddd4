import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.support.strategies import sharings

from partage import sharing as module
from partage.errors import InputError
from partage.sharing import RandomSharing, Sharing

UNLIKELY = 1e-4
sizes = st.tuples(st.integers(1, 12), st.integers(1, 6))


def rows(sharing):
    return [sharing.of(agent) for agent in range(sharing.agents)]


# --- patterns -------------------------------------------------------------------------------------------------


@given(sizes)
def test_round_robin(size):
    agents, arms = size
    assert rows(Sharing.round_robin(agents, arms)) == [[agent % arms] for agent in range(agents)]


@given(sizes)
def test_dealt_gives_every_arm_a_sharer_however_few_agents(size):
    agents, arms = size
    made = Sharing.dealt(agents, arms)
    assert made == Sharing.pattern("dealt", agents, arms)
    assert made.sharers().all()
    if agents >= arms:
        assert made == Sharing.round_robin(agents, arms)
    else:
        for arm in range(arms):
            assert [agent for agent in range(agents) if arm in made.of(agent)] == [arm % agents]


@given(sizes, st.integers(1, 6))
def test_neighbours(size, k):
    agents, arms = size
    k = min(k, arms)
    expected = [sorted((agent + step) % arms for step in range(k)) for agent in range(agents)]
    assert rows(Sharing.neighbours(agents, arms, k)) == expected


def test_more_neighbours_than_arms_are_refused():
    with pytest.raises(InputError, match="at most the 3 arms"):
        Sharing.neighbours(5, 3, 4)


@given(sizes)
def test_everyone_everything_and_nobody_nothing(size):
    agents, arms = size
    assert rows(Sharing.everything(agents, arms)) == [list(range(arms))] * agents
    assert rows(Sharing.nothing(agents, arms)) == [[]] * agents


@given(st.integers(2, 30), st.integers(3, 8), st.data())
def test_scarce_best_gives_the_best_two_one_sharer_each_and_the_rest_go_round(agents, arms, data):
    best = data.draw(st.permutations(range(arms)))[:2]
    made = Sharing.scarce_best(agents, arms, best)
    assert rows(made)[:2] == [[best[0]], [best[1]]]
    rest = [arm for arm in range(arms) if arm not in best]
    assert rows(made)[2:] == [[rest[place % len(rest)]] for place in range(agents - 2)]


@pytest.mark.parametrize(
    ("agents", "arms", "expected"),
    [
        (1, 1, [[0]]),
        (2, 1, [[0], []]),  # one sharer each, and nothing is left to share
        (3, 1, [[0], [], []]),
        (1, 2, [[0]]),
        (2, 2, [[0], [1]]),
        (4, 2, [[0], [1], [], []]),
        (1, 3, [[0]]),
        (2, 3, [[0], [1]]),
        (4, 3, [[0], [1], [2], [2]]),
        (7, 4, [[0], [1], [2], [3], [2], [3], [2]]),
    ],
)
def test_scarce_best_with_few_agents_or_arms(agents, arms, expected):
    assert rows(Sharing.scarce_best(agents, arms)) == expected


def test_the_papers_settings():
    """The paper's balanced and imbalanced settings, and that of regret over time."""
    assert Sharing.round_robin(100, 10).sharers().tolist() == [10] * 10
    assert Sharing.scarce_best(1000, 10).sharers()[:2].tolist() == [1, 1]
    assert np.ptp(Sharing.scarce_best(1000, 10).sharers()[2:]) <= 1
    over_time = Sharing.neighbours(20, 10, 2)
    assert all(set(over_time.of(m)) == {m % 10, (m + 1) % 10} for m in range(20))


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("round-robin", Sharing.round_robin(7, 3)),
        ("scarce-best", Sharing.scarce_best(7, 3, (2, 0))),
        ("neighbours-2", Sharing.neighbours(7, 3, 2)),
        ("random", RandomSharing(7, 3)),
        ("everyone-everything", Sharing.everything(7, 3)),
        ("nobody-nothing", Sharing.nothing(7, 3)),
    ],
)
def test_patterns_by_name(name, made):
    assert Sharing.pattern(name, 7, 3, best=(2, 0)) == made


@pytest.mark.parametrize("name", ["robin", "neighbours-", "neighbours-K", "neighbours-0", "neighbours-4", ""])
def test_other_names_are_refused(name):
    with pytest.raises(InputError):
        Sharing.pattern(name, 7, 3)


@given(st.lists(st.lists(st.integers(0, 4)), min_size=1, max_size=8))
def test_lists_are_kept_without_repeats_and_in_order_of_arms(given_rows):
    assert rows(Sharing.lists(given_rows, 5)) == [sorted(set(row)) for row in given_rows]


@pytest.mark.parametrize(("given_rows", "arms"), [([[0], [3]], 3), ([[-1]], 3), ([[0.5]], 3), ([], 3), ([[]], 0)])
def test_lists_that_make_no_sense_are_refused(given_rows, arms):
    with pytest.raises(InputError):
        Sharing.lists(given_rows, arms)


# --- invariants -----------------------------------------------------------------------------------------------


@given(st.integers(1, 7), st.integers(1, 5), st.sampled_from([True, False, None]), st.data())
def test_the_arrays_hold_each_agents_arms_in_order(agents, arms, every_arm_shared, data):
    made = data.draw(sharings(agents, arms, every_arm_shared))
    assert (made.agents, made.arms) == (agents, arms)
    assert made.starts[0] == 0
    assert made.starts[-1] == len(made.shared)
    assert len(made.starts) == agents + 1
    assert (np.diff(made.starts) >= 0).all()
    assert all(row == sorted(set(row)) and set(row) <= set(range(arms)) for row in rows(made))
    assert made.sharers().tolist() == [sum(arm in row for row in rows(made)) for arm in range(arms)]
    if every_arm_shared is not None:
        assert (made.sharers() > 0).all() == every_arm_shared


@given(sharings(4, 3))
def test_equal_sharing_is_equal_however_it_was_made(made):
    again = Sharing.lists(rows(made), 3).in_shuffled_order(made.shuffled)
    assert again == made
    assert hash(again) == hash(made)
    assert made.in_shuffled_order(not made.shuffled) != made


def test_sharing_differs_by_who_shares():
    assert Sharing.lists([[0], []], 1) != Sharing.lists([[], [0]], 1)
    assert Sharing.lists([[0]], 1) != Sharing.lists([[0]], 2)
    assert Sharing.lists([[]], 1) != Sharing.lists([[], []], 1)


def test_shuffling_keeps_who_shares_what_and_the_original():
    made = Sharing.round_robin(4, 2)
    shuffled = made.in_shuffled_order()
    assert (made.shuffled, shuffled.shuffled, rows(shuffled)) == (False, True, rows(made))
    assert made.drawn(np.random.default_rng(0)) is made


# --- random ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agents", "arms", "by_rejection"),
    [(3, 3, False), (4, 3, False), (5, 3, False), (6, 2, True), (6, 3, True), (2, 2, False), (3, 1, True)],
)
def test_random_sharing_is_even_over_all_ways_to_cover_every_arm(agents, arms, by_rejection):
    assert (module._cover_log_probability(agents, arms) is None) == by_rejection  # both ways of drawing are tried
    covering = [ways for ways in itertools.product(range(arms), repeat=agents) if len(set(ways)) == arms]
    generator, random = np.random.default_rng(agents), RandomSharing(agents, arms)
    drawn = Counter(tuple(random.drawn(generator).shared.tolist()) for _ in range(max(20 * len(covering), 500)))
    assert set(drawn) <= set(covering)
    if len(covering) > 1:
        assert stats.chisquare([drawn[ways] for ways in covering]).pvalue > UNLIKELY


@pytest.mark.parametrize(("agents", "arms"), [(1, 1), (300, 300), (1200, 1000), (1000, 12), (50, 1)])
def test_every_arm_has_a_sharer_and_every_agent_shares_one_arm(agents, arms):
    drawn = RandomSharing(agents, arms).drawn(np.random.default_rng(0))
    assert (np.diff(drawn.starts) == 1).all()
    assert (drawn.agents, drawn.arms, len(drawn.sharers())) == (agents, arms, arms)
    assert drawn.sharers().min() >= 1
    assert drawn.sharers().sum() == agents


def test_with_one_agent_more_than_arms_every_pair_is_as_likely_to_share_the_same_arm():
    """So many arms that the chance to cover them, N!/N^N, is 0 in floating point."""
    agents, generator, firsts = 721, np.random.default_rng(0), []
    random = RandomSharing(agents, agents - 1)
    for _ in range(300):
        shared = random.drawn(generator).shared
        firsts.append(np.flatnonzero(np.bincount(shared)[shared] == 2)[0])
    pairs = np.arange(agents - 1, 0, -1)  # agent m is the first of M - 1 - m pairs
    expected = np.array([part.sum() for part in np.split(pairs, 6)]) / pairs.sum() * len(firsts)
    assert stats.chisquare(np.bincount(np.array(firsts) // 120, minlength=6), expected).pvalue > UNLIKELY


def test_random_sharing_is_drawn_anew_from_the_generator_and_keeps_its_order():
    random = RandomSharing(20, 5).in_shuffled_order()
    generator = np.random.default_rng(7)
    first, second = random.drawn(generator), random.drawn(generator)
    assert first != second
    assert random.drawn(np.random.default_rng(7)) == first
    assert first.shuffled
    assert not RandomSharing(20, 5).drawn(generator).shuffled


@pytest.mark.parametrize(("agents", "arms"), [(2, 3), (1, 2), (999, 1000)])
def test_fewer_agents_than_arms_are_refused(agents, arms):
    with pytest.raises(InputError, match=f"at least {arms} agents"):
        Sharing.random(agents, arms)
