"""With how many agents is each settlement viable? Every agent is charged its ceiling: the most that it may pay.

The profit is then the ceilings less the compensations: the margin. If its mean is at least 0, the controller breaks
even by charging every agent the same fraction of its ceiling. Whether nobody does worse than alone is judged at that
charge, against the learner that loses least alone, and against 2-UCB, the paper's bar.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from partage.rules import BalancedETC, BalancedGLR, SharedIMED
from partage.rules.rule import Rule
from partage.sharing import Sharing
from partage.simulate.estimate import percent
from partage.simulate.result import Estimate
from partage.studies.frontier_bars import plus_minus
from partage.studies.frontier_games import STRONG
from partage.studies.paper import on_the_arms
from partage.studies.results import Played, crossing, quotient
from partage.studies.study import Claim, Curve, Line, Mark, Panel, Study, Table

NO_LIMIT = 1e9  # a fee so high that every agent pays its ceiling
NO_FEE = ", no fee"  # the same line as it is charged
FEW = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12)
MANY = (30, 100, 1000)
BETWEEN = (2000, 3000, 3500, 4000, 6000, 10_000)  # where the paper's settlement becomes viable
RUNS = 2000  # at most
ALONE_RUNS = {"Thompson alone": 400, "IMED alone": 40, "KL-UCB alone": 40}  # the least costly is compared with
GAME = on_the_arms(Sharing.dealt)
ETC, SHARED, PAPER = "Balanced-ETC", "Shared-IMED", "paper, Balanced-ETC"
SAFE = "Balanced-GLR (betting, lead 10)"
BARS = {"best": "the best alone", "two-ucb": "2-UCB alone"}


class Case(NamedTuple):
    """A settlement with a rule, the learner alone that limits its charges, and how many agents it is shown for."""

    settlement: str
    rule_name: str
    rule: Rule
    alone: str
    at: int
    colour: str = ""  # of its curve; none is drawn without
    goal: bool = False  # whether `at` agents should be enough

    @property
    def name(self) -> str:
        """The line's name."""
        return f"{self.settlement}, {self.rule_name}, at most {BARS[self.alone]}"

    @property
    def expected(self) -> bool:
        """Whether agents are covered on average only."""
        return self.settlement == "equal-share-expected"

    @property
    def short(self) -> str:
        """A short form of the name, for labels."""
        rule = {SHARED: "Shared-IMED", SAFE: "GLR", ETC: "ETC"}[self.rule_name]
        return f"{'expected' if self.expected else 'equal-share'}, {rule}"


CASES = (
    Case("equal-share-expected", SHARED, SharedIMED(), "best", 2, "green", goal=True),
    Case("equal-share", SAFE, BalancedGLR(evidence="betting", lead=10), "two-ucb", 3, "purple", goal=True),
    Case("equal-share-expected", SAFE, BalancedGLR(evidence="betting", lead=10), "best", 2),
    Case("equal-share-expected", ETC, BalancedETC(), "two-ucb", 2, "orange"),
    Case("equal-share", SAFE, BalancedGLR(evidence="betting", lead=10), "best", 3),
    Case("equal-share", SHARED, SharedIMED(), "best", 3),
    Case("equal-share", ETC, BalancedETC(), "two-ucb", 3, "orange"),
)
GOALS = tuple(case for case in CASES if case.goal)

# --- what is measured -----------------------------------------------------------------------------------------


def best_alone(played: Played) -> tuple[str, Estimate]:
    """Return the learner that loses least alone, and its regret."""
    regrets = {name: played.result(FEW[0], name).overall_regret for name in STRONG}
    regrets["2-UCB alone"] = two_ucb(played)
    return min(regrets.items(), key=lambda each: each[1].mean)


def two_ucb(played: Played) -> Estimate:
    """Return the regret of 2-UCB alone."""
    return played.alone(FEW[0], "Thompson alone").overall_regret


def margin(played: Played, at: int, name: str) -> Estimate:
    """Return the ceilings less the compensations."""
    return Estimate.of(played.by_run("controller_profit", at, name))


