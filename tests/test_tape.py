"""The plain tape: numpy's Philox and the engine's compiled twin give the same words and orders."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from partage import tape
from partage.engine import rewards
from partage.errors import InputError

WORDS = st.integers(0, 2**64 - 1)
KEYS = st.tuples(WORDS, WORDS)


@given(key=KEYS, block=st.integers(0, 2**64 - 2), entry=WORDS, arm=WORDS, stream=WORDS)
def test_words_are_those_of_numpy_and_of_the_engine(key, block, entry, arm, stream):
    counter = np.array([block, entry, arm, stream], np.uint64)
    # numpy counts up before it draws.
    before = int(block) + (int(entry) << 64) + (int(arm) << 128) + (int(stream) << 192) - 1
    philox = np.random.Philox(key=np.array(key, np.uint64), counter=before % 2**256)
    found = tape.words(key, block, entry, arm, stream)
    assert list(found) == philox.random_raw(4).tolist()
    assert found == tuple(int(word) for word in rewards.words(*np.array(key, np.uint64), *counter))


@given(key=KEYS, purpose=st.sampled_from([tape.TIE_ORDER, tape.AGENT_ORDER]), size=st.integers(1, 60))
def test_an_order_is_that_of_the_engine(key, purpose, size):
    order = tape.permutation(key, purpose, size)
    assert sorted(order) == list(range(size))
    assert order == rewards.permutation(np.uint64(key[0]), np.uint64(key[1]), purpose, size).tolist()


def test_a_key_is_spelled_in_hex():
    assert tape.run_key("0123456789abcdef" + "f" * 16) == (0x0123456789ABCDEF, 2**64 - 1)


def _many(draw, size=4000):
    return [draw(tape.Draws((3, 4), agent=2, pull=pull)) for pull in range(size)]


def test_draws_have_their_distribution():
    """Kolmogorov and Smirnov do not reject at 1 in 1,000; the seed is fixed."""
    assert stats.kstest(_many(lambda draws: draws.uniform()), "uniform").pvalue > 1e-3
    assert stats.kstest(_many(lambda draws: draws.normal()), "norm").pvalue > 1e-3
    for a, b in ((1.0, 1.0), (3.5, 1.0), (40.0, 2.0)):
        drawn = _many(lambda draws, a=a, b=b: draws.beta(a, b))
        assert stats.kstest(drawn, stats.beta(a, b).cdf).pvalue > 1e-3
    counts = np.bincount(_many(lambda draws: draws.integer(5)), minlength=5)
    assert stats.chisquare(counts).pvalue > 1e-3


@given(key=KEYS, agent=st.integers(0, 10**6), pull=st.integers(0, 10**15))
def test_draws_depend_on_run_agent_and_pull_alone(key, agent, pull):
    draws = tape.Draws(key, agent, pull)
    first = draws.uniform(), draws.beta(2.0, 3.0), draws.uniform()
    again = draws.again()
    assert (again.uniform(), again.beta(2.0, 3.0), again.uniform()) == first
    assert first[0] != first[2]
    others = tape.Draws(key, agent + 1, pull), tape.Draws(key, agent, pull + 1)
    assert first[0] not in [other.uniform() for other in others]
    assert all(math.isfinite(value) for value in first)


def test_a_decision_cannot_run_into_the_draws_of_the_next_pull():
    draws = tape.Draws((1, 2), agent=0, pull=0)
    draws._drawn = tape.DRAWS_PER_PULL - 1
    assert draws.uniform() != tape.Draws((1, 2), agent=0, pull=1).uniform()
    with pytest.raises(InputError, match="at most 16,384"):
        draws.uniform()
