"""What one learner loses that makes all M T pulls itself and sees every reward.

    python -m bench.centralised            # measures, and writes src/partage/studies/centralised.json
    python -m bench.centralised --check    # compares blocks with partage's own kernels, pull by pull

No protocol stands in such a learner's way, so it is what a group is compared with (docs/limits.md). The rules are
IMED, KL-UCB and Thompson sampling. They do not know the horizon, so one run gives the regret at every checkpoint.

Playing 10^8 pulls one by one takes too long. An arm that was pulled N times is pulled in blocks of N / 1000, so play
is exact up to 2,000 pulls of an arm. IMED and KL-UCB compute their indices anew after each block. Thompson sampling
draws how many pulls go by before another arm is pulled, from the probability that the draw of another arm is higher;
only the leader's posterior is held still within a block.
"""

import argparse
import json
import math
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from partage import IMED, KLUCB, Game, Sharing, Thompson, play
from partage.arms import BERNOULLI, BETA, CONSTANT, RandomBernoulli, reward_table
from partage.compiled import compiled
from partage.evidence import kl, log_gamma
from partage.rules.imed import imed_index
from partage.rules.kl_ucb import kl_upper
from partage.studies import centralised, frontier
from partage.theory.limits import discretised

RULES = {"IMED": IMED(), "Thompson": Thompson(), "KL-UCB": KLUCB()}
PART = 1000  # a block is at most this part of an arm's pulls
ONE_BY_ONE = 200  # so many rewards are drawn one by one; the sum of more is drawn from the normal distribution
RUNS, RANDOM_RUNS = 1000, 5000
SHORT, SHORT_RUNS = 10**5, 5000  # up to so many pulls, play is so fast that more runs cost little
CHECKED = (  # arms, pulls and runs
    ("paper's arms", 10**5, 200),
    ("Beta arms", 10**5, 50),
    ("five stars", 10**5, 50),
    ("paper's arms", 10**6, 30),
)

# --- rewards --------------------------------------------------------------------------------------------------


@compiled
def reward_sum(random, table, means, deviations, arm, pulls):
    """Draw the sum of an arm's rewards over some pulls."""
    kind = table.kinds[arm]
    if kind == BERNOULLI:
        return float(random.binomial(pulls, means[arm]))
    if kind == CONSTANT:
        return pulls * means[arm]
    if pulls > ONE_BY_ONE:
        drawn = pulls * means[arm] + math.sqrt(pulls) * deviations[arm] * random.standard_normal()
        return min(max(drawn, 0.0), float(pulls))
    total = 0.0
    for _ in range(pulls):
        if kind == BETA:
            total += random.beta(table.first[arm], table.second[arm])
        else:  # discrete
            low, high = table.starts[arm], table.starts[arm + 1]
            total += table.values[low + np.searchsorted(table.cumulated[low:high], random.random(), side="right")]
    return total


# --- rules with an index --------------------------------------------------------------------------------------


