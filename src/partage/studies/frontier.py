"""Beyond the paper: rules side by side on balanced, imbalanced, neighbouring, random and small games.

The places of the axis are the games of `GAMES`, counted from 1. The lines are the rules of `RULES`, without a
settlement and, with fewer runs, with `equal-share`; and Thompson sampling, IMED and KL-UCB alone. Regret is compared
with the best of those alone (2-UCB included), and with one learner that makes all M T pulls itself, which
`bench/centralised.py` measured.
"""

import numpy as np

from partage.simulate.estimate import percent
from partage.simulate.result import Estimate
from partage.studies import centralised
from partage.studies.frontier_bars import (
    Bar,
    alone,
    best_alone,
    held,
    one_learner,
    over_one_learner,
    plus_minus,
    rationality,
    worst_over_best_alone,
)
from partage.studies.frontier_games import (
    ARMS_OF,
    BALANCED,
    BETTING,
    BOTH,
    ETC,
    GAMES,
    GLR,
    NO_PROTOCOL,
    OWN,
    PLACES,
    RULES,
    SETTLED,
    SHARED,
    TWO_UCB_ALONE,
    game,
    limit,
    lines,
)
from partage.studies.frontier_goals import GOALS, goals
from partage.studies.paper import ARMS
from partage.studies.results import Played, quotient
from partage.studies.study import Dots, Panel, Study, Table

__all__ = ["ARMS", "ARMS_OF", "GAMES", "GLR", "NO_PROTOCOL", "PLACES", "RULES", "STUDY", "limit"]

BEST_ALONE, ONE_LEARNER = "best alone", "one learner"

# --- the table ------------------------------------------------------------------------------------------------

HEADINGS = (
    "rule",
    "runs",
    "overall regret",
    "median",
    "× one learner",
    "broadcasts",
    "worst / best alone",
    "worst / 2-UCB",
    "IR unpaid",
    "IR settled",
)


def side_by_side(played: Played) -> Table:
    """Return the table of every game: one learner, learners alone, then every rule."""
    rows = []
    for name, place in PLACES.items():
        bound = limit(place)
        rows.append([name if bound is None else f"{name} (limit {bound:,.0f})"])
        rows += [_centralised_cells(each, place) for each in centralised.on(game(place))]
        rows += [_alone_cells(bar, played, place) for bar in alone(played, place)]
        rows += [_cells(played, place, rule.name) for rule in RULES if (rule.name, place) in played.results]
    return Table("Rules side by side (settled by equal-share; IR against the best alone)", HEADINGS, rows)


def _centralised_cells(each: centralised.Centralised, place: int) -> list[str]:
    """Return the row of one learner. It shares nothing, because it sees everything."""
    multiple = each.regret.mean / one_learner(place).regret.mean
    shown = [f"{each.runs:,}", plus_minus(each.regret), f"{each.median:,.0f}", f"{multiple:.2f}"]
    return [each.name, *shown, "–", "–", "–", "–", "–"]


def _alone_cells(bar: Bar, played: Played, place: int) -> list[str]:
    """Return the row of a learner that every agent plays alone."""
    together, each = bar.times(game(place).agents), bar.regret.mean
    multiple = together.regret.mean / one_learner(place).regret.mean
    weak = next(other.regret.mean for other in alone(played, place) if other.name == TWO_UCB_ALONE)
    ratios = [f"{each / best_alone(played, place).regret.mean:.2f}", f"{each / weak:.2f}"]
    regret = [plus_minus(together.regret), f"{together.median:,.0f}", f"{multiple:,.0f}"]
    return [bar.name, f"{bar.runs:,}", *regret, "0", *ratios, "–", "–"]


def _cells(played: Played, place: int, name: str) -> list[str]:
    """Return the row of one rule on one game."""
    result = played.result(place, name)
    multiple = over_one_learner(played, place, name).mean
    return [
        name,
        f"{result.runs:,}",
        plus_minus(result.overall_regret),
        f"{np.median(played.by_run('overall_regret', place, name)):,.0f}",
        f"{multiple:.2f}" if multiple < 10 else f"{multiple:,.0f}",
        f"{result.broadcasts.mean:,.0f}",
        f"{worst_over_best_alone(played, place, name).mean:.2f}",
        f"{played.against_two_ucb('max_individual_regret', place, name).mean:.2f}",
        held(rationality(played, place, name)),
        _settled(played, place, name),
    ]


