"""The controller's profit (Figure 2c of the paper): balanced sharing, up to 10,000 agents."""

import numpy as np

from partage.settle.paper import break_even
from partage.sharing import Sharing
from partage.simulate.result import Estimate
from partage.studies.paper import RULE, on_the_arms
from partage.studies.results import Played, crossing, largest, quotient
from partage.studies.study import Claim, Curve, Line, Mark, Panel, Study


def break_even_measured(played: Played) -> Estimate:
    """Return the number of agents at which the measured profit crosses 0."""
    return crossing(played, "controller_profit")


def bend(played: Played) -> Estimate:
    """Return the largest distance of the profit from the line between its ends, as a fraction of its range."""
    first, last = played.first, played.last
    start, end = played.by_run("controller_profit", first), played.by_run("controller_profit", last)
    range_ = float(np.mean(end) - np.mean(start))

    def off(at: int) -> Estimate:
        straight = start + (end - start) * (at - first) / (last - first)
        mean, stderr = Estimate.of((played.by_run("controller_profit", at) - straight) / range_)
        return Estimate(abs(mean), stderr)

    return largest(off(at) for at in played.study.values)


def marks(played: Played) -> tuple[Mark, ...]:
    """The measured crossing, the closed form and the value in the paper."""
    measured, closed = break_even_measured(played), break_even(RULE.balance)
    return (
        Mark(measured.mean, f"measured: {measured.mean:,.0f} ± {measured.stderr or 0:,.0f}", "blue", measured.stderr),
        Mark(closed, f"closed form: {closed:,.0f}", "ink"),
        Mark(4000, "paper: around 4,000", "grey"),
    )


def title(played: Played) -> str:
    """The finding."""
    return f"The controller breaks even at {break_even_measured(played).mean:,.0f} agents"


def text(played: Played) -> str:
    """What the figure shows."""
    measured, closed = break_even_measured(played), break_even(RULE.balance)
    slope = (played.along("controller_profit")[-1].mean - played.along("controller_profit")[0].mean) / (
        played.last - played.first
    )
    return (
        f"Each agent adds {slope:.2f} to the profit, while the sum of the compensations does not depend on the "
        f"number of agents. So the profit crosses zero at {measured.mean:,.0f} ± {measured.stderr or 0:.0f} agents; "
        "the paper says about 4,000. As long as only explore pulls are compensated, the ratio of charge to "
        f"compensation is fixed, and the crossing is 32 (1 + √B)² / (√2 − √1.5)² = {closed:,.0f} in every run "
        "of any game."
    )


STUDY = Study(
    name="profit",
    question="How many agents does the controller need to break even?",
    values=(10, 1000, 2000, 3000, 4000, 5000, 6000, 8000, 10_000),
    lines=(Line("balanced-etc", RULE, on_the_arms(Sharing.round_robin)),),
    sharing="Agent m shares arm m mod 10, so every arm has the same number of sharers.",
    panels=(
        Panel(
            curves=(Curve("controller_profit", "profit", "blue"),),
            shows="controller's profit",
            log_x=False,
            log_y=False,
            marks=marks,
        ),
    ),
    title=title,
    text=text,
    claims=(
        Claim(
            "Profit is linear in the number of agents",
            "largest distance from the straight line between the ends, as a percentage of the profit's range",
            bend,
            at_most=0.01,
            percent=True,
            source="Section 6, Figure 2c",
        ),
        Claim(
            "Profit crosses zero at around 4,000 agents",
            "number of agents at which the mean profit crosses zero",
            break_even_measured,
            at_least=3500,
            at_most=4500,
            source="Section 6, Figure 2c",
            note="The limits enclose the numbers that round to 4,000.",
        ),
        Claim(
            "Profit crosses zero where the closed form says",
            "measured crossing, divided by the closed form",
            lambda played: quotient(break_even_measured(played), Estimate(break_even(RULE.balance), 0.0)),
            at_least=0.98,
            at_most=1.02,
        ),
    ),
)
