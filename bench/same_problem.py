"""Peers on the same problem, and how long one waits for a mean regret with a standard error of 1 %.

Every peer plays in an environment of its own, with the versions of `bench/peers/NAME.txt`, which is made in
`results/.peers` and kept there. `bench/peers/problem.py` states the problem and the algorithms.
"""

import contextlib
import json
import math
import statistics
import subprocess
import sys
from functools import partial
from typing import NamedTuple

from bench import environments
from bench.engine import balanced
from bench.peers.problem import MEANS, STEPS
from bench.rows import Row
from bench.timing import repeated, wall_seconds

from partage import BalancedETC, BalancedGLR, Game, SharedIMED, Sharing, Thompson, TwoUCB, bernoulli, play

ABOUT = (
    "One learner, 10 Bernoulli arms with means 0.9, 0.8 … 0.0, 20,000 steps. All play Thompson sampling from "
    "Beta(1, 1). The peers also play UCB1, and Partage its 2-UCB, which has log T in place of log t. The mean "
    "regrets show that they solve the same problem. The last rows say how long one waits for a mean regret with a "
    "standard error of 1 %. There are no goals: peers change without Partage, and numpy plays 200 runs at once, "
    "which suits the problem best."
)
PEERS = {"plain": "plain Python", "numpy": "numpy, 200 runs at once", "river": "river", "mabwiser": "mabwiser"}
ALGORITHMS = {"thompson": Thompson(), "ucb1": TwoUCB()}  # what Partage plays
ERROR = 0.01  # the standard error, relative to the mean
FAR = 4.0  # standard errors


class Played(NamedTuple):
    """The seconds per run in every repeat, and the mean regret, its standard deviation and the number of runs."""

    seconds: list[float]
    mean: float
    deviation: float
    runs: int

    @property
    def stderr(self):
        """The standard error of the mean regret."""
        return self.deviation / math.sqrt(self.runs)

    def __str__(self):
        return f"{self.mean:.1f} ± {self.stderr:.1f}" if self.runs > 1 else f"{self.mean:.1f} in one run"


def runs_needed(played):
    """Return how many runs give the mean regret a standard error of 1 %."""
    return max(1, math.ceil((played.deviation / played.mean / ERROR) ** 2))


def by_partage(rule, steps=STEPS, runs=200, times=5):
    """Play the problem with Partage, on one thread."""
    game = Game(bernoulli(MEANS), Sharing.nothing(1, len(MEANS)), steps)
    work = partial(play, game, rule, runs=runs, settlement="none", baseline=False, checkpoints=(), jobs=1)
    mean, stderr = work().overall_regret
    seconds = repeated({"play": work}, times, within=5, compiled=True)["play"]
    return Played([value / runs for value in seconds], mean, stderr * math.sqrt(runs), runs)


def by_peer(python, name, algorithm, seconds=2.0, steps=STEPS):
    """Let a peer play the problem for some seconds."""
    command = [str(python), str(environments.PINS / f"play_{name}.py"), algorithm, str(seconds), str(steps)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    found = json.loads(done.stdout)
    regrets = found["regrets"]
    deviation = statistics.stdev(regrets) if len(regrets) > 1 else math.nan
    return Played(found["seconds"], statistics.mean(regrets), deviation, len(regrets))


def python_of(name):
    """Return the Python that a peer runs on."""
    pins = environments.PINS / f"{name}.txt"
    return environments.kept(name, pins) if pins.exists() else sys.executable  # the standard library needs nothing


def prepare():
    """Make the environments of the peers; yield the name of each. One that fails has a row that says so."""
    for name in PEERS:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            python_of(name)
        yield name


def differs(one, other):
    """Whether two mean regrets differ by more than chance explains."""
    spread = math.hypot(one.stderr, other.stderr)
    return spread > 0 and abs(one.mean - other.mean) > FAR * spread


def measure(peers=tuple(PEERS), seconds=2.0, steps=STEPS):
    """Yield how much longer a peer takes than Partage, and the waiting times to a standard error of 1 %."""
    own = {algorithm: by_partage(rule, steps) for algorithm, rule in ALGORITHMS.items()}
    found = {algorithm: {} for algorithm in own}
    for name in peers:
        try:
            python = python_of(name)
            for algorithm in ALGORITHMS:
                found[algorithm][name] = by_peer(python, name, algorithm, seconds, steps)
        except (OSError, subprocess.SubprocessError) as error:
            yield Row(f"{PEERS[name]} / Partage", note=f"not measured: {type(error).__name__}")
    for algorithm, of_peers in found.items():
        yield from _compared(algorithm, own[algorithm], of_peers)
    for algorithm, of_peers in found.items():
        yield from _waits(algorithm, own[algorithm], of_peers)
    yield from of_groups()


def _compared(algorithm, own, of_peers):
    """Yield the time of each peer for a run, relative to Partage."""
    title = "Thompson sampling" if algorithm == "thompson" else "UCB1, and Partage 2-UCB"
    for name, peer in of_peers.items():
        note = f"mean regret {peer}; Partage {own}"
        if algorithm == "thompson" and differs(peer, own):
            note += ": they differ, so this does not compare the same algorithm"
        values = [value / statistics.median(own.seconds) for value in peer.seconds]
        yield Row.of(f"{title}: a run of {PEERS[name]} / of Partage", values, more_is_better=True, note=note)


def _waits(algorithm, own, of_peers):
    """Yield how long one waits for a mean regret with a standard error of 1 %."""
    title = "Thompson sampling" if algorithm == "thompson" else "UCB1"
    ruled = "Thompson sampling" if algorithm == "thompson" else "2-UCB"
    yield _wait(f"{ruled}, Partage on one thread", own, own)
    # All peers play the same algorithm, so the deviation of the one with most runs holds for each.
    judge = own if algorithm == "thompson" else max(of_peers.values(), key=lambda peer: peer.runs, default=None)
    for name, peer in of_peers.items():
        if judge.runs > 1:
            yield _wait(f"{title}, {PEERS[name]}", peer, judge)


def _wait(what, played, judge):
    runs = runs_needed(judge)
    note = f"{runs:,} runs of {1e3 * statistics.median(played.seconds):.3g} ms"
    return Row.of(f"seconds to 1 %: {what}", [runs * value for value in played.seconds], unit="s", note=note)


def of_groups(agents=10, runs=200, times=3):
    """Yield how long one waits for the same precision with groups, on all cores."""
    for rule in (BalancedETC(), BalancedGLR(), SharedIMED()):
        work = partial(play, balanced(agents), rule, runs=runs, settlement="none", baseline=False, checkpoints=())
        mean, stderr = work().overall_regret
        seconds = repeated({"play": work}, times, within=3, clock=wall_seconds, compiled=True)["play"]
        played = Played([value / runs for value in seconds], mean, stderr * math.sqrt(runs), runs)
        yield _wait(f"{rule.name}, {agents} agents, T = 10^6, all cores, waiting time", played, played)
