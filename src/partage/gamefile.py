"""Game files (TOML), and games from command-line flags. Both are tables with the same keys, read by the same code.

horizon = 1_000_000
balance = 1.0                   # optional, like rule, its other parameters, settlement, fee and order (see below)
claim_steps = 50                # optional: steps after which an explore pull that was not told lapses

[[arms]]                        # one table per arm
name = "pens"                   # optional; by default "arm 1" and so on
mean = 0.9                      # Bernoulli; for other kinds reward = { kind = ... } with the keys of KINDS
# mean = { kind = "uniform", low = 0.2, high = 0.8 }  drawn anew for each run (RANDOM_MEANS)
# reward = { kind = "mixture", parts = [{ kind = "constant", value = 0 }, { kind = "uniform", low = 0.5, high = 1 }],
#            weights = [0.3, 0.7] }
count = 3                       # optional: so many such arms; with the name "pens" they are "pens 1", "pens 2" ...
change = { step = 5000, mean = 0.4 }  # optional: the arm changes; several changes are a list

[unit]                          # optional: what rewards of 0 and 1 are in your unit, in which results are shown
worst = 60
best = 0
name = "minutes"                # optional

[agents]                        # either a pattern
count = 100
sharing = "round-robin"         # optional; the patterns are those of `partage.sharing.PATTERNS`
order = "shuffled"              # optional; by default "fixed"

[[agent]]                       # or one table per agent, in the order in which they act (`order` is then at the top)
name = "shop 1"                 # optional; by default "agent 1" and so on
shares = ["pens"]               # optional; by default nothing
pace = 0.5                      # optional, like all other traits: the fields of `partage.Traits`
delay = { kind = "uniform", steps = 20 }  # or a number
count = 20                      # optional: so many such agents; with the name "shop" they are "shop 1", "shop 2" ...
"""

import json
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from partage.arms import (
    Arm,
    Bernoulli,
    Beta,
    Constant,
    Discrete,
    Empirical,
    Mixture,
    RandomBernoulli,
    TruncatedNormal,
    Uniform,
)
from partage.checks import count
from partage.errors import FileError, InputError
from partage.game import Game, check_size
from partage.rules import Parameter, parameters
from partage.sharing import RandomSharing, Sharing
from partage.traits import KINDS as KINDS_OF_DELAY
from partage.traits import OF, PAPERS, Change, Delay, Traits
from partage.unit import Unit

KINDS: dict[str, tuple[Callable[..., Arm], tuple[str, ...]]] = {
    "bernoulli": (Bernoulli, ("mean",)),
    "beta": (Beta, ("a", "b")),
    "uniform": (Uniform, ("low", "high")),
    "truncated-normal": (TruncatedNormal, ("location", "scale")),
    "constant": (Constant, ("value",)),
    "discrete": (Discrete, ("values", "weights")),
    "empirical": (Empirical, ("sample",)),  # a list, or the path of a file of numbers, relative to the game file
    "mixture": (Mixture, ("parts", "weights")),  # the parts are rewards, too
}
OPTIONAL = {"empirical": ("counts",)}  # keys that a kind of reward may have
RANDOM_MEANS = {"uniform": (("low", "high"), ()), "beta": (("a", "b"), ("low", "high"))}  # required, optional keys
KINDS_BY_MEAN = ("bernoulli", "constant")  # kinds that a mean alone describes
ORDERS = ("fixed", "shuffled")
TRAITS = tuple(one.name for one in fields(Traits))
MOST_LISTED = 10**6  # agents in [[agent]] tables; a pattern has no such limit
MOST_ARMS = 10**5  # arms of one table

_TERMS = ("settlement", "fee", "alone", "coverage", "prepaid", "underwriting")


