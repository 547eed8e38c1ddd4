"""What nobody can know from the record, in sentences for the board."""

from partage.contrasts import nobody_shares_both, unconnected
from partage.ledger.outstanding import out_view
from partage.ledger.state import State

MOST_NAMED = 10  # arms in one sentence
ENOUGH = 20  # broadcasts before it counts that members told different arms: at first they always do


def notes(state: State) -> list[str]:
    """Return what the members should know about the record; after the close, what was never told."""
    if state.closed is not None:
        out = out_view(state)
        found = ["" if out is None else out.text, _attached(state)]
    else:
        found = [_not_connected(state), _not_compared(state), _attached(state)]
    return [sentence for sentence in found if sentence]


def _attached(state: State) -> str:
    """Say how many rewards are past ones."""
    counts = [(state.arms[arm], count) for arm, count in enumerate(state.attached()) if count]
    if not counts:
        return ""
    some = ", ".join(f"{name} {count:,}" for name, count in counts[:MOST_NAMED])
    more = "" if len(counts) <= MOST_NAMED else f" and more of {len(counts) - MOST_NAMED:,} other arms"
    return f"Past rewards that members attached, for which nobody is paid: {some}{more}."


def _not_connected(state: State) -> str:
    """Say which arms cannot be compared with the others, where the rule compares arms within members."""
    apart = unconnected(state.board.shares.values()) if state.rule.by_contrasts else []
    if not apart:
        return ""
    which = "it" if len(apart) == 1 else "them"
    nobody = nobody_shares_both(apart, state.arms)
    return f"{nobody}: contrasts with {which} are unknown until somebody does."


def _not_compared(state: State) -> str:
    """Say that no test can find out whether members see arms differently."""
    board = state.board
    told = [record.counts for record in board.by_member.values() if any(record.counts)]
    if len(told) < 2 or sum(board.counts) < ENOUGH:
        return ""
    if any(sum(counts[arm] > 0 for counts in told) > 1 for arm in range(board.arms)):
        return ""
    return "No two members have told the same arm, so nothing shows whether they agree."
