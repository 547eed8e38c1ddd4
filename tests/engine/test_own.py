"""Rules of one's own that numba compiles: the same play as in plain Python, and one sentence where that cannot be."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.strategies import games

from partage import Game, Pull, RuleError, Sharing, bernoulli, play, play_run
from partage.engine import by_reference
from partage.ledger.own_rules import load_rules
from partage.rules import OWN_RULES
from partage.testing import check_rule

SEEDS = st.integers(0, 2**63)
GAME = Game(bernoulli([0.8, 0.6, 0.4]), Sharing.round_robin(6, 3), 400)


@pytest.fixture(scope="module")
def halving():
    """The rule of the docs, which decides from the board alone."""
    (found,) = load_rules("docs/own_rules/halving.py")
    yield found.made
    OWN_RULES.pop("halving")


class Curious:
    """Reads all that a rule may read: its own record, the clock, and draws of every kind."""

    name, private, compiled = "curious", True, True

    def __init__(self, chance: float = 0.2, goal: int = 7) -> None:
        self.chance, self.goal = chance, goal

    def decide(self, board, shares, own, draws):
        if draws.uniform() < self.chance:
            return Pull(board.tie_order[draws.integer(board.arms)], share=False)
        noise = 0.01 * draws.normal() + 0.01 * draws.beta(2.0, 1.5)
        best, highest = board.tie_order[0], -math.inf
        for arm in board.tie_order:
            seen = own.counts[arm] + board.counts[arm]
            width = math.sqrt((1 + board.clock) / (1 + board.all_pulls))
            index = width + (own.sums[arm] + board.record.sums[arm]) / seen if seen > 0 else math.inf
            if index > highest:
                best, highest = arm, index
        return Pull(best, share=best in shares and board.counts[best] < self.goal + noise)

    def revise(self, board):
        pass


@settings(max_examples=60)
@given(game=games(), seed=SEEDS, rounds=st.integers(1, 30))
def test_a_rule_by_the_board_alone_equals_the_reference(halving, game, seed, rounds):
    assert play_run(game, halving(rounds), seed) == play_run(game, halving(rounds), seed, reference=True)


@settings(max_examples=60)
@given(game=games(), seed=SEEDS, chance=st.sampled_from([0.0, 0.2, 1.0]))
def test_a_rule_that_draws_and_keeps_a_record_equals_the_reference(game, seed, chance):
    assert play_run(game, Curious(chance), seed) == play_run(game, Curious(chance), seed, reference=True)


def test_the_regret_over_time_is_the_same(halving):
    for rule in (halving(), Curious()):
        plain = type("Plain", (type(rule),), {"compiled": False})()
        assert not by_reference(GAME, rule)
        assert by_reference(GAME, plain)
        fast, slow = (play(GAME, one, runs=3, settlement="none", baseline=False) for one in (rule, plain))
        assert np.allclose([one.mean for one in fast.curve], [one.mean for one in slow.curve])
        assert fast.overall_regret == slow.overall_regret


def test_the_check_compares_both_forms(halving):
    check_rule(halving(5))


def made(name, decide):
    """A compiled rule that decides in this way."""
    body = {"name": name, "private": False, "compiled": True, "decide": decide, "revise": lambda self, board: None}
    return type("Made", (), body)()


def _state(self, board, shares, own, draws):
    return Pull(board.state, share=False)


def _far(self, board, shares, own, draws):
    return Pull(board.tie_order[board.arms + 5], share=False)


def _no_arm(self, board, shares, own, draws):
    return Pull(board.arms, share=False)


def _not_shared(self, board, shares, own, draws):
    return Pull(0, share=True)


@pytest.mark.parametrize(
    ("decide", "sentence"),
    [
        (_state, "numba cannot compile the rule faulty: Unknown attribute 'state' of ArrayBoard"),
        (_far, "The compiled rule faulty failed: index is out of bounds"),
        (_no_arm, "The rule faulty pulled arm 3; it must be one of 0 to 2."),
        (_not_shared, r"The rule faulty broadcast arm 0, but the agent shares \[1\]."),
    ],
)
def test_a_fault_is_one_sentence(decide, sentence):
    with pytest.raises(RuleError, match=sentence):
        play_run(GAME, made("faulty", decide))


def _overflows(self, board, shares, own, draws):
    large = 2**62 + board.horizon  # whole numbers of numba have 64 bits
    return Pull(board.tie_order[0] if large + large > 0 else board.tie_order[-1], share=False)


def test_the_check_says_where_the_two_forms_differ():
    sentence = "At pull 1 of agent 0 the compiled `decide` returned .*, and the plain one .*"
    with pytest.raises(RuleError, match=sentence):
        check_rule(made("overflows", _overflows))
