"""How often the best arm is ever eliminated, on hard games with short horizons: at most 1/T is promised.

    python -m bench.wrong_eliminations

Each run notes whether arm 0, one of the best, was eliminated at any time, even if it became active again later.
"""

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

from partage import KLETC, BalancedGLR, Beta, Game, Sharing, bernoulli
from partage.compiled import compiled
from partage.engine import balanced_glr, kl_etc
from partage.engine.decisions import new_case, open_arms, revise
from partage.engine.rewards import TAPE, TIE_ORDER, next_reward, permutation, ranks, run_keys
from partage.engine.tally import game_table

GAMES = {
    "0.5, 0.45": bernoulli([0.5, 0.45]),
    "0.5, 0.5": bernoulli([0.5, 0.5]),
    "0.9, 0.85": bernoulli([0.9, 0.85]),
    "0.05, 0.02": bernoulli([0.05, 0.02]),
    "0.5, 0.45, 0.45": bernoulli([0.5, 0.45, 0.45]),
    "0.5, 0.5, 0.5": bernoulli([0.5, 0.5, 0.5]),
    "beta(0.1, 0.1) twice": [Beta(0.1, 0.1)] * 2,
    "beta(0.1, 0.1) thrice": [Beta(0.1, 0.1)] * 3,
}
HORIZONS = (5, 10, 20, 50, 100, 200)
RUNS = {5: 200_000, 10: 200_000, 20: 60_000, 50: 30_000, 100: 20_000, 200: 10_000}


@compiled
def watch(game, rule, keys):
    """Return in how many runs arm 0 was eliminated at any time; pull by pull, as the reference plays the rule."""
    wrong = 0
    counts, sums = np.zeros(game.arms, np.int64), np.zeros(game.arms)
    active = np.zeros(game.arms, np.bool_)
    word, group_of = np.zeros(game.arms, np.uint64), np.full(game.arms, -1)
    for run in range(len(keys)):
        k0, k1 = keys[run, 0], keys[run, 1]
        tie_order = permutation(k0, k1, TIE_ORDER, game.arms)
        rank = ranks(tie_order)
        counts[:], sums[:], active[:], group_of[:] = 0, 0.0, True, -1
        case, leader = new_case(rule, game.arms), tie_order[0]
        eliminated = False
        n_active = open_arms(rule, 0, counts, sums, active, leader, case)
        for pull in range(game.agents * game.horizon):
            agent = pull % game.agents
            arm = -1
            for entry in range(game.starts[agent], game.starts[agent + 1]):
                i = game.shared[entry]
                if case.opened[i] and (
                    arm < 0 or counts[i] < counts[arm] or (counts[i] == counts[arm] and rank[i] < rank[arm])
                ):
                    arm = i
            if arm < 0:
                continue
            reward = next_reward(k0, k1, game.rewards, arm, counts[arm], TAPE, word, group_of)
            sums[arm] += reward
            counts[arm] += 1
            leader = revise(rule, game.two_log, arm, reward, counts, sums, active, game.public, rank, leader, case)
            eliminated |= not active[0]
            n_active = open_arms(rule, 0, counts, sums, active, leader, case)
            if eliminated or n_active <= 1:  # nothing more is shared
                break
        wrong += eliminated
    return wrong


@lru_cache(maxsize=8)
def _keys(seed, runs):
    """Return the keys of some runs, which many games share."""
    return run_keys(seed, 0, runs)


def wrong_eliminations(arms, horizon, agents, runs, seed=0, rule=None):
    """Return in how many runs arm 0 was ever eliminated. A single agent shares all arms; several share one each."""
    sharing = Sharing.everything(1, len(arms)) if agents == 1 else Sharing.round_robin(agents, len(arms))
    table = game_table(Game(arms, sharing, horizon))
    kernel = kl_etc if isinstance(rule, KLETC) else balanced_glr
    return int(watch(table, kernel.rule_table(rule or BalancedGLR(indifference=False), table), _keys(seed, runs)))


def interval(wrong, runs):
    """Return the exact (Clopper-Pearson) interval at 99 % confidence."""
    return stats.binomtest(wrong, runs).proportion_ci(0.99, method="exact")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rule", choices=["balanced-glr", "kl-etc"], default="balanced-glr")
    parser.add_argument("--evidence", choices=["likelihood", "betting"], default="likelihood", help="of balanced-glr")
    parser.add_argument("--scale", type=float, default=1.0, help="times the runs")
    asked = parser.parse_args()
    rule = BalancedGLR(evidence=asked.evidence, indifference=False) if asked.rule == "balanced-glr" else KLETC()
    tasks = [(name, horizon, agents) for name in GAMES for horizon in HORIZONS for agents in (1, 3)]

    def measure(task):
        name, horizon, agents = task
        runs = round(asked.scale * RUNS[horizon])
        return wrong_eliminations(GAMES[name], horizon, agents, runs, asked.seed, rule), runs

    started = time.perf_counter()
    wrong_eliminations(GAMES["0.5, 0.5"], 5, 1, 1, 0, rule)  # compiles
    with ThreadPoolExecutor(2) as pool:
        measured = dict(zip(tasks, pool.map(measure, tasks)))

    table = Table(
        title=f"{asked.rule} ({asked.evidence}): runs in which the best arm was ever eliminated, in % (99 % interval)"
    )
    for column in ("arms", "agents", *(f"T = {horizon}" for horizon in HORIZONS)):
        table.add_column(column, justify="left" if column == "arms" else "right")
    table.add_row("allowed: 1/T", "", *(f"{100 / horizon:.3g}" for horizon in HORIZONS), end_section=True)
    above = 0
    for name in GAMES:
        for agents in (1, 3):
            cells = []
            for horizon in HORIZONS:
                wrong, runs = measured[name, horizon, agents]
                low, high = interval(wrong, runs)
                above += low > 1 / horizon
                mark = " ABOVE" if low > 1 / horizon else ""
                cells.append(f"{100 * wrong / runs:.2g} ({100 * low:.2g} to {100 * high:.2g}){mark}")
            table.add_row(name, str(agents), *cells)
    console = Console(width=None if Console().is_terminal else 190)
    console.print(table)
    worst = max(high * task[1] for task, (wrong, runs) in measured.items() for high in [interval(wrong, runs)[1]])
    console.print(
        f"{sum(runs for _, runs in measured.values()):,} runs; {above} of {len(tasks)} cells above 1/T; "
        f"the highest upper end is {worst:.2f} times 1/T. {time.perf_counter() - started:.0f} s."
    )


if __name__ == "__main__":
    main()