@dataclass(frozen=True)
class GameFile:
    """The contents of a game file: the game, and how to play it if the file says so.

    Attributes
    ----------
    game
        The game itself.
    sharing
        The sharing pattern, in words.
    rule, settlement, fee, alone, coverage, prepaid, underwriting
        As in the file; None if absent. They are checked later, by rules and settlements.
    parameters
        The parameters of rules that the file sets, by name. Whether the rule takes them is checked later.
    """

    game: Game
    sharing: str
    rule: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    settlement: str | None = None
    fee: Any = None
    alone: Any = None
    coverage: Any = None
    prepaid: Any = None
    underwriting: Any = None

    @property
    def balance(self) -> float | None:
        """The balance that the file sets; None if it sets none."""
        return self.parameters.get("balance")


def read_game(path: str | Path) -> GameFile:
    """Read a game file.

    Raises
    ------
    FileError
        If the file is missing or is not TOML.
    InputError
        If a value is not allowed. The sentence names the file, the place in it, the value and what is allowed.
    """
    if not isinstance(path, str | Path):
        raise InputError(f"The game file is {path!r}; it must be a path.")
    path = Path(path)
    with at(str(path)):
        try:
            document = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
        except OSError as error:
            raise FileError(f"The file cannot be read ({error.strerror}); it must be a game file in TOML.") from None
        except (ValueError, RecursionError) as error:
            raise FileError(f"The file is not TOML ({error}); it must be a game file in TOML.") from None
        return _read(document, path.parent)


def read_document(document: Mapping[str, Any], folder: Path | None = None) -> GameFile:
    """Return the game of a document, as `tomllib` reads it from a game file in this folder."""
    return _read(document, folder or Path())


def game_by_flags(
    means: str,
    agents: str,
    horizon: str,
    sharing: str = "round-robin",
    order: str = "fixed",
    reward: str = "bernoulli",
) -> GameFile:
    """Make the game that command-line flags describe. Each value is text, as it was typed.

    >>> game_by_flags(means="0.9,0.8", agents="10", horizon="1e6").game.horizon
    1000000
    """
    if reward not in KINDS_BY_MEAN:
        raise InputError(
            f"The reward is {reward!r}; by flags it must be {_either(KINDS_BY_MEAN)}, "
            "as means alone do not describe other kinds; use a game file for those."
        )
    (parameter,) = KINDS[reward][1]
    arms = [{"reward": {"kind": reward, parameter: number(mean)}} for mean in means.split(",") if means.strip()]
    pattern = {"count": number(agents), "sharing": sharing, "order": order}
    document = {"horizon": number(horizon), "arms": arms, "agents": pattern}
    return _read(document, Path(), arms_at="--means: ", agents_at="")


