"""Results as a figure."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from partage.rules.seeing import with_sees

if TYPE_CHECKING:
    from partage.simulate.result import Result

BLUE, ORANGE, GREEN, INK, GREY = "#0072B2", "#D55E00", "#009E73", "#222222", "#8C8C8C"  # Okabe and Ito


def plot(result: "Result") -> Figure:
    """Draw each agent's regret and each arm's broadcasts, side by side."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    _agents(result, left)
    _arms(result, right)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    game = result.game
    size = f"{game.agents:,} agents, {len(game.arms)} arms, horizon {game.horizon:,}"
    rule = with_sees(result.rule.name, getattr(result.rule, "sees", None))
    figure.suptitle(f"{rule}: {size}; {result.runs:,} runs", fontsize=11)
    return figure


def _agents(result: "Result", axes: Axes) -> None:
    """Draw the individual regret before and after settlement, agents sorted by it."""
    agents, runs = result.game.agents, result.runs
    order = np.argsort(result.folded.regret)
    axes.plot(np.arange(1, agents + 1), result.folded.regret[order] / runs, ".", color=BLUE, label="regret")
    if result.settled:
        incentive = result.folded.incentive[order] / runs
        axes.plot(np.arange(1, agents + 1), incentive, ".", color=ORANGE, label="after settlement")
    if result.bars is not None:
        _own_bars(result, axes, order)
    elif result.two_ucb_regret is not None:
        axes.axhline(result.two_ucb_regret.mean, color=INK, linewidth=1, label="2-UCB alone")
    if result.best_alone is not None and result.bars is None:
        best = result.alone_regret[result.best_alone].mean
        axes.axhline(best, color=INK, linewidth=1, linestyle="--", label=f"best alone: {result.best_alone}")
    axes.set(title="Regret of each agent", xlabel="agents, sorted by regret", ylabel="mean regret")
    axes.legend(frameon=False)


def _own_bars(result: "Result", axes: Axes, order: NDArray[np.int64]) -> None:
    """Draw what each agent would lose alone, where agents differ."""
    for alone, label, colour in (("two-ucb", "2-UCB alone", INK), ("best", "best alone", GREY)):
        bars = [result.bar_of(alone, int(agent)) for agent in order]
        known = [bar.mean for bar in bars if bar is not None]
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
