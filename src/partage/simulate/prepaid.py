"""How much should everyone prepay? The bill of a pool in games like this one, by simulation.

The work is bounded, so that a form can call this: where the whole game is too much, `affordable` gives a smaller one,
and its bill, which is about N log T log(M T / log T) / 2, is scaled up by that formula. Near ties that only a larger
game would settle are then missed, so the amount may be too low. Compared with whole games of 10 arms (100 agents and
T = 10^5; 1,000 and 10^6), it agrees within its interval for Balanced-GLR, and for shared-imed it is 0.58 and 0.37 of
the whole: the number of members matters more there than the formula says. The interval does not include this error.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partage.arms import RandomBernoulli, bernoulli
from partage.checks import count
from partage.errors import InputError
from partage.game import Game, check_size
from partage.rules.rule import Rule
from partage.sharing import Sharing
from partage.simulate.affordable import affordable
from partage.simulate.fold import COLUMNS
from partage.simulate.play import play
from partage.simulate.result import Estimate, Result

QUANTILE = 0.95
MOST_RUNS, FEWEST_RUNS = 400, 80
WORK = 2e7  # broadcasts times arms of all runs, roughly
LITTLE = 0.1  # below this fraction of compensations that is paid, a prepaid amount covers little
_BILL = COLUMNS.index("bill")


@dataclass(frozen=True)
class Proposal:
    """A prepaid amount for games like one that was simulated, in units of reward.

    Attributes
    ----------
    prepaid
        What everyone should prepay: enough for a pool to pay all compensations in full, in a fraction `quantile` of
        the runs.
    low, high
        The interval of 95 % in which that quantile lies. `high` is None if the runs are too few to tell.
    share
        What everyone would be charged if that had no limit: the fee and all compensations, divided by the agents.
    quantile, runs, seed
        How it was found.
    bills
        (1 + fee) B / M of every run, in increasing order.
    """

    prepaid: float
    low: float
    high: float | None
    share: Estimate
    quantile: float
    runs: int
    seed: int
    bills: tuple[float, ...]

    def scale(self, prepaid: float) -> float:
        """Return the mean fraction of compensations that a pool pays if everyone prepays this amount."""
        return float(np.mean([min(1.0, prepaid / bill) if bill > 0 else 1.0 for bill in self.bills]))

    def as_dict(self) -> dict[str, Any]:
        """Return the public JSON object."""
        return {
            "prepaid": self.prepaid,
            "low": self.low,
            "high": self.high,
            "share": {"mean": self.share.mean, "stderr": self.share.stderr},
            "quantile": self.quantile,
            "runs": self.runs,
            "seed": self.seed,
        }


def propose_prepaid(
    arms: int,
    members: int,
    horizon: int,
    rule: Rule,
    *,
    means: Sequence[float] | None = None,
    sharing: str | None = None,
    fee: float = 0.0,
    quantile: float = QUANTILE,
    seed: int = 0,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Proposal:
    """Propose what everyone should prepay in a pool, from what is known before it is played. Takes about two seconds.

    Parameters
    ----------
    arms, members, horizon
        Their numbers, and the pulls of each member.
    rule, fee, seed, jobs, progress
        As for `partage.play`.
    means
        The mean of each arm. By default each is drawn from [0, 1], anew for each run.
    sharing
        A pattern, such as "scarce-best". By default members share one arm each, in turn; fewer members than arms
        share several, and everyone shares everything where the rule compares arms within members.
    quantile
        In which fraction of the runs all compensations should be paid in full: above 0 and below 1.

    Raises
    ------
    InputError
        If an argument is not allowed.

    Examples
    --------
    >>> from partage import BalancedGLR, propose_prepaid
    >>> found = propose_prepaid(arms=4, members=12, horizon=10**4, rule=BalancedGLR())
    >>> 10 < found.prepaid < 40
    True
    """
    arms, members = count("The number of arms", arms), count("The number of members", members)
    horizon = check_size(members, horizon)
    if means is not None and len(means) != arms:
        raise InputError(f"There are {len(means)} means for {arms} arms; there must be one for each arm.")
    if isinstance(quantile, bool) or not isinstance(quantile, (int, float)) or not 0 < quantile < 1:
        raise InputError(f"The quantile is {quantile!r}; it must be a number above 0 and below 1.")
    if sharing is None and getattr(rule, "by_contrasts", False):
        sharing = "everyone-everything"
    game = _smaller_game(arms, members, horizon, means, sharing)
    runs = _runs_for(game)
    terms: dict[str, Any] = {"settlement": "pool", "prepaid": 0.0, "fee": fee}
    result = play(game, rule, runs=runs, seed=seed, baseline=False, jobs=jobs, progress=progress, **terms)
    grown = _expected_bill(members, horizon) / _expected_bill(game.agents, game.horizon)
    bills = (1.0 + fee) * grown * result.folded.figures[:, _BILL] / members
    ordered: list[float] = np.sort(bills).tolist()
    spread = 1.96 * math.sqrt(runs * quantile * (1.0 - quantile))
    return Proposal(
        _ranked(ordered, runs * quantile),
        _ranked(ordered, runs * quantile - spread),
        _ranked(ordered, runs * quantile + spread) if math.ceil(runs * quantile + spread) <= runs else None,
        Estimate.of(np.asarray(bills)),
        float(quantile),
        runs,
        result.seed,
        tuple(ordered),
    )


def _smaller_game(arms: int, members: int, horizon: int, means: Sequence[float] | None, sharing: str | None) -> Game:
    """Return a game of this size, or a smaller one that does not take too long."""
    fewer, steps = affordable(arms, members, horizon)
    known = None if means is None else bernoulli(means)
    best = (0, 1) if known is None else np.argsort([-arm.mean for arm in known]).tolist()[:2]
    pattern = Sharing.pattern(sharing or ("round-robin" if fewer >= arms else "dealt"), fewer, arms, best)
    return Game(known or [RandomBernoulli() for _ in range(arms)], pattern, steps)


def _expected_bill(members: int, horizon: int) -> float:
    """Return how the bill grows with the size of a game of random means, up to a factor."""
    log = math.log(horizon)
    return log * math.log(max(math.e, members * horizon / log))


def _runs_for(game: Game) -> int:
    """Return how many runs of a game to play."""
    arms = len(game.arms)
    each = 2 * arms * arms * math.sqrt(game.agents * game.horizon * math.log(game.horizon))
    return max(FEWEST_RUNS, min(MOST_RUNS, int(WORK / each)))


def covers_little(result: Result) -> str | None:
    """Return a warning if what is prepaid pays hardly anything; otherwise None."""
    scale, prepaid = result.scale, result.settlement.prepaid
    if not result.settlement.is_prepaid or scale is None or scale.mean >= LITTLE:
        return None
    bills: NDArray[np.float64] = (1.0 + result.settlement.fee) * result.folded.figures[:, _BILL] / result.game.agents
    enough = float(np.quantile(bills, QUANTILE))
    return (
        f"The prepaid amount of {prepaid:g} pays {scale.mean:.2g} of the compensations on average; about "
        f"{enough:.3g} would pay them in full in {QUANTILE:.0%} of these runs."
    )


def _ranked(ordered: Sequence[float], rank: float) -> float:
    """Return the value of this rank, counted from 1; the first or the last if there is none."""
    return ordered[min(len(ordered), max(1, math.ceil(rank))) - 1]
