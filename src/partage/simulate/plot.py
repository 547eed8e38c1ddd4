"""Results as a picture."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from partage.simulate.result import Result

BLUE, ORANGE, GREEN, INK, GREY = "#0072B2", "#D55E00", "#009E73", "#222222", "#8C8C8C"  # Okabe and Ito's


def plot(result: "Result") -> Figure:
    """Draw, side by side, what each agent lost and what each arm was broadcast."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    _agents(result, left)
    _arms(result, right)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    game = result.game
    size = f"{game.agents:,} agents, {len(game.arms)} arms, horizon {game.horizon:,}"
    figure.suptitle(f"{result.rule.name}: {size}; {result.runs:,} runs", fontsize=11)
    return figure


def _agents(result: "Result", axes: Axes) -> None:
    """Individual regret, agents sorted by it, before and after settlement."""
    agents, runs = result.game.agents, result.runs
    order = np.argsort(result.folded.regret)
    axes.plot(np.arange(1, agents + 1), result.folded.regret[order] / runs, ".", color=BLUE, label="regret")
    if result.settled:
        incentive = result.folded.incentive[order] / runs
        axes.plot(np.arange(1, agents + 1), incentive, ".", color=ORANGE, label="after settlement")
    if result.two_ucb_regret is not None:
        axes.axhline(result.two_ucb_regret.mean, color=INK, linewidth=1, label="2-UCB alone")
    axes.set(title="What each agent lost", xlabel="agents, by regret", ylabel="mean regret")
    axes.legend(frameon=False)


def _arms(result: "Result", axes: Axes) -> None:
    """Broadcasts of each arm, best on top, with two standard errors."""
    names = [arm.name for arm in result.arms][::-1]
    means = [arm.broadcasts.mean for arm in result.arms][::-1]
    errors = [2 * (arm.broadcasts.stderr or 0.0) for arm in result.arms][::-1]
    colours = [GREY if arm.eliminated > 0.5 else GREEN for arm in result.arms][::-1]
    axes.barh(names, means, xerr=errors, color=colours, ecolor=INK)
    axes.set(title="What was broadcast (grey: mostly eliminated)", xlabel="mean broadcasts")
