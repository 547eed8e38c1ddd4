"""How many agents does each settlement need to be viable? Every agent is charged its ceiling, the most it may pay.

The profit is then the sum of the ceilings minus the compensations. Where its mean is at least 0, the controller
breaks even by charging every agent the same fraction of its ceiling.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from partage.rules import BalancedETC, BalancedGLR
from partage.rules.rule import Rule
from partage.sharing import Sharing
from partage.simulate.result import Estimate
from partage.studies.paper import on_the_arms
from partage.studies.results import Played, crossing, quotient
from partage.studies.study import Claim, Curve, Line, Mark, Panel, Study, Table

NO_LIMIT = 1e9  # a fee so high that every agent pays its ceiling
FEW = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12)
MANY = (30, 100, 1000, 10_000)
BETWEEN = (2000, 3000, 3500, 4000, 6000)  # around the break-even of the paper's settlement
RUNS = 40  # at most: the ceilings of one run take a tenth of a second or more
GAME = on_the_arms(Sharing.dealt)
ETC, GLR, PAPER = "Balanced-ETC", "Balanced-GLR", "paper, Balanced-ETC"


class Case(NamedTuple):
    """A settlement of a rule, the number of agents with which it should break even, and how it is drawn."""

    settlement: str
    rule_name: str
    rule: Rule
    goal: int
    colour: str
    dashed: bool
    note: str = ""  # why the goal is not reached

    @property
    def name(self) -> str:
        """The line's name."""
        return f"{self.settlement}, {self.rule_name}"

    @property
    def short(self) -> str:
        """A short form of the name."""
        return self.name.removeprefix("equal-share-").replace("Balanced-", "")


SHORT_OF_IT = (
    "Narrowly missed: 7 agents fall short by 42 ± 2 in 2,000 runs, 1 % of the compensations, and 8 have more than "
    "enough. The ceiling is a lower bound on what 2-UCB alone costs; a slightly tighter bound would suffice."
)
CASES = (
    Case("equal-share", ETC, BalancedETC(), 7, "orange", False, SHORT_OF_IT),
    Case("equal-share", GLR, BalancedGLR(), 3, "blue", False),
    Case("equal-share-expected", ETC, BalancedETC(), 5, "orange", True),
    Case("equal-share-expected", GLR, BalancedGLR(), 2, "blue", True),
)


def rationality(played: Played, at: int, name: str) -> Estimate:
    """Return the highest mean incentive regret, divided by 2-UCB alone, if charges just cover the compensations.

    Every agent is then charged the same fraction of its ceiling, so the mean charge is lower by the mean profit
    divided by M.
    """
    result = played.result(at, name)
    worst = result.incentive_regret(result.worst_agent)
    profit = result.controller_profit
    assert profit is not None
    charged = Estimate(worst.mean - profit.mean / result.game.agents, worst.stderr)
    return quotient(charged, played.alone(at, name).overall_regret)


