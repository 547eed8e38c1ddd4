"""The operator's commands, against a running controller."""

import csv
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partage import environment
from partage.cli.facts import ALONE_HELP, COVERAGE_HELP, names, parameter_help, set_help, settlements, with_rules
from partage.cli.terminal import as_json
from partage.errors import FileError, InputError
from partage.ledger.config import DEFAULTS
from partage.ledger.fields import MOST_HISTORY
from partage.ledger.terms import PREPAY, TRUTHFUL
from partage.rules import live_parameters, live_rules

if TYPE_CHECKING:
    from partage.client import Operator, SettlementView
    from partage.ledger.messages import BoardView

commands = typer.Typer(
    help="Create and settle collaborations, as the operator of a controller.\n\n"
    "[bold]partage collaboration list --token-file operator.token[/bold]",
    rich_markup_mode="rich",
)

Url = Annotated[str, typer.Option(metavar="URL", envvar=environment.URL, help="The controller's address.")]
Member = Annotated[str, typer.Argument(metavar="AGENT", help="The agent's id, such as a3, or its name.")]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A file with the operator's token, or - for standard input; the default is the variable "
        f"{environment.OPERATOR_TOKEN}.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Id = Annotated[
    str, typer.Argument(metavar="ID", help="The collaboration's id, as the command list shows it, or its name.")
]
LOCAL = "http://127.0.0.1:8000"


def _operator(url: str, token_file: Path | None) -> "Operator":
    from partage.client import Operator

    return Operator(url, _token(token_file))


def _found(operator: "Operator", given: str) -> str:
    """Return the id of a collaboration, from its id or its name."""
    if re.fullmatch("c[0-9a-f]+", given):
        return given
    found = [one.id for one in operator.collaborations() if given in (one.id, one.name)]
    return _only("collaboration", given, found, "partage collaboration list")


def _member(operator: "Operator", id: str, given: str) -> str:
    """Return the id of an agent, from its id or its name."""
    if re.fullmatch("a[1-9][0-9]*", given):
        return given
    found = [one.agent for one in operator.agents(id) if one.name == given]
    return _only("agent", given, found, f"partage collaboration settlement {id}")


def _only(what: str, given: str, found: list[str], command: str) -> str:
    """Return the one id that was found."""
    if not found:
        raise InputError(f"No {what} has the id or name {given}; {command} lists what there is.")
    if len(found) > 1:
        raise InputError(f"Several have the name {given}: {', '.join(found)}; use an id.")
    return found[0]


