"""What do liars gain, and who pays for it? Every attack against every settlement.

The places of the axis are horizons. The long one is for made-up commits, which grow with it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from partage.arms import bernoulli
from partage.game import Game
from partage.ledger.config import LiveRule
from partage.rules import BalancedETC, BalancedGLR, SharedIMED
from partage.sharing import Sharing
from partage.simulate.result import Estimate
from partage.simulate.trial import Trial
from partage.studies.attack_cells import Cell, Terms
from partage.studies.attack_liars import ATTACKS, NOBODY, Attack
from partage.studies.results import Played, Runs
from partage.studies.study import Claim, Dots, Panel, Study, Table

SHORT, LONG = 10**4, 10**6
HONEST = 10
RUNS = 20  # at most: it is played pull by pull
FEW_RUNS = 4  # of Balanced-ETC, which explores for long

UNDERWRITING = 20.0  # about a fifth of what all members prepay
POOL, UNDERWRITTEN, DUES = "pool", f"pool, U = {UNDERWRITING:g}", "dues"
EXPECTED, EQUAL, PAPER, NONE = "equal-share-expected", "equal-share", "paper", "none"
TRUTHFUL = (PAPER, EQUAL, EXPECTED)  # settlements that assume truthful members


def game(horizon: int) -> Game:
    """Return the game of the honest members."""
    return Game(bernoulli([0.9, 0.8, 0.6]), Sharing.round_robin(HONEST, 3), horizon)


class Setting(NamedTuple):
    """A rule and a horizon, the attacks that are played there, and the largest number of runs.

    `prepaid` is D: the 0.95 quantile of the bill per member if nobody lies, rounded up.
    """

    rule: LiveRule
    name: str
    horizon: int
    prepaid: float
    attacks: Sequence[Attack]
    runs: int

    @property
    def title(self) -> str:
        """The rule and the horizon."""
        return f"{self.name}, T = {self.horizon:,}"

    @property
    def heading(self) -> str:
        """The rule, the horizon and D."""
        return f"{self.title}, D = {self.prepaid:g}"

    def trial(self, attack: Attack) -> str:
        """Return the name of a trial."""
        return f"{self.title}: {attack.name}"

    @property
    def terms(self) -> tuple[Terms, ...]:
        """Every settlement that fits the rule."""
        prepaid = self.prepaid
        every = (
            Terms(NONE, "none"),
            Terms(PAPER, "paper"),
            Terms(EQUAL, "equal-share"),
            Terms(EXPECTED, "equal-share-expected"),
            Terms(POOL, "pool", prepaid),
            Terms(UNDERWRITTEN, "pool", prepaid, UNDERWRITING),
            Terms(DUES, "dues", prepaid),
        )
        return tuple(terms for terms in every if terms.settlement in self.rule.settlements)


PHANTOM = tuple(attack for attack in ATTACKS if attack.phantom)
SETTINGS = (
    Setting(BalancedGLR(), "Balanced-GLR", SHORT, 9, ATTACKS, RUNS),
    Setting(SharedIMED(), "Shared-IMED", SHORT, 3, ATTACKS, RUNS),
    Setting(BalancedGLR(), "Balanced-GLR", LONG, 11, PHANTOM, RUNS),
    Setting(SharedIMED(), "Shared-IMED", LONG, 5, PHANTOM, RUNS),
    Setting(BalancedETC(), "Balanced-ETC", SHORT, 106, PHANTOM, FEW_RUNS),
)
GLR = SETTINGS[0]


def trials() -> tuple[Trial, ...]:
    """Return a trial for each attack in each setting, and one without liars."""
    found = []
    for setting in SETTINGS:
        for attack in (NOBODY, *setting.attacks):
            cell = Cell(game(setting.horizon), setting.rule, attack, setting.terms)
            found.append(Trial(setting.trial(attack), cell.figures, cell, setting.runs))
    return tuple(found)


# --- what was measured ----------------------------------------------------------------------------------------


def by_run(played: Played, setting: Setting, attack: Attack, figure: str) -> Runs:
    """Return a figure of each run."""
    return played.of_trial(setting.trial(attack), figure)


def gain(played: Played, setting: Setting, attack: Attack, terms: str) -> Estimate:
    """Return what the liars gain, all together."""
    return Estimate.of(by_run(played, setting, attack, f"{terms}: gain"))


def lost(played: Played, setting: Setting, attack: Attack, terms: str) -> Estimate:
    """Return what the honest members lose in money by the attack, all together: the same runs with and without it."""
    without, attacked = (by_run(played, setting, each, f"{terms}: others") for each in (NOBODY, attack))
    return Estimate.of(without - attacked)


def regret(played: Played, setting: Setting, attack: Attack) -> Estimate:
    """Return how much more regret the honest members have by the attack, all together."""
    without, attacked = (by_run(played, setting, each, "regret") for each in (NOBODY, attack))
    return Estimate.of(attacked - without)


def operator(played: Played, setting: Setting, attack: Attack, terms: str) -> Estimate:
    """Return what the operator loses."""
    return Estimate.of(-by_run(played, setting, attack, f"{terms}: operator"))


def bound(played: Played, setting: Setting, attack: Attack, terms: str) -> float:
    """Return the most that the liars can gain."""
    gained, room = (by_run(played, setting, attack, f"{terms}: {figure}") for figure in ("gain", "room"))
    return float(gained[0] + room[0])


def cases(only: Iterable[Attack] | None = None) -> list[tuple[Setting, Attack]]:
    """Return every attack in every setting, or only these attacks."""
    wanted = None if only is None else {attack.name for attack in only}
    return [
        (setting, attack)
        for setting in SETTINGS
        for attack in setting.attacks
        if wanted is None or attack.name in wanted
    ]


# --- tables ---------------------------------------------------------------------------------------------------


def shown(value: Estimate) -> str:
    """Format an amount with its standard error."""
    digits = 1 if abs(value.mean) < 100 else 0
    mean = f"{value.mean + 0.0:,.{digits}f}"
    mean = "0" if float(mean.replace(",", "")) == 0 else mean
    if value.stderr is None or value.stderr < 0.05:
        return mean
    return f"{mean} ± {value.stderr:,.{1 if value.stderr < 100 else 0}f}"


MONEY = (PAPER, EQUAL, EXPECTED, POOL, UNDERWRITTEN, DUES)


def _table(
    played: Played, title: str, measured: Callable[[Played, Setting, Attack, str], Estimate], more: bool = False
) -> Table:
    """Return a table with a row for each attack and a column for each settlement."""
    rows: list[list[str]] = []
    for setting in SETTINGS:
        fits = {terms.name for terms in setting.terms}
        rows.append([setting.heading])
        for attack in setting.attacks:
            cells = [shown(measured(played, setting, attack, terms)) if terms in fits else "–" for terms in MONEY]
            play = []
            if more:
                leads = np.mean(by_run(played, setting, attack, "right arm leads"))
                play = [shown(regret(played, setting, attack)), f"{leads:.0%}"]
            rows.append([attack.name, *play, *cells])
    head = ("attack", *(("regret of the others", "right arm leads") if more else ()), *MONEY)
    return Table(title, head, rows)


def gains(played: Played) -> Table:
    """Return the table of what liars gain, and of the play of the others."""
    return _table(played, "What the liars gain, and what the others lose by play", gain, more=True)


def losses(played: Played) -> Table:
    """Return the table of what honest members lose in money."""
    return _table(played, "What the others lose in money, compared with the same runs without liars", lost)


def operators(played: Played) -> Table:
    """Return the table of what the operator loses."""
    return _table(played, "What the operator loses (below 0: keeps)", operator)


def limits(played: Played) -> Table:
    """Return the table of bounds, and of the largest gain of any run."""
    rows: list[list[str]] = []
    for setting in SETTINGS:
        rows.append([setting.heading])
        for attack in setting.attacks:
            cells = []
            for terms in (POOL, UNDERWRITTEN, DUES):
                most = float(by_run(played, setting, attack, f"{terms}: gain").max())
                cells += [f"{most:,.1f}", f"{bound(played, setting, attack, terms):,.0f}"]
            rows.append([attack.name, str(len(attack.liars)), *cells])
    head = [text for terms in (POOL, UNDERWRITTEN, DUES) for text in (f"{terms}: largest", "bound")]
    return Table("The largest gain of any run, and the bound", ("attack", "identities", *head), rows)


# --- claims ---------------------------------------------------------------------------------------------------


def _exactly(value: float) -> Estimate:
    """Return the worst value of all runs: it is not a mean, so it has no standard error."""
    return Estimate(value, 0.0)


def least_room(played: Played, terms: Sequence[str], figure: str = "room") -> Estimate:
    """Return how far the run that comes closest to a bound is below it."""
    return _exactly(
        min(float(by_run(played, *case, f"{each}: {figure}").min()) for case in cases() for each in terms)
    )


def largest_gain(played: Played, attacks: Iterable[Attack], terms: str) -> Estimate:
    """Return the largest gain of any run."""
    return _exactly(max(float(by_run(played, *case, f"{terms}: gain").max()) for case in cases(attacks)))


CLAIMS = (
    Claim(
        "With pool and dues, no liars gain more than the bound, in any run",
        "bound less gain, smallest of all runs",
        lambda played: least_room(played, (POOL, UNDERWRITTEN, DUES)),
        at_least=0,
    ),
    Claim(
        "With pool and dues, the operator never loses more than U",
        "U less the operator's loss, smallest of all runs",
        lambda played: least_room(played, (POOL, UNDERWRITTEN, DUES), "operator's room"),
        at_least=0,
    ),
    Claim(
        "With dues, no members gain by lying, in any run",
        "largest gain of any run without the operator",
        lambda played: largest_gain(played, [each for each in ATTACKS if not each.with_operator], DUES),
        at_most=0,
    ),
    Claim(
        "With pool, commits earn nothing: who tells no claim never gains",
        "largest gain of any run, passive",
        lambda played: largest_gain(played, PHANTOM[1:2], POOL),
        at_most=0,
    ),
    Claim(
        "With pool, a lie and phantom commits gain at most what the one told claim earns",
        "largest gain of any run",
        lambda played: largest_gain(played, PHANTOM, POOL),
        at_most=1,
        note="In a run with a small bill, one told claim on a bad arm may earn more than the charge.",
    ),
    *(
        Claim(
            f"With pool, phantom commits lose: {setting.title}",
            "mean gain of an active liar",
            lambda played, setting=setting: gain(played, setting, PHANTOM[0], POOL),  # type: ignore[misc]
            at_most=0,
        )
        for setting in SETTINGS
    ),
    Claim(
        "Equal shares pay phantom commits",
        f"mean gain, equal-share-expected, {GLR.title}",
        lambda played: gain(played, GLR, PHANTOM[0], EXPECTED),
        at_least=SHORT / 10,
    ),
)


# --- the figure -----------------------------------------------------------------------------------------------

COLOURS = {EQUAL: "orange", EXPECTED: "purple", POOL: "green", DUES: "blue"}


def dots(played: Played) -> list[Dots]:
    """Return the gain of the liars for each settlement."""
    return [
        Dots(terms, colour, [gain(played, GLR, attack, terms) for attack in ATTACKS])
        for terms, colour in COLOURS.items()
    ]


def title(played: Played) -> str:
    """The finding."""
    paid, pooled = (gain(played, GLR, PHANTOM[0], terms).mean for terms in (EXPECTED, POOL))
    verb = "loses" if pooled < 0 else "gains"
    how = f"{verb} {abs(pooled):,.1f} with pool"
    return f"Made-up commits: a liar gains {paid:,.0f} with equal-share-expected, and {how}"


def text(played: Played) -> str:
    """What the figure shows."""
    others = [attack for attack in ATTACKS if not attack.phantom]
    best = max(others, key=lambda attack: gain(played, GLR, attack, POOL).mean)
    most = max(bound(played, GLR, attack, POOL) for attack in others)
    worst = max(others, key=lambda attack: regret(played, GLR, attack).mean)
    paid, pooled = (shown(gain(played, SETTINGS[2], PHANTOM[0], terms)) for terms in (EXPECTED, POOL))
    return (
        f"Over {LONG:,} steps, phantom commits gain {paid} with equal-share-expected and {pooled} with pool. "
        f"With pool, what remains is {best.name}: {shown(gain(played, GLR, best, POOL))}, where the bound is "
        f"{bound(played, GLR, best, POOL):,.0f}; no attack has a bound above {most:,.0f}. With dues no members gain. "
        f"No settlement protects play: the honest members lose most by “{worst.name}”, a regret of "
        f"{shown(regret(played, GLR, worst))} more. The figure shows {GLR.title}."
    )


STUDY = Study(
    name="attacks",
    question="What do liars gain, and who pays for it?",
    values=(SHORT, LONG),
    lines=(),
    sharing=f"{HONEST} honest members share arm m mod 3 of means 0.9, 0.8 and 0.6; liars join them. Amounts are in "
    "units of reward. The tables give D; U is 0 unless given. Paper and equal shares have no underwriting: the "
    "operator bears any loss.",
    panels=(
        Panel(
            curves=(),
            shows="what the liars gain, all together, in units of reward",
            rows=tuple(attack.name for attack in ATTACKS),
            dots=dots,
            dotted="no gain",
            linear_to=10,
        ),
    ),
    title=title,
    text=text,
    claims=CLAIMS,
    axis="horizon",
    tables=lambda played: (gains(played), losses(played), operators(played), limits(played)),
    trials=trials(),
)
