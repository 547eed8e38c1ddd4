"""The figures of a simulation in the user's unit: JSON objects, estimates and data frames."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from partage.simulate.estimate import Estimate
from partage.simulate.fold import FIGURES
from partage.unit import Unit

if TYPE_CHECKING:
    import polars as pl

# Keys of `Result.as_dict` that are differences of rewards, such as regret and payments; the others stay as they are.
AMOUNTS = ("two_ucb_regret", "best_alone_at_least", "prepaid", "pooled_charge", "underwriting", "broadcast_price")
OF_AGENTS = ("regret", "incentive_regret", "bar")
IN_FRAMES = {name for name in FIGURES if name != "broadcasts"} | {
    f"{name}{error}" for name in OF_AGENTS for error in ("", "_stderr")
}


def named(unit: Unit | None) -> str:
    """Return the name of a unit, for a title or an axis.

    >>> named(Unit(60, 0, "minutes")), named(Unit(0, 10)), named(None)
    ('minutes', 'the unit of the game', '')
    """
    return "" if unit is None else unit.name or "the unit of the game"


def amount(value: Estimate, unit: Unit | None) -> Estimate:
    """Return an estimate of a difference of rewards, such as regret, in a unit."""
    return value if unit is None else value.times(unit.amount(1.0))


def frame_in_unit(frame: "pl.DataFrame", unit: Unit | None) -> "pl.DataFrame":
    """Return a data frame of a result (`Result.frame`) in a unit."""
    if unit is None:
        return frame
    return frame.with_columns(frame[name] * unit.amount(1.0) for name in frame.columns if name in IN_FRAMES)


def comparison_in_unit(figures: Mapping[str, Any], unit: Unit | None) -> dict[str, Any]:
    """Return a comparison of rules (`Comparison.as_dict`) in a unit."""
    if unit is None:
        return dict(figures)
    differences = {name: _metrics(found, unit) for name, found in figures["differences"].items()}
    results = {name: in_unit(found, unit) for name, found in figures["results"].items()}
    return {**figures, "results": results, "differences": differences}


def in_unit(figures: Mapping[str, Any], unit: Unit | None) -> dict[str, Any]:
    """Return the figures of a simulation (`Result.as_dict`) in a unit, which is named under `unit`.

    Regret, payments and prices are differences of rewards, and so are offsets; means of arms are values.
    """
    if unit is None:
        return dict(figures)

    def amount(value: Any) -> Any:
        return _amounts(value, unit)

    def mean(value: float | None) -> float | None:
        return None if value is None else unit.value(value)

    found = dict(figures)
    found |= {key: amount(found[key]) for key in AMOUNTS if key in found}
    found["metrics"] = _metrics(found["metrics"], unit)
    found["alone_regret"] = amount(found["alone_regret"])
    found["arms"] = [
        arm
        | {"mean": mean(arm["mean"])}
        | ({"changes": [one | {"mean": mean(one["mean"])} for one in arm["changes"]]} if "changes" in arm else {})
        for arm in found["arms"]
    ]
    if "by_agent" in found:
        found["by_agent"] = [
            agent | {key: amount(agent[key]) for key in OF_AGENTS} | {"traits": _traits(agent["traits"], unit)}
            for agent in found["by_agent"]
        ]
    if "worse_off" in found:
        found["worse_off"] = [one | {"by": amount(one["by"])} for one in found["worse_off"]]
    if "disagreement" in found:
        named = [
            one | {"difference": _signed(one["difference"], unit)} for one in found["disagreement"].get("named", ())
        ]
        found["disagreement"] = found["disagreement"] | {"named": named}
    found["unit"] = {"worst": unit.worst, "best": unit.best, "name": unit.name}
    return found


def _amounts(value: Any, unit: Unit) -> Any:
    """Return a difference of rewards, or all of a JSON object."""
    if isinstance(value, Mapping):
        return {key: _amounts(inner, unit) for key, inner in value.items()}
    return None if value is None else unit.amount(value)


def _metrics(metrics: Mapping[str, Any], unit: Unit) -> dict[str, Any]:
    return {name: one if name == "broadcasts" else _amounts(one, unit) for name, one in metrics.items()}


def _traits(traits: Mapping[str, Any], unit: Unit) -> dict[str, Any]:
    changed = dict(traits)
    if "offset" in traits:
        changed["offset"] = traits["offset"] * (unit.best - unit.worst)
    if "means" in traits:
        changed["means"] = [unit.value(mean) for mean in traits["means"]]
    return changed


def _signed(difference: Mapping[str, Any], unit: Unit) -> dict[str, Any]:
    """Return a difference of means, whose sign turns if less is better."""
    error = difference["stderr"]
    mean = difference["mean"] * (unit.best - unit.worst)
    return {"mean": mean, "stderr": None if error is None else unit.amount(error)}
