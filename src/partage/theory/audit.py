"""The audit: check every promise of the paper on runs of a game."""

from dataclasses import asdict, replace
from typing import Any, NamedTuple

from partage.arms import bernoulli
from partage.checks import count
from partage.errors import InputError
from partage.game import Game
from partage.rules import BalancedETC
from partage.rules.rule import Rule
from partage.settle import Settlement
from partage.sharing import Sharing
from partage.simulate.chunk import checked_game
from partage.theory.audit_row import VIOLATED, AuditRow
from partage.theory.measure import Progress, measure
from partage.theory.settlement_checks import settlement_verdicts
from partage.theory.verdicts import event_verdicts, verdicts

__all__ = ["AuditRow", "Section", "as_dict", "audit", "check_auditable", "describe", "paper_audit", "usual_runs"]


class Section(NamedTuple):
    """The audit of one game."""

    title: str
    about: str
    runs: int
    rows: list[AuditRow]


def audit(
    game: Game,
    rule: Rule | None = None,
    runs: int = 100,
    seed: int = 0,
    jobs: int | None = None,
    progress: Progress | None = None,
    settlement: Settlement | None = None,
) -> list[AuditRow]:
    """Play a game and judge every promise of the paper on its runs.

    Parameters
    ----------
    game, rule, runs, seed, jobs
        As for `partage.play`. The default rule is Balanced-ETC with balance 1.
    progress
        Called with (work done, all work), in no particular unit.
    settlement
        A pool, dues, or another settlement with an underwriting (`partage.settle.settlement_for`), whose promises are
        then judged too.

    Raises
    ------
    InputError
        If an argument is not allowed, or the game is not the paper's (`Game.uneven`).

    Examples
    --------
    >>> from partage import Game, Sharing, bernoulli
    >>> game = Game(bernoulli([0.9, 0.1]), Sharing.round_robin(agents=10, arms=2), horizon=1000)
    >>> {row.label: row.verdict for row in audit(game, runs=50)}["Theorem_IR"]
    'holds'
    """
    rule = BalancedETC() if rule is None else rule
    check_auditable(checked_game(game))
    rows = verdicts(measure(game, rule, runs=runs, seed=seed, jobs=jobs, progress=progress))
    return rows if settlement is None else rows + settlement_verdicts(game, rule, settlement, runs, seed)


def check_auditable(game: Game) -> None:
    """Refuse a game that the paper proves nothing about."""
    if game.uneven:
        raise InputError(
            "The game has traits of agents, changes of arms or claim_steps; an audit is of the paper's game, without."
        )


PAPER_MEANS = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]
APPENDIX_MEANS = [0.95, 0.85, 0.75, 0.65, 0.55, 0.45, 0.35, 0.25, 0.15, 0.05]
SMALL_RUNS = 200  # runs of a small game per run of a large one
SMALL_PULLS = 20_000  # agents times horizon, up to which a game is small
RARE = ((5, 5), (10, 10), (100, 10), (10, 30), (10, 100), (2, 1000))  # agents and horizon


def paper_audit(
    runs: int = 100, seed: int = 0, jobs: int | None = None, progress: Progress | None = None
) -> list[Section]:
    """Audit the paper's two experiments, a small game that meets every premise, and games with rare events.

    Small games have 200 times as many runs.
    """
    runs = count("The number of runs", runs)
    seed = count("The seed", seed, at_least=0)
    many = runs * SMALL_RUNS
    balanced = Game(bernoulli(PAPER_MEANS), Sharing.round_robin(100, 10), 10**6)
    appendix = Game(bernoulli(APPENDIX_MEANS), Sharing.neighbours(20, 10, 2), 10**5)
    small = Game(bernoulli([0.9, 0.1]), Sharing.round_robin(10, 2), 1000)
    rare = [Game(bernoulli([0.5, 0.5]), Sharing.round_robin(agents, 2), steps) for agents, steps in RARE]
    short = Game(bernoulli([1.0] + [0.0] * 9), Sharing.round_robin(10, 10), 2)
    whole = [
        ("The paper's balanced experiment", "means 0.9, 0.8 … 0.0, round-robin", balanced, runs),
        ("The paper's appendix experiment", "means 0.95, 0.85 … 0.05, neighbours-2", appendix, runs),
        ("A small game that meets every premise", "means 0.9 and 0.1, round-robin", small, many),
    ]
    parts, rule = len(whole) + len(rare) + 1, BalancedETC()
    sections: list[Section] = []

    def part(at: int) -> Progress | None:
        if progress is None:
            return None
        return lambda done, total: progress(1000 * at + 1000 * done // total, 1000 * parts)

    for at, (title, words, game, played) in enumerate(whole):
        rows = audit(game, rule, runs=played, seed=seed, jobs=jobs, progress=part(at))
        sections.append(Section(title, f"{words}: {describe(game)}, balance 1", played, rows))
    rows = []
    for at, game in enumerate(rare, start=len(whole)):
        measured = measure(game, rule, runs=many, seed=seed, jobs=jobs, progress=part(at), only_event=True)
        size = f"M = {game.agents:,}, T = {game.horizon:,}"
        rows += [replace(row, says=f"{size}: {row.says}") for row in event_verdicts(measured)]
    about = "two arms of mean 0.5, round-robin: neither is eliminated, so almost everything is broadcast"
    sections.append(Section("Games in which E sometimes fails", about, many, rows))
    rows = audit(short, rule, runs=runs, seed=seed, jobs=jobs, progress=part(parts - 1))
    slip = (
        "T / log² T falls before it rises, so T = 2 counts as long enough; but 2-UCB cannot pull 10 arms in 2 steps."
    )
    rows = [replace(row, note=slip) if row.verdict == VIOLATED else row for row in rows if row.label == "range_ucb"]
    about = f"one arm of mean 1, nine of mean 0: {describe(short)}"
    sections.append(Section("A promise that fails as stated", about, runs, rows))
    if progress:
        progress(1000 * parts, 1000 * parts)
    return sections


def usual_runs(game: Game) -> int:
    """Return the default number of runs: 100, or 20,000 for a small game, in which rare events show up.

    >>> usual_runs(Game(bernoulli([0.9, 0.1]), Sharing.round_robin(10, 2), 1000))
    20000
    """
    return 100 * SMALL_RUNS if game.agents * game.horizon <= SMALL_PULLS else 100


def as_dict(sections: list[Section], seed: int, seconds: float) -> dict[str, Any]:
    """Return the audit as one JSON object."""
    audits = [
        {"title": title, "about": about, "runs": runs, "promises": [asdict(row) for row in rows]}
        for title, about, runs, rows in sections
    ]
    return {"seed": seed, "seconds": seconds, "audits": audits}


def describe(game: Game) -> str:
    """Return the size of a game in words."""
    agents, arms = game.agents, len(game.arms)
    plural = ("" if agents == 1 else "s"), ("" if arms == 1 else "s")
    return f"{arms} arm{plural[1]}, {agents:,} agent{plural[0]}, horizon {game.horizon:,}"
