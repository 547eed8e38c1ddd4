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
from partage.engine.reference import Rule
from partage.engine.tally import Tally
from partage.errors import FileError, InputError, PartageError, SettlementError
from partage.figures.chunk import play_run
from partage.figures.play import play
from partage.figures.result import Estimate, Result
from partage.game import Game
from partage.rules import KLETC, BalancedETC, BalancedGLR, FullSharing, NoProtocol, TwoUCB
from partage.sharing import Sharing

__version__ = "0.1.0"

__all__ = [
    "KLETC",
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
    "TruncatedNormal",
    "TwoUCB",
    "Uniform",
    "bernoulli",
    "play",
    "play_run",
]
