"""The tree over the lines of a ledger, and the signed checkpoints that must belong to it."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import UNSET

from partage.errors import InputError
from partage.ledger.checkpoints import Checkpoint, origin_of, read_checkpoint, read_cosignature, stated_checkpoint
from partage.ledger.keys import encoded
from partage.ledger.merkle import Tree
from partage.ledger.state import State
from partage.ledger.verify.lines import Wrong


@dataclass(frozen=True)
class CheckpointFound:
    """A checkpoint that belongs to the ledger.

    Attributes
    ----------
    size
        After how many lines it was made.
    signed
        Whether the ledger's key signed it; false if that key is not known.
    cosigned
        The members who cosigned it.
    """

    size: int
    signed: bool
    cosigned: list[str]


class Log:
    """The tree of a ledger's lines, and the checkpoints to look for.

    Parameters
    ----------
    notes
        Checkpoints, as signed notes.
    key
        The public key that must have signed them. By default, the one in the first line.
    """

    def __init__(self, notes: Sequence[str], key: str | None) -> None:
        self._notes = [(note, _stated(note)) for note in notes]
        self._key = key
        self._tree = Tree()
        self._roots = {0: self._tree.root()}
        self._wanted = {stated.size for _, stated in self._notes}

    @property
    def root(self) -> str:
        """The root of the tree so far, in base64."""
        return encoded(self._tree.root())

    def take(self, row_hash: bytes) -> None:
        """Add a line, by the hash of its row."""
        self._tree.append(row_hash)
        if self._tree.size in self._wanted:
            self._roots[self._tree.size] = self._tree.root()

    def check(self, state: State) -> list[CheckpointFound]:
        """Check that every checkpoint belongs to this ledger.

        Raises
        ------
        Wrong
            One does not, or the first line states another key than the given one.
        """
        stated = None if state.config.key is UNSET else state.config.key
        if self._key is not None and stated is not None and self._key != stated:
            raise Wrong("The first line states another key than the given one.", False)
        key = self._key or stated
        return [self._checked(note, checkpoint, key, state) for note, checkpoint in self._notes]

    def _checked(self, note: str, stated: Checkpoint, key: str | None, state: State) -> CheckpointFound:
        collaboration = state.config.collaboration
        if stated.origin != origin_of(collaboration):
            raise Wrong(f"A checkpoint is of another ledger, {stated.origin}.", False)
        if key is not None and read_checkpoint(note, collaboration, key) is None:
            raise Wrong(f"The checkpoint after {stated.size:,} lines is not signed by the ledger's key.", False)
        if stated.size > self._tree.size:
            raise Wrong(
                f"The ledger was cut: it has {self._tree.size:,} lines, and a checkpoint was made after "
                f"{stated.size:,}.",
                False,
            )
        if stated.root != self._roots[stated.size]:
            raise Wrong(
                f"The history was rewritten: the first {stated.size:,} lines are not those of the checkpoint.", False
            )
        cosigned = [
            member.id
            for member in state.members.values()
            if member.key and read_cosignature(note, collaboration, member.id, member.key) is not None
        ]
        return CheckpointFound(stated.size, key is not None, cosigned)


def _stated(note: str) -> Checkpoint:
    found = stated_checkpoint(note) if isinstance(note, str) else None
    if found is None:
        raise InputError("A checkpoint must be a signed note, as `partage agent checkpoint` writes it.")
    return found
