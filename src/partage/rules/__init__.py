"""Rules: how agents decide. One rule per file; this is the registry.

To add a rule: write its file here, its kernel in `partage.engine`, and add it to the list below. The command line's
help, the API's schema, the create form, settlements and the engine read its facts from here.
"""

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from partage.errors import InputError
from partage.rules.balanced_etc import BalancedETC
from partage.rules.balanced_glr import BalancedGLR
from partage.rules.full_sharing import FullSharing
from partage.rules.imed import IMED
from partage.rules.kl_etc import KLETC
from partage.rules.kl_ucb import KLUCB
from partage.rules.network_glr import NetworkGLR
from partage.rules.no_protocol import NoProtocol
from partage.rules.rule import BuiltIn, Parameter, Rule, decider
from partage.rules.shared_imed import SharedIMED
from partage.rules.thompson import Thompson
from partage.rules.two_ucb import TwoUCB
from partage.rules.unbalanced_etc import UnbalancedETC

__all__ = [
    "IMED",
    "KLETC",
    "KLUCB",
    "OWN_RULES",
    "RULES",
    "BalancedETC",
    "BalancedGLR",
    "BuiltIn",
    "FullSharing",
    "NetworkGLR",
    "NoProtocol",
    "Parameter",
    "Rule",
    "SharedIMED",
    "Thompson",
    "TwoUCB",
    "UnbalancedETC",
    "decider",
    "live_parameters",
    "live_rules",
    "make_rule",
    "parameters",
    "summaries",
]

RULES: dict[str, type[Any]] = {
    rule.name: rule
    for rule in (
        BalancedETC,
        UnbalancedETC,
        BalancedGLR,
        NetworkGLR,
        SharedIMED,
        KLETC,
        TwoUCB,
        KLUCB,
        IMED,
        Thompson,
        FullSharing,
        NoProtocol,
    )
}


OWN_RULES: dict[str, type[Any]] = {}  # of users, for live play, as `partage.ledger.own_rules` loads them


def live_rules() -> dict[str, type[Any]]:
    """Return the rules that the live controller runs: built-in ones, and those of users that were loaded."""
    return {name: rule for name, rule in RULES.items() if rule.live} | OWN_RULES


def live_parameters(name: str) -> dict[str, Parameter]:
    """Return the parameters of a live rule that a collaboration sets under `parameters`: all but the balance.

    >>> list(live_parameters("shared-imed")), list(live_parameters("balanced-etc"))
    (['lead', 'clock'], [])
    """
    return {one.name: one for one in live_rules()[name].parameters if one.live and one.name != "balance"}


def parameters(rules: Mapping[str, type[Any]] = RULES) -> dict[str, Parameter]:
    """Return the parameters of these rules by name.

    Rules that take the same parameter mean the same by it, but their defaults may differ.

    >>> parameters()["evidence"].default
    'likelihood'
    """
    return {parameter.name: parameter for rule in rules.values() for parameter in rule.parameters}


def make_rule(name: str, **parameters: Any) -> Any:
    """Return the built-in rule of this name. A parameter that is None takes its default.

    >>> make_rule("balanced-etc", balance=2), make_rule("thompson", sees="both")
    (BalancedETC(balance=2.0), Thompson(sees='both'))

    Raises
    ------
    InputError
        If there is no such rule, it has no such parameter, or the value is not allowed.
    """
    if not isinstance(name, str) or name not in RULES:
        raise InputError(f"The rule is {name!r}; it must be one of {', '.join(RULES)}.")
    rule = RULES[name]
    taken = {parameter.name for parameter in rule.parameters}
    given = {key: value for key, value in parameters.items() if value is not None}
    for key, value in given.items():
        if key not in taken:
            if getattr(rule(), key, None) == value:  # unbalanced-etc with a balance of inf is redundant, not wrong
                continue
            raise InputError(f"The rule {name} takes no {key}, and {value!r} was given; leave it out.")
    return rule(**{key: value for key, value in given.items() if key in taken})


def summaries() -> dict[str, str]:
    """Return the name and summary of every built-in rule. `partage.rules()` is this function.

    >>> summaries()["thompson"]
    'Each agent by Thompson sampling, alone or on what is shared.'
    """
    return {name: rule.summary for name, rule in RULES.items()}


class _CallableModule(ModuleType):
    """Lets `partage.rules()` list the rules, although `partage.rules` is a package."""

    def __call__(self) -> dict[str, str]:
        """Return the name and summary of every built-in rule."""
        return summaries()


sys.modules[__name__].__class__ = _CallableModule
