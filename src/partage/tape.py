"""The tape: all randomness of a run, as a pure function of where it is used. Plain Python; no state to carry along.

A run has a 128-bit key. Its random words are Philox4x64-10 (Salmon et al. 2011; numpy's `Philox`) under that key, and
the 256-bit counter says what a word is for:

    counter = (block, entry, arm, stream)        four words of 64 bits per block

| stream    | arm             | entry                      | what it gives                            |
|-----------|-----------------|----------------------------|------------------------------------------|
| `TAPE`    | the arm         | broadcasts of it so far    | the rewards that are broadcast           |
| 1 + agent | the arm         | the agent's own pulls of it | the agent's private rewards             |
| `OTHER`   | the purpose     | depends on the purpose     | what is drawn once per run               |
| `OTHER`   | `DECISIONS` + agent | the pull and the draw  | a randomised rule's draws (`Draws`)      |
| `OTHER`   | `DELAYS` + agent | its explore pulls so far  | how late the reward is told              |

So reference, engine and live controller read the same tape, and two rules on one seed see the same rewards. The
engine's compiled twin is `partage.engine.rewards`.
"""

import math
from collections.abc import Iterator
from typing import Self

from partage.errors import InputError

Key = tuple[int, int]

TAPE = 0
OTHER = 2**64 - 1
TIE_ORDER, AGENT_ORDER, GAME = 0, 1, 2
DECISIONS = 2**32
DELAYS = 2**33
DRAWS_PER_PULL = 2**14  # at most; the next draw would be the first of the next pull

_WORD = 2**64 - 1
_M0, _M1 = 0xD2E7470EE14C6C93, 0xCA5A826395121157
_W0, _W1 = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
_UNIT = 1.0 / 9007199254740992.0  # 2^-53


def run_key(text: str) -> Key:
    """Return the key that 32 hexadecimal digits spell.

    >>> run_key("0" * 31 + "1")
    (0, 1)
    """
    return int(text[:16], 16), int(text[16:], 16)


def words(key: Key, block: int, entry: int, arm: int, stream: int) -> tuple[int, int, int, int]:
    """Return four random words: Philox4x64-10 at this counter."""
    k0, k1 = key
    c0, c1, c2, c3 = block, entry, arm, stream
    for _ in range(10):
        first, second = _M0 * c0, _M1 * c2
        c0, c1, c2, c3 = (second >> 64) ^ c1 ^ k0, second & _WORD, (first >> 64) ^ c3 ^ k1, first & _WORD
        k0, k1 = (k0 + _W0) & _WORD, (k1 + _W1) & _WORD
    return c0, c1, c2, c3


def permutation(key: Key, purpose: int, size: int) -> list[int]:
    """Draw an order of 0 to size - 1 (Fisher and Yates), one per run and purpose.

    >>> permutation((7, 2), TIE_ORDER, 5)
    [3, 2, 4, 0, 1]
    """
    order = list(range(size))
    for last in range(size - 1, 0, -1):
        chosen = (words(key, 0, last, purpose, OTHER)[0] * (last + 1)) >> 64
        order[last], order[chosen] = order[chosen], order[last]
    return order


class Draws:
    """The randomness of one decision: pull number `pull`, counted from 0, of agent number `agent`.

    Each call gives the next draw. The same run, agent and pull give the same draws, so a randomised rule gives the
    same answer when it is asked again, and a game that is played again is played in the same way.

    >>> draws = Draws((1, 2), agent=0, pull=7)
    >>> 0 <= draws.uniform() < 1
    True
    >>> draws.again().uniform() == Draws((1, 2), agent=0, pull=7).uniform()
    True
    """

    __slots__ = ("_drawn", "agent", "key", "pull")

    def __init__(self, key: Key, agent: int, pull: int) -> None:
        self.key, self.agent, self.pull = key, agent, pull
        self._drawn = 0

    def again(self) -> Self:
        """Return the same draws from the first one on."""
        return type(self)(self.key, self.agent, self.pull)

    def uniform(self) -> float:
        """Draw a number from [0, 1)."""
        return _unit(next(self._blocks())[0])

    def integer(self, size: int) -> int:
        """Draw a whole number from 0 to size - 1."""
        return (next(self._blocks())[0] * size) >> 64

    def normal(self) -> float:
        """Draw a standard normal number."""
        first, second, _, _ = next(self._blocks())
        return _normal(first, second)

    def beta(self, a: float, b: float) -> float:
        """Draw a Beta(a, b) number; both parameters are at least 1."""
        blocks = self._blocks()
        while True:  # the ratio of two Gamma numbers, from the two normal numbers of Box and Muller
            w0, w1, w2, w3 = next(blocks)
            radius, angle = math.sqrt(-2.0 * math.log(1.0 - _unit(w0))), 2.0 * math.pi * _unit(w1)
            x = gamma_from(a, radius * math.cos(angle), 1.0 - _unit(w2))
            y = gamma_from(b, radius * math.sin(angle), 1.0 - _unit(w3))
            if x >= 0.0 and y >= 0.0:
                return x / (x + y)

    def _blocks(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield the blocks of words of the next draw."""
        if self._drawn == DRAWS_PER_PULL:
            raise InputError(f"A decision may draw at most {DRAWS_PER_PULL:,} times.")
        entry = self.pull * DRAWS_PER_PULL + self._drawn
        self._drawn += 1
        block = 0
        while True:
            yield words(self.key, block, entry, DECISIONS + self.agent, OTHER)
            block += 1


def uniform_at(key: Key, entry: int, purpose: int) -> float:
    """Return the uniform number in [0, 1) of this entry and purpose, of what is drawn once per run."""
    return _unit(words(key, 0, entry, purpose, OTHER)[0])


def _unit(word: int) -> float:
    """Return a uniform number in [0, 1) from a word."""
    return (word >> 11) * _UNIT


def _normal(first: int, second: int) -> float:
    """Return a standard normal number from two words (Box and Muller)."""
    return math.sqrt(-2.0 * math.log(1.0 - _unit(first))) * math.cos(2.0 * math.pi * _unit(second))


def gamma_from(shape: float, normal: float, uniform: float) -> float:
    """Return a Gamma(shape) number, shape at least 1, or -1.0 if the draw is rejected (Marsaglia and Tsang 2000).

    The engine compiles this function, so it keeps to operations that give the same bits there (see
    `partage.compiled`).
    """
    d = shape - 1.0 / 3.0
    root = 1.0 + normal / math.sqrt(9.0 * d)
    v = root * root * root
    if v <= 0.0:
        return -1.0
    square = normal * normal
    if uniform < 1.0 - 0.0331 * square * square or math.log(uniform) < 0.5 * square + d - d * v + d * math.log(v):
        return d * v
    return -1.0
