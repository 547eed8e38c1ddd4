"""How far are learners alone from the formula of the ceilings? The ratio true cost / formula on random games.

    python -m bench.ceilings --out one.csv                            # the factors were chosen from these games,
    python -m bench.ceilings --seed 1 --share 0.3 --out two.csv       # and these: together they are ceilings.csv
    python -m bench.ceilings --seed 2 --share 0.3 --out bench/ceilings_check.csv         # used for no choice
    python -m bench.ceilings --read bench/ceilings.csv
    python -m bench.ceilings --played bench/ceilings.csv              # the ceilings that are plays of 2-UCB

Every learner plays each game until the standard error of its mean regret is 2.5 % of the mean, or its share of time
is used up. The smallest ratios of each learner are printed, and the games whose ceiling at the true gaps is above the
true cost by more than two standard errors; there should be none of them. Runs depend on the time they take, so that
the last digits differ from one machine to another.
"""

import argparse
import csv
import math
import os
import sys
import time
from typing import NamedTuple

import numpy as np

from partage import IMED, KLUCB, Beta, Game, Sharing, Thompson, TwoUCB, bernoulli, play
from partage.settle.ceiling import ceilings
from partage.settle.noiseless import FACTORS, cost_alone, luck

LEARNERS = (TwoUCB(), KLUCB(), IMED(), Thompson())
KINDS = ("uniform", "clustered", "near ties", "best near 0", "best near 1", "beta")
ERROR, BATCH = 0.025, 16


class Set(NamedTuple):
    """How many games, log10 of the shortest and longest horizon, the most arms, and the time for a learner."""

    games: int
    shortest: float
    longest: float
    most_arms: int
    seconds: float


SETS = (Set(1000, 1, 4, 20, 0.4), Set(60, 4, 5, 10, 2), Set(24, 6, 6, 3, 8))


class Row(NamedTuple):
    """A learner on a game: its mean regret alone, and the formula at the true gaps."""

    seed: int
    game: int
    kind: str
    arms: int
    horizon: int
    best: float
    smallest_gap: float
    formula: float
    learner: str
    cost: float
    stderr: float
    runs: int

    @property
    def yardstick(self):
        """What the learner's factor is applied to."""
        return self.formula * (luck(self.best, self.horizon) if self.learner == "kl-ucb" else 1.0)

    @property
    def ratio(self):
        return self.cost / self.yardstick


def random_game(generator, given):
    """Draw a kind of game, its means and its horizon."""
    kind = KINDS[int(generator.choice(6, p=(0.3, 0.2, 0.15, 0.1, 0.15, 0.1)))]
    arms = int(generator.integers(2, given.most_arms + 1))
    horizon = round(10 ** generator.uniform(given.shortest, given.longest))
    if kind in ("uniform", "beta"):
        means = generator.random(arms)
    elif kind == "clustered":
        means = np.clip(generator.random() + generator.normal(0, 0.1, arms), 0.001, 0.999)
    elif kind == "near ties":
        means = generator.random(arms)
        order = np.argsort(-means)
        means[order[1]] = means[order[0]] * (1 - 10 ** generator.uniform(-3, -1))
    elif kind == "best near 0":
        means = 10 ** generator.uniform(-3, -1) * generator.random(arms)
    else:
        means = 1 - 10 ** generator.uniform(-3, -1) * generator.random(arms) ** (1 / generator.uniform(0.2, 2))
    return kind, means, horizon


def cost_of(game, learner, seed, seconds):
    """Return the mean regret of a learner alone, its standard error, and the runs."""
    costs, started = np.zeros(0), time.process_time()
    while True:
        runs = max(BATCH, len(costs))
        played = play(game, learner, runs=runs, seed=seed + len(costs), settlement="none", baseline=False, jobs=1)
        costs = np.concatenate([costs, played.folded.figures[:, 0]])
        mean, stderr = costs.mean(), costs.std(ddof=1) / math.sqrt(len(costs))
        spent = time.process_time() - started
        if (len(costs) >= 64 and stderr <= ERROR * mean) or 2 * spent > seconds or len(costs) >= 8192:
            return mean, stderr, len(costs)