def _settled(played: Played, place: int, name: str) -> str:
    if (name + SETTLED, place) not in played.results:
        return "–"
    result = played.result(place, name + SETTLED)
    shares = {"finished": result.finished, "viable": result.viable}
    rest = [f"{word} in {percent(share)}" for word, share in shares.items() if share is not None and share < 1]
    return held(rationality(played, place, name + SETTLED)) + (f" ({', '.join(rest)})" if rest else "")


# --- the figure -----------------------------------------------------------------------------------------------

SHAPES = {"full sharing": "ring", "B = inf": "square", OWN: "ring", BEST_ALONE: "diamond", TWO_UCB_ALONE: "diamond"}
DRAWN = (SHARED, OWN, BETTING, GLR, ETC, "B = inf", NO_PROTOCOL)


def dots(played: Played) -> list[Dots]:
    """Return the regret of the bars and of each rule on each game, as a multiple of what one learner loses."""
    colours = {rule.name: rule.colour for rule in RULES}
    bars = {BEST_ALONE: "ink", TWO_UCB_ALONE: "grey"}
    shown = [
        Dots(label, colour, [_alone_over_one(played, place, label) for place in PLACES.values()], SHAPES[label])
        for label, colour in bars.items()
    ]
    for name in DRAWN:
        at = [
            over_one_learner(played, place, name) if (name, place) in played.results else None
            for place in PLACES.values()
        ]
        shown.append(Dots(name, colours[name], at, SHAPES.get(name, "dot")))
    return shown


def _alone_over_one(played: Played, place: int, label: str) -> Estimate:
    """Return what all agents lose alone, as a multiple of what one learner loses."""
    bars = {bar.name: bar for bar in alone(played, place)} | {BEST_ALONE: best_alone(played, place)}
    return quotient(bars[label].times(game(place).agents).regret, one_learner(place).regret)


def title(played: Played) -> str:
    """The finding."""
    together = played.result(BALANCED, SHARED).overall_regret.mean
    apart = best_alone(played, BALANCED).times(game(BALANCED).agents).regret.mean
    one = one_learner(BALANCED).regret.mean
    return f"100 agents lose {together:,.0f} together and {apart:,.0f} alone at best; one learner loses {one:,.0f}"


def text(played: Played) -> str:
    """What the figure shows."""
    few = PLACES["0.9/0.8/0.7, M = 3, T = 3,000"]
    best, small = best_alone(played, BALANCED), best_alone(played, few)
    shared, safe, etc = (played.result(BALANCED, name) for name in (SHARED, BETTING, ETC))
    three, usual = (played.result(few, name).overall_regret.mean for name in (SHARED, BOTH[0]))
    return (
        f"In the paper's balanced game an agent alone loses {best.regret.mean:,.0f} at best ({best.name}); 2-UCB, "
        f"the paper's bar, loses {alone(played, BALANCED)[-1].regret.mean:,.0f}. Together, 100 agents lose "
        f"{shared.overall_regret.mean:,.0f} with Shared-IMED and share {shared.broadcasts.mean:,.0f} rewards. With a "
        f"1/T certificate, by Balanced-GLR with betting, they lose {safe.overall_regret.mean:,.0f} and share "
        f"{safe.broadcasts.mean:,.0f}; with the paper's Balanced-ETC, {etc.overall_regret.mean:,.0f} and "
        f"{etc.broadcasts.mean:,.0f}. One learner that makes all 10^8 pulls itself and sees every reward loses "
        f"{one_learner(BALANCED).regret.mean:,.0f}; it is no lower bound, and the asymptotic limit of "
        f"{limit(BALANCED):,.0f} does not bind at a finite horizon. In the small game of three agents and 3,000 "
        f"steps, Shared-IMED loses {three:,.1f}, IMED on shared and own rewards {usual:,.1f}, and three agents alone "
        f"{3 * small.regret.mean:,.1f} at best."
    )


STUDY = Study(
    name="frontier",
    question="How much does a group lose, compared with the best that agents can do alone and with one learner that "
    "sees everything?",
    values=tuple(PLACES.values()),
    lines=lines(),
    sharing="Balanced: agent m shares arm m mod 10. Imbalanced: the two best arms have one sharer each, which acts "
    "first. Neighbours-2: two arms each. Random: means and sharing drawn for each run. 0.9/0.8/0.7: agent m shares "
    "arm m mod 3.",
    panels=(
        Panel(
            curves=(),
            shows="overall regret / regret of one learner that makes all pulls itself",
            rows=tuple(PLACES),
            dots=dots,
            dotted="one learner",
        ),
    ),
    title=title,
    text=text,
    claims=tuple(goal.claim for goal in GOALS),
    axis="game",
    tables=lambda played: (goals(played), side_by_side(played)),
)
