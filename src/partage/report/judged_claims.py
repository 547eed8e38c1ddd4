"""The claims of studies, judged by what was measured."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from partage.simulate.result import Estimate
from partage.studies import FAILS, HOLDS, UNDECIDED, Claim, Played


class JudgedClaim(NamedTuple):
    """A claim of a study, the measured value and the verdict."""

    study: str
    claim: Claim
    measured: Estimate
    verdict: str

    @property
    def surprising(self) -> bool:
        """Whether the verdict contradicts the one found at full size when the study was written."""
        return self.verdict == (FAILS if self.claim.expected else HOLDS)

    def as_dict(self) -> dict[str, Any]:
        """Return the claim for JSON."""
        limits = {"at_least": self.claim.at_least, "at_most": self.claim.at_most}
        return {
            "study": self.study,
            "claim": self.claim.says,
            "source": self.claim.source,
            "measures": self.claim.measures,
            "measured": {
                "mean": None if self.measured.mean != self.measured.mean else self.measured.mean,
                "stderr": self.measured.stderr,
            },
            **{name: None if abs(limit) == float("inf") else limit for name, limit in limits.items()},
            "verdict": self.verdict,
            "expected": HOLDS if self.claim.expected else FAILS,
            "note": self.claim.note,
        }


def judge_claims(studies: Sequence[Played]) -> list[JudgedClaim]:
    """Judge every claim of every study."""
    judged = []
    for played in studies:
        for claim in played.study.claims:
            measured = claim.measure(played)
            judged.append(JudgedClaim(played.study.name, claim, measured, claim.verdict(measured)))
    return judged


def by_study(judged: Sequence[JudgedClaim]) -> list[tuple[str, list[JudgedClaim]]]:
    """Return the claims grouped by study, in their order."""
    return [(study, list(group)) for study, group in groupby(judged, key=lambda each: each.study)]


def summary(judged: Sequence[JudgedClaim]) -> str:
    """Count the verdicts in one sentence.

    >>> summary([])
    'There are no claims.'
    """
    if not judged:
        return "There are no claims."
    counts = {verdict: sum(each.verdict == verdict for each in judged) for verdict in (HOLDS, FAILS, UNDECIDED)}
    parts = [f"{counts[HOLDS]} of {len(judged)} claims hold"]
    if counts[FAILS]:
        parts.append(f"{counts[FAILS]} {'does' if counts[FAILS] == 1 else 'do'} not")
    if counts[UNDECIDED]:
        parts.append(f"{counts[UNDECIDED]} {'is' if counts[UNDECIDED] == 1 else 'are'} undecided")
    return f"{', '.join(parts)}."
