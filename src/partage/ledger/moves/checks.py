"""What several moves check of a request, and the refusals that they have in common."""

from partage.ledger.members import Member
from partage.ledger.moves.turn import Turn
from partage.ledger.refusals import Refused, conflict, forbidden
from partage.ledger.signatures import Signed, is_signed
from partage.ledger.state import State


def closed() -> Refused:
    """Return the refusal of a change to a closed collaboration."""
    return conflict("closed", "This collaboration is closed; its board, settlement and ledger can still be read.")


def still_open(turn: Turn) -> State:
    """Return the state of a collaboration that is not closed."""
    if turn.state.closed is not None:
        raise closed()
    return turn.state


def present(turn: Turn, agent: str) -> Member:
    """Return an agent that has not left."""
    member = turn.state.members[agent]
    if member.removed:
        raise was_removed(member)
    if member.left:
        raise conflict("left", "You left this collaboration; you can join again with a new invite.")
    return member


def was_removed(member: Member) -> Refused:
    """Return the refusal of a request by a member that the operator removed."""
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
        raise token_ended()


def token_ended() -> Refused:
    """Return the refusal of a token that is no longer the agent's."""
    sentence = "This token has ended: you got a new one, or the operator revoked it; ask the operator for another."
    return Refused(401, "token_ended", sentence)


def check_terms(state: State) -> None:
    """Check that the terms of this collaboration let tokens and memberships end."""
    if state.format < 5:
        sentence = (
            "This collaboration was created by an earlier release, whose terms know no end of a token or member."
        )
        raise conflict("earlier_terms", sentence)


def check_signature(turn: Turn, member: Member, kind: str, **contents: object) -> None:
    """Check that the member signed this request, where it did or must."""
    check_signed(turn.state, member.id, member.key, turn.signed, kind, **contents)


def check_signed(state: State, agent: str, key: str, signed: Signed | None, kind: str, /, **contents: object) -> None:
    """Check that the agent signed this request with this key, where it did or must."""
    if state.format < 5:
        return
    if signed is None:
        if state.config.signed is True:
            raise signature_required()
    elif not key:
        raise wrong_signature("You joined without a key, so your requests cannot be signed.")
    elif not is_signed(key, signed, kind, state.config.collaboration, agent=agent, **contents):
        raise wrong_signature()


def check_number(turn: Turn, member: Member) -> None:
    """Check that a signed request is new: its number exceeds those of the member's requests in the ledger."""
    if turn.signed is not None and turn.state.format > 4 and turn.signed.number <= member.number:
        sentence = f"The number of a signed request must exceed that of your last one, {member.number}."
        raise conflict("number_used", sentence)


def signature_required(
    sentence: str = "Members of this collaboration sign their requests: send the header Partage-Signature.",
) -> Refused:
    """Return the refusal of an unsigned request."""
    return forbidden("signature_required", sentence)


def wrong_signature(sentence: str = "The signature is not that of this request by your key.") -> Refused:
    """Return the refusal of a signature."""
    return forbidden("wrong_signature", sentence)


def no_public_arm() -> Refused:
    """Return the refusal of a pull while nobody shares an arm."""
    return conflict("no_public_arm", "No agent shares an arm yet; ask again once one does.")


def reused(before: str) -> Refused:
    """Return the refusal of a request id that an earlier request of another kind had."""
    sentence = f"This request id was used before, to {before}; every request needs its own id."
    return conflict("request_reused", sentence, "request")
