"""Compile the engine before the tests start, so that the processes that run them do not each compile the same code.

`make test` runs this module first: `python -m tests.support.warm_up`.
"""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any

from partage.compiled import collector_paused, folder

SETTLEMENTS = ("paper", "equal-share", "equal-share-expected")


def rules_of(kernel: str) -> Iterator[Any]:
    """Yield the rules of a kernel, and the variants that have compiled code of their own."""
    from partage.rules import RULES, make_rule

    for name, rule in RULES.items():
        if make_rule(name).kernel == kernel:
            parameters = {parameter.name for parameter in rule.parameters}
            yield make_rule(name)
            if hasattr(rule, "sees"):
                yield make_rule(name, sees="both")
            if "tolerate" in parameters:
                yield rule(tolerate=1)
            if "own" in parameters:
                yield rule(own=2)


def warm_up(kernel: str) -> None:
    """Play the rules of a kernel on small games with both kinds of arms, and settle and audit them."""
    import partage

    with collector_paused():
        for rule in rules_of(kernel):
            for arms in (partage.bernoulli([0.9, 0.1]), [partage.Constant(0.9), partage.Beta(1, 9)]):
                _play(rule, arms)


def _play(rule: Any, arms: Any) -> None:
    """Play a rule with every arm shared and with one that nobody shares, and on an uneven game."""
    import partage
    from partage.theory.audit import audit

    for sharing in (partage.Sharing.everything(3, 2), partage.Sharing.lists([[0], [0]], 2)):
        game = partage.Game(arms, sharing, horizon=50)
        for settlement in SETTLEMENTS:
            try:
                partage.play(game, rule, runs=1, settlement=settlement, baseline=settlement == "paper")
            except partage.PartageError:
                continue  # it does not fit the rule, or the rule does not play this game
        try:
            audit(game, rule, runs=1)
            partage.play(replace(game, claim_steps=1.0), rule, runs=1, settlement="none", baseline=False)
        except partage.PartageError:
            continue


def main() -> None:
    """Warm up all kernels in two processes, unless that was done for these sources before."""
    done = folder() / "warmed-up"
    if done.exists():
        return
    from partage.rules import RULES, make_rule

    kernels = dict.fromkeys(make_rule(name).kernel for name in RULES)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(warm_up, kernels))
    done.touch()


if __name__ == "__main__":
    main()
