"""The bets of Balanced-GLR on the board: how its public state changes with each broadcast (docs/betting.md)."""

import math
from typing import Any

from partage.betting import GRID, is_beaten, largest_bet, lost, pooled_mean, won
from partage.board import Board

_NO_BETS = [0.0] * GRID


def betting_threshold(horizon: int) -> float:
    """Return the logarithm of the wealth from which an arm is eliminated: log T.

    With it, the best arm is eliminated at any time with probability at most 1/T.
    """
    return math.log(horizon)


def first_state(arms: int) -> dict[str, Any]:
    """Return the state before the first broadcast.

    - `leader`: the leader; None before the first broadcast.
    - `against`: for each arm, the row of bets against it; None if it was never broadcast.
    - `on`, `count`, `sum`: the row of bets on the arm that led when the reward came, and the record of these rewards.
    - `own`, `own_counts`, `own_sums`: the part of that from the time when the arm itself led; None if it never did.
    - `evidence`: for each arm, the largest bet at the pooled mean of arm and leaders; at least 0.
    """
    return {
        "leader": None,
        "against": [None] * arms,
        "on": _NO_BETS,
        "count": 0,
        "sum": 0.0,
        "own": [None] * arms,
        "own_counts": [0] * arms,
        "own_sums": [0.0] * arms,
        "evidence": [0.0] * arms,
    }


def evidence_of(board: Board) -> list[float]:
    """Return the evidence against each arm."""
    return board.state["evidence"] if board.state else [0.0] * board.arms


def revise_by_betting(board: Board, slack: float = 0.0) -> None:
    """Settle the bets on the latest broadcast, and eliminate every arm that is then beaten.

    The leader is never eliminated. Only arms whose wealth may have changed are looked at.
    """
    arm, reward = board.record.latest, board.record.latest_reward
    if arm is None or reward is None:  # a record that was not built by broadcasts
        return
    before = (board.state or {}).get("leader")
    state = board.state = _settled(board.state or first_state(board.arms), arm, reward)
    leader = board.best(i for i in range(board.arms) if board.active[i] and board.counts[i])
    state["leader"] = leader
    for i in range(board.arms):
        changed = arm in (before, i) or i == before
        if changed and i != leader and board.active[i] and board.counts[i]:
            q, *bets = _bets(state, board, i)
            evidence = largest_bet(q, *bets)
            state["evidence"][i] = max(0.0, evidence)
            # The wealth is at most the largest bet, which is faster to compute.
            threshold = betting_threshold(board.horizon) + slack
            board.active[i] = evidence < threshold or not is_beaten(threshold, q, *bets)


def _settled(state: dict[str, Any], arm: int, reward: float) -> dict[str, Any]:
    """Return the state with a reward added to the bets. Rows that change are new: views may hold the old ones."""
    state = {key: list(value) if isinstance(value, list) else value for key, value in state.items()}
    state["against"][arm] = [row + lost(g, reward) for g, row in enumerate(state["against"][arm] or _NO_BETS)]
    if arm == state["leader"]:
        gains = [won(g, reward) for g in range(GRID)]
        state["on"] = [row + gain for row, gain in zip(state["on"], gains, strict=True)]
        state["own"][arm] = [row + gain for row, gain in zip(state["own"][arm] or _NO_BETS, gains, strict=True)]
        state["count"] += 1
        state["sum"] += reward
        state["own_counts"][arm] += 1
        state["own_sums"][arm] += reward
    return state


def _bets(state: dict[str, Any], board: Board, arm: int) -> tuple[Any, ...]:
    """Return the arguments of `largest_bet` for an arm: the pooled mean, and its bets."""
    count, led = board.counts[arm], state["count"] - state["own_counts"][arm]
    q = pooled_mean(count, board.record.sums[arm], led, state["sum"] - state["own_sums"][arm])
    return q, count, state["against"][arm], led, state["on"], state["own"][arm] or _NO_BETS