def worst(played: Played, at: int, name: str) -> Estimate:
    """Return the highest mean incentive regret of an agent, if charges just cover the compensations.

    Every agent is then charged the same fraction of its ceiling, so the mean charge falls by the mean profit over M.
    Ceilings vary more than compensations do, so the line without a fee, if it is played, gives a closer estimate.
    """
    name = name + NO_FEE if (name + NO_FEE, at) in played.results else name
    result = played.result(at, name)
    paid, profit = result.incentive_regret(result.worst_agent), margin(played, at, name)
    mean = paid.mean - profit.mean / result.game.agents
    if paid.stderr is None or profit.stderr is None:
        return Estimate(mean, None)
    return Estimate(mean, float(np.hypot(paid.stderr, profit.stderr / result.game.agents)))


def break_even(places: Sequence[int], profits: Iterable[Estimate], rational: Iterable[Estimate]) -> int | None:
    """Return the fewest agents from which on the mean profit is at least 0 and rationality at most 1; None if none.

    Both must hold by two standard errors, at this place and every later one.

    >>> break_even([2, 3, 4], [Estimate(-5, 1), Estimate(1, 1), Estimate(9, 1)], 3 * [Estimate(0.5, 0.1)])
    4
    """
    found = None
    for place, profit, worst in zip(places, profits, rational, strict=True):
        good = profit.mean >= 2 * (profit.stderr or 0) and worst.mean + 2 * (worst.stderr or 0) <= 1
        found = (place if found is None else found) if good else None
    return found


def _few(played: Played) -> list[int]:
    return [place for place in played.study.values if place <= FEW[-1]]


def measured(played: Played, name: str, bar: Estimate) -> int | None:
    """Return the number of agents from which on a settlement breaks even and no agent is above a bar."""
    places = _few(played)
    profits = [margin(played, at, name) for at in places]
    return break_even(places, profits, [quotient(worst(played, at, name), bar) for at in places])


def viable(played: Played, at: int, name: str) -> float:
    """Return the fraction of runs in which the ceilings cover the compensations."""
    return float(np.mean(played.by_run("controller_profit", at, name) >= 0))


# --- the table and the claims ---------------------------------------------------------------------------------


def goals(played: Played) -> Table:
    """Return the table of goals and measurements."""
    (learner, best), weak = best_alone(played), two_ucb(played)
    rows, most = [], f"more than {FEW[-1]}"
    for case in CASES:
        at, name = case.at, case.name
        finished = played.result(at, name).finished
        rows.append(
            [
                f"{case.settlement}, {case.rule_name}",
                BARS[case.alone],
                f"{at}: {'reached' if _reached(played, case) else 'missed'}" if case.goal else "–",
                str(measured(played, name, best) or most),
                str(measured(played, name, weak) or most),
                f"{at}",
                plus_minus(margin(played, at, name)),
                plus_minus(worst(played, at, name)),
                percent(viable(played, at, name)),
                percent(finished or 0.0),
            ]
        )
    headings = (
        "settlement, rule",
        "charges at most",
        "goal",
        f"enough: nobody above the best alone ({learner.removesuffix(' alone')}, {plus_minus(best)})",
        f"nobody above 2-UCB ({plus_minus(weak)})",
        "shown for agents",
        "margin",
        "worst agent at break-even",
        "viable runs",
        "finished runs",
    )
    return Table("How few agents are enough", headings, rows)


def _reached(played: Played, case: Case) -> bool:
    found = measured(played, case.name, best_alone(played)[1])
    return found is not None and found <= case.at


def _claims(case: Case) -> tuple[Claim, Claim]:
    agents = f"{case.at} agents"
    return (
        Claim(
            f"{case.short}: {agents} break even",
            f"ceilings ({BARS[case.alone]}) less compensations, {agents}",
            lambda played: margin(played, case.at, case.name),
            at_least=0,
        ),
        Claim(
            f"{case.short}: {agents} all do better than the best alone",
            "highest mean incentive regret, if charges just cover compensations, as a fraction of the best alone",
            lambda played: quotient(worst(played, case.at, case.name), best_alone(played)[1]),
            at_most=1,
            percent=True,
        ),
    )


