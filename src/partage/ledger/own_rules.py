"""Rules of one's own in live play: loaded from a module, bound to its source by a hash, and watched.

A collaboration's first event states the rule's name, its parameters and the SHA-256 of the module's file. Server,
client and `verify` need the same file.

Members decide commits without the controller, so the rule has to be of a certain kind: what an agent pulls follows
from the board and its shares; an agent explores if one of its arms is open, whatever else it shares; and all who
commit pull the same arm. `partage.testing.check_live_rule` checks that.
"""

import hashlib
import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, TypeVar

from partage.board import Board, Pull, Record
from partage.errors import InputError, RuleError
from partage.ledger.fields import LIMITS
from partage.ledger.refusals import Refused
from partage.ledger.time_limit import time_spent, within
from partage.rules import OWN_RULES, RULES, live_rules
from partage.rules.rule import ANY_RULE, BuiltIn, Parameter, checked_pull, decider
from partage.tape import Draws

T = TypeVar("T")

SECONDS = 2.0  # that one answer of a rule may take, and all its answers in one move together
LONGEST_TEXT = 100
BY_MEMBER = ("shares", "by_member", "attached", "claimed")  # what a board keeps by member
_NAME = re.compile("[a-z][a-z0-9-]{0,39}")


class RuleFailed(Refused):
    """The rule of a collaboration failed on its board. What would have followed is not recorded."""

    def __init__(self, rule: str, what: str) -> None:
        sentence = f"The rule {rule} of this collaboration failed: {what}; nothing was recorded. Tell the operator."
        super().__init__(409, "rule_failed", sentence)


class NoDraws(Draws):
    """The draws of a live rule, which may not draw."""

    def __init__(self) -> None:
        super().__init__((0, 0), 0, 0)

    def _blocks(self) -> Any:
        raise RuleError("a live rule may not draw: all members must come to the same answer")


class Lent(Mapping[Any, Any]):
    """What the board keeps by member, to be read only: each value that is read is a copy.

    Boards have many members, and few rules read this: comparing it before and after each answer would cost more.
    """

    def __init__(self, lent: Mapping[Any, Any]) -> None:
        self._lent = lent

    def __getitem__(self, member: Any) -> Any:
        return self._lent[member].copy()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._lent)

    def __len__(self) -> int:
        return len(self._lent)


