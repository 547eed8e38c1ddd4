"""Rules that decide from an agent's own pulls, from what is shared, or from both."""

import math
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.strategies import board, boards, records

from partage.board import Pull, Record
from partage.rules import RULES, make_rule
from partage.rules.imed import IMED
from partage.rules.kl_ucb import KLUCB
from partage.rules.seeing import seen_by
from partage.rules.thompson import Thompson
from partage.tape import Draws

SEES = st.sampled_from(["own", "shared", "both"])


def seen_of(made, own, sees):
    """What an agent sees, arm by arm: pulls and the sum of rewards."""
    counts, sums = [0] * made.arms, [0.0] * made.arms
    for record in [made.record] * (sees != "own") + [own] * (sees != "shared"):
        for arm in range(made.arms):
            counts[arm] += record.counts[arm]
            sums[arm] += record.sums[arm]
    return counts, sums


def divergence(p, q):
    def part(x, y):
        return 0.0 if x == 0 else math.inf if y == 0 else x * math.log(x / y)

    return part(p, q) + part(1 - p, 1 - q)


def expected(made, shares, own, sees, better):
    """The first unseen arm to be tried; otherwise the best of those seen by `better(counts, sums, arm)`, a cost."""
    counts, sums = seen_of(made, own, sees)
    for arm in made.tie_order:
        if counts[arm] == 0 and (own.counts[arm] == 0 or arm in shares):
            return {arm}
    seen = [arm for arm in made.tie_order if counts[arm]]
    if not seen:
        return {made.tie_order[0]}
    costs = {arm: better(counts, sums, arm) for arm in seen}
    lowest = min(costs.values())
    return {arm for arm in seen if costs[arm] <= lowest + 1e-9}


def imed_cost(counts, sums, arm):
    best = max(total / count for total, count in zip(sums, counts, strict=True) if count)
    return counts[arm] * divergence(sums[arm] / counts[arm], best) + math.log(counts[arm])


def kl_ucb_cost(counts, sums, arm):
    mean, level = sums[arm] / counts[arm], math.log(sum(counts)) / counts[arm]
    low, high = mean, 1.0
    while high - low > 1e-13:
        middle = (low + high) / 2
        low, high = (middle, high) if divergence(mean, middle) <= level else (low, middle)
        if middle in (low, high) and (low + high) / 2 in (low, high):
            break
    return -low


@pytest.mark.parametrize(("rule", "cost"), [(IMED, imed_cost), (KLUCB, kl_ucb_cost)])
@given(made=boards(hidden=True), sees=SEES, data=st.data())
def test_an_agent_tries_unseen_arms_and_then_follows_the_index_of_what_it_sees(rule, cost, made, sees, data):
    own = data.draw(records(made.arms))
    shares = data.draw(st.sets(st.integers(0, made.arms - 1)))
    arm, share = rule(sees).decide(made, shares, own)
    assert arm in expected(made, shares, own, sees, cost)
    assert share == (sees != "own" and arm in shares)


@pytest.mark.parametrize("rule", [IMED, KLUCB])
@given(made=boards(), sees=SEES, count=st.integers(1, 50))
def test_the_first_of_equals_in_the_tie_order_is_pulled(rule, made, sees, count):
    """Every arm was seen as often, with the same rewards."""
    own = Record([count] * made.arms, [count / 2] * made.arms)
    made.record = own.copy()
    assert rule(sees).decide(made, set(), own).arm == made.tie_order[0]


@given(made=boards(hidden=True), sees=SEES, data=st.data())
def test_thompson_draws_from_the_posterior_of_what_it_sees(made, sees, data):
    own = data.draw(records(made.arms))
    shares = data.draw(st.sets(st.integers(0, made.arms - 1)))
    counts, sums = seen_of(made, own, sees)
    draws = Draws((1, 2), agent=0, pull=3)
    drawn = {arm: draws.beta(1 + sums[arm], 1 + counts[arm] - sums[arm]) for arm in made.tie_order}
    arm = max(drawn, key=drawn.__getitem__)
    assert Thompson(sees).decide(made, shares, own, draws.again()) == Pull(arm, sees != "own" and arm in shares)


@given(made=boards(hidden=True), sees=SEES, data=st.data())
def test_what_an_agent_sees(made, sees, data):
    own = data.draw(records(made.arms))
    before = deepcopy((made.record, own))
    seen = seen_by(made, own, sees)
    assert (seen.counts, seen.sums) == seen_of(made, own, sees)
    assert (made.record, own) == before


def test_unseen_arms_by_hand():
    """Only arm 1 was broadcast. The agent tries an arm that it does not share once, and one that it shares again."""
    made, rule = board([0, 5, 0], [0.0, 0.5, 0.0], tie_order=[2, 0, 1]), IMED("shared")
    nothing, tried = Record.empty(3), Record([4, 0, 1], [4.0, 0.0, 1.0])
    assert rule.decide(made, set(), nothing) == Pull(2, share=False)
    assert rule.decide(made, set(), Record([0, 0, 1], [0.0, 0.0, 1.0])) == Pull(0, share=False)
    assert rule.decide(made, set(), tried) == Pull(1, share=False)
    assert rule.decide(made, {1}, tried) == Pull(1, share=True)
    assert rule.decide(made, {0}, tried) == Pull(0, share=True)


@pytest.mark.parametrize("rule", [IMED, KLUCB])
def test_an_agent_that_has_seen_nothing_and_tried_everything_pulls_the_first_of_the_tie_order(rule):
    fresh = board([0, 0], [0.0, 0.0], tie_order=[1, 0])
    assert rule("shared").decide(fresh, set(), Record([1, 3], [1.0, 0.0])) == Pull(1, share=False)


def test_the_three_rules_take_what_agents_see():
    taking = [name for name, rule in RULES.items() if any(one.name == "sees" for one in rule.parameters)]
    assert sorted(taking) == ["imed", "kl-ucb", "thompson"]
    for name in taking:
        assert make_rule(name) == make_rule(name, sees="own") != make_rule(name, sees="both")
        assert make_rule(name, sees="shared").private