def measure(number, seed, given):
    """Return a row for each learner on one game."""
    generator = np.random.default_rng([seed, number])
    kind, means, horizon = random_game(generator, given)
    arms = [Beta(4 * mean, 4 * (1 - mean)) for mean in means] if kind == "beta" else bernoulli(means)
    game = Game(arms, Sharing.nothing(1, len(means)), horizon)
    best, gaps = means.max(), np.delete(means.max() - means, means.argmax())
    formula = cost_alone(float(best), gaps.tolist(), float(horizon))
    for learner in LEARNERS:
        # A seed of its own for each batch and game: 8192 runs at most, so that no two of them share one.
        mean, stderr, runs = cost_of(game, learner, (seed * 10**6 + number) * 10**5, given.seconds)
        yield Row(
            seed,
            number,
            kind,
            len(means),
            horizon,
            float(best),
            float(gaps.min()),
            formula,
            learner.name,
            float(mean),
            float(stderr),
            runs,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0, help="the fraction of the games to play")
    parser.add_argument("--sets", type=int, nargs="+", default=range(len(SETS)), help="which sets of games to play")
    parser.add_argument("--out", help="write every row to this file")
    parser.add_argument("--read", nargs="+", help="report on the rows of these files, and play nothing")
    parser.add_argument("--played", help="compare 2-UCB's ceilings by play with the costs in this file, seed 0")
    asked = parser.parse_args()
    if asked.played:
        return report_played([row for row in read(asked.played) if row.seed == 0 and row.learner == "two-ucb"])
    if asked.read:
        return report([row for path in asked.read for row in read(path)])
    started, rows = time.perf_counter(), []
    with open(asked.out or os.devnull, "w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(Row._fields)
        for place in asked.sets:
            first = sum(round(each.games * asked.share) for each in SETS[:place])
            for number in range(first, first + round(SETS[place].games * asked.share)):
                for row in measure(number, asked.seed, SETS[place]):
                    rows.append(row)
                    writer.writerow([f"{value:.5g}" if isinstance(value, float) else value for value in row])
                out.flush()
                print(
                    f"\r{number + 1} games, {time.perf_counter() - started:.0f} s",
                    end="",
                    file=sys.stderr,
                    flush=True,
                )
    print(file=sys.stderr)
    report(rows)


def read(path):
    """Return the rows of a file."""
    with open(path, encoding="utf-8", newline="") as file:
        return [Row(*(kind(text) for kind, text in zip(Row.__annotations__.values(), line, strict=True)))
                for line in list(csv.reader(file))[1:]]  # fmt: skip


def report_played(rows):
    """Print how far 2-UCB's ceilings by play are below its cost, at the true gaps."""
    ratios, high = [], 0
    for row in rows:
        given = next(
            each for place, each in enumerate(SETS) if row.game < sum(one.games for one in SETS[: place + 1])
        )
        _, means, horizon = random_game(np.random.default_rng([0, row.game]), given)
        gaps = means.max() - means
        (ceiling,) = ceilings(row.best, gaps, gaps, 2 * math.log(horizon), [horizon])
        ratios.append(ceiling / row.cost)
        high += ceiling > row.cost + 2 * row.stderr
    low, middle, top = np.quantile(ratios, [0, 0.5, 1])
    print(f"{len(rows)} games: ceiling / cost from {low:.3f} to {top:.3f}, median {middle:.3f}")
    print(f"ceilings above the cost by more than two standard errors: {high}")


def report(rows):
    """Print the smallest ratios of each learner, and the games whose ceiling is above the true cost."""
    print(f"{len({(row.seed, row.game) for row in rows})} games")
    for learner in LEARNERS:
        some = sorted(
            (row for row in rows if row.learner == learner.name and row.formula > 0), key=lambda row: row.ratio
        )
        print(f"{learner.name}: {len(some)} games, median ratio {some[len(some) // 2].ratio:.2f}; the smallest:")
        for row in some[:5]:
            print(f"  {row.ratio:.3f} ± {row.stderr / row.yardstick:.3f}  {row.kind}, N = {row.arms}, "
                  f"T = {row.horizon:,}, best {row.best:.4g}, {row.runs} runs")  # fmt: skip
        high = [row for row in some if FACTORS[row.learner] * row.yardstick > row.cost + 2 * row.stderr]
        print(f"  ceilings above the cost by more than two standard errors: {len(high)}", *high, sep="\n    ")


if __name__ == "__main__":
    main()
