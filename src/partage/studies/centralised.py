"""What one learner loses that makes all M T pulls itself: `bench/centralised.py` measures it (docs/limits.md)."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from partage.arms import Arm, RandomBernoulli
from partage.game import Game
from partage.simulate.result import Estimate

FILE = Path(__file__).with_name("centralised.json")


class Centralised(NamedTuple):
    """The measured regret of one learner by a rule."""

    rule: str
    runs: int
    regret: Estimate
    median: float

    @property
    def name(self) -> str:
        """The name of the row in a table."""
        return f"centralised {self.rule} (M·T pulls)"


def spelled(arms: Sequence[Arm | RandomBernoulli]) -> list[str]:
    """Return the arms as the file states them, so that figures of other arms are never shown."""
    return [repr(arm) for arm in arms]


def on(game: Game) -> list[Centralised]:
    """Return what was measured on the arms of a game with M T pulls, one entry per rule; none if nothing was."""
    arms, pulls = spelled(game.arms), game.agents * game.horizon
    return [
        Centralised(row["rule"], row["runs"], Estimate(row["mean"], row["stderr"]), row["median"])
        for row in _file()["rows"]
        if row["pulls"] == pulls and _file()["arms"][row["arms"]] == arms
    ]


@cache
def _file() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text(encoding="utf-8")))
