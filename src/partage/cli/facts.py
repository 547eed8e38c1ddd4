"""Help texts made from the registry of rules."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from partage.rules import RULES, live_parameters, live_rules, parameters
from partage.settle import ALONE, COVERAGE

ALONE_HELP = f"The learner that agents could play alone, and are compared with: {', '.join(ALONE)}."
COVERAGE_HELP = (
    f"The probability with which an equal-share settlement covers: from 0.5 to below 1 (default {COVERAGE:g})."
)


def names(options: Iterable[str], default: str) -> str:
    """Return names in one line, the default marked.

    Examples
    --------
    >>> names(("paper", "none"), "none")
    'paper, none (default)'
    """
    return ", ".join(f"{name} (default)" if name == default else name for name in options)


def taking(parameter: str, rules: Mapping[str, Any] = RULES) -> list[str]:
    """Return the names of the rules that take a parameter.

    Examples
    --------
    >>> "balanced-etc" in taking("balance")
    True
    """
    return [name for name, rule in rules.items() if any(one.name == parameter for one in rule.parameters)]


def parameter_help(parameter: str, rules: Mapping[str, Any] = RULES) -> str:
    """Return what a parameter of rules does, what is allowed, and which of these rules take it."""
    found = parameters(rules)[parameter]
    *first, last = taking(parameter, rules)
    takers = f"{', '.join(first)} and {last}" if first else last
    summary = found.summary[:1].upper() + found.summary[1:]
    return f"{summary}: {found.allowed} (default {_defaults(parameter, rules)}). Only for {takers}."


def set_help() -> str:
    """Return what the option --set of a live collaboration can set."""
    found = dict.fromkeys(name for rule in live_rules() for name in live_parameters(rule))
    lines = " ".join(f"[bold]{name}[/bold]: {parameter_help(name, live_rules())}" for name in found)
    return f"A parameter of the rule; repeat the option for each. {lines}"


def _defaults(parameter: str, rules: Mapping[str, Any]) -> str:
    """Return the default of a parameter, or that of each rule if they differ."""
    found: dict[str, list[str]] = {}
    for name in taking(parameter, rules):
        default = next(one.default for one in rules[name].parameters if one.name == parameter)
        text = str(default).lower() if isinstance(default, (bool, str)) else f"{default:g}"
        found.setdefault(text, []).append(name)
    if len(found) == 1:
        return next(iter(found))
    return ", ".join(f"{text} for {' and '.join(names)}" for text, names in found.items())


def with_rules(command: Callable[..., None], rules: Mapping[str, Any]) -> str:
    """Return a command's help, with one line for each of these rules at its end."""
    lines = "\n".join(f"[bold]{name}[/bold]: {rule.summary}" for name, rule in rules.items())
    return f"{inspect.cleandoc(command.__doc__ or '')}\n\n\b\nRules:\n{lines}"


def settlements() -> tuple[str, ...]:
    """Return the names of all settlements."""
    return tuple(dict.fromkeys(name for rule in RULES.values() for name in rule().settlements))
