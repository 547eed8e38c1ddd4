"""Does everyone gain from taking part? Equal-share settlements on random games, compared with a learner alone.

    python -m bench.individual_rationality                  # compared with 2-UCB alone
    python -m bench.individual_rationality --alone best
    python -m bench.individual_rationality --viable         # which finished runs are viable, by which terms

For each game the agent with the highest mean incentive regret is compared with the learner. IR *fails* if the agent
is above it by more than two standard errors of the difference. The worst of many agents over few runs looks worse
than it is, so failures are played again for that agent, with another seed and more runs.
"""

import argparse
import json
import math
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from partage import BalancedETC, BalancedGLR, Game, Sharing, TwoUCB, bernoulli, play, play_run
from partage.board import Board, Record
from partage.settle import ALONE, COVERAGE, first_terms, settlement_for
from partage.settle.core import settle

RULES = (BalancedETC(), BalancedGLR())
SETTLEMENTS = ("equal-share", "equal-share-expected")
PATTERNS = ("dealt", "round-robin", "random", "neighbours", "scarce-best")
AGAIN = 5  # times the runs, where IR fails at first


class Case(NamedTuple):
    """One rule and settlement on one game: the worst agent and a learner alone, with standard errors."""

    game: int
    pattern: str
    agents: int
    arms: int
    horizon: int
    rule: str
    settlement: str
    incentive: float
    incentive_stderr: float
    alone: float
    alone_stderr: float
    bare: float  # the highest mean regret before any payment
    finished: float
    viable: float
    profit: float

    @property
    def excess(self):
        """By how many standard errors the agent is above the learner alone."""
        gap, spread = self.incentive - self.alone, math.hypot(self.incentive_stderr, self.alone_stderr)
        return gap / spread if spread > 0 else math.copysign(math.inf, gap) if gap else 0.0

    @property
    def verdict(self):
        if self.incentive <= self.alone:
            return "holds"
        return "fails" if self.excess > 2 else "undecided"


def random_game(generator):
    """Draw arms, sharing and horizon; every arm is shared."""
    arms = int(generator.integers(2, 11))
    agents = round(math.exp(generator.uniform(math.log(2), math.log(200))))
    horizon = round(10 ** generator.uniform(3, 6))
    means = generator.random(arms)
    pattern = str(generator.choice(PATTERNS))
    if agents < arms and pattern != "dealt":
        pattern = "neighbours"
    if pattern == "dealt":  # each arm goes to one agent, and to each other agent with probability 1/N
        rows = [set(np.flatnonzero(generator.random(arms) < 1 / arms).tolist()) for _ in range(agents)]
        for arm in range(arms):
            rows[int(generator.integers(agents))].add(arm)
        sharing = Sharing.lists(rows, arms)
    elif pattern == "random":
        sharing = Sharing.random(agents, arms)
    elif pattern == "neighbours":
        sharing = Sharing.neighbours(agents, arms, int(generator.integers(max(1, arms - agents + 1), arms + 1)))
    elif pattern == "scarce-best":
        sharing = Sharing.scarce_best(agents, arms, np.argsort(-means)[:2].tolist())
    else:
        sharing = Sharing.round_robin(agents, arms)
    return pattern, Game(bernoulli(means), sharing, horizon)


