"""The rules that decide by evidence: a broadcast with 10 and with 1,000 arms, and a near tie.

A case that would take longer than `LIMIT` seconds is stopped, and its row says so.
"""

from functools import partial

import numpy as np
from bench.elsewhere import TooLong, one_by_one
from bench.rows import Row
from bench.timing import BARE, bare, over, repeated

from partage import KLETC, BalancedETC, BalancedGLR, Game, SharedIMED, Sharing, bernoulli, play

RULES = {
    "balanced-etc": BalancedETC(),
    "balanced-glr": BalancedGLR(),
    "shared-imed": SharedIMED(),
    "kl-etc": KLETC(),
    "balanced-glr by betting": BalancedGLR(evidence="betting"),
}
BY_EVIDENCE = [name for name in RULES if name != "balanced-etc"]
LIMIT = 8.0  # seconds
WITHIN = 2.0  # seconds of repeats after which no other begins
ABOUT = (
    "The means of the arms are evenly spaced from 0.9 to 0, and every agent shares one arm; the near tie has two "
    "arms with means 0.6 and 0.599. With 10 arms, a repeat has 100 runs, the default number. A case that would "
    f"take over {LIMIT:g} s is stopped."
)
CASES = {  # what each case measures, its goal and its unit
    "10 arms": ("a broadcast / a step of the bare loop, N = 10", 8, "x"),
    "1,000 arms": ("a broadcast / a step of the bare loop, N = 1,000, T = 10^4", 12, "x"),
    "near tie": ("a run with gap 0.001, T = 10^9, M = 1,000", 1, "s"),
}


def evenly_spaced(arms, agents, horizon):
    """Return a game whose arms have evenly spaced means from 0.9 down, and whose agents share one arm each."""
    return Game(bernoulli(np.linspace(0.9, 0.0, arms)), Sharing.round_robin(agents, arms), horizon)


def near_tie(gap=0.001, agents=1000, horizon=10**9):
    """Return a game with two arms that hardly differ."""
    return Game(bernoulli([0.6, 0.6 - gap]), Sharing.round_robin(agents, 2), horizon)


def played(game, rule, runs=1):
    """Return the work of playing a game, on one thread and without a settlement."""
    return partial(play, game, rule, runs=runs, settlement="none", baseline=False, checkpoints=(), jobs=1)


def times_bare(game, rule, runs, times):
    """Return in how many steps of the bare loop a broadcast is made, for each repeat."""
    work, results = played(game, rule, runs), []
    seconds = repeated({"rule": lambda: results.append(work()), "bare": bare}, times, within=WITHIN, compiled=True)
    each = [value / (runs * results[0].broadcasts.mean) for value in seconds["rule"]]
    return over(each, [value / BARE for value in seconds["bare"]])


def compile_(rule):
    """Compile what the cases need on tiny games."""
    played(evenly_spaced(10, 10, 100), rule)()
    bare()


def prepare():
    """Compile the kernels of all rules, which keeps them on disk; yield the name of each."""
    for name, rule in RULES.items():
        compile_(rule)
        yield name


def cases(name, chosen):
    """Yield True once the rule is compiled, and then the values of each case."""
    rule = RULES[name]
    compile_(rule)
    yield True
    for case in chosen:
        if case == "10 arms":
            yield times_bare(evenly_spaced(10, 10, 10**6), rule, runs=100, times=7)
        elif case == "1,000 arms":
            yield times_bare(evenly_spaced(1000, 1000, 10**4), rule, runs=1, times=5)
        else:
            yield repeated({"run": played(near_tie(), rule)}, times=5, within=WITHIN, compiled=True)["run"]


def measure(seconds=60.0, rules=BY_EVIDENCE, chosen=tuple(CASES), each=LIMIT):
    """Yield the rows of all rules."""
    for name in rules:
        found = one_by_one("bench.evidence_rules:cases", [name], list(chosen), seconds / len(rules), each)
        for case, values in found:
            yield row_of(name, case, values)


def row_of(name, case, values):
    """Return the row of a case: its values, or why there are none."""
    what, goal, unit = CASES[case]
    what = f"{name}: {what}"
    if isinstance(values, list):
        return Row.of(what, values, goal, unit=unit)
    # Repeats that were made took at most WITHIN; the one that was stopped took the rest.
    if case == "near tie" and isinstance(values, TooLong) and values.seconds > WITHIN:
        note = f"stopped after {values.seconds:.3g} s"
        return Row(what, values.seconds - WITHIN, goal, unit=unit, above=True, note=note)
    return Row(what, None, goal, unit=unit, note=f"not measured: {values}")
