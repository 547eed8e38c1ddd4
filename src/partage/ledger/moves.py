"""Moves: what the operator and the agents may do.

A move is a function of the state, the request and the time. It checks the request against the state, and either
refuses or writes events. A move that refuses has written only the lapses that were due, and perhaps the beginning of
the tie order's draw. The server plays moves to serve requests; `verify` plays them again to check a ledger.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from msgspec import UNSET, UnsetType

from partage.ledger.events import (
    FORMAT,
    AnyEvent,
    Claim,
    Close,
    Commit,
    Consent,
    Create,
    Draw,
    Event,
    Join,
    Lapse,
    Leave,
    Order,
    Remove,
    Reveal,
    Revoke,
    Rotate,
    Run,
    SetAside,
    Tell,
    Tick,
)
from partage.ledger.fields import alike, checked_member_name, not_allowed
from partage.ledger.refusals import Refused, conflict, forbidden, invalid, missing
from partage.ledger.signatures import Signed, is_signed, named, named_runs
from partage.ledger.state import Answered, Member, State
from partage.ledger.ties import commitment_to, tie_seed_of

_E = TypeVar("_E", bound=Event)


def _no_seed() -> bytes:
    raise _order_pending("The tie order is not fixed yet.")


class Turn:
    """A move in progress: the state that it reads and changes, the time, and the events that it wrote.

    `seed` returns the operator's part of the tie order, which the first event commits to. `signed` is the signature
    of the member's request, if it signed it.
    """

    signed: Signed | None = None

    def __init__(self, state: State, now: int, seed: Callable[[], bytes] = _no_seed) -> None:
        self.state = state
        self.seed = seed
        self.now = max(now, state.time)  # the ledger's time never decreases, even if the clock does
        self.events: list[AnyEvent] = []

    def write(self, kind: type[_E], **fields: object) -> _E:
        """Write an event and add it to the state."""
        state = self.state
        event = kind(seq=state.seq + 1, time=self.now, format=state.config.format, **fields)
        written = state.record(event)  # type: ignore[arg-type]
        self.events.append(written)
        return written  # type: ignore[return-value]

    def write_asked(self, kind: type[_E], **fields: object) -> _E:
        """Write the event that a member asked for, with its signature."""
        if self.signed is not None and self.state.format > 4:
            fields |= {"number": self.signed.number, "signature": self.signed.signature}
        return self.write(kind, **fields)


# --- the operator's moves -------------------------------------------------------------------------------------


def create(now: int, tie_commitment: str, **config: object) -> Create:
    """Return the first event of a collaboration, with the operator's commitment to its part of the tie order."""
    return Create(seq=1, time=now, format=FORMAT, tie_commitment=tie_commitment, **config)  # type: ignore[arg-type]


def close(turn: Turn, stated: Mapping[str, object]) -> Close:
    """End the collaboration; a closed one keeps its close event.

    `stated` is what `partage.ledger.settlement.closing` computed from the state as it is now.
    """
    closed = turn.state.closed
    return turn.write(Close, **stated) if closed is None else closed


def set_aside(turn: Turn, agent: str, reason: str) -> SetAside:
    """Take an agent's broadcasts out of the record, for a reason that all members read."""
    state = _open(turn)
    if state.format < 4:
        sentence = "This collaboration was created by an earlier release, whose terms know no set-aside."
        raise conflict("set_aside", sentence)
    if agent not in state.members:
        raise missing("no_such_agent", "There is no such agent in this collaboration; agents lists them.", "agent")
    if state.members[agent].aside:
        raise conflict("set_aside", "The broadcasts of this agent have already been set aside; the reason stays.")
    lapse(turn)
    return turn.write(SetAside, agent=agent, reason=reason, version=state.version + 1, active=())


