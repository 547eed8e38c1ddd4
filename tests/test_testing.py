"""`partage.testing.check_rule` accepts every rule of ours and finds each kind of fault."""

from dataclasses import dataclass
from random import Random

import pytest

from partage import Game, Sharing, bernoulli, play, play_run
from partage.board import Pull
from partage.errors import InputError, RuleError
from partage.rules import RULES, make_rule
from partage.rules.balanced_etc import BalancedETC
from partage.testing import check_rule


@pytest.mark.parametrize("name", RULES)
def test_our_rules_pass(name):
    check_rule(make_rule(name))


@pytest.mark.parametrize("sees", ["shared", "both"])
@pytest.mark.parametrize("name", ["thompson", "kl-ucb", "imed"])
def test_our_rules_pass_on_what_is_shared(name, sees):
    check_rule(make_rule(name, sees=sees))


class Greedy:
    """A user's own rule, as small as can be: share the least-broadcast arm if one may, else follow the leader."""

    name = "greedy"
    private = False

    def decide(self, board, shares, own):
        public = [arm for arm in shares if board.active[arm]]
        if public and min(board.counts[arm] for arm in public) < 10:
            return Pull(board.least(public), share=True)
        return Pull(board.best(range(board.arms)), share=False)

    def revise(self, board):
        pass


def test_a_small_rule_of_ones_own_passes():
    check_rule(Greedy())


@dataclass(frozen=True)
class Faulty(BalancedETC):
    fault: str = ""

    def decide(self, board, shares, own=None):
        pull = super().decide(board, shares, own)
        if self.fault == "shares what is private":
            return Pull(pull.arm, share=True)
        if self.fault == "no such arm":
            return Pull(board.arms, share=False)
        if self.fault == "negative arm":
            return Pull(-1, share=False)
        if self.fault == "arm is a name":
            return Pull("a", share=False)
        if self.fault == "nothing":
            return None
        if self.fault == "only an arm":
            return pull.arm
        if self.fault == "writes on the board":
            board.record.counts[0] += 1
        if self.fault == "lowest index":
            return Pull(min(arm for arm in range(board.arms) if board.active[arm] or not board.public[arm]), False)
        if self.fault == "draws":
            return Pull(RANDOM.randrange(board.arms), share=False)
        return pull

    def revise(self, board):
        super().revise(board)
        if self.fault == "empties":
            board.active[:] = [False] * board.arms
        if self.fault == "edits":
            board.record.sums[0] += 1
        if self.fault == "publishes":
            board.active[:] = [True] * board.arms


RANDOM = Random(0)


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ("shares what is private", "broadcast arm"),
        ("no such arm", "one of 0 to"),
        ("negative arm", "pulled arm -1; it must be one of 0 to"),
        ("arm is a name", "pulled 'a'; it must be one of 0 to"),
        ("nothing", "returned None; it must return a partage.board.Pull"),
        ("only an arm", "must return a partage.board.Pull"),
        ("writes on the board", "it must only read them"),
        ("lowest index", "renumbered"),
        ("draws", "two answers"),
        ("empties", "one must stay active"),
        ("edits", "may only eliminate arms"),
        ("publishes", "which nobody shares"),
    ],
)
def test_each_fault_is_found(fault, complaint):
    with pytest.raises(RuleError, match=complaint):
        check_rule(Faulty(fault=fault))


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize(
    "fault", ["shares what is private", "no such arm", "negative arm", "arm is a name", "nothing", "only an arm"]
)
def test_play_refuses_a_faulty_rule_too(fault, reference):
    game = Game(bernoulli([0.9, 0.5]), Sharing.nothing(2, 2), horizon=20)
    with pytest.raises(InputError, match="rule"):
        play_run(game, Faulty(fault=fault), reference=reference)
    with pytest.raises(InputError, match="rule"):
        play(game, Faulty(fault=fault), runs=1, jobs=1, settlement="none", baseline=False)


@pytest.mark.parametrize("missing", ["name", "private", "decide", "revise"])
def test_a_rule_that_lacks_something_is_refused(missing):
    members = {key: value for key, value in vars(Greedy).items() if not key.startswith("__") and key != missing}
    rule = type("Mine", (), members)()
    with pytest.raises(RuleError, match="a name, private, decide and revise"):
        check_rule(rule)
    game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(2, 2), horizon=20)
    for attempt in (play, play_run):
        with pytest.raises(InputError, match="a name, private, decide and revise"):
            attempt(game, rule)


def test_a_class_is_not_a_rule():
    with pytest.raises(RuleError, match=r"such as Greedy\(\)"):
        check_rule(Greedy)


def test_a_rule_that_reads_who_broadcast_what_passes():
    class Richest(Greedy):
        """Follows the arm that paid any one member most."""

        def decide(self, board, shares, own):
            pull = super().decide(board, shares, own)
            most = [max((one.sums[arm] for one in board.by_member.values()), default=0) for arm in range(board.arms)]
            richest = min(range(board.arms), key=lambda arm: (-most[arm], board.rank[arm]))
            return pull if pull.share else Pull(richest, share=False)

    check_rule(Richest())


def test_a_rule_with_a_state_by_arm_passes():
    class Stateful(Greedy):
        """Follows the arm that its own state puts first."""

        def decide(self, board, shares, own):
            pull = super().decide(board, shares, own)
            if pull.share or board.state is None:
                return pull
            return Pull(min(range(board.arms), key=lambda arm: (-board.state[arm], board.rank[arm])), share=False)

        def revise(self, board):
            board.state = list(board.record.sums)

    check_rule(Stateful())


def test_a_rule_with_a_memory_is_found():
    class Moody(Greedy):
        """Pulls another arm in each play."""

        def __init__(self):
            self.boards = []

        def decide(self, board, shares, own):
            if not any(seen is board for seen in self.boards):
                self.boards.append(board)
            return Pull(board.tie_order[len(self.boards) % board.arms], share=False)

    with pytest.raises(RuleError, match=r"two ways|renumbered"):
        check_rule(Moody())


class Randomised(Greedy):
    """Follows a random active arm, drawn from the tape."""

    def decide(self, board, shares, own, draws):
        active = [arm for arm in board.tie_order if board.active[arm] or not board.public[arm]]
        return Pull(active[draws.integer(len(active))], share=False)


def test_a_randomised_rule_passes_and_is_reproducible():
    check_rule(Randomised())
    game = Game(bernoulli([0.5, 0.5, 0.5]), Sharing.round_robin(3, 3), horizon=50)
    first, again, other = (play_run(game, Randomised(), seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert (first.commit > 0).all()
