"""What a damaged ledger is answered with: a refusal that names the place. Nothing is served from it."""

from partage.ledger.refusals import Refused


class Damaged(Refused):
    """The stored ledger is not the one that was written. The argument ends a sentence and names the place."""

    def __init__(self, what: str) -> None:
        sentence = f"The stored ledger of this collaboration is damaged: {what}; restore the database from a backup."
        super().__init__(503, "damaged_ledger", sentence)


def changed(seq: int) -> Damaged:
    """Return the refusal of a ledger with a row that was changed."""
    return Damaged(f"row {seq} is not the one that was written")


def lost(seq: int) -> Damaged:
    """Return the refusal of a ledger that lacks a row."""
    return Damaged(f"row {seq} is missing")
