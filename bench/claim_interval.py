"""What does a least time between two claims of a member cost, and what does it keep from a faker?

    python -m bench.claim_interval

Ten honest members pull once per round. With an interval of k, a member gets at most one claim in k rounds, and
commits otherwise. A faker asks 50 times in each round, and tells draws from the board's mean. Its gain is by a pool
whose members prepay enough for everything.
"""

import argparse

import numpy as np

from partage import BalancedGLR, SharedIMED
from partage.board import Board
from partage.clock import rounded
from partage.settle import settlement_for
from partage.settle.core import rates_of

MEANS = np.array([0.9, 0.8, 0.6])
HONEST = 10
PACE = 50  # how often the faker asks in a round
INTERVALS = (0, 1, 2, 5, 20, 100)
RULES = {"Shared-IMED": SharedIMED(), "Balanced-GLR": BalancedGLR()}


def play(rule, horizon, interval, faker, random):
    """Play one run. Return what all honest members lose, the broadcasts, and what the faker gains."""
    arms, members = len(MEANS), HONEST + faker
    board = Board(horizon, [int(arm) for arm in random.permutation(arms)], [True] * arms)
    board.all_pulls = members * horizon
    shares = [frozenset({agent % arms}) for agent in range(HONEST)] + [frozenset({1, 2})] * faker
    free, told, regret, pulls = [0] * members, np.zeros((members, arms), int), 0.0, 0
    for now in range(horizon):
        for agent in reversed(range(members)):
            for _ in range(PACE if agent == HONEST else 1):
                board.clock = rounded(pulls)
                arm, share = rule.decide(board, shares[agent]) if now >= free[agent] else (board.leader(), False)
                if not share and agent == HONEST:
                    break
                pulls += 1
                if agent < HONEST:
                    regret += MEANS.max() - MEANS[arm]
                if share:
                    mean = MEANS[arm] if agent < HONEST else board.mean(arm) if board.counts[arm] else 0.5
                    board.broadcast(agent, arm, float(random.random() < mean))
                    rule.revise(board)
                    told[agent, arm] += 1
                    free[agent] = now + interval
    rates = np.array(rates_of(settlement_for("pool", rule, prepaid=1.0), board))
    earned = told @ rates
    return regret, told.sum(), earned[-1] - earned.sum() / members


def shown(values):
    return f"{np.mean(values):,.1f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):,.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("--horizon", type=int, default=2000)
    asked = parser.parse_args()
    for name, rule in RULES.items():
        for interval in INTERVALS:
            games = [
                [
                    play(rule, asked.horizon, interval, faker, np.random.default_rng([asked.seed, run]))
                    for faker in (0, 1)
                ]
                for run in range(asked.runs)
            ]
            honest, liar = (np.array([game[faker] for game in games]) for faker in (0, 1))
            words = f"honest regret {shown(honest[:, 0])} with {shown(honest[:, 1])} broadcasts"
            print(f"{name}, interval {interval}: {words}; a faker gains {shown(liar[:, 2])}", flush=True)


if __name__ == "__main__":
    main()
