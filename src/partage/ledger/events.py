"""Events: what a collaboration's ledger is made of. Arms are numbers from 0, in the order of the create event."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

Arm = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]


class Event(Struct, frozen=True, kw_only=True, tag_field="kind", forbid_unknown_fields=True):
    """Something that happened: its place in the ledger from 1, and when, in milliseconds since 1970."""

    seq: int
    time: int


class Create(Event, frozen=True, kw_only=True, tag="create"):
    """A collaboration begins. `tie_seed` is the 128-bit key, in hex, from which the tie order is drawn."""

    collaboration: str
    name: str
    arms: tuple[str, ...]
    horizon: int
    rule: str
    balance: float | str | None
    settlement: str
    fee: float
    value: float
    claim_seconds: float
    tie_seed: str


class Join(Event, frozen=True, kw_only=True, tag="join"):
    """An agent comes, with what she consents to share."""

    agent: str
    name: str
    shares: tuple[Arm, ...]
    invite: str


class Claim(Event, frozen=True, kw_only=True, tag="claim"):
    """An explore pull is handed out. Its number is this event's `seq`."""

    agent: str
    arm: Arm
    request: str | None = None


class Tell(Event, frozen=True, kw_only=True, tag="tell"):
    """The reward of a claim is reported: a broadcast. `version` is the board's, with it."""

    agent: str
    pull: int
    arm: Arm
    reward: float
    version: int


class Run(Struct, frozen=True, forbid_unknown_fields=True):
    """Commit pulls of one arm that were decided on one version of the board."""

    version: Count
    arm: Arm
    pulls: Annotated[int, Meta(ge=1)]


class Commit(Event, frozen=True, kw_only=True, tag="commit"):
    """Commit pulls: one that the controller decided (`asked`), or runs that the agent decided by herself."""

    agent: str
    runs: tuple[Run, ...]
    asked: bool = False
    request: str | None = None


class Lapse(Event, frozen=True, kw_only=True, tag="lapse"):
    """A claim was not told in time and frees its place. Its report is still welcome."""

    agent: str
    pull: int


class Consent(Event, frozen=True, kw_only=True, tag="consent"):
    """An agent shares other arms from now on. Her claims on arms she withdrew are cancelled."""

    agent: str
    shares: tuple[Arm, ...]
    request: str | None = None


class Leave(Event, frozen=True, kw_only=True, tag="leave"):
    """An agent goes; what she broadcast stays, and so does her row of the settlement."""

    agent: str


class Close(Event, frozen=True, kw_only=True, tag="close"):
    """The end, with what a member needs to check her part: pulls in all, the common charge, everyone's ceiling.

    `explore` and `commit` are everybody's pulls of each arm. `common_charge` and `ceilings` are in units of reward;
    they are None where the settlement has none (or where everyone pays her ceiling). `profit` is in micro-units.
    """

    explore: tuple[Count, ...]
    commit: tuple[Count, ...]
    common_charge: float | None
    ceilings: dict[str, float] | None
    ceiling_seed: str | None
    profit: int


AnyEvent = Create | Join | Claim | Tell | Commit | Lapse | Consent | Leave | Close

_ENCODER = msgspec.json.Encoder(order="sorted")
_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(AnyEvent)


def encode(event: AnyEvent) -> bytes:
    """Return the canonical JSON of an event: sorted keys, no spaces. This is what is stored and hashed."""
    return _ENCODER.encode(event)


def decode(body: bytes) -> AnyEvent:
    """Return the event of a canonical JSON; raises msgspec.ValidationError or DecodeError."""
    event: AnyEvent = _DECODER.decode(body)
    return event
