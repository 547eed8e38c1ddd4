"""The commands that reproduce the paper's studies, and list them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from partage.cli.terminal import INTERRUPTED, announce_compilation, as_json, load
from partage.errors import require


def reproduce(
    studies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[STUDY]...", help="Names of studies, or paths of study files; by default all of the paper."
        ),
    ] = None,
    runs: Annotated[str, typer.Option(metavar="R", help="Number of independent runs of each game.")] = "100",
    seed: Annotated[str, typer.Option(metavar="S", help="The same seed gives the same result.")] = "0",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the report.")] = Path("results"),
    on: Annotated[
        str,
        typer.Option(metavar="PLACE", help="threads, processes, dask, dask=ADDRESS, ray or ray=ADDRESS."),
    ] = "threads",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the table.")] = False,
) -> None:
    """Play the paper's studies, judge its claims and write a report.

    Finished parts are cached: after Ctrl-C, the same command continues from there. The exit code is 1 if the verdict
    on a claim differs from the one known from full-size runs.

    [bold]partage reproduce balanced imbalanced --runs 20 --out results[/bold]
    """
    require("Reproducing the paper", "research")
    for extra in ("dask", "ray"):
        if on.partition("=")[0] == extra:
            require(f"Running on {extra}", extra)
    load("report.reproduce")
    from rich.console import Console

    from partage.gamefile import number
    from partage.report.reproduce import reproduce as play_and_report
    from partage.report.study_tables import progress_bar as bar_of_studies
    from partage.report.study_tables import show_claims

    announce_compilation()
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
        typer.echo(f"Stopped. Finished parts are in {out}; the same command continues from there.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if json:
        typer.echo(as_json(done.as_dict()))
    else:
        console = Console(highlight=False)
        show_claims(done.judged, console)
        console.print(f"{done.files[0]}, with figures and tables beside it, in {done.seconds:.0f} s.", soft_wrap=True)
    raise typer.Exit(done.exit_code)


def studies() -> None:
    """List the studies.

    [bold]partage studies[/bold]
    """
    require("Listing the studies", "research")
    from rich.console import Console

    from partage.report.study_tables import show_studies

    show_studies(Console(highlight=False))
