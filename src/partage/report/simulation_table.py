"""The figures of merit of a simulation in a terminal."""

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from partage.report.agents_table import said_of_bars, said_of_reports, show_agents
from partage.report.format import estimate
from partage.simulate.estimate import Estimate


def show_simulation(console: Console, figures: dict[str, Any], sharing: str) -> None:
    """Print a simulation's figures of merit.

    Parameters
    ----------
    console
        Where to print.
    figures
        The simulation as JSON has it (`Result.as_dict`).
    sharing
        The name of the sharing pattern.
    """
    console.print(Text(_title(figures), style="bold"))
    console.print(Text(_subtitle(figures, sharing), style="dim"), "", sep="\n")

    table = _new_table("figure of merit", "mean", "± standard error")
    for name, figure in figures["metrics"].items():
        table.add_row(name.replace("_", " "), *_cells(figure))
    table.add_section()
    mean = ", mean over agents" if "by_agent" in figures else ""
    table.add_row(f"2-UCB regret of one agent alone{mean}", *_cells(figures["two_ucb_regret"]))
    for label, figure in _alone(figures):
        table.add_row(label, *_cells(figure))
    said = (_rational(figures), *_settled(figures), *_few(figures), *said_of_reports(figures), *_differing(figures))
    console.print(table, "", *(Text(sentence) for sentence in said), "", sep="\n")
    show_agents(console, figures)

    table = _new_table("arm", "mean", "broadcasts", "± standard error", "eliminated")
    for arm in figures["arms"]:
        mean = "drawn" if arm["mean"] is None else f"{arm['mean']:.4g}"
        mean += "".join(f", {change['mean']:.4g} from step {change['step']:,}" for change in arm.get("changes", ()))
        table.add_row(Text(arm["name"]), mean, *_cells(arm["broadcasts"]), f"{arm['eliminated']:.0%}")
    console.print(table)


def described(rule: str, balance: float | str | None, parameters: Mapping[str, Any] = MappingProxyType({})) -> str:
    """Return a rule's name, with its balance if it has one, and with these other parameters.

    Examples
    --------
    >>> described("balanced-etc", 2.0), described("two-ucb", None)
    ('balanced-etc with balance 2', 'two-ucb')
    >>> described("balanced-glr", None, {"lead": 2.0, "evidence": "betting"})
    'balanced-glr with lead 2, evidence betting'
    """
    stated = {} if balance is None else {"balance": balance}
    words = ", ".join(f"{name} {_plain(value)}" for name, value in {**stated, **parameters}.items())
    return f"{rule} with {words}" if words else rule


