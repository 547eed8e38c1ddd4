"""How soon the tests of agreement notice a member that differs, and how often they warn without reason.

Four members tell rewards of two arms in turn, and one of them differs by an offset on both. The record is looked at
again and again, each time after a twentieth more rewards. The places of the axis are the offsets in thousandths; 0 is
not among them, since the axis is logarithmic, and has a trial of its own.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partage.agreement import ALPHA, disagreements
from partage.board import Record
from partage.simulate.result import Estimate
from partage.simulate.trial import Trial
from partage.studies.results import Played, ratio
from partage.studies.study import Claim, Panel, Path, Point, Study, Table

MEANS = (0.6, 0.5)
MEMBERS = 4
OFFSETS = (20, 50, 100, 200)  # in thousandths
MOST = 100_000  # rewards of each arm by each member, at most
GROWTH = 1.05
RUNS = 400  # at most
FIGURES = ("rewards", "warned", "named")


@dataclass(frozen=True)
class Watched:
    """Members who tell until the record says that somebody differs, or until they told the most."""

    offset: int
    most: int

    def __call__(self, seed: int, run: int) -> tuple[float, ...]:
        """Return how many rewards of each arm were told until then, whether that came, and whether it names who."""
        random = np.random.default_rng([seed, run, self.offset])
        means = np.tile(MEANS, (MEMBERS, 1))
        means[-1] -= self.offset / 1000
        told, sums = 0, np.zeros(means.shape)
        while told < self.most:
            more = max(1, int(told * (GROWTH - 1)))
            told, sums = told + more, sums + random.binomial(more, means)
            records = {member: Record([told] * len(MEANS), sums[member].tolist()) for member in range(MEMBERS)}
            found = disagreements(records, len(MEANS))
            if found:
                return told * MEMBERS, 1.0, float(found[0].members == (MEMBERS - 1,))
        return told * MEMBERS, 0.0, 0.0


def trial(offset: int, most: int = MOST) -> Trial:
    """Return the trial with this offset, in thousandths."""
    return Trial(_name(offset), FIGURES, Watched(offset, most), most_runs=RUNS, work=10**5)


def _name(offset: int) -> str:
    return f"offset {offset / 1000:g}"


def by_run(played: Played, offset: int, figure: str) -> NDArray[np.float64]:
    """Return a figure of each run with this offset."""
    return played.of_trial(_name(offset), figure)


def until(played: Played, offset: int) -> Estimate:
    """Return how many rewards of each arm are told until somebody is named."""
    return Estimate.of(by_run(played, offset, "rewards"))


def paths(played: Played) -> list[Path]:
    """Return the rewards until the first warning, along the offset."""
    points = [Point(Estimate(at / 1000, None), until(played, at)) for at in OFFSETS]
    return [Path("until the first warning", "blue", points)]


def table(played: Played) -> Table:
    """Return all figures."""
    rows = []
    for offset in (0, *OFFSETS):
        warned, named = (Estimate.of(by_run(played, offset, figure)) for figure in ("warned", "named"))
        rewards = f"{until(played, offset).mean:,.0f} ± {until(played, offset).stderr or 0:,.0f}" if offset else "–"
        rows.append((f"{offset / 1000:g}", rewards, f"{warned.mean:.1%}", f"{named.mean:.1%}" if offset else "–"))
    headings = (
        "offset",
        "rewards of each arm until the first warning",
        "runs with a warning",
        "that name who differs",
    )
    return Table("Detection", headings, rows)


def title(played: Played) -> str:
    """The finding."""
    return f"An offset of 0.1 is noticed after {until(played, 100).mean:,.0f} rewards of each arm by all members"


def text(played: Played) -> str:
    """What the figure shows."""
    small, large = until(played, OFFSETS[0]), until(played, OFFSETS[-1])
    wrong = Estimate.of(by_run(played, 0, "warned"))
    return (
        f"It takes {large.mean:,.0f} ± {large.stderr or 0:,.0f} rewards of each arm, of all members together, where "
        f"the offset is {OFFSETS[-1] / 1000:g}, and {small.mean:,.0f} ± {small.stderr or 0:,.0f} where it is "
        f"{OFFSETS[0] / 1000:g}. Where all members are equal, {wrong.mean:.1%} of the runs ever warn, in "
        f"{MOST * MEMBERS:,} rewards of each arm."
    )


STUDY = Study(
    name="disagreement",
    question="How soon is it noticed that a member differs?",
    values=OFFSETS,
    lines=(),
    sharing=f"{MEMBERS} members tell rewards of two arms of means {MEANS[0]} and {MEANS[1]}; one has an offset.",
    panels=(Panel(curves=(), shows="rewards of each arm until the first warning", across="offset", paths=paths),),
    title=title,
    text=text,
    claims=(
        Claim(
            "Where members are equal, there is hardly ever a warning",
            "runs that ever warn",
            lambda played: Estimate.of(by_run(played, 0, "warned")),
            at_most=ALPHA,
            percent=True,
        ),
        Claim(
            "The member who differs is the one that is named",
            "runs that name it first, offset 0.1",
            lambda played: Estimate.of(by_run(played, 100, "named")),
            at_least=0.9,
            percent=True,
        ),
        Claim(
            "Half the offset takes about four times as many rewards",
            "rewards until the first warning, offset 0.05 against 0.1",
            lambda played: ratio(by_run(played, 50, "rewards"), by_run(played, 100, "rewards")),
            at_least=3,
            at_most=5.5,
        ),
    ),
    axis="offset in thousandths",
    tables=lambda played: (table(played),),
    trials=tuple(trial(offset) for offset in (0, *OFFSETS)),
)
