"""Joining, consent, new tokens, leaving."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import UNSET, UnsetType

from partage.ledger.events import Consent, Join, Leave, Rotate
from partage.ledger.fields import MOST_PACE, alike, checked_member_name, not_allowed
from partage.ledger.moves.checks import (
    check_number,
    check_signature,
    check_signed,
    check_terms,
    present,
    reused,
    signature_required,
    still_open,
    token_ended,
    wrong_signature,
)
from partage.ledger.moves.pulls import lapse, name_used_up
from partage.ledger.moves.turn import Turn
from partage.ledger.refusals import conflict, forbidden, invalid
from partage.ledger.signatures import Signed, is_signed, named
from partage.ledger.state import State


class Declared(NamedTuple):
    """What an agent declares as it joins: how many pulls it will make, and how many in an hour."""

    horizon: int | UnsetType = UNSET
    pace: float | UnsetType = UNSET


NOTHING = Declared()


def join(
    turn: Turn,
    name: str,
    shares: Sequence[int],
    invite: str,
    tie_commitment: str | UnsetType = UNSET,
    key: str | UnsetType = UNSET,
    declared: Declared = NOTHING,
    *,
    unique: bool = False,
) -> Join:
    """Let an agent join with an unused invite.

    From format 5 on, it may commit to a nonce for the tie order, and bring a public key, with which it signs. Its
    name must be normal and unique from format 5 on, and with `unique` in any format. From format 6 on, it may declare
    its horizon and its pace.
    """
    state = still_open(turn)
    if invite in state.invites:
        raise forbidden("invite_used", "This invite has already been used; ask the operator for another.")
    if unique or state.format > 4:
        _check_name(state, name)
    if state.format > 4:
        _check_joining(turn, name, shares, tie_commitment, key, declared)
    _check_declared(state, declared)
    name_used_up(turn, turn.now + 1)  # others wait again for such an arm if the agent shares it
    agent = f"a{len(state.members) + 1}"
    return turn.write_asked(
        Join,
        agent=agent,
        name=name,
        shares=tuple(sorted(set(shares))),
        invite=invite,
        tie_commitment=tie_commitment if state.format > 4 else UNSET,
        key=key if state.format > 4 else UNSET,
        **declared._asdict(),
    )


def check_joined(state: State, joined: Join, signed: Signed | None) -> None:
    """Check a repeated `join`: where the first was signed with the agent's key, or must be, this one is too."""
    if state.format > 4 and joined.key is not UNSET:
        declared = Declared(joined.horizon, joined.pace)
        _check_join_signed(state, signed, joined.name, joined.shares, joined.tie_commitment, joined.key, declared)


def _check_name(state: State, name: str) -> None:
    """Refuse a name that is not normal or reserved, or that another member has. Members who left keep theirs."""
    if checked_member_name(name) != name:
        raise not_allowed("name")
    if alike(name) in state.names:
        sentence = "Another member has this name; choose one that differs in more than case."
        raise conflict("name_taken", sentence, "name")


def _check_declared(state: State, declared: Declared) -> None:
    """Check the horizon and the pace that an agent declares: the collaboration's horizon is the most."""
    if declared == NOTHING:
        return
    if state.format < 6:
        sentence = "This collaboration was created by an earlier release, whose terms know no horizon of a member."
        raise conflict("earlier_terms", sentence)
    horizon, pace = declared
    if horizon is not UNSET and not 2 <= horizon <= state.config.horizon:
        sentence = f"Your horizon must be a whole number from 2 to the collaboration's, {state.config.horizon:,}."
        raise invalid("horizon", sentence)
    if pace is not UNSET and not 0 < pace <= MOST_PACE:
        raise not_allowed("pace")