def _new_table(first: str, *numbers: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(first)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table


def _title(figures: dict[str, Any]) -> str:
    agents, arms = _counted(figures["agents"], "agent"), _counted(len(figures["arms"]), "arm")
    rule = described(figures["rule"], figures["balance"], figures.get("parameters", {}))
    horizons = {agent["horizon"] for agent in figures.get("by_agent", ())} or {figures["horizon"]}
    horizon = f"{min(horizons):,}" if len(horizons) == 1 else f"{min(horizons):,} to {max(horizons):,}"
    return f"{rule}: {agents}, {arms}, horizon {horizon}"


def _subtitle(figures: dict[str, Any], sharing: str) -> str:
    runs, seconds = _counted(figures["runs"], "run"), f"{figures['seconds']:.2g} s"
    how = ", pull by pull by the reference" if figures.get("by_reference") else ""
    settled = f"sharing {sharing}; settlement {figures['settlement']}"
    unit = f"; in {figures['unit']['name'] or 'the unit of the game'}" if "unit" in figures else ""
    return f"{settled}; {runs} from seed {figures['seed']} in {seconds}{how}{unit}"


def _rational(figures: dict[str, Any]) -> str:
    regret = "regret" if figures["settlement"] == "none" else "incentive regret"
    if figures["individually_rational"] is None:
        if any("changes" in arm for arm in figures["arms"]):
            return "Individually rational: not judged, because arms change, and so no learner alone was played."
        if figures["two_ucb_regret"] is None:
            return "Individually rational: not judged, because no learner alone was played (--baseline plays them)."
        return (
            "Individually rational: not judged, because horizon times arms is too large to play "
            f"{_learner(figures)} alone; --alone two-ucb compares with 2-UCB."
        )
    which = f" ({figures['best_alone']})" if figures["alone"] == "best" else ""
    bar = f"{_learner(figures)}'s{which}"
    if "by_agent" in figures:
        return said_of_bars(figures["by_agent"], _learner(figures))
    if figures["individually_rational"]:
        return f"Individually rational: yes, no agent's mean {regret} is above {bar}."
    return f"Individually rational: no, some agent's mean {regret} is above {bar}."


def _learner(figures: dict[str, Any]) -> str:
    """Return the learner that agents are compared with."""
    return {"best": "the best learner", "two-ucb": "2-UCB"}.get(figures["alone"], str(figures["alone"]))


def _alone(figures: dict[str, Any]) -> Iterator[tuple[str, dict[str, float | None]]]:
    """Return the rows of learners alone beyond 2-UCB: what was played, or what the best costs at least."""
    played, best = figures["alone_regret"], figures["best_alone"]
    if best is not None:
        yield f"best alone: {best}", played[best]
        return
    if figures["alone"] in played and figures["alone"] != "two-ucb":
        yield f"{figures['alone']} regret of one agent alone", played[figures["alone"]]
    if figures["best_alone_at_least"] is not None:
        yield (
            "best alone, at least (formula)",
            {"mean": float(f"{figures['best_alone_at_least']:.3g}"), "stderr": None},
        )


def _settled(figures: dict[str, Any]) -> Iterator[str]:
    """Say in how many runs a settlement was viable and finished, and what a limited loss and a pool come to."""
    prepaid, scale = figures.get("prepaid"), figures.get("scale")
    rest = "the controller pays the rest" if scale is None else "what cannot be paid is not"
    unpaid = f"in the others every agent pays its ceiling, and {rest}"
    for word, otherwise in (
        ("viable", unpaid if prepaid is None else "in the others compensations are cut"),
        ("finished", "in the others more than one arm was left, whose regret is not covered"),
    ):
        if figures.get(word) is not None:
            rest = f"; {otherwise}" if figures[word] < 1 else ""
            yield f"{word.capitalize()} in {figures[word]:.0%} of runs{rest}."
    if scale is not None:
        most = figures["underwriting"]
        yield f"Paid: {_share(scale)} of all compensations; the controller loses at most {_plain(most)}."
    if prepaid is not None:
        yield f"Charge of every agent: {_written(figures['pooled_charge'])} of the {_plain(prepaid)} that it prepaid."
    if figures.get("covered") is not None:
        yield f"Covered: {_share(figures['covered'])} of the regret of explore pulls."
    if prepaid is not None:
        other = "two-ucb" if figures["alone"] == "best" else "best"
        against = figures["individually_rational_against"][other]
        if against is not None:
            bar = "2-UCB" if other == "two-ucb" else "the best learner"
            yield f"Individually rational against {bar} alone: {'yes' if against else 'no'}."


def _written(estimate: dict[str, float | None]) -> str:
    mean, error = _cells(estimate)
    return mean if error in ("–", "0") else f"{mean} ± {error}"


def _share(estimate: dict[str, float | None]) -> str:
    mean, error = estimate["mean"], estimate["stderr"]
    return f"{mean:.1%}" if not error else f"{mean:.1%} ± {error:.1%}"


def _few(figures: dict[str, Any]) -> Iterator[str]:
    """Say which arms too few agents share, if some may lie."""
    if arms := figures.get("too_few_sharers"):
        yield (
            f"Not settled: {', '.join(arms)}. An arm needs more than {figures['parameters']['tolerate']} sharers, "
            "which is how many may lie."
        )


def _differing(figures: dict[str, Any]) -> Iterator[str]:
    """Say in how many runs the reports show that agents see arms differently, and who is named most often."""
    if (found := figures.get("disagreement")) is None:
        return
    if not found["compared"]:
        yield "In no run did two agents tell the same arm, so nothing shows whether they agree."
    elif not found["warned"]:
        yield "In no run do the reports show that agents see arms differently."
    for one in found["named"]:
        difference = one["difference"]
        word = "lower" if difference["mean"] < 0 else "higher"
        amount = estimate(Estimate(abs(difference["mean"]), difference["stderr"]))
        who = f"{one['agents'][0]} is " if len(one["agents"]) > 1 else ""
        in_runs = f"In {one['runs']:,} of {_counted(figures['runs'], 'run')}"
        yield f"{in_runs} the reports show that {one['text']}: {who}{amount} {word}."


def _cells(estimate: dict[str, float | None] | None) -> tuple[str, str]:
    """Return a mean and its standard error: the error to two digits, the mean to the same place."""
    if estimate is None:
        return "–", "–"
    mean, error = estimate["mean"], estimate["stderr"]
    assert mean is not None
    if abs(mean) + (error or 0.0) < 1e-9:  # rounding alone
        return "0", "–" if error is None else "0"
    if not error or error < 1e-12 * abs(mean):  # rounding alone
        return _plain(mean), "–" if error is None else "0"
    digits = min(max(0, 1 - math.floor(math.log10(error))), 12)
    return f"{mean:,.{digits}f}", f"{error:,.{digits}f}"


def _plain(value: float | str) -> str:
    """Return a number without an error: whole numbers whole, others to six digits."""
    if isinstance(value, str):
        return value
    if math.isinf(value):
        return "inf"
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1e6 else f"{value:,.6g}"


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
