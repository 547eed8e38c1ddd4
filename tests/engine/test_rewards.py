import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.support.strategies import arms, keys

from partage.arms import Bernoulli, Uniform, reward_table
from partage.compiled import compiled
from partage.engine import rewards as tape

UNLIKELY = 1e-4
WORD = 2**64
words_of_64_bits = st.one_of(st.sampled_from([0, 1, WORD - 1]), st.integers(0, WORD - 1)).map(np.uint64)
entries = st.one_of(st.sampled_from([0, 1, 63, 64, 65, 127, 128]), st.integers(0, 10**6), st.just(2**40 + 17))


@compiled
def bernoulli_word(k0, k1, mean, group, arm, stream):
    return tape.bernoulli_word(k0, k1, mean, group, arm, stream)


@compiled
def reward(k0, k1, table, arm, entry, stream):
    return tape.reward(k0, k1, table, arm, entry, stream)


@compiled
def add_rewards(k0, k1, table, arm, start, stop, stream, total, word, group_of):
    return tape.add_rewards(k0, k1, table, arm, start, stop, stream, total, word, group_of)


@compiled
def next_reward(k0, k1, table, arm, entry, stream, word, group_of):
    return tape.next_reward(k0, k1, table, arm, entry, stream, word, group_of)


def philox(key, block, entry, arm, stream, count=4):
    """The words by numpy, which adds 1 to its counter before it makes the first block."""
    counter = (int(block) + WORD * (int(entry) + WORD * (int(arm) + WORD * int(stream))) - 1) % WORD**4
    return np.random.Philox(key=np.array(key, np.uint64), counter=counter).random_raw(count)


def no_word_kept(arms):
    """Room for the last word of each arm's rewards, and which it is: none yet."""
    return np.zeros(arms, np.uint64), np.full(arms, -1)


# --- words ----------------------------------------------------------------------------------------------------


@given(*[words_of_64_bits] * 6)
def test_words_are_numpys_philox(k0, k1, block, entry, arm, stream):
    mine = tape.words(k0, k1, block, entry, arm, stream)
    assert [int(word) for word in mine] == philox([k0, k1], block, entry, arm, stream).tolist()


@given(
    keys(),
    st.one_of(st.floats(0, 1), st.sampled_from([0.5, 0.75, 1e-12, 5e-324, 1 - 2.0**-53])),
    st.integers(0, 2**40),
    st.integers(0, 5),
    st.integers(0, 5),
)
def test_bernoulli_rewards_compare_binary_digits_with_the_mean(key, mean, group, arm, stream):
    """Bit b of the words, one after the other, is a number in [0, 1): the reward is whether it is below the mean."""
    digits = 1076  # every float in [0, 1] ends before that
    drawn = philox(key, 0, group, arm, stream, digits)
    below = 0
    for bit in range(64):
        number = int("".join(map(str, (drawn >> np.uint64(bit)) & np.uint64(1))), 2)
        below |= (number < Fraction(mean) * 2**digits) << bit
    assert int(bernoulli_word(*key, mean, group, arm, stream)) == below


