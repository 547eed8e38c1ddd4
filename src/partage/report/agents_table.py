"""Agents that differ, in a terminal: what each is like, what it lost, and what it would have lost alone."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from partage.report.format import estimate, number
from partage.simulate.estimate import Estimate

MOST_ROWS = 30


def show_agents(console: Console, figures: dict[str, Any]) -> None:
    """Print one row per agent, or per kind of agent if there are many; nothing for the paper's game."""
    agents = figures.get("by_agent", ())
    if not agents:
        return
    kinds = _kinds(agents)
    console.print(_each(agents) if len(agents) <= MOST_ROWS else _by_kind(kinds[:MOST_ROWS]))
    if len(agents) > MOST_ROWS and len(kinds) > MOST_ROWS:
        console.print(Text(f"and {len(kinds) - MOST_ROWS:,} more kinds of agents; --json lists every agent", "dim"))
    console.print()


def said_of_bars(agents: Sequence[dict[str, Any]], learner: str) -> str:
    """Say whether every agent gains, compared with a learner alone on its own arms."""
    regret = "regret" if agents[0]["incentive_regret"] is None else "incentive regret"
    above = {agent["name"]: _lost(agent).mean - agent["bar"]["mean"] for agent in agents}
    worst = max(above, key=lambda name: above[name])
    losing = sum(excess > 0 for excess in above.values())
    if not losing:
        return f"Individually rational: yes, no agent's mean {regret} is above {learner}'s for that agent alone."
    return (
        f"Individually rational: no, the mean {regret} of {losing:,} of {len(agents):,} agents is above {learner}'s "
        f"for that agent alone; that of {worst} most, by {number(above[worst])}."
    )


def said_of_reports(figures: dict[str, Any]) -> Iterator[str]:
    """Say how many reports were still out at the end."""
    out = figures.get("out")
    if out is not None and out["mean"]:
        yield f"Never told: the rewards of {estimate(Estimate(**out))} explore pulls per run."


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


def _each(agents: Sequence[dict[str, Any]]) -> Table:
    settled = agents[0]["incentive_regret"] is not None
    table = _new_table("agent", "differs in", "horizon", "regret", *(["incentive regret"] * settled), "alone")
    for agent in agents:
        lost = [agent["regret"], *([agent["incentive_regret"]] * settled), agent["bar"]]
        cells = ("–" if one is None else estimate(Estimate(**one)) for one in lost)
        table.add_row(Text(agent["name"]), Text(traits_in_words(agent)), f"{agent['horizon']:,}", *cells)
    return table


def _by_kind(kinds: Sequence[Sequence[dict[str, Any]]]) -> Table:
    settled = kinds[0][0]["incentive_regret"] is not None
    after = ["mean incentive regret", "largest"] * settled
    table = _new_table("agents", "differ in", "horizon", "mean regret", "largest", *after, "alone")
    for kind in kinds:
        first, cells = kind[0], []
        for name in ("regret", *(["incentive_regret"] * settled)):
            means = [agent[name]["mean"] for agent in kind]
            cells += [number(sum(means) / len(means)), number(max(means))]
        bar = "–" if first["bar"] is None else estimate(Estimate(**first["bar"]))
        many = first["name"] if len(kind) == 1 else f"{len(kind):,}: {first['name']} …"
        table.add_row(Text(many), Text(traits_in_words(first)), f"{first['horizon']:,}", *cells, bar)
    return table


def _kinds(agents: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the agents by what they are like, the largest group first."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    for agent in agents:
        kinds.setdefault(repr((agent["pace"], agent["horizon"], agent["traits"])), []).append(agent)
    return sorted(kinds.values(), key=len, reverse=True)


def _lost(agent: dict[str, Any]) -> Estimate:
    return Estimate(**(agent["incentive_regret"] or agent["regret"]))


def _new_table(first: str, second: str, *numbers: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(first)
    table.add_column(second)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table
