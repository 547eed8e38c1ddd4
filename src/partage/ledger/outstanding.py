"""Claims whose rewards are not told, as messages of the API."""

from collections.abc import Sequence
from itertools import islice

from partage.ledger.messages import OpenClaim, Out
from partage.ledger.state import State

NAMED = 3  # claims that a sentence names


def open_claims(state: State, most: int | None = None) -> list[OpenClaim]:
    """Return the claims that are open, the oldest first. All members may read them in the ledger."""
    return [
        OpenClaim(one.agent, state.members[one.agent].name, state.arms[one.arm], one.time)
        for one in islice(state.claims.values(), most)
    ]


def out_view(state: State) -> Out | None:
    """Return the claims that are not told; None if there are none. After the close: those that never were."""
    claims, lapsed = open_claims(state), len(state.late)
    if not claims and not lapsed:
        return None
    paid = "" if state.config.settlement == "none" else ", and are not paid for"
    then = "are still out" if state.closed is None else f"were not told before the close{paid}"
    return Out(claims, lapsed, f"{in_words(claims, len(claims), lapsed)} {then}.")


def in_words(claims: Sequence[OpenClaim], opened: int, lapsed: int = 0) -> str:
    """Return which rewards are out, of so many open and lapsed claims, as the subject of a sentence in the plural.

    >>> in_words([OpenClaim("a1", "Harbour", "SMS", 0), OpenClaim("a2", "Quay", "Letter", 0)], 2, 1)
    'The rewards of Harbour for SMS, of Quay for Letter, and of 1 lapsed claim'
    """
    named = [f"of {one.name} for {one.arm}" for one in claims[:NAMED]]
    more, ended = opened - len(named), f"of {lapsed:,} lapsed claim{'s' * (lapsed != 1)}"
    named += [f"of {more:,} more"] * (more > 0) + [ended] * (lapsed > 0)
    return f"The rewards {', and '.join([', '.join(named[:-1]), named[-1]] if len(named) > 1 else named)}"
