"""A check for rules of your own."""

import copy
from collections.abc import Collection

import numpy as np

from partage.arms import Arm, Bernoulli, Constant, Uniform
from partage.board import Board, Pull, Record
from partage.engine import rewards as tape
from partage.engine.reference import Rule, play_reference
from partage.game import Game
from partage.sharing import Sharing


def check_rule(rule: Rule, seed: int = 0) -> None:
    """Check that a rule keeps to the game; an AssertionError says what it does wrong.

    It is played by the reference on small games of every shape (one agent, one arm, agents who share nothing, arms
    that nobody shares, equal arms, very short horizons) and must

    - pull arms that are there, and broadcast only what the agent shares;
    - decide by the board, her shares and her own record alone: asked twice it answers the same;
    - leave the board and the record as they are when it decides, and the record when it revises;
    - keep at least one public arm active, and no arm that nobody shares;
    - play the same game twice in the same way;
    - treat arms alike: with the arms renumbered, tie order included, it decides the same.

    >>> from partage import BalancedETC
    >>> check_rule(BalancedETC(balance=2))
    """
    for number, game in enumerate(_games()):
        key = tape.run_keys(seed, number, number + 1)[0]
        tally = play_reference(game, _Watched(rule), key)
        pulls = (tally.explore + tally.commit).sum(axis=1)
        assert (pulls == game.horizon).all(), f"An agent pulled {pulls.min()} times in {game.horizon} steps."
        again = play_reference(game, rule, key)
        assert tally == again, "The rule played the same game in two ways: it keeps a memory or draws at random."


def _games() -> list[Game]:
    """Small games of every shape."""
    two: list[Arm] = [Bernoulli(0.9), Bernoulli(0.2)]
    three: list[Arm] = [Constant(1.0), Uniform(0.0, 0.5), Constant(0.0)]
    return [
        Game([Bernoulli(0.5)], Sharing.round_robin(3, 1), 5),
        Game(two, Sharing.everything(1, 2), 200),
        Game(two, Sharing.round_robin(4, 2), 150),
        Game(two, Sharing.lists([[0], [1], []], 2), 100),
        Game(two, Sharing.nothing(2, 2), 50),
        Game(three, Sharing.round_robin(5, 3).in_shuffled_order(), 120),
        Game(three, Sharing.lists([[0], [0, 1], []], 3), 60),
        Game(three, Sharing.neighbours(4, 3, 2), 2),
        Game([Constant(0.5)] * 4, Sharing.round_robin(4, 4), 40),
    ]


class _Watched:
    """A rule that is checked at each step."""

    def __init__(self, rule: Rule) -> None:
        self.rule, self.name, self.private = rule, rule.name, rule.private
        assert isinstance(rule.name, str), f"The rule's name is {rule.name!r}; it must be a string."
        self.steps = 0

    def decide(self, board: Board, shares: Collection[int], own: Record) -> Pull:
        before = copy.deepcopy((board, own))
        pull = self.rule.decide(board, shares, own)
        arm, share = pull
        arms = board.arms
        assert isinstance(arm, (int, np.integer)), f"The rule pulled {arm!r}; it must pull one of 0 to {arms - 1}."
        assert 0 <= arm < arms, f"The rule pulled arm {arm}; there are arms 0 to {arms - 1}."
        assert not share or arm in shares, f"The rule broadcast arm {arm} of an agent who shares {sorted(shares)}."
        assert (board, own) == before, "`decide` changed the board or the agent's record; it may only look."
        assert self.rule.decide(board, shares, own) == pull, "Asked twice about the same board, it answered twice."
        self.steps += 1
        if self.steps % 7 == 0:
            self._renumbered(board, shares, own, pull)
        return Pull(int(arm), bool(share))

    def revise(self, board: Board) -> None:
        record = copy.deepcopy(board.record)
        self.rule.revise(board)
        assert board.record == record, "`revise` changed the record of broadcasts; it may only take arms out."
        public = [arm for arm in range(board.arms) if board.public[arm]]
        assert any(board.active[arm] for arm in public), "`revise` took every arm out; one must stay active."
        hidden = [arm for arm in range(board.arms) if not board.public[arm] and board.active[arm]]
        assert not hidden, f"`revise` made arm {hidden[:1]} active, which nobody shares."

    def _renumbered(self, board: Board, shares: Collection[int], own: Record, pull: Pull) -> None:
        """Number the arms backwards, and ask again."""
        last = board.arms - 1
        mirror = Board(board.horizon, [last - arm for arm in board.tie_order], board.public[::-1])
        mirror.record = Record(board.record.counts[::-1], board.record.sums[::-1])
        mirror.active = board.active[::-1]
        mine = Record(own.counts[::-1], own.sums[::-1])
        arm, share = self.rule.decide(mirror, frozenset(last - arm for arm in shares), mine)
        same = last - arm == pull.arm and bool(share) == bool(pull.share)
        assert same, "With the arms renumbered it decided otherwise; ties must be broken by `board.rank`."
