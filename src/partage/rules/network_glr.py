"""Network-GLR: for members who differ by a constant each (docs/network-glr.md has the argument)."""

import heapq
import math
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from partage.agreement import cells_of, on_differences
from partage.board import Board, Pull, Record
from partage.compiled import shared
from partage.contrasts import Contrasts, check_connected, pieces
from partage.errors import InputError
from partage.rules.balanced_glr import checked_lead
from partage.rules.exploring import explore_or_commit
from partage.rules.rule import BuiltIn, Parameter
from partage.rules.weighing import Weighed, growth, weighed
from partage.tape import Draws

if TYPE_CHECKING:
    from partage.game import Game

MOST_ARMS = 32  # more would take too long to compare in plain Python
GROWTH = 0.05  # a block closes once the record has grown by so much
RHO = 40.0  # the precision of the mixture, in units of information: bench/network_precision.py chose it
AHEAD = 2.0  # how much better than the contrast that is known least another may be known and still be explored


@shared
def net_information(score: float, information: float, rho: float) -> float:
    """Return the logarithm of the mixture for S > 0, which Ville's inequality bounds; -inf otherwise.

    With x^2 = S^2 / (I + rho) it is x^2 / 2 + log(2 Phi(x)) - log((I + rho) / rho) / 2, and 2 Phi(x) is at least
    2 - exp(-x^2 / 2).
    """
    if score <= 0.0:
        return -math.inf
    half = score * score / (2.0 * (information + rho))
    return half + math.log(2.0 - math.exp(-half)) - 0.5 * math.log((information + rho) / rho)


def pair(arm: int, other: int) -> int:
    """Return the place of two arms, the first of which is the larger number, in a list of all pairs."""
    return arm * (arm - 1) // 2 + other


