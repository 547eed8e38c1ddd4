"""Does everyone gain from taking part? Equal shares on random games, compared with the best learner alone.

    python -m bench.individual_rationality --out cases.jsonl      # continues where it was stopped
    python -m bench.individual_rationality --only 5 --coverage 0.5
    python -m bench.individual_rationality --viable --runs 1      # which finished runs are viable, by which terms

Two questions for each game and rule: is the overall regret per agent above what the best of 2-UCB, KL-UCB, IMED and
Thompson sampling loses alone, and is the agent with the highest mean incentive regret above it? The answer *fails*
if it is above by more than two standard errors of the difference. A quick sample is enough where everything is
clearly below. The worst of many agents over few runs looks worse than it is, so whatever is above at all is played
again, with other seeds and more runs, for the same agent.
"""

import argparse
import json
import math
import os
import sys
import time
from collections import Counter
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from partage import BalancedGLR, Game, SharedIMED, Sharing, bernoulli, play, play_run
from partage.board import Board, Record
from partage.rules import make_rule
from partage.settle import ALONE, COVERAGE, first_terms, settlement_for
from partage.settle.core import common_charge, finished, rates_and_ceilings, settle

RULES = {"shared-imed": SharedIMED(), "balanced-glr, betting": BalancedGLR(evidence="betting")}
VIABLE_RULES = {"balanced-glr": BalancedGLR(), **RULES}
SETTLEMENTS = ("equal-share", "equal-share-expected")
LEARNERS = [name for name in ALONE if name != "best"]
PATTERNS = ("dealt", "round-robin", "neighbours", "scarce-best")
CLEARLY = 4  # standard errors below the best alone: then a quick sample is enough
TIMES = {"first": 1, "again": 4, "quick": 0.25}  # how many runs each sample has, compared with the first
SEEDS = {"first": 0, "again": 1, "quick": 10**6}
CLOSE = 0.03  # the standard error of overall regret, as a fraction, at which a rule was played often enough
MOST_ALONE, MOST_RUNS = 500, 200
FEWEST_ALONE, FEWEST_RUNS, CLOSE_RUNS = 8, 4, 16
# Long games have fewer runs: horizon times arms of all runs, and broadcasts times arms.
ALONE_WORK, RULE_WORK = 3e7, 3e7


def random_game(generator):
    """Draw arms, sharing and horizon; every arm is shared."""
    arms = int(generator.integers(2, 21))
    agents = round(math.exp(generator.uniform(math.log(2), math.log(100))))
    horizon = round(10 ** generator.uniform(2, 6))
    means = generator.random(arms)
    pattern = str(generator.choice(PATTERNS))
    if agents < arms and pattern != "dealt":
        pattern = "neighbours"
    if pattern == "dealt":  # each arm goes to one agent, and to each other agent with probability 1/N
        rows = [set(np.flatnonzero(generator.random(arms) < 1 / arms).tolist()) for _ in range(agents)]
        for arm in range(arms):
            rows[int(generator.integers(agents))].add(arm)
        sharing = Sharing.lists(rows, arms)
    elif pattern == "neighbours":
        sharing = Sharing.neighbours(agents, arms, int(generator.integers(max(1, arms - agents + 1), arms + 1)))
    elif pattern == "scarce-best":
        sharing = Sharing.scarce_best(agents, arms, np.argsort(-means)[:2].tolist())
    else:
        sharing = Sharing.round_robin(agents, arms)
    return pattern, Game(bernoulli(means), sharing, horizon)


# --- playing --------------------------------------------------------------------------------------------------


class Value(NamedTuple):
    """A mean and its standard error."""

    mean: float
    stderr: float

    @classmethod
    def of(cls, values):
        return cls(float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values))))

    def above(self, other):
        """By how many standard errors it is above the other; 0 if it is not."""
        gap, spread = self.mean - other.mean, math.hypot(self.stderr, other.stderr)
        return 0.0 if gap <= 0 else gap / spread if spread else math.inf

    def below(self, other):
        """By how many standard errors it is below the other; 0 if it is not."""
        return other.above(self)

    def __str__(self):
        return f"{self.mean:,.1f} ± {self.stderr:,.1f}"


