"""Partage: several parties learn together which option is best, and each shares only what it is willing to share.

>>> import partage
>>> game = partage.Game(
...     arms=partage.bernoulli([0.9, 0.8, 0.7]),
...     sharing=partage.Sharing.round_robin(agents=30, arms=3),
...     horizon=10**5,
... )
>>> result = partage.play(game, partage.BalancedETC(balance=1), runs=20, seed=0)
>>> result.individually_rational
True
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from partage.arms import (
        Bernoulli,
        Beta,
        Constant,
        Discrete,
        Empirical,
        Mixture,
        RandomBernoulli,
        TruncatedNormal,
        Uniform,
        bernoulli,
    )
    from partage.board import Board, Pull, Record
    from partage.engine.tally import Tally
    from partage.errors import FileError, InputError, MissingExtra, PartageError, RuleError, SettlementError
    from partage.game import Game
    from partage.gamefile import GameFile, read_game
    from partage.ledger.verify import Verified, verify
    from partage.rules import (
        IMED,
        KLETC,
        KLUCB,
        BalancedETC,
        BalancedGLR,
        FullSharing,
        NetworkGLR,
        NoProtocol,
        SharedIMED,
        Thompson,
        TwoUCB,
        UnbalancedETC,
    )
    from partage.rules import summaries as rules
    from partage.rules.rule import Rule
    from partage.settle import Settlement
    from partage.sharing import RandomSharing, Sharing
    from partage.simulate.chunk import play_run
    from partage.simulate.compare import Comparison, compare
    from partage.simulate.disagreement import Disagreeing
    from partage.simulate.forecast import Forecast, forecast
    from partage.simulate.play import play
    from partage.simulate.prepaid import Proposal, propose_prepaid
    from partage.simulate.result import ArmFigures, Estimate, Result
    from partage.simulate.sweep import Sweep, SweepProgress, sweep
    from partage.simulate.value import Value, value_of_sharing
    from partage.tape import Draws
    from partage.theory.audit import audit
    from partage.theory.audit_row import AuditRow
    from partage.traits import Change, Delay, Traits
    from partage.unit import Unit

__version__ = "0.2.0"

__all__ = [
    "IMED",
    "KLETC",
    "KLUCB",
    "ArmFigures",
    "AuditRow",
    "BalancedETC",
    "BalancedGLR",
    "Bernoulli",
    "Beta",
    "Board",
    "Change",
    "Comparison",
    "Constant",
    "Delay",
    "Disagreeing",
    "Discrete",
    "Draws",
    "Empirical",
    "Estimate",
    "FileError",
    "Forecast",
    "FullSharing",
    "Game",
    "GameFile",
    "InputError",
    "MissingExtra",
    "Mixture",
    "NetworkGLR",
    "NoProtocol",
    "PartageError",
    "Proposal",
    "Pull",
    "RandomBernoulli",
    "RandomSharing",
    "Record",
    "Result",
    "Rule",
    "RuleError",
    "Settlement",
    "SettlementError",
    "SharedIMED",
    "Sharing",
    "Sweep",
    "SweepProgress",
    "Tally",
    "Thompson",
    "Traits",
    "TruncatedNormal",
    "TwoUCB",
    "UnbalancedETC",
    "Uniform",
    "Unit",
    "Value",
    "Verified",
    "audit",
    "bernoulli",
    "compare",
    "forecast",
    "play",
    "play_run",
    "propose_prepaid",
    "read_game",
    "rules",
    "sweep",
    "value_of_sharing",
    "verify",
]

# Each name is imported from its room when it is first used: `import partage`, `partage --help` and the client must
# not wait for numpy, numba and polars, and must work without them.
_ROOMS = {
    "arms": (
        "Bernoulli",
        "Beta",
        "Constant",
        "Discrete",
        "Empirical",
        "Mixture",
        "RandomBernoulli",
        "TruncatedNormal",
        "Uniform",
        "bernoulli",
    ),
    "board": ("Board", "Pull", "Record"),
    "engine.tally": ("Tally",),
    "errors": ("FileError", "InputError", "MissingExtra", "PartageError", "RuleError", "SettlementError"),
    "game": ("Game",),
    "gamefile": ("GameFile", "read_game"),
    "ledger.verify": ("Verified", "verify"),
    "rules": (
        "IMED",
        "KLETC",
        "KLUCB",
        "BalancedETC",
        "BalancedGLR",
        "FullSharing",
        "NetworkGLR",
        "NoProtocol",
        "SharedIMED",
        "Thompson",
        "TwoUCB",
        "UnbalancedETC",
    ),
    "rules.rule": ("Rule",),
    "settle": ("Settlement",),
    "sharing": ("RandomSharing", "Sharing"),
    "traits": ("Change", "Delay", "Traits"),
    "simulate.chunk": ("play_run",),
    "simulate.compare": ("Comparison", "compare"),
    "simulate.disagreement": ("Disagreeing",),
    "simulate.forecast": ("Forecast", "forecast"),
    "simulate.play": ("play",),
    "simulate.prepaid": ("Proposal", "propose_prepaid"),
    "simulate.result": ("ArmFigures", "Estimate", "Result"),
    "simulate.sweep": ("Sweep", "SweepProgress", "sweep"),
    "simulate.value": ("Value", "value_of_sharing"),
    "tape": ("Draws",),
    "theory.audit": ("audit",),
    "theory.audit_row": ("AuditRow",),
    "unit": ("Unit",),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

if not TYPE_CHECKING:  # a type checker that sees it accepts every misspelt name

    def __getattr__(name: str) -> object:
        from importlib import import_module
        from importlib.util import find_spec

        try:
            if name in _ROOM_OF:
                value = getattr(import_module(f"partage.{_ROOM_OF[name]}"), name)
            elif not name.startswith("_") and find_spec(f"partage.{name}"):  # a room, such as partage.rules
                value = import_module(f"partage.{name}")
            else:
                raise AttributeError(f"module 'partage' has no attribute {name!r}")
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] == "partage":
                raise
            from partage.errors import MissingExtra

            raise MissingExtra(f"partage.{name}", "research") from error
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