def remove(turn: Turn, agent: str, reason: str) -> Remove:
    """End a membership, for a reason that all members read. Its broadcasts and its row of the settlement stay."""
    state = _open(turn)
    member = _known(state, agent)
    if member.removed:
        raise conflict("removed", "This agent has already been removed; the reason stays.")
    lapse(turn)
    return turn.write(Remove, agent=agent, reason=reason)


def revoke(turn: Turn, agent: str) -> None:
    """End an agent's token; if it has none any more, nothing happens."""
    if not _known(_open(turn), agent).revoked:
        turn.write(Revoke, agent=agent)


def renew(turn: Turn, agent: str) -> Rotate:
    """Give an agent a new token, which ends the old one. The operator cannot change its key."""
    return turn.write(Rotate, agent=agent, epoch=_known(_open(turn), agent).epoch + 1)


def _known(state: State, agent: str) -> Member:
    """Return an agent of a collaboration whose terms know tokens that end."""
    _check_terms(state)
    if agent not in state.members:
        raise missing("no_such_agent", "There is no such agent in this collaboration; agents lists them.", "agent")
    return state.members[agent]


def _check_terms(state: State) -> None:
    if state.format < 5:
        sentence = (
            "This collaboration was created by an earlier release, whose terms know no end of a token or member."
        )
        raise conflict("earlier_terms", sentence)


# --- joining, consent, leaving --------------------------------------------------------------------------------


def join(
    turn: Turn,
    name: str,
    shares: Sequence[int],
    invite: str,
    tie_commitment: str | UnsetType = UNSET,
    key: str | UnsetType = UNSET,
    *,
    unique: bool = False,
) -> Join:
    """Let an agent join with an unused invite.

    From format 5 on, it may commit to a nonce for the tie order, and bring a public key, with which it signs. Its
    name must be normal and unique from format 5 on, and with `unique` in any format.
    """
    state = _open(turn)
    if invite in state.invites:
        raise forbidden("invite_used", "This invite has already been used; ask the operator for another.")
    if unique or state.format > 4:
        _check_name(state, name)
    if state.format > 4:
        _check_joining(turn, name, shares, tie_commitment, key)
    agent = f"a{len(state.members) + 1}"
    return turn.write_asked(
        Join,
        agent=agent,
        name=name,
        shares=tuple(sorted(set(shares))),
        invite=invite,
        tie_commitment=tie_commitment if state.format > 4 else UNSET,
        key=key if state.format > 4 else UNSET,
    )


def _check_name(state: State, name: str) -> None:
    """Refuse a name that is not normal or reserved, or that another member has. Members who left keep theirs."""
    if checked_member_name(name) != name:
        raise not_allowed("name")
    if alike(name) in state.names:
        sentence = "Another member has this name; choose one that differs not only in case."
        raise conflict("name_taken", sentence, "name")


def _check_joining(
    turn: Turn, name: str, shares: Sequence[int], tie_commitment: str | UnsetType, key: str | UnsetType
) -> None:
    """Check the key that an agent brings: it is nobody else's, and where the join is signed, it signed it."""
    state, signed = turn.state, turn.signed
    if key is UNSET:
        if state.config.signed is True:
            sentence = "Members of this collaboration sign their requests: join with a key, as Partage's client does."
            raise forbidden("signature_required", sentence)
        if signed is not None:
            raise _wrong_signature("The request is signed, and brings no key.")
        return
    _check_key(state, key)
    if signed is None:
        if state.config.signed is True:
            raise _signature_required()
        return
    contents = {"name": name, "shares": named(shares, state.config.arms), "tie_commitment": tie_commitment or None}
    if not is_signed(key, signed, "join", state.config.collaboration, key=key, **contents):
        raise _wrong_signature()


def _check_key(state: State, key: str) -> None:
    if any(member.key == key for member in state.members.values()):
        raise conflict("key_used", "A member of this collaboration has this key; make another one.", "key")


