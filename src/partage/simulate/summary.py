"""The figures of merit of one simulation as a page: tables, and sentences on what they mean."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from partage.simulate.agents_summary import agents_blocks, said_of_reports
from partage.simulate.estimate import Estimate, counted, percent, plain
from partage.simulate.in_unit import named
from partage.simulate.page import Grid, Page
from partage.unit import Unit

MOST_NAMES = 3  # agents that a sentence names
LEARNER = {"best": "the best learner", "two-ucb": "2-UCB"}


def summary(figures: dict[str, Any], sharing: str | None = None) -> Page:
    """Return the figures of merit of a simulation for people.

    Parameters
    ----------
    figures
        The simulation as JSON has it (`Result.as_dict`).
    sharing
        The name of the sharing pattern, if it has one.
    """
    metrics = figures["metrics"]
    scale = max(abs(figure["mean"]) for figure in metrics.values() if figure is not None)
    rows = [(name.replace("_", " "), *cells(figure, scale)) for name, figure in metrics.items()]
    mean = ", mean over agents" if "out" in figures else ""
    alone = [(f"2-UCB regret of one agent alone{mean}", *cells(figures["two_ucb_regret"]))]
    alone += [(label, *cells(figure)) for label, figure in _alone(figures)]
    table = Grid(("figure of merit", "mean", "± standard error"), rows + alone, parts=(len(rows),))
    said = [said_of_bars(figures), *_settled(figures), *_few(figures), *said_of_reports(figures)]
    return Page(
        _title(figures),
        _subtitle(figures, sharing),
        [table, [*said, *_differing(figures)], *agents_blocks(figures), _arms(figures)],
    )


def _arms(figures: dict[str, Any]) -> Grid:
    rows = []
    for arm in figures["arms"]:
        mean = "drawn" if arm["mean"] is None else f"{arm['mean']:.4g}"
        mean += "".join(f", {change['mean']:.4g} from step {change['step']:,}" for change in arm.get("changes", ()))
        rows.append((arm["name"], mean, *cells(arm["broadcasts"]), percent(arm["eliminated"])))
    return Grid(("arm", "mean", "broadcasts", "± standard error", "eliminated"), rows)


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
    words = ", ".join(f"{name} {plain(value)}" for name, value in {**stated, **parameters}.items())
    return f"{rule} with {words}" if words else rule


def _title(figures: dict[str, Any]) -> str:
    agents, arms = counted(figures["agents"], "agent"), counted(len(figures["arms"]), "arm")
    rule = described(figures["rule"], figures["balance"], figures.get("parameters", {}))
    horizons = {agent["horizon"] for agent in figures.get("by_agent", ())} or {figures["horizon"]}
    horizon = f"{min(horizons):,}" if len(horizons) == 1 else f"{min(horizons):,} to {max(horizons):,}"
    return f"{rule}: {agents}, {arms}, horizon {horizon}"


def _subtitle(figures: dict[str, Any], sharing: str | None) -> str:
    runs, seconds = counted(figures["runs"], "run"), f"{figures['seconds']:.2g} s"
    how = ", pull by pull by the reference" if figures.get("by_reference") else ""
    shared = "" if sharing is None else f"sharing {sharing}; "
    settled = f"{shared}settlement {figures['settlement']}"
    unit = f"; in {named(Unit(**figures['unit']))}" if "unit" in figures else ""
    return f"{settled}; {runs} from seed {figures['seed']} in {seconds}{how}{unit}"


def said_of_bars(figures: dict[str, Any]) -> str:
    """Say whether every agent does at least as well as a learner alone, and who does not."""
    learner = LEARNER.get(figures["alone"], str(figures["alone"]))
    if figures["individually_rational"] is None:
        if any("changes" in arm for arm in figures["arms"]):
            return "Individually rational: not judged, because arms change, and so no learner alone was played."
        if figures["two_ucb_regret"] is None:
            return "Individually rational: not judged, because no learner alone was played (--baseline plays them)."
        return (
            "Individually rational: not judged, because horizon times arms is too large to play "
            f"{learner} alone; --alone two-ucb compares with 2-UCB."
        )
    regret = "regret" if figures["settlement"] == "none" else "incentive regret"
    bar = f"{learner}'s"
    if "out" in figures:
        bar += " for that agent alone"
    elif figures["alone"] == "best":
        bar += f" ({figures['best_alone']})"
    if figures["individually_rational"]:
        return f"Individually rational: yes, no agent's mean {regret} is above {bar}."
    worse = figures["worse_off"]
    if len(worse) == 1:
        return f"Individually rational: no, the mean {regret} of {worse[0]['agent']} is above {bar}, {_by(worse[0])}."
    many = f"{len(worse):,} of {figures['agents']:,} agents"
    return f"Individually rational: no, the mean {regret} of {many} is above {bar}: {_who(worse)}."


def _by(one: dict[str, Any]) -> str:
    return f"by {Estimate(**one['by'])}"


def _who(worse: Sequence[dict[str, Any]]) -> str:
    """Name those who lose most, and by how much.

    >>> _who([{"agent": f"shop {n}", "by": {"mean": 9 - n, "stderr": None}} for n in range(1, 6)])
    'shop 1 by 8, shop 2 by 7, shop 3 by 6 and 2 more'
    """
    named = [f"{one['agent']} {_by(one)}" for one in worse[:MOST_NAMES]]
    rest = len(worse) - len(named)
    last = f"{rest:,} more" if rest else named.pop()
    return f"{', '.join(named)} and {last}"


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
            yield f"{word.capitalize()} in {percent(figures[word])} of runs{rest}."
    if scale is not None:
        most = figures["underwriting"]
        yield f"Paid: {_share(scale)} of all compensations; the controller loses at most {plain(most)}."
    if prepaid is not None:
        yield f"Charge of every agent: {_written(figures['pooled_charge'])} of the {plain(prepaid)} that it prepaid."
    if figures.get("covered") is not None:
        yield f"Covered: {_share(figures['covered'])} of the regret of explore pulls."
    if prepaid is not None:
        other = "two-ucb" if figures["alone"] == "best" else "best"
        against = figures["individually_rational_against"][other]
        if against is not None:
            bar = "2-UCB" if other == "two-ucb" else "the best learner"
            yield f"Individually rational against {bar} alone: {'yes' if against else 'no'}."


def _written(estimate: dict[str, float | None]) -> str:
    assert estimate["mean"] is not None
    return str(Estimate(estimate["mean"], estimate["stderr"]))


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
        size, error = abs(difference["mean"]), difference["stderr"]
        amount = f"{size:.3f}" if error is None else str(Estimate(size, error))
        who = f"{one['agents'][0]} is " if len(one["agents"]) > 1 else ""
        in_runs = f"In {one['runs']:,} of {counted(figures['runs'], 'run')}"
        yield f"{in_runs} the reports show that {one['text']}: {who}{amount} {word}."


def cells(estimate: dict[str, float | None] | None, scale: float = 0.0) -> tuple[str, str]:
    """Return the mean and the standard error of a figure in JSON as text (`Estimate.cells`)."""
    if estimate is None:
        return "–", "–"
    assert estimate["mean"] is not None
    return Estimate(estimate["mean"], estimate["stderr"]).cells(scale)