@compiled
def by_index(random, imed, table, means, deviations, checkpoints):
    """Play IMED or KL-UCB; return the pulls of each arm at each checkpoint."""
    arms = len(means)
    counts, sums = np.zeros(arms, np.int64), np.zeros(arms)
    found = np.zeros((len(checkpoints), arms), np.int64)
    pulls = 0
    for checkpoint in range(len(checkpoints)):
        while pulls < checkpoints[checkpoint]:
            if pulls < arms:
                arm = pulls
            elif imed:
                arm = _lowest_index(counts, sums)
            else:
                arm = _highest_bound(math.log(pulls), counts, sums)
            block = min(max(1, counts[arm] // PART), checkpoints[checkpoint] - pulls)
            sums[arm] += reward_sum(random, table, means, deviations, arm, block)
            counts[arm] += block
            pulls += block
        found[checkpoint] = counts
    return found


@compiled
def _lowest_index(counts, sums):
    best = 0.0
    for arm in range(len(counts)):
        best = max(best, sums[arm] / counts[arm])
    chosen, lowest = 0, math.inf
    for arm in range(len(counts)):
        index = imed_index(counts[arm], sums[arm], best)
        if index < lowest:
            chosen, lowest = arm, index
    return chosen


@compiled
def _highest_bound(level, counts, sums):
    chosen = np.argmax(counts)  # first, because it often has the highest bound, and the others need none
    highest = kl_upper(sums[chosen] / counts[chosen], level / counts[chosen])
    for arm in range(len(counts)):
        mean = sums[arm] / counts[arm]
        if mean > highest or (highest < 1.0 and counts[arm] * kl(mean, highest) < level):  # its bound is higher
            bound = kl_upper(mean, level / counts[arm])
            if bound > highest:
                chosen, highest = arm, bound
    return chosen


# --- Thompson sampling ----------------------------------------------------------------------------------------

NODES = 12  # of the Chebyshev interpolation of log P(draw > x), for each arm
WINDOW = 7.5  # standard deviations of the leader's posterior on either side
STEP = 1.25  # of the trapezoidal rule, in standard deviations: exact to 10^-5 for a normal posterior
LIKELY = 0.01  # no blocks while another arm is pulled more often than this
AHEAD = 5  # nor while another arm has more than this part of the leader's pulls
TRIES = 32  # pulls one by one before blocks are tried again


@compiled
def by_thompson(random, table, means, deviations, checkpoints):
    """Play Thompson sampling; return the pulls of each arm at each checkpoint."""
    arms = len(means)
    counts, sums = np.zeros(arms, np.int64), np.zeros(arms)
    found = np.zeros((len(checkpoints), arms), np.int64)
    tails, middles, halves = np.zeros((arms, NODES)), np.zeros(arms), np.full(arms, -1.0)
    chances = np.zeros(arms)
    pulls, exact = 0, 0
    for checkpoint in range(len(checkpoints)):
        while pulls < checkpoints[checkpoint]:
            lead, blocks = _leader(counts)
            likely = 0.0
            if exact == 0 and blocks:
                likely = _chances(lead, counts, sums, tails, middles, halves, chances)
                if likely > LIKELY:
                    exact, blocks = TRIES, False
            if exact > 0 or not blocks:
                exact = max(0, exact - 1)
                other = _highest_draw(random, counts, sums)
                before = 0
            else:
                block = min(counts[lead] // PART, checkpoints[checkpoint] - pulls)
                until = math.log(1.0 - random.random()) / math.log1p(-likely) if likely > 0.0 else math.inf
                before, other = (block, -1) if until >= block else (int(until), _one_of(random, chances, likely))
            if before > 0:
                sums[lead] += reward_sum(random, table, means, deviations, lead, before)
                counts[lead] += before
                pulls += before
            if other >= 0:
                sums[other] += reward_sum(random, table, means, deviations, other, 1)
                counts[other] += 1
                pulls += 1
                halves[other] = -1.0  # its posterior has changed
        found[checkpoint] = counts
    return found


@compiled
def _leader(counts):
    """Return the arm pulled most, and whether it is far enough ahead for blocks."""
    lead, most = np.argmax(counts), 0
    for arm in range(len(counts)):
        if arm != lead:
            most = max(most, counts[arm])
    return lead, counts[lead] >= 2 * PART and AHEAD * most <= counts[lead]


@compiled
def _highest_draw(random, counts, sums):
    chosen, highest = 0, -1.0
    for arm in range(len(counts)):
        drawn = random.beta(1.0 + sums[arm], 1.0 + counts[arm] - sums[arm])
        if drawn > highest:
            chosen, highest = arm, drawn
    return chosen


@compiled
def _one_of(random, chances, total):
    """Draw an arm by its chance."""
    left = total * random.random()
    for arm in range(len(chances)):
        left -= chances[arm]
        if left < 0.0:
            return arm
    return np.argmax(chances)


@compiled
def _chances(lead, counts, sums, tails, middles, halves, chances):
    """Compute for each arm the probability that its draw is above the leader's; return their sum."""
    a, b = 1.0 + sums[lead], 1.0 + counts[lead] - sums[lead]
    mean = a / (a + b)
    deviation = math.sqrt(mean * (1.0 - mean) / (a + b + 1.0))
    reach = min(WINDOW * deviation, 0.999 * mean, 0.999 * (1.0 - mean))
    nodes = 2 * int(WINDOW / STEP) + 1
    at, weight = np.zeros(nodes), np.zeros(nodes)
    for node in range(nodes):  # the leader's density, up to a factor
        at[node] = mean + reach * (2.0 * node / (nodes - 1) - 1.0)
        height = (a - 1.0) * math.log(at[node] / mean) + (b - 1.0) * math.log((1.0 - at[node]) / (1.0 - mean))
        weight[node] = math.exp(height)
    total, all_weight = 0.0, weight.sum()
    for arm in range(len(counts)):
        chances[arm] = 0.0
        if arm == lead:
            continue
        if abs(mean - middles[arm]) + reach > halves[arm]:
            middles[arm], halves[arm] = mean, min(1.2 * reach, 0.9999 * mean, 0.9999 * (1.0 - mean))
            _interpolate(1.0 + sums[arm], 1.0 + counts[arm] - sums[arm], mean, halves[arm], tails[arm])
        for node in range(nodes):
            chances[arm] += weight[node] * math.exp(_tail_at((at[node] - middles[arm]) / halves[arm], tails[arm]))
        chances[arm] /= all_weight
        total += chances[arm]
    return total


@compiled
def _interpolate(a, b, middle, half, tail):
    """Compute the Chebyshev coefficients of log P(draw > x) for x within `half` of `middle`."""
    n = len(tail)
    tail[:] = 0.0
    for node in range(n):
        angle = math.pi * (node + 0.5) / n
        value = log_beta_tail(a, b, middle + half * math.cos(angle))
        for term in range(n):
            tail[term] += 2.0 / n * value * math.cos(term * angle)
    tail[0] *= 0.5


@compiled
def _tail_at(x, tail):
    """Return the interpolated log P(draw > x), by Clenshaw's recurrence."""
    before, last = 0.0, 0.0
    for term in range(len(tail) - 1, 0, -1):
        before, last = last, tail[term] + 2.0 * x * last - before
    return tail[0] + x * last - before


@compiled
def log_beta_tail(a, b, x):
    """Return log P(X > x) of a Beta(a, b) variable, by the continued fraction of the incomplete beta function."""
    front = log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * math.log(x) + b * math.log(1.0 - x)
    if x > (a + 1.0) / (a + b + 2.0):
        return front + math.log(_fraction(b, a, 1.0 - x) / b)
    return math.log1p(-math.exp(front) * _fraction(a, b, x) / a)


@compiled
def _fraction(a, b, x):
    """Evaluate the continued fraction from the front (Lentz), until it changes by less than 10^-12."""
    c = 1.0
    value = d = 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        d, c = 1.0 / (1.0 + even * d), 1.0 + even / c
        value *= c * d
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        d, c = 1.0 / (1.0 + odd * d), 1.0 + odd / c
        value *= c * d
        if abs(c * d - 1.0) < 1e-12:
            break
    return value


# --- many runs ------------------------------------------------------------------------------------------------


def play_blocks(rule, arms, checkpoints, seed, run):
    """Return the regret of one run at each checkpoint."""
    random = np.random.default_rng([seed, run])
    arms = [arm.drawn(random) if isinstance(arm, RandomBernoulli) else arm for arm in arms]
    arms = [arms[i] for i in random.permutation(len(arms))]  # ties are broken by the order
    means = np.array([arm.mean for arm in arms])
    laws = [discretised(arm) for arm in arms]
    deviations = np.sqrt([np.dot(law.weights, (1 - law.short - arm.mean) ** 2) for law, arm in zip(laws, arms)])
    given = (reward_table(arms), means, deviations, np.array(checkpoints, np.int64))
    pulls = by_thompson(random, *given) if rule == "Thompson" else by_index(random, rule == "IMED", *given)
    return pulls @ (means.max() - means)


def measure(rule, arms, checkpoints, runs, seed=0):
    """Return the regret of each run (rows) at each checkpoint (columns)."""
    with ThreadPoolExecutor(2) as pool:
        return np.array(list(pool.map(lambda run: play_blocks(rule, arms, checkpoints, seed, run), range(runs))))


def mean_and_error(values):
    return float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values)))