def consent(turn: Turn, agent: str, shares: Sequence[int], request: str | None = None) -> int | None:
    """Let the agent share exactly these arms from now on. A repeated request changes nothing.

    Returns the seq of its event; None if there is none, because nothing changes and the request has no id.
    """
    state = _open(turn)
    member = _present(turn, agent)
    _check_signature(turn, member, "consent", request=request, shares=named(shares, state.config.arms))
    if request is not None and request in member.answers:
        if member.answers[request].arm >= 0:
            raise _reused("ask for a pull")
        return member.answers[request].seq
    _check_number(turn, member)
    if shares and member.aside:
        sentence = "The operator set your broadcasts aside, so you can share no arm; you can commit and read."
        raise conflict("set_aside", sentence)
    if request is None and member.shares == frozenset(shares):
        return None
    lapse(turn)
    return turn.write_asked(Consent, agent=agent, shares=tuple(sorted(set(shares))), request=request).seq


def leave(turn: Turn, agent: str) -> None:
    """Let the agent leave; if it has already left, nothing happens."""
    member = turn.state.members[agent]
    if not member.left:
        _open(turn)
        _check_signature(turn, member, "leave")
        _check_number(turn, member)
        turn.write_asked(Leave, agent=agent)


def rotate(turn: Turn, agent: str, key: str | UnsetType = UNSET) -> Rotate:
    """Give the agent a new token, which ends the old one, and a new key, if it signs with the old one."""
    state = _open(turn)
    _check_terms(state)
    member = _present(turn, agent)
    if key is not UNSET:
        if turn.signed is None:
            raise _signature_required("A new key must be signed by the old one: send the header Partage-Signature.")
        _check_key(state, key)
    _check_signature(turn, member, "rotate", key=key or None)
    _check_number(turn, member)
    return turn.write_asked(Rotate, agent=agent, epoch=member.epoch + 1, key=key)


def check_rotated(state: State, agent: str, key: str | UnsetType, epoch: int | None, signed: Signed | None) -> None:
    """Check a repeated `rotate`: it comes with the token, and the signature, that made the agent's last token."""
    member = state.members[agent]
    if epoch is not None and epoch != member.epoch - 1:
        raise _token_ended()
    if key is not UNSET:
        if signed is None:
            raise _signature_required()
        if key != member.key:
            sentence = "This request brought another key; use a new id for every request."
            raise conflict("request_reused", sentence, "request")
    _check_signed(state, agent, member.earlier_key, signed, "rotate", key=key or None)


# --- the tie order --------------------------------------------------------------------------------------------


def draw(turn: Turn) -> Draw:
    """Begin to draw the tie order: the nonces of those who committed and are here now will count."""
    return turn.write(Draw, members=turn.state.committed())


def reveal(turn: Turn, agent: str, nonce: str) -> int:
    """Take a member's nonce for the tie order; return the seq of its row. A repeated reveal changes nothing."""
    state, member = turn.state, turn.state.members[agent]
    drawing = state.drawing
    _check_signature(turn, member, "reveal", nonce=nonce)
    if drawing is not None and agent in drawing.revealed and drawing.revealed[agent].nonce == nonce:
        return drawing.revealed[agent].seq
    _open(turn)
    _present(turn, agent)
    if drawing is None and not state.ordered:
        raise conflict("no_draw", "The tie order is not being drawn yet; reveal your nonce once it is.")
    if drawing is None or agent not in drawing.members:
        sentence = "Your nonce does not count: you did not commit to one before the tie order was drawn."
        raise conflict("not_in_draw", sentence)
    if commitment_to(bytes.fromhex(nonce)) != member.tie_commitment:
        raise invalid("nonce", "This is not the nonce that you committed to on joining.", "wrong_nonce")
    if state.ordered:
        raise conflict("order_fixed", "The tie order has been fixed, without your nonce; the ledger names you.")
    _check_number(turn, member)
    return turn.write_asked(Reveal, agent=agent, nonce=nonce).seq


