"""Bounded influence: what a record says whichever f members are left out (docs/bounded-influence.md).

Members are numbered in the order of their first broadcast. `counts` and `sums` hold, by member, the broadcasts of an
arm and the sum of their rewards; `leads` and `wins` hold the same of the arm that it is compared with. The functions
are shared: plain Python passes lists, kernels pass arrays, and both compute the same bits.
"""

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from partage.board import Board
from partage.checks import count
from partage.compiled import shared
from partage.errors import InputError
from partage.evidence import apart, mixture_loss
from partage.rules.rule import BuiltIn, Parameter

if TYPE_CHECKING:
    from partage.game import Game

MOST_SETS = 20_000  # of members that one comparison leaves out; if there are more, the arm stays
_LOG_TWO = math.log(2.0)
_ROUNDING = 1e-9

M = TypeVar("M", bound=Hashable)
Worst = tuple[int, float, int, float]  # what is left of a record: count and sum of an arm, and of the other


@shared
def less(total: float, part: float, left: int) -> float:
    """Return what is left of a sum of `left` rewards and more; rounding must not move it out of [0, left]."""
    return min(max(total - part, 0.0), float(left))


@shared
def net_below(count: int, total: float, leads: int, wins: float) -> float:
    """Return the evidence, less both losses, that an arm's mean is below another's; -inf if the record denies it."""
    if count <= 0 or leads <= 0 or total / count >= wins / leads:
        return -math.inf
    return apart(count, total, leads, wins) - mixture_loss(count, total) - mixture_loss(leads, wins)


@shared
def below(count: int, total: float, leads: int, wins: float) -> float:
    """Return the evidence that an arm's mean is below another's; 0 if the record denies it."""
    if count <= 0 or leads <= 0 or total / count >= wins / leads:
        return 0.0
    return apart(count, total, leads, wins)


@shared
def trimmed_mean(counts: Sequence[int], sums: Sequence[float], members: int, tolerate: int) -> float:
    """Return an arm's mean without the f = `tolerate` members that raise it most and the f that lower it most.

    A member raises or lowers it by what its sum exceeds or lacks against as many broadcasts of the mean. At least one
    member is kept, so with 2 f members or fewer not as many of those that lower it are left out. An arm that f or
    fewer members broadcast has no such mean: -inf.
    """
    reporters, n, total = 0, 0, 0.0
    for m in range(members):
        if counts[m] > 0:
            reporters += 1
            n += counts[m]
            total += sums[m]
    if reporters <= tolerate:
        return -math.inf
    centre = total / n
    dropped = [False] * members
    lowest = min(tolerate, reporters - tolerate - 1)
    for turn in range(tolerate + lowest):
        found, extreme = -1, 0.0
        for m in range(members):
            if counts[m] > 0 and not dropped[m]:
                excess = sums[m] - counts[m] * centre
                if found < 0 or (excess > extreme if turn < tolerate else excess < extreme):
                    found, extreme = m, excess
        dropped[found] = True
    n, total = 0, 0.0
    for m in range(members):
        if counts[m] > 0 and not dropped[m]:
            n += counts[m]
            total += sums[m]
    return total / n


@shared
def worst_record(
    counts: Sequence[int],
    sums: Sequence[float],
    leads: Sequence[int],
    wins: Sequence[float],
    members: int,
    record: Worst,
    tolerate: int,
) -> Worst:
    """Return what is left of the record of both arms without `tolerate` members, each time the one that proves most.

    A cheap bound from above on the least evidence: some other set of members may prove more still.
    """
    n, s, k, w = record
    dropped = [False] * members
    for _ in range(tolerate):
        found, least = -1, 0.0
        for m in range(members):
            if not dropped[m] and counts[m] + leads[m] > 0:
                n_left, k_left = n - counts[m], k - leads[m]
                evidence = below(n_left, less(s, sums[m], n_left), k_left, less(w, wins[m], k_left))
                if found < 0 or evidence < least:
                    found, least = m, evidence
        if found < 0:
            break
        dropped[found] = True
        n, k = n - counts[found], k - leads[found]
        s, w = less(s, sums[found], n), less(w, wins[found], k)
    return n, s, k, w


@shared
def surely_beaten(n: int, s: float, k: int, w: float, most: Worst, sets: int, threshold: float) -> bool:
    """Whether the evidence reaches the threshold whichever `sets` more members are left out, by a crude bound.

    `most` holds the most that any member broadcast of the arm, lost on it, broadcast of the other and won on it. The
    evidence grows with either count and with the distance of the means, and a mixture loses at most
    0.5 log n + log 2.
    """
    n_left, k_left = n - sets * most[0], k - sets * most[2]
    if n_left <= 0 or k_left <= 0:
        return False
    lost, won = max(0.0, n - s - sets * most[1]), max(0.0, w - sets * most[3])
    highest = s / (s + lost) if s > 0.0 else 0.0
    lowest = won / (won + (k - w)) if won > 0.0 else 0.0
    if highest >= lowest:
        return False
    losses = 0.5 * math.log(n) + 0.5 * math.log(k) + 2.0 * _LOG_TWO
    return apart(n_left, n_left * highest, k_left, k_left * lowest) - losses >= threshold + _ROUNDING


