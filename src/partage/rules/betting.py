"""The bets of Balanced-GLR on the board: how its public state changes with each broadcast (docs/betting.md)."""

import copy
import math
from collections.abc import Sequence
from typing import Any

from partage.betting import GRID, LOG_MIXED, contest, largest_bet, log_wealth, lost, pooled_mean, won
from partage.board import Board, Record
from partage.rules.weighing import Weighed, growth, weighed

_NO_BETS = [0.0] * GRID
_NOTHING = [0, 0.0, _NO_BETS]  # count, sum, row of bets


def betting_threshold(horizon: int) -> float:
    """Return the logarithm of the wealth from which an arm is eliminated: log T.

    With it, the best arm is eliminated at any time with probability at most 1/T.
    """
    return math.log(horizon)


def first_state(arms: int) -> dict[str, Any]:
    """Return the state before the first broadcast.

    - `leader`: the leader; None before the first broadcast.
    - `against`, `on`: for each arm, the rows of bets against it and on it; None if it was never broadcast.
    - `leaders`: count, sum and row of bets on the rewards of whichever arm led when the reward came.
    - `led`: for each arm, the part of that in which it led itself; None if there is none.
    - `evidence`: for each arm, the largest bet against it and on the leader, at the pooled mean of both; at least 0.
    - `record`: counts and sums of the rewards that bets were made on, if the bets began on a board with a record.
    """
    return {
        "leader": None,
        "against": [None] * arms,
        "on": [None] * arms,
        "leaders": _NOTHING,
        "led": [None] * arms,
        "evidence": [0.0] * arms,
    }


def bets_on(board: Board) -> Board:
    """Return the board that the bets see: with only the rewards that bets were made on.

    This is the whole record, unless a member's broadcasts were set aside. The bets then started afresh, because what
    they had won depended on the order of all rewards.
    """
    if not board.state or "record" not in board.state:
        return board
    seen = copy.copy(board)
    counts, sums = board.state["record"]
    seen.record = Record(counts, sums, board.record.latest, board.record.latest_reward)
    return seen


def evidence_of(board: Board) -> list[float]:
    """Return the evidence against each arm."""
    return board.state["evidence"] if board.state else [0.0] * board.arms


def revise_by_betting(board: Board, slack: float = 0.0) -> None:
    """Settle the bets on the latest broadcast, and eliminate every arm that is then beaten, but never the leader.

    Only arms whose wealth or evidence may have changed are looked at.
    """
    arm, reward = board.record.latest, board.record.latest_reward
    if arm is None or reward is None:  # the record was not built by broadcasts
        if board.state is None and any(board.counts):
            board.state = first_state(board.arms) | {"record": [[0] * board.arms, [0.0] * board.arms]}
        return
    state = board.state = _settled(board.state or first_state(board.arms), arm, reward)
    board = bets_on(board)
    seen = [i for i in board.actives() if board.counts[i]]
    before, leader = state["leader"], board.best(seen)
    state["leader"] = leader
    threshold = betting_threshold(board.horizon) + slack
    for i in seen:
        if i == leader:
            continue
        if arm in (i, before) or i == before:  # the wealth of a leader was not looked at
            board.active[i] = not _is_beaten(board, i, threshold)
        # Also if the arm is eliminated: where rounding decides that, another machine may keep it, with this evidence.
        if arm in (i, leader) or leader != before:
            state["evidence"][i] = _evidence(board, i, leader)


def weigh_bets(board: Board) -> Weighed:
    """Return what the bets against each arm have won, as the logarithm of the wealth at the pooled mean."""
    threshold, state, bets = betting_threshold(board.horizon), board.state, bets_on(board)

    def weigh(arm: int) -> tuple[float, float]:
        if not state["against"][arm]:
            return 0.0, math.inf
        leaders, own = state["leaders"], state["led"][arm] or _NOTHING
        led, count, total = leaders[0] - own[0], bets.counts[arm], bets.record.sums[arm]
        q = pooled_mean(count, total, led, leaders[1] - own[1])
        won_so_far = log_wealth(q, count, state["against"][arm], led, leaders[2], own[2])[0]
        # The test asks for the least wealth over all q, which may still be below the threshold.
        shown = min(won_so_far, threshold) if board.active[arm] else won_so_far
        return shown, growth(state["evidence"][arm], threshold + LOG_MIXED, 0.0)

    return weighed(board, state["leader"] if state else None, threshold, weigh)


def _settled(state: dict[str, Any], arm: int, reward: float) -> dict[str, Any]:
    """Return the state with a reward added to the bets. Lists that change are copied: views may hold the old ones."""
    losses, gains = ([bet(g, reward) for g in range(GRID)] for bet in (lost, won))
    state = {key: list(value) if isinstance(value, list) else value for key, value in state.items()}
    state["against"][arm] = _sums(state["against"][arm] or _NO_BETS, losses)
    state["on"][arm] = _sums(state["on"][arm] or _NO_BETS, gains)
    if "record" in state:
        counts, sums = (list(part) for part in state["record"])
        counts[arm] += 1
        sums[arm] += reward
        state["record"] = [counts, sums]
    if arm == state["leader"]:
        one = [1, reward, gains]
        state["leaders"] = _added(state["leaders"], one)
        state["led"][arm] = _added(state["led"][arm] or _NOTHING, one)
    return state


def _added(record: Sequence[Any], one: Sequence[Any]) -> list[Any]:
    return [record[0] + one[0], record[1] + one[1], _sums(record[2], one[2])]


def _sums(row: Sequence[float], other: Sequence[float]) -> list[float]:
    return [a + b for a, b in zip(row, other, strict=True)]


def _is_beaten(board: Board, arm: int, threshold: float) -> bool:
    """Whether the wealth of betting against an arm, and on the leaders other than it, reaches the threshold."""
    state, count, total = board.state, board.counts[arm], board.record.sums[arm]
    leaders, own = state["leaders"], state["led"][arm] or _NOTHING
    led = leaders[0] - own[0]
    q = pooled_mean(count, total, led, leaders[1] - own[1])
    beaten, _, _ = contest(threshold, q, count, state["against"][arm], led, leaders[2], own[2])
    return beaten


def _evidence(board: Board, arm: int, leader: int) -> float:
    """Return the largest bet against an arm and on the leader's whole record, at their pooled mean; at least 0."""
    state, counts, sums = board.state, board.counts, board.record.sums
    q = pooled_mean(counts[arm], sums[arm], counts[leader], sums[leader])
    bets = largest_bet(q, counts[arm], state["against"][arm], counts[leader], state["on"][leader], _NO_BETS)
    return max(0.0, bets)
