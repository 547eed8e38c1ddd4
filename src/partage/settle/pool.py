"""The pool and the dues: settlements with a bound on what any reports can earn. docs/trust.md has the proofs.

Only told claims are paid. A claim on an arm that is not left earns r_i = max(0, mean_l - mean_i), where l is the
public arm of the highest mean; where arms are compared within members, r_i = min(1, max(0, beta_l - beta_i)) by the
contrasts of the rule. With x_mi told claims of agent m on arm i, its compensation is c_m = sum r_i x_mi, and
the bill is B = sum c_m. Everyone prepays D, and the controller underwrites U.

- `pool`: all compensations are scaled down to s c_m, s = min(1, (M D + U) / ((1 + fee) B)), and everyone pays
  min(D, (1 + fee) s B / M).
- `dues`: everyone pays D and receives min(D, c_m). The controller keeps the rest.

Everything here is exact: rates are floats, and floats are fractions.
"""

from collections.abc import Iterable, MutableSequence, Sequence
from fractions import Fraction
from typing import NamedTuple

from partage.compiled import shared
from partage.settle.equal_share import leader_of


@shared
def pool_rates(
    counts: Sequence[int],
    sums: Sequence[float],
    left: Sequence[bool],
    public: Sequence[bool],
    rates: MutableSequence[float],
) -> None:
    """Write the compensation for one told claim of each arm into `rates`: 0 for the arms left."""
    leader = leader_of(counts, sums, public)
    for arm in range(len(counts)):
        rates[arm] = 0.0
        if leader >= 0 and public[arm] and not left[arm] and counts[arm] > 0:
            rates[arm] = max(0.0, sums[leader] / counts[leader] - sums[arm] / counts[arm])


def contrast_rates(effects: Sequence[float | None], left: Sequence[bool]) -> tuple[float, ...]:
    """Return the compensation for one told claim of each arm: by how much its effect is below the leader's.

    0 for the arms left, and for arms that members do not connect with the leader. Estimates add up along paths of
    members, and may exceed 1; no true contrast does, and no claim earns more.

    >>> contrast_rates([0.0, -0.25, -1.5, None], [True, False, False, False])
    (0.0, 0.25, 1.0, 0.0)
    """
    return tuple(
        0.0 if is_left or effect is None else min(1.0, max(0.0, -effect))
        for effect, is_left in zip(effects, left, strict=True)
    )


class Rates:
    """The rates of all arms as exact numbers, so that what pulls earn is exact too.

    Parameters
    ----------
    rates
        Units of reward for one pull of each arm.
    unit
        What the amounts are multiplied with, such as micro-units of money per unit of reward.

    >>> Rates([0.5, 0.0, 0.25], unit=Fraction(100)).worth([3, 7, 1])
    Fraction(175, 1)
    """

    def __init__(self, rates: Iterable[float], unit: Fraction | int = 1) -> None:
        exact = [Fraction(rate) for rate in rates]
        # The denominators of floats are powers of two: the largest is a multiple of the others.
        denominator = max((rate.denominator for rate in exact), default=1)
        self._parts = [rate.numerator * (denominator // rate.denominator) for rate in exact]
        self._unit = Fraction(unit) / denominator

    def worth(self, pulls: Iterable[int]) -> Fraction:
        """Return what these pulls of each arm earn."""
        return self._unit * sum(part * int(count) for part, count in zip(self._parts, pulls, strict=True))


class InCommon(NamedTuple):
    """What all accounts of a pool have in common: the fraction of compensations that is paid, and the charge."""

    scale: Fraction
    charge: Fraction


def in_common(bill: Fraction, members: int, prepaid: Fraction, underwriting: Fraction, fee: float) -> InCommon:
    """Return the scale and the charge of a pool.

    Parameters
    ----------
    bill
        All compensations together (B).
    members
        All who ever joined (M).
    prepaid, underwriting
        D and U, in the same unit as the bill.
    fee
        As a fraction of all compensations.

    >>> in_common(Fraction(30), 4, Fraction(5), Fraction(0), 0.0)
    InCommon(scale=Fraction(2, 3), charge=Fraction(5, 1))
    """
    with_fee = (1 + Fraction(fee)) * bill
    if not members or not with_fee:
        return InCommon(Fraction(1), Fraction(0))
    scale = min(Fraction(1), (members * prepaid + underwriting) / with_fee)
    return InCommon(scale, min(prepaid, scale * with_fee / members))


def underwritten(charges: Fraction, underwriting: Fraction, bill: Fraction) -> Fraction:
    """Return the fraction of the compensations that charges and underwriting together can pay."""
    return min(Fraction(1), (charges + underwriting) / bill) if bill else Fraction(1)