def order(turn: Turn) -> None:
    """Fix the tie order if it is not: begin to draw it, or write it once nobody is waited for.

    Raises
    ------
    Refused
        The draw waits for nonces.
    """
    state = turn.state
    if state.ordered:
        return
    if state.drawing is None and state.committed():
        draw(turn)
    if waiting := state.awaited(turn.now):
        names = ", ".join(state.members[agent].name for agent in waiting[:3])
        more = f" and {len(waiting) - 3} more" if len(waiting) > 3 else ""
        raise _order_pending(
            f"The tie order is being drawn and waits for {names}{more}; reveal your nonce and ask again."
        )
    seed = turn.seed()
    if commitment_to(seed) != state.config.tie_commitment:
        raise Refused(500, "internal", "The controller has lost its part of this collaboration's tie order.")
    members = () if state.drawing is None else state.drawing.members
    revealed = {} if state.drawing is None else state.drawing.revealed
    nonces = [bytes.fromhex(revealed[agent].nonce) for agent in members if agent in revealed]
    skipped = tuple(agent for agent in members if agent not in revealed)
    turn.write(Order, seed=seed.hex(), tie_seed=tie_seed_of(seed, nonces), skipped=skipped)


# --- pulls ----------------------------------------------------------------------------------------------------


def ask(turn: Turn, agent: str, request: str | None, explore_only: bool) -> Answered | None:
    """Hand out the agent's next pull: its open claim, a new claim, or a commit (with `explore_only`, None).

    An agent that would explore sooner than `claim_interval` after its last claim commits instead.
    """
    state, member = _open(turn), _present(turn, agent)
    _check_signature(turn, member, "ask", request=request, explore_only=explore_only)
    if request is not None and request in member.answers:
        answered = member.answers[request]
        if answered.arm < 0:
            raise _reused("report commit pulls or change consent")
        return answered
    lapse(turn)
    if member.claim is not None:
        return Answered(member.claim, state.claims[member.claim].arm, True, state.version)
    _check_number(turn, member)
    if member.used >= state.config.horizon:
        raise conflict("horizon_used", f"All {state.config.horizon:,} pulls of the horizon are used.")
    if not any(state.board.public):
        raise _no_public_arm()
    order(turn)
    tick(turn)
    arm, share = state.decide(agent)
    if share and turn.now < state.next_claim(agent):
        leader = state.target()
        assert leader is not None  # some arm is public
        arm, share = leader, False
    if share:
        claim = turn.write_asked(Claim, agent=agent, arm=arm, request=request)
        return Answered(claim.seq, arm, True, state.version)
    if explore_only:
        return None
    run = Run(state.version, arm, 1)
    commit = turn.write_asked(Commit, agent=agent, runs=(run,), asked=True, request=request)
    return Answered(commit.seq, arm, False, state.version)


def lapse(turn: Turn) -> None:
    """Let every claim lapse that has waited too long."""
    state = turn.state
    if state.closed is None:
        for pull in state.lapsing(turn.now):
            turn.write(Lapse, agent=state.claims[pull].agent, pull=pull)


def tick(turn: Turn) -> None:
    """Let the clock advance, if the rule reads it and it is behind."""
    clock = turn.state.due_tick()
    if clock is not None:
        turn.write(Tick, clock=clock)


class PullRows(NamedTuple):
    """What the ledger has of a pull: the event that handed it out, and the tell that reported it, if they exist."""

    handed: AnyEvent | None
    told: Tell | None


def tell(turn: Turn, agent: str, pull: int, reward: float, rows: PullRows | None = None) -> Tell | None:
    """Broadcast the reward of a claim, even if the claim has lapsed. A repeated report gets the first one's event.

    The state knows only the claims that wait for a report. For any other pull the answer is None: look up its rows
    in the ledger and make the move again with them.
    """
    state = turn.state
    _check_signature(turn, state.members[agent], "tell", pull=pull, reward=reward)
    handed = state.claims.get(pull) or state.late.get(pull)
    if handed is None:
        return None if rows is None else _told(state, agent, rows, reward)
    if handed.agent != agent:
        raise _other_agents()
    _open(turn)
    _check_number(turn, _present(turn, agent))
    return turn.write_asked(Tell, agent=agent, pull=pull, arm=handed.arm, reward=reward, version=state.version + 1)


