"""The engine of Balanced-ETC on the paper's main game, and agents alone."""

from functools import partial

import numpy as np
from bench.loops import pull_by_pull
from bench.rows import Row
from bench.timing import BARE, bare, over, repeated

from partage import BalancedETC, Game, Sharing, TwoUCB, bernoulli, play
from partage.engine import rewards as tape
from partage.rules import RULES

ABOUT = (
    "The paper's main game: 10 arms with means 0.9, 0.8 … 0.0, T = 10^6, B = 1, and 10 agents unless a row says "
    "otherwise. Runs are settled and folded, on one thread. The bare loop draws a reward, updates a count and a "
    "mean and takes a root: the least that a broadcast needs."
)
ARMS = bernoulli([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0])
RUNS = 64
PART_OF_HORIZON = 100  # the loop over every pull plays this part of the horizon


def balanced(agents, horizon=10**6):
    """Return the paper's main game."""
    return Game(ARMS, Sharing.round_robin(agents, len(ARMS)), horizon)


def played(game, rule, runs):
    """Return the work of playing a game as a user would: settled and folded, on one thread."""
    return partial(play, game, rule, runs=runs, baseline=False, checkpoints=(), jobs=1)


def loop_over_every_pull(agents, horizon, steps):
    """Return the work of the plain loop over the first steps of a run."""
    key = tape.run_keys(0, 0, 1)[0]
    rank = np.argsort(tape.permutation(key[0], key[1], tape.TIE_ORDER, len(ARMS)))
    means = np.array([arm.mean for arm in ARMS])
    return partial(pull_by_pull, means, np.arange(agents) % len(ARMS), horizon, steps, key[0], key[1], rank)


def measure(times=7):
    """Yield the rows of Balanced-ETC, and of agents alone."""
    etc = BalancedETC()
    seconds = repeated(
        {
            "ten": played(balanced(10), etc, RUNS),
            "crowd": played(balanced(10_000), etc, RUNS),
            "long": played(balanced(10, 10**12), etc, RUNS),
            "bare": bare,
            "loop": loop_over_every_pull(10_000, 10**6, 10**6 // PART_OF_HORIZON),
        },
        times,
    )
    broadcasts = play(balanced(10), etc, runs=RUNS, baseline=False).broadcasts.mean
    ten, crowd = seconds["ten"], seconds["crowd"]
    each = [value / RUNS / broadcasts for value in ten]
    step = [value / BARE for value in seconds["bare"]]
    loop = [PART_OF_HORIZON * RUNS * value for value in seconds["loop"]]
    yield Row.of("a run with 10,000 agents / with 10", over(crowd, ten), 2)
    yield Row.of("a run of T = 10^12 / of T = 10^6, 10 agents", over(seconds["long"], ten), 3)
    yield Row.of(
        "a compiled loop over every pull / the engine, 10,000 agents", over(loop, crowd), 1000, more_is_better=True
    )
    yield Row.of("a broadcast / a step of the bare loop", over(each, step), 8)
    yield Row.of("a step of the bare loop", [1e9 * value for value in step], unit="ns")
    yield Row.of("a broadcast", [1e9 * value for value in each], unit="ns")
    yield Row.of("a run with 10 agents", [1e3 * value / RUNS for value in ten], unit="ms")
    yield Row.of("a run with 10,000 agents", [1e3 * value / RUNS for value in crowd], unit="ms")
    yield from alone(min(times, 3))


def alone(times, horizon=10**6):
    """Yield the rows of learners alone."""
    wide = Game(bernoulli(np.linspace(0.9, 0, 1000)), Sharing.nothing(1, 1000), horizon)
    works = {
        name: played(balanced(1, horizon), RULES[name](), 2) for name in ("two-ucb", "kl-ucb", "imed", "thompson")
    }
    seconds = repeated({**works, "wide": played(wide, TwoUCB(), 2)}, times)
    narrow = seconds["two-ucb"]
    yield Row.of("2-UCB alone, a step with 1,000 arms / with 10", over(seconds["wide"], narrow), 100)
    for name in works:
        yield Row.of(
            f"{name} alone, a step with 10 arms", [1e9 * value / 2 / horizon for value in seconds[name]], unit="ns"
        )
