"""The paper's random setting (its appendix): means and sharing drawn for each run."""

from dataclasses import replace

from partage.arms import RandomBernoulli
from partage.game import Game
from partage.sharing import Sharing
from partage.studies import balanced
from partage.studies.paper import HORIZON, REGRETS, RULE
from partage.studies.results import Played
from partage.studies.study import Line, Study

ARMS = tuple(RandomBernoulli(0, 1) for _ in range(10))


def game(agents: int) -> Game:
    """Return the random game with this many agents."""
    return Game(ARMS, Sharing.random(agents, len(ARMS)), HORIZON)


def title(played: Played) -> str:
    """The finding."""
    share = played.against_two_ucb("average_regret").mean
    return f"In random games too: each of {played.last:,} agents loses {share:.1%} of 2-UCB's regret"


def text(played: Played) -> str:
    """What the figure shows."""
    few, many = played.result(played.first).average_regret, played.result().average_regret
    overall = played.result().overall_regret
    return (
        f"The average regret falls from {few.mean:,.0f} ± {few.stderr or 0:.0f} with {played.first} agents to "
        f"{many.mean:.1f} ± {many.stderr or 0:.1f} with {played.last:,}. "
        f"The overall regret grows slowly, to {overall.mean:,.0f} ± {overall.stderr or 0:,.0f}: in the few "
        "runs whose two best arms are nearly equal, exploration lasts to the horizon, and more agents explore more."
    )


_, _falls, _vanishes, _, _rational, _ = (replace(claim, source="Appendix I") for claim in balanced.STUDY.claims)

STUDY = Study(
    name="random",
    question="Does it still work if means and sharing are random?",
    values=(10, 30, 100, 300, 1000),
    lines=(Line("balanced-etc", RULE, game),),
    sharing="Each agent shares one random arm, and every arm has a sharer; both are drawn for each run.",
    panels=(REGRETS,),
    title=title,
    text=text,
    claims=(_falls, _vanishes, _rational),
)
