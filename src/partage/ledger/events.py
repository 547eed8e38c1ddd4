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
5      0.2     Names are normalised and unique. The first event states the key that signs the ledger's checkpoints,
               and whether members sign their requests; such events carry `number` and `signature`. The tie order is
               drawn together, by `draw`, `reveal` and `order`. `rotate`, `revoke` and `remove` end tokens and
               memberships.
               Where commits are paid, a `close` states each member's counts in a form that every member can check.
6      0.2     A `join` may declare the member's own `horizon`, at most the collaboration's, and its `pace`. `used-up`
               events name arms whose sharers have all used their horizons; such an arm does not hold others back.
               Where commits are paid, a member whose claim is open may commit, though it shares an open arm.
               The configuration may state a `currency`.
7      0.2     A collaboration may play by a rule of one's own: the first event then states `rule_source`.
               The configuration may state `histories`: how many past rewards of an arm a member may attach. An
               `attach` adds them to the record as evidence. They are nobody's pulls, and are not paid.
               The configuration may state `most_arms`, and `arm` events then add arms, up to that number. Thresholds
               and the tie order are those of that many arms.
====== ======= ===================================================================================================
"""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from partage.ledger.refusals import Refused

FORMAT = 7  # of new collaborations, and the newest that this release reads

Arm = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]


class Event(Struct, frozen=True, kw_only=True, tag_field="kind", forbid_unknown_fields=True):
    """Something that happened: its number in the ledger, from 1, and when, in milliseconds since 1970."""

    seq: int
    time: int
    format: Annotated[int, Meta(ge=2)] | UnsetType = UNSET  # absent: 1


class Requested(Event, frozen=True, kw_only=True):
    """Something that a member asked for. If it signed the request: the request's number, and the signature.

    The number grows with each signed request of a member. The signature is in base64 (from format 5 on).
    """

    number: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    signature: str | UnsetType = UNSET


class Create(Event, frozen=True, kw_only=True, tag="create"):
    """A collaboration begins. `tie_seed` is the 128-bit key, in hex, from which the tie order is drawn.

    From format 5 on, `tie_commitment` is the hash of the operator's part of that key, which `order` completes.
    """

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
    tie_seed: str | UnsetType = UNSET
    # From format 3 on. `parameters` are all of the rule's but `balance`.
    parameters: dict[str, bool | int | float | str] | UnsetType = UNSET
    alone: str | UnsetType = UNSET
    coverage: float | UnsetType | None = UNSET
    # From format 4 on, in the money that `value` is in, and in seconds.
    prepaid: float | UnsetType | None = UNSET
    underwriting: float | UnsetType | None = UNSET
    claim_interval: float | UnsetType = UNSET
    # From format 5 on: whether members sign their requests, the public key of the checkpoints, in base64, and the
    # hash of the operator's part of the tie order, in hex.
    signed: bool | UnsetType = UNSET
    key: str | UnsetType = UNSET
    tie_commitment: str | UnsetType = UNSET
    # From format 6 on, if it is stated: what amounts of money are in.
    currency: str | UnsetType = UNSET
    # From format 7 on, for a rule of one's own: the SHA-256 of its module's file, in hex.
    rule_source: str | UnsetType = UNSET
    # From format 7 on, if it is not 0: how many past rewards of each arm a member may attach.
    histories: int | UnsetType = UNSET
    # From format 7 on, if arms may be added: the largest number of them.
    most_arms: int | UnsetType = UNSET


class Join(Requested, frozen=True, kw_only=True, tag="join"):
    """An agent joins and consents to share some arms.

    `key` is its public key, in base64, and `tie_commitment` the hash of its nonce, in hex (from format 5 on).
    `horizon` is how many pulls it will make, where that is fewer than the collaboration's, and `pace` how many in an
    hour (from format 6 on). The pace limits nothing.
    """

    agent: str
    name: str
    shares: tuple[Arm, ...]
    invite: str
    key: str | UnsetType = UNSET
    tie_commitment: str | UnsetType = UNSET
    horizon: int | UnsetType = UNSET
    pace: float | UnsetType = UNSET


class Draw(Event, frozen=True, kw_only=True, tag="draw"):
    """The tie order is being drawn. The nonces of these members count, if they reveal them (from format 5 on)."""

    members: tuple[str, ...]


class Reveal(Requested, frozen=True, kw_only=True, tag="reveal"):
    """A member reveals its nonce, 16 bytes in hex (from format 5 on)."""

    agent: str
    nonce: str


class Order(Event, frozen=True, kw_only=True, tag="order"):
    """The tie order is fixed (from format 5 on).

    `seed` is the operator's part, `tie_seed` the key that follows from it and the revealed nonces, and `skipped` the
    members of the draw who did not reveal theirs.
    """

    seed: str
    tie_seed: str
    skipped: tuple[str, ...]


class Claim(Requested, frozen=True, kw_only=True, tag="claim"):
    """An explore pull is handed out. Its number is this event's `seq`."""

    agent: str
    arm: Arm
    request: str | None = None


