"""One verdict per promise of the paper, from what was measured. Nothing is played here."""

import math
from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from partage.arms import Bernoulli
from partage.simulate.result import Estimate
from partage.theory import bounds
from partage.theory.audit_row import HOLDS, NO_VERDICT, VIOLATED, AuditRow, number
from partage.theory.bounds import Premise
from partage.theory.judging import (
    STANDARD_ERRORS,
    estimate,
    judge_each,
    judge_mean,
    judge_probability,
    not_applicable,
    under,
)
from partage.theory.measure import Floats, Ints, Measurements

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
LONG_ENOUGH, ALL_ELIMINATED = "T/log²T > N/(4Δ⁴)", "(T − 2N)/log T > 8cN/Δ²"


def verdicts(measured: Measurements) -> list[AuditRow]:
    """Judge every promise."""
    return [
        _overall_regret(measured),
        *event_verdicts(measured),
        _broadcasts(measured),
        _optimal_stays(measured),
        _exploration(measured),
        _commit_regret(measured),
        _information(measured),
        *_gap_range(measured),
        _individual_rationality(measured),
        _two_ucb_pulls(measured),
    ]


# --- each promise ---------------------------------------------------------------------------------------------


def _overall_regret(measured: Measurements) -> AuditRow:
    """`Th1`."""
    row, premise = _row("Th1", "mean overall regret"), "every arm shared, B finite, some gap"
    if why := _unfit(measured, finite=True, gap=True):
        return not_applicable(row, premise, why)
    agents, horizon, balance = measured.game.agents, measured.game.horizon, _balance(measured)
    limits = _by_run(measured, lambda gaps: bounds.overall_regret(gaps, agents, horizon, balance))
    return under(judge_mean(row, measured.overall, limits), premise, True)


def event_verdicts(measured: Measurements) -> list[AuditRow]:
    """`event1`: as the paper states it, and by a union bound over every possible broadcast."""
    paper = _row("event1", "probability that E fails (2N/T)")
    ours = _row("event1", "probability that E fails, by a union bound over broadcasts (2NM/T²)")
    if why := _unfit(measured, shared=False):
        return [not_applicable(row, "–", why) for row in (paper, ours)]
    agents, arms, horizon = measured.game.agents, len(measured.game.arms), measured.game.horizon
    failed = int(np.sum(~measured.event_held))
    premise = f"M ≤ T, for the proof: {agents:,} {'≤' if agents <= horizon else 'is not ≤'} {horizon:,}"
    paper = judge_probability(paper, failed, measured.runs, bounds.bad_event(arms, horizon))
    per_broadcast = bounds.bad_event_per_broadcast(arms, agents, horizon)
    return [under(paper, premise, agents <= horizon), judge_probability(ours, failed, measured.runs, per_broadcast)]


def _broadcasts(measured: Measurements) -> AuditRow:
    """`suboptimal`: the bound on broadcasts."""
    row, premise = (
        _row("suboptimal", "broadcasts of a sub-optimal arm, given E"),
        "every arm shared, B finite, some gap",
    )
    if why := _unfit(measured, finite=True, gap=True):
        return not_applicable(row, premise, why)
    horizon, balance = measured.game.horizon, _balance(measured)
    each = [
        [bounds.broadcasts(gap, horizon, balance) if gap > 0 else np.nan for gap in gaps]
        for gaps in _distinct_gaps(measured)
    ]
    limits = np.broadcast_to(np.array(each), measured.gaps.shape)
    with np.errstate(divide="ignore"):
        row, where = judge_each(row, limits / measured.broadcasts, measured.event_held)
    if where:
        limit, most = limits[where], measured.broadcasts[where]
        row = replace(row, bound=f"≤ {number(limit)} ({_arm(measured, where)})", measured=f"{most:,} at most")
        row = replace(row, bound_value=float(limit), measured_value=float(most))
    return under(row, premise, True)