class Served(BuiltIn):
    """A rule of one's own, as live play needs it. Each loaded class has a subclass of this one.

    Attributes
    ----------
    made
        The user's class.
    source
        The SHA-256 of its module's file, in hex.
    module
        The module's name, for people.
    rule
        The user's rule.
    """

    live = True
    kernel = ""
    clocked = True  # it may read the clock
    each_reward = True  # and each reward
    made: ClassVar[Callable[..., Any]]
    source: ClassVar[str]
    module: ClassVar[str]
    _left: float | None = None  # seconds, during a move

    def __init__(self, **parameters: Any) -> None:
        given = {one.name: one.default for one in self.parameters} | parameters
        try:
            self.rule = within(SECONDS, lambda: type(self).made(**given))
        except BaseException as error:
            raise InputError(f"The rule {self.name} does not take these parameters: {_said(error)}.") from error
        self._decide = decider(self.rule)
        for name, value in given.items():
            setattr(self, name, value)

    @property
    def settlements(self) -> tuple[str, ...]:
        """The settlements that fit: those that the rule states, of those that fit every rule."""
        stated = getattr(self.rule, "settlements", ANY_RULE)
        return tuple(name for name in ANY_RULE if name in stated)

    def decide(
        self, board: Board, shares: Collection[int], own: Record | None = None, draws: Draws | None = None
    ) -> Pull:
        """Return the next pull of an agent that shares these arms."""
        leader = board.leading
        pull = self._asked(board, lambda: self._pull(board, shares))
        if not pull.share:
            self._check_commit(board, pull.arm)
            if leader is not None and pull.arm != leader:
                raise RuleFailed(self.name, f"it commits to arm {pull.arm}, and the leader is arm {leader}")
        return pull

    def open_arms(self, board: Board, slack: float = 0.0) -> list[int]:
        """Return the arms that an agent explores if it shares nothing else."""
        shared = [arm for arm in range(board.arms) if board.shared[arm]]
        if hasattr(self.rule, "open_arms"):
            return self._asked(board, lambda: [arm for arm in shared if arm in self.rule.open_arms(board)])
        return self._asked(board, lambda: [arm for arm in shared if self._pull(board, frozenset({arm})).share])

    def leading(self, board: Board) -> int | None:
        """Return the arm to which an agent commits that shares nothing."""
        if not any(board.active):
            return None
        arm = self._asked(board, lambda: self._pull(board, frozenset()).arm)
        self._check_commit(board, arm)
        return arm

    def revise(self, board: Board, slack: float = 0.0) -> None:
        """Let the rule eliminate arms, and check what it left."""

        def revise() -> None:
            self.rule.revise(board)

        self._asked(board, revise, revises=True)
        active = board.active
        if not isinstance(active, list) or len(active) != board.arms:
            raise RuleFailed(self.name, "`revise` replaced the list of active arms")
        board.active = [bool(one) for one in active]
        if any(one and not public for one, public in zip(board.active, board.public, strict=True)):
            raise RuleFailed(self.name, "`revise` made an arm active that nobody ever shared")
        if any(board.public) and not any(board.active):
            raise RuleFailed(self.name, "`revise` eliminated every arm")
        if board.state is not None and not _is_json(board.state):
            raise RuleFailed(self.name, "`board.state` is not plain JSON data")

    def settle(self, board: Board) -> None:
        """Let the rule revise until the active arms stay the same: within as many rounds as there are arms."""
        for _ in range(board.arms + 1):
            before = list(board.active)
            self.revise(board)
            if board.active == before:
                return
        raise RuleFailed(self.name, "`revise` changes the active arms again and again without a new broadcast")

    def _check_commit(self, board: Board, arm: int) -> None:
        """Refuse a commit to an arm that nobody ever shared: its place may not even have an arm yet.

        Before anything is shared, nobody commits.
        """
        if any(board.public) and not board.public[arm]:
            raise RuleFailed(self.name, f"it commits to arm {arm}, which nobody ever shared")

    def _pull(self, board: Board, shares: Collection[int]) -> Pull:
        pull = self._decide(board, frozenset(shares), Record.empty(board.arms), NoDraws())
        return checked_pull(self.name, pull, board.arms, shares)

    def _in_time(self, ask: Callable[[], T]) -> T:
        """Return the rule's answer, if it comes in time."""
        if self._left is None:
            return within(SECONDS, ask)
        if self._left <= 0:
            raise TimeoutError
        began = time_spent()
        try:
            return within(self._left, ask)
        finally:
            self._left -= time_spent() - began

    def _asked(self, board: Board, ask: Callable[[], T], revises: bool = False) -> T:
        """Ask the rule something, in time and without a change of the board but by `revise`.

        `board.leading` is how live play remembers the arm of a commit; a simulated board has none, so neither has the
        board that the rule sees. What is kept by member is lent.
        """
        before, leading = _seen(board, revises), board.leading
        kept = {name: getattr(board, name) for name in BY_MEMBER}
        lent = {name: Lent(value) for name, value in kept.items()}
        board.leading = None
        vars(board).update(lent)
        try:
            found = self._in_time(ask)
        except TimeoutError:
            raise RuleFailed(self.name, f"it took more than {SECONDS:g} seconds") from None
        except RuleFailed:
            raise
        except BaseException as error:  # also SystemExit, which would end the server
            raise RuleFailed(self.name, _said(error)) from error
        finally:
            set_leader, board.leading = board.leading, leading
            replaced = any(getattr(board, name) is not value for name, value in lent.items())
            vars(board).update(kept)
        if _seen(board, revises) != before or set_leader is not None or replaced:
            raise RuleFailed(self.name, "it changed the board, which it may only read")
        return found


