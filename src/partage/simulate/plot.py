"""Results as a figure."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from partage.rules.seeing import with_sees
from partage.simulate.estimate import counted
from partage.simulate.in_unit import amount, named

if TYPE_CHECKING:
    from partage.simulate.compare import Comparison
    from partage.simulate.result import Result

MOST_NAMES = 20
BLUE, ORANGE, GREEN, INK, GREY = "#0072B2", "#D55E00", "#009E73", "#222222", "#8C8C8C"  # Okabe and Ito
PALETTE = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", INK)


def plot(result: "Result") -> Figure:
    """Draw the regret over time, each agent's regret and each arm's broadcasts, side by side."""
    drawn = [_agents, _arms]
    if len(result.checkpoints):
        drawn.insert(0, _over_time)
    figure = Figure(figsize=(5 * len(drawn), 4.2), layout="constrained")
    for draw, axes in zip(drawn, figure.subplots(1, len(drawn)), strict=True):
        draw(result, axes)
        axes.spines[["top", "right"]].set_visible(False)
    game = result.game
    size = f"{counted(game.agents, 'agent')}, {counted(len(game.arms), 'arm')}, horizon {game.horizon:,}"
    rule = with_sees(result.rule.name, getattr(result.rule, "sees", None))
    figure.suptitle(f"{rule}: {size}; {counted(result.runs, 'run')}", fontsize=11)
    return figure


def _over_time(result: "Result", axes: Axes) -> None:
    draw_curve(result, axes, BLUE, None)
    axes.set(
        title="Overall regret over time", xlabel="step", ylabel=f"mean regret{_in(result)}, with two standard errors"
    )
    axes.set_xscale("log")


def _factor(result: "Result") -> float:
    """Return what one unit of reward is in the unit of the game."""
    return result.game.unit.amount(1.0) if result.game.unit else 1.0


def _in(result: "Result") -> str:
    return f" in {named(result.game.unit)}" if result.game.unit else ""


def draw_curve(result: "Result", axes: Axes, colour: str, label: str | None) -> None:
    """Draw the overall regret up to each checkpoint, with two standard errors to either side."""
    factor = _factor(result)
    means = factor * np.array([point.mean for point in result.curve])
    errors = 2 * factor * np.array([point.stderr or 0.0 for point in result.curve])
    axes.plot(result.checkpoints, means, color=colour, label=label)
    axes.fill_between(result.checkpoints, means - errors, means + errors, color=colour, alpha=0.2, linewidth=0)


def _agents(result: "Result", axes: Axes) -> None:
    """Draw the individual regret before and after settlement, agents sorted by it, with names if they are few."""
    agents, each = result.game.agents, _factor(result) / result.runs
    order = np.argsort(result.folded.regret)
    axes.plot(np.arange(1, agents + 1), each * result.folded.regret[order], ".", color=BLUE, label="regret")
    if result.settled:
        incentive = each * result.folded.incentive[order]
        axes.plot(np.arange(1, agents + 1), incentive, ".", color=ORANGE, label="after settlement")
    if result.bars is not None:
        _own_bars(result, axes, order)
    elif result.two_ucb_regret is not None:
        axes.axhline(_factor(result) * result.two_ucb_regret.mean, color=INK, linewidth=1, label="2-UCB alone")
    if result.best_alone is not None and result.bars is None:
        best = _factor(result) * result.alone_regret[result.best_alone].mean
        axes.axhline(best, color=INK, linewidth=1, linestyle="--", label=f"best alone: {result.best_alone}")
    axes.set(title="Regret of each agent", xlabel="agents, sorted by regret", ylabel=f"mean regret{_in(result)}")
    if agents <= MOST_NAMES:
        names = [result.game.agent_name(int(agent)) for agent in order]
        axes.set_xticks(np.arange(1, agents + 1), names, rotation=45, ha="right", fontsize=8)
    axes.legend(frameon=False)


def _own_bars(result: "Result", axes: Axes, order: NDArray[np.int64]) -> None:
    """Draw what each agent would lose alone, where agents differ."""
    for alone, label, colour in (("two-ucb", "2-UCB alone", INK), ("best", "best alone", GREY)):
        bars = [result.bar_of(alone, int(agent)) for agent in order]
        known = [_factor(result) * bar.mean for bar in bars if bar is not None]
        if known:
            axes.plot(np.arange(1, len(known) + 1), known, "_", color=colour, label=label)


def _arms(result: "Result", axes: Axes) -> None:
    """Draw the broadcasts of each arm with two standard errors, the first arm on top."""
    names = [arm.name for arm in result.arms][::-1]
    means = [arm.broadcasts.mean for arm in result.arms][::-1]
    errors = [2 * (arm.broadcasts.stderr or 0.0) for arm in result.arms][::-1]
    colours = [GREY if arm.eliminated > 0.5 else GREEN for arm in result.arms][::-1]
    axes.barh(names, means, xerr=errors, color=colours, ecolor=INK)
    axes.set(title="Broadcasts of each arm (grey: eliminated in most runs)", xlabel="mean broadcasts")


def plot_comparison(comparison: "Comparison") -> Figure:
    """Draw the regret over time of every rule, and the overall regret and broadcasts of each, with two errors."""
    results = comparison.results
    colours = [PALETTE[place % len(PALETTE)] for place in range(len(results))]
    figure = Figure(figsize=(15, 4.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for (name, result), colour in zip(results.items(), colours, strict=True):
        if len(result.checkpoints):
            draw_curve(result, left, colour, name)
    unit = _in(results[comparison.first])
    left.set(title="Overall regret over time", xlabel="step", ylabel=f"mean regret{unit}, with two standard errors")
    left.set_xscale("log")
    if left.lines:
        left.legend(frameon=False)
    names = list(results)[::-1]
    for axes, figure_of_merit in ((middle, "overall_regret"), (right, "broadcasts")):
        counts = figure_of_merit == "broadcasts"
        found = [getattr(results[name], figure_of_merit) for name in names]
        found = found if counts else [amount(one, results[comparison.first].game.unit) for one in found]
        errors = [2 * (one.stderr or 0.0) for one in found]
        axes.barh(names, [one.mean for one in found], xerr=errors, color=colours[::-1], ecolor=INK)
        title, inside = figure_of_merit.replace("_", " ").capitalize(), "" if counts else unit
        axes.set(title=title, xlabel=f"mean{inside}, with two standard errors")
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure
