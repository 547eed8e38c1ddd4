"""How often Balanced-GLR eliminates the best arm if good news of it is told late: the proof does not allow that.

    python -m bench.late_reports

The best arm pays 0.6 and the other 0.5; 20 agents share one arm each, T = 200. A report of the best arm that is late
reaches the board some steps after the pull; meanwhile its agent goes on. Either only its successes are late, so that
the delay depends on the reward, or all its reports are, so that it does not. The promise of 1/T assumes the latter,
unless the rule counts what is not told yet at its worst (`late = "worst"`).
"""

import argparse
import math

import numpy as np
from rich.console import Console
from rich.table import Table

from partage import BalancedGLR, Game, Sharing, bernoulli
from partage.compiled import compiled
from partage.engine import balanced_glr
from partage.engine.decisions import new_case, open_arms, revise
from partage.engine.rewards import TAPE, TIE_ORDER, next_reward, permutation, ranks, run_keys
from partage.engine.tally import game_table
from partage.evidence import apart, mixture_loss

MEANS, AGENTS, HORIZON = (0.6, 0.5), 20, 200
DELAYS = (0, 1, 2, 5, 10)  # steps
RUNS = 20_000
NOTHING = -1.0


@compiled
def worst_evidence(count, total, other_count, other_total, out, others_out):
    """Return the least evidence against an arm that the rewards which are out leave possible, less both losses."""
    count, total, other_count = count + out, total + out, other_count + others_out
    if count == 0 or other_count == 0 or total * other_count >= other_total * count:
        return -math.inf
    evidence = apart(count, total, other_count, other_total)
    return evidence - mixture_loss(count, 0.0) - mixture_loss(other_count, 0.0)


@compiled
def watch(game, rule, keys, delay, only_successes, worst):
    """Return in how many runs arm 0 was eliminated at any time, and in how many it is at the end."""
    ever, at_the_end = 0, 0
    counts, sums, drawn = np.zeros(game.arms, np.int64), np.zeros(game.arms), np.zeros(game.arms, np.int64)
    active = np.zeros(game.arms, np.bool_)
    word, group_of = np.zeros(game.arms, np.uint64), np.full(game.arms, -1)
    waiting = np.zeros(delay * game.agents + 1)  # what was pulled at each of the last turns and is not told yet
    told, rewards = np.zeros(2, np.int64), np.zeros(2)
    for run in range(len(keys)):
        k0, k1 = keys[run, 0], keys[run, 1]
        tie_order = permutation(k0, k1, TIE_ORDER, game.arms)
        rank = ranks(tie_order)
        counts[:], sums[:], drawn[:], active[:], group_of[:] = 0, 0.0, 0, True, -1
        waiting[:] = NOTHING
        case, leader = new_case(rule, game.arms), tie_order[0]
        n_active = open_arms(rule, 0, counts, sums, active, leader, case)
        eliminated, n_waiting = False, 0
        for turn in range(game.agents * game.horizon):
            agent, tells = turn % game.agents, 0
            place = turn % (delay * game.agents) if delay > 0 else 0
            if delay > 0 and waiting[place] != NOTHING:
                told[tells], rewards[tells], waiting[place] = 0, waiting[place], NOTHING
                tells, n_waiting = tells + 1, n_waiting - 1
            arm = game.shared[game.starts[agent]]
            if case.opened[arm]:
                reward = next_reward(k0, k1, game.rewards, arm, drawn[arm], TAPE, word, group_of)
                drawn[arm] += 1
                if delay > 0 and arm == 0 and (reward == 1.0 or not only_successes):
                    waiting[place] = reward
                    n_waiting += 1
                else:
                    told[tells], rewards[tells] = arm, reward
                    tells += 1
            for tell in range(tells):
                sums[told[tell]] += rewards[tell]
                counts[told[tell]] += 1
                leader = revise(
                    rule,
                    game.two_log,
                    told[tell],
                    rewards[tell],
                    counts,
                    sums,
                    active,
                    game.public,
                    rank,
                    leader,
                    case,
                )
                if worst and n_waiting > 0 and counts[0] > 0 and counts[1] > 0:
                    least = worst_evidence(counts[0], sums[0], counts[1], sums[1], n_waiting, 0)
                    active[0] = leader == 0 or least < rule.threshold
                    least = worst_evidence(counts[1], sums[1], counts[0], sums[0], 0, n_waiting)
                    active[1] = leader == 1 or least < rule.threshold
                eliminated |= not active[0]
                n_active = open_arms(rule, 0, counts, sums, active, leader, case)
            if n_active <= 1 and n_waiting == 0:  # nothing more is shared
                break
        ever += eliminated
        at_the_end += not active[0]
    return ever, at_the_end


def wrong_eliminations(delay, only_successes, runs, seed=0, worst=False):
    """Return in how many runs the best arm was eliminated at any time, and in how many it is at the end."""
    table = game_table(Game(bernoulli(MEANS), Sharing.round_robin(AGENTS, len(MEANS)), HORIZON))
    rule = balanced_glr.rule_table(BalancedGLR(indifference=False), table)
    return watch(table, rule, run_keys(seed, 0, runs), delay, only_successes, worst)


def percent(wrong, runs):
    """Return a percentage of runs with its standard error."""
    part = wrong / runs
    return f"{100 * part:.2f} ± {100 * math.sqrt(part * (1 - part) / runs):.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    table = Table(
        title=f"Runs of {asked.runs:,} in which the best arm is eliminated, in %; allowed: {100 / HORIZON:g}"
    )
    for column in (
        "late",
        "steps",
        "at any time",
        "at the end",
        "at any time, late = worst",
        "at the end, late = worst",
    ):
        table.add_column(column, justify="right")
    for only_successes in (True, False):
        for delay in DELAYS[not only_successes :]:
            ever, at_the_end = wrong_eliminations(delay, only_successes, asked.runs, asked.seed)
            late = "nothing" if delay == 0 else "successes" if only_successes else "all rewards"
            both = (ever, at_the_end, *wrong_eliminations(delay, only_successes, asked.runs, asked.seed, worst=True))
            table.add_row(late, str(delay), *(percent(wrong, asked.runs) for wrong in both))
    Console().print(table)


if __name__ == "__main__":
    main()
