"""The clock: how often a group has pulled so far, rounded down to a power of 1.25.

Rules that weigh exploration against time read it on the board. It is rounded because it is public in live play: the
exact number would show when other members commit.
"""

from bisect import bisect_right

# All that fit into 64 bits. Powers below 5 are less than 1 apart, so several round up to the same number. The last
# entry is no power: no game has as many pulls, so there is always a next tick, also for kernels that read one ahead.
TICKS: tuple[int, ...] = (*sorted({-(-(5**power) // 4**power) for power in range(196)}), 2**63 - 1)


def rounded(pulls: int) -> int:
    """Return the last tick of the clock at or before this many pulls; 0 before the first pull.

    >>> [rounded(pulls) for pulls in (0, 1, 6, 100, 10**6)]
    [0, 1, 6, 87, 815664]
    """
    return TICKS[bisect_right(TICKS, pulls) - 1] if pulls > 0 else 0


def next_tick(pulls: int) -> int:
    """Return the first tick after this many pulls.

    >>> [next_tick(pulls) for pulls in (0, 1, 6)]
    [1, 2, 8]
    """
    return TICKS[bisect_right(TICKS, pulls)]
