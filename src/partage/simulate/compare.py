"""`compare`: several rules on the same runs of a game, and how much they differ."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from partage.errors import InputError
from partage.game import Game
from partage.rules.rule import Rule, changed_parameters
from partage.simulate.chunk import checked_rule
from partage.simulate.estimate import Estimate, counted
from partage.simulate.fold import COLUMNS, FIGURES
from partage.simulate.in_unit import amount, in_unit, named
from partage.simulate.page import Grid, Page
from partage.simulate.play import play
from partage.simulate.result import Result
from partage.simulate.summary import described, said_of_bars

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Results of several rules on the same runs, by name. The others are compared with the first.

    Examples
    --------
    >>> from partage import BalancedETC, BalancedGLR, Game, Sharing, bernoulli, compare
    >>> game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(agents=4, arms=2), horizon=2000)
    >>> found = compare(game, [BalancedETC(), BalancedGLR()], runs=20)
    >>> found.difference("balanced-glr").mean < 0
    True
    """

    results: Mapping[str, Result]

    @property
    def game(self) -> Game:
        """The game that all of them played."""
        return self.results[self.first].game

    @property
    def first(self) -> str:
        """The name of the rule that the others are compared with."""
        return next(iter(self.results))

    def difference(self, rule: str, figure: str = "overall_regret", than: str | None = None) -> Estimate | None:
        """Return a figure of one rule less that of another, which is the first by default; None if it does not apply.

        Both rules play the same runs, so the standard error is that of the differences run by run.
        """
        for name in (rule, than or self.first):
            if name not in self.results:
                raise InputError(f"The rule is {name!r}; it must be one of {', '.join(self.results)}.")
        if figure not in FIGURES:
            raise InputError(f"The figure is {figure!r}; it must be one of {', '.join(FIGURES)}.")
        place = COLUMNS.index(figure)
        ours, theirs = (self.results[name].folded.figures[:, place] for name in (rule, than or self.first))
        values = ours - theirs
        return None if np.isnan(values).any() else Estimate.of(values)

    def frame(self, by: str = "run") -> "pl.DataFrame":
        """Return the frames of all results below each other (`Result.frame`), with a column for the rule."""
        import polars as pl

        frames = [
            one.frame(by).with_columns(pl.lit(name).alias("rule")).select("rule", pl.exclude("rule"))
            for name, one in self.results.items()
        ]
        return pl.concat(frames)

    def to_pandas(self, by: str = "run") -> "pd.DataFrame":
        """Return the same as `frame` as a pandas data frame. This needs pandas, and not pyarrow."""
        from partage.simulate.frames import to_pandas

        return to_pandas(self.frame(by))

    def plot(self) -> "Figure":
        """Draw the regret over time of every rule, and what each loses and shares."""
        from partage.simulate.plot import plot_comparison

        return plot_comparison(self)

    def as_dict(self) -> dict[str, Any]:
        """Return one JSON object: the results by name, and every figure's difference from the first result."""

        def difference(name: str, figure: str) -> dict[str, float | None] | None:
            found = self.difference(name, figure)
            return None if found is None else found._asdict()

        others = [name for name in self.results if name != self.first]
        return {
            "compared_with": self.first,
            "results": {name: result.as_dict() for name, result in self.results.items()},
            "differences": {name: {figure: difference(name, figure) for figure in FIGURES} for name in others},
        }

    def page(self, sharing: str | None = None) -> Page:
        """Return the comparison for people."""
        result = self.results[self.first]
        game = result.game
        size = f"{counted(game.agents, 'agent')}, {counted(len(game.arms), 'arm')}, horizon {game.horizon:,}"
        runs = f"{counted(result.runs, 'run')} from seed {result.seed}"
        rows = [self._row(name) for name in self.results]
        bars: list[tuple[str, ...]] = [
            (f"{learner} alone", str(amount(bar.times(game.agents), game.unit)), "", "", "")
            for learner, bar in result.alone_regret.items()
        ]
        headings = ("rule", "overall regret", "difference", "largest regret", "broadcasts")
        table = Grid(headings, rows + bars, parts=(len(rows),))
        said = [f"{name}: {said_of_bars(in_unit(one.as_dict(), game.unit))}" for name, one in self.results.items()]
        note = f"Differences from {self.first} are taken run by run, on the same rewards; ± is the standard error."
        shared = "" if sharing is None else f"sharing {sharing}; "
        unit = f"; in {named(game.unit)}" if game.unit else ""
        return Page(f"{counted(len(self.results), 'rule')}: {size}", f"{shared}{runs}{unit}", [table, [note], said])

    def _row(self, name: str) -> tuple[str, ...]:
        result, difference = self.results[name], None if name == self.first else self.difference(name)
        amounts = (
            "–" if one is None else str(amount(one, result.game.unit))
            for one in (result.overall_regret, difference, result.max_individual_regret)
        )
        return name, *amounts, str(result.broadcasts)

    def __str__(self) -> str:
        return self.page().text()

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.results)}>"

    def _repr_html_(self) -> str:
        return self.page().html()


def compare(
    game: Game,
    rules: Iterable[Rule] | Mapping[str, Rule],
    *,
    alone: str = "best",
    baseline: bool | None = None,
    progress: Callable[[int, int], None] | None = None,
    each: Mapping[str, Mapping[str, Any]] | None = None,
    **options: Any,
) -> Comparison:
    """Play several rules on the same runs of a game.

    Parameters
    ----------
    game
        The game.
    rules
        The rules, or a mapping from names to rules. The others are compared with the first.
    alone
        The learner alone that agents are compared with, the same for all rules; the best one by default.
    baseline, progress
        As for `play`; learners alone are played once.
    each
        Options of `play` for single rules, by name, such as their settlement.
    options
        Options of `play` for all rules, such as `runs`, `seed` and `settlement`.

    Raises
    ------
    InputError
        If an argument is not allowed.
    """
    named = _named(rules)
    results: dict[str, Result] = {}
    first: Result | None = None
    for place, (name, rule) in enumerate(named.items()):
        result = play(
            game,
            rule,
            alone=alone,
            baseline=baseline if first is None else False,
            progress=progress and _part(progress, place, len(named)),
            **{**options, **(each or {}).get(name, {})},
        )
        first = first or result
        results[name] = replace(result, alone_regret=first.alone_regret, bars=first.bars)
    return Comparison(results)


def _named(rules: Iterable[Rule] | Mapping[str, Rule]) -> dict[str, Rule]:
    if isinstance(rules, Mapping):
        named = {str(name): checked_rule(rule) for name, rule in rules.items()}
    else:
        named, given = {}, list(rules) if isinstance(rules, Iterable) else [rules]
        for rule in map(checked_rule, given):
            name = described(rule.name, None, changed_parameters(rule))
            balance = getattr(rule, "balance", None)
            if name in named and balance is not None:
                name = described(rule.name, balance, changed_parameters(rule))
            if name in named:
                raise InputError(f"Two rules have the name {name}; give a mapping from names to rules.")
            named[name] = rule
    if not named:
        raise InputError("No rule is given; at least one is needed.")
    return named


def _part(progress: Callable[[int, int], None], place: int, parts: int) -> Callable[[int, int], None]:
    """Return the progress of one rule of several."""
    return lambda done, total: progress(place * total + done, parts * total)
