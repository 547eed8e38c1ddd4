"""What a member's client kept in its state file, and what a copy must therefore show."""

from pathlib import Path

import msgspec
from msgspec import Struct

from partage.errors import FileError, InputError
from partage.ledger.receipts import Receipted
from partage.ledger.state import State
from partage.ledger.verify.lines import Wrong


class Kept(Struct):
    """The part of a client's state file that a ledger is compared with.

    Attributes
    ----------
    collaboration, agent
        The collaboration, and the agent's id in it.
    log_key, checkpoint
        The key of the ledger's checkpoints, and the newest of them; empty if the controller gave none.
    receipted
        The agent's commit pulls that the controller gave receipts for.
    """

    collaboration: str
    agent: str
    log_key: str = ""
    checkpoint: str = ""
    receipted: Receipted = msgspec.field(default_factory=Receipted)

    def check(self, state: State) -> None:
        """Check that the ledger shows every commit pull that the agent has a receipt for.

        Raises
        ------
        Wrong
            It shows fewer.
        """
        member, config = state.members[self.agent], state.config
        if self.collaboration != config.collaboration:
            raise Wrong(f"The state file is of another collaboration, {self.collaboration}.", False)
        shown = {state.arms[arm]: pulls for arm, pulls in member.commit.items()}
        for arm, pulls in self.receipted.commits.items():
            self._compare(f"commit pulls of arm {arm}", shown.get(arm, 0), pulls)
        self._compare("commit pulls without an arm", member.unnamed, self.receipted.unnamed)

    def _compare(self, what: str, shown: int, receipted: int) -> None:
        if shown < receipted:
            raise Wrong(
                f"Rows of agent {self.agent} are hidden: this copy shows {shown:,} of its {what}, and the controller "
                f"gave receipts for {receipted:,}.",
                False,
            )


def read_kept(file: str | Path) -> Kept:
    """Return what a state file keeps."""
    if not isinstance(file, str | Path):
        raise InputError(f"The state file is {file!r}; it must be a path.")
    try:
        found = msgspec.json.decode(Path(file).read_bytes(), type=Kept)
    except (OSError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
        raise FileError(f"The file {file} cannot be read as a client's state file.") from None
    if not found.agent:
        raise InputError(f"The agent of the state file {file} has not joined yet.")
    return found