def _token(file: Path | None) -> str:
    """Return the operator's token, from a file or the environment. Other users could see the value of an option."""
    if file is None:
        token = environment.operator_token()
    else:
        try:
            token = sys.stdin.readline() if str(file) == "-" else file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise FileError(f"The token file {file} cannot be read: {reason}.") from None
    if not token.strip():
        raise InputError(
            f"This needs the operator's token: set the variable {environment.OPERATOR_TOKEN}, "
            "or put the token in a file and name it with --token-file."
        )
    return token.strip()


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Display name.")],
    arm: Annotated[list[str], typer.Option(metavar="ARM", help="Name of an arm; repeat the option for each arm.")],
    horizon: Annotated[str, typer.Option(metavar="T", help="Pulls per agent.")],
    rule: Annotated[
        str | None, typer.Option(metavar="RULE", help=f"{names(live_rules(), DEFAULTS['rule'])}.")
    ] = None,
    balance: Annotated[str | None, typer.Option(metavar="B", help=parameter_help("balance", live_rules()))] = None,
    set: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help=set_help())] = None,
    settlement: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"Who gets and pays what: {', '.join(settlements())} (default pool with --prepaid, otherwise none). "
            f"{PREPAY} {TRUTHFUL}",
        ),
    ] = None,
    prepaid: Annotated[
        str | None,
        typer.Option(
            metavar="D",
            help="With pool and dues: the money that every member prepays and cannot lose more than. Partage keeps "
            "the books; the money moves elsewhere. The command partage prepaid proposes an amount.",
        ),
    ] = None,
    underwriting: Annotated[
        str | None,
        typer.Option(
            metavar="U",
            help="The most money that you, the operator, can lose (default 0 with pool; paper and the equal shares "
            "need it).",
        ),
    ] = None,
    fee: Annotated[
        str | None,
        typer.Option(
            metavar="F",
            help=f"The controller's fee, as a fraction of all compensations (default {DEFAULTS['fee']:g}).",
        ),
    ] = None,
    alone: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help=f"{ALONE_HELP} The default is two-ucb with the paper's settlement, otherwise best."
        ),
    ] = None,
    coverage: Annotated[str | None, typer.Option(metavar="C", help=COVERAGE_HELP)] = None,
    value: Annotated[
        str | None, typer.Option(metavar="V", help=f"Money per unit of reward (default {DEFAULTS['value']:g}).")
    ] = None,
    claim_seconds: Annotated[
        str | None,
        typer.Option(
            metavar="S", help=f"How long an explore pull may take (default {DEFAULTS['claim_seconds']:g} seconds)."
        ),
    ] = None,
    claim_interval: Annotated[
        str | None,
        typer.Option(
            metavar="S",
            help="The least seconds between two explore pulls of one member: about what a real one takes, so that "
            f"made-up ones earn no more (default {DEFAULTS['claim_interval']:g}).",
        ),
    ] = None,
    signed: Annotated[
        bool,
        typer.Option(
            "--signed",
            help="Members sign their requests, so that nobody else can make them in their names. They need a program "
            "for it: they cannot join in a browser.",
        ),
    ] = False,
    currency: Annotated[
        str | None, typer.Option(metavar="NAME", help="What amounts of money are in, such as EUR or hours.")
    ] = None,
    histories: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="How many past rewards of each arm a member may attach before its first pull: evidence for all that "
            f"is not paid (default {DEFAULTS['histories']}, at most {MOST_HISTORY:,}).",
        ),
    ] = None,
    most_arms: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="The largest number of arms, if you may add some later with add-arm (default: no more than these). "
            "All certificates are computed for that many.",
        ),
    ] = None,
    invites: Annotated[int, typer.Option(metavar="N", help="How many agents may join; each gets a link.")] = 1,
    url: Url = LOCAL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Create a collaboration and print its invites, which are shown only once.

    [bold]partage collaboration create "Bakers" --arm "Moulin A" --arm "Moulin B" --horizon 2000 --prepaid 20[/bold]
    """
    with _operator(url, token_file) as operator:
        made = operator.create(
            name,
            arm,
            _number("horizon", horizon),  # type: ignore[arg-type]  # the controller says what is allowed
            rule=rule,
            balance=balance if balance in (None, "inf") else _number("balance", balance),
            parameters=_parameters(rule or DEFAULTS["rule"], set or []),
            settlement=settlement,
            fee=None if fee is None else _number("fee", fee),
            prepaid=None if prepaid is None else _number("prepaid", prepaid),
            underwriting=None if underwriting is None else _number("underwriting", underwriting),
            alone=alone,
            coverage=None if coverage is None else _number("coverage", coverage),
            value=None if value is None else _number("value", value),
            claim_seconds=None if claim_seconds is None else _number("claim-seconds", claim_seconds),
            claim_interval=None if claim_interval is None else _number("claim-interval", claim_interval),
            signed=signed or None,
            currency=currency,
            histories=None if histories is None else _number("histories", histories),  # type: ignore[arg-type]
            most_arms=None if most_arms is None else _number("most-arms", most_arms),  # type: ignore[arg-type]
            invites=invites,
        )
        links = [operator.link(made.id, code) for code in made.invites]
    if json:
        typer.echo(as_json({"id": made.id, "invites": made.invites, "links": links, "warnings": made.warnings}))
        return
    typer.echo(f"Created {made.id}.")
    for warning in made.warnings:
        typer.echo(f"Warning: {warning}", err=True)
    _print_links(links)


commands.command(help=with_rules(create, live_rules()))(create)


def _number(option: str, text: str) -> int | float:
    """Return a number as people write it: 2000, 1e6, 0.05. The controller checks what is allowed."""
    try:
        number = float(text)
        if number - number != 0:
            raise ValueError
    except ValueError:
        raise InputError(f"--{option} must be a number, such as 2000, 1e6 or 0.05.") from None
    return int(number) if number.is_integer() else number


def _parameters(rule: str, given: list[str]) -> dict[str, bool | int | float | str] | None:
    """Return what the options --set say. The controller checks names and values."""
    found: dict[str, bool | int | float | str] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value) or name in found:
            takes = ", ".join(live_parameters(rule)) if rule in live_rules() else ""
            raise InputError(
                "--set must be NAME=VALUE, such as lead=3, with each name at most once; "
                f"the rule {rule} takes {takes or 'none'}."
            )
        if name == "balance":
            raise InputError("The balance has an option of its own; use --balance.")
        found[name] = _value(value)
    return found or None


def _value(text: str) -> bool | int | float | str:
    """Return what a text says: true or false, a number, or the text."""
    if text in ("true", "false"):
        return text == "true"
    try:
        number = float(text)
    except ValueError:
        return text
    if number - number != 0:  # JSON has no infinity
        return text
    return int(number) if number.is_integer() else number


def _print_links(links: list[str]) -> None:
    if links:
        typer.echo("Each of these links lets one agent join; they are shown only once.")
        for link in links:
            typer.echo(f"  {link}")


@commands.command("list")
def list_all(url: Url = LOCAL, token_file: TokenFile = None, json: Json = False) -> None:
    """List the collaborations.

    [bold]partage collaboration list --token-file operator.token[/bold]
    """
    with _operator(url, token_file) as operator:
        found = operator.collaborations()
    if json:
        typer.echo(as_json(_builtins(found)))
        return
    if not found:
        typer.echo("There is no collaboration yet; create one with partage collaboration create.")
        return
    from rich.console import Console

    from partage.report.collaboration_tables import collaborations_table

    Console(highlight=False).print(collaborations_table(found))


@commands.command()
def show(id: Id, url: Url = LOCAL, token_file: TokenFile = None, json: Json = False) -> None:
    """Show a collaboration's board: each arm's mean and its confidence band.

    [bold]partage collaboration show c0123456789ab[/bold]
    """
    with _operator(url, token_file) as operator:
        id = _found(operator, id)
        about, board = operator.collaboration(id), operator.board(id)
    if json:
        typer.echo(as_json(_builtins(about) | {"board": _builtins(board)}))
        return
    from rich.console import Console

    from partage.report.collaboration_tables import show_collaboration

    show_collaboration(Console(highlight=False), about, board, int(time.time() * 1000))


@commands.command("add-arm")
def add_arm(
    id: Id,
    arm: Annotated[str, typer.Argument(metavar="ARM", help="The name of the new arm.")],
    url: Url = LOCAL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Add an arm to a collaboration that was created with --most-arms.

    Nobody shares it at first; members do so with partage agent share or on their page.

    [bold]partage collaboration add-arm c0123456789ab "Moulin C"[/bold]
    """
    with _operator(url, token_file) as operator:
        found = operator.add_arm(_found(operator, id), arm)
    if json:
        typer.echo(as_json(_builtins(found)))
        return
    typer.echo(f"{found.name} has {len(found.arms):,} of at most {found.most_arms:,} arms: {', '.join(found.arms)}.")


