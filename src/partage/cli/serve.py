"""The command that runs the live controller."""

from typing import Annotated

import typer

from partage import environment
from partage.cli.terminal import load
from partage.errors import require


def serve(
    database: Annotated[
        str,
        typer.Option(
            metavar="URL",
            envvar=environment.DATABASE,
            help="The path of an SQLite file, or postgresql://USER:PASSWORD@HOST/DATABASE. Pass a password in the "
            "variable instead: other users of this machine can see a command's options.",
        ),
    ] = "partage.db",
    host: Annotated[
        str, typer.Option(metavar="HOST", help="127.0.0.1 serves this machine only; 0.0.0.0 serves others too.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", help="0 picks a free port.")] = 8000,
    workers: Annotated[int, typer.Option(metavar="W", help="Processes; more than one needs PostgreSQL.")] = 1,
    log_level: Annotated[str, typer.Option(metavar="LEVEL", help="debug, info, warning or error.")] = "info",
    public_url: Annotated[
        str,
        typer.Option(
            metavar="URL",
            envvar=environment.PUBLIC_URL,
            help="The address that members use, such as https://partage.example.org, for invite links.",
        ),
    ] = "",
    rules: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE",
            help="A module with rules of your own: a path that ends in .py, or a name that Python can import. "
            f"Repeat the option for several, or list them in the variable {environment.RULES}, separated by commas. "
            "Load them at every start: a collaboration needs the very file that it was created with.",
        ),
    ] = None,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Make and print a new operator's token; the last one ends.")
    ] = False,
) -> None:
    """Run the live controller until Ctrl-C.

    The first start prints the operator's token, which is shown only once. To use your own token, set the variable
    PARTAGE_OPERATOR_TOKEN, and keep it set: a start without it is refused from then on, unless it makes a new
    token.

    [bold]partage serve --database partage.db --port 8000[/bold]
    [bold]partage serve --rules halving.py[/bold]
    """
    require("The server", "server")
    if database.startswith("postgres"):
        require("PostgreSQL", "postgres")
    load("service.serve")
    from partage.service.serve import serve as serve_until_stopped

    serve_until_stopped(database, host, port, workers, log_level, new_token, public_url, rules or environment.rules())