def _optimal_stays(measured: Measurements) -> AuditRow:
    """`suboptimal`: its other half."""
    row, premise = _row("suboptimal", "no optimal arm is eliminated, given E"), "every arm shared"
    if why := _unfit(measured):
        return not_applicable(row, premise, why)
    gone = measured.eliminated & (measured.gaps == 0)
    row, _ = judge_each(row, np.where(gone, 0.0, np.inf), measured.event_held)
    runs = row.violations or 0
    row = replace(row, bound="never", measured=f"in {runs:,} runs" if runs else "never", slack=None)
    return under(replace(row, bound_value=0.0, measured_value=float(runs)), premise, True)


def _exploration(measured: Measurements) -> AuditRow:
    """`lemma_number_explore`."""
    row = _row("lemma_number_explore", "an active arm has N_i(t) ≥ t/N − 1, that is, (N_i(t) + 1) N/t ≥ 1")
    premise = "every arm shared; only while several are active"
    if why := _unfit(measured):
        return not_applicable(row, premise, why)
    ratio = measured.explore_ratio
    if ratio is None or not np.isfinite(ratio).any():
        return not_applicable(row, premise, "There is never more than one active arm.")
    row, _ = judge_each(row, ratio[:, None], np.ones(len(ratio), np.bool_))
    least = float(ratio.min())
    row = replace(row, bound="≥ 1", measured=f"{number(least)} at least", bound_value=1.0, measured_value=least)
    if len(ratio) < measured.runs:
        row = replace(row, note=f"Checked in {len(ratio):,} of {measured.runs:,} runs, because they are long.")
    return under(row, premise, True)


def _commit_regret(measured: Measurements) -> AuditRow:
    """`Lemma_Commit`."""
    row, premise = _row("Lemma_Commit", "mean commit regret of all agents, given E"), "every arm shared, some gap"
    if why := _unfit(measured, gap=True):
        return not_applicable(row, premise, why)
    limits, held = (
        _by_run(measured, lambda gaps: bounds.commit_regret(gaps, measured.game.agents)),
        measured.event_held,
    )
    return under(judge_mean(row, measured.commit[held], limits[held]), premise, True)


def _information(measured: Measurements) -> AuditRow:
    """`Theorem_Min_Info`: it has no constant, so it is shown but not judged."""
    row = _row("Theorem_Min_Info", "sharing less than order log T costs regret of order MN log T")
    horizons, size = measured.horizons, measured.game.agents * len(measured.game.arms)
    logs = [math.log(at.horizon) for at in horizons]
    per_log = [at.broadcasts / log for at, log in zip(horizons, logs, strict=True)]
    costs = [at.regret / (size * log) for at, log in zip(horizons, logs, strict=True)]
    note = (
        f"There is no constant to check. At T = {', '.join(f'{at.horizon:,}' for at in horizons)}: "
        f"broadcasts / log T = {_listed(per_log)}; regret / (M N log T) = {_listed(costs)}."
    )
    bound, floor = "–", None
    if measured.same_gaps:
        floor = bounds.information_floor(measured.game.means)
        bound = f"Σ 1/kl = {number(floor)}"
        bernoulli = all(isinstance(arm, Bernoulli) for arm in measured.game.arms)
        kinds = "" if bernoulli else " of Bernoulli arms with these means"
        note += f" One agent alone must see Σ 1/kl{kinds} = {number(floor)} times log T."
    return replace(
        row,
        bound=bound,
        measured=f"{number(per_log[-1])} broadcasts / log T",
        slack=per_log[-1] / floor if floor and per_log[-1] > 0 else None,
        runs=measured.runs,
        note=note,
        bound_value=floor,
        measured_value=per_log[-1],
    )


