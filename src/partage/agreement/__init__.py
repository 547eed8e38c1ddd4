"""Agreement: whether members see the same means, and if not, who differs and by how much.

Two tests, both on who told what (`Board.by_member`). The first asks of every arm whether all members have one mean of
it. The second lets members differ by a constant each, and asks whether they agree on the differences between arms.
Both are e-processes: the probability that anything is ever said without reason is at most `ALPHA`, however long the
record is watched, whichever arm is pulled next, and however many members join (docs/real-members.md has the proof).

Each test makes several comparisons. Each comparison has a share, and all shares sum to at most 1. *Evidence* is the
logarithm of share times e-value: a comparison warns once its evidence is at least `ENOUGH`, log(1 / ALPHA).

The tests read counts and sums in plain Python, so the ledger and the client can use them.
"""

from collections.abc import Mapping
from typing import Any

from partage.agreement.arms import on_arms
from partage.agreement.cells import ALPHA, ENOUGH, Disagreement, cells_of
from partage.agreement.differences import on_differences
from partage.board import Record

__all__ = ["ALPHA", "ENOUGH", "Disagreement", "cells_of", "disagreements", "on_arms", "on_differences"]


def disagreements(records: Mapping[Any, Record], arms: int) -> list[Disagreement]:
    """Return who differs, by arm and then by pairs of arms; nothing if members may agree.

    >>> told = {"A": Record([500], [300.0]), "B": Record([400], [250.0]), "C": Record([300], [100.0])}
    >>> [(one.members, round(one.difference, 2)) for one in disagreements(told, arms=1)]
    [(('C',), -0.28)]
    """
    cells = cells_of(records, arms)
    return [*on_arms(cells), *on_differences(cells)]
