"""Who sees arms differently, as messages of the API."""

from collections.abc import Callable, Iterable, Sequence

from partage.agreement import Disagreement
from partage.agreement.words import in_words
from partage.ledger import messages


def disagreement_views(
    found: Iterable[Disagreement], name_of: Callable[[str], str], arms: Sequence[str]
) -> list[messages.Disagreement]:
    """Return disagreements with the names of members and arms."""
    return [
        messages.Disagreement(
            arm=arms[one.arm],
            against=None if one.against is None else arms[one.against],
            agents=[str(member) for member in one.members],
            names=[name_of(str(member)) for member in one.members],
            difference=one.difference,
            low=one.low,
            high=one.high,
            evidence=one.evidence,
            text=in_words(one, lambda member: name_of(str(member)), arms),
        )
        for one in found
    ]
