"""The paper's balanced setting (Figure 2a): every arm has the same number of sharers."""

from partage.sharing import Sharing
from partage.studies.paper import AGENTS, REGRETS, RULE, on_the_arms
from partage.studies.results import Played, largest
from partage.studies.study import Claim, Line, Study

WHERE = "Section 6, Figure 2a"


def title(played: Played) -> str:
    """The finding."""
    growth = played.growth("overall_regret").mean
    return f"{played.last // played.first} times the agents, {growth:.2f} times the overall regret"


def text(played: Played) -> str:
    """What the figure shows."""
    few, many = played.result(played.first), played.result(played.last)
    return (
        f"All agents together lose {many.overall_regret.mean:,.0f}, whatever their number. Each of "
        f"{played.last:,} agents therefore loses {many.average_regret.mean:.1f}, while 2-UCB alone loses "
        f"{played.alone().overall_regret.mean:,.0f}. "
        f"With {played.first} agents, the worst-off agent loses {few.max_individual_regret.mean:,.0f}, more than it "
        "would alone, but after settlement only "
        f"{few.max_incentive_regret.mean if few.max_incentive_regret else float('nan'):.2f}."
    )


STUDY = Study(
    name="balanced",
    question="Does learning together cost each agent less as more agents join?",
    values=AGENTS,
    lines=(Line("balanced-etc", RULE, on_the_arms(Sharing.round_robin)),),
    sharing="Agent m shares arm m mod 10, so every arm has the same number of sharers.",
    panels=(REGRETS,),
    title=title,
    text=text,
    claims=(
        Claim(
            "Overall regret hardly grows with the number of agents",
            "overall regret with the most agents, divided by that with the fewest",
            lambda played: played.growth("overall_regret"),
            at_most=1.1,
            source=WHERE,
        ),
        Claim(
            "Average regret keeps falling as agents join",
            "largest ratio of the average regret to that at the previous number of agents",
            lambda played: played.largest_step("average_regret"),
            at_most=1,
            source=WHERE,
        ),
        Claim(
            "Average regret tends to zero",
            "average regret with the most agents, as a percentage of 2-UCB alone",
            lambda played: played.against_two_ucb("average_regret"),
            at_most=0.05,
            percent=True,
            source=WHERE,
        ),
        Claim(
            "With few agents, the worst-off agent does worse than alone",
            "highest individual regret with the fewest agents, divided by 2-UCB alone",
            lambda played: played.against_two_ucb("max_individual_regret", played.first),
            at_least=1,
            source=WHERE,
        ),
        Claim(
            "After settlement, no agent does worse than alone",
            "highest mean incentive regret of any agent, as a percentage of 2-UCB alone",
            lambda played: largest(played.rationality(at) for at in played.study.values),
            at_most=1,
            percent=True,
            source=WHERE,
        ),
        Claim(
            "After settlement, even the worst-off agent loses almost nothing",
            "highest incentive regret for any number of agents, as a percentage of 2-UCB alone",
            lambda played: largest(played.against_two_ucb("max_incentive_regret", at) for at in played.study.values),
            at_most=0.01,
            percent=True,
            source=WHERE,
        ),
    ),
)
