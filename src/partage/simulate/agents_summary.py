"""Agents that differ or have names, as tables: what each is like, what it lost, and what it would have lost alone."""

from collections.abc import Iterator, Sequence
from typing import Any

from partage.simulate.estimate import Estimate, plain
from partage.simulate.page import Grid

MOST_ROWS = 30


def agents_blocks(figures: dict[str, Any]) -> Iterator[Grid | list[str]]:
    """Return a table with one row per agent, or per kind of agent if there are many; nothing if none is listed."""
    agents = figures.get("by_agent", ())
    if not agents:
        return
    kinds = _kinds(agents)
    if len(agents) <= MOST_ROWS or len(kinds) == len(agents):
        yield _each(agents[:MOST_ROWS])
        left, what = len(agents) - MOST_ROWS, "agents"
    else:
        yield _by_kind(kinds[:MOST_ROWS])
        left, what = len(kinds) - MOST_ROWS, "kinds of agents"
    if left > 0:
        yield [f"and {left:,} more {what}; --json lists every agent"]


def said_of_reports(figures: dict[str, Any]) -> Iterator[str]:
    """Say how many reports were still out at the end."""
    out = figures.get("out")
    if out is not None and out["mean"]:
        yield f"Never told: the rewards of {Estimate(**out)} explore pulls per run."


def traits_in_words(agent: dict[str, Any]) -> str:
    """Return what makes an agent differ.

    >>> traits_in_words({"pace": 0.5, "traits": {"delay": 3.0, "offset": -0.1}})
    'pace 0.5, delay 3, offset -0.1'
    """
    words = [] if agent["pace"] == 1 else [f"pace {agent['pace']:g}"]
    for name, value in agent["traits"].items():
        if isinstance(value, dict):
            of = "" if value["of"] == "all" else f" of {value['of']}"
            words.append(f"{value['kind']} delay {value['steps']:g}{of}")
        elif isinstance(value, list):
            shown = ", ".join(f"{mean:.4g}" for mean in value[:4])
            words.append(f"{name} {shown}{' …' if len(value) > 4 else ''}")
        else:
            words.append(f"{name} {value:+g}" if name == "offset" else f"{name} {value:g}")
    return ", ".join(words)


def _each(agents: Sequence[dict[str, Any]]) -> Grid:
    settled, differ = agents[0]["incentive_regret"] is not None, any(map(traits_in_words, agents))
    rows = []
    for agent in agents:
        lost = [agent["regret"], *([agent["incentive_regret"]] * settled), agent["bar"]]
        words = (agent["name"], *([traits_in_words(agent)] * differ))
        rows.append(
            (*words, f"{agent['horizon']:,}", *("–" if one is None else str(Estimate(**one)) for one in lost))
        )
    words = ("agent", *(["differs in"] * differ))
    return Grid((*words, "horizon", "regret", *(["incentive regret"] * settled), "alone"), rows, words=len(words))


def _by_kind(kinds: Sequence[Sequence[dict[str, Any]]]) -> Grid:
    settled = kinds[0][0]["incentive_regret"] is not None
    rows = []
    for kind in kinds:
        first, lost = kind[0], []
        for name in ("regret", *(["incentive_regret"] * settled)):
            means = [agent[name]["mean"] for agent in kind]
            lost += [_rounded(sum(means) / len(means)), _rounded(max(means))]
        bar = "–" if first["bar"] is None else str(Estimate(**first["bar"]))
        many = first["name"] if len(kind) == 1 else f"{len(kind):,}: {first['name']} …"
        rows.append((many, traits_in_words(first), f"{first['horizon']:,}", *lost, bar))
    after = ["mean incentive regret", "largest"] * settled
    return Grid(("agents", "differ in", "horizon", "mean regret", "largest", *after, "alone"), rows, words=2)


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else plain(float(f"{value:.3g}"))


def _kinds(agents: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the agents by what they are like, the largest group first."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    for agent in agents:
        kinds.setdefault(repr((agent["pace"], agent["horizon"], agent["traits"])), []).append(agent)
    return sorted(kinds.values(), key=len, reverse=True)
