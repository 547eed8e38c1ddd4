"""What settlements cost: rows for `make bench`.

    python -m bench.settlements

Times are processor times, and each is the median of several.
"""

import statistics
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


def main():
    for what, value, goal, _, unit in measure():
        print(f"{what}: {value:.3g} {unit} (goal {goal:g})", flush=True)


if __name__ == "__main__":
    main()