@shared
def beaten_without_any(
    counts: Sequence[int],
    sums: Sequence[float],
    leads: Sequence[int],
    wins: Sequence[float],
    members: int,
    record: Worst,
    tolerate: int,
    threshold: float,
) -> bool:
    """Whether the evidence reaches the threshold whichever members, at most `tolerate` of them, are left out.

    Goes through the sets of members one by one, and past those that a crude bound settles.
    """
    n, s, k, w = record
    if net_below(n, s, k, w) < threshold:
        return False
    left = worst_record(counts, sums, leads, wins, members, record, tolerate)
    if net_below(left[0], left[1], left[2], left[3]) < threshold:
        return False
    most_n, most_lost, most_k, most_won = 0, 0.0, 0, 0.0
    for m in range(members):
        most_n, most_k = max(most_n, counts[m]), max(most_k, leads[m])
        most_lost, most_won = max(most_lost, counts[m] - sums[m]), max(most_won, wins[m])
    most = (most_n, most_lost, most_k, most_won)

    # Depth first: at each depth, what is left without the members chosen so far, and who is tried next.
    ns, ss, ks, ws = [n] * (tolerate + 1), [s] * (tolerate + 1), [k] * (tolerate + 1), [w] * (tolerate + 1)
    following = [0] * (tolerate + 1)
    depth, sets = 0, 0
    if surely_beaten(n, s, k, w, most, tolerate, threshold):
        return True
    while True:
        m = following[depth]
        if depth == tolerate or m == members:
            if depth == 0:
                return True
            depth -= 1
            continue
        following[depth] = m + 1
        if counts[m] + leads[m] == 0:
            continue
        sets += 1
        if sets > MOST_SETS:
            return False
        n_left, k_left = ns[depth] - counts[m], ks[depth] - leads[m]
        s_left, w_left = less(ss[depth], sums[m], n_left), less(ws[depth], wins[m], k_left)
        if net_below(n_left, s_left, k_left, w_left) < threshold:
            return False
        if depth + 1 < tolerate and not surely_beaten(
            n_left, s_left, k_left, w_left, most, tolerate - depth - 1, threshold
        ):
            depth += 1
            ns[depth], ss[depth], ks[depth], ws[depth], following[depth] = n_left, s_left, k_left, w_left, m + 1


@shared
def fair_share(handed: Sequence[int], members: int, tolerate: int) -> int:
    """Return how often the member of rank f + 1 broadcast an arm: who broadcast it more often waits.

    So at most f members wait at a time, and with at most f liars none is ahead of every honest member by more than 1.
    """
    dropped = [False] * members
    most = 0
    for _ in range(tolerate + 1):
        found, most = -1, 0
        for m in range(members):
            if not dropped[m] and handed[m] > most:
                found, most = m, handed[m]
        if found < 0:
            return 0
        dropped[found] = True
    return most


# --- on the board ---------------------------------------------------------------------------------------------