@dataclass(frozen=True)
class NetworkGLR(BuiltIn):
    """Compare arms within members, and eliminate by contrasts: for members who differ by a constant each.

    A reward of member m's arm i has the mean alpha_m + beta_i. Rewards count in blocks: a block closes once what was
    told in it connects all open arms and the record has grown by a twentieth. Only then does anything change that
    decisions depend on, so what is pulled in a block does not depend on its rewards. Members must connect all arms:
    two arms are connected if some member shares both.

    Parameters
    ----------
    lead
        How much more often than the other open arms each member explores the leader.

    >>> from partage import Game, NetworkGLR, Sharing, Traits, bernoulli, play
    >>> traits = [Traits(offset=0.2), Traits(offset=-0.2)]
    >>> game = Game(bernoulli([0.7, 0.4]), Sharing.everything(agents=2, arms=2), horizon=2000, traits=traits)
    >>> play(game, NetworkGLR(), runs=5).arms[1].eliminated
    1.0
    """

    lead: float = 3.0

    name = "network-glr"
    summary = "Certified where members differ by a constant each: arms are compared within members."
    parameters = (
        Parameter(
            name="lead",
            default=3.0,
            summary="how much more often than the other open arms each member explores the leader",
            allowed="a finite number of at least 1",
            check=checked_lead,
        ),
    )
    live = True
    kernel = "network_glr"
    eliminates = True
    offers = True
    by_contrasts = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "lead", checked_lead(self.lead))

    @property
    def settlements(self) -> tuple[str, ...]:
        """Those that do not pay commits: what these cost depends on the member."""
        return ("none", "pool", "dues")

    def prepare(self, game: "Game") -> "Game":
        """Check that there are not too many arms, and that the agents connect them."""
        check_arms(len(game.arms))
        check_connected((game.sharing.of(agent) for agent in range(game.agents)), game.arm_names)  # type: ignore[union-attr]
        return game

    def revise(self, board: Board, slack: float = 0.0) -> None:
        """Close the block if it may be closed, and then decide which arms are active and which one leads."""
        state, told = board.state or _fresh(board.arms), sum(board.counts)
        if board.state is None:
            board.state = state
        if not _grown(state, told):
            return
        opened = self.open_arms(board)
        block = _pending(board, opened)
        found = Contrasts(block.values(), board.arms)
        reached = {found.piece[arm] for arm in board.awaited(opened, at_least=2)}
        if len(reached) != 1 or -1 in reached:
            return
        state = _closed(state, block, found, told)
        board.state = state = _without_those_who_differ(board, state)
        self._eliminate(board, state, slack)

    def _eliminate(self, board: Board, state: dict[str, Any], slack: float) -> None:
        """Eliminate the arms that some contrast shows to be worse than another; the leader has the largest effect."""
        rows = [row for member, row in state["counted"].items() if member not in state["apart"]]
        counted = Contrasts(rows, board.arms)
        totals = [sum(counts[arm] for counts, _ in rows) for arm in range(board.arms)]
        most = max(range(board.arms), key=lambda arm: (totals[arm], -board.rank[arm]))
        compared = [arm for arm in range(board.arms) if counted.connected(arm, most)]
        threshold = math.log((board.arms - 1) * board.horizon) + slack
        kept = [arm for arm in compared if not self._beaten(state, arm, board.arms, threshold)]
        best = counted.effects
        leader = min(kept or compared, key=lambda arm: (-best[arm], board.rank[arm]), default=None)
        for arm in range(board.arms):
            board.active[arm] = board.public[arm] and (arm not in compared or arm == leader or arm in kept)
        state["leader"] = board.leading = leader
        state["effects"] = [best[arm] - best[leader or 0] if arm in compared else None for arm in range(board.arms)]

    def weigh(self, board: Board) -> Weighed | None:
        """Return the strongest evidence that each arm is worse than some other, by contrasts within members."""
        threshold, state = math.log(max(1, board.arms - 1) * board.horizon), board.state or _fresh(board.arms)

        def weigh(arm: int) -> tuple[float, float]:
            best, factor = -math.inf, math.inf
            for other in range(board.arms):
                if other != arm:
                    at = pair(max(arm, other), min(arm, other))
                    score = state["scores"][at] if other > arm else -state["scores"][at]
                    information = state["information"][at]
                    best = max(best, net_information(score, information, RHO))
                    if score > 0.0:
                        raw = score * score / (2.0 * (information + RHO))
                        factor = min(factor, growth(raw, threshold + 0.5 * math.log((information + RHO) / RHO), 0.5))
            return best, factor

        return weighed(board, state["leader"], threshold, weigh)

    def _beaten(self, state: dict[str, Any], arm: int, arms: int, threshold: float) -> bool:
        """Whether the contrast to some other arm shows that the other is better."""
        scores, information = state["scores"], state["information"]
        for other in range(arms):
            if other != arm:
                at = pair(max(arm, other), min(arm, other))
                score = scores[at] if other > arm else -scores[at]  # of the other arm less this one
                if net_information(score, information[at], RHO) >= threshold:
                    return True
        return False

    def decide(
        self, board: Board, shares: Collection[int], own: Record | None = None, draws: Draws | None = None
    ) -> Pull:
        """Explore the open arm that the member is offered; commit if there is none."""
        return explore_or_commit(board, shares, own, self.open_arms(board))

    def open_arms(self, board: Board, slack: float = 0.0) -> list[int]:
        """Return the leader, the arms whose contrasts to it are known least, and the arms that connect them."""
        state = board.state or {}
        leader = state.get("leader")
        known = (0.0,) * board.arms
        if leader is not None:
            information = state["information"]
            known = tuple(
                information[pair(max(arm, leader), min(arm, leader))] if arm != leader else 0.0
                for arm in range(board.arms)
            )
        active = tuple(board.active)
        stalled = tuple(board.stalled(arm) for arm in range(board.arms))
        return list(_opened(active, leader, frozenset(board.shares.values()), known, stalled, tuple(board.rank)))

    def offered(
        self, board: Board, member: Hashable, shares: Collection[int], opened: Collection[int]
    ) -> Collection[int]:
        """Return the open arm that a member explores next: the one that it told least in this block.

        It needs two open arms to compare. Once the record has grown enough, only members whose rewards would connect
        what is not connected yet go on.
        """
        mine = [arm for arm in opened if arm in shares]
        state = board.state or _fresh(board.arms)
        if len(mine) < 2 or str(member) in state["apart"]:
            return []
        if _grown(state, sum(board.counts)):
            told = (
                [arm for arm, count in enumerate(counts) if count] for counts, _ in _pending(board, opened).values()
            )
            if any(set(mine) <= set(piece) for piece in pieces(told, opened)):
                return []
        counts, _ = state["counted"].get(str(member), (None, None))
        handed = {arm: board.handed_to(member, arm) for arm in mine}
        waiting = {arm: handed[arm] - (counts[arm] if counts else 0) for arm in mine}
        weight = {arm: self.lead if arm == state["leader"] else 1.0 for arm in mine}
        best = min(
            mine, key=lambda arm: ((waiting[arm] + 1) / weight[arm], handed[arm] / weight[arm], board.rank[arm])
        )
        return [best]

    def leading(self, board: Board) -> int | None:
        """Return the arm with the largest effect; None before the first block closes."""
        return board.state["leader"] if board.state else None

    def own_leaders(self, board: Board) -> dict[str, int]:
        """Return the members who see differences between arms in another way, and the arm that is best for each."""
        return board.state["apart"] if board.state else {}

    def shown(self, board: Board) -> Any:
        """Return the state without what each member told, which takes room."""
        return {key: value for key, value in board.state.items() if key != "counted"} if board.state else None


