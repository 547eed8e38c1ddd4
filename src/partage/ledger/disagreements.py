"""Who sees arms differently, as messages of the API."""

from collections.abc import Hashable

from partage.agreement.words import in_words
from partage.ledger.messages import Disagreement
from partage.ledger.state import State


def disagreement_views(state: State) -> list[Disagreement]:
    """Return which members see arms differently, by what is on the board."""
    arms = state.arms

    def name(member: Hashable) -> str:
        return state.members[str(member)].name

    return [
        Disagreement(
            arm=arms[one.arm],
            against=None if one.against is None else arms[one.against],
            agents=[str(member) for member in one.members],
            names=[name(member) for member in one.members],
            difference=one.difference,
            low=one.low,
            high=one.high,
            evidence=one.evidence,
            text=in_words(one, name, arms),
        )
        for one in state.disagreements()
    ]