def tasks():
    """Return the arms of each game of the study, and the numbers of pulls M T that belong to them."""
    games = [setting.game for setting in frontier.GAMES]
    return {
        name: (arms, sorted({game.agents * game.horizon for game in games if game.arms == arms}))
        for name, arms in frontier.ARMS_OF.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with exact play instead")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--random-runs", type=int, default=RANDOM_RUNS, help="runs of games with random arms")
    parser.add_argument("--short-runs", type=int, default=SHORT_RUNS, help=f"runs of games of up to {SHORT:,} pulls")
    parser.add_argument("--out", type=Path, default=centralised.FILE)
    asked = parser.parse_args()
    if asked.check:
        check(asked.seed)
    else:
        write(asked)


def check(seed):
    """Print the regret by blocks and by exact play, and how far they are apart in standard errors."""
    print("| arms | rule | pulls | runs | blocks | exact | apart |\n|---|---|--:|--:|--:|--:|--:|")
    for name, pulls, runs in CHECKED:
        arms = frontier.ARMS_OF[name]
        game = Game(arms, Sharing.nothing(1, len(arms)), pulls)
        for rule, exactly in RULES.items():
            ours, error = mean_and_error(measure(rule, arms, [pulls], runs, seed)[:, 0])
            exact = play(game, exactly, runs=runs, seed=seed, settlement="none", baseline=False).overall_regret
            apart = (ours - exact.mean) / math.hypot(error, exact.stderr)
            both = f"{ours:.1f} ± {error:.1f} | {exact.mean:.1f} ± {exact.stderr:.1f}"
            print(f"| {name} | {rule} | {pulls:,} | {runs:,} | {both} | {apart:+.1f} |", flush=True)


