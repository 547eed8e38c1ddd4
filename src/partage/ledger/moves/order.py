"""The tie order: draw it, reveal a nonce for it, fix it."""

from partage.ledger.events import Draw, Order, Reveal
from partage.ledger.moves.checks import check_number, check_signature, present, still_open
from partage.ledger.moves.turn import Turn, order_pending
from partage.ledger.refusals import Refused, conflict, invalid
from partage.ledger.ties import commitment_to, tie_seed_of


def draw(turn: Turn) -> Draw:
    """Begin to draw the tie order: the nonces of those who committed and are here now will count."""
    return turn.write(Draw, members=turn.state.committed())


def reveal(turn: Turn, agent: str, nonce: str) -> int:
    """Take a member's nonce for the tie order; return the seq of its row. A repeated reveal changes nothing."""
    state, member = turn.state, turn.state.members[agent]
    drawing = state.drawing
    check_signature(turn, member, "reveal", nonce=nonce)
    if drawing is not None and agent in drawing.revealed and drawing.revealed[agent].nonce == nonce:
        return drawing.revealed[agent].seq
    still_open(turn)
    present(turn, agent)
    if drawing is None and not state.ordered:
        raise conflict("no_draw", "The tie order is not being drawn yet; reveal your nonce once it is.")
    if drawing is None or agent not in drawing.members:
        sentence = "Your nonce does not count: you did not commit to one before the tie order was drawn."
        raise conflict("not_in_draw", sentence)
    if commitment_to(bytes.fromhex(nonce)) != member.tie_commitment:
        raise invalid("nonce", "This is not the nonce that you committed to on joining.", "wrong_nonce")
    if state.ordered:
        raise conflict("order_fixed", "The tie order has been fixed, without your nonce; the ledger names you.")
    check_number(turn, member)
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
        raise order_pending(
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
