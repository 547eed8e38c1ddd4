"""What rules without a protocol have in common: which record an agent sees, and what it broadcasts."""

from collections.abc import Collection

from partage.board import Board, Pull, Record
from partage.errors import InputError
from partage.rules.rule import Parameter

ALLOWED = "own, shared or both"


def seen_by(board: Board, own: Record, sees: str = "both") -> Record:
    """Return what an agent sees: its own private pulls, the broadcasts, or both."""
    if sees == "own":
        return own
    if sees == "shared":
        return board.record
    return Record(
        [public + private for public, private in zip(board.record.counts, own.counts, strict=True)],
        [public + private for public, private in zip(board.record.sums, own.sums, strict=True)],
    )


def first_unseen(board: Board, shares: Collection[int], own: Record, seen: Record) -> int | None:
    """Return the unseen arm that the agent pulls first, in the tie order; None if it need not pull any.

    An agent that sees the broadcasts alone does not learn from its private pulls. It pulls an unseen arm that it does
    not share only once, and then waits for others to broadcast it; otherwise it would pull that arm for ever.
    """
    for arm in board.tie_order:
        if seen.counts[arm] == 0 and (arm in shares or own.counts[arm] == 0):
            return arm
    return None


def pull_of(arm: int, shares: Collection[int], sees: str) -> Pull:
    """Return the pull of this arm. It is broadcast if the agent shares the arm, unless agents see their own alone."""
    return Pull(arm, share=sees != "own" and arm in shares)


def with_sees(name: str, sees: str | None) -> str:
    """Return a rule's name, with what agents see if that is more than their own pulls.

    >>> with_sees("imed", "both"), with_sees("imed", "own"), with_sees("two-ucb", None)
    ('imed that sees both', 'imed', 'two-ucb')
    """
    return name if sees in (None, "own") else f"{name} that sees {sees}"


def checked_sees(sees: object) -> str:
    """Return what agents see, if it is one of the words."""
    if isinstance(sees, str) and sees in ("own", "shared", "both"):
        return sees
    raise InputError(f"What an agent sees is {sees!r}; it must be {ALLOWED}.")


SEES = Parameter(
    name="sees",
    default="own",
    summary="which pulls an agent decides from; unless it is own, every pull of a shared arm is broadcast",
    allowed=ALLOWED,
    check=checked_sees,
)
