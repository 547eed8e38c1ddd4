"""Settlements of many arms: compiled functions find gaps and ceilings, with the same bits as plain Python."""

import random

import pytest

from partage.board import Board, Record
from partage.rules import make_rule
from partage.settle import core, settlement_for
from partage.settle.core import rates_and_ceilings


def board_of(arms: int, seed: int) -> Board:
    """A board on which some arms are left and others separated, one was never broadcast, and one is not public."""
    chance = random.Random(seed)
    board = Board(10**6, [*range(arms)], [True] * (arms - 1) + [False])
    counts = [chance.choice([0, 1, 40, 300, 10**12]) for _ in range(arms)]
    counts[0] = 500
    board.record = Record(counts, [float(count) * chance.choice([0.0, 0.1, 0.5, 0.9, 1.0]) for count in counts])
    board.record.sums[0] = 470.0
    return board


@pytest.mark.parametrize("settlement", ["equal-share", "equal-share-expected"])
@pytest.mark.parametrize("seed", range(4))
def test_the_same_bits_with_and_without_numba(monkeypatch: pytest.MonkeyPatch, settlement: str, seed: int) -> None:
    pytest.importorskip("numba")
    terms = settlement_for(settlement, make_rule("balanced-glr"))
    board, steps = board_of(core.MANY_ARMS + 7, seed), [0, 1, 57, 10**5, 10**15]
    compiled = rates_and_ceilings(terms, board, steps)
    monkeypatch.setattr(core, "can_compile", lambda: False)
    assert rates_and_ceilings(terms, board, steps) == compiled
