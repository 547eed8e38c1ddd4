"""The command that checks what the paper proves on simulated runs."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from partage.cli.simulate import choose
from partage.cli.terminal import announce_compilation, as_json, interruptible, load, progress_bar
from partage.errors import require


def audit(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[GAME.toml]", help="A game file; without one, the paper's games and small ones."),
    ] = None,
    runs: Annotated[
        str | None,
        typer.Option(
            metavar="R",
            help="Number of independent runs: 100 by default, 20,000 for a small game. Without a game file, the "
            "paper's games are played R times and the small ones 200 times as often.",
        ),
    ] = None,
    seed: Annotated[str, typer.Option(metavar="S", help="The same seed gives the same result.")] = "0",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Check the paper's theorems on simulated runs: premise, bound, measured value, verdict.

    If the game file names a settlement that limits the controller's loss, its promises are checked too.

    [bold]partage audit game.toml --runs 1000[/bold]
    """
    require("The audit", "research")
    load("theory.audit")
    from partage.gamefile import at, number, read_game
    from partage.report.audit_table import show
    from partage.rules.rule import changed_parameters
    from partage.settle import settlement_for
    from partage.simulate.summary import described
    from partage.theory.audit import Section, as_dict, check_auditable, describe, paper_audit, usual_runs
    from partage.theory.audit import audit as audit_game

    announce_compilation()
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
            name, rule, settled, terms = choose(file, played)
            settlement = settlement_for(settled, rule, **terms)
            wanted = usual_runs(played.game) if wanted is None else wanted
            with at(str(file)):
                check_auditable(played.game)
            rows = interruptible(lambda: audit_game(played.game, rule, wanted, from_seed, None, progress, settlement))
            played_by = described(name, getattr(rule, "balance", None), changed_parameters(rule))
            about = f"{played_by}, sharing {played.sharing}"
            sections = [Section(str(file), f"{about}: {describe(played.game)}", int(wanted), rows)]
    if json:
        typer.echo(as_json(as_dict(sections, int(from_seed), time.perf_counter() - started)))
    else:
        show(sections)