def check_arms(arms: int) -> None:
    """Refuse more arms than can be compared."""
    if arms > MOST_ARMS:
        raise InputError(f"There are {arms} arms; the rule network-glr compares {MOST_ARMS} at most.")


# --- blocks ---------------------------------------------------------------------------------------------------


def _fresh(arms: int) -> dict[str, Any]:
    """Return the state before any block closed."""
    pairs = arms * (arms - 1) // 2
    return {
        "told": 0,
        "counted": {},
        "scores": [0.0] * pairs,
        "information": [0.0] * pairs,
        "leader": None,
        "effects": None,
        "apart": {},
    }


def _grown(state: dict[str, Any], told: int) -> bool:
    """Whether the record has grown by a twentieth since the last block closed."""
    before: int = state["told"]
    return told > before and told >= (1.0 + GROWTH) * before


def _pending(board: Board, opened: Collection[int]) -> dict[str, tuple[list[int], list[float]]]:
    """Return what members told of open arms and no block counted yet: of members that told two of them at least."""
    counted, apart = (board.state["counted"], board.state["apart"]) if board.state else ({}, {})
    found = {}
    for member, record in board.by_member.items():
        if str(member) in apart:
            continue
        used = counted.get(str(member))
        counts, sums = [0] * board.arms, [0.0] * board.arms
        for arm in opened:
            counts[arm] = record.counts[arm] - (used[0][arm] if used else 0)
            sums[arm] = record.sums[arm] - (used[1][arm] if used else 0.0) if counts[arm] else 0.0
        if sum(count > 0 for count in counts) > 1:
            found[str(member)] = counts, sums
    return found


def _closed(
    state: dict[str, Any], block: dict[str, tuple[list[int], list[float]]], found: Contrasts, told: int
) -> dict[str, Any]:
    """Return the state with a block counted. It is a new one: views may hold the old one."""
    counted = dict(state["counted"])
    for member, (counts, sums) in block.items():
        before = counted.get(member, ([0] * found.arms, [0.0] * found.arms))
        counted[member] = [_sum(before[0], counts), _sum(before[1], sums)]
    scores, information = list(state["scores"]), list(state["information"])
    for i in range(found.arms):
        for j in range(i):
            if found.connected(i, j):
                weight = 4.0 / found.factor(i, j)  # 1 / v: rewards in [0, 1] are sub-Gaussian with variance 1/4
                scores[pair(i, j)] += found.between(i, j) * weight
                information[pair(i, j)] += weight
    return state | {"told": told, "counted": counted, "scores": scores, "information": information}


