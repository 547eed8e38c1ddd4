"""The forecast for somebody who thinks about joining: what a member of a collaboration like this can expect."""

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
from partage.simulate.estimate import Estimate
from partage.simulate.play import play

RUNS = 100


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
    assumptions
        One sentence each on what the forecast assumes.
    """

    together: Estimate
    settled: Estimate | None
    alone: Estimate | None
    alone_by: str | None
    gaining: float | None
    broadcasts: Estimate
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
        The arms that each member shares. By default members share one arm each, in turn; fewer members than arms
        share several, and everyone shares everything where the rule compares arms within members.
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
    if shares is not None and len(shares) != members:
        raise InputError(f"There are shares of {len(shares)} members; there must be {members}.")
    everything = shares is None and bool(getattr(rule, "by_contrasts", False))
    if shares is not None:
        sharing = Sharing.lists(shares, arms)
    else:
        sharing = Sharing.everything(members, arms) if everything else Sharing.dealt(members, arms)
    game = Game(bernoulli(means) if means else [RandomBernoulli() for _ in range(arms)], sharing, horizon)
    result = play(game, rule, runs=runs, seed=seed, jobs=jobs, progress=progress, **terms)
    by = result.best_alone or ("two-ucb" if result.two_ucb_regret else None)
    alone = None if by is None else result.alone_regret[by]
    lost = result.folded.incentive / result.runs
    per_run = result.frame()
    profit = per_run["controller_profit"].fill_null(0.0).to_numpy()
    return Forecast(
        result.average_regret,
        # Payments among members cancel on average: what is left is what the controller keeps.
        Estimate.of(per_run["average_regret"].to_numpy() + profit / members) if result.settled else None,
        alone,
        by,
        None if alone is None else float(np.mean(lost <= alone.mean)),
        Estimate.of(per_run["broadcasts"].to_numpy() / members),
        _assumptions(means is not None, shares is not None, everything),
    )


def _assumptions(known: bool, consented: bool, everything: bool) -> tuple[str, ...]:
    one_arm = "Members share every arm." if everything else "Members share one arm each, or several if they are few."
    return (
        "The means of the arms are those given."
        if known
        else "The means of the arms are drawn from 0 to 1, each as likely as any other.",
        "Members share what they have consented to so far." if consented else one_arm,
        "Rewards are 0 or 1, the same for all members, and known at once.",
        "All members join at the start, are equally fast, and use their whole horizon.",
        "Everyone follows the rule and reports the truth.",
    )
