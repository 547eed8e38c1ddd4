"""The operator's moves."""

from collections.abc import Mapping

from partage.ledger.events import FORMAT, AddArm, Close, Create, Remove, Revoke, Rotate, SetAside
from partage.ledger.fields import alike, checked_name, not_allowed
from partage.ledger.members import Member
from partage.ledger.moves.checks import check_terms, still_open
from partage.ledger.moves.pulls import lapse
from partage.ledger.moves.turn import Turn
from partage.ledger.refusals import conflict, missing
from partage.ledger.state import State


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
    state = still_open(turn)
    if state.format < 4:
        sentence = "This collaboration was created by an earlier release, whose terms know no set-aside."
        raise conflict("set_aside", sentence)
    if _member(state, agent).aside:
        raise conflict("set_aside", "The broadcasts of this agent have already been set aside; the reason stays.")
    lapse(turn)
    return turn.write(SetAside, agent=agent, reason=reason, version=state.version + 1, active=())


def add_arm(turn: Turn, name: str) -> None:
    """Add an arm, up to the number that was declared at creation; one that is there already is not added again."""
    state = still_open(turn)
    if name in state.numbers:
        return
    if checked_name("name", name) != name:
        raise not_allowed("name")
    if alike(name) in {alike(one) for one in state.arms}:
        raise conflict("arm_taken", "Another arm has this name, up to case; choose another.", "name")
    if len(state.arms) == state.board.arms:
        sentence = f"This collaboration may have {state.board.arms:,} arms, as was declared when it was created."
        raise conflict("no_more_arms", sentence)
    turn.write(AddArm, name=name)


def remove(turn: Turn, agent: str, reason: str) -> Remove:
    """End a membership, for a reason that all members read. Its broadcasts and its row of the settlement stay."""
    state = still_open(turn)
    member = _known(state, agent)
    if member.removed:
        raise conflict("removed", "This agent has already been removed; the reason stays.")
    lapse(turn)
    return turn.write(Remove, agent=agent, reason=reason)


def revoke(turn: Turn, agent: str) -> None:
    """End an agent's token; if it has none any more, nothing happens."""
    if not _known(still_open(turn), agent).revoked:
        turn.write(Revoke, agent=agent)


def renew(turn: Turn, agent: str) -> Rotate:
    """Give an agent a new token, which ends the old one. The operator cannot change its key."""
    return turn.write(Rotate, agent=agent, epoch=_known(still_open(turn), agent).epoch + 1)


def _known(state: State, agent: str) -> Member:
    """Return an agent of a collaboration whose terms know tokens that end."""
    check_terms(state)
    return _member(state, agent)


def _member(state: State, agent: str) -> Member:
    if agent not in state.members:
        raise missing("no_such_agent", "There is no such agent in this collaboration; agents lists them.", "agent")
    return state.members[agent]
