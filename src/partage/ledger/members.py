"""What a state knows about a member, its claims and its part of the draw."""

import msgspec
from msgspec import Struct

# gc=False: a busy board has hundreds of thousands of these. None can be part of a cycle, and without it the garbage
# collector would look through all of them.


class Answered(Struct, gc=False):
    """The answer to a request: the seq of its event, the arm (-1: several arms, or none), and the board's version."""

    seq: int
    arm: int
    share: bool
    version: int


class Handed(Struct, gc=False):
    """A claim that was handed out and has not been reported."""

    agent: str
    arm: int
    time: int


class Attached(Struct, gc=False):
    """The past rewards of an arm that a member attached: the event that has them, how many, and its request.

    `digest` tells whether a repeated request has the same rewards.
    """

    seq: int
    version: int
    rewards: int
    request: str | None
    digest: str


class Revealed(Struct):
    """A nonce that a member revealed, in hex, and the seq of that row."""

    seq: int
    nonce: str


class Drawing(Struct):
    """The draw of the tie order: the seq and the time of its row, its members, and the reveals that came."""

    seq: int
    time: int
    members: tuple[str, ...]
    revealed: dict[str, Revealed] = msgspec.field(default_factory=dict)


class Member(Struct):
    """An agent: what it shares, what it pulled, and its open claim."""

    id: str
    name: str
    shares: frozenset[int]
    joined: int
    since: int
    consents: list[tuple[int, str]]  # (seq, arms as bits): what it may explore, and since when, if commits are named
    horizon: int  # the pulls that it makes: the collaboration's, or as many as it declared
    pace: float | None = None  # pulls per hour, if it declared them
    explore: dict[int, int] = msgspec.field(default_factory=dict)
    commit: dict[int, int] = msgspec.field(default_factory=dict)
    unnamed: int = 0  # commit pulls whose arm the agent did not name
    used: int = 0  # pulls of its horizon
    spent: bool = False  # whether a `used-up` event says that it has no pulls left
    claim: int | None = None
    claimed: int | None = None  # when its last claim was handed out
    reported: int = 0  # the highest version on which it reported commit pulls
    answers: dict[str, Answered] = msgspec.field(default_factory=dict)
    left: bool = False
    attached: dict[int, Attached] = msgspec.field(default_factory=dict)  # past rewards, by arm
    aside: str = ""  # why the operator set its broadcasts aside; empty if it did not
    key: str = ""  # its public key; empty if it has none
    earlier_key: str = ""  # the key that it had before its last new token
    number: int = 0  # of its last signed request
    tie_commitment: str = ""  # the hash of its nonce; empty if it did not commit to one
    epoch: int = 0  # how often it got a new token
    rotated: int = 0  # the seq of the event that gave it the last one; 0 if that was joining
    revoked: bool = False  # whether the operator ended its token
    removed: str = ""  # why the operator ended its membership; empty if it did not. It has then also `left`

    @property
    def horizon_left(self) -> int:
        """The pulls that it may still make."""
        return self.horizon - self.used

    @property
    def able(self) -> bool:
        """Whether it has pulls left, as far as is known here: copies of the ledger hide commit pulls of others."""
        return not self.spent and self.horizon_left > 0
