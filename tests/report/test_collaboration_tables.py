"""What the terminal says about a board, beside its arms."""

import pytest

from partage.ledger.messages import ArmOnBoard, Aside, BoardView, Disagreement, OpenClaim
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


def test_an_arm_whose_sharers_have_no_pulls_left_is_not_late() -> None:
    shown = board()
    shown.arms[0].used_up = True
    assert sentences(shown, NOW) == [WAITS, "No other arm waits for Rye: nobody who shares it has pulls left.", ASIDE]


def test_the_declared_paces_say_when_it_ends() -> None:
    shown = board()
    shown.ends = NOW + 3_600_000
    until = "those who share arms will have made all their pulls by 2023-11-14 23:13 UTC."
    assert f"By the paces that they declared, {until}" in sentences(shown, NOW)
    shown.closed = True
    assert not any("paces" in sentence for sentence in sentences(shown, NOW))


def test_who_differs_is_said_also_after_the_close() -> None:
    closed = board(closed=True)
    closed.waiting = []
    text = "Baker E sees Rye differently: 0.30 lower than the others (0.17 to 0.41)."
    closed.disagreements = [Disagreement("Rye", None, ["a5"], ["Baker E"], -0.3, -0.41, -0.17, 9.0, text)]
    assert sentences(closed, NOW) == [ASIDE, text]