@contextmanager
def one_move(rule: object) -> Iterator[None]:
    """Limit the time of a move: an own rule may be asked a thousand times in it, once for each attached reward."""
    if not isinstance(rule, Served):
        yield
        return
    rule._left = SECONDS
    try:
        yield
    finally:
        rule._left = None


def load_rules(*modules: str | os.PathLike[str]) -> list[type[Served]]:
    """Load the rules of these modules, so that live play knows them, and return them.

    A module is a path that ends in .py, or a name that Python can import, also from the current folder. Its rules are
    those in its list `RULES`, or else all classes in it that have what a rule needs.

    Raises
    ------
    InputError
        There is no such module, or it has no rule, or one that cannot be played live.
    """
    found: dict[str, type[Served]] = {}
    for module in modules:
        for rule in _rules_of(os.fspath(module)):
            if rule.name in found:
                raise InputError(f"Two of these modules have a rule {rule.name}; rename one of them.")
            found[rule.name] = rule
    OWN_RULES.update(found)
    LIMITS["rule"]["enum"] = list(live_rules())
    return list(found.values())


def as_served(rule: Any) -> Served:
    """Return a rule as live play would ask it, without loading its module."""
    made = _served(type(rule), type(rule).__module__, "")
    made.made, made.parameters = lambda: rule, ()
    return made()


def own_rule(name: str, source: str) -> type[Served]:
    """Return the rule of this name whose module has this SHA-256.

    Raises
    ------
    Refused
        That module is not loaded.
    """
    rule = OWN_RULES.get(name)
    if rule is not None and rule.source == source:
        return rule
    wanted = f"This collaboration plays by the rule {name} of a module whose file has the SHA-256 {source}"
    if rule is None:
        raise Refused(409, "rule_missing", f"{wanted}; load that module with --rules or rules=.")
    sentence = f"{wanted}, and the loaded module {rule.module} has {rule.source}; load the file as it was then."
    raise Refused(409, "rule_missing", sentence)


def make_own(rule: type[Served], given: Mapping[str, Any]) -> Served:
    """Return a rule with these parameters; a balance of None is none."""
    return rule(**{name: value for name, value in given.items() if name != "balance" or value is not None})


def _rules_of(module: str) -> list[type[Served]]:
    """Return the rules of a module."""
    name, path = _located(module)
    try:
        source = path.read_bytes()
    except OSError as error:
        raise InputError(f"The module {module} cannot be read: {error.strerror}.") from None
    made = _executed(name, path, source)
    stated = getattr(made, "RULES", None)
    classes = list(_classes(made)) if stated is None else list(stated)
    if not classes:
        needs = "a class with a name, private, decide and revise"
        raise InputError(f"The module {module} has no rule: {needs}, or a list RULES of such classes.")
    return [_served(one, module, hashlib.sha256(source).hexdigest()) for one in classes]


def _located(module: str) -> tuple[str, Path]:
    """Return the name of a module and the path of its file."""
    if module.endswith(".py"):
        return Path(module).stem, Path(module)
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        spec = None
    finally:
        sys.path.remove(here)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise InputError(f"There is no module {module}; pass the path of a file, such as rules/{module}.py.")
    return module, Path(spec.origin)


