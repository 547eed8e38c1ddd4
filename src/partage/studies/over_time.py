"""Regret over time (the paper's appendix): each agent shares two arms."""

import numpy as np

from partage.arms import bernoulli
from partage.game import Game
from partage.sharing import Sharing
from partage.simulate.result import Estimate
from partage.studies.paper import RULE
from partage.studies.results import Played, largest, quotient
from partage.studies.study import TWO_UCB, Claim, Curve, Line, Panel, Study

MEANS = [0.95, 0.85, 0.75, 0.65, 0.55, 0.45, 0.35, 0.25, 0.15, 0.05]
HORIZON = 10**5
STEPS = tuple(int(step) for step in np.unique(np.geomspace(1, HORIZON, 61).round()))


def game(agents: int) -> Game:
    """Return the appendix's game: agent m shares the arms m and m + 1 mod 10."""
    return Game(bernoulli(MEANS), Sharing.neighbours(agents, len(MEANS), 2), HORIZON)


def ratios(played: Played) -> list[Estimate]:
    """Return the average regret up to each checkpoint, divided by that of 2-UCB alone."""
    both = zip(played.over_time("average_regret"), played.over_time(TWO_UCB), strict=True)
    return [quotient(average, alone) for average, alone in both]


def title(played: Played) -> str:
    """The finding."""
    return f"At the horizon, the average regret is {ratios(played)[-1].mean:.0%} of that of 2-UCB alone"


def text(played: Played) -> str:
    """What the figure shows."""
    worst = largest(ratios(played))
    at = STEPS[ratios(played).index(worst)]
    last_step = int(np.max(played.result().folded.eliminated_step))
    return (
        f"{played.last} agents that share two arms each eliminate all arms but one by step {last_step:,} and "
        f"lose {played.result().average_regret.mean:.0f} each, while 2-UCB alone loses "
        f"{played.alone().overall_regret.mean:.0f} by the horizon. "
        f"At first, sharing does not help: at step {at} the average is {worst.mean:.2f} times that of 2-UCB, because "
        "every arm is explored equally often until it can be eliminated."
    )


STUDY = Study(
    name="over-time",
    question="How does regret grow over time when agents share several arms each?",
    values=(20,),
    lines=(Line("balanced-etc", RULE, game),),
    sharing="Agent m shares the two arms m mod 10 and m + 1 mod 10.",
    panels=(
        Panel(
            curves=(
                Curve(TWO_UCB, "2-UCB alone", "ink"),
                Curve("average_regret", "average\nof 20 agents", "blue"),
            ),
            shows="regret up to this step",
            log_y=False,
            over_time=True,
        ),
    ),
    title=title,
    text=text,
    claims=(
        Claim(
            "Average regret is far below that of 2-UCB alone",
            "average regret at the horizon, as a percentage of 2-UCB alone",
            lambda played: ratios(played)[-1],
            at_most=0.5,
            percent=True,
            source="Appendix I",
        ),
        Claim(
            "It is below that of 2-UCB alone at every step from 1,000 on",
            "largest average regret from step 1,000 on, as a percentage of 2-UCB alone at the same step",
            lambda played: largest(each for step, each in zip(STEPS, ratios(played), strict=True) if step >= 1000),
            at_most=1,
            percent=True,
            source="Appendix I",
            note="Before about step 200 it is above; see the figure.",
        ),
    ),
    checkpoints=STEPS,
)
