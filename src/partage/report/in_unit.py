"""The figures of a simulation in the user's unit."""

from collections.abc import Mapping
from typing import Any

from partage.unit import Unit

# Keys of `Result.as_dict` that are differences of rewards, such as regret and payments; the others stay as they are.
AMOUNTS = ("two_ucb_regret", "best_alone_at_least", "prepaid", "pooled_charge", "underwriting", "broadcast_price")
OF_AGENTS = ("regret", "incentive_regret", "bar")


def in_unit(figures: Mapping[str, Any], unit: Unit) -> dict[str, Any]:
    """Return the figures of a simulation (`Result.as_dict`) in a unit, which is named under `unit`.

    Regret, payments and prices are differences of rewards, and so are offsets; means of arms are values.
    """

    def amount(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: amount(inner) for key, inner in value.items()}
        return None if value is None else unit.amount(value)

    def mean(value: float | None) -> float | None:
        return None if value is None else unit.value(value)

    found = dict(figures)
    found |= {key: amount(found[key]) for key in AMOUNTS if key in found}
    found["metrics"] = {
        name: figure if name == "broadcasts" else amount(figure) for name, figure in found["metrics"].items()
    }
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
    if "disagreement" in found:
        named = [
            one | {"difference": _signed(one["difference"], unit)} for one in found["disagreement"].get("named", ())
        ]
        found["disagreement"] = found["disagreement"] | {"named": named}
    found["unit"] = {"worst": unit.worst, "best": unit.best, "name": unit.name}
    return found


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
