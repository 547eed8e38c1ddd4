"""Past rewards: what members saw before their first pull here."""

from collections.abc import Sequence

from partage.ledger.events import Attach
from partage.ledger.members import Attached
from partage.ledger.moves.checks import check_number, check_signature, present, reused, still_open
from partage.ledger.moves.order import order
from partage.ledger.moves.turn import Turn
from partage.ledger.refusals import conflict, forbidden, invalid
from partage.ledger.state import digest_of


def attach(turn: Turn, agent: str, arm: int, rewards: Sequence[float], request: str | None = None) -> Attached:
    """Add the agent's past rewards of an arm to the record, once and before its first pull.

    Rules break ties by the tie order, so it is fixed first, as by the first ask. A repeated request changes nothing.
    Without an id, a repetition is refused.
    """
    state, member = still_open(turn), present(turn, agent)
    contents = {"request": request, "arm": state.arms[arm], "rewards": list(rewards)}
    check_signature(turn, member, "attach", **contents)
    before = member.attached.get(arm)
    if before is not None and request is not None and before.request == request:
        if before.digest != digest_of(rewards):
            raise reused("attach other rewards")
        return before
    others = {one.request for one in member.attached.values()}
    if request is not None and (request in member.answers or request in others):
        raise reused("ask for something else")
    check_number(turn, member)
    if not state.histories:
        sentence = "This collaboration takes no past rewards: that is declared when it is created (histories)."
        raise conflict("no_histories", sentence)
    if before is not None:
        sentence = f"You have attached {before.rewards:,} past rewards of this arm; that is done once for each arm."
        raise conflict("history_attached", sentence, "arm")
    if member.aside:
        raise conflict("set_aside", "The operator set your broadcasts aside, so you can attach nothing.")
    if arm not in member.shares:
        raise forbidden("not_shared", "You do not share this arm; share it first to attach past rewards of it.")
    if member.used:
        sentence = "You have pulled here; past rewards are attached before the first pull."
        raise conflict("has_pulled", sentence)
    if len(rewards) > state.histories:
        sentence = f"This collaboration takes at most {state.histories:,} past rewards of each arm from each member."
        raise invalid("rewards", sentence)
    order(turn)
    turn.write_asked(Attach, agent=agent, arm=arm, rewards=tuple(rewards), version=state.version + 1, request=request)
    return member.attached[arm]
