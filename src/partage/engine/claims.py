"""Open arms where reports are late: the same steps as `open_arms` of the rules, with claims and lapses.

`partage.engine.decisions.open_arms` is the special case of instant reports, and faster.
"""

import math

import numpy as np

from partage.betting import LOG_MIXED
from partage.board import MOST_LAPSES
from partage.compiled import compiled, uncounted
from partage.engine.decisions import BETTING, ETC, IMED, KL_ETC
from partage.evidence import free_evidence
from partage.rules.balanced_glr import is_behind
from partage.rules.indifference import is_indifferent
from partage.rules.shared_imed import worth_knowing

_MANY = np.int64(2**62)


@compiled
def open_arms_with_claims(rule, clock, all_pulls, counts, sums, claims, lapses, sharers, active, leader, case):
    """Write which arms are open into `case.opened`; return how many are.

    `leader` is the arm with the highest mean; it was broadcast, unless none was.
    """
    standing = 0
    for arm in range(len(active)):
        case.opened[arm] = False
        standing += active[arm] and sharers[arm] > 0
    if standing < 2:
        return 0
    if rule.kind == ETC or rule.kind == KL_ETC:
        _open_within_balance(rule.balance, counts, claims, lapses, sharers, active, case)
    elif counts[leader] == 0:
        for arm in range(len(active)):
            case.opened[arm] = active[arm] and sharers[arm] > 0 and claims[arm] <= 1
    elif rule.kind == IMED:
        _open_by_clock(rule, clock, counts, claims, lapses, sharers, active, leader, case)
    else:
        _open_by_evidence(rule, clock, all_pulls, counts, sums, claims, lapses, sharers, active, leader, case)
    opened = 0
    for arm in range(len(active)):
        opened += case.opened[arm]
    return opened


@uncounted
def _open_within_balance(balance, counts, claims, lapses, sharers, active, case):
    """Open the arms by the balance; stalled arms hold nobody back if two others are left."""
    awaited, least, least_awaited = 0, _MANY, _MANY
    for arm in range(len(active)):
        if active[arm] and sharers[arm] > 0:
            handed = counts[arm] + claims[arm]
            least = min(least, handed)
            if lapses[arm] < MOST_LAPSES:
                awaited += 1
                least_awaited = min(least_awaited, handed)
    most = balance * (least_awaited if awaited >= 2 else least) if math.isfinite(balance) else math.inf
    for arm in range(len(active)):
        case.opened[arm] = active[arm] and sharers[arm] > 0 and counts[arm] + claims[arm] <= most


@uncounted
def _open_by_clock(rule, clock, counts, claims, lapses, sharers, active, leader, case):
    """Open the arms by Shared-IMED."""
    ahead, most = counts[leader] + claims[leader], 1
    for arm in range(len(active)):
        if arm == leader:
            continue
        handed = counts[arm] + claims[arm]
        if counts[arm] > 0:
            most = max(most, handed)
        if not active[arm] or sharers[arm] == 0 or (handed > max(1, ahead) and lapses[leader] < MOST_LAPSES):
            continue
        case.opened[arm] = counts[arm] == 0 or not (
            case.evidence[arm] * (handed / counts[arm]) > worth_knowing(rule.clock * clock, handed)
        )
    case.opened[leader] = sharers[leader] > 0 and ahead <= rule.lead * most


@uncounted
def _open_by_evidence(rule, clock, all_pulls, counts, sums, claims, lapses, sharers, active, leader, case):
    """Open the arms by Balanced-GLR; none if no arm but the leader is worth exploring."""
    others, awaited, least, least_awaited = 0, 0, _MANY, _MANY
    seen, slowest, slowest_awaited, most, out = 0, math.inf, math.inf, 1, 0
    for arm in range(len(active)):
        out += claims[arm]
        case.leaving[arm] = False  # whether it is one of the others
        if arm == leader or not active[arm] or sharers[arm] == 0:
            continue
        if _stops(rule, clock, all_pulls, arm, counts, sums, leader, case):
            continue
        case.leaving[arm] = True
        others += 1
        handed = counts[arm] + claims[arm]
        least = min(least, handed)
        if lapses[arm] < MOST_LAPSES:
            awaited += 1
            least_awaited = min(least_awaited, handed)
        if counts[arm] > 0:
            most = max(most, handed)
            speed = case.evidence[arm] / counts[arm]
            slowest = min(slowest, speed)
            if lapses[arm] < MOST_LAPSES:
                seen += 1
                slowest_awaited = min(slowest_awaited, speed)
    if others == 0:
        return
    explorable = sharers[leader] > 0
    if not explorable or lapses[leader] >= MOST_LAPSES:
        most_handed = max(1, least_awaited if awaited > 0 else least)
        for arm in range(len(active)):
            case.opened[arm] = case.leaving[arm] and counts[arm] + claims[arm] <= most_handed
        case.opened[leader] = explorable
        return
    ahead = counts[leader] + claims[leader]
    free, pace, opened = free_evidence(ahead), slowest_awaited if seen > 0 else slowest, 0
    for arm in range(len(active)):
        if case.leaving[arm]:
            handed = counts[arm] + claims[arm]
            case.opened[arm] = handed <= max(1, ahead) and (
                counts[arm] == 0 or is_behind(case.evidence[arm], counts[arm], handed, pace, ahead, rule.lead, free)
            )
            opened += case.opened[arm]
    case.opened[leader] = (opened == 0 and out == 0) or ahead <= rule.lead * most


@uncounted
def _stops(rule, clock, all_pulls, arm, counts, sums, leader, case):
    """Whether a contender is no longer worth exploring."""
    if rule.all_pulls == 0 or all_pulls == 0 or counts[arm] == 0:
        return False
    needed = rule.threshold
    if rule.kind == BETTING:
        needed += LOG_MIXED
    else:
        needed += case.loss[arm]
        needed += case.loss[leader]
    mean, best = sums[arm] / counts[arm], sums[leader] / counts[leader]
    left = max(0, all_pulls - clock)
    return is_indifferent(case.evidence[arm], needed, counts[arm], mean, counts[leader], max(best, mean), left)