def _executed(name: str, path: Path, source: bytes) -> ModuleType:
    """Run a module's source: these very bytes, whose hash is stated, and not what was imported or compiled before."""
    registered = f"_partage_rules_{hashlib.sha256(source).hexdigest()}"  # its own name may be that of another module
    made = ModuleType(registered)
    made.__file__ = str(path)
    made.__spec__ = spec_from_file_location(name, path)
    sys.modules[registered] = made  # dataclasses look up the module of a class
    try:
        exec(compile(source, str(path), "exec"), made.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[registered]
        raise InputError(f"The module {path} cannot be loaded: {_said(error)}.") from error
    return made


def _classes(module: ModuleType) -> Iterable[type[Any]]:
    """Yield the public classes of a module that have what a rule needs."""
    for name, value in vars(module).items():
        defined = isinstance(value, type) and value.__module__ == module.__name__ and not name.startswith("_")
        if defined and all(hasattr(value, needed) for needed in ("name", "private", "decide", "revise")):
            yield value


def _served(rule: Any, module: str, source: str) -> type[Served]:
    """Return a user's class as live play needs it."""
    name = getattr(rule, "name", None)
    if not isinstance(rule, type) or not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(
            f"The module {module} has a rule {name!r}; a rule is a class whose name is of small letters, digits and "
            "hyphens, at most 40."
        )
    if name in RULES:
        raise InputError(f"The module {module} has a rule {name}, as Partage itself; rename it.")
    if getattr(rule, "private", True) is not False:
        raise InputError(
            f"The rule {name} reads the agent's own record, which the controller does not have; only rules with "
            "private = False are played live."
        )
    words = (inspect.getdoc(rule) or "").partition("\n\n")[0]
    facts = {
        "name": name,
        "summary": " ".join(words.split()) or f"A rule of the module {module}.",
        "parameters": _parameters(rule),
        "made": rule,
        "source": source,
        "module": module,
        "eliminates": bool(getattr(rule, "eliminates", False)),
    }
    return type(rule.__name__, (Served,), facts)


def _parameters(rule: type[Any]) -> tuple[Parameter, ...]:
    """Return what a class is made with, as parameters of a collaboration."""
    found = []
    for one in inspect.signature(rule).parameters.values():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            continue
        if one.name in _TAKEN or one.name.startswith("_"):
            raise InputError(f"The parameter {one.name} of the rule {rule.name} needs another name: Partage uses it.")
        kind = type(one.default)
        if kind not in _KINDS:
            needed = "a number, a text, or a truth value"
            raise InputError(f"The parameter {one.name} of the rule {rule.name} needs a default: {needed}.")
        allowed, check = _KINDS[kind]
        found.append(Parameter(one.name, one.default, "a parameter of this rule", allowed, check))
    return tuple(found)


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise InputError("no truth value")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1e300:
        raise InputError("no number")
    return float(value)


def _whole(value: object) -> int:
    number = _number(value)
    if number != int(number) or abs(number) > 2**53:
        raise InputError("no whole number")
    return int(number)


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise InputError("no text")
    return value


_KINDS: dict[type, tuple[str, Callable[[object], Any]]] = {
    bool: ("true or false", _truth),
    int: ("a whole number", _whole),
    float: ("a number", _number),
    str: (f"a text of at most {LONGEST_TEXT} characters", _text),
}


# What live play asks a rule for: a parameter of this name would replace it.
_TAKEN = {*dir(Served), *BuiltIn.__annotations__, *Served.__annotations__, "rule"}


def _seen(board: Board, revises: bool) -> list[Any]:
    """Return what a rule may not change: `revise` may change which arms are active, and the state."""
    record = board.record
    fixed = [list(record.counts), list(record.sums), record.latest, record.latest_reward]
    fixed += [list(board.claims), list(board.lapses), list(board.shared), list(board.sharers), list(board.public)]
    fixed += [list(board.tie_order), list(board.rank), board.clock, board.horizon, board.all_pulls]
    return fixed if revises else [*fixed, list(board.active), json.dumps(board.state, default=str)]


def _is_json(state: Any) -> bool:
    """Whether data stays what it is in JSON: no tuples, no keys that are numbers, nothing infinite."""
    try:
        return bool(json.loads(json.dumps(state, allow_nan=False)) == state)
    except (TypeError, ValueError):
        return False


def _said(error: BaseException) -> str:
    """Return what an error says, without a full stop."""
    text = " ".join(str(error).split()).rstrip(".")
    return text if isinstance(error, RuleError) and text else f"{type(error).__name__}{f': {text}' if text else ''}"
