"""The command that runs the live controller."""

from typing import Annotated

import typer

from partage.cli.terminal import load


def serve(
    database: Annotated[
        str,
        typer.Option(
            metavar="URL",
            envvar="PARTAGE_DATABASE",
            help="The path of an SQLite file, or postgresql://USER:PASSWORD@HOST/DATABASE. A password is better "
            "given by the variable: other users of this machine can see a command's flags.",
        ),
    ] = "partage.db",
    host: Annotated[
        str, typer.Option(metavar="HOST", help="127.0.0.1 is this machine alone; 0.0.0.0 lets others in.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", help="0 is any that is free.")] = 8000,
    workers: Annotated[int, typer.Option(metavar="W", help="Processes; more than one on PostgreSQL alone.")] = 1,
    log_level: Annotated[str, typer.Option(metavar="LEVEL", help="debug, info, warning or error.")] = "info",
) -> None:
    """Run the live controller, until Ctrl-C.

    On first start it prints the operator's token, this once; PARTAGE_OPERATOR_TOKEN sets one of your own.

    [bold]partage serve --database partage.db --port 8000[/bold]
    """
    load("service.serve")
    from partage.service.serve import serve as serve_until_stopped

    serve_until_stopped(database, host, port, workers, log_level)