def write(asked):
    """Measure every rule on the arms of every game, and write the file.

    With random arms, Thompson sampling is left out: two arms that are nearly equal allow no blocks.
    """
    started, rows = time.perf_counter(), []
    for name, (arms, checkpoints) in tasks().items():
        drawn = any(isinstance(arm, RandomBernoulli) for arm in arms)
        runs = asked.random_runs if drawn else asked.short_runs if checkpoints[-1] <= SHORT else asked.runs
        for rule in RULES:
            if drawn and rule == "Thompson":
                continue
            regrets = measure(rule, arms, checkpoints, runs, asked.seed)
            for pulls, values in zip(checkpoints, regrets.T):
                mean, error = mean_and_error(values)
                rows.append(
                    {
                        "rule": rule,
                        "arms": name,
                        "pulls": pulls,
                        "runs": runs,
                        "seed": asked.seed,
                        "mean": round(mean, 3),
                        "stderr": round(error, 3),
                        "median": round(float(np.median(values)), 3),
                    }
                )
                print(
                    f"{time.perf_counter() - started:4.0f} s  {rule}, {name}, {pulls:,}: {mean:.2f} ± {error:.2f}",
                    flush=True,
                )
    runs = f"--runs {asked.runs} --random-runs {asked.random_runs} --short-runs {asked.short_runs}"
    command = f"python -m bench.centralised {runs} --seed {asked.seed}"
    arms = {name: centralised.spelled(arms) for name, (arms, _) in tasks().items()}
    lines = ",\n".join(f"    {json.dumps(row)}" for row in rows)
    head = json.dumps({"command": command, "arms": arms}, indent=2).removesuffix("\n}")
    asked.out.write_text(f'{head},\n  "rows": [\n{lines}\n  ]\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