@commands.command("set-aside")
def set_aside(
    id: Id,
    agent: Member,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; all members can read it.")],
    url: Url = LOCAL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Take an agent's broadcasts out of the record, permanently.

    Which arms are eliminated is computed again without them. The agent gets no more claims; what it told before is
    still compensated.

    [bold]partage collaboration set-aside c0123456789ab a3 --reason "Its scale was broken until May 3."[/bold]
    """
    with _operator(url, token_file) as operator:
        id = _found(operator, id)
        agent = _member(operator, id, agent)
        found = operator.set_aside(id, agent, reason)
    if json:
        typer.echo(as_json(_builtins(found)))
        return
    typer.echo(f"The broadcasts of {found.name} ({found.agent}) are set aside; every member can read why.")


@commands.command()
def token(id: Id, agent: Member, url: Url = LOCAL, token_file: TokenFile = None, json: Json = False) -> None:
    """Make a new token for an agent that lost its own, and print it, only once.

    The old token and the agent's browser sessions end at once. The agent's key stays: where members sign their
    requests, a lost key cannot be replaced, and the agent joins anew.

    [bold]partage collaboration token c0123456789ab a3[/bold]
    """
    with _operator(url, token_file) as operator:
        id = _found(operator, id)
        agent = _member(operator, id, agent)
        made = operator.token(id, agent)
    typer.echo(as_json({"agent": made.agent, "token": made.token}) if json else made.token)


@commands.command()
def revoke(id: Id, agent: Member, url: Url = LOCAL, token_file: TokenFile = None) -> None:
    """End an agent's token and its browser sessions, at once.

    [bold]partage collaboration revoke c0123456789ab a3[/bold]
    """
    with _operator(url, token_file) as operator:
        id = _found(operator, id)
        agent = _member(operator, id, agent)
        operator.revoke_token(id, agent)
    typer.echo(f"The token of {agent} has ended; partage collaboration token makes another.")


@commands.command()
def remove(
    id: Id,
    agent: Member,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; all members can read it.")],
    url: Url = LOCAL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """End a membership, permanently.

    The agent's claims are cancelled. Its broadcasts and its row of the settlement stay, and it can still read.

    [bold]partage collaboration remove c0123456789ab a3 --reason "It reports results that nobody can repeat."[/bold]
    """
    with _operator(url, token_file) as operator:
        id = _found(operator, id)
        agent = _member(operator, id, agent)
        found = operator.remove(id, agent, reason)
    if json:
        typer.echo(as_json(_builtins(found)))
        return
    typer.echo(f"{found.name} ({found.agent}) is removed; every member can read why.")


@commands.command()
def invite(
    id: Id,
    count: Annotated[int, typer.Option(metavar="N", help="How many invites.")] = 1,
    hours: Annotated[float, typer.Option(metavar="H", help="How long each can be used, in hours.")] = 168,
    url: Url = LOCAL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Create more invites.

    [bold]partage collaboration invite c0123456789ab --count 3 --hours 48[/bold]
    """
    with _operator(url, token_file) as operator:
        id = _found(operator, id)
        made = operator.invite(id, count, hours=hours)
        links = [operator.link(id, code) for code in made.invites]
    if json:
        typer.echo(as_json({"id": made.id, "invites": made.invites, "links": links}))
    else:
        _print_links(links)


@commands.command()
def close(
    id: Id,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    url: Url = LOCAL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Close a collaboration permanently and print its settlement.

    [bold]partage collaboration close c0123456789ab --yes[/bold]
    """
    with _operator(url, token_file) as operator:
        id = _found(operator, id)
        about = operator.collaboration(id)
        if not yes and not about.closed:
            if not sys.stdin.isatty():
                raise InputError("Closing asks for confirmation, and this is not interactive; pass --yes.")
            question = f"Close {about.name}? This cannot be undone, and reports not yet received are lost."
            typer.confirm(question + _still_out(operator.board(id)), abort=True, err=True)
        found = operator.close(id)
    _print_settlement(found, about.currency, json)


def _still_out(board: "BoardView") -> str:
    """Return which claims are open, in a sentence."""
    from partage.ledger.outstanding import in_words

    opened = sum(arm.claims for arm in board.arms)
    return f" {in_words(board.waiting, opened)} are still out." if opened else ""


@commands.command()
def settlement(
    id: Id,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV: one line per agent, and one for the controller.")
    ] = False,
    url: Url = LOCAL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Print who gets and pays what; before the close, as if it closed now.

    In CSV and JSON, amounts are integers in micro-units: 1,000,000 is 1.

    [bold]partage collaboration settlement c0123456789ab --csv[/bold]
    """
    if as_csv and json:
        raise InputError("Use --csv or --json, not both.")
    with _operator(url, token_file) as operator:
        id = _found(operator, id)
        found, currency = operator.settlement(id), operator.collaboration(id).currency
    if as_csv:
        _write_csv(found)
    else:
        _print_settlement(found, currency, json)


def _print_settlement(found: "SettlementView", currency: str, json: bool) -> None:
    if json:
        typer.echo(as_json(_builtins(found)))
        return
    from rich.console import Console

    from partage.report.collaboration_tables import show_settlement

    show_settlement(Console(highlight=False), found, currency)


def _write_csv(found: "SettlementView") -> None:
    """Write the same lines as the operator's page; the net amounts sum to zero."""
    from partage.ledger.settlement import csv_lines

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerows(csv_lines(found))


@commands.command()
def ledger(
    id: Id,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Output file, or - for standard output.")],
    url: Url = LOCAL,
    token_file: TokenFile = None,
) -> None:
    """Download the ledger, one line per event, for partage verify.

    [bold]partage collaboration ledger c0123456789ab -o bakers.ndjson[/bold]
    """
    with _operator(url, token_file) as operator:
        id = _found(operator, id)
        if str(out) == "-":
            for part in operator.ledger_parts(id):
                sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
            return
        lines = operator.ledger(id, out)
    typer.echo(f"{lines:,} lines in {out}; check them with: partage verify {out}")


def _builtins(found: Any) -> Any:
    from msgspec import to_builtins

    return to_builtins(found)
