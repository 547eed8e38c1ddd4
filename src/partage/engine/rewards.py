"""Rewards for kernels: the tape of `partage.tape`, compiled, and how each kind of arm is drawn from it.

Bernoulli rewards come 64 to an entry: bit b of the words at entry k // 64 are the binary digits of a uniform number.
They are compared with those of the mean until they differ, which is exact and takes about 7 words for 64 rewards.
Every other kind draws from the words of its own entry.
"""

import math

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from partage import arms as kinds
from partage import tape
from partage.arms import BernoulliTable, RewardTable
from partage.compiled import compiled, inlined, inner, uncounted
from partage.engine.seeds import LAST, keys_of_runs

# numba treats a Python integer as a separate type, so these are numpy's.
TAPE = np.int64(tape.TAPE)
TIE_ORDER, AGENT_ORDER = np.int64(tape.TIE_ORDER), np.int64(tape.AGENT_ORDER)
GAME = tape.GAME

_BERNOULLI, _UNIFORM, _CONSTANT = kinds.BERNOULLI, kinds.UNIFORM, kinds.CONSTANT
_DISCRETE, _EMPIRICAL, _BETA, _MIXTURE = kinds.DISCRETE, kinds.EMPIRICAL, kinds.BETA, kinds.MIXTURE
_U0, _U1 = np.uint64(0), np.uint64(1)
_ALL = np.uint64(2**64 - 1)
_M0, _M1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_W0, _W1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)


def run_keys(seed: int, first: int, last: int) -> NDArray[np.uint64]:
    """Return the keys of runs `first` to `last - 1`: one child of `SeedSequence(seed)` per run, two words each."""
    if last <= LAST:
        return keys_of_runs(seed, first, last)
    children = (np.random.SeedSequence(seed, spawn_key=(run,)) for run in range(first, last))
    return np.array([child.generate_state(2, np.uint64) for child in children], dtype=np.uint64).reshape(-1, 2)