def by_member(board: Board, arm: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the broadcasts of an arm and their sums, by member."""
    records = board.by_member.values()
    return tuple(record.counts[arm] for record in records), tuple(record.sums[arm] for record in records)


def reporters(board: Board, arm: int) -> int:
    """Return how many members broadcast the arm."""
    return sum(record.counts[arm] > 0 for record in board.by_member.values())


def can_be_settled(board: Board, arm: int, tolerate: int) -> bool:
    """Whether more than `tolerate` members share the arm: what fewer report of it decides nothing."""
    return board.sharers[arm] > tolerate


def worth(board: Board, arm: int, tolerate: int) -> float:
    """Return the trimmed mean of an arm; -inf if f or fewer members broadcast it."""
    return _trimmed(*by_member(board, arm), tolerate)


def best_trimmed(board: Board, arms: Iterable[int], tolerate: int) -> int:
    """Return the arm with the highest trimmed mean among these, ties by the tie order."""
    return min(arms, key=lambda arm: (-worth(board, arm, tolerate), board.rank[arm]))


def worst_of(board: Board, arm: int, other: int, tolerate: int) -> Worst:
    """Return what is left of the record of two arms without the members that prove most."""
    return _worst(*by_member(board, arm), *by_member(board, other), _both(board, arm, other), tolerate)


def is_beaten(board: Board, arm: int, other: int, tolerate: int, threshold: float) -> bool:
    """Whether the record shows that `other` has a higher mean than `arm`, whichever f members are left out."""
    columns = (*by_member(board, arm), *by_member(board, other))
    return beaten_without_any(*columns, len(board.by_member), _both(board, arm, other), tolerate, threshold)


def offered(
    board: Board, member: Hashable, shares: Collection[int], opened: Collection[int], tolerate: int
) -> list[int]:
    """Return which open arms a member may explore: the one it explored least, and had at most its fair share of.

    So the records of members are alike, and none of them weighs much more than another's. Claims count as
    broadcasts, also those that lapsed: they may still be reported.
    """
    own = {
        arm: board.handed_to(member, arm)
        for arm in opened
        if arm in shares and within_fair_share(board, member, arm, tolerate)
    }
    least = min(own.values(), default=0)
    return [arm for arm, mine in own.items() if mine == least]


def within_fair_share(board: Board, member: Hashable, arm: int, tolerate: int) -> bool:
    """Whether a member had at most its fair share of an arm, so that it may tell one more reward."""
    handed = [board.handed_to(one, arm) for one in {*board.by_member, *board.claimed}]
    return board.handed_to(member, arm) <= fair_share(handed, len(handed), tolerate)


def fair_entries(board: Board, arm: int, waiting: Mapping[M, int], tolerate: int) -> dict[M, int]:
    """Return how many of its waiting rewards of an arm each member may add now.

    A member adds one more for as long as it had at most its fair share, which grows as others add theirs. So in the
    end the fair share is that of everybody's rewards together with those that wait, and nobody enters more than one
    beyond it. With `tolerate` 0 all of them enter.

    >>> board = Board(100, [0], [True])
    >>> fair_entries(board, 0, {"Ada": 50, "Bob": 20, "Cleo": 3}, tolerate=1)
    {'Ada': 21, 'Bob': 20, 'Cleo': 3}
    """
    handed: dict[Hashable, int] = {
        one: board.handed_to(one, arm) for one in {*board.by_member, *board.claimed, *waiting}
    }
    later = Counter(handed)
    later.update(waiting)
    in_the_end = sorted(later.values(), reverse=True)
    fair = in_the_end[tolerate] if len(in_the_end) > tolerate else 0
    return {one: min(count, max(0, fair + 1 - handed[one])) for one, count in waiting.items()}


def _both(board: Board, arm: int, other: int) -> Worst:
    counts, sums = board.record.counts, board.record.sums
    return counts[arm], sums[arm], counts[other], sums[other]


# A broadcast changes the record of one arm, and open arms are asked for again and again in between.
@lru_cache(maxsize=2**10)
def _trimmed(counts: tuple[int, ...], sums: tuple[float, ...], tolerate: int) -> float:
    return trimmed_mean(counts, sums, len(counts), tolerate)


@lru_cache(maxsize=2**10)
def _worst(
    counts: tuple[int, ...],
    sums: tuple[float, ...],
    leads: tuple[int, ...],
    wins: tuple[float, ...],
    record: Worst,
    tolerate: int,
) -> Worst:
    return worst_record(counts, sums, leads, wins, len(counts), record, tolerate)


# --- the parameter --------------------------------------------------------------------------------------------


def checked_tolerate(tolerate: object) -> int:
    """Return how many liars are tolerated as a whole number."""
    return count("tolerate", tolerate, at_least=0)


def check_agents(tolerate: int, agents: int) -> None:
    """Refuse to tolerate as many liars as there are agents."""
    if tolerate and tolerate >= agents:
        raise InputError(f"tolerate is {tolerate}; it must be below the number of agents, which is {agents:,}.")


TOLERATE = Parameter(
    name="tolerate",
    default=0,
    summary="how many members may lie without misleading the others",
    allowed="a whole number of at least 0, below the number of members",
    check=checked_tolerate,
    quiet=True,
)


class ToleratesLiars(BuiltIn):
    """A built-in rule with the parameter `tolerate`."""

    @property
    def offers(self) -> bool:
        """Whether an agent may have to wait with an arm until others caught up: where members may lie."""
        return bool(self.tolerate)

    def leading(self, board: Board) -> int | None:
        """Return the active arm with the highest trimmed mean, if members may lie."""
        active = board.actives() if self.tolerate else []
        return best_trimmed(board, active, self.tolerate) if active else None

    def offered(
        self, board: Board, member: Hashable, shares: Collection[int], opened: Collection[int]
    ) -> Collection[int]:
        """Return the open arms that a member may explore, if members may lie; otherwise all that it shares."""
        return offered(board, member, shares, opened, self.tolerate) if self.tolerate else shares

    def prepare(self, game: "Game") -> "Game":
        """Check that not all agents may lie."""
        check_agents(self.tolerate, game.agents)
        return game
