"""Compile the engine before the tests start, so that the processes that run them do not each compile the same code.

`make test` runs this module first: `python -m tests.support.warm_up`.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

from partage.compiled import folder


def warm_up(name: str, sees: str | None = None) -> None:
    """Play a rule on two small games, and settle and audit it in every way that fits; then on two uneven ones."""
    import partage
    from partage.rules import make_rule
    from partage.theory.audit import audit

    rule, arms = make_rule(name, sees=sees), partage.bernoulli([0.9, 0.1])
    for sharing in (partage.Sharing.everything(3, 2), partage.Sharing.lists([[0], [0]], 2)):
        game = partage.Game(arms, sharing, horizon=50)
        for settlement in ("paper", "equal-share", "equal-share-expected"):
            try:
                partage.play(game, rule, runs=1, settlement=settlement)
            except partage.SettlementError:
                continue
        audit(game, rule, runs=1)
        partage.play(replace(game, claim_steps=1.0), rule, runs=1, settlement="none", baseline=False)


def main() -> None:
    """Warm up all rules in two processes, unless that was done for these sources before."""
    done = folder() / "warmed-up"
    if done.exists():
        return
    from partage.rules import RULES

    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        seeing = [name for name, rule in RULES.items() if hasattr(rule, "sees")]
        list(pool.map(warm_up, [*RULES, *seeing], [None] * len(RULES) + ["both"] * len(seeing)))
    done.touch()


if __name__ == "__main__":
    main()
