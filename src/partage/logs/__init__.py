"""Logs: from a table of past events, who pulled which arm with which reward, to a game, a test or a replay."""

from partage.logs.fit import one_mean, uniform_logging
from partage.logs.game import LogGame, game_of_log
from partage.logs.reading import Columns, Log, read_consent, read_log
from partage.logs.replay import Replayed, replay

__all__ = [
    "Columns",
    "Log",
    "LogGame",
    "Replayed",
    "game_of_log",
    "one_mean",
    "read_consent",
    "read_log",
    "replay",
    "uniform_logging",
]
