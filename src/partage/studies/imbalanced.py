"""The paper's imbalanced setting (its Figure 2b): the two best arms have one sharer each."""

from dataclasses import replace

from partage.sharing import Sharing
from partage.studies import balanced
from partage.studies.paper import AGENTS, REGRETS, RULE, on_the_arms
from partage.studies.results import Played, smallest
from partage.studies.study import Claim, Line, Study


def title(played: Played) -> str:
    """The finding."""
    burden = played.against_two_ucb("max_individual_regret").mean
    return f"Without settlement, a scarce sharer loses {burden:.1f} times as much as alone"


def newcomer(played: Played) -> float:
    """Return what one more agent adds to the overall regret, towards the end of the axis."""
    before, last = played.study.values[-2:]
    more = played.result(last).overall_regret.mean - played.result(before).overall_regret.mean
    return more / (last - before)


def text(played: Played) -> str:
    """What the figure shows."""
    incentive = played.result().max_incentive_regret
    return (
        f"The only sharer of the second-best arm explores it alone and loses "
        f"{played.result().max_individual_regret.mean:,.0f}, whatever the number of other agents; after settlement, "
        f"the worst off loses {incentive.mean if incentive else float('nan'):.2f}. "
        f"The overall regret does grow, by {newcomer(played):.1f} per additional agent: each round of broadcasts "
        "waits for the only sharer, and meanwhile all other agents commit to a leader that may be wrong. The average "
        "tends to that amount, not to zero."
    )


_flat, _falls, _vanishes, _, _rational, _settled = (
    replace(claim, source="Section 6, Figure 2b") for claim in balanced.STUDY.claims
)

STUDY = Study(
    name="imbalanced",
    question="What if hardly anyone shares the best arms?",
    values=AGENTS,
    lines=(Line("balanced-etc", RULE, on_the_arms(Sharing.scarce_best)),),
    sharing="Two agents share one of the two best arms each, and act first; the others share the other arms in turn.",
    panels=(REGRETS,),
    title=title,
    text=text,
    claims=(
        replace(
            _flat,
            expected=False,
            note="It holds up to about 100 agents. Beyond, the commits of all agents within one time step matter: "
            "Theorem 4.1 allows for them (its term in M N²), the paper's sentence does not.",
        ),
        _falls,
        _vanishes,
        Claim(
            "With any number of agents, the worst off does worse than alone",
            "highest individual regret, as a multiple of 2-UCB alone: the lowest over all numbers of agents",
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
