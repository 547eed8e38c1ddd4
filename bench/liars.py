"""Members that lie, against Balanced-GLR that tolerates 0, 1 or 2: prints the tables of docs/bounded-influence.md.

    python -m bench.liars

Members ask in turn, liars `pace` times each turn. A liar reports what its attack says of every claim. All members
share all arms, and the best arm is the first.
"""

import argparse

import numpy as np

from partage import BalancedGLR, Game, Sharing, bernoulli, play
from partage.clock import TICKS
from partage.compiled import compiled, inner
from partage.engine.balanced_glr import rule_table
from partage.engine.bounded import _best_trimmed, _enter, _new_books, _open_arms, _revise_glr
from partage.engine.tally import game_table

THREE = [0.9, 0.8, 0.6]
PAPER = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]
PROMOTE, BURY, HOLD = range(3)
_TICKS = np.array(TICKS)


@inner
def _told(attack, target, arm, reward, counts, sums, late):
    """Return what a liar reports of a claim on an arm."""
    if attack == PROMOTE:  # one arm is always good, all others are always bad
        return 1.0 if arm == target else 0.0
    if arm != 0:
        return reward
    if attack == BURY or late:
        return 0.0
    highest = 0.0  # hold the best arm just below the leader, and bury it late
    for i in range(1, len(counts)):
        highest = max(highest, sums[i] / max(1, counts[i]))
    return 0.0 if sums[0] >= highest * counts[0] else 1.0


@compiled
def play_liars(rule, means, agents, horizon, liars, pace, attack, target, seed):
    """Play one run in which the last `liars` members lie.

    Returns the mean regret of an honest member, the broadcasts, the last leader and the active arms.
    """
    np.random.seed(seed)
    arms = len(means)
    firsts = np.arange(arms + 1) * agents
    rank = np.random.permutation(arms)
    counts, sums, active = np.zeros(arms, np.int64), np.zeros(arms), np.ones(arms, np.bool_)
    books = _new_books(agents, arms, firsts, rule.tolerate)
    compared, leader = np.int64(-1), _best_trimmed(active, rank, books)
    used = np.zeros(agents, np.int64)
    honest, pulls, clock, tick, regret = agents - liars, 0, np.int64(0), 0, 0.0
    contenders = _open_arms(rule, clock, counts, active, compared, books)
    for _turn in range(horizon):
        for agent in range(agents):
            for _ in range(1 if agent < honest else pace):
                if used[agent] == horizon:
                    break
                if _TICKS[tick] <= pulls:
                    clock, tick = _TICKS[tick], tick + 1
                    contenders = _open_arms(rule, clock, counts, active, compared, books)
                used[agent] += 1
                pulls += 1
                arm = np.int64(-1)
                slot = books.slots[agent]
                own = np.int64(0)
                for i in range(arms if contenders > 1 else 0):
                    mine = books.told[i, slot] if slot >= 0 and rule.tolerate > 0 else np.int64(0)
                    first = arm < 0 or (mine, counts[i], rank[i]) < (own, counts[arm], rank[arm])
                    if books.opened[i] and mine <= books.fair[i] and first:
                        arm, own = np.int64(i), mine
                if arm < 0:
                    regret += means[0] - means[leader] if agent < honest else 0.0
                    continue
                reward = 1.0 if np.random.random() < means[arm] else 0.0
                if agent < honest:
                    regret += means[0] - means[arm]
                else:
                    reward = _told(attack, target, arm, reward, counts, sums, 2 * pulls > agents * horizon)
                counts[arm] += 1
                sums[arm] += reward
                _enter(rule, agent, arm, reward, books)
                compared = _revise_glr(rule, arm, counts, sums, active, rank, compared, books)
                leader = _best_trimmed(active, rank, books)
                contenders = _open_arms(rule, clock, counts, active, compared, books)
    return regret / honest, counts.sum(), leader, active


def attacked(means, agents, horizon, tolerate, liars, pace, attack, target, runs, seed):
    """Return honest regret, broadcasts, whether the best arm led, and whether it was eliminated, by run."""
    game = Game(bernoulli(means), Sharing.everything(agents, len(means)), horizon)
    rule = rule_table(BalancedGLR(tolerate=tolerate), game_table(game))
    found = []
    for run in range(runs):
        regret, broadcasts, leader, active = play_liars(
            rule, np.array(means), agents, horizon, liars, pace, attack, target, 1000 * seed + run
        )
        found.append((regret, broadcasts, leader == 0, not active[0]))
    return np.array(found, float)


def shown(values):
    """Return a mean and its standard error."""
    digits = 2 if abs(values.mean()) < 10 else 1 if abs(values.mean()) < 1000 else 0
    return f"{values.mean():,.{digits}f} ± {values.std(ddof=1) / np.sqrt(len(values)):,.{digits}f}"


def price(title, game, runs, seed):
    """Print what tolerating costs where nobody lies."""
    for tolerate in (0, 1, 2):
        result = play(game, BalancedGLR(tolerate=tolerate), runs=runs, seed=seed, settlement="none", baseline=False)
        regret = result.folded.figures[:, 0] / game.agents
        sent = result.broadcasts
        print(f"{title} | {tolerate} | {shown(regret)} | {sent.mean:,.0f} ± {sent.stderr:,.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--only", choices=["price", "paper", "attacks"])
    parser.add_argument("--attack", default="", help="only attacks whose name has this in it")
    asked = parser.parse_args()
    runs, seed = asked.runs, asked.seed

    if asked.only in (None, "price"):
        print("# Price: regret per member, and broadcasts, where nobody lies (by `tolerate`)")
        price("0.9/0.8/0.6, M = 11, T = 10^4", Game(bernoulli(THREE), Sharing.everything(11, 3), 10**4), runs, seed)
    if asked.only in (None, "paper"):
        price("paper, M = 100, T = 10^5", Game(bernoulli(PAPER), Sharing.round_robin(100, 10), 10**5), runs, seed)

    if asked.only in (None, "attacks"):
        print("# 0.9/0.8/0.6, M = 11, T = 10^4: right arm leads at the end, regret per honest member, broadcasts")
        attacks = {
            "promote 0.8, three times as often": (3, PROMOTE, 1),
            "promote 0.6, three times as often": (3, PROMOTE, 2),
            "promote 0.6": (1, PROMOTE, 2),
            "bury 0.9": (1, BURY, 0),
            "hold 0.9 just below, then bury it": (1, HOLD, 0),
        }
        for name, (pace, attack, target) in attacks.items():
            if asked.attack not in name:
                continue
            for liars in (1, 2, 3, 4):
                for tolerate in (0, 1, 2):
                    found = attacked(THREE, 11, 10**4, tolerate, liars, pace, attack, target, runs, seed)
                    print(
                        f"{name} | {liars} | {tolerate} | {found[:, 2].mean():.0%} | {shown(found[:, 0])} | "
                        f"{shown(found[:, 1])} | best eliminated {found[:, 3].mean():.0%}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