# --- the figure -----------------------------------------------------------------------------------------------


def marks(played: Played) -> list[Mark]:
    """Return marks from where on each settlement with a goal is enough."""
    paper = crossing(played, "controller_profit", PAPER).mean
    few = []
    for case in GOALS:
        found = measured(played, case.name, best_alone(played)[1])
        if found is not None:
            few.append(Mark(found, f"{found}: {case.short}", case.colour, on_top=True))
    return [*sorted(few, key=lambda mark: mark.at), Mark(paper, f"{paper:,.0f}: paper's", "ink")]


def title(played: Played) -> str:
    """The finding."""
    paper = crossing(played, "controller_profit", PAPER).mean
    on_average, surely = (measured(played, case.name, best_alone(played)[1]) or "?" for case in GOALS)
    ours = f"{on_average} agents break even and beat the best alone, {surely} if all are covered at 99 %"
    return f"{ours}; the paper's settlement takes {paper:,.0f}"


def text(played: Played) -> str:
    """What the figure shows."""
    (learner, best), (mean, sure) = best_alone(played), GOALS
    at_mean, at_sure = (worst(played, case.at, case.name).mean for case in GOALS)
    strict = next(case for case in CASES if case[:2] == sure[:2] and case.alone == "best")
    return (
        "The curves show what the controller would keep if every agent paid its ceiling, a lower bound on what a "
        "learner alone costs: the best alone for Shared-IMED, 2-UCB for the others. Below 0 the settlement is not "
        "viable. If charges just cover the compensations, the "
        f"worst of {mean.at} agents loses {at_mean:,.1f} with Shared-IMED and equal-share-expected, and the worst of "
        f"{sure.at} loses {at_sure:,.1f} with Balanced-GLR and equal-share; alone an agent loses {best.mean:,.1f} at "
        f"best ({learner.removesuffix(' alone')}) and {two_ucb(played).mean:,.0f} with 2-UCB. equal-share guarantees "
        f"that with {sure.at} agents against 2-UCB only: against the best alone its ceilings fall short of the "
        f"compensations by {-margin(played, strict.at, strict.name).mean:,.0f}."
    )


def _lines(case: Case) -> list[Line]:
    places = FEW + MANY if case.colour else FEW
    line = Line(case.name, case.rule, GAME, case.settlement, NO_LIMIT, places, lambda at: RUNS, alone=case.alone)
    free = replace(line, name=case.name + NO_FEE, fee=0.0, places=FEW)
    return [line, free] if case.goal else [line]


def _alone(name: str, rule: Rule) -> Line:
    most = ALONE_RUNS[name]
    return Line(name, rule, lambda at: GAME(at).alone(), "none", places=FEW[:1], most_runs=lambda at: most)


STUDY = Study(
    name="frontier-viability",
    question="With how many agents does the controller break even, and nobody lose more than alone?",
    values=tuple(sorted(FEW + MANY + BETWEEN)),
    lines=(
        Line(PAPER, BalancedETC(), GAME, "paper", most_runs=lambda at: RUNS),
        *(line for case in CASES for line in _lines(case)),
        *(_alone(name, rule) for name, rule in STRONG.items()),
    ),
    sharing="Arms are dealt out: arm i to agent i mod M. With more agents than arms, agent m shares arm m mod 10.",
    panels=(
        Panel(
            curves=(
                Curve("controller_profit", "paper's,\nBalanced-ETC", "ink", PAPER),
                *(
                    Curve("controller_profit", case.short.replace(", ", ",\n"), case.colour, case.name, case.expected)
                    for case in CASES
                    if case.colour
                ),
            ),
            shows="ceilings less compensations",
            log_y=False,
            linear_to=100,
            marks=marks,
        ),
    ),
    title=title,
    text=text,
    claims=tuple(claim for case in GOALS for claim in _claims(case)),
    tables=lambda played: (goals(played),),
)