@given(keys(), st.floats(0, 1), entries)
def test_a_bernoulli_reward_is_its_bit_of_the_word(key, mean, entry):
    word = int(bernoulli_word(*key, mean, entry // 64, 1, tape.TAPE))
    rewards = tape.Rewards(key, reward_table([Uniform(), Bernoulli(mean)]))
    assert rewards.broadcast(1, entry) == word >> entry % 64 & 1


@given(keys(), entries, st.integers(0, 10**6))
def test_a_uniform_reward_is_the_first_word_of_its_entry(key, entry, agent):
    rewards = tape.Rewards(key, reward_table([Bernoulli(0.5), Uniform(0, 1)]))
    for stream, got in [(0, rewards.broadcast(1, entry)), (1 + agent, rewards.private(agent, 1, entry))]:
        assert got == (int(philox(key, 0, entry, 1, stream)[0]) >> 11) / 2**53


# --- the tape -------------------------------------------------------------------------------------------------


@given(keys(), arms(), entries, st.integers(0, 200), st.integers(0, 3), st.integers(0, 1000))
def test_rewards_added_together_are_rewards_added_one_by_one(key, arm, entry, pulls, stream, total):
    table = reward_table([Uniform(), arm])
    one_by_one = float(total)
    for at in range(entry, entry + pulls):
        one_by_one += reward(*key, table, 1, at, stream)
    assert add_rewards(*key, table, 1, entry, entry + pulls, stream, float(total), *no_word_kept(2)) == one_by_one


@given(keys(), arms(), st.lists(entries, min_size=1, max_size=5), st.integers(0, 3))
def test_the_next_reward_is_the_reward(key, arm, read, stream):
    table, kept = reward_table([Uniform(), arm]), no_word_kept(2)
    for entry in read:
        assert next_reward(*key, table, 1, entry, stream, *kept) == reward(*key, table, 1, entry, stream)


@pytest.mark.parametrize("entry", [0, 1, 31, 63, 64])
def test_bernoulli_rewards_added_together_where_words_begin_and_end(entry):
    key, table = tape.run_keys(3, 0, 1)[0], reward_table([Bernoulli(0.7)])
    total = 5.0
    for pulls in range(200):
        assert add_rewards(*key, table, 0, entry, entry + pulls, tape.TAPE, 5.0, *no_word_kept(1)) == total
        total += reward(*key, table, 0, entry + pulls, tape.TAPE)


@given(keys(), st.tuples(arms(), arms()), st.lists(st.tuples(st.integers(0, 1), st.integers(0, 130))))
def test_stretches_of_several_arms_add_up_to_the_whole(key, two, stretches):
    """Each stretch goes on where the arm's last one ended, and a word that was kept is the right one."""
    table, kept = reward_table(two), no_word_kept(2)
    read, sums = [0, 0], [0.0, 0.0]
    for arm, pulls in stretches:
        sums[arm] = add_rewards(*key, table, arm, read[arm], read[arm] + pulls, tape.TAPE, sums[arm], *kept)
        read[arm] += pulls
    for arm in (0, 1):
        assert add_rewards(*key, table, arm, 0, read[arm], tape.TAPE, 0.0, *no_word_kept(2)) == sums[arm]


@given(keys(), st.lists(st.tuples(st.integers(0, 300), st.integers(0, 130))))
def test_a_kept_word_does_not_matter_wherever_one_reads_next(key, stretches):
    table, kept = reward_table([Bernoulli(0.5)]), no_word_kept(1)
    for entry, pulls in stretches:
        fresh = add_rewards(*key, table, 0, entry, entry + pulls, tape.TAPE, 0.0, *no_word_kept(1))
        assert add_rewards(*key, table, 0, entry, entry + pulls, tape.TAPE, 0.0, *kept) == fresh


@given(keys(), st.lists(arms(), min_size=1, max_size=3), st.data())
def test_the_tape_reads_the_same_in_any_order(key, several, data):
    places = [(arm, entry) for arm in range(len(several)) for entry in (0, 1, 63, 64, 1000)]
    rewards = tape.Rewards(key, reward_table(several))
    forward = {place: (rewards.broadcast(*place), rewards.private(2, *place)) for place in places}
    again = tape.Rewards(key, reward_table(several))
    for place in data.draw(st.permutations(places)):
        assert (again.broadcast(*place), again.private(2, *place)) == forward[place]


def test_every_seed_run_arm_and_agent_has_a_stream_of_its_own():
    table = reward_table([Uniform(0, 1)] * 3)
    seen = []
    for seed, run in itertools.product((0, 1), (0, 1, 2)):
        rewards = tape.Rewards(tape.run_keys(seed, run, run + 1)[0], table)
        for arm, entry in itertools.product(range(3), range(20)):
            seen += [rewards.broadcast(arm, entry), *(rewards.private(agent, arm, entry) for agent in range(4))]
    assert len(set(seen)) == len(seen) == 2 * 3 * 3 * 20 * 5


def test_streams_do_not_go_together():
    """Rewards at the same place of neighbouring streams are independent."""
    table = reward_table([Uniform(0, 1)] * 2)
    rewards = [tape.Rewards(key, table) for key in tape.run_keys(0, 0, 2)]
    one = [rewards[0].broadcast(0, entry) for entry in range(2000)]
    for other in (
        [rewards[0].broadcast(1, entry) for entry in range(2000)],
        [rewards[1].broadcast(0, entry) for entry in range(2000)],
        [rewards[0].private(0, 0, entry) for entry in range(2000)],
        [rewards[0].broadcast(0, entry + 1) for entry in range(2000)],
    ):
        assert stats.spearmanr(one, other).pvalue > UNLIKELY


def test_arms_of_higher_mean_pay_whenever_those_of_lower_mean_do():
    """Common random numbers: two games on one seed differ by their means alone."""
    key = tape.run_keys(0, 0, 1)[0]
    low, high = (tape.Rewards(key, reward_table([Bernoulli(mean)])) for mean in (0.4, 0.6))
    pairs = Counter((low.broadcast(0, k), high.broadcast(0, k)) for k in range(1000))
    assert pairs[1, 0] == 0
    assert pairs[0, 1] > 0


# --- once per run ---------------------------------------------------------------------------------------------


@given(keys(), st.integers(0, 50), st.sampled_from([tape.TIE_ORDER, tape.AGENT_ORDER]))
def test_permutations_are_permutations_and_reproducible(key, size, purpose):
    order = tape.permutation(*key, purpose, size)
    assert sorted(order) == list(range(size))
    assert tape.permutation(*key, purpose, size).tolist() == order.tolist()


@pytest.mark.parametrize("purpose", [tape.TIE_ORDER, tape.AGENT_ORDER])
@pytest.mark.parametrize("size", [3, 4])
def test_permutations_are_uniform_over_runs(size, purpose):
    seen = Counter(tuple(tape.permutation(*key, purpose, size).tolist()) for key in tape.run_keys(0, 0, 4800))
    every = list(itertools.permutations(range(size)))
    assert stats.chisquare([seen[order] for order in every]).pvalue > UNLIKELY


def test_tie_order_and_order_of_agents_are_independent():
    table = np.zeros((6, 6))
    every = {order: place for place, order in enumerate(itertools.permutations(range(3)))}
    for key in tape.run_keys(1, 0, 3600):
        orders = [tape.permutation(*key, purpose, 3).tolist() for purpose in (tape.TIE_ORDER, tape.AGENT_ORDER)]
        table[every[tuple(orders[0])], every[tuple(orders[1])]] += 1
    assert stats.chi2_contingency(table).pvalue > UNLIKELY


@given(st.integers(0, 2**64), st.tuples(*[st.integers(0, 20)] * 3).map(sorted))
def test_keys_of_some_runs_are_a_slice_of_the_keys_of_all(seed, runs):
    first, last, of = runs
    some = tape.run_keys(seed, first, last)
    assert some.shape == (last - first, 2)
    assert np.array_equal(some, tape.run_keys(seed, 0, of)[first:last])


def test_keys_differ_by_run_and_by_seed():
    every = [tuple(key) for seed in range(20) for key in tape.run_keys(seed, 0, 50).tolist()]
    assert len(set(every)) == 1000


def test_generators_differ_by_purpose_and_are_reproducible():
    key = tape.run_keys(0, 0, 1)[0]
    drawn = {tuple(tape.generator(key, purpose).random(3)) for purpose in (0, 1, 2)}
    assert len(drawn) == 3
    assert tuple(tape.generator(key, tape.GAME).random(3)) in drawn