class Tell(Requested, frozen=True, kw_only=True, tag="tell"):
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


class Commit(Requested, frozen=True, kw_only=True, tag="commit"):
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


class UsedUp(Event, frozen=True, kw_only=True, tag="used-up"):
    """All sharers of these arms have used their horizons: no other arm waits for them (from format 6 on).

    It says so of the sharers, too: members do not see each other's commits, and know from it who has no pulls left.
    """

    arms: tuple[Arm, ...]


class Tick(Event, frozen=True, kw_only=True, tag="tick"):
    """The clock advances: the group's pulls so far, claimed or reported, rounded down to a power of 1.25."""

    clock: Annotated[int, Meta(ge=1)]


class Consent(Requested, frozen=True, kw_only=True, tag="consent"):
    """An agent shares other arms from now on. Its claims on the arms that it withdrew are cancelled."""

    agent: str
    shares: tuple[Arm, ...]
    request: str | None = None


class Leave(Requested, frozen=True, kw_only=True, tag="leave"):
    """An agent leaves. Its broadcasts and its row of the settlement stay."""

    agent: str


class Attach(Requested, frozen=True, kw_only=True, tag="attach"):
    """A member attaches its past rewards of an arm, in their order (from format 7 on).

    They were seen before its first pull here, and count as evidence only. `version` is the board's version with them,
    and `active` lists the active arms after them, if they changed.
    """

    agent: str
    arm: Arm
    rewards: tuple[float, ...]
    version: int
    active: tuple[Arm, ...] | UnsetType = UNSET
    request: str | None = None


class SetAside(Event, frozen=True, kw_only=True, tag="set-aside"):
    """The operator takes an agent's broadcasts out of the record, for a public reason (from format 4 on).

    The agent shares nothing from now on, and its claims are cancelled. `version` is the board's version with it, and
    `active` lists the active arms after it.
    """

    agent: str
    reason: str
    version: int
    active: tuple[Arm, ...]


class AddArm(Event, frozen=True, kw_only=True, tag="arm"):
    """The operator adds an arm, whose number is the next one (from format 7 on)."""

    name: str


class Rotate(Requested, frozen=True, kw_only=True, tag="rotate"):
    """A member gets a new token, which ends the old one, by itself or from the operator (from format 5 on).

    `epoch` counts its tokens. A member that signs may also bring a new public key; the operator never does.
    """

    agent: str
    epoch: Annotated[int, Meta(ge=1)]
    key: str | UnsetType = UNSET


class Revoke(Event, frozen=True, kw_only=True, tag="revoke"):
    """The operator ends a member's token (from format 5 on)."""

    agent: str


class Remove(Event, frozen=True, kw_only=True, tag="remove"):
    """The operator ends a membership, for a public reason. Broadcasts and the settlement's row stay (format 5)."""

    agent: str
    reason: str


class Tally(Struct, frozen=True, forbid_unknown_fields=True):
    """The paid commits of one arm: for each member, without names and in random order, a leaf and the count."""

    arm: Arm
    entries: tuple[tuple[str, Count], ...]


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
    tallies
        Where commits are paid: every arm that ever led, with each member's paid commits of it (from format 5 on).
    pulls
        Each agent's settled pulls, where there are ceilings, which follow from them (from format 5 on).
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
    tallies: tuple[Tally, ...] | UnsetType = UNSET
    pulls: dict[str, Count] | UnsetType = UNSET


AnyEvent = (
    Create
    | Join
    | Draw
    | Reveal
    | Order
    | Claim
    | Tell
    | Commit
    | Lapse
    | UsedUp
    | Tick
    | Consent
    | Leave
    | Attach
    | SetAside
    | AddArm
    | Rotate
    | Revoke
    | Remove
    | Close
)

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
