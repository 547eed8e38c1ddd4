"""When finding out about an arm costs more than it can win."""

import math

from partage.compiled import shared


@shared
def is_indifferent(
    evidence: float, needed: float, count: float, mean: float, leads: float, leader: float, pulls_left: float
) -> bool:
    """Whether eliminating an arm would cost more than the most that the group could win with it.

    The arm's mean is at most `radius - gap` above the leader's and at most `radius + gap` below it: by Pinsker's
    inequality, means that are further apart contradict the record by more than the evidence that is needed.

    Parameters
    ----------
    evidence, needed
        The evidence against the arm, and the evidence that eliminates it.
    count, mean
        Broadcasts of the arm, and their mean.
    leads, leader
        Broadcasts of the leader, and their mean.
    pulls_left
        The pulls that the group still has.
    """
    gap = leader - mean
    radius = math.sqrt(needed * (count + leads) / (2.0 * count * leads))
    broadcasts = count * (needed / max(1.0, evidence) - 1.0)  # if evidence grows as it did so far
    return (radius - gap) * pulls_left < broadcasts * (radius + gap)