def _gap_range(measured: Measurements) -> list[AuditRow]:
    """`range`: a gap from both sides."""
    at_least = _row("range", "a gap is at least √(k log T / N_i), given E")
    at_most = _row("range", "a gap is at most √(8c log T / N_i), given E")
    if why := _unfit(measured, finite=True, gap=True):
        return [not_applicable(row, ALL_ELIMINATED, why) for row in (at_least, at_most)]
    horizon, balance = measured.game.horizon, _balance(measured)
    premise, met = _premise(measured, ALL_ELIMINATED, lambda gaps: bounds.all_eliminated(gaps, horizon, balance))
    gaps = np.where(measured.gaps > 0, measured.gaps, np.nan)
    floors = _by_count(lambda n: bounds.gap_floor(n, horizon), measured.broadcasts)
    ceilings = _by_count(lambda n: bounds.gap_ceiling(n, horizon, balance), measured.broadcasts)
    at_least, where = judge_each(at_least, gaps / floors, measured.event_held)
    at_least = _with_gap(at_least, "≥", measured, floors, where)
    at_most, where = judge_each(at_most, ceilings / gaps, measured.event_held)
    at_most = _with_gap(at_most, "≤", measured, ceilings, where)
    return [under(row, premise, met) for row in (at_least, at_most)]


def _individual_rationality(measured: Measurements) -> AuditRow:
    """`Theorem_IR`."""
    row = _row("Theorem_IR", "no agent's mean incentive regret exceeds the regret of 2-UCB alone, given E")
    if why := _unfit(measured, finite=True, gap=True, shared=False):
        return not_applicable(row, f"{LONG_ENOUGH}; {ALL_ELIMINATED}", why)
    horizon, balance = measured.game.horizon, _balance(measured)
    long, long_met = _premise(measured, LONG_ENOUGH, lambda gaps: bounds.long_enough(gaps, horizon))
    gone, gone_met = _premise(measured, ALL_ELIMINATED, lambda gaps: bounds.all_eliminated(gaps, horizon, balance))
    shared = "" if measured.all_shared else "every arm shared: no; "
    premise, met = f"{shared}{long}; {gone}", long_met and gone_met and measured.all_shared
    if measured.alone is None:
        return replace(row, premise=premise, premise_met=met, note=_NOT_PLAYED)
    if not measured.event_held.any():
        return replace(row, premise=premise, premise_met=met, note="E held in no run.")
    return under(_judge_incentives(row, measured, measured.alone.regret), premise, met)


def _judge_incentives(row: AuditRow, measured: Measurements, alone: Estimate) -> AuditRow:
    """Compare each agent's mean incentive regret with the regret of 2-UCB alone."""
    assert measured.incentive is not None
    assert measured.highest_incentive is not None
    held, (mean, stderr) = measured.event_held, measured.incentive
    runs, worst = int(held.sum()), int(np.argmax(mean))
    row = replace(
        row,
        bound=f"≤ {estimate(alone)}",
        measured=estimate(Estimate(float(mean[worst]), None if runs < 2 else float(stderr[worst]))),
        slack=alone.mean / float(mean[worst]) if mean[worst] > 0 else None,
        violations=int(np.sum(measured.highest_incentive[held] > alone.mean)),
        runs=runs,
        bound_value=alone.mean,
        measured_value=float(mean[worst]),
    )
    if runs < 2 or alone.stderr is None:
        return replace(row, note="A single run has no standard error.")
    # Many agents are compared at once: together they have the false-alarm rate of 3 standard errors.
    tail = NormalDist().cdf(-STANDARD_ERRORS) / measured.game.agents
    spread = -NormalDist().inv_cdf(tail) * np.hypot(stderr, alone.stderr)
    low, high = mean - spread, mean + spread
    row = replace(row, low=float(low[worst]), high=float(high[worst]))
    if np.any(low > alone.mean):
        return replace(row, verdict=VIOLATED, note=f"{int(np.sum(low > alone.mean)):,} agents lose more than alone.")
    if np.all(high <= alone.mean):
        return replace(row, verdict=HOLDS)
    return replace(row, note="The worst agent is too close to 2-UCB alone to tell.")