def _told(state: State, agent: str, rows: PullRows, reward: float) -> Tell:
    """Return the report of a pull that is no longer a claim, or refuse it."""
    handed, told = rows
    if told is not None:
        if told.agent != agent:
            raise _other_agents()
        if told.reward != reward:
            sentence = "This pull was reported with a different reward; the first report counts."
            raise conflict("told_differently", sentence, "reward")
        return told
    if state.closed is not None:
        raise closed()
    if not isinstance(handed, Claim | Commit):
        raise missing("no_such_pull", "There is no such pull; report one that ask returned.", "pull")
    if handed.agent != agent:
        raise _other_agents()
    if isinstance(handed, Commit):
        raise forbidden("commit_pull", "This is a commit pull: its reward is private and is not reported.")
    if state.members[agent].removed:
        raise _was_removed(state.members[agent])
    if state.members[agent].aside:
        sentence = "The operator set your broadcasts aside, which cancelled this pull; do not report it."
        raise forbidden("claim_cancelled", sentence)
    raise forbidden("claim_cancelled", "You withdrew the arm of this pull, which cancelled it; do not report it.")


# --- commit pulls that the client decided ---------------------------------------------------------------------


def commits(turn: Turn, agent: str, request: str, runs: Sequence[Run], unnamed: int = 0) -> Answered:
    """Count commit pulls that the client decided by itself, provided that the board allowed them.

    Of `unnamed` pulls nobody knows the arm: they use the horizon, and that is all that can be checked. Where commits
    earn nothing, all of them are unnamed.
    """
    state, member = _open(turn), _present(turn, agent)
    stated = named_runs(runs, state.config.arms)
    _check_signature(turn, member, "commits", request=request, runs=stated, unnamed=unnamed)
    if request in member.answers:
        answered = member.answers[request]
        if answered.arm >= 0:
            raise _reused("ask for a pull")
        return answered
    _check_number(turn, member)
    if unnamed and state.format < 3:
        sentence = "This collaboration was created by an earlier release: commit pulls must name their arm."
        raise invalid("unnamed", sentence)
    if runs and not state.names_commits:
        sentence = (
            "Commit pulls earn nothing in this collaboration, so only their number is taken: report it as unnamed, "
            "without runs; a client that cannot do this must be upgraded."
        )
        raise invalid("runs", sentence, "unnamed_only")
    lapse(turn)
    if not state.ordered:
        if not any(state.board.public):
            raise _no_public_arm()
        order(turn)
    left = state.config.horizon - member.used
    if sum(run.pulls for run in runs) + unnamed > left:
        sentence = f"These are more pulls than the horizon has left: {left:,} of {state.config.horizon:,}."
        raise conflict("too_many_pulls", sentence, "runs" if runs else "unnamed")
    reported = member.reported
    right: set[int] = set()  # arms that were already checked at this version
    for place, run in enumerate(runs):
        if run.version != reported:
            right.clear()
        if run.arm not in right:
            _check_run(state, member, run, f"runs[{place}]", reported, turn.now)
            right.add(run.arm)
        reported = run.version
    tick(turn)  # not before: a refusal writes nothing
    event = turn.write_asked(Commit, agent=agent, runs=tuple(runs), request=request, unnamed=unnamed or UNSET)
    return Answered(event.seq, -1, False, state.version)


