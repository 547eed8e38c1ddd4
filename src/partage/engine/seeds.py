"""The seeds of runs, compiled: those of `numpy.random.SeedSequence(seed, spawn_key=(run,))`, many times faster.

All runs of a seed mix the same words into a pool of four, and then the number of the run.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from partage.compiled import compiled, inlined

# numpy's constants. The pool holds 32-bit words; the arithmetic here is that of 64 bits, cut.
_INIT_A, _MULT_A = np.uint64(0x43B0D7E5), np.uint64(0x931E8875)
_INIT_B, _MULT_B = np.uint64(0x8B51F9DD), np.uint64(0x58F38DED)
_MIX_L, _MIX_R = np.uint64(0xCA01F9DD), np.uint64(0x4973F715)
_LOW, _HALF, _WORD = np.uint64(2**32 - 1), np.uint64(16), np.uint64(32)
_POOL = 4
LAST = 2**32  # runs from here on have two words


def keys_of_runs(seed: int, first: int, last: int) -> NDArray[np.uint64]:
    """Return two words for each run from `first` to `last - 1`, of those below `LAST`."""
    pool, constant = _mixed(seed)
    keys = np.empty((last - first, 2), np.uint64)
    _write_keys(pool, constant, first, keys)
    return keys


@lru_cache
def _mixed(seed: int) -> tuple[NDArray[np.uint32], np.uint64]:
    """Return the pool of a seed, and the constant with which its next word is hashed."""
    words = max(_POOL, -(-seed.bit_length() // 32))
    hashed = _POOL + _POOL * (_POOL - 1) + _POOL * (words - _POOL)  # how often the constant was multiplied
    constant = int(_INIT_A) * pow(int(_MULT_A), hashed, 2**32) % 2**32
    return np.random.SeedSequence(seed).pool, np.uint64(constant)


@compiled
def _write_keys(pool, constant, first, keys):
    """Mix the number of each run into the pool, and write its first two words."""
    for row in range(len(keys)):
        run, of_pool, of_state = np.uint64(first + row), constant, _INIT_B
        for place in range(4):
            word, of_pool = _hashed(run, of_pool, _MULT_A)
            mixed = (_MIX_L * np.uint64(pool[place]) - _MIX_R * word) & _LOW
            mixed ^= mixed >> _HALF
            word, of_state = _hashed(mixed, of_state, _MULT_B)
            if place % 2 == 0:
                keys[row, place // 2] = word
            else:
                keys[row, place // 2] |= word << _WORD


@inlined
def _hashed(word, constant, factor):
    """Return a word hashed with the constant, and the next constant."""
    word ^= constant
    constant = (constant * factor) & _LOW
    word = (word * constant) & _LOW
    return word ^ (word >> _HALF), constant