def break_even(places: Sequence[int], profits: Iterable[Estimate], rational: Iterable[Estimate]) -> int | None:
    """Return the fewest agents from which the mean profit is at least 0, and rationality at most 1; None if none.

    Both by two standard errors, there and at every place after it.

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


def measured(played: Played, name: str) -> int | None:
    """Return the number of agents from which a settlement breaks even."""
    places = _few(played)
    profits = [Estimate.of(played.by_run("controller_profit", at, name)) for at in places]
    return break_even(places, profits, [rationality(played, at, name) for at in places])


def viable(played: Played, at: int, name: str) -> float:
    """Return the fraction of runs in which the ceilings cover the compensations."""
    return float(np.mean(played.by_run("controller_profit", at, name) >= 0))


def without_fee(played: Played, at: int, name: str) -> float:
    """Return the mean profit of a controller that charges no fee: 0 in viable runs, the loss in others."""
    return float(np.mean(np.minimum(0, played.by_run("controller_profit", at, name))))


def everywhere(played: Played, name: str) -> int | None:
    """Return the fewest agents from which every run is viable."""
    found = None
    for at in _few(played):
        found = (at if found is None else found) if viable(played, at, name) == 1 else None
    return found


def goals(played: Played) -> Table:
    """The goals and the measured values."""
    rows, paper = [], crossing(played, "controller_profit", PAPER).mean
    for case in CASES:
        found, surely = measured(played, case.name), everywhere(played, case.name)
        profit = Estimate.of(played.by_run("controller_profit", case.goal, case.name))
        most = f"more than {FEW[-1]}"
        reached = "reached" if found is not None and found <= case.goal else "missed"
        rows.append(
            [
                case.name,
                f"{paper:,.0f}",
                f"at most {case.goal}",
                f"{found or most}: {reached}",
                f"{profit.mean:,.0f} ± {profit.stderr or 0:,.0f}",
                f"{viable(played, case.goal, case.name):.0%} of runs",
                f"{without_fee(played, case.goal, case.name):,.0f}",
                str(surely or most),
            ]
        )
    headings = (
        "agents to break even, with IR",
        "paper",
        "goal",
        "measured",
        "margin at goal",
        "viable at goal",
        "profit, no fee",
        "every run from",
    )
    return Table("Goals: how few agents are enough", headings, rows)


def _claims(case: Case) -> tuple[Claim, Claim]:
    agents = f"{case.goal} agents"
    return (
        Claim(
            f"{case.name}: breaks even with {agents}",
            f"ceilings minus compensations, {agents}",
            lambda played: Estimate.of(played.by_run("controller_profit", case.goal, case.name)),
            at_least=0,
            expected=not case.note,
            note=case.note,
        ),
        Claim(
            f"{case.name}: with {agents}, each does better than alone",
            "highest mean incentive regret if charges just cover compensations, as a percentage of 2-UCB alone",
            lambda played: rationality(played, case.goal, case.name),
            at_most=1,
            percent=True,
        ),
    )


def marks(played: Played) -> list[Mark]:
    """Where each settlement becomes viable."""
    paper = crossing(played, "controller_profit", PAPER).mean
    few = []
    for case in CASES:
        found = measured(played, case.name)
        if found is not None:
            few.append(Mark(found, f"{found}: {case.short}", case.colour, on_top=True))
    return [*sorted(few, key=lambda mark: mark.at), Mark(paper, f"{paper:,.0f}: paper's", "ink")]


def title(played: Played) -> str:
    """The finding."""
    paper = crossing(played, "controller_profit", PAPER).mean
    few, fewer = (measured(played, case.name) for case in CASES[:2])
    ours = f"{few or '?'} agents, or {fewer or '?'} with Balanced-GLR"
    return f"Breaking even takes {ours}, not {paper:,.0f}"


def text(played: Played) -> str:
    """What the figure shows."""
    found = {case.name: measured(played, case.name) for case in CASES}
    each = "; ".join(f"{name}: {at or f'more than {FEW[-1]}'}" for name, at in found.items())
    glr = CASES[1]
    return (
        "The curves show what the controller would keep if every agent paid its ceiling, which is a lower bound on "
        "what 2-UCB alone would have cost it. Below 0 the settlement is not viable. Agents needed to break even, "
        f"with no agent worse off than alone: {each}. This is on average: with {glr.goal} agents, equal-share with "
        f"Balanced-GLR pays for itself in {viable(played, glr.goal, glr.name):.0%} of runs, and the controller needs "
        "a fee to make up for the others. Without a fee, the controller keeps nothing where the settlement is "
        "viable: the charges equal the compensations."
    )


def _most_runs(agents: int) -> int:
    return RUNS


STUDY = Study(
    name="frontier-viability",
    question="How many agents does the controller need to break even?",
    values=tuple(sorted(FEW + MANY + BETWEEN)),
    lines=(
        Line(PAPER, BalancedETC(), GAME, "paper", most_runs=_most_runs),
        *(Line(case.name, case.rule, GAME, case.settlement, NO_LIMIT, FEW + MANY, _most_runs) for case in CASES),
    ),
    sharing="Arms are dealt: agent i mod M shares arm i; with more agents than arms, agent m shares arm m mod 10.",
    panels=(
        Panel(
            curves=(
                Curve("controller_profit", "paper's,\nBalanced-ETC", "ink", PAPER),
                *(
                    Curve(
                        "controller_profit",
                        f"{'expected' if case.dashed else 'equal-share'},\n{case.rule_name}",
                        case.colour,
                        case.name,
                        case.dashed,
                    )
                    for case in CASES
                ),
            ),
            shows="ceilings minus compensations",
            log_y=False,
            linear_to=100,
            marks=marks,
        ),
    ),
    title=title,
    text=text,
    claims=tuple(claim for case in CASES for claim in _claims(case)),
    tables=lambda played: (goals(played),),
)
