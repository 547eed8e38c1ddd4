"""What the terminal says about a board, beside its arms."""

import pytest

from partage.ledger.messages import ArmOnBoard, Aside, BoardView, OpenClaim
from partage.report.collaboration_tables import sentences

NOW = 1_700_000_000_000
WAITS = "Waiting for Baker C: Rye, since 2 minutes."
LEFT_OUT = "Rye is left out of the balance until it is reported: its last 3 claims ended without a report."
ASIDE = "The operator set the broadcasts of Baker D aside: It slept."


def board(*, closed: bool = False, active: bool = True, since: int = NOW - 125_000) -> BoardView:
    arm = ArmOnBoard("Rye", 0, 0.0, None, None, active, True, 1, 1, not closed, 3, True)
    waiting = [OpenClaim("a3", "Baker C", "Rye", since)]
    asides = [Aside("a4", "Baker D", "It slept.")]
    return BoardView(2, closed, None, [arm], 100, "balanced-etc", 1.0, ["Rye"], 2, waiting=waiting, set_aside=asides)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (board(), [WAITS, LEFT_OUT, ASIDE]),
        (board(since=NOW - 9_000), [LEFT_OUT, ASIDE]),
        (board(since=NOW + 9_000), [LEFT_OUT, ASIDE]),
        (board(active=False), [WAITS, ASIDE]),
    ],
)
def test_who_is_waited_for_and_what_is_left_out(shown: BoardView, expected: list[str]) -> None:
    assert sentences(shown, NOW) == expected


def test_a_closed_board_waits_for_nobody() -> None:
    closed = board(closed=True)
    closed.waiting = []
    assert sentences(closed, NOW) == [ASIDE]
