"""The paper's imbalanced setting (Figure 2b): the two best arms have one sharer each."""

from dataclasses import replace

from partage.sharing import Sharing
from partage.studies import balanced
from partage.studies.paper import AGENTS, REGRETS, RULE, on_the_arms
from partage.studies.results import Played, smallest
from partage.studies.study import Claim, Line, Study


def title(played: Played) -> str:
    """The finding."""
    burden = played.against_two_ucb("max_individual_regret").mean
    return f"Without compensation, scarce sharers lose {burden:.1f} times as much as alone"


def newcomer(played: Played) -> float:
    """Return what one additional agent adds to the overall regret, at the end of the axis."""
    before, last = played.study.values[-2:]
    more = played.result(last).overall_regret.mean - played.result(before).overall_regret.mean
    return more / (last - before)


def text(played: Played) -> str:
    """What the figure shows."""
    incentive = played.result().max_incentive_regret
    return (
        f"The only sharer of the second-best arm explores it alone and loses "
        f"{played.result().max_individual_regret.mean:,.0f}, whatever the number of other agents. After settlement, "
        f"the worst-off agent loses {incentive.mean if incentive else float('nan'):.2f}. "
        f"The overall regret grows by {newcomer(played):.1f} per additional agent: each round of broadcasts waits "
        "for the only sharer, and meanwhile all other agents commit to a leader that may be wrong. The average "
        "regret approaches this value, not zero."
    )


_flat, _falls, _vanishes, _, _rational, _settled = (
    replace(claim, source="Section 6, Figure 2b") for claim in balanced.STUDY.claims
)

STUDY = Study(
    name="imbalanced",
    question="What if hardly anyone shares the best arms?",
    values=AGENTS,
    lines=(Line("balanced-etc", RULE, on_the_arms(Sharing.scarce_best)),),
    sharing="The two best arms have one sharer each; these act first. The other agents share the other arms in turn.",
    panels=(REGRETS,),
    title=title,
    text=text,
    claims=(
        replace(
            _flat,
            expected=False,
            note="The claim holds up to about 100 agents. Beyond that, the commits of all agents within one time "
            "step add up, which Theorem 4.1 allows (its term in M N²) and the paper's sentence does not mention.",
        ),
        _falls,
        _vanishes,
        Claim(
            "For any number of agents, the worst-off agent does worse than alone",
            "highest individual regret, divided by 2-UCB alone; lowest value over the numbers of agents",
            lambda played: smallest(
                played.against_two_ucb("max_individual_regret", at) for at in played.study.values
            ),
            at_least=1,
            source="Section 6, Figure 2b",
        ),
        _rational,
        _settled,
    ),
)