def number(text: str) -> int | float | str:
    """Return `text` as a number; if it is not one, return the text, which a later check refuses.

    >>> number("1_000"), number("1e6"), number("many")
    (1000, 1000000.0, 'many')
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


@contextmanager
def at(place: str) -> Iterator[None]:
    """Name the place in every error raised in this context."""
    try:
        yield
    except InputError as error:
        sentence = str(error)
        raise type(error)(f"{place}: {sentence[0].lower()}{sentence[1:]}") from None


# --- the document, from top to bottom -----------------------------------------------------------------------


def _read(document: Mapping[str, Any], folder: Path, arms_at: str = "", agents_at: str = "[agents]") -> GameFile:
    _check_keys(
        document,
        "A game file",
        required=("horizon",),
        optional=("rule", *parameters(), *_TERMS, "claim_steps", "order", "unit", "arms", "agents", "agent"),
    )
    tables = _tables("arms", document.get("arms", []))
    if not tables:
        raise InputError(f"{arms_at}there are no arms; a game needs at least one.")
    arms: list[Arm | RandomBernoulli] = []
    changes: list[Change] = []
    for place, table in enumerate(tables, start=1):
        with at(f"{arms_at}arm {place}{_named(table)}"):
            for arm in _arms(table, folder):
                changes += _changes(table.get("change", []), len(arms), folder)
                arms.append(arm)

    horizon = count("The horizon", document["horizon"], at_least=2)
    names = traits = None
    if "agents" in document and "agent" in document:
        raise InputError("Both [agents] and [[agent]] are given; it must be one of the two.")
    if "agents" in document:
        if "order" in document:
            raise InputError(f"The order is {document['order']!r} outside [agents]; it must be inside.")
        with at(agents_at) if agents_at else nullcontext():
            sharing, words = _pattern(document["agents"], arms, horizon)
    else:
        listed, names, traits = _listed(_tables("agent", document.get("agent", [])), arms, horizon, folder)
        sharing, words = _ordered(listed, "as listed", document.get("order", "fixed"))

    rule, settlement = document.get("rule"), document.get("settlement")
    if rule is not None and not isinstance(rule, str):
        raise InputError(f'The rule is {rule!r}; it must be a name, such as "balanced-etc".')
    if settlement is not None and not isinstance(settlement, str):
        raise InputError(f'The settlement is {settlement!r}; it must be a name, such as "paper".')
    unit = _unit(document["unit"]) if "unit" in document else None
    return GameFile(
        Game(arms, sharing, horizon, names, traits, changes, document.get("claim_steps"), unit),
        words,
        rule,
        {key: _parameter(one, document[key]) for key, one in parameters().items() if key in document},
        settlement,
        document.get("fee"),
        document.get("alone"),
        document.get("coverage"),
        document.get("prepaid"),
        document.get("underwriting"),
    )


def _unit(table: object) -> Unit:
    if not isinstance(table, Mapping):
        raise InputError(f"The unit is {_shown(table)}; it must be one table with a worst and a best value.")
    _check_keys(table, "The unit", required=("worst", "best"), optional=("name",))
    return Unit(**table)


def _arms(table: Mapping[str, Any], folder: Path) -> list[Arm | RandomBernoulli]:
    """Return the arm of a table, or as many as it says."""
    _check_keys(table, "An arm", optional=("name", "mean", "reward", "change", "count"))
    many, name = count("The count", table.get("count", 1)), _name(table)
    if many > MOST_ARMS:
        raise InputError(f"The count is {many:,}; a table must make at most {MOST_ARMS:,} arms.")
    names = [name] if "count" not in table else [name and f"{name} {place}" for place in range(1, many + 1)]
    random = "reward" not in table and isinstance(table.get("mean"), Mapping)
    make = partial(_random_mean, table["mean"]) if random else partial(_pays, table, folder)
    return [make(one) for one in names]


def _random_mean(mean: Mapping[str, Any], name: str | None) -> RandomBernoulli:
    """Return a Bernoulli arm whose mean is drawn for each run."""
    kind = mean.get("kind")
    if kind not in tuple(RANDOM_MEANS):
        raise InputError(
            f"The kind of the mean is {_shown(kind)}; a mean must be a number between 0 and 1, or, to be drawn for "
            f"each run, a table with a kind: {_either(tuple(RANDOM_MEANS))}."
        )
    required, optional = RANDOM_MEANS[kind]
    _check_keys(mean, f"A {kind} mean", required=("kind", *required), optional=optional)
    return RandomBernoulli(**{key: value for key, value in mean.items() if key != "kind"}, name=name)


def _changes(value: object, arm: int, folder: Path) -> list[Change]:
    """Return the changes of one arm: a table, or a list of them."""
    tables = [value] if isinstance(value, Mapping) else value
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
        raise InputError(
            f"The change is {_shown(value)}; it must be a table with a step and a mean or reward, or a list of them."
        )
    changes = []
    for place, table in enumerate(tables, start=1):
        with at(f"change {place}") if len(tables) > 1 else at("change"):
            _check_keys(table, "A change", required=("step",), optional=("mean", "reward"))
            step = count("The step", table["step"], at_least=2)
            changes.append(Change(step, arm, _pays(table, folder)))
    return changes


def _pays(table: Mapping[str, Any], folder: Path, name: str | None = None) -> Arm:
    """Return the arm that pays what the table says by its mean or reward."""
    if "mean" in table and "reward" in table:
        raise InputError("Both mean and reward are given; it must be one of the two.")
    if "mean" in table:
        return Bernoulli(table["mean"], name)
    if "reward" not in table:
        raise InputError("Neither mean nor reward is given; it must be one of the two.")
    return _rewarded(table["reward"], folder, name)


def _rewarded(reward: object, folder: Path, name: str | None = None) -> Arm:
    kinds = f"reward must be a table with a kind: {_either(tuple(KINDS))}"
    if not isinstance(reward, Mapping) or "kind" not in reward:
        raise InputError(f"The reward is {_shown(reward)}; {kinds}.")
    if reward["kind"] not in tuple(KINDS):
        raise InputError(f"The kind is {_shown(reward['kind'])}{_meant(reward['kind'], KINDS)}; {kinds}.")
    make, keys = KINDS[reward["kind"]]
    optional = OPTIONAL.get(reward["kind"], ())
    _check_keys(reward, f"A {reward['kind']} reward", required=("kind", *keys), optional=optional)
    values = {key: reward[key] for key in (*keys, *optional) if key in reward}
    if isinstance(values.get("sample"), str):
        values["sample"] = _numbers_in(folder / values["sample"])
    if "parts" in values:
        values["parts"] = [_rewarded(part, folder) for part in _parts(values["parts"])]
    return make(**values, name=name)


def _parts(value: object) -> list[object]:
    if not isinstance(value, list) or not value:
        raise InputError(f"The parts are {_shown(value)}; they must be a list of rewards, each with a kind.")
    return value


def _numbers_in(path: Path) -> list[int | float | str]:
    try:
        return [number(word) for word in path.read_text("utf-8-sig").replace(",", " ").split()]
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise FileError(f"The sample {path} cannot be read ({reason}); it must be a file of numbers.") from None


def _pattern(
    table: object, arms: Sequence[Arm | RandomBernoulli], horizon: int
) -> tuple[Sharing | RandomSharing, str]:
    if not isinstance(table, Mapping):
        raise InputError(
            f"The agents are {_shown(table)}; they must be one table with a count and a sharing pattern."
        )
    for key in table:
        if key in TRAITS:
            raise InputError(
                f"The pattern has the key {_shown(key)}, and its agents are all alike; agents that differ must be "
                "[[agent]] tables, which have a count too."
            )
    _check_keys(table, "The pattern", required=("count",), optional=("sharing", "order"))
    name = table.get("sharing", "round-robin")
    check_size(table["count"], horizon)  # before arrays of agents are made
    means = [-arm.mean if math.isfinite(arm.mean) else 0.0 for arm in arms]  # not known if drawn for each run
    best = sorted(range(len(arms)), key=lambda arm: means[arm])[:2]
    return _ordered(Sharing.pattern(name, table["count"], len(arms), best), name, table.get("order", "fixed"))


def _listed(
    tables: Sequence[Mapping[str, Any]], arms: Sequence[Arm | RandomBernoulli], horizon: int, folder: Path
) -> tuple[Sharing, list[str], list[Traits] | None]:
    """Return who shares what, the names of the agents, and their traits if some agent has any."""
    if not tables:
        raise InputError(
            "There are no agents; there must be a pattern, [agents] with a count, or one [[agent]] table each."
        )
    arm_names = [arm.name or f"arm {place}" for place, arm in enumerate(arms, start=1)]
    names: list[str] = []
    rows: list[list[int]] = []
    traits: list[Traits] = []
    for place, table in enumerate(tables, start=1):
        with at(f"agent {place}{_named(table)}"):
            _check_keys(table, "An agent", optional=("name", "shares", "count", *TRAITS))
            many, name = count("The count", table.get("count", 1)), _name(table)
            _check_listed(len(names) + many, horizon)
            if name is None:
                names += [f"agent {len(names) + more}" for more in range(1, many + 1)]
            else:
                names += [f"{name} {more}" for more in range(1, many + 1)] if "count" in table else [name]
            rows += [_shares(table.get("shares", []), arm_names)] * many
            traits += [_traits(table, arm_names, folder)] * many
    return Sharing.lists(rows, len(arms)), names, traits if any(one != PAPERS for one in traits) else None


def _check_listed(agents: int, horizon: int) -> None:
    check_size(agents, horizon)
    if agents > MOST_LISTED:
        raise InputError(
            f"There are {agents:,} agents up to here; [[agent]] tables must make at most {MOST_LISTED:,}."
        )


def _traits(table: Mapping[str, Any], arm_names: Sequence[str], folder: Path) -> Traits:
    found = {key: table[key] for key in TRAITS if key in table}
    if isinstance(found.get("delay"), Mapping):
        delay = found["delay"]
        _check_keys(delay, "A delay", required=("steps",), optional=("kind", "of"))
        for key, known in (("kind", KINDS_OF_DELAY), ("of", OF)):
            if key in delay and delay[key] not in known:
                raise InputError(f"The key {key} of the delay is {_shown(delay[key])}; it must be {_either(known)}.")
        found["delay"] = Delay(**delay)
    for key in ("means", "rewards"):
        if key in found and not isinstance(found[key], list):
            raise InputError(f"The {key} are {_shown(found[key])}; they must be a list with one entry per arm.")
    if "rewards" in found:
        names = [*arm_names, *[None] * len(found["rewards"])]  # the game says so if there are too many
        found["rewards"] = [
            _rewarded(reward, folder, name) for reward, name in zip(found["rewards"], names, strict=False)
        ]
    return Traits(**found)


def _shares(shares: object, arm_names: Sequence[str]) -> list[int]:
    if not isinstance(shares, list):
        raise InputError(f"Shares is {_shown(shares)}; it must be a list of names of arms.")
    for place, name in enumerate(shares):
        if name not in arm_names:
            raise InputError(
                f"It shares {_shown(name)}, which does not exist{_meant(name, arm_names)}; "
                f"the arms are {_listing(arm_names)}."
            )
        if name in shares[:place]:
            raise InputError(f"It shares {_shown(name)} twice; each arm must appear once.")
    return [arm_names.index(name) for name in shares]


def _ordered(sharing: Sharing | RandomSharing, words: str, order: object) -> tuple[Sharing | RandomSharing, str]:
    if order not in ORDERS:
        raise InputError(f"The order is {order!r}; it must be {_either(ORDERS)}.")
    return (sharing.in_shuffled_order(), f"{words}, in shuffled order") if order == "shuffled" else (sharing, words)


def _parameter(parameter: Parameter, value: object) -> Any:
    try:
        return parameter.check(math.inf if value == "inf" else value)
    except InputError:
        raise InputError(f"The {parameter.name} is {_shown(value)}; it must be {parameter.allowed}.") from None


# --- tables, keys and words ---------------------------------------------------------------------------------


def _tables(key: str, value: object) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(table, Mapping) for table in value):
        raise InputError(f"The key {key} is {_shown(value)}; it must be tables, each under [[{key}]].")
    return value


def _check_keys(
    table: Mapping[str, Any], what: str, required: Sequence[str] = (), optional: Sequence[str] = ()
) -> None:
    keys = (*required, *optional)
    for key in table:
        if key not in keys:
            raise InputError(f"{what} has no key {_shown(key)}{_meant(key, keys)}; its keys are {', '.join(keys)}.")
    for key in required:
        if key not in table:
            raise InputError(f"The key {key} is missing; {what[0].lower()}{what[1:]} needs {_all(required)}.")


def _name(table: Mapping[str, Any]) -> str | None:
    name = table.get("name")
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise InputError(f"The name is {_shown(name)}; it must be a text that is not empty.")
    return name


def _named(table: Mapping[str, Any]) -> str:
    return f" ({_shown(table['name'])})" if "name" in table else ""


def _shown(value: object) -> str:
    """Return the value as a game file would have it, on one line and not too long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _meant(word: object, known: Sequence[str] | Mapping[str, Any]) -> str:
    close = get_close_matches(str(word), known, n=1)
    return f" (did you mean {_shown(close[0])}?)" if close else ""


def _listing(names: Sequence[str]) -> str:
    shown = ", ".join(_shown(name) for name in names[:10])
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"


def _either(words: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _all(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
