"""Does everyone gain from taking part in a pool, or with dues? Honest members, compared with both bars.

    python -m bench.prepaid                        # the paper's games, a weak case, and 200 random games
    python -m bench.prepaid --games 40 --rule shared-imed

Everyone prepays what `propose_prepaid` proposes from the numbers of arms and members, the horizon and the rule alone.
For each game the agent with the highest mean incentive regret is compared with the best learner alone, and with 2-UCB
alone. It *fails* if it is above by more than two standard errors of the difference. The worst of many agents over few
runs looks worse than it is, so failures by less than eight standard errors are played again for that agent, with
another seed and more runs.
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
from bench.individual_rationality import random_game

from partage import Game, Result, Sharing, TwoUCB, bernoulli, play, propose_prepaid
from partage.engine import play_runs
from partage.engine.rewards import run_keys
from partage.rules import make_rule
from partage.settle import settlement_for
from partage.simulate.fold import fold, new_folded

SETTLEMENTS = ("none", "pool", "dues")
BARS = ("best", "two-ucb")
AGAIN = 5  # times the runs, where it fails at first
CLEAR = 8  # standard errors: more than luck among 200 agents
NAMED = {
    "the paper's balanced game": Game(
        bernoulli([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]), Sharing.round_robin(100, 10), 10**6
    ),
    "the paper's imbalanced game": Game(
        bernoulli([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]), Sharing.scarce_best(100, 10), 10**6
    ),
    "the paper's appendix game": Game(
        bernoulli([0.95, 0.85, 0.75, 0.65, 0.55, 0.45, 0.35, 0.25, 0.15, 0.05]), Sharing.neighbours(20, 10, 2), 10**5
    ),
    "three members, scarce best arms": Game(
        bernoulli([0.9, 0.8, 0.7, 0.6]), Sharing.lists([[0], [1], [2, 3]], 4), 10**4
    ),
}


class Case(NamedTuple):
    """One settlement on one game: the worst agent and a learner alone, with standard errors."""

    game: str
    agents: int
    arms: int
    horizon: int
    rule: str
    settlement: str
    bar: str
    prepaid: float
    scale: float | None
    covered: float | None
    incentive: float
    incentive_stderr: float
    alone: float
    alone_stderr: float

    @property
    def excess(self):
        """By how many standard errors the agent is above the learner alone."""
        spread = math.hypot(self.incentive_stderr, self.alone_stderr)
        return (self.incentive - self.alone) / spread if spread else math.inf

    @property
    def verdict(self):
        if self.incentive <= self.alone:
            return "holds"
        return "fails" if self.excess > 2 else "undecided"

    @property
    def unclear(self):
        """Whether it fails, but may be bad luck."""
        return self.verdict == "fails" and self.excess < CLEAR


def game_of(number, seed):
    """Return a named game, or a random one."""
    if isinstance(number, str):
        return number, NAMED[number]
    return f"random {number}", random_game(np.random.default_rng([seed, number]))[1]


def measure(number, rule, runs, seed):
    """Return the cases of one game: for each settlement and bar, and the second one where it fails."""
    name, game = game_of(number, seed)
    rule = make_rule(rule)
    prepaid = propose_prepaid(len(game.arms), game.agents, game.horizon, rule, jobs=1).prepaid
    from_seed = 2 * (number if isinstance(number, int) else 10**4 + [*NAMED].index(number))
    terms = {"none": {}, "pool": {"prepaid": prepaid}, "dues": {"prepaid": prepaid}}
    settlements = {each: settlement_for(each, rule, **terms[each]) for each in SETTLEMENTS}

    def compared(runs, seed, agents=None):
        """Return the worst agent, or these agents, by each settlement, and the cases."""
        results = settled(game, rule, settlements, runs, seed)
        # A seed of its own: paired runs would need their covariance.
        bars = play(
            game.alone(), TwoUCB(), runs=2 * runs, seed=seed + 10**6, settlement="none", baseline=True, alone="best",
            jobs=1,
        )  # fmt: skip
        agents = agents or {each: result.worst_agent for each, result in results.items()}
        cases = []
        for each, result in results.items():
            scale, covered = (None if found is None else found.mean for found in (result.scale, result.covered))
            facts = name, game.agents, len(game.arms), game.horizon, rule.name, each
            incentive = result.incentive_regret(agents[each])
            cases += [Case(*facts, bar, prepaid, scale, covered, *incentive, *bars.bar_of(bar)) for bar in BARS]
        return agents, cases

    worst, first = compared(runs, from_seed)
    again = [None] * len(first)
    if any(case.unclear for case in first if case.settlement != "none"):
        _, again = compared(AGAIN * runs, from_seed + 1, worst)
    return [(one, two if one.unclear else None) for one, two in zip(first, again)]


def settled(game, rule, settlements, runs, seed):
    """Play once, and settle the same runs by each settlement."""
    folded = {name: new_folded(runs, game.agents, len(game.arms), 0) for name in settlements}
    for row, run in enumerate(play_runs(game, rule, run_keys(seed, 0, runs))):
        for name, settlement in settlements.items():
            fold(run.table, run.outcome, settlement, row, folded[name])
    steps = np.zeros(0, np.int64)
    return {
        name: Result(game, rule, settlement, runs, seed, 0.0, folded[name], steps, {})
        for name, settlement in settlements.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=200, help="random games")
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rule", default="balanced-glr")
    parser.add_argument("--no-named", action="store_true", help="random games only")
    parser.add_argument("--out", help="write every case to this file, one line of JSON each")
    asked = parser.parse_args()
    numbers = [*([] if asked.no_named else NAMED), *range(asked.games)]
    started, cases = time.perf_counter(), []
    with (
        open(asked.out or os.devnull, "w", encoding="utf-8") as out,
        ProcessPoolExecutor(2, get_context("spawn")) as pool,
    ):
        waiting = [pool.submit(measure, number, asked.rule, asked.runs, asked.seed) for number in numbers]
        for done, finished in enumerate(as_completed(waiting), start=1):
            cases += finished.result()
            for first, again in finished.result():
                out.write(json.dumps([first._asdict(), again and again._asdict()]) + "\n")
            out.flush()
            print(f"\r{done} games, {time.perf_counter() - started:.0f} s", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    report(cases)


def report(cases):
    """Print counts over the random games, what is covered there, and every figure of the named games."""
    for settlement in SETTLEMENTS:
        for bar in BARS:
            some = [(one, two) for one, two in cases if (one.settlement, one.bar) == (settlement, bar)]
            some = [(one, two) for one, two in some if one.game.startswith("random")]
            verdicts = Counter(one.verdict for one, _ in some)
            words = ", ".join(f"{verdicts[word]} {word}" for word in ("holds", "undecided", "fails"))
            confirmed = sum((two or one).verdict == "fails" for one, two in some if one.verdict == "fails")
            print(f"{settlement} against {bar}: {len(some)} games, {words}, {confirmed} of these confirmed")
        some = [one for one, _ in cases if one.settlement == settlement and one.bar == "best"]
        shares = [one.covered for one in some if one.game.startswith("random") and one.covered is not None]
        if len(shares) > 1:
            share, error = np.mean(shares), np.std(shares, ddof=1) / math.sqrt(len(shares))
            print(f"{settlement}: covers {share:.1%} ± {error:.1%} of the regret of explore pulls, mean over games")
    for one, two in cases:
        last, named = two or one, not one.game.startswith("random")
        if named or (one.verdict == last.verdict == "fails" and one.settlement != "none"):
            words = f"{one.game} ({one.agents} agents, {one.arms} arms, T = {one.horizon:,})"
            found = f"{last.incentive:.1f} ± {last.incentive_stderr:.1f}"
            alone = f"{last.alone:.1f} ± {last.alone_stderr:.1f}"
            print(f"{words}, {one.settlement} against {one.bar}: {found}, alone {alone}: {last.verdict}")
            if one.settlement != "none":
                print(f"    prepaid {one.prepaid:.3g}, scale {one.scale:.3f}, covered {one.covered}")


if __name__ == "__main__":
    main()
