"""Members who differ by a constant each: what `network-glr` saves, and what it costs where they do not differ.

Two members share two arms. One has an offset above the means, the other the same offset below. The places of the axis
are offsets in thousandths; equal members have trials of their own.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partage.arms import bernoulli
from partage.game import Game
from partage.rules import BalancedGLR, NetworkGLR, SharedIMED
from partage.rules.rule import Rule
from partage.sharing import Sharing
from partage.simulate.chunk import play_run
from partage.simulate.result import Estimate
from partage.simulate.trial import Trial
from partage.studies.results import Played, ratio
from partage.studies.smoking import contrasts_to_no_contact
from partage.studies.study import Claim, Panel, Path, Point, Study, Table
from partage.traits import Traits

MEANS = (0.6, 0.58)
MEMBERS = 2
HORIZON = 10**5
OFFSETS = (20, 50, 100)  # in thousandths
RULES: dict[str, tuple[Rule, str]] = {
    "Network-GLR": (NetworkGLR(), "green"),
    "Balanced-GLR": (BalancedGLR(), "blue"),
    "Shared-IMED": (SharedIMED(), "orange"),
}
RUNS = 200  # at most
FIGURES = ("wrong", "regret")


def game(offset: int) -> Game:
    """Return the game of two members, one with this offset in thousandths above the means and one below."""
    traits = [Traits(offset=sign * offset / 1000) for sign in (1, -1)]
    return Game(bernoulli(MEANS), Sharing.lists([[0, 1]] * MEMBERS, len(MEANS)), HORIZON, traits=traits)


@dataclass(frozen=True)
class Pair:
    """Two members with these offsets who play by a rule."""

    rule: str
    offset: int

    def __call__(self, seed: int, run: int) -> tuple[float, ...]:
        """Return whether they mostly committed to the worse arm, and their overall regret."""
        tally = play_run(game(self.offset), RULES[self.rule][0], seed=seed, run=run)
        better, worse = tally.commit.sum(axis=0)
        return float(worse > better), float((tally.explore + tally.commit)[:, 1].sum() * (MEANS[0] - MEANS[1]))


def _name(rule: str, offset: int) -> str:
    return f"{rule}, offset {offset / 1000:g}"


def by_run(played: Played, rule: str, offset: int, figure: str) -> NDArray[np.float64]:
    """Return a figure of each run."""
    return played.of_trial(_name(rule, offset), figure)


def paths(played: Played) -> list[Path]:
    """Return the regret of each rule along the offset."""
    return [
        Path(
            rule,
            colour,
            [Point(Estimate(at / 1000, None), Estimate.of(by_run(played, rule, at, "regret"))) for at in OFFSETS],
        )
        for rule, (_, colour) in RULES.items()
    ]


def table(played: Played) -> Table:
    """Return the runs that end on the wrong arm, and the regret."""
    rows = []
    for offset in (0, *OFFSETS):
        cells = []
        for rule in RULES:
            wrong, lost = (Estimate.of(by_run(played, rule, offset, figure)) for figure in FIGURES)
            cells.append(f"{wrong.mean:.1%}, {lost.mean:,.0f} ± {lost.stderr or 0:,.0f}")
        rows.append((f"± {offset / 1000:g}" if offset else "none", *cells))
    return Table("Runs that mostly commit to the worse arm, and overall regret", ("offset", *RULES), rows)


def smoking(played: Played) -> Table:
    """Return the contrasts of the stop-smoking trials."""
    rows = [(name, f"{value:+.3f}") for name, value in contrasts_to_no_contact().items()]
    return Table(
        "Stop-smoking trials: difference to no contact within trials", ("treatment", "people who stop"), rows
    )


def title(played: Played) -> str:
    """The finding."""
    more = ratio(*(by_run(played, rule, OFFSETS[0], "regret") for rule in ("Balanced-GLR", "Network-GLR")))
    return f"With offsets of ±{OFFSETS[0] / 1000:g}, Balanced-GLR loses {more.mean:.1f} times as much as Network-GLR"


def text(played: Played) -> str:
    """What the figure shows."""
    equal = ratio(by_run(played, "Network-GLR", 0, "regret"), by_run(played, "Balanced-GLR", 0, "regret"))
    certified, network = (
        Estimate.of(by_run(played, rule, OFFSETS[0], "wrong")).mean for rule in ("Balanced-GLR", "Network-GLR")
    )
    return (
        "Rules that pool all members compare one member's good arm with another's bad one. Network-GLR compares arms "
        f"within members only. Offsets of ±{OFFSETS[0] / 1000:g} let Balanced-GLR mostly commit to the worse arm in "
        f"{certified:.0%} of the runs, and Network-GLR in {network:.0%}. Where members are equal, Network-GLR costs "
        f"{equal.mean:.2f} ± {equal.stderr or 0:.2f} times the regret of Balanced-GLR on this game."
    )


STUDY = Study(
    name="network",
    question="Which rule works where members differ by a constant each?",
    values=OFFSETS,
    lines=(),
    sharing=f"{MEMBERS} members share both arms, of means {MEANS[0]} and {MEANS[1]}; T = {HORIZON:,}.",
    panels=(Panel(curves=(), shows="overall regret", across="offset", paths=paths),),
    title=title,
    text=text,
    claims=(
        Claim(
            "Network-GLR does not follow the wrong arm, whatever the offsets",
            "runs that do, of all offsets",
            lambda played: Estimate.of(
                np.concatenate([by_run(played, "Network-GLR", offset, "wrong") for offset in OFFSETS])
            ),
            at_most=0.01,
            percent=True,
        ),
        Claim(
            "Balanced-GLR does, in many runs",
            f"runs that do, offset {OFFSETS[0] / 1000:g}",
            lambda played: Estimate.of(by_run(played, "Balanced-GLR", OFFSETS[0], "wrong")),
            at_least=0.1,
            percent=True,
        ),
    ),
    axis="offset in thousandths",
    tables=lambda played: (table(played), smoking(played)),
    trials=tuple(
        Trial(_name(rule, offset), FIGURES, Pair(rule, offset), most_runs=RUNS, work=10**6)
        for rule in RULES
        for offset in (0, *OFFSETS)
    ),
)