def alone(game, seed, times=1):
    """Return what each learner loses alone."""
    affordable = times * ALONE_WORK / (game.horizon * len(game.arms))
    runs = int(min(times * MOST_ALONE, max(FEWEST_ALONE, affordable)))
    terms = {"runs": runs, "seed": seed, "settlement": "none", "baseline": False, "jobs": 1}
    return {name: play(game.alone(), make_rule(name), **terms).overall_regret for name in LEARNERS}


def board_of(game, tally):
    """Return the board at the end of a run."""
    board = Board(game.horizon, range(len(game.arms)), (game.sharing.sharers() > 0).tolist())
    board.record = Record(tally.broadcasts.tolist(), tally.sums.tolist())
    board.active = tally.active.tolist()
    return board


def together(game, rule, seed, coverage=COVERAGE, times=1, agent=None):
    """Play a rule until its regret is known closely enough; settle every run by both equal shares.

    Returns the number of runs, the overall regret per agent, and for each settlement the incentive regret of the
    worst agent (or of `agent`), which agent that is, and in which fraction of runs it was finished and viable.
    """
    gaps, work = game.means.max() - game.means, 0
    each, nets = [], {name: [] for name in SETTLEMENTS}
    states = {name: [] for name in SETTLEMENTS}
    terms = {name: settlement_for(name, rule, coverage=coverage) for name in SETTLEMENTS}
    while not _enough(each, work, times):
        tally = play_run(game, rule, seed=seed, run=len(each))
        work += int(tally.broadcasts.sum()) * len(game.arms)
        pulls, board = tally.explore + tally.commit, board_of(game, tally)
        each.append(float((pulls @ gaps).sum()) / game.agents)
        totals = pulls.sum(axis=0).tolist()
        for name, settlement in terms.items():
            rates, (ceiling,) = rates_and_ceilings(settlement, board, [game.horizon])  # all pull equally often
            ceilings = [ceiling] * game.agents
            charge = common_charge(settlement, board, totals, ceilings, rates)
            nets[name].append(pulls @ (gaps - np.array(rates)) + (ceiling if charge is None else charge))
            states[name].append((finished(settlement, board), charge is not None))
    worst = {}
    for name in SETTLEMENTS:
        by_agent = np.array(nets[name])
        at = int(np.argmax(by_agent.mean(axis=0))) if agent is None else agent[name]
        worst[name] = (at, Value.of(by_agent[:, at]), *np.mean(states[name], axis=0).tolist())
    return len(each), Value.of(each), worst


def _enough(values, work, times):
    if len(values) < FEWEST_RUNS:
        return False
    if len(values) >= times * MOST_RUNS or work > times * RULE_WORK:
        return True
    error = np.std(values) / math.sqrt(len(values))
    return len(values) >= CLOSE_RUNS and error <= CLOSE / math.sqrt(times) * np.mean(values)


class Case(NamedTuple):
    """A rule on one game: everything that is compared, as measured at first and, where something was above, again."""

    game: int
    pattern: str
    agents: int
    arms: int
    horizon: int
    rule: str
    first: dict
    again: dict | None


def measure(number, seed, rule, coverage, lone):
    """Return the case of one rule on one game. `lone` remembers what learners lose alone."""
    pattern, game = random_game(np.random.default_rng([seed, number]))

    def measured(sample, agent=None):
        # the seeds of rule and learner differ: paired runs would need their covariance
        own, times = seed + 4 * number + SEEDS[sample], TIMES[sample]
        if (number, sample) not in lone:
            lone[number, sample] = alone(game, own + 2, times)
        runs, average, worst = together(game, RULES[rule], own, coverage, times, agent)
        return {"sample": sample, "alone": lone[number, sample], "runs": runs, "average": average, "worst": worst}

    first, again = measured("quick"), None
    if any(value.below(best_of(first)) < CLEARLY for value in values_of(first)):
        first = measured("first")
    if any(value.above(best_of(first)) for value in values_of(first)):
        again = measured("again", {name: first["worst"][name][0] for name in SETTLEMENTS})
    return Case(number, pattern, game.agents, len(game.arms), game.horizon, rule, first, again)


def best_of(measured, learners=LEARNERS):
    """Return the learner that loses least alone."""
    return min((Value(*measured["alone"][name]) for name in learners), key=lambda value: value.mean)