def _check_run(state: State, member: Member, run: Run, field: str, reported: int, now: int) -> None:
    """Refuse commit pulls that the board cannot have told the agent to make."""
    at_version = f"{field}.version"
    if run.version > state.version:
        sentence = f"The board has not reached this version; it is at {state.version}."
        raise conflict("version_ahead", sentence, at_version)
    if run.version < reported:
        sentence = f"Versions must not decrease: you already reported pulls on version {reported}."
        raise conflict("version_fell", sentence, at_version)
    window = state.window(run.version)
    if window is None or (window.until is not None and window.until + state.patience < now):
        sentence = (
            f"This version of the board was superseded more than {state.config.claim_seconds:g} seconds ago; "
            "report commit pulls sooner."
        )
        raise conflict("version_expired", sentence, at_version)
    if state.allowed(member.id, window, run.arm):
        return
    sentence = (
        "At this version the board never told you to commit to this arm: "
        "it was not the leader, or an arm you share was open."
    )
    raise conflict("not_the_leader", sentence, f"{field}.arm")


# --- refusals that several moves have in common ---------------------------------------------------------------


def closed() -> Refused:
    """Return the refusal of a change to a closed collaboration."""
    return conflict("closed", "This collaboration is closed; its board, settlement and ledger can still be read.")


def _open(turn: Turn) -> State:
    """Return the state of a collaboration that is not closed."""
    if turn.state.closed is not None:
        raise closed()
    return turn.state


def _present(turn: Turn, agent: str) -> Member:
    """Return an agent that has not left."""
    member = turn.state.members[agent]
    if member.removed:
        raise _was_removed(member)
    if member.left:
        raise conflict("left", "You left this collaboration; you can join again with a new invite.")
    return member


def _was_removed(member: Member) -> Refused:
    return conflict("removed", f"The operator removed you from this collaboration: {member.removed}")


def check_token(state: State, agent: str, epoch: int) -> None:
    """Check that the token of a request, which has this epoch, is the agent's last one and was not revoked.

    Raises
    ------
    Refused
        The token has ended.
    """
    member = state.members[agent]
    if member.revoked or epoch != member.epoch:
        raise _token_ended()


def _token_ended() -> Refused:
    sentence = "This token has ended: you got a new one, or the operator revoked it; ask the operator for another."
    return Refused(401, "token_ended", sentence)


def _check_signature(turn: Turn, member: Member, kind: str, **contents: object) -> None:
    """Check that the member signed this request, where it did or must."""
    _check_signed(turn.state, member.id, member.key, turn.signed, kind, **contents)


def _check_signed(
    state: State, agent: str, key: str, signed: Signed | None, kind: str, /, **contents: object
) -> None:
    """Check that the agent signed this request with this key, where it did or must."""
    if state.format < 5:
        return
    if signed is None:
        if state.config.signed is True:
            raise _signature_required()
    elif not key:
        raise _wrong_signature("You joined without a key, so your requests cannot be signed.")
    elif not is_signed(key, signed, kind, state.config.collaboration, agent=agent, **contents):
        raise _wrong_signature()


def _check_number(turn: Turn, member: Member) -> None:
    """Check that a signed request is new: its number exceeds those of the member's requests in the ledger."""
    if turn.signed is not None and turn.state.format > 4 and turn.signed.number <= member.number:
        sentence = f"The number of a signed request must exceed that of your last one, {member.number}."
        raise conflict("number_used", sentence)


def _signature_required(
    sentence: str = "Members of this collaboration sign their requests: send the header Partage-Signature.",
) -> Refused:
    return forbidden("signature_required", sentence)


def _wrong_signature(sentence: str = "The signature is not that of this request by your key.") -> Refused:
    return forbidden("wrong_signature", sentence)


def _no_public_arm() -> Refused:
    return conflict("no_public_arm", "No agent shares an arm yet; ask again once one does.")


def _order_pending(sentence: str) -> Refused:
    return conflict("order_pending", sentence)


def _other_agents() -> Refused:
    return forbidden("other_agents_pull", "This pull was handed to another agent.")


def _reused(before: str) -> Refused:
    sentence = f"This request id was used before, to {before}; every request needs its own id."
    return conflict("request_reused", sentence, "request")