def _two_ucb_pulls(measured: Measurements) -> AuditRow:
    """`range_ucb`: about one agent that plays 2-UCB alone, so it applies to every rule's game."""
    row = _row("range_ucb", "2-UCB alone: a gap is at least √(k log T / 4N'_i), given E'")
    if any(bounds.smallest_gap(gaps) is None for gaps in _distinct_gaps(measured)):
        return not_applicable(row, LONG_ENOUGH, _NO_GAP)
    horizon = measured.game.horizon
    premise, met = _premise(measured, LONG_ENOUGH, lambda gaps: bounds.long_enough(gaps, horizon))
    alone = measured.alone
    if alone is None:
        return replace(row, premise=premise, premise_met=met, note=_NOT_PLAYED)
    gaps = np.where(alone.gaps > 0, alone.gaps, np.nan)
    floors = _by_count(lambda n: bounds.two_ucb_gap_floor(n, horizon), alone.pulls)
    row, where = judge_each(row, gaps / floors, alone.event_held, "E'")
    return under(_with_gap(row, "≥", measured, floors, where), premise, met)


# --- parts of a row -------------------------------------------------------------------------------------------

_NO_GAP = "Every arm is optimal: there is no gap."
_NOT_PLAYED = "2-UCB was not played: runs times T exceeds 1e9."


def _row(label: str, says: str) -> AuditRow:
    """Return a row without a verdict."""
    return AuditRow(label, NUMBERS[label], says, "–", None, "–", "–", None, None, 0, NO_VERDICT)


def _unfit(measured: Measurements, *, finite: bool = False, gap: bool = False, shared: bool = True) -> str | None:
    """Return why a promise about Balanced-ETC is not about these runs; None if it is."""
    if measured.balance is None:
        return f"It is about Balanced-ETC, not about {measured.rule}."
    if shared and not measured.all_shared:
        return "Nobody shares some of the arms."
    if finite and math.isinf(measured.balance):
        return "The bound grows with B, which is infinite."
    if gap and any(bounds.smallest_gap(gaps) is None for gaps in _distinct_gaps(measured)):
        return _NO_GAP
    return None


def _balance(measured: Measurements) -> float:
    assert measured.balance is not None
    return measured.balance


def _distinct_gaps(measured: Measurements) -> Floats:
    """Return the gaps: a single row if they are the same in every run."""
    return measured.gaps[:1] if measured.same_gaps else measured.gaps


def _by_run(measured: Measurements, bound: Callable[[Floats], float]) -> Floats:
    """Return a bound that depends on the gaps, for every run."""
    return np.broadcast_to(np.array([bound(gaps) for gaps in _distinct_gaps(measured)]), measured.runs)


def _by_count(bound: Callable[[int], float], counts: Ints) -> Floats:
    """Return a bound that depends on a count, for every run and arm."""
    values, where = np.unique(counts, return_inverse=True)
    return np.array([bound(int(value)) for value in values])[where].reshape(counts.shape)


def _premise(measured: Measurements, words: str, premise: Callable[[Floats], Premise]) -> tuple[str, bool]:
    """Return a premise in words and numbers, and whether it is met (in every run, if gaps differ by run)."""
    each = [premise(gaps) for gaps in _distinct_gaps(measured)]
    met = sum(one.met for one in each)
    if measured.same_gaps:
        sign = ">" if met else "is not >"
        return f"{words}: {number(each[0].left)} {sign} {number(each[0].right)}", met == 1
    return f"{words}: in {met:,} of {len(each):,} runs", met == len(each)


def _with_gap(
    row: AuditRow, sign: str, measured: Measurements, limits: Floats, where: tuple[int, int] | None
) -> AuditRow:
    """Add the gap that comes closest to its bound."""
    if where is None:
        return row
    limit, gap = float(limits[where]), float(measured.gaps[where])
    return replace(
        row,
        bound=f"{sign} {number(limit)}",
        measured=f"{number(gap)} ({_arm(measured, where)})",
        bound_value=limit if math.isfinite(limit) else None,
        measured_value=gap,
    )


def _arm(measured: Measurements, where: tuple[int, int]) -> str:
    return measured.game.arm_names[where[1]]


def _listed(values: list[float]) -> str:
    return ", ".join(number(value) for value in values)
