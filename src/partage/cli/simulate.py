"""Commands that play games on this machine: simulate, audit, reproduce, studies."""

import json
import math
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partage.cli.terminal import INTERRUPTED, interruptible, load, progress_bar
from partage.errors import InputError

if TYPE_CHECKING:
    from partage.gamefile import GameFile
    from partage.rules import KLETC, BalancedETC, BalancedGLR, NoProtocol, TwoUCB

HOW_TO_GIVE_A_GAME = (
    "give a game file, as in: partage simulate game.toml, "
    "or flags, as in: partage simulate --means 0.9,0.8,0.7 --agents 30 --horizon 1e6"
)


# --- partage simulate ---------------------------------------------------------------------------------------

GAME, PLAY, OUTPUT = "The game, without a file", "How it is played", "Output"


def simulate(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="GAME.toml", help="A game file; the flags of a game must then be absent."),
    ] = None,
    means: Annotated[
        str | None, typer.Option(metavar="0.9,0.8,...", help="Mean reward of each arm.", rich_help_panel=GAME)
    ] = None,
    agents: Annotated[str | None, typer.Option(metavar="M", help="How many agents.", rich_help_panel=GAME)] = None,
    horizon: Annotated[str | None, typer.Option(metavar="T", help="Pulls per agent.", rich_help_panel=GAME)] = None,
    sharing: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="Who shares what: round-robin (default), dealt, scarce-best, neighbours-K, random, "
            "everyone-everything, nobody-nothing.",
            rich_help_panel=GAME,
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            metavar="fixed|shuffled",
            help="Whether agents act in one order (default) or in a new one each run.",
            rich_help_panel=GAME,
        ),
    ] = None,
    reward: Annotated[
        str | None,
        typer.Option(
            metavar="bernoulli|constant",
            help="What an arm pays, given its mean: bernoulli by default. A game file knows more kinds.",
            rich_help_panel=GAME,
        ),
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="balanced-etc (default), unbalanced-etc, balanced-glr, kl-etc, two-ucb, full-sharing, no-protocol. "
            "Comes before the file's rule; the file's balance and settlement then hold where the rule has them.",
            rich_help_panel=PLAY,
        ),
    ] = None,
    balance: Annotated[
        str | None,
        typer.Option(
            metavar="B",
            help="The balance of balanced-etc, kl-etc and full-sharing: at least 1, the default, or inf. Comes "
            "before the file's.",
            rich_help_panel=PLAY,
        ),
    ] = None,
    settlement: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Who gets and pays what: paper (default where it is defined), equal-share, equal-share-expected, "
            "none. Comes before the file's.",
            rich_help_panel=PLAY,
        ),
    ] = None,
    fee: Annotated[
        str | None,
        typer.Option(
            metavar="F",
            help="What the controller of an equal-share settlement takes on top, as a part of all compensations: "
            "0 by default. Comes before the file's.",
            rich_help_panel=PLAY,
        ),
    ] = None,
    runs: Annotated[str, typer.Option(metavar="R", help="Independent runs.", rich_help_panel=PLAY)] = "100",
    seed: Annotated[
        str, typer.Option(metavar="S", help="The same seed gives the same result.", rich_help_panel=PLAY)
    ] = "0",
    baseline: Annotated[
        bool | None,
        typer.Option(
            "--baseline/--no-baseline",
            help="Whether to play 2-UCB alone too; by default if R times T is at most 1e9.",
            rich_help_panel=PLAY,
        ),
    ] = None,
    jobs: Annotated[
        str | None, typer.Option(metavar="J", help="Threads; all cores by default.", rich_help_panel=PLAY)
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object in place of the tables.", rich_help_panel=OUTPUT)
    ] = False,
) -> None:
    """Play a game and print its figures of merit.

    The game is given either by a file or by flags:

    [bold]partage simulate game.toml[/bold]

    [bold]partage simulate --means 0.9,0.8,0.7 --agents 30 --horizon 1e6 --balance 1[/bold]
    """
    load("simulate.play")
    from partage.gamefile import game_by_flags, number, read_game
    from partage.simulate.play import play

    flags = {"means": means, "agents": agents, "horizon": horizon}
    more = {"sharing": sharing, "order": order, "reward": reward}
    given = {name: value for name, value in (flags | more).items() if value is not None}
    if file is not None:
        if given:
            raise InputError(
                f"The game is given twice, by {file} and by {_flags(given)}; it must be by a file or by flags."
            )
        played = read_game(file)
    else:
        missing = [name for name in flags if name not in given]
        if len(missing) == len(flags):
            raise InputError(f"There is no game; {HOW_TO_GIVE_A_GAME}.")
        if missing:
            raise InputError(f"The game lacks {_flags(missing)}; {HOW_TO_GIVE_A_GAME}.")
        played = game_by_flags(**given)

    name, chosen, settled, taken = _choose(file, played, rule, balance, settlement, fee)
    with progress_bar() as progress:
        result = interruptible(
            lambda: play(
                played.game,
                chosen,
                runs=number(runs),  # type: ignore[arg-type]  # play says what is allowed
                seed=number(seed),  # type: ignore[arg-type]
                settlement=settled,
                fee=taken,
                baseline=baseline,
                jobs=None if jobs is None else number(jobs),  # type: ignore[arg-type]
                progress=progress,
            )
        )
    figures = result.as_dict(rule=name)
    if as_json:
        typer.echo(json.dumps(figures, indent=2, allow_nan=False))
    else:
        _show(figures, played.sharing)


