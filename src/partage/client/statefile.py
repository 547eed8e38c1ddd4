"""What a client keeps in its state file, so that a crash loses nothing that others count on."""

import os
import tempfile
import uuid
from pathlib import Path

import msgspec
from msgspec import Struct

from partage.errors import FileError
from partage.ledger.messages import CommitRun, Commits


def new_request() -> str:
    """Return an id for a request."""
    return uuid.uuid4().hex


class Kept(Struct, kw_only=True):
    """An agent as her state file keeps her.

    The file has her token, so only its owner may read it; and where there are arms that nobody shares, sums of her
    private rewards. It goes nowhere.

    Attributes
    ----------
    url, collaboration, name, shares
        Where she plays, as whom, and what she consents to share.
    join
        The id of the request to join: after a lost answer the same request gives the same token.
    agent, token
        What the join gave; empty before.
    head
        The last head of the ledger that she was given, for `partage verify --head`.
    used
        Pulls of her horizon so far.
    asking
        The id of the next request for a claim. A claim whose answer was lost is found again by it.
    claim
        The number of the last claim that is counted in `used`.
    telling
        A claim's number and reward, until the controller has acknowledged it.
    runs, report
        Commit pulls that were not reported yet, and the report that was not acknowledged yet.
    unpaid
        Commit pulls whose report was refused.
    own
        Her own record where there are arms that nobody shares: pulls and the sum of rewards, by arm.
    left
        Whether she left.
    """

    url: str
    collaboration: str
    name: str = ""
    shares: list[str] = msgspec.field(default_factory=list)
    join: str = msgspec.field(default_factory=new_request)
    agent: str = ""
    token: str = ""
    head: str = ""
    used: int = 0
    asking: str = msgspec.field(default_factory=new_request)
    claim: int | None = None
    telling: tuple[int, float] | None = None
    runs: list[CommitRun] = msgspec.field(default_factory=list)
    report: Commits | None = None
    unpaid: int = 0
    own: dict[str, tuple[int, float]] = msgspec.field(default_factory=dict)
    left: bool = False

    def __repr__(self) -> str:
        return f"Kept(url={self.url!r}, collaboration={self.collaboration!r}, agent={self.agent!r})"  # no token


def read(path: Path) -> Kept:
    """Return what a state file keeps."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Kept)
    except OSError as error:
        raise FileError(f"The state file {path} cannot be read: {error.strerror}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise FileError(f"The file {path} is not a client's state file; name another, or join anew.") from None


def write(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Put a file in place of the one that is there, whole or not at all, and on disk when this returns."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                os.fchmod(handle, mode)
                file.write(content)
                file.flush()
                os.fsync(handle)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise FileError(f"The file {path} cannot be written: {error.strerror}.") from error