def measure(number, runs, seed, bar, coverage):
    """Return a case for each rule and settlement on one game, and the second case where IR fails."""
    pattern, game = random_game(np.random.default_rng([seed, number]))
    alone, cases = {}, []

    def against(rule, settlement, runs, seed, agent=None):
        if (runs, seed) not in alone:
            # separate seeds: paired runs would need their covariance
            terms = {"runs": 4 * runs, "seed": seed + 10**6, "settlement": "none", "baseline": True, "jobs": 1}
            alone[runs, seed] = play(game.alone(), TwoUCB(), alone=bar, **terms).bar
        terms = {"settlement": settlement, "alone": bar, "coverage": coverage}
        result = play(game, rule, runs=runs, seed=seed, baseline=False, jobs=1, **terms)
        worst = result.worst_agent if agent is None else agent
        bare = result.individual_regret(int(np.argmax(result.folded.regret))).mean
        case = Case(
            number, pattern, game.agents, len(game.arms), game.horizon, rule.name, settlement,
            *result.incentive_regret(worst), *alone[runs, seed], bare,
            result.finished, result.viable, result.controller_profit.mean,
        )  # fmt: skip
        return worst, case

    for rule in RULES:
        for settlement in SETTLEMENTS:
            worst, case = against(rule, settlement, runs, 2 * number)
            again = case.verdict == "fails"
            cases.append((case, against(rule, settlement, AGAIN * runs, 2 * number + 1, worst)[1] if again else None))
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alone", default="two-ucb", choices=ALONE, help="the learner that agents are compared with")
    parser.add_argument("--coverage", type=float, default=COVERAGE)
    parser.add_argument("--viable", action="store_true", help="count the finished runs that are not viable, by terms")
    parser.add_argument("--out", help="write every case to this file, one line of JSON each")
    asked = parser.parse_args()
    if asked.viable:
        return count_viable(asked.games, asked.runs, asked.seed)
    started, done = time.perf_counter(), {}
    with (
        open(asked.out or os.devnull, "w", encoding="utf-8") as out,
        ProcessPoolExecutor(2, get_context("spawn")) as pool,
    ):
        waiting = [
            pool.submit(measure, number, asked.runs, asked.seed, asked.alone, asked.coverage)
            for number in range(asked.games)
        ]
        for finished in as_completed(waiting):
            cases = finished.result()
            done[cases[0][0].game] = cases
            for first, again in cases:
                out.write(json.dumps([first._asdict(), again and again._asdict()]) + "\n")
            out.flush()
            print(f"\r{len(done)} games, {time.perf_counter() - started:.0f} s", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    report([case for number in sorted(done) for case in done[number]])


def count_viable(games, runs, seed):
    """Settle the same records of Balanced-GLR by several terms; print how many were finished, and not viable."""
    rule, counts = BalancedGLR(), Counter()
    for number in range(games):
        _, game = random_game(np.random.default_rng([seed, number]))
        for name in SETTLEMENTS:
            two_ucb = settlement_for(name, rule, alone="two-ucb")
            terms = {
                "1 - 2/T, 2-UCB (formats 1 and 2)": first_terms(two_ucb),
                "0.99, 2-UCB": two_ucb,
                "0.99, best": settlement_for(name, rule),
                "0.9, best": settlement_for(name, rule, coverage=0.9),
            }
            for run in range(runs):
                tally = play_run(game, rule, seed=2 * number, run=run)
                board = Board(game.horizon, range(len(game.arms)), (game.sharing.sharers() > 0).tolist())
                board.record = Record(tally.broadcasts.tolist(), tally.sums.tolist())
                board.active = tally.active.tolist()
                for words, settlement in terms.items():
                    settled = settle(settlement, board, (tally.explore + tally.commit).tolist())
                    counts[name, words, "finished"] += settled.finished
                    counts[name, words, "not viable"] += settled.finished and not settled.viable
    for name, words in dict.fromkeys(key[:2] for key in counts):
        done, lost = counts[name, words, "finished"], counts[name, words, "not viable"]
        print(f"{name}, {words}: {done} of {games * runs} finished, {lost} of these not viable")


def report(cases):
    """Print counts by rule and settlement, and every failure."""
    console = Console(width=None if Console().is_terminal else 170)
    counts = Table(title="Is every agent at least as well off as alone? Games by verdict")
    columns = ("rule", "settlement", "games", "holds", "undecided", "fails", "fails again")
    for column in (*columns, "finished", "viable", "profit >= 0", "bare regret above it"):
        counts.add_column(column, justify="right")
    for rule, settlement in dict.fromkeys((first.rule, first.settlement) for first, _ in cases):
        some = [(first, again) for first, again in cases if (first.rule, first.settlement) == (rule, settlement)]
        verdicts = Counter(first.verdict for first, _ in some)
        counts.add_row(
            rule,
            settlement,
            str(len(some)),
            *(str(verdicts[name]) for name in ("holds", "undecided", "fails")),
            str(sum(again is not None and again.verdict == "fails" for _, again in some)),
            str(sum(first.finished == 1 for first, _ in some)),
            str(sum(first.viable == 1 for first, _ in some)),
            str(sum(first.profit >= -1e-9 * first.alone for first, _ in some)),
            str(sum(first.bare > first.alone for first, _ in some)),
        )
    console.print(counts)

    failures = Table(title=f"Where it fails at first, and again with {AGAIN} times the runs")
    columns = ("game", "sharing", "M", "N", "T", "rule", "settlement", "incentive regret", "alone", "bare")
    for column in (*columns, "finished", "viable", "again", "alone again", "verdict"):
        failures.add_column(column, justify="right")
    for first, again in cases:
        if again is not None:
            failures.add_row(
                str(first.game), first.pattern, str(first.agents), str(first.arms), f"{first.horizon:,}",
                first.rule.removeprefix("balanced-"), first.settlement.removeprefix("equal-share") or "upper end",
                f"{first.incentive:.1f} ± {first.incentive_stderr:.1f}",
                f"{first.alone:.1f} ± {first.alone_stderr:.1f}",
                f"{first.bare:.1f}", f"{first.finished:.2f}", f"{first.viable:.2f}",
                f"{again.incentive:.1f} ± {again.incentive_stderr:.1f}",
                f"{again.alone:.1f} ± {again.alone_stderr:.1f}", again.verdict,
            )  # fmt: skip
    console.print(failures)


if __name__ == "__main__":
    main()
