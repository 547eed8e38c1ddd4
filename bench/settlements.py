"""What settlements cost, and ten million agents: rows for `make bench`.

    python -m bench.settlements

Times are processor times, and each is the median of several.
"""

import statistics
import subprocess
import sys
import time

from partage import BalancedGLR, Game, Sharing, bernoulli, play_run
from partage.board import Board, Record
from partage.settle import settlement_for
from partage.settle.ceiling import _ceilings
from partage.settle.core import rates_and_ceilings

ARMS = bernoulli([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0])
GAME = Game(ARMS, Sharing.dealt(3, 10), 10**6)
RULE = BalancedGLR(evidence="betting", lead=10)
CASES = (
    ("equal-share", "best"),
    ("equal-share", "two-ucb"),
    ("equal-share-expected", "best"),
    ("equal-share-expected", "two-ucb"),
)


def boards(runs):
    """Return the boards at the end of some runs, all of them different."""
    found = []
    for run in range(runs):
        tally = play_run(GAME, RULE, run=run)
        board = Board(GAME.horizon, range(len(ARMS)), [True] * len(ARMS))
        board.record = Record(tally.broadcasts.tolist(), tally.sums.tolist())
        board.active = tally.active.tolist()
        found.append(board)
    return found


def measure(runs=15):
    """Yield (what, measured, goal, whether more is better, unit)."""
    ended = boards(runs + 1)
    for name, alone in CASES:
        settlement, times = settlement_for(name, RULE, alone=alone), []
        _ceilings.cache_clear()  # the first board compiles, and the others are new
        for board in ended:
            started = time.process_time()
            rates_and_ceilings(settlement, board, [GAME.horizon], many=True)
            times.append(time.process_time() - started)
        milliseconds = 1e3 * statistics.median(times[1:])
        yield f"rates and ceiling of a run, {name}, at most {alone} alone, 10 arms", milliseconds, 10, False, "ms"


MANY = """
import resource, time
from partage import BalancedETC, Game, Sharing, bernoulli, play
arms = bernoulli([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0])
play(Game(arms, Sharing.round_robin(100, 10), 10**6), BalancedETC(), runs=1, baseline=False)
started = time.process_time()
play(Game(arms, Sharing.round_robin(10**7, 10), 10**6), BalancedETC(), runs=1, baseline=False)
print(time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def measure_agents(times=3):
    """Yield the rows of a run with ten million agents, each in a process of its own."""
    found = []
    for _ in range(times):
        made = subprocess.run([sys.executable, "-c", MANY], check=True, capture_output=True, text=True)
        found.append([float(each) for each in made.stdout.split()])
    seconds, memory = (statistics.median(column) for column in zip(*found, strict=True))
    yield "one run with 10,000,000 agents, processor time", seconds, 5, False, "s"
    yield "one run with 10,000,000 agents, memory", memory, 2048, False, "MiB"


def main():
    for part in (measure, measure_agents):
        for what, value, goal, _, unit in part():
            print(f"{what}: {value:.3g} {unit} (goal {goal:g})", flush=True)


if __name__ == "__main__":
    main()