def _without_those_who_differ(board: Board, state: dict[str, Any]) -> dict[str, Any]:
    """Return the state without members who see differences between arms in another way than the others do.

    Only what blocks counted is tested, so what is pulled next still does not depend on rewards that will count. If
    somebody is named, what the others told counts from then on as one block.
    """
    counted = {member: row for member, row in state["counted"].items() if member not in state["apart"]}
    records = {member: Record(counts, sums) for member, (counts, sums) in counted.items()}
    named = {member for one in on_differences(cells_of(records, board.arms)) for member in one.members}
    if not named:
        return state
    apart = state["apart"] | {
        str(member): _own_best(board, record) for member, record in board.by_member.items() if str(member) in named
    }
    block = {member: (row[0], row[1]) for member, row in counted.items() if member not in named}
    fresh = _fresh(board.arms) | {"apart": apart, "counted": {member: state["counted"][member] for member in apart}}
    return _closed(fresh, block, Contrasts(block.values(), board.arms), state["told"])


def _own_best(board: Board, record: Record) -> int:
    """Return the arm with the highest mean of a member's own record."""
    seen = [arm for arm in range(board.arms) if record.counts[arm]]
    return min(seen, key=lambda arm: (-record.sums[arm] / record.counts[arm], board.rank[arm]))


def _sum(some: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    return [one + other for one, other in zip(some, others, strict=True)]


# --- the graph ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=2**10)
def _opened(
    active: tuple[bool, ...],
    leader: int | None,
    shares: frozenset[frozenset[int]],
    known: tuple[float, ...],
    stalled: tuple[bool, ...],
    rank: tuple[int, ...],
) -> tuple[int, ...]:
    """Return the open arms. Nothing in it depends on rewards that no block counted."""
    near = {arm: frozenset().union(*(one for one in shares if arm in one)) - {arm} for arm in range(len(active))}
    piece = _piece_to_explore(active, leader, shares, near, rank)
    needed = [arm for arm in piece if active[arm] and arm != leader]
    if leader in piece and needed:
        least = min([known[arm] for arm in needed if not stalled[arm]] or [known[arm] for arm in needed])
        needed = [leader, *(arm for arm in needed if known[arm] <= AHEAD * least)]
    if len(needed) < 2:
        return ()
    tree = {needed[0]}
    while missing := [arm for arm in needed if arm not in tree]:
        tree |= _path(tree, missing, active, near, rank)
    return tuple(sorted(tree))


def _piece_to_explore(
    active: tuple[bool, ...],
    leader: int | None,
    shares: frozenset[frozenset[int]],
    near: dict[int, frozenset[int]],
    rank: tuple[int, ...],
) -> list[int]:
    """Return the arms that can be compared with the leader, or else most of those that can be compared."""
    found = pieces(shares, [arm for arm in near if near[arm]])
    with_leader = [piece for piece in found if leader in piece]
    found = with_leader or found
    size = {id(piece): sum(active[arm] for arm in piece) for piece in found}
    return min(found, key=lambda piece: (-size[id(piece)], min(rank[arm] for arm in piece)), default=[])


def _path(
    tree: set[int],
    targets: Collection[int],
    active: tuple[bool, ...],
    near: dict[int, frozenset[int]],
    rank: tuple[int, ...],
) -> set[int]:
    """Return the arms on the best path from the tree to the nearest target: the fewest eliminated arms, then arms."""
    heap: list[tuple[int, int, int, int, tuple[int, ...]]] = [(0, 0, rank[arm], arm, (arm,)) for arm in tree]
    heapq.heapify(heap)
    seen: set[int] = set()
    while heap:
        eliminated, length, _, arm, path = heapq.heappop(heap)
        if arm in targets:
            return set(path)
        if arm in seen:
            continue
        seen.add(arm)
        for other in near[arm]:
            if other not in seen:
                cost = eliminated + (not active[other])
                heapq.heappush(heap, (cost, length + 1, rank[other], other, (*path, other)))
    raise AssertionError("a piece is connected")
