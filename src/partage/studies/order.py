"""The order in which agents act, which the paper does not specify: in turn, shuffled, or arm by arm."""

import numpy as np

from partage.game import Game
from partage.sharing import Sharing
from partage.studies.paper import ARMS, HORIZON, RULE, on_the_arms
from partage.studies.results import Played, largest, ratio
from partage.studies.study import Claim, Curve, Line, Panel, Study

IN_TURN, SHUFFLED, ARM_BY_ARM = "in turn", "shuffled", "arm by arm"


def shuffled(agents: int) -> Game:
    """Return the balanced game with the order of agents shuffled for each run."""
    return Game(ARMS, Sharing.round_robin(agents, len(ARMS)).in_shuffled_order(), HORIZON)


def arm_by_arm(agents: int) -> Game:
    """Return the balanced game in which the sharers of one arm act next to each other."""
    return Game(ARMS, Sharing.one_each(np.arange(agents) * len(ARMS) // agents, len(ARMS)), HORIZON)


def title(played: Played) -> str:
    """The finding."""
    excess = ratio(played.by_run("overall_regret", line=ARM_BY_ARM), played.by_run("overall_regret", line=IN_TURN))
    return f"Order matters: if the sharers of an arm act in a row, regret is {excess.mean:.0f} times as high"


def text(played: Played) -> str:
    """What the figure shows."""
    row, turn = played.result(line=ARM_BY_ARM), played.result(line=IN_TURN)
    return (
        "If the sharers of one arm all act before those of the next, a time step completes only about one round of "
        "broadcasts, and meanwhile everyone commits to a wrong leader: the overall regret of "
        f"{played.last:,} agents is {row.overall_regret.mean:,.0f} ± {row.overall_regret.stderr or 0:,.0f}. "
        f"In turn it is {turn.overall_regret.mean:,.0f}, and an order shuffled in each run does as well "
        f"({played.result(line=SHUFFLED).overall_regret.mean:,.0f})."
    )


STUDY = Study(
    name="order",
    question="Does the order in which agents act matter?",
    values=(10, 30, 100, 300, 1000, 3000, 10_000),
    lines=(
        Line(IN_TURN, RULE, on_the_arms(Sharing.round_robin)),
        Line(SHUFFLED, RULE, shuffled),
        Line(ARM_BY_ARM, RULE, arm_by_arm),
    ),
    sharing="Every agent shares one arm, and every arm has equally many sharers. They act in turn, in an order "
    "shuffled in each run, or arm by arm.",
    panels=(
        Panel(
            curves=(
                Curve("overall_regret", ARM_BY_ARM, "orange", ARM_BY_ARM),
                Curve("overall_regret", SHUFFLED, "green", SHUFFLED),
                Curve("overall_regret", IN_TURN, "blue", IN_TURN),
            ),
            shows="overall regret",
        ),
    ),
    title=title,
    text=text,
    claims=(
        Claim(
            "A shuffled order does as well as acting in turn",
            "largest overall regret shuffled, as a multiple of that in turn",
            lambda played: largest(
                ratio(
                    played.by_run("overall_regret", at, SHUFFLED),
                    played.by_run("overall_regret", at, IN_TURN),
                )
                for at in played.study.values
            ),
            at_most=1.1,
        ),
        Claim(
            "Sharers that act in a row multiply the overall regret",
            "overall regret of the most agents arm by arm, as a multiple of that in turn",
            lambda played: ratio(
                played.by_run("overall_regret", line=ARM_BY_ARM), played.by_run("overall_regret", line=IN_TURN)
            ),
            at_least=3,
        ),
    ),
)
