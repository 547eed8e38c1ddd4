"""Events: what a collaboration's ledger consists of. Arms are numbered from 0, in the order of the create event.

Every event carries the *format* of its collaboration. A collaboration keeps the format that it was created with. The
format determines how it is folded, played, settled and verified, also by later releases.

====== ======= ===================================================================================================
format release terms
====== ======= ===================================================================================================
1      0.1     Events carry no `format`. Which arms are active follows from the broadcasts: every reader computes
               it with the collaboration's rule.
2      0.2     Events carry `format`. A `tell` states the active arms whenever it changed them, and that list is
               authoritative. Readers check it against the rule, with a tolerance for rounding on other platforms.
3      0.2     The configuration states `alone` and `coverage`, and the equal shares settle by them. Formats 1 and 2
               settle by 2-UCB's first ceilings, the rule's active arms, and a coverage of 1 - 2/T.
               The create event states all parameters of the rule. `tick` events advance the clock of a rule that
               reads one; in formats 1 and 2 the clock stands at 0, and Balanced-GLR does not stop early.
               A `commit` may count pulls without naming their arms.
4      0.2     The configuration states `prepaid`, `underwriting` and `claim_interval`. The paper's settlement and the
               equal shares have an underwriting, within which compensations are scaled down. Where the settlement
               pays no commits, a `commit` only counts them, unless the controller chose their arm. A `close` states
               the arms left and the scale; the members' prepaid and charge where they prepay; and the totals of
               commit pulls only where these are paid. An arm whose last three claims ended without a report does not
               hold other arms back. `set-aside` events take a member's broadcasts out of the record.
====== ======= ===================================================================================================
"""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from partage.ledger.refusals import Refused

FORMAT = 4  # of new collaborations, and the newest that this release reads

Arm = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]


class Event(Struct, frozen=True, kw_only=True, tag_field="kind", forbid_unknown_fields=True):
    """Something that happened: its number in the ledger, from 1, and when, in milliseconds since 1970."""

    seq: int
    time: int
    format: Annotated[int, Meta(ge=2)] | UnsetType = UNSET  # absent: 1


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
    # From format 3 on. `parameters` are all of the rule's but `balance`.
    parameters: dict[str, bool | int | float | str] | UnsetType = UNSET
    alone: str | UnsetType = UNSET
    coverage: float | UnsetType | None = UNSET
    # From format 4 on, in the money that `value` is in, and in seconds.
    prepaid: float | UnsetType | None = UNSET
    underwriting: float | UnsetType | None = UNSET
    claim_interval: float | UnsetType = UNSET


class Join(Event, frozen=True, kw_only=True, tag="join"):
    """An agent joins and consents to share some arms."""

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
    """The reward of a claim is reported and broadcast. `version` is the board's version with it.

    `active` lists the active arms after it, if the broadcast changed them (from format 2 on).
    """

    agent: str
    pull: int
    arm: Arm
    reward: float
    version: int
    active: tuple[Arm, ...] | UnsetType = UNSET


class Run(Struct, frozen=True, forbid_unknown_fields=True):
    """Commit pulls of one arm, all decided on one version of the board."""

    version: Count
    arm: Arm
    pulls: Annotated[int, Meta(ge=1)]


class Commit(Event, frozen=True, kw_only=True, tag="commit"):
    """Commit pulls: one that the controller decided (`asked`), or those that the client decided by itself.

    `runs` name their arm and version. `unnamed` counts the others (from format 3 on): the agent also used its own
    rewards to choose their arms, or no commit is paid.
    """

    agent: str
    runs: tuple[Run, ...]
    asked: bool = False
    request: str | None = None
    unnamed: Annotated[int, Meta(ge=1)] | UnsetType = UNSET  # absent: 0


class Lapse(Event, frozen=True, kw_only=True, tag="lapse"):
    """A claim was not reported in time, so its place is free again. A late report is still accepted."""

    agent: str
    pull: int


class Tick(Event, frozen=True, kw_only=True, tag="tick"):
    """The clock advances: the group's pulls so far, claimed or reported, rounded down to a power of 1.25."""

    clock: Annotated[int, Meta(ge=1)]


class Consent(Event, frozen=True, kw_only=True, tag="consent"):
    """An agent shares other arms from now on. Its claims on the arms that it withdrew are cancelled."""

    agent: str
    shares: tuple[Arm, ...]
    request: str | None = None


class Leave(Event, frozen=True, kw_only=True, tag="leave"):
    """An agent leaves. Its broadcasts and its row of the settlement stay."""

    agent: str


class SetAside(Event, frozen=True, kw_only=True, tag="set-aside"):
    """The operator takes an agent's broadcasts out of the record, for a public reason (from format 4 on).

    The agent shares nothing from now on, and its claims are cancelled. `version` is the board's version with it, and
    `active` lists the active arms after it.
    """

    agent: str
    reason: str
    version: int
    active: tuple[Arm, ...]


class Close(Event, frozen=True, kw_only=True, tag="close"):
    """The collaboration ends. The event has what a member needs to check their own account.

    Attributes
    ----------
    explore, commit
        The pulls of each arm, of all agents together. From format 4 on, `commit` is absent if commits are not paid.
    common_charge
        What every agent pays, up to its ceiling, in units of reward. None where the settlement charges nothing or
        states a `charge`, and where all agents pay their ceilings.
    ceilings, ceiling_seed
        The most that each agent pays, in units of reward, and the seed of the plays that measured it. None where the
        settlement has no ceilings; the seed also where a formula gives them.
    profit
        What the controller keeps, in micro-units.
    left
        The arms that may still be the best; pulls of the others are compensated (from format 4 on).
    scale
        The fraction of the compensations that is paid (from format 4 on).
    prepaid, charge
        What every agent prepaid, and what it pays, in micro-units, where members prepay (from format 4 on).
    """

    explore: tuple[Count, ...]
    commit: tuple[Count, ...] | UnsetType = UNSET
    common_charge: float | None
    ceilings: dict[str, float] | None
    ceiling_seed: str | None
    profit: int
    left: tuple[Arm, ...] | UnsetType = UNSET
    scale: float | UnsetType = UNSET
    prepaid: Count | UnsetType = UNSET
    charge: Count | UnsetType = UNSET


AnyEvent = Create | Join | Claim | Tell | Commit | Lapse | Tick | Consent | Leave | SetAside | Close

_ENCODER = msgspec.json.Encoder(order="sorted")
_DECODER: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


class _Versioned(Struct):
    """The format of an event that this release may not be able to read otherwise."""

    format: Any = None


_FORMAT_DECODER = msgspec.json.Decoder(_Versioned)


def encode(event: AnyEvent) -> bytes:
    """Return the canonical JSON of an event: sorted keys, no spaces. This is what is stored and hashed."""
    return _ENCODER.encode(event)


def decode(body: bytes) -> AnyEvent:
    """Return the event of a canonical JSON.

    Raises
    ------
    Refused
        A newer release wrote the event.
    msgspec.MsgspecError
        It is not an event.
    """
    try:
        event = _DECODER.decode(body)
    except msgspec.ValidationError:  # perhaps because a newer format has more fields
        _check_format(_FORMAT_DECODER.decode(body).format)
        raise
    _check_format(event.format)
    return event


def _check_format(found: Any) -> None:
    if isinstance(found, int) and found > FORMAT:
        raise Refused(
            501,
            "newer_format",
            f"The ledger has format {found}, and this release of Partage reads formats up to {FORMAT}; "
            "upgrade Partage to read it.",
        )