def generator(key: NDArray[np.uint64], purpose: int) -> np.random.Generator:
    """Return a numpy generator for what is drawn once per run."""
    counter = np.array([0, 0, purpose, tape.OTHER], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


@intrinsic
def _multiply_wide(typing_context, a, b):
    """Return the high and the low half of a 64 x 64 bit product: one machine instruction."""
    signature = types.UniTuple(types.uint64, 2)(types.uint64, types.uint64)

    def codegen(context, builder, signature, args):
        wide, word = ir.IntType(128), ir.IntType(64)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
        return context.make_tuple(builder, signature.return_type, (high, builder.trunc(product, word)))

    return signature, codegen


@njit(inline="always")
def philox(k0, k1, block, entry, arm, stream):
    """Return four random words: Philox4x64-10 at this counter."""
    c0, c1, c2, c3 = block, entry, arm, stream
    for _ in range(10):
        high0, low0 = _multiply_wide(_M0, c0)
        high1, low1 = _multiply_wide(_M1, c2)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0 += _W0
        k1 += _W1
    return c0, c1, c2, c3


@compiled
def words(k0, k1, block, entry, arm, stream):
    """Return four random words, for arguments of any integer type."""
    return philox(np.uint64(k0), np.uint64(k1), np.uint64(block), np.uint64(entry), np.uint64(arm), np.uint64(stream))


@uncounted
def bernoulli_word(k0, k1, mean, group, arm, stream):
    """Return rewards 64 * group to 64 * group + 63 of a Bernoulli arm, one per bit."""
    if mean >= 1.0:
        return _ALL
    group, arm, stream = np.uint64(group), np.uint64(arm), np.uint64(stream)
    paid, undecided, rest, block = _U0, _ALL, mean, _U0
    while rest > 0.0 and undecided != _U0:
        w0, w1, w2, w3 = philox(k0, k1, block, group, arm, stream)
        for digit_word in (w0, w1, w2, w3):
            rest *= 2.0  # the next binary digit of the mean, exactly
            if rest >= 1.0:
                rest -= 1.0
                paid |= undecided & ~digit_word
                undecided &= digit_word
            else:
                undecided &= ~digit_word
        block += _U1
    return paid


@njit(inline="always")
def unit(word):
    """Return a uniform number in [0, 1) from a word."""
    return np.float64(word >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@uncounted
def normal(w0, w1):
    """Return a standard normal number from two words (Box and Muller)."""
    return math.sqrt(-2.0 * math.log(1.0 - unit(w0))) * math.cos(2.0 * math.pi * unit(w1))


@uncounted
def _log_gamma_variate(k0, k1, shape, block, entry, arm, stream):
    """Return the logarithm of a Gamma(shape) number (Marsaglia and Tsang 2000), from every second block on."""
    larger = shape if shape >= 1.0 else shape + 1.0
    d = larger - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        w0, w1, w2, w3 = philox(k0, k1, block, entry, arm, stream)
        block += np.uint64(2)
        x = normal(w0, w1)
        v = (1.0 + c * x) ** 3
        if v > 0.0 and math.log(1.0 - unit(w2)) < 0.5 * x * x + d - d * v + d * math.log(v):
            boost = math.log(1.0 - unit(w3)) / shape if shape < 1.0 else 0.0
            return math.log(d) + math.log(v) + boost


@uncounted
def _beta(k0, k1, a, b, entry, arm, stream):
    """Draw a Beta(a, b) number as a ratio of gammas, in logarithms so that small parameters do not vanish."""
    if a < 1e-290 and b < 1e-290:  # as good as Bernoulli(a / (a + b)); both logarithms would be infinite
        a, b = a * 1e30, b * 1e30
    x = _log_gamma_variate(k0, k1, a, _U0, entry, arm, stream)
    y = _log_gamma_variate(k0, k1, b, _U1, entry, arm, stream)
    return 1.0 / (1.0 + math.exp(min(y - x, 700.0)))


@uncounted
def _truncated_normal(k0, k1, location, scale, entry, arm, stream):
    """Return a normal number conditioned on [0, 1], by rejection from a proposal that is often accepted."""
    low, high = (0.0 - location) / scale, (1.0 - location) / scale
    inside = 0.5 * (math.erf(high / math.sqrt(2.0)) - math.erf(low / math.sqrt(2.0)))
    mirrored = high <= 0.0
    near, width = (-high if mirrored else low), 1.0 / scale
    if near == math.inf:
        return 1.0 if mirrored else 0.0
    block = _U0
    while True:
        w0, w1, w2, _ = philox(k0, k1, block, entry, arm, stream)
        block += _U1
        if inside >= 0.25:  # plain normal
            z = normal(w0, w1)
            x = location + scale * z
            accepted = low <= z <= high
        elif low < 0.0 < high:  # narrow and around the middle: uniform
            x = unit(w0)
            z = (x - location) / scale
            accepted = unit(w2) < math.exp(-0.5 * z * z)
        else:  # a tail: exponential of rate `near`, cut at `width`
            y = width * unit(w0)
            if near * width > 1e-300:  # otherwise flat
                y = -math.log1p(unit(w0) * math.expm1(-near * width)) / near
            x = 1.0 - scale * y if mirrored else scale * y  # from the edge: location + scale * z would cancel
            accepted = unit(w2) < math.exp(-0.5 * y * y) and y <= width
        if accepted:
            return min(1.0, max(0.0, x))


@uncounted
def _first_above(cumulated, start, end, drawn):
    """Return the first place in start:end whose cumulated weight is above `drawn`; the last one if there is none."""
    low, high = start, end - 1
    while low < high:
        middle = (low + high) // 2
        if cumulated[middle] > drawn:
            high = middle
        else:
            low = middle + 1
    return low


@uncounted
def reward(k0, k1, table, arm, entry, stream):
    """Return entry `entry` of an arm's stream, for an arm of any kind."""
    if table.kinds[arm] != _BERNOULLI:
        return _other_reward(k0, k1, table, arm, entry, stream)
    word = bernoulli_word(k0, k1, table.first[arm], entry >> 6, arm, stream)
    return np.float64((word >> np.uint64(entry & 63)) & _U1)


def _other_reward(k0, k1, table, arm, entry, stream):
    """Return a reward of an arm that is not Bernoulli. A table of Bernoulli arms compiles nothing for it."""


@overload(_other_reward, jit_options={"nogil": True})
def _choose_other_reward(k0, k1, table, arm, entry, stream):
    if table.instance_class is BernoulliTable:
        return lambda k0, k1, table, arm, entry, stream: 0.0
    return lambda k0, k1, table, arm, entry, stream: _drawn_reward(k0, k1, table, arm, entry, stream)


@uncounted
def _drawn_reward(k0, k1, table, arm, entry, stream):
    """Draw a reward of an arm of any kind but Bernoulli."""
    at, of, stream = np.uint64(entry), np.uint64(arm), np.uint64(stream)
    row = arm
    if table.kinds[arm] == _MIXTURE:  # the part comes from the last block, which no other draw reaches
        w0, _, _, _ = philox(k0, k1, _ALL, at, of, stream)
        part = _first_above(table.cumulated, table.starts[arm], table.starts[arm + 1], unit(w0))
        row = np.int64(table.values[part])
    kind, first, second = table.kinds[row], table.first[row], table.second[row]
    if kind == _CONSTANT:
        return first
    if kind == _BETA:
        return _beta(k0, k1, first, second, at, of, stream)
    if kind == _UNIFORM or kind == _DISCRETE or kind == _EMPIRICAL:
        w0, _, _, _ = philox(k0, k1, _U0, at, of, stream)
        if kind == _UNIFORM:
            return first + (second - first) * unit(w0)
        return table.values[_first_above(table.cumulated, table.starts[row], table.starts[row + 1], unit(w0))]
    return _truncated_normal(k0, k1, first, second, at, of, stream)


@inlined
def ones(word):
    """Return how many bits of a word are set."""
    word -= (word >> _U1) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def bernoulli_sum(k0, k1, mean, arm, entry, pulls, stream, word, group_of):
    """Sum entries `entry` to `entry + pulls - 1` of a Bernoulli arm.

    `word[arm]` keeps the last 64 rewards of the arm that were read, and `group_of[arm]` says which ones (-1: none).
    """
    end = entry + pulls
    paid = 0
    while entry < end:
        group = entry >> 6
        if group != group_of[arm]:
            group_of[arm] = group
            word[arm] = bernoulli_word(k0, k1, mean, group, arm, stream)
        stop = min(end, (group + 1) << 6)
        bits = word[arm] >> np.uint64(entry & 63)
        if stop - entry < 64:
            bits &= (_U1 << np.uint64(stop - entry)) - _U1
        paid += ones(bits)
        entry = stop
    return paid


@inlined
def next_reward(k0, k1, table, arm, entry, stream, word, group_of):
    """Return entry `entry` of an arm's stream, fast for entries that are read one after the other."""
    if table.kinds[arm] != _BERNOULLI:
        return _other_reward(k0, k1, table, arm, entry, stream)
    group = entry >> 6
    if group != group_of[arm]:
        group_of[arm] = group
        word[arm] = bernoulli_word(k0, k1, table.first[arm], group, arm, stream)
    return np.float64((word[arm] >> np.uint64(entry & 63)) & _U1)


@uncounted
def add_rewards(k0, k1, table, arm, start, stop, stream, total, word, group_of):
    """Add entries `start` to `stop - 1` of an arm to `total`, as adding them one after the other would."""
    if table.kinds[arm] == _BERNOULLI:
        total += bernoulli_sum(k0, k1, table.first[arm], arm, start, stop - start, stream, word, group_of)
    else:
        for entry in range(start, stop):
            total += _other_reward(k0, k1, table, arm, entry, stream)
    return total


@compiled
def permutation(k0, k1, purpose, size):
    """Draw an order of 0 to size - 1 (Fisher and Yates), one per run and purpose."""
    order = np.arange(size)
    for last in range(size - 1, 0, -1):
        w0, _, _, _ = philox(np.uint64(k0), np.uint64(k1), _U0, np.uint64(last), np.uint64(purpose), _ALL)
        chosen, _ = _multiply_wide(w0, np.uint64(last + 1))
        order[last], order[np.int64(chosen)] = order[np.int64(chosen)], order[last]
    return order


@inner
def ranks(tie_order):
    """Return the place of each arm in the tie order."""
    rank = np.empty(len(tie_order), np.int64)
    for place in range(len(tie_order)):
        rank[tie_order[place]] = place
    return rank


@compiled
def _reward_of_tape(k0, k1, table, arm, entry, stream):
    """Return one reward to plain Python."""
    return reward(k0, k1, table, arm, entry, stream)


class Rewards:
    """The rewards of one run, one at a time, for plain Python."""

    def __init__(self, key: NDArray[np.uint64], table: RewardTable) -> None:
        self._k0, self._k1, self._table = key[0], key[1], table

    def broadcast(self, arm: int, entry: int) -> float:
        """Return the reward of the arm's broadcast number `entry`, counted from 0."""
        return float(_reward_of_tape(self._k0, self._k1, self._table, arm, entry, tape.TAPE))

    def private(self, agent: int, arm: int, entry: int) -> float:
        """Return the reward of an agent's private pull number `entry` of an arm, counted from 0."""
        return float(_reward_of_tape(self._k0, self._k1, self._table, arm, entry, 1 + agent))
