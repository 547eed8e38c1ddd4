"""Partage: learn together which option is best, while each shares only what she is willing to share.

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
        RandomBernoulli,
        TruncatedNormal,
        Uniform,
        bernoulli,
    )
    from partage.board import Board, Pull, Record
    from partage.engine.tally import Tally
    from partage.errors import FileError, InputError, PartageError, SettlementError
    from partage.game import Game
    from partage.rules import (
        IMED,
        KLETC,
        KLUCB,
        BalancedETC,
        BalancedGLR,
        FullSharing,
        NoProtocol,
        Thompson,
        TwoUCB,
        UnbalancedETC,
    )
    from partage.rules.rule import Rule
    from partage.sharing import Sharing
    from partage.simulate.chunk import play_run
    from partage.simulate.play import play
    from partage.simulate.result import Estimate, Result

__version__ = "0.2.0"

__all__ = [
    "IMED",
    "KLETC",
    "KLUCB",
    "BalancedETC",
    "BalancedGLR",
    "Bernoulli",
    "Beta",
    "Board",
    "Constant",
    "Discrete",
    "Empirical",
    "Estimate",
    "FileError",
    "FullSharing",
    "Game",
    "InputError",
    "NoProtocol",
    "PartageError",
    "Pull",
    "RandomBernoulli",
    "Record",
    "Result",
    "Rule",
    "SettlementError",
    "Sharing",
    "Tally",
    "Thompson",
    "TruncatedNormal",
    "TwoUCB",
    "UnbalancedETC",
    "Uniform",
    "bernoulli",
    "play",
    "play_run",
]

# Each name comes with its room the first time it is asked for: `import partage`, `partage --help` and the client must
# not wait for numba and polars.
_ROOMS = {
    "arms": (
        "Bernoulli",
        "Beta",
        "Constant",
        "Discrete",
        "Empirical",
        "RandomBernoulli",
        "TruncatedNormal",
        "Uniform",
        "bernoulli",
    ),
    "board": ("Board", "Pull", "Record"),
    "rules.rule": ("Rule",),
    "engine.tally": ("Tally",),
    "errors": ("FileError", "InputError", "PartageError", "SettlementError"),
    "simulate.chunk": ("play_run",),
    "simulate.play": ("play",),
    "simulate.result": ("Estimate", "Result"),
    "game": ("Game",),
    "rules": (
        "IMED",
        "KLETC",
        "KLUCB",
        "BalancedETC",
        "BalancedGLR",
        "FullSharing",
        "NoProtocol",
        "Thompson",
        "TwoUCB",
        "UnbalancedETC",
    ),
    "sharing": ("Sharing",),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

if not TYPE_CHECKING:  # a checker that saw it would take every misspelt name for a good one

    def __getattr__(name: str) -> object:
        from importlib import import_module
        from importlib.util import find_spec

        if name in _ROOM_OF:
            value = getattr(import_module(f"partage.{_ROOM_OF[name]}"), name)
        elif not name.startswith("_") and find_spec(f"partage.{name}"):  # a room itself, such as partage.arms
            value = import_module(f"partage.{name}")
        else:
            raise AttributeError(f"module 'partage' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
