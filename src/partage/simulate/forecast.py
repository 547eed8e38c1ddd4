"""The forecast for somebody who thinks about joining: what a member of a collaboration like this can expect.

It reads the figures of runs from their arrays: a server, whose join page shows it, need not have Polars.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partage.arms import RandomBernoulli, bernoulli
from partage.checks import count
from partage.errors import InputError
from partage.game import Game, check_size
from partage.rules.rule import Rule
from partage.sharing import Sharing
from partage.simulate.affordable import affordable
from partage.simulate.estimate import Estimate, counted
from partage.simulate.play import play

RUNS = 100
ALONE_UP_TO = 3 * 10**5  # horizon times arms of a quick forecast: learners alone are played pull by pull


@dataclass(frozen=True)
class Forecast:
    """What a member can expect, in units of reward.

    Attributes
    ----------
    together, settled
        What a member loses on average in the collaboration, before and after the settlement; `settled` is None
        without one.
    alone
        What it would lose alone, by the best learner, or by 2-UCB if others take too long; None if none was played.
    alone_by
        That learner.
    gaining
        The fraction of members whose mean loss after the settlement is at most what they would lose alone.
    broadcasts
        The rewards that a member shares on average.
    members, horizon, runs
        What was played.
    assumptions
        One sentence each on what the forecast assumes, in the words of the join page: options are arms, and tries are
        pulls.
    """

    together: Estimate
    settled: Estimate | None
    alone: Estimate | None
    alone_by: str | None
    gaining: float | None
    broadcasts: Estimate
    members: int
    horizon: int
    runs: int
    assumptions: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The forecast in one sentence."""
        after = self.settled or self.together
        paid = " after the settlement" if self.settled else ""
        if self.alone is None:
            return f"A member can expect to lose about {after.mean:.3g}{paid}."
        return f"A member can expect to lose about {after.mean:.3g}{paid}, and {self.alone.mean:.3g} alone."

    def as_dict(self) -> dict[str, Any]:
        """Return the public JSON object."""
        estimates = {name: getattr(self, name) for name in ("together", "settled", "alone", "broadcasts")}
        return {
            "sentence": self.sentence,
            **{name: None if value is None else value._asdict() for name, value in estimates.items()},
            "alone_by": self.alone_by,
            "gaining": self.gaining,
            "members": self.members,
            "horizon": self.horizon,
            "runs": self.runs,
            "assumptions": list(self.assumptions),
        }


def forecast(
    arms: int,
    members: int,
    horizon: int,
    rule: Rule,
    *,
    means: Sequence[float] | None = None,
    shares: Sequence[Sequence[int]] | None = None,
    quick: bool = False,
    runs: int = RUNS,
    seed: int = 0,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    **terms: Any,
) -> Forecast:
    """Return what a member of a collaboration of this size can expect.

    Parameters
    ----------
    arms, members, horizon
        Their numbers, and the pulls of each member.
    rule, runs, seed, jobs, progress
        As for `partage.play`.
    means
        The mean of each arm. By default each is drawn from [0, 1], anew for each run.
    shares
        The arms that each of the first members shares. All others share one arm each, in turn; if they are fewer than
        the arms, they share several, and where the rule compares arms within members, they share every arm.
    quick
        Play a smaller game where the whole one takes more than some seconds; the assumptions then say so.
    terms
        The settlement and its terms, as for `partage.play`.

    Examples
    --------
    >>> from partage import SharedIMED, forecast
    >>> found = forecast(arms=3, members=6, horizon=1000, rule=SharedIMED(), runs=20, settlement="none")
    >>> found.together.mean < found.alone.mean
    True
    """
    arms, members = count("The number of arms", arms), count("The number of members", members)
    horizon = check_size(members, horizon)
    if means is not None and len(means) != arms:
        raise InputError(f"There are {len(means)} means for {arms} arms; there must be one for each arm.")
    known = [] if shares is None else list(shares)
    if len(known) > members:
        raise InputError(f"There are shares of {len(known)} members; there must be at most {members}.")
    played, steps = members, horizon
    if quick:
        played, steps = affordable(arms, members, min(horizon, max(ALONE_UP_TO // arms, 100)))
    everything = bool(getattr(rule, "by_contrasts", False))
    sharing = _sharing(known, members, arms, everything)
    if played < members:  # every so many members, so that those who have joined are represented
        sharing = [sharing[place * members // played] for place in range(played)]
    world = bernoulli(means) if means else [RandomBernoulli() for _ in range(arms)]
    game = Game(world, Sharing.lists(sharing, arms), steps)
    result = play(game, rule, runs=runs, seed=seed, checkpoints=(), jobs=jobs, progress=progress, **terms)
    by = result.best_alone or ("two-ucb" if result.two_ucb_regret else None)
    alone = None if by is None else result.alone_regret[by]
    lost = result.folded.incentive / result.runs
    return Forecast(
        result.average_regret,
        # Payments among members cancel on average: what is left is what the controller keeps.
        Estimate.of(result.per_run("average_regret") + result.per_run("controller_profit") / played)
        if result.settled
        else None,
        alone,
        by,
        None if alone is None else float(np.mean(lost <= alone.mean)),
        Estimate.of(result.per_run("broadcasts") / played),
        played,
        steps,
        result.runs,
        (
            *_smaller(played, members, steps, horizon),
            "The mean result of each option is the one given."
            if means is not None
            else "The mean result of each option is drawn from 0 to 1, each value as likely as any other.",
            _shared(len(known), members, everything),
            "Results are 0 or 1, equally likely for all members, and known at once.",
            "All members join at the start, are equally fast, and use all of their tries.",
            "Everyone follows the rule and reports the truth.",
        ),
    )


def _sharing(known: list[Sequence[int]], members: int, arms: int, everything: bool) -> list[Sequence[int]]:
    """Return the arms that every member shares: those known, then what the others are assumed to share."""
    others = members - len(known)
    if not others:
        return known
    dealt = Sharing.everything(others, arms) if everything else Sharing.dealt(others, arms)
    return [*known, *(dealt.of(member) for member in range(others))]


def _smaller(played: int, members: int, steps: int, horizon: int) -> list[str]:
    """Return how a smaller game differs from the whole one."""
    if (played, steps) == (members, horizon):
        return []
    sizes = f"{counted(members, 'member')} with {horizon:,} tries each", f"{played:,} with {steps:,}"
    return [f"To save time, the simulation has fewer than {sizes[0]}: {sizes[1]}."]


def _shared(known: int, members: int, everything: bool) -> str:
    """Return what the forecast assumes of the options that members share."""
    if known == members:
        return "Members share what they have consented to so far."
    others = "share every option" if everything else "share one option each, or several if they are few"
    if not known:
        return f"Members {others}."
    so_far = "member so far shares what it has" if known == 1 else "members so far share what they have"
    return f"The {known:,} {so_far} consented to; all others {others}."