def _flags(names: Any) -> str:
    return ", ".join(f"--{name}" for name in names)


def _choose(
    file: Path | None,
    played: "GameFile",
    rule: str | None = None,
    balance: str | None = None,
    settlement: str | None = None,
    fee: str | None = None,
) -> tuple[str, "BalancedETC | KLETC | BalancedGLR | TwoUCB | NoProtocol", str, Any]:
    """Return the rule's name, the rule, the settlement and its fee: flags first, then the file, then the defaults."""
    from partage.gamefile import at, number
    from partage.rules import make_rule
    from partage.settle import settlement_for

    by_flags = rule is not None or balance is not None
    with nullcontext() if by_flags or file is None else at(str(file)):
        name = rule or played.rule or "balanced-etc"
        if balance is not None:
            chosen = make_rule(name, balance=number(balance))  # the rule says what is allowed
        elif rule is None or name in ("balanced-etc", "kl-etc", "full-sharing"):
            chosen = make_rule(name, balance=played.balance)
        else:
            chosen = make_rule(name)
        taken: Any = (played.fee or 0) if fee is None else number(fee)
        if settlement is not None:
            settled, taken = settlement, 0 if fee is None and not settlement.startswith("equal-share") else taken
        elif by_flags and played.settlement == "paper":
            settled = "default"
        else:
            settled = played.settlement or "default"
            settlement_for(settled, chosen, taken)  # an error names the file
    return name, chosen, settled, taken


# --- partage audit ------------------------------------------------------------------------------------------


def audit(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[GAME.toml]", help="A game file; the paper's own games and small ones without it."),
    ] = None,
    runs: Annotated[
        str | None,
        typer.Option(
            metavar="R",
            help="Independent runs: 100 by default, and 20,000 of a small game. Without a game file, the paper's "
            "games are played R times and the small ones 200 times as often.",
        ),
    ] = None,
    seed: Annotated[str, typer.Option(metavar="S", help="The same seed gives the same result.")] = "0",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object in place of the tables.")] = False,
) -> None:
    """Check what the paper promises on runs that are played: premise, bound, measured, verdict."""
    load("theory.audit")
    from partage.gamefile import number, read_game
    from partage.report.audit_table import show
    from partage.theory.audit import Section, as_dict, describe, paper_audit, usual_runs
    from partage.theory.audit import audit as audit_game

    started = time.perf_counter()
    wanted: Any = None if runs is None else number(runs)  # the audit says what is allowed
    from_seed: Any = number(seed)
    with progress_bar() as progress:
        if file is None:
            sections = interruptible(
                lambda: paper_audit(100 if wanted is None else wanted, from_seed, None, progress)
            )
        else:
            played = read_game(file)
            name, rule, *_ = _choose(file, played)
            wanted = usual_runs(played.game) if wanted is None else wanted
            rows = interruptible(lambda: audit_game(played.game, rule, wanted, from_seed, None, progress))
            balance = f" with balance {_plain(rule.balance)}" if hasattr(rule, "balance") else ""
            about = f"{name}{balance}, sharing {played.sharing}: {describe(played.game)}"
            sections = [Section(str(file), about, int(wanted), rows)]
    if as_json:
        found = as_dict(sections, int(from_seed), time.perf_counter() - started)
        typer.echo(json.dumps(found, indent=2, allow_nan=False))
    else:
        show(sections)


# --- the tables ---------------------------------------------------------------------------------------------


