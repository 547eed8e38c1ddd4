"""Compiled decisions: which arms are active, which arm leads, and which arms are open.

The same steps as the rules in `partage.rules`, on arrays. Balanced-ETC has a faster kernel of its own for games in
which every arm is shared (`partage.engine.balanced_etc`).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.betting import LOG_MIXED
from partage.compiled import compiled, inlined, uncounted
from partage.engine.bets import evidence_against, is_beaten, new_bets, settle_bets
from partage.evidence import apart, free_evidence, mixture_loss
from partage.rules.balanced_glr import is_behind
from partage.rules.indifference import is_indifferent
from partage.rules.shared_imed import worth_knowing

ETC, KL_ETC, GLR, BETTING, IMED = range(5)  # BETTING: Balanced-GLR with evidence by betting


class RuleTable(NamedTuple):
    """A rule for kernels.

    Attributes
    ----------
    kind, balance, lead
        Which rule, and its parameters.
    threshold
        The evidence from which an arm is eliminated.
    clocked
        Whether the open arms depend on the clock.
    all_pulls
        The pulls of all agents together, if the rule stops where exploring no longer pays; otherwise 0.
    clock
        The factor by which Shared-IMED multiplies the clock.
    tolerate
        How many members may lie (`partage.engine.bounded`).
    worst
        Whether rewards that are not told yet count at their worst.
    """

    kind: int
    balance: float
    lead: float
    threshold: float
    clocked: bool = False
    all_pulls: int = 0
    clock: float = 1.0
    tolerate: int = 0
    worst: bool = False


class Case(NamedTuple):
    """What is stored of each arm besides its record: evidence, mixture loss, whether it leaves or is open, bets."""

    evidence: NDArray[np.float64]
    loss: NDArray[np.float64]
    leaving: NDArray[np.bool_]
    opened: NDArray[np.bool_]
    bets: NDArray[np.float64]


@compiled
def new_case(rule, arms):
    """Make room for all arms."""
    bets = new_bets(arms if rule.kind == BETTING else 0)
    return Case(np.zeros(arms), np.zeros(arms), np.zeros(arms, np.bool_), np.zeros(arms, np.bool_), bets)


@uncounted
def best_of(arms_in, counts, sums, rank):
    """Return the arm with the highest mean among these, ties by the tie order; -1 if there is none.

    An arm that was never broadcast ranks below all others.
    """
    best, highest = -1, 0.0
    for arm in range(len(arms_in)):
        if arms_in[arm]:
            mean = sums[arm] / counts[arm] if counts[arm] > 0 else -math.inf
            if best < 0 or mean > highest or (mean == highest and rank[arm] < rank[best]):
                best, highest = arm, mean
    return best


@compiled
def revise(rule, two_log, arm, reward, counts, sums, active, public, rank, leader, case):
    """Revise the active arms after a broadcast of `arm` with this reward; return the leader."""
    if rule.kind == BETTING:
        return _revise_by_betting(rule.threshold, arm, reward, counts, sums, active, rank, leader, case)
    if rule.kind == GLR or rule.kind == IMED:
        return _revise_glr(rule.threshold, arm, counts, sums, active, public, rank, leader, case)
    if rule.kind == KL_ETC:
        _leaving_by_evidence(rule.threshold, arm, counts, sums, active, case)
    else:
        _leaving_by_radius(two_log, counts, sums, active, case)
    staying = 0
    for i in range(len(active)):
        staying += active[i] and not case.leaving[i]
    best = best_of(active, counts, sums, rank)
    for i in range(len(active)):
        if case.leaving[i] and (staying > 0 or i != best):  # never eliminate all of them
            active[i] = False
    return best_of(active, counts, sums, rank)


@uncounted
def _leaving_by_radius(two_log, counts, sums, active, case):
    """Mark the arms that Eq. 1 eliminates; it compares with all arms."""
    highest = -math.inf
    for arm in range(len(active)):
        if counts[arm] > 0:
            highest = max(highest, sums[arm] / counts[arm] - math.sqrt(two_log / counts[arm]))
    for arm in range(len(active)):
        upper = sums[arm] / counts[arm] + math.sqrt(two_log / counts[arm]) if counts[arm] > 0 else math.inf
        case.leaving[arm] = active[arm] and upper <= highest


@uncounted
def _leaving_by_evidence(threshold, arm, counts, sums, active, case):
    """Compare `arm`, whose record has changed, with every other arm; mark the worse arm of each separated pair."""
    case.loss[arm] = mixture_loss(counts[arm], sums[arm])
    for i in range(len(active)):
        case.leaving[i] = False
    for i in range(len(active)):
        if counts[i] > 0:
            mean, its = sums[arm] / counts[arm], sums[i] / counts[i]
            low, high = (arm, i) if mean < its else (i, arm)
            if mean != its and active[low]:
                evidence = apart(counts[low], sums[low], counts[high], sums[high])
                if evidence - case.loss[low] - case.loss[high] >= threshold:
                    case.leaving[low] = True


@uncounted
def _revise_glr(threshold, arm, counts, sums, active, public, rank, leader, case):
    """Revise by Balanced-GLR: the leader, arms never broadcast and arms not separated from the leader are active."""
    case.loss[arm] = mixture_loss(counts[arm], sums[arm])
    for i in range(len(active)):
        case.leaving[i] = counts[i] > 0
    before = leader
    leader = best_of(case.leaving, counts, sums, rank)
    anew = leader != before or arm == leader
    for i in range(len(active)):
        if not public[i]:
            continue
        if i == leader or counts[i] == 0:
            case.evidence[i], active[i] = 0.0, True
        elif anew or i == arm:
            case.evidence[i] = apart(counts[i], sums[i], counts[leader], sums[leader])
            active[i] = case.evidence[i] - case.loss[i] - case.loss[leader] < threshold
    return leader


@uncounted
def _revise_by_betting(threshold, arm, reward, counts, sums, active, rank, before, case):
    """Revise by Balanced-GLR with evidence by betting: eliminate every arm that is beaten, for good."""
    led = arm == before and counts[arm] > 1  # nothing leads before the first broadcast
    settle_bets(arm, reward, led, case.bets)
    for i in range(len(active)):
        case.leaving[i] = active[i] and counts[i] > 0
    leader = best_of(case.leaving, counts, sums, rank)
    for i in range(len(active)):
        if not case.leaving[i] or i == leader:
            continue
        if led or i == arm or i == before:
            active[i] = not is_beaten(i, threshold, counts, sums, case.bets)
        if active[i] and (i == arm or arm == leader or leader != before):
            case.evidence[i] = evidence_against(i, leader, counts, sums, case.bets)
    return leader


@compiled
def open_arms(rule, clock, counts, sums, active, leader, case):
    """Write which arms are open into `case.opened`; return how many arms are active."""
    n_active, least = 0, np.int64(2**62)
    for arm in range(len(active)):
        case.opened[arm] = False
        if active[arm]:
            n_active += 1
            least = min(least, counts[arm])
    if n_active <= 1:
        return n_active
    by_evidence = rule.kind in (GLR, BETTING, IMED)
    if not by_evidence or counts[leader] == 0:
        for arm in range(len(active)):
            within = by_evidence or math.isinf(rule.balance) or counts[arm] <= rule.balance * least
            case.opened[arm] = active[arm] and within
    elif rule.kind == IMED:
        _open_by_clock(rule, clock, counts, active, leader, case)
    else:
        _open_by_pace(rule, clock, counts, sums, active, leader, case)
    return n_active


@uncounted
def _open_by_clock(rule, clock, counts, active, leader, case):
    """Open the arms by Shared-IMED."""
    most = 1
    for arm in range(len(active)):
        if active[arm] and arm != leader:
            most = max(most, counts[arm])
            case.opened[arm] = counts[arm] == 0 or (
                counts[arm] <= counts[leader] and case.evidence[arm] <= worth_knowing(rule.clock * clock, counts[arm])
            )
    case.opened[leader] = counts[leader] <= rule.lead * most


@uncounted
def _open_by_pace(rule, clock, counts, sums, active, leader, case):
    """Open the arms by Balanced-GLR; none if exploring no longer pays."""
    slowest, most, worth = math.inf, 1, 0
    for arm in range(len(active)):
        case.leaving[arm] = rule.all_pulls > 0 and _stops(rule, clock, arm, counts, sums, active, leader, case)
        if active[arm] and arm != leader and not case.leaving[arm]:
            worth += 1
            if counts[arm] > 0:
                slowest = min(slowest, case.evidence[arm] / counts[arm])
                most = max(most, counts[arm])
    if worth == 0:
        return
    ahead, free, n_open = counts[leader], free_evidence(counts[leader]), 0
    for arm in range(len(active)):
        if active[arm] and arm != leader and not case.leaving[arm]:
            case.opened[arm] = counts[arm] == 0 or (
                counts[arm] <= ahead
                and is_behind(case.evidence[arm], counts[arm], counts[arm], slowest, ahead, rule.lead, free)
            )
            n_open += case.opened[arm]
    case.opened[leader] = n_open == 0 or counts[leader] <= rule.lead * most


@uncounted
def _stops(rule, clock, arm, counts, sums, active, leader, case):
    """Whether a contender is no longer worth exploring."""
    if arm == leader or not active[arm] or counts[arm] == 0:
        return False
    if rule.kind == BETTING:
        needed = rule.threshold + LOG_MIXED
    else:
        needed = rule.threshold + case.loss[arm] + case.loss[leader]
    mean, best = sums[arm] / counts[arm], sums[leader] / counts[leader]
    left = max(0, rule.all_pulls - clock)
    return is_indifferent(case.evidence[arm], needed, counts[arm], mean, counts[leader], best, left)


@inlined
def note_eliminations(step, agent, public, active, eliminated_step, eliminated_agent):
    """Note the step and agent of the broadcast that eliminated an arm; an arm that came back has none."""
    for arm in range(len(public)):
        if active[arm]:
            eliminated_step[arm], eliminated_agent[arm] = -1, -1
        elif public[arm] and eliminated_step[arm] < 0:
            eliminated_step[arm], eliminated_agent[arm] = step, agent
