"""The command that proposes what everyone should prepay."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from partage.cli.facts import names
from partage.cli.terminal import announce_compilation, as_json, interruptible, load, progress_bar
from partage.errors import InputError, require
from partage.ledger.config import DEFAULTS
from partage.rules import RULES

if TYPE_CHECKING:
    from partage.simulate.prepaid import Proposal


def prepaid(
    members: Annotated[str, typer.Option(metavar="M", help="Number of members.")],
    horizon: Annotated[str, typer.Option(metavar="T", help="Pulls per member.")],
    arms: Annotated[
        str | None, typer.Option(metavar="N", help="Number of arms, with means drawn from [0, 1] for each run.")
    ] = None,
    means: Annotated[
        str | None, typer.Option(metavar="0.9,0.8,...", help="Mean reward of each arm, if you have an idea of them.")
    ] = None,
    rule: Annotated[str, typer.Option(metavar="RULE", help=f"{names(RULES, DEFAULTS['rule'])}.")] = DEFAULTS["rule"],
    sharing: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="Who shares what, as in partage simulate. By default members share one arm each, in turn; fewer "
            "members than arms share several, and with network-glr everyone shares everything.",
        ),
    ] = None,
    fee: Annotated[
        str, typer.Option(metavar="F", help="The controller's fee, as a fraction of all compensations.")
    ] = "0",
    quantile: Annotated[
        str,
        typer.Option(
            metavar="Q", help="In which fraction of games like this one all compensations should be paid in full."
        ),
    ] = "0.95",
    seed: Annotated[str, typer.Option(metavar="S", help="The same seed gives the same result.")] = "0",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of sentences.")] = False,
) -> None:
    """Propose what every member should prepay in the settlements pool and dues, by simulation.

    [bold]partage prepaid --arms 4 --members 12 --horizon 1e4[/bold]

    [bold]partage prepaid --means 0.9,0.8,0.6 --members 12 --horizon 1e4 --rule balanced-glr --fee 0.1[/bold]
    """
    require("Simulation", "research")
    load("simulate.prepaid")
    from partage.gamefile import number
    from partage.rules import make_rule
    from partage.simulate.prepaid import propose_prepaid

    if (arms is None) == (means is None):
        raise InputError("Give either --arms or --means: the number of arms, or the mean of each.")
    known: Any = None if means is None else [number(mean) for mean in means.split(",")]
    size: Any = number(arms) if known is None else len(known)  # type: ignore[arg-type]
    terms: dict[str, Any] = {"fee": number(fee)}
    found_by: dict[str, Any] = {"quantile": number(quantile), "seed": number(seed)}
    group: dict[str, Any] = {"members": number(members), "horizon": number(horizon)}
    announce_compilation()
    with progress_bar(then="playing") as progress:
        found = interruptible(
            lambda: propose_prepaid(
                size,
                rule=make_rule(rule),
                means=known,
                **group,
                sharing=sharing,
                **terms,
                **found_by,
                progress=progress,
            )
        )
    if json:
        typer.echo(as_json(found.as_dict()))
        return
    typer.echo(
        f"Prepay {found.prepaid:.3g} each, in units of reward: in {found.quantile:.0%} of {found.runs} simulated "
        f"games, a pool then pays all compensations in full. This amount is known to lie {_interval(found)}."
    )
    typer.echo(f"On average a member is charged {found.share} if nothing limits it.")


def _interval(found: "Proposal") -> str:
    if found.high is None:
        return f"above {found.low:.3g}"
    return f"between {found.low:.3g} and {found.high:.3g}"
