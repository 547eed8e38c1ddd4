"""Messages: the bodies of requests and answers, and the refusal of a body that is not one of them."""

from typing import Any

from msgspec import Struct

from partage.ledger.config import Config, checked_config
from partage.ledger.fields import MOST_INVITES, allowed, checked_new_name, checked_request, not_allowed
from partage.ledger.receipts import Receipt
from partage.ledger.refusals import Refused, invalid

# --- requests -------------------------------------------------------------------------------------------------


class Body(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of a request."""


class NewCollaboration(Config, frozen=True, kw_only=True):
    """A collaboration to create: its configuration, and how many invites to make."""

    invites: int = 1
    request: str | None = None


class NewArm(Body, frozen=True, kw_only=True):
    """An arm to add."""

    name: str


class NewInvites(Body, frozen=True, kw_only=True):
    """Invites to make: how many, and for how many hours each can be used."""

    invites: int = 1
    hours: float = 7 * 24.0
    request: str | None = None


class NewAgent(Body, frozen=True, kw_only=True, omit_defaults=True):  # release 0.1 does not know `key`
    """An agent that joins.

    `key` is its public Ed25519 key in base64, with which it cosigns and signs. `tie_commitment` is the SHA-256 of
    its nonce for the tie order, in hex. `horizon` is how many pulls it will make, if they are fewer than the
    collaboration's, and `pace` how many in an hour; the pace limits nothing.
    """

    name: str
    shares: list[str]
    request: str | None = None
    key: str | None = None
    tie_commitment: str | None = None
    horizon: int | None = None
    pace: float | None = None


class Reveal(Body, frozen=True, kw_only=True):
    """A member's nonce for the tie order, in hex."""

    nonce: str


class Ask(Body, frozen=True, kw_only=True):
    """A request for the next pull. With `explore_only`, a commit pull is not counted and the answer is empty."""

    request: str | None = None
    explore_only: bool = False


class Tell(Body, frozen=True, kw_only=True):
    """The reward of a claim. The pull makes it safe to repeat; a `request` is accepted and ignored."""

    pull: int
    reward: float
    request: str | None = None


class CommitRun(Body, frozen=True, kw_only=True):
    """Commit pulls of one arm on one version of the board."""

    version: int
    arm: str
    pulls: int


class Commits(Body, frozen=True, kw_only=True, omit_defaults=True):  # release 0.1 does not know `unnamed`
    """Commit pulls that the client decided by itself. `unnamed` counts those whose arm stays private."""

    request: str
    runs: list[CommitRun] = []
    unnamed: int = 0


class Consent(Body, frozen=True, kw_only=True):
    """The arms to share from now on."""

    shares: list[str]
    request: str | None = None


class Attach(Body, frozen=True, kw_only=True):
    """Past rewards of an arm that the agent shares, in their order. Each arm's are attached once."""

    arm: str
    rewards: list[float]
    request: str | None = None


class Leave(Body, frozen=True, kw_only=True):
    """A request to leave. It is sent without a body."""


class Rotate(Body, frozen=True, kw_only=True):
    """A request for a new token, which ends the old one. A member that signs may bring a new public key."""

    key: str | None = None
    request: str | None = None


class Renew(Body, frozen=True, kw_only=True):
    """The operator's request for a member's new token, which ends the old one."""

    request: str | None = None


class Remove(Body, frozen=True, kw_only=True):
    """Why an agent is removed; all members read it."""

    reason: str


class SetAside(Body, frozen=True, kw_only=True):
    """Why an agent's broadcasts are set aside; all members read it."""

    reason: str


class NewCosignature(Body, frozen=True, kw_only=True):
    """A checkpoint that the agent cosigned, as a signed note."""

    checkpoint: str


# --- answers --------------------------------------------------------------------------------------------------


class Error(Struct, omit_defaults=True):
    """A refusal: what is wrong and what is allowed, a code for programs, and the field at fault, if it is one."""

    error: str
    code: str
    field: str | None = None


class Created(Struct):
    """A new collaboration, the invite codes that let agents join, and what its operator should know."""

    id: str
    invites: list[str]
    warnings: list[str] = []


class Joined(Struct, omit_defaults=True):
    """A new agent, its token, which is shown only once, and the receipt of its row.

    `name` is its name as it is stored, and `terms` says what the settlement means for a member.
    """

    agent: str
    token: str
    receipt: Receipt | None = None
    name: str = ""
    terms: str = ""


class NewToken(Struct, omit_defaults=True):
    """An agent's new token, which is shown only once, and the receipt of its row."""

    agent: str
    token: str
    receipt: Receipt | None = None


class Pull(Struct, omit_defaults=True):
    """A pull to make. With `share` it is a claim: report its reward. Otherwise the reward stays private."""

    pull: int
    arm: str
    share: bool
    version: int
    receipt: Receipt | None = None


class Told(Struct, omit_defaults=True):
    """The board's version with this report, the ledger's head after it, and the receipt of its row."""

    version: int
    head: str
    receipt: Receipt | None = None


class Proof(Struct):
    """The hashes that prove that one checkpoint continues another, or that a row is in a checkpoint, in base64."""

    consistency: list[str] = []
    inclusion: list[str] = []


class Cosignature(Struct):
    """The newest checkpoint that a member cosigned."""

    agent: str
    name: str
    checkpoint: str


class ArmOnBoard(Struct):
    """An arm on the board: its record (`sum` of rewards over `broadcasts`) and its status.

    `lapses` counts the claims that ended without a report since the last broadcast. From the third on the arm is
    `stalled`: other arms no longer wait for it. An arm is also stalled if it is `used_up`: all its sharers have used
    their horizons. `settleable` is false where members may lie and too few of them share the arm. `attached` counts
    those of the `broadcasts` that are past rewards: evidence that nobody is paid for.
    """

    name: str
    broadcasts: int
    sum: float
    mean: float | None
    radius: float | None
    active: bool
    public: bool
    sharers: int
    claims: int
    open: bool
    lapses: int = 0
    stalled: bool = False
    settleable: bool = True
    used_up: bool = False
    attached: int = 0


class OpenClaim(Struct):
    """A claim that waits for its report: whose it is, its arm, and when it was handed out."""

    agent: str
    name: str
    arm: str
    since: int


class Out(Struct):
    """Claims whose rewards are not told: those that are open, the oldest first, and how many have lapsed.

    `text` says so in a sentence.
    """

    claims: list[OpenClaim]
    lapsed: int
    text: str


class Aside(Struct):
    """An agent whose broadcasts the operator set aside, and why."""

    agent: str
    name: str
    reason: str


class Removed(Struct):
    """An agent that the operator removed, and why."""

    agent: str
    name: str
    reason: str


class Disagreement(Struct):
    """Members whose rewards of an arm differ from those of the others, or who see two arms differently.

    With `against`, it is about the difference between the two arms. Several agents are named if nothing says which of
    them differs. `difference` is the first one's mean less that of the others; it is between `low` and `high`.
    `evidence` is at least log(100): the probability that anything is ever said without reason is at most 0.01. `text`
    says it in one sentence.
    """

    arm: str
    against: str | None
    agents: list[str]
    names: list[str]
    difference: float
    low: float
    high: float
    evidence: float
    text: str


class DrawView(Struct, omit_defaults=True):
    """The draw of the tie order: its members, those that have revealed their nonces, and whether it is over.

    The draw waits for those in `waiting`, at most until `until`. `seconds` is how long that is from now.
    """

    members: list[str]
    revealed: list[str]
    waiting: list[str]
    until: int
    seconds: float
    fixed: bool
    receipt: Receipt | None = None


class Revealed(Struct, omit_defaults=True):
    """A nonce was taken: the receipt of its row."""

    receipt: Receipt | None = None


class Drawing(Struct):
    """The draw of the tie order, while it lasts: for whom it waits, and until when, in milliseconds since 1970."""

    waiting: list[str]
    until: int


class BoardView(Struct):
    """The board. `version` counts broadcasts, histories and set-asides; `leader` is null before the first broadcast.

    `state` is the rule's public state, null for rules without one. `clock` is the group's pulls so far, rounded down
    to a power of 1.25; it stays 0 if the rule does not read it. `waiting` has the claims that are open longest, at
    most three. `set_aside` has the agents whose broadcasts are not on the board, and `removed` those that the
    operator removed. `ends` is when all members who share something will have used their horizons, in milliseconds
    since 1970, by the paces that they declared; null if one of them declared none. `tie_order` is empty until it is
    fixed; `drawing` says for whom that waits, once it has begun.
    `disagreements` says who sees arms differently, and `notes` what the record cannot show, in sentences.
    `leaders` has the agents who see differences between arms in another way: each commits to an arm of its own.
    """

    version: int
    closed: bool
    leader: str | None
    arms: list[ArmOnBoard]
    horizon: int
    rule: str
    balance: float | str | None
    tie_order: list[str]
    agents: int
    state: Any = None
    clock: int = 0
    waiting: list[OpenClaim] = []
    set_aside: list[Aside] = []
    drawing: Drawing | None = None
    removed: list[Removed] = []
    disagreements: list[Disagreement] = []
    ends: int | None = None
    leaders: dict[str, str] = {}
    notes: list[str] = []


class CollaborationView(Struct):
    """The configuration of a collaboration, and its progress.

    `parameters` are all of the rule's but the balance. `format` is the version of the terms it was created under.
    `coverage` is null if the settlement reads no confidence from the record, and in formats 1 and 2, where it is
    1 - 2/T. `prepaid` is null if members prepay nothing, and `underwriting` if nothing limits what the operator may
    lose or if nothing can be lost. If `named_commits` is false, commits earn nothing and are reported as a number.
    `terms` says what the settlement means for a member, and what members see of each other at the close.
    `tie_seed` is null until the tie order is fixed. `key` is the public key of the ledger's checkpoints. If `signed`
    is true, members sign their requests. `currency` is what amounts are in; empty if that is not stated.
    `rule_source` is the SHA-256 of the module of a rule of one's own; empty for a built-in rule.
    `histories` is how many past rewards of each arm a member may attach, and `most_arms` how many arms there may be
    in all.
    """

    id: str
    name: str
    arms: list[str]
    horizon: int
    rule: str
    balance: float | str | None
    settlement: str
    fee: float
    alone: str
    coverage: float | None
    value: float
    claim_seconds: float
    created: int
    tie_seed: str | None
    tie_order: list[str]
    agents: int
    version: int
    closed: bool
    parameters: dict[str, bool | int | float | str] = {}
    format: int = 1
    prepaid: float | None = None
    underwriting: float | None = None
    claim_interval: float = 0.0
    named_commits: bool = True
    signed: bool = False
    key: str = ""
    terms: str = ""
    currency: str = ""
    rule_source: str = ""
    histories: int = 0
    most_arms: int = 0


class AgentView(Struct):
    """An agent, as the operator and the agent itself see it.

    `aside` is the reason for which the operator set its broadcasts aside; empty if it did not. `claim_in` is the
    seconds until it may claim again. `removed` is the reason for which the operator removed it; it has then also
    `left`. `revoked` says whether the operator ended its token. `receipt` is that of a change of consent. `key` is
    its public key, and `number` that of its last signed request. `horizon` is how many pulls it makes in all, and
    `pace` how many in an hour, if it declared that. `attached` is how many past rewards of each arm it attached.
    """

    agent: str
    name: str
    shares: list[str]
    explore: int
    commit: int
    left: bool
    horizon_left: int
    unnamed: int = 0
    aside: str = ""
    claim_in: float = 0.0
    key: str = ""
    number: int = 0
    removed: str = ""
    revoked: bool = False
    receipt: Receipt | None = None
    horizon: int = 0
    pace: float | None = None
    attached: dict[str, int] = {}


class InviteView(Struct):
    """An invite that can still be used. Its code is not stored."""

    id: str
    created: int
    expires: int


class SettlementRow(Struct):
    """An agent's account, in micro-units. net = compensation - charge; positive: the agent receives it.

    Where it prepaid, it gets back prepaid + net.
    """

    agent: str
    name: str
    explore: int
    commit: int
    compensation: int
    charge: int
    net: int
    prepaid: int = 0


class SettlementView(Struct):
    """The settlement, in micro-units. Before the close: what it would be if the collaboration closed now.

    `scale` is the fraction of the compensations that is paid, `prepaid` what every member prepaid, and `underwriting`
    the most that the operator may lose; null: there is no limit. `salts`, by agent and in hex, open the entries in
    the close event's tallies: the operator sees all of them, and a member its own. `disagreements` says who sees arms
    differently; rates are the same for all members. `out` has the claims that are not told, which are not paid for;
    null if there are none.
    """

    closed: bool
    settlement: str
    rows: list[SettlementRow]
    compensation: int
    charge: int
    profit: int
    finished: bool
    viable: bool
    uncovered: int
    value: float
    fee: float
    scale: float = 1.0
    prepaid: int = 0
    underwriting: int | None = None
    salts: dict[str, str] = {}
    disagreements: list[Disagreement] = []
    out: Out | None = None


class PaidArm(Struct):
    """An arm in an account: the agent's pulls of it, and what they are worth.

    `pulls` are those that the settlement pays for, `rate` is the gap that one of them is settled at, in units of
    reward (0 for arms that may still be the best), and `amount` is pulls x rate x value, in micro-units.
    """

    arm: str
    explore: int
    commit: int
    pulls: int
    rate: float
    amount: int


class AccountView(Struct):
    """How the amounts of one agent come about, in micro-units. Before the close: if it closed now.

    `earned` is the sum over the arms, `scale` the fraction of it that is paid, and `compensation` what is paid, which
    is rounded once. The charge is the `common_charge`, but at most the `ceiling`; null if there is none. `prepaid`
    and `underwriting` are D and U. `text` says all of this in sentences.
    """

    agent: str
    name: str
    closed: bool
    settlement: str
    value: float
    currency: str
    arms: list[PaidArm]
    earned: int
    scale: float
    compensation: int
    common_charge: int | None
    ceiling: int | None
    charge: int
    net: int
    prepaid: int
    underwriting: int | None
    members: int
    fee: float
    pays_commits: bool
    text: list[str] = []


# --- checks ---------------------------------------------------------------------------------------------------


def checked_new_collaboration(new: NewCollaboration) -> dict[str, Any]:
    """Return the configuration of a new collaboration as it is recorded."""
    if not 0 <= new.invites <= MOST_INVITES:
        raise not_allowed("invites")
    checked_request(new.request)
    checked = checked_config(new)
    for field, name in (("name", new.name), *((f"arms[{place}]", arm) for place, arm in enumerate(new.arms))):
        checked_new_name(field, name)
    return checked


def refusal_of(message: str, kind: Any) -> Refused:
    """Turn msgspec's message about a body into a refusal. The message names places and types, never values."""
    what, _, place = message.partition(" - at `$")
    field = place.rstrip("`").removeprefix(".").replace("[...]", "[]")
    fields = ", ".join(getattr(kind, "__struct_fields__", ()))
    if "unknown field" in what:
        return Refused(422, "unknown_field", f"Unknown field; allowed: {fields}.", field or None)
    if "missing required field" in what:
        name = what.rsplit("`", 2)[-2]
        full = f"{field}.{name}" if field else name
        return invalid(full, f"The field {full} is missing; it must be {allowed(name)}.", "missing_field")
    if not field:
        return Refused(400, "invalid_body", f"The body must be a JSON object with the fields {fields}.")
    return not_allowed(field)


def not_json() -> Refused:
    """Return the refusal of a body that is not JSON."""
    return Refused(400, "not_json", 'The body is not JSON; send an object such as {"request": "…"}.')