def _check_joining(
    turn: Turn,
    name: str,
    shares: Sequence[int],
    tie_commitment: str | UnsetType,
    key: str | UnsetType,
    declared: Declared,
) -> None:
    """Check the key that an agent brings: it is nobody else's, and where the join is signed, it signed it."""
    state, signed = turn.state, turn.signed
    if key is UNSET:
        if state.config.signed is True:
            sentence = "Members of this collaboration sign their requests: join with a key, as Partage's client does."
            raise forbidden("signature_required", sentence)
        if signed is not None:
            raise wrong_signature("The request is signed, and brings no key.")
        return
    _check_key(state, key)
    _check_join_signed(state, signed, name, shares, tie_commitment, key, declared)


def _check_join_signed(
    state: State,
    signed: Signed | None,
    name: str,
    shares: Sequence[int],
    tie_commitment: str | UnsetType,
    key: str,
    declared: Declared,
) -> None:
    """Check that the key which an agent brings signed its join, where it is signed or must be."""
    if signed is None:
        if state.config.signed is True:
            raise signature_required()
        return
    contents: dict[str, Any] = {
        "name": name,
        "shares": named(shares, state.arms),
        "tie_commitment": tie_commitment or None,
    }
    contents |= {name: value for name, value in declared._asdict().items() if value is not UNSET}
    if not is_signed(key, signed, "join", state.config.collaboration, key=key, **contents):
        raise wrong_signature()


def _check_key(state: State, key: str) -> None:
    if any(member.key == key for member in state.members.values()):
        raise conflict("key_used", "A member of this collaboration has this key; make another one.", "key")


def consent(turn: Turn, agent: str, shares: Sequence[int], request: str | None = None) -> int | None:
    """Let the agent share exactly these arms from now on. A repeated request changes nothing.

    Returns the seq of its event; None if there is none, because nothing changes and the request has no id.
    """
    state = still_open(turn)
    member = present(turn, agent)
    check_signature(turn, member, "consent", request=request, shares=named(shares, state.arms))
    if request is not None and request in member.answers:
        if member.answers[request].arm >= 0:
            raise reused("ask for a pull")
        return member.answers[request].seq
    check_number(turn, member)
    if shares and member.aside:
        sentence = "The operator set your broadcasts aside, so you can share no arm; you can commit and read."
        raise conflict("set_aside", sentence)
    if request is None and member.shares == frozenset(shares):
        return None
    lapse(turn)
    name_used_up(turn, turn.now + 1)  # others wait again for such an arm if the agent shares it
    return turn.write_asked(Consent, agent=agent, shares=tuple(sorted(set(shares))), request=request).seq


def leave(turn: Turn, agent: str) -> None:
    """Let the agent leave; if it has already left, nothing happens."""
    member = turn.state.members[agent]
    if not member.left:
        still_open(turn)
        check_signature(turn, member, "leave")
        check_number(turn, member)
        turn.write_asked(Leave, agent=agent)


def rotate(turn: Turn, agent: str, key: str | UnsetType = UNSET) -> Rotate:
    """Give the agent a new token, which ends the old one, and a new key, if it signs with the old one."""
    state = still_open(turn)
    check_terms(state)
    member = present(turn, agent)
    if key is not UNSET:
        if turn.signed is None:
            raise signature_required("A new key must be signed by the old one: send the header Partage-Signature.")
        _check_key(state, key)
    check_signature(turn, member, "rotate", key=key or None)
    check_number(turn, member)
    return turn.write_asked(Rotate, agent=agent, epoch=member.epoch + 1, key=key)


def check_rotated(state: State, agent: str, key: str | UnsetType, epoch: int | None, signed: Signed | None) -> None:
    """Check a repeated `rotate`: it comes with the token, and the signature, that made the agent's last token."""
    member = state.members[agent]
    if epoch is not None and epoch != member.epoch - 1:
        raise token_ended()
    if key is not UNSET:
        if signed is None:
            raise signature_required()
        if key != member.key:
            sentence = "This request brought another key; use a new id for every request."
            raise conflict("request_reused", sentence, "request")
    check_signed(state, agent, member.earlier_key, signed, "rotate", key=key or None)
