"""The state file: what an agent's client saves so that it can resume after a crash."""

import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from partage.errors import FileError
from partage.ledger.keys import KEY_BYTES, Key, decoded, encoded
from partage.ledger.messages import CommitRun, Commits
from partage.ledger.receipts import Receipted
from partage.ledger.ties import PART_BYTES


def new_request(random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> str:
    """Return an id for a request."""
    return random_bytes(16).hex()


def new_key(random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> str:
    """Return a new private key, in base64."""
    return encoded(random_bytes(KEY_BYTES))


def new_nonce(random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> str:
    """Return random bytes for the tie order, in hex."""
    return random_bytes(PART_BYTES).hex()


class Rotating(Struct, frozen=True):
    """A new token that was asked for: the id of the request, and the new private key, in base64."""

    request: str
    key: str


class Deferred(Struct, frozen=True):
    """A claim whose reward comes later: its number, its arm, and the version of the board it was decided on."""

    number: int
    arm: str
    version: int


class AgentState(Struct, kw_only=True):
    """An agent, as stored in its state file.

    The file holds the agent's token, so only its owner may read it. If there are arms that nobody shares, or
    with `own_rewards`, it also holds sums of the agent's private rewards. It is never sent anywhere.

    Attributes
    ----------
    url, collaboration, name, shares
        Where the agent plays, its display name, and the arms it consents to share.
    horizon, pace
        How many pulls the agent makes, and how many in an hour, as it declared on joining; None if it did not.
    join
        The id of the request to join: if the answer was lost, the same request returns the same token.
    agent, token
        The agent's id and token; empty until it has joined.
    head
        The last head of the ledger that the controller sent, for `partage verify --head`.
    used
        Pulls of the horizon used so far.
    asking
        The id of the next request for a claim. If its answer was lost, the same request returns the same claim.
    claim
        The number of the last claim that is counted in `used`.
    deferred
        Claims whose rewards come later, in the order in which they were handed out.
    telling
        A claim's number and reward, until the controller has acknowledged it.
    runs, report
        Commit pulls not yet reported, and the report not yet acknowledged.
    unpaid
        Commit pulls whose report was refused.
    unnamed
        Commit pulls not yet reported whose arm the controller does not learn.
    own
        The agent's private record if there are arms that nobody shares: pulls and sum of rewards, by arm.
    first
        With `own_rewards`, the agent's first private rewards of each arm: how many, and their sum.
    left
        Whether the agent has left.
    key
        The agent's private Ed25519 key in base64, made before it joined; empty if an earlier release joined.
    number
        The number of the agent's last signed request.
    rotating
        A new token that was asked for and has not arrived.
    nonce
        The agent's 16 random bytes for the tie order, in hex, made before it joined and secret until it reveals them.
    log_key
        The public key of the ledger's checkpoints; empty if the controller gives no receipts.
    checkpoint
        The newest checkpoint of the ledger that the agent was shown, as the controller signed it.
    receipted
        The commit pulls that the controller gave receipts for, for `partage verify --state`.
    forked, evidence
        What showed that the controller does not keep the ledger it promised, and the two notes that prove it.
    """

    url: str
    collaboration: str
    name: str = ""
    shares: list[str] = msgspec.field(default_factory=list)
    horizon: int | None = None
    pace: float | None = None
    join: str = msgspec.field(default_factory=new_request)
    agent: str = ""
    token: str = ""
    head: str = ""
    used: int = 0
    asking: str = msgspec.field(default_factory=new_request)
    claim: int | None = None
    deferred: list[Deferred] = msgspec.field(default_factory=list)
    telling: tuple[int, float] | None = None
    runs: list[CommitRun] = msgspec.field(default_factory=list)
    report: Commits | None = None
    unnamed: int = 0
    unpaid: int = 0
    own: dict[str, tuple[int, float]] = msgspec.field(default_factory=dict)
    first: dict[str, tuple[int, float]] = msgspec.field(default_factory=dict)
    left: bool = False
    key: str = ""
    number: int = 0
    rotating: Rotating | None = None
    nonce: str = ""
    log_key: str = ""
    checkpoint: str = ""
    receipted: Receipted = msgspec.field(default_factory=Receipted)
    forked: str = ""
    evidence: list[str] = msgspec.field(default_factory=list)

    @property
    def private_key(self) -> Key | None:
        """The agent's key; None if an earlier release joined."""
        secret = decoded(self.key, KEY_BYTES)
        return None if secret is None else Key(secret)

    def __repr__(self) -> str:
        return f"AgentState(url={self.url!r}, collaboration={self.collaboration!r}, agent={self.agent!r})"  # no token


def read(path: Path) -> AgentState:
    """Return the agent stored in a state file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=AgentState)
    except OSError as error:
        raise FileError(f"The state file {path} cannot be read: {error.strerror}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise FileError(f"The file {path} is not a client's state file; use another, or join again.") from None
