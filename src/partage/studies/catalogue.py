"""The catalogue of studies: Partage's own by name, a user's by the path of its file."""

import runpy
from collections.abc import Sequence
from pathlib import Path

from partage.errors import FileError, InputError, PartageError
from partage.studies import (
    attacks,
    balance,
    balanced,
    broadcasts,
    disagreement,
    frontier,
    frontier_viability,
    imbalanced,
    network,
    order,
    over_time,
    pace,
    profit,
    random,
)
from partage.studies.study import Study

_ALL = (
    balanced.STUDY,
    imbalanced.STUDY,
    profit.STUDY,
    over_time.STUDY,
    random.STUDY,
    balance.STUDY,
    order.STUDY,
)
STUDIES: dict[str, Study] = {study.name: study for study in _ALL}
BEYOND: dict[str, Sequence[Study]] = {  # not in the paper
    "attacks": (attacks.STUDY,),
    "frontier": (frontier.STUDY, frontier_viability.STUDY),
    "broadcasts": (broadcasts.STUDY,),
    "disagreement": (disagreement.STUDY,),
    "network": (network.STUDY,),
    "pace": (pace.STUDY,),
}
ONLY_IF_NAMED = ("frontier", "broadcasts", "network", "pace")  # they take long


def find(names: Sequence[str]) -> list[Study]:
    """Return the studies with these names or files; without names, all but those that take long.

    >>> [study.name for study in find(["balanced", "profit"])]
    ['balanced', 'profit']
    """
    if not names:
        beyond = [study for name, group in BEYOND.items() if name not in ONLY_IF_NAMED for study in group]
        return [*STUDIES.values(), *beyond]
    found: dict[str, Study] = {}
    for name in dict.fromkeys(names):
        for study in [read_study(Path(name))] if name.endswith(".py") else _named(name):
            if study.name in found:
                raise InputError(f"Two studies have the name {study.name!r}; names must differ.")
            found[study.name] = study
    return list(found.values())


def _named(name: str) -> Sequence[Study]:
    if name in BEYOND:
        return BEYOND[name]
    if name not in STUDIES:
        known = ", ".join((*STUDIES, *BEYOND))
        raise InputError(f"There is no study {name!r}; there are {known}, and files of your own (my_study.py).")
    return [STUDIES[name]]


def read_study(path: Path) -> Study:
    """Read a user's study: a Python file that sets `STUDY` to a `partage.studies.Study`."""
    if not path.is_file():
        raise FileError(f"The study file {path} does not exist.")
    try:
        study = runpy.run_path(str(path)).get("STUDY")
    except PartageError as error:
        raise FileError(f"{path}: {error}") from error
    except Exception as error:
        raise FileError(f"The study file {path} cannot be read: {type(error).__name__}: {error}.") from error
    if not isinstance(study, Study):
        raise FileError(f"The study file {path} has no STUDY; it must set STUDY to a partage.studies.Study.")
    return study
