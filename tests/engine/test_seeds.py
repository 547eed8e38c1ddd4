"""Keys of runs are those of numpy's children of a seed."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from partage.engine.rewards import run_keys
from partage.engine.seeds import LAST


@given(st.integers(0, 2**300), st.integers(0, LAST + 10), st.integers(0, 5))
@example(seed=0, first=0, runs=3)
@example(seed=2**128 - 1, first=LAST - 2, runs=2)
@example(seed=2**128, first=LAST - 2, runs=5)
def test_keys_are_those_of_numpy(seed: int, first: int, runs: int) -> None:
    numbers = range(first, first + runs)
    children = [np.random.SeedSequence(seed, spawn_key=(run,)) for run in numbers]
    expected = [child.generate_state(2, np.uint64).tolist() for child in children]
    assert run_keys(seed, first, first + runs).tolist() == expected
