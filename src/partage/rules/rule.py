"""What a rule is: the protocol that every rule follows, and the facts that a built-in rule states about itself."""

import inspect
import operator
from collections.abc import Callable, Collection, Hashable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from partage.board import Board, Pull, Record
from partage.errors import RuleError
from partage.rules.weighing import Weighed
from partage.tape import Draws

if TYPE_CHECKING:
    from partage.game import Game

ANY_RULE = ("equal-share", "equal-share-expected", "none", "pool", "dues")  # settlements that fit every rule


class Rule(Protocol):
    """How agents play. A rule of your own needs only this.

    It may also have `open_arms(board)`, which returns the arms that may be explored now, `prepare(game)`, which
    returns the game as the rule plays it, `keeps`: how many private rewards of each arm an agent keeps, if not
    all, `eliminates`: whether `revise` ever makes an arm inactive, and `offers`: whether
    `offered(board, agent, shares, opened)` says which of its arms an agent may explore, given those that are open.
    With `compiled = True`, numba compiles `decide` and `revise` as they are written, and the rule plays at the
    engine's speed (docs/own-rules.md).
    """

    @property
    def name(self) -> str:
        """The rule's name in tables."""

    @property
    def private(self) -> bool:
        """Whether `decide` reads the agent's own record."""

    def decide(self, board: Board, shares: Collection[int], own: Record, draws: Draws) -> Pull:
        """Return what an agent that shares these arms pulls next, and whether it broadcasts the reward.

        Parameters
        ----------
        board
            The public state.
        shares
            The arms that the agent shares.
        own
            The agent's own record of its private pulls.
        draws
            The randomness of this decision, the same if the decision is repeated. A rule that does not draw may
            leave this parameter out.
        """

    def revise(self, board: Board) -> None:
        """Set which arms are active, and the rule's public state, after a broadcast."""


class Parameter(NamedTuple):
    """A parameter of a built-in rule.

    Attributes
    ----------
    name
        The name in Python, in game files and as a flag of `partage simulate`. `balance` is a key of JSON, and the
        others are keys of `parameters` there.
    default
        The value if none is given.
    summary
        What it does, in a few words.
    allowed
        Which values are allowed; it completes the sentence "it must be".
    check
        Returns a value in its proper type, or raises `InputError`.
    choices
        The allowed values, where they are few words.
    live
        Whether a live collaboration sets it. If not, each member may choose it for its own client.
    quiet
        Whether a ledger states it only if it is not the default: ledgers of earlier releases do not know it.
    """

    name: str
    default: Any
    summary: str
    allowed: str
    check: Callable[[object], Any]
    choices: tuple[str, ...] = ()
    live: bool = True
    quiet: bool = False


