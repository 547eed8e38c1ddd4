"""The effect of balancing: B = 1, 2, 4 and none, in the imbalanced setting. The paper has no experiment on it."""

import math
from itertools import pairwise

from partage.rules import BalancedETC
from partage.sharing import Sharing
from partage.studies.paper import AGENTS, on_the_arms
from partage.studies.results import Played, ratio, smallest
from partage.studies.study import Claim, Curve, Line, Panel, Study

BALANCES = {"B = 1": 1.0, "B = 2": 2.0, "B = 4": 4.0, "no balancing": math.inf}
TIGHT, NONE = "B = 1", "no balancing"


def excess(played: Played, figure: str) -> float:
    """Return how many times as large a figure is without balancing, with the most agents."""
    return ratio(played.by_run(figure, line=NONE), played.by_run(figure, line=TIGHT)).mean


def title(played: Played) -> str:
    """The finding."""
    return f"Without balancing, {excess(played, 'broadcasts'):.1f} times the exploration for the same answer"


def text(played: Played) -> str:
    """What the figure shows."""
    none, tight = played.result(line=NONE), played.result(line=TIGHT)
    return (
        f"With {played.last:,} agents and no balancing, the many sharers of poor arms keep exploring while "
        f"the good arms wait for their only sharer: {none.broadcasts.mean:,.0f} broadcasts, compared with "
        f"{tight.broadcasts.mean:,.0f} with B = 1. "
        f"The overall regret is {excess(played, 'overall_regret'):.1f} times as high without balancing "
        f"({none.overall_regret.mean:,.0f} compared with {tight.overall_regret.mean:,.0f})."
    )


def _curves(figure: str) -> tuple[Curve, ...]:
    colours = ("blue", "green", "orange", "ink")
    return tuple(Curve(figure, name, colour, name) for name, colour in zip(BALANCES, colours, strict=True))


STUDY = Study(
    name="balance",
    question="What does it cost to explore without keeping broadcasts balanced?",
    values=AGENTS,
    lines=tuple(
        Line(name, BalancedETC(balance), on_the_arms(Sharing.scarce_best)) for name, balance in BALANCES.items()
    ),
    sharing="Two agents share one of the two best arms each, and act first; the others share the other arms in turn.",
    panels=(Panel(_curves("broadcasts"), "broadcasts"), Panel(_curves("overall_regret"), "overall regret")),
    title=title,
    text=text,
    claims=(
        Claim(
            "Without balancing, scarce sharing leads to over-exploration",
            "broadcasts of the most agents without balancing, as a multiple of those with B = 1",
            lambda played: ratio(played.by_run("broadcasts", line=NONE), played.by_run("broadcasts", line=TIGHT)),
            at_least=2,
            source="Section 4.1",
        ),
        Claim(
            "Over-exploration costs regret",
            "overall regret of the most agents without balancing, as a multiple of that with B = 1",
            lambda played: ratio(
                played.by_run("overall_regret", line=NONE), played.by_run("overall_regret", line=TIGHT)
            ),
            at_least=2,
            source="Section 4.1",
        ),
        Claim(
            "The larger B, the more exploration it allows",
            "smallest ratio of broadcasts to those with the next smaller B, with the most agents",
            lambda played: smallest(
                ratio(played.by_run("broadcasts", line=more), played.by_run("broadcasts", line=less))
                for less, more in pairwise(BALANCES)
            ),
            at_least=1,
            source="Section 4.1",
        ),
    ),
)
