"""Trials of ways to stop smoking: who told how many successes of which treatment.

Hasselblad (1998), Medical Decision Making 18:37-43: 24 trials, 16,740 people, 4 treatments. The 50 rows of
`smoking.csv` equal `dat.hasselblad1998` of the R package metadat 1.2-0. Each trial compared two or three treatments:
its natural shares.
"""

import csv
from pathlib import Path

from partage.contrasts import Contrasts

FILE = Path(__file__).with_name("smoking.csv")
TREATMENTS = ("no contact", "self-help", "individual counselling", "group counselling")


def trials() -> dict[str, tuple[list[int], list[float]]]:
    """Return for each trial the people and the successes by treatment, in the form that `Contrasts` takes."""
    found: dict[str, tuple[list[int], list[float]]] = {}
    with FILE.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            people, successes = found.setdefault(row["trial"], ([0] * len(TREATMENTS), [0.0] * len(TREATMENTS)))
            arm = TREATMENTS.index(row["treatment"])
            people[arm], successes[arm] = int(row["people"]), float(row["successes"])
    return found


def contrasts_to_no_contact() -> dict[str, float]:
    """Return by how much more people stop with each treatment than without contact, within trials.

    >>> {name: round(value, 3) for name, value in contrasts_to_no_contact().items()}
    {'self-help': 0.013, 'individual counselling': 0.079, 'group counselling': 0.089}
    """
    found = Contrasts(list(trials().values()), len(TREATMENTS), TREATMENTS)
    return {name: found.between(arm, 0) for arm, name in enumerate(TREATMENTS) if arm}