class BuiltIn:
    """The facts of a built-in rule. Help, schema, forms, settlements and the engine read them here.

    Attributes
    ----------
    name, summary
        The rule's name, and one sentence about it.
    parameters
        What can be set.
    live
        Whether the live controller runs it. Such a rule decides from the board alone and draws nothing: an agent
        explores the least-broadcast open arm that it shares, and otherwise commits (`explore_or_commit`). Client and
        verifier rely on that.
    private
        Whether `decide` reads the agent's own record.
    kernel
        The module of `partage.engine` that plays it.
    eliminates
        Whether `revise` ever eliminates an arm. A pool and dues then pay for eliminated arms, otherwise for all but
        the leader.
    clocked
        Whether it reads the board's clock. In live play the ledger then records the clock's ticks.
    by_intervals
        Whether it eliminates an arm once the arm's interval lies below another's: pages then draw that limit.
    tolerate
        How many members may lie without misleading the others.
    each_reward
        Whether `revise` must be called after each reward, because it reads the latest one. The others read counts and
        sums alone: after several rewards they decide once.
    offers
        Whether what an agent may explore depends on what it broadcast before (`offered`): then an agent that shares
        an open arm may have to commit.
    by_contrasts
        Whether members may differ by a constant each, so that settlements read contrasts within members.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    live: ClassVar[bool] = False
    private: ClassVar[bool] = False
    kernel: ClassVar[str]
    eliminates: ClassVar[bool] = False
    by_intervals: ClassVar[bool] = False
    by_contrasts: ClassVar[bool] = False
    each_reward: Any = False
    offers: Any = False
    tolerate: Any = 0
    clocked: Any = False
    keeps: Any = None

    @property
    def settlements(self) -> tuple[str, ...]:
        """The settlements that fit this rule."""
        return ANY_RULE

    def prepare(self, game: "Game") -> "Game":
        """Return the game as the rule plays it."""
        return game

    def open_arms(self, board: Board, slack: float = 0.0) -> list[int]:
        """Return the arms that may be explored now.

        `slack` widens every threshold: arms within it count as open. Another machine's logarithms may differ in the
        last digit, so its decisions are checked with a small slack of either sign.
        """
        return []

    def offered(
        self, board: Board, member: Hashable, shares: Collection[int], opened: Collection[int]
    ) -> Collection[int]:
        """Return those of a member's arms that it may explore; `decide` then takes them for what it shares."""
        return shares

    def leading(self, board: Board) -> int | None:
        """Return the arm that a commit pulls; None if that is the active arm with the highest mean."""
        return None

    def own_leaders(self, board: Board) -> dict[str, int]:
        """Return the members who commit to an arm of their own, by name or number as text, and that arm."""
        return {}

    def shown(self, board: Board) -> Any:
        """Return what the board of a live collaboration shows of the rule's public state."""
        return board.state

    def weigh(self, board: Board) -> Weighed | None:
        """Return the rule's own evidence against each arm, for people to see; None if it eliminates nothing."""
        return None

    def revise(self, board: Board, slack: float = 0.0) -> None:
        """Leave the active arms as they are: nothing is ever eliminated."""


def is_compiled(rule: Rule) -> bool:
    """Whether numba compiles the rule's `decide` and `revise`."""
    return getattr(rule, "compiled", False) is True and not isinstance(rule, BuiltIn)


def changed_parameters(rule: Rule) -> dict[str, Any]:
    """Return the parameters of a built-in rule that are not the default, apart from the balance."""
    if not isinstance(rule, BuiltIn):
        return {}
    values = {one: getattr(rule, one.name) for one in rule.parameters if one.name != "balance"}
    return {one.name: value for one, value in values.items() if value != one.default}


def decider(rule: Rule) -> Callable[[Board, Collection[int], Record, Draws], Pull]:
    """Return the rule's `decide` as a function of four arguments; one that does not draw may take three."""
    try:
        inspect.signature(rule.decide).bind(None, None, None, None)
    except TypeError:
        return lambda board, shares, own, draws: rule.decide(board, shares, own)  # type: ignore[call-arg]
    return rule.decide


def checked_pull(name: str, pull: Any, arms: int, shares: Collection[int]) -> Pull:
    """Return what the rule of this name decided for an agent that shares these arms, if the game allows it."""
    try:
        arm, share = pull
    except (TypeError, ValueError):
        raise RuleError(
            f"`decide` of the rule {name} returned {pull!r}; it must return a partage.board.Pull: the arm, and "
            "whether to broadcast the reward."
        ) from None
    allowed = f"it must be one of 0 to {arms - 1}"
    try:
        arm = operator.index(arm)
    except TypeError:
        raise RuleError(f"The rule {name} pulled {arm!r}; {allowed}.") from None
    if not 0 <= arm < arms:  # a negative one would count from the last arm
        raise RuleError(f"The rule {name} pulled arm {arm}; {allowed}.")
    if share and arm not in shares:
        raise RuleError(f"The rule {name} broadcast arm {arm}, but the agent shares {sorted(shares)}.")
    return Pull(arm, bool(share))
