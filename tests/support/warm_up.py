"""Compile the engine before the tests start, so that the processes that run them do not each compile the same code.

    python -m tests.support.warm_up

Where everything is compiled already, this takes a few seconds.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import partage
from partage.rules import RULES, make_rule
from partage.theory.audit import audit

SHARED = partage.Game(partage.bernoulli([0.9, 0.1]), partage.Sharing.round_robin(3, 2), horizon=50)
HIDDEN = partage.Game(partage.bernoulli([0.9, 0.1]), partage.Sharing.lists([[0], [0]], 2), horizon=50)


def warm_up(name: str) -> None:
    """Play a rule on two small games, and settle and audit it in every way that fits."""
    rule = make_rule(name)
    for game in (SHARED, HIDDEN):
        for settlement in ("paper", "equal-share", "equal-share-expected"):
            try:
                partage.play(game, rule, runs=1, settlement=settlement)
            except partage.SettlementError:
                continue
        audit(game, rule, runs=1)


def main() -> None:
    """Warm up all rules, in two processes."""
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(warm_up, RULES))


if __name__ == "__main__":
    main()
