"""Judging what was seen. Nothing is played here, and every verdict can fail.

What a promise is about decides how it is judged:

- a bound on an expectation: by the mean over runs, 3 standard errors to either side;
- a bound given the good event E (or E', for 2-UCB): in each of the runs in which that event held;
- a probability: by its frequency, with the exact binomial interval of 99 %;
- a bound at every step: at every step.

A promise whose premise is not met is not applicable. What was measured stands beside it all the same.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist

import numpy as np
from scipy.special import betaincinv

from partage.arms import Bernoulli
from partage.simulate.result import Estimate
from partage.theory import bounds
from partage.theory.audit_row import HOLDS, NO_VERDICT, NOT_APPLICABLE, VIOLATED, AuditRow, number
from partage.theory.bounds import Premise
from partage.theory.measure import Bools, Floats, Ints, Seen

STANDARD_ERRORS = 3.0
CONFIDENCE = 0.99

NUMBERS = {
    "Th1": "Theorem 4.1",
    "event1": "Lemma 4.3",
    "suboptimal": "Lemma 4.4",
    "lemma_number_explore": "Lemma 4.5",
    "Lemma_Commit": "Lemma 4.6",
    "Theorem_Min_Info": "Theorem 4.7",
    "range": "Lemma 5.1",
    "Theorem_IR": "Theorem 5.2",
    "range_ucb": "Lemma H.1",
}


def judge(seen: Seen) -> list[AuditRow]:
    """Judge every promise on what was seen. Nothing is played here."""
    return [
        _overall(seen),
        *judge_event(seen),
        _suboptimal(seen),
        _optimal_stays(seen),
        _explore(seen),
        _commit(seen),
        _information(seen),
        *_range(seen),
        _rational(seen),
        _two_ucb(seen),
    ]


def _row(label: str, says: str, premise: str = "–", met: bool | None = None) -> AuditRow:
    """A row with nothing in it yet."""
    return AuditRow(label, NUMBERS[label], says, premise, met, "–", "–", None, None, 0, NO_VERDICT)


def _not_applicable(row: AuditRow, why: str) -> AuditRow:
    return replace(row, premise_met=False, verdict=NOT_APPLICABLE, note=why)


def _under(row: AuditRow, premise: str, met: bool) -> AuditRow:
    """Put a judged row under its premise: not met, it is not applicable, whatever was measured."""
    row = replace(row, premise=premise, premise_met=met)
    if met:
        return row
    measured = {
        HOLDS: "it holds all the same",
        VIOLATED: "it does not hold",
        NO_VERDICT: "too little was seen to tell",
    }
    return replace(row, verdict=NOT_APPLICABLE, note=f"Not promised here, and {measured[row.verdict]}.")


def _unfit(seen: Seen, *, finite: bool = False, gap: bool = False, shared: bool = True) -> str | None:
    """Why a promise about Balanced-ETC is not about these runs; None where it is."""
    if seen.balance is None:
        return f"It is about Balanced-ETC, not about {seen.rule}."
    if shared and not seen.all_shared:
        return "Some arm is shared by nobody."
    if finite and math.isinf(seen.balance):
        return "It grows without bound in B, which is infinite."
    if gap and any(bounds.smallest_gap(gaps) is None for gaps in _distinct(seen)):
        return "Every arm is optimal: there is no gap."
    return None


def _distinct(seen: Seen) -> Floats:
    """The gaps, one row where they are the same in every run."""
    return seen.gaps[:1] if seen.fixed else seen.gaps


def _by_run(seen: Seen, bound: Callable[[Floats], float]) -> Floats:
    """A bound that depends on the gaps, a value a run."""
    return np.broadcast_to(np.array([bound(gaps) for gaps in _distinct(seen)]), seen.runs)


def _by_count(bound: Callable[[int], float], counts: Ints) -> Floats:
    """A bound that depends on a count, for every run and arm."""
    values, where = np.unique(counts, return_inverse=True)
    return np.array([bound(int(value)) for value in values])[where].reshape(counts.shape)


def _judge_mean(row: AuditRow, values: Floats, limits: Floats) -> AuditRow:
    """A bound on an expectation: the mean of value / bound against 1."""
    if len(values) == 0:
        return replace(row, note="E held in no run.")
    ratio, value = Estimate.of(values / limits), Estimate.of(values)
    limit = float(limits.mean())
    row = replace(
        row,
        bound=f"≤ {number(limit)}",
        measured=_estimate(value),
        slack=1 / ratio.mean if ratio.mean > 0 else None,
        violations=int(np.sum(values > limits)),
        runs=len(values),
        bound_value=limit,
        measured_value=value.mean,
    )
    if ratio.stderr is None or value.stderr is None:
        return replace(row, note="One run has no standard error.")
    low, high = (ratio.mean + sign * STANDARD_ERRORS * ratio.stderr for sign in (-1, 1))
    spread = STANDARD_ERRORS * value.stderr
    row = replace(row, low=value.mean - spread, high=value.mean + spread)
    if low > 1:
        return replace(row, verdict=VIOLATED)
    if high > 1:
        return replace(row, note="The mean is within 3 standard errors of the bound.")
    return replace(row, verdict=HOLDS)


def _judge_each(
    row: AuditRow, slack: Floats, good: Bools, event: str = "E"
) -> tuple[AuditRow, tuple[int, int] | None]:
    """A bound in every run in which an event held: `slack` by run and arm, below 1 where it is passed.

    Returns the row and where the slack is least. Arms without a bound have a slack of nan.
    """
    held = np.flatnonzero(good)
    if len(held) == 0:
        return replace(row, note=f"{event} held in no run."), None
    tightest = slack[held]
    passed = np.any(tightest < 1, axis=1)
    at, arm = np.unravel_index(np.nanargmin(tightest), tightest.shape)
    row = replace(
        row,
        slack=float(tightest[at, arm]) if math.isfinite(tightest[at, arm]) else None,
        violations=int(passed.sum()),
        runs=len(held),
        verdict=VIOLATED if passed.any() else HOLDS,
    )
    return row, (int(held[at]), int(arm))


def _overall(seen: Seen) -> AuditRow:
    """`Th1`."""
    row = _row("Th1", "overall regret, on average")
    premise = "every arm shared, B finite, some gap"
    if why := _unfit(seen, finite=True, gap=True):
        return _not_applicable(replace(row, premise=premise), why)
    agents, horizon, balance = seen.game.agents, seen.game.horizon, _balance(seen)
    limits = _by_run(seen, lambda gaps: bounds.overall_regret(gaps, agents, horizon, balance))
    return _under(_judge_mean(row, seen.overall, limits), premise, True)


def judge_event(seen: Seen) -> list[AuditRow]:
    """`event1`: as the paper has it, and by a union over every broadcast there can be."""
    paper = _row("event1", "chance that E fails (2N/T)")
    ours = _row("event1", "chance that E fails, counted per broadcast (2NM/T²)")
    if why := _unfit(seen, shared=False):
        return [_not_applicable(paper, why), _not_applicable(ours, why)]
    agents, arms, horizon = seen.game.agents, len(seen.game.arms), seen.game.horizon
    failed = int(np.sum(~seen.good))
    premise = f"M ≤ T, for the proof: {agents:,} {'≤' if agents <= horizon else 'is not ≤'} {horizon:,}"
    return [
        _under(_judge_chance(paper, failed, seen.runs, bounds.bad_event(arms, horizon)), premise, agents <= horizon),
        _judge_chance(ours, failed, seen.runs, bounds.bad_event_per_broadcast(arms, agents, horizon)),
    ]


def _judge_chance(row: AuditRow, failed: int, runs: int, limit: float) -> AuditRow:
    """A probability: the interval of its frequency against the bound."""
    low, high = binomial_interval(failed, runs)
    row = replace(
        row,
        bound=f"≤ {number(limit)}",
        measured=f"{number(failed / runs)} ({number(low)} to {number(high)})",
        slack=limit * runs / failed if failed else None,
        violations=failed,
        runs=runs,
        bound_value=limit,
        measured_value=failed / runs,
        low=low,
        high=high,
    )
    if low > limit:
        return replace(row, verdict=VIOLATED)
    if limit >= 1:
        return replace(row, note="A bound of 1 or more says nothing about a probability.")
    if high > limit:
        enough = math.ceil(math.log((1 - CONFIDENCE) / 2) / math.log1p(-limit))
        why = f"It takes {enough:,} runs without a failure to confirm so small a bound; nothing speaks against it."
        return replace(row, note=why if failed == 0 else "The bound is within the interval.")
    return replace(row, verdict=HOLDS)


def binomial_interval(failed: int, runs: int) -> tuple[float, float]:
    """Return the exact interval (Clopper and Pearson) of a probability, at a confidence of 99 %.

    >>> binomial_interval(0, 100)
    (0.0, 0.0516)
    """
    tail = (1 - CONFIDENCE) / 2
    low = float(betaincinv(failed, runs - failed + 1, tail)) if failed else 0.0
    high = float(betaincinv(failed + 1, runs - failed, 1 - tail)) if failed < runs else 1.0
    return low, high


def _suboptimal(seen: Seen) -> AuditRow:
    """`suboptimal`, the bound on broadcasts."""
    row = _row("suboptimal", "broadcasts of a sub-optimal arm, given E")
    premise = "every arm shared, B finite, some gap"
    if why := _unfit(seen, finite=True, gap=True):
        return _not_applicable(replace(row, premise=premise), why)
    horizon, balance, distinct = seen.game.horizon, _balance(seen), _distinct(seen)
    each = [[bounds.broadcasts(gap, horizon, balance) if gap > 0 else np.nan for gap in gaps] for gaps in distinct]
    limits = np.broadcast_to(np.array(each), seen.gaps.shape)
    with np.errstate(divide="ignore"):
        row, where = _judge_each(row, limits / seen.broadcasts, seen.good)
    if where:
        limit, most = limits[where], seen.broadcasts[where]
        row = replace(row, bound=f"≤ {number(limit)} ({_arm(seen, where)})", measured=f"{most:,} at most")
        row = replace(row, bound_value=float(limit), measured_value=float(most))
    return _under(row, premise, True)


def _optimal_stays(seen: Seen) -> AuditRow:
    """`suboptimal`, its other half."""
    row = _row("suboptimal", "no optimal arm is eliminated, given E")
    if why := _unfit(seen):
        return _not_applicable(replace(row, premise="every arm shared"), why)
    gone = seen.eliminated & (seen.gaps == 0)
    row, _ = _judge_each(row, np.where(gone, 0.0, np.inf), seen.good)
    gone_runs = row.violations or 0
    row = replace(row, bound="never", measured=f"in {gone_runs:,} runs" if gone_runs else "never", slack=None)
    return _under(replace(row, bound_value=0.0, measured_value=float(gone_runs)), "every arm shared", True)


def _explore(seen: Seen) -> AuditRow:
    """`lemma_number_explore`."""
    row = _row("lemma_number_explore", "an active arm has N_i(t) ≥ t/N − 1, or (N_i(t) + 1) N/t ≥ 1")
    premise = "every arm shared; only while several are active"
    if why := _unfit(seen):
        return _not_applicable(replace(row, premise=premise), why)
    if seen.tightest is None or not np.isfinite(seen.tightest).any():
        return _not_applicable(replace(row, premise=premise), "There is never more than one active arm.")
    row, _ = _judge_each(row, seen.tightest[:, None], np.ones(len(seen.tightest), np.bool_))
    least = float(seen.tightest.min())
    row = replace(row, bound="≥ 1", measured=f"{number(least)} at least", bound_value=1.0, measured_value=least)
    if len(seen.tightest) < seen.runs:
        row = replace(row, note=f"Watched in {len(seen.tightest):,} of {seen.runs:,} runs, as they are long.")
    return _under(row, premise, True)


def _commit(seen: Seen) -> AuditRow:
    """`Lemma_Commit`."""
    row = _row("Lemma_Commit", "commit regret of all, on average, given E")
    premise = "every arm shared, some gap"
    if why := _unfit(seen, gap=True):
        return _not_applicable(replace(row, premise=premise), why)
    limits = _by_run(seen, lambda gaps: bounds.commit_regret(gaps, seen.game.agents))
    return _under(_judge_mean(row, seen.commit[seen.good], limits[seen.good]), premise, True)


def _information(seen: Seen) -> AuditRow:
    """`Theorem_Min_Info`: has no constant, so it is shown and not judged."""
    row = _row("Theorem_Min_Info", "sharing less than order log T costs regret of order MN log T")
    logs = [math.log(shown.horizon) for shown in seen.information]
    per_log = [shown.broadcasts / log for shown, log in zip(seen.information, logs, strict=True)]
    size = seen.game.agents * len(seen.game.arms)
    costs = [shown.regret / (size * log) for shown, log in zip(seen.information, logs, strict=True)]
    at = ", ".join(f"{shown.horizon:,}" for shown in seen.information)
    note = (
        f"There is no constant to check. At T = {at}: broadcasts / log T = {_listed(per_log)}; "
        f"regret / (M N log T) = {_listed(costs)}."
    )
    bound, floor = "–", None
    if seen.fixed:
        floor = bounds.information_floor(seen.game.means)
        bound = f"Σ 1/kl = {number(floor)}"
        kinds = (
            "" if all(isinstance(arm, Bernoulli) for arm in seen.game.arms) else " of Bernoulli arms of these means"
        )
        note += f" One agent alone must see Σ 1/kl{kinds} = {number(floor)} times log T."
    return replace(
        row,
        bound=bound,
        measured=f"{number(per_log[-1])} broadcasts / log T",
        slack=per_log[-1] / floor if floor and per_log[-1] > 0 else None,
        runs=seen.runs,
        note=note,
        bound_value=floor,
        measured_value=per_log[-1],
    )


def _range(seen: Seen) -> list[AuditRow]:
    """`range`: a gap from both sides."""
    rows = [
        _row("range", "a gap is at least √(k log T / N_i), given E"),
        _row("range", "a gap is at most √(8c log T / N_i), given E"),
    ]
    premise = "(T − 2N)/log T > 8cN/Δ²"
    if why := _unfit(seen, finite=True, gap=True):
        return [_not_applicable(replace(row, premise=premise), why) for row in rows]
    horizon, balance = seen.game.horizon, _balance(seen)
    premise, met = _premise(seen, premise, lambda gaps: bounds.all_eliminated(gaps, horizon, balance))
    gaps = np.where(seen.gaps > 0, seen.gaps, np.nan)
    floors = _by_count(lambda n: bounds.gap_floor(n, horizon), seen.broadcasts)
    ceilings = _by_count(lambda n: bounds.gap_ceiling(n, horizon, balance), seen.broadcasts)
    judged = []
    for row, sign, limits, slack in zip(
        rows, ("≥", "≤"), (floors, ceilings), (gaps / floors, ceilings / gaps), strict=True
    ):
        done, where = _judge_each(row, slack, seen.good)
        judged.append(_under(_gap(done, sign, seen, limits, where), premise, met))
    return judged


def _gap(row: AuditRow, sign: str, seen: Seen, limits: Floats, where: tuple[int, int] | None) -> AuditRow:
    """Show the gap that comes closest to its bound."""
    if where is None:
        return row
    limit, gap = float(limits[where]), float(seen.gaps[where])
    return replace(
        row,
        bound=f"{sign} {number(limit)}",
        measured=f"{number(gap)} ({_arm(seen, where)})",
        bound_value=limit if math.isfinite(limit) else None,
        measured_value=gap,
    )


def _rational(seen: Seen) -> AuditRow:
    """`Theorem_IR`."""
    row = _row("Theorem_IR", "no agent loses more than alone, on average, given E")
    long, gone = "T/log²T > N/(4Δ⁴)", "(T − 2N)/log T > 8cN/Δ²"
    if why := _unfit(seen, finite=True, gap=True, shared=False):
        return _not_applicable(replace(row, premise=f"{long}; {gone}"), why)
    horizon, balance = seen.game.horizon, _balance(seen)
    first, first_met = _premise(seen, long, lambda gaps: bounds.long_enough(gaps, horizon))
    second, second_met = _premise(seen, gone, lambda gaps: bounds.all_eliminated(gaps, horizon, balance))
    premise, met = f"{first}; {second}", first_met and second_met and seen.all_shared
    if not seen.all_shared:
        premise = f"every arm shared: no; {premise}"
    if seen.alone is None:
        return replace(
            row, premise=premise, premise_met=met, note="2-UCB was not played: runs times T is beyond 1e9."
        )
    assert seen.incentive is not None
    held, alone = int(seen.good.sum()), seen.alone.regret
    if held == 0:
        return replace(row, premise=premise, premise_met=met, note="E held in no run.")
    mean, stderr = seen.incentive
    worst = int(np.argmax(mean))
    row = replace(
        row,
        bound=f"≤ {_estimate(alone)}",
        measured=_estimate(Estimate(float(mean[worst]), None if held < 2 else float(stderr[worst]))),
        slack=alone.mean / float(mean[worst]) if mean[worst] > 0 else None,
        violations=int(np.sum(seen.highest_incentive[seen.good] > alone.mean)),
        runs=held,
        bound_value=alone.mean,
        measured_value=float(mean[worst]),
    )
    if held < 2 or alone.stderr is None:
        return _under(replace(row, note="One run has no standard error."), premise, met)
    # Many agents are compared at once: the chance of one false alarm stays that of 3 standard errors.
    tail = NormalDist().cdf(-STANDARD_ERRORS) / seen.game.agents
    spread = -NormalDist().inv_cdf(tail) * np.hypot(stderr, alone.stderr)
    low, high = mean - spread, mean + spread
    row = replace(row, low=float(low[worst]), high=float(high[worst]))
    if np.any(low > alone.mean):
        row = replace(row, verdict=VIOLATED, note=f"{int(np.sum(low > alone.mean)):,} agents lose more than alone.")
    elif np.all(high <= alone.mean):
        row = replace(row, verdict=HOLDS)
    else:
        row = replace(row, note="The worst agent is too close to 2-UCB alone to tell.")
    return _under(row, premise, met)


def _two_ucb(seen: Seen) -> AuditRow:
    """`range_ucb`, of one agent who plays 2-UCB alone: about any rule's game."""
    row = _row("range_ucb", "alone: a gap is at least √(k log T / 4N'_i), given E'")
    premise = "T/log²T > N/(4Δ⁴)"
    if any(bounds.smallest_gap(gaps) is None for gaps in _distinct(seen)):
        return _not_applicable(replace(row, premise=premise), "Every arm is optimal: there is no gap.")
    horizon = seen.game.horizon
    premise, met = _premise(seen, premise, lambda gaps: bounds.long_enough(gaps, horizon))
    if seen.alone is None:
        return replace(
            row, premise=premise, premise_met=met, note="2-UCB was not played: runs times T is beyond 1e9."
        )
    gaps = np.where(seen.alone.gaps > 0, seen.alone.gaps, np.nan)
    floors = _by_count(lambda n: bounds.two_ucb_gap_floor(n, horizon), seen.alone.pulls)
    row, where = _judge_each(row, gaps / floors, seen.alone.good, "E'")
    return _under(_gap(row, "≥", seen, floors, where), premise, met)


# --- words --------------------------------------------------------------------------------------------------


def _balance(seen: Seen) -> float:
    assert seen.balance is not None
    return seen.balance


def _premise(seen: Seen, words: str, premise: Callable[[Floats], Premise]) -> tuple[str, bool]:
    """A premise in words and numbers, and whether it is met: in every run, where gaps differ by run."""
    each = [premise(gaps) for gaps in _distinct(seen)]
    met = sum(one.met for one in each)
    if seen.fixed:
        sign = ">" if met else "is not >"
        return f"{words}: {number(each[0].left)} {sign} {number(each[0].right)}", met == 1
    return f"{words}: in {met:,} of {len(each):,} runs", met == len(each)


def _arm(seen: Seen, where: tuple[int, int]) -> str:
    return seen.game.arm_names[where[1]]


def _estimate(value: Estimate) -> str:
    if value.stderr is None or value.stderr == 0:
        return number(value.mean)
    digits = min(max(0, 1 - math.floor(math.log10(value.stderr))), 8)
    return f"{value.mean:,.{digits}f} ± {value.stderr:,.{digits}f}"


def _listed(values: list[float]) -> str:
    return ", ".join(number(value) for value in values)
