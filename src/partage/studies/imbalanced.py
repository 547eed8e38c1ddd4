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
    return f"Unpaid, scarce sharers bear {burden:.1f} times what learning alone costs"


def newcomer(played: Played) -> float:
    """Return what one more agent adds to the overall regret, towards the end of the axis."""
    before, last = played.study.values[-2:]
    more = played.result(last).overall_regret.mean - played.result(before).overall_regret.mean
    return more / (last - before)


def text(played: Played) -> str:
    """What the figure shows."""
    incentive = played.result().max_incentive_regret
    return (
        f"The one sharer of the second-best arm explores it alone and loses "
        f"{played.result().max_individual_regret.mean:,.0f} however many others there are; compensated, the worst "
        f"off loses {incentive.mean if incentive else float('nan'):.2f}. "
        f"The overall regret does grow, by {newcomer(played):.1f} a newcomer: a round of broadcasts waits for the "
        "one sharer, and meanwhile all commit to a leader who may be wrong; the average nears that, not zero."
    )


_flat, _falls, _vanishes, _, _rational, _settled = (
    replace(claim, source="Section 6, Figure 2b") for claim in balanced.STUDY.claims
)

STUDY = Study(
    name="imbalanced",
    question="What if the best arms are the ones that hardly anyone shares?",
    values=AGENTS,
    lines=(Line("balanced-etc", RULE, on_the_arms(Sharing.scarce_best)),),
    sharing="The two best arms have one sharer each, who act first; the other agents share the other arms in turn.",
    panels=(REGRETS,),
    title=title,
    text=text,
    claims=(
        replace(
            _flat,
            expected=False,
            note="It does up to about 100 agents. From there on the commits of everybody within one time step weigh "
            "in, which Theorem 4.1 allows for (its term in M N²) and the paper's sentence does not.",
        ),
        _falls,
        _vanishes,
        Claim(
            "However many agents, the worst off does worse than alone",
            "lowest, over numbers of agents, of the highest individual regret, as a multiple of 2-UCB alone",
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