def values_of(measured):
    """Return what is compared with it: the average agent, then the worst agent by each settlement."""
    return [Value(*measured["average"]), *(Value(*measured["worst"][name][1]) for name in SETTLEMENTS)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7_000_000)
    parser.add_argument("--rules", nargs="+", default=list(RULES), choices=RULES)
    parser.add_argument("--only", nargs="+", type=int, help="the numbers of the games to play; all by default")
    parser.add_argument("--coverage", type=float, default=COVERAGE)
    parser.add_argument(
        "--out", help="write every case to this file, one line of JSON each, and go on after the last"
    )
    parser.add_argument(
        "--pool", action="store_true", help="then compare a pool with what --out says of learners alone"
    )
    parser.add_argument("--viable", action="store_true", help="count the finished runs that are not viable, by terms")
    parser.add_argument("--runs", type=int, default=1, help="of each game, with --viable")
    asked = parser.parse_args()
    if asked.viable:
        return count_viable(asked.games, asked.runs, asked.seed)
    cases = {}
    if asked.out and os.path.exists(asked.out):
        with open(asked.out, encoding="utf-8") as lines:
            cases = {(case.game, case.rule): case for case in (Case(**json.loads(line)) for line in lines)}
    samples = [(case.game, sample) for case in cases.values() for sample in (case.first, case.again) if sample]
    lone = {(number, sample["sample"]): sample["alone"] for number, sample in samples}
    games = {number: random_game(np.random.default_rng([asked.seed, number]))[1] for number in range(asked.games)}
    short_first = sorted(games, key=lambda number: games[number].horizon * len(games[number].arms))
    wanted = [number for number in short_first if asked.only is None or number in asked.only]
    todo = [(number, rule) for rule in asked.rules for number in wanted if (number, rule) not in cases]
    started = time.perf_counter()
    with open(asked.out or os.devnull, "a", encoding="utf-8") as out:
        for done, (number, rule) in enumerate(todo, 1):
            case = measure(number, asked.seed, rule, asked.coverage, lone)
            cases[number, rule] = case
            out.write(json.dumps(case._asdict()) + "\n")
            out.flush()
            spent = time.perf_counter() - started
            print(f"\r{done} of {len(todo)} cases, {spent:.0f} s", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    wanted = [cases[key] for key in sorted(cases) if key[0] < asked.games and key[1] in asked.rules]
    if asked.pool:
        return judge_pool(wanted, asked.seed)
    report(wanted)


# --- what came out --------------------------------------------------------------------------------------------


def report(cases):
    """Print counts by rule, and everything that was above the best alone at first."""
    console = Console(width=None if Console().is_terminal else 170)
    counts = Table(title="Games in which it is above the best alone, by two standard errors")
    for column in ("rule", "what", "games", "at first", "confirmed", "above 2-UCB", "finished", "viable"):
        counts.add_column(column, justify="right")
    what = ("average agent", *(f"worst agent, {name}" for name in SETTLEMENTS))
    for rule in dict.fromkeys(case.rule for case in cases):
        some = [case for case in cases if case.rule == rule]
        for place, words in enumerate(what):
            states = [case.first["worst"][SETTLEMENTS[place - 1]][2:] for case in some] if place else []
            weak = [values_of(case.first)[place].above(best_of(case.first, ["two-ucb"])) for case in some]
            counts.add_row(
                rule,
                words,
                str(len(some)),
                str(sum(excess(case.first, place) > 2 for case in some)),
                str(sum(confirmed(case, place) for case in some)),
                str(sum(each > 2 for each in weak)),
                str(sum(done == 1 for done, _ in states)) if states else "",
                str(sum(viable == 1 for _, viable in states)) if states else "",
            )
    console.print(counts)
    errors = [value.stderr / value.mean for value in (best_of(case.first) for case in cases)]
    if errors:
        print(f"Standard error of the best alone: median {np.median(errors):.1%}, largest {max(errors):.1%}.")

    above = Table(title=f"What was above at first, and again with {TIMES['again']} times the runs")
    columns = ("game", "sharing", "M", "N", "T", "rule", "what", "measured", "best alone", "finished")
    for column in (*columns, "again", "best alone again", ""):
        above.add_column(column, justify="right")
    for case in cases:
        for place, words in enumerate(what):
            if excess(case.first, place):
                again = values_of(case.again)[place]
                states = f"{case.first['worst'][SETTLEMENTS[place - 1]][2]:.2f}" if place else ""
                above.add_row(
                    str(case.game), case.pattern, str(case.agents), str(case.arms), f"{case.horizon:,}", case.rule,
                    words, str(values_of(case.first)[place]), str(best_of(case.first)), states, str(again),
                    str(best_of(case.again)), verdict(case.again, place),
                )  # fmt: skip
    console.print(above)


def excess(measured, place):
    """By how many standard errors something is above the best alone."""
    return values_of(measured)[place].above(best_of(measured))


def verdict(measured, place):
    """Return in a word whether something is above the best alone."""
    standard_errors = excess(measured, place)
    return "fails" if standard_errors > 2 else "undecided" if standard_errors else "holds"


def confirmed(case, place):
    """Whether something that was above at first is above by two standard errors in the second, larger sample."""
    return bool(case.again and excess(case.first, place) and verdict(case.again, place) == "fails")


def judge_pool(cases, seed):
    """Settle by a pool whose members prepay enough; print the games whose worst agent is above the best alone."""
    above = []
    for done, case in enumerate(cases, 1):
        _, game = random_game(np.random.default_rng([seed, case.game]))
        best = best_of(case.again or case.first)
        terms = {"settlement": "pool", "prepaid": 1e9, "baseline": False, "jobs": 1}
        # The worst of many agents over few runs looks worse than it is, so other runs judge the same agent.
        first = play(game, RULES[case.rule], runs=20, seed=seed + 4 * case.game + 3, **terms)
        runs, agent = max(20, min(400, int(2e6 / first.broadcasts.mean))), first.worst_agent
        result = play(game, RULES[case.rule], runs=runs, seed=2 * seed + 4 * case.game, **terms)
        worst = Value(*result.incentive_regret(agent))
        print(f"\r{done} of {len(cases)} games", end="", file=sys.stderr, flush=True)
        if worst.mean > best.mean:
            above.append(
                f"game {case.game}, {case.rule}: {worst} against {best}, {worst.above(best):.1f} standard errors"
            )
    print(file=sys.stderr)
    print(
        f"With a pool, the worst agent's mean is above the best alone in {len(above)} of {len(cases)} games.",
        *above,
        sep="\n",
    )


def count_viable(games, runs, seed):
    """Settle the same records by several terms; print how many were finished, and not viable."""
    for title, rule in VIABLE_RULES.items():
        counts = Counter()
        for number in range(games):
            _, game = random_game(np.random.default_rng([seed, number]))
            tallies = [play_run(game, rule, seed=seed + 4 * number, run=run) for run in range(runs)]
            for name in SETTLEMENTS:
                for words, settlement in terms_of(name, rule).items():
                    for tally in tallies:
                        settled = settle(settlement, board_of(game, tally), (tally.explore + tally.commit).tolist())
                        counts[name, words, "finished"] += settled.finished
                        counts[name, words, "not viable"] += settled.finished and not settled.viable
                        counts[name, words, "viable"] += settled.viable
        for name, words in dict.fromkeys(key[:2] for key in counts):
            done, lost, viable = (counts[name, words, state] for state in ("finished", "not viable", "viable"))
            of = f"{done} of {games * runs} finished, {lost} of these not viable"
            print(f"{title}, {name}, {words}: {of}; {viable} of all viable", flush=True)


def terms_of(name, rule):
    """Return the terms by which the records of a rule are settled. Formats 1 and 2 are for rules that eliminate."""
    two_ucb = settlement_for(name, rule, alone="two-ucb")
    terms = {
        "0.99, 2-UCB": two_ucb,
        "0.99, best": settlement_for(name, rule),
        "0.9, best": settlement_for(name, rule, coverage=0.9),
    }
    return (
        terms if isinstance(rule, SharedIMED) else {"1 - 2/T, 2-UCB (formats 1 and 2)": first_terms(two_ucb), **terms}
    )


if __name__ == "__main__":
    main()