def _show(figures: dict[str, Any], sharing: str) -> None:
    """Print the figures of merit, as the JSON has them, for people."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    console.print(Text(_title(figures), style="bold"))
    console.print(Text(_subtitle(figures, sharing), style="dim"), "", sep="\n")

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("figure of merit")
    table.add_column("mean", justify="right")
    table.add_column("± standard error", justify="right")
    for name, estimate in figures["metrics"].items():
        table.add_row(name.replace("_", " "), *_cells(estimate))
    table.add_section()
    table.add_row("2-UCB regret of one agent alone", *_cells(figures["two_ucb_regret"]))
    sentences = [Text(sentence) for sentence in (_rational(figures), *_settled(figures))]
    console.print(table, "", *sentences, "", sep="\n")

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("arm")
    for heading in ("mean", "broadcasts", "± standard error", "eliminated"):
        table.add_column(heading, justify="right")
    for arm in figures["arms"]:
        mean = "drawn" if arm["mean"] is None else f"{arm['mean']:.4g}"
        table.add_row(Text(arm["name"]), mean, *_cells(arm["broadcasts"]), f"{arm['eliminated']:.0%}")
    console.print(table)


def _title(figures: dict[str, Any]) -> str:
    balance = "" if figures["balance"] is None else f" with balance {_plain(figures['balance'])}"
    agents, arms = _counted(figures["agents"], "agent"), _counted(len(figures["arms"]), "arm")
    return f"{figures['rule']}{balance}: {agents}, {arms}, horizon {figures['horizon']:,}"


def _subtitle(figures: dict[str, Any], sharing: str) -> str:
    runs, seconds = _counted(figures["runs"], "run"), f"{figures['seconds']:.2g} s"
    return f"sharing {sharing}; settlement {figures['settlement']}; {runs} from seed {figures['seed']} in {seconds}"


def _rational(figures: dict[str, Any]) -> str:
    regret = "regret" if figures["settlement"] == "none" else "incentive regret"
    if figures["individually_rational"] is None:
        return "Individually rational: not judged, as 2-UCB alone was not played (--baseline plays it)."
    if figures["individually_rational"]:
        return f"Individually rational: yes, no agent's mean {regret} is above 2-UCB's."
    return f"Individually rational: no, some agent's mean {regret} is above 2-UCB's."


def _settled(figures: dict[str, Any]) -> Iterator[str]:
    """Say where an equal-share settlement is not viable or not finished."""
    for word, means in (
        ("viable", "in the others everyone pays her ceiling, and the controller bears the rest"),
        ("finished", "in the others more than one arm was left, whose regret is not covered"),
    ):
        if figures.get(word) is not None:
            yield f"{word.capitalize()} in {figures[word]:.0%} of runs" + (
                f"; {means}." if figures[word] < 1 else "."
            )


def _cells(estimate: dict[str, float | None] | None) -> tuple[str, str]:
    """Write a mean and its standard error: the error to two digits, the mean as far as the error bears."""
    if estimate is None:
        return "–", "–"
    mean, error = estimate["mean"], estimate["stderr"]
    assert mean is not None
    if not error:
        return _plain(mean), "–" if error is None else "0"
    digits = min(max(0, 1 - math.floor(math.log10(error))), 12)
    return f"{mean:,.{digits}f}", f"{error:,.{digits}f}"


def _plain(value: float | str) -> str:
    """Write a number without an error: whole numbers whole, others to six digits."""
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1e6 else f"{value:,.6g}"


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


# --- partage reproduce, partage studies ---------------------------------------------------------------------


def reproduce(
    studies: Annotated[
        list[str] | None,
        typer.Argument(metavar="[STUDY]...", help="Studies by name, or files of your own; all by default."),
    ] = None,
    runs: Annotated[str, typer.Option(metavar="R", help="Independent runs of each game.")] = "100",
    seed: Annotated[str, typer.Option(metavar="S", help="The same seed gives the same result.")] = "0",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the report goes.")] = Path("results"),
    on: Annotated[
        str,
        typer.Option(metavar="PLACE", help="threads, processes, dask, dask=ADDRESS, ray or ray=ADDRESS."),
    ] = "threads",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object in place of the table.")] = False,
) -> None:
    """Play the paper's studies, judge its claims and write a report.

    What is finished is kept: after Ctrl-C the same command goes on from there. The exit code is 1 if a claim comes
    out otherwise than it is known to at full size.
    """
    load("report.reproduce")
    from rich.console import Console

    from partage.gamefile import number
    from partage.report.reproduce import reproduce as play_and_report
    from partage.report.terminal import progress_bar as bar_of_studies
    from partage.report.terminal import show_claims

    aside = Console(stderr=True, highlight=False, soft_wrap=True)
    many: Any = number(runs)  # the report says what is allowed
    from_seed: Any = number(seed)
    try:
        with bar_of_studies(aside) as progress:
            done = play_and_report(
                studies or (),
                many,
                from_seed,
                out,
                on,
                say=lambda sentence: aside.print(sentence, markup=False),
                progress=progress,
            )
    except KeyboardInterrupt:
        typer.echo(f"Stopped; what is finished is kept in {out}, and the same command goes on from there.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        typer.echo(json.dumps(done.as_dict(), indent=2, allow_nan=False, ensure_ascii=False))
    else:
        console = Console(highlight=False)
        show_claims(done.judged, console)
        console.print(f"{done.files[0]}, with figures and tables beside it, in {done.seconds:.0f} s.", soft_wrap=True)
    raise typer.Exit(done.exit_code)


def studies() -> None:
    """List the studies that there are."""
    from rich.console import Console

    from partage.report.terminal import show_studies

    show_studies(Console(highlight=False))
