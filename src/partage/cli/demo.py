"""The demo: a controller, a street of bakers who play over HTTP, a settlement, and a ledger that is verified."""

import asyncio
import logging
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partage.cli.terminal import interruptible, load
from partage.errors import FileError, InputError, PartageError

if TYPE_CHECKING:
    from rich.console import Console

    from partage.cli.operator import Operator
    from partage.client import AsyncAgent

NAME = "The bakers of Rue des Moulins"
HORIZON = 10_000
VALUE = 2.0  # money that a delivery on time is worth
# Who could supply flour, and the share of deliveries on time, which nobody knows.
SUPPLIERS = {
    "Moulins de la Vanne": 0.62,
    "Minoterie Aubry": 0.74,
    "Grands Moulins Réunis": 0.50,
    "Moulin du Pont Vieux": 0.92,
    "Farines Delorme": 0.66,
    "Minoterie de l'Yonne": 0.45,
    "Moulin Saint-Clair": 0.70,
    "Coopérative du Gâtinais": 0.56,
}
# Who buys it, and whose deliveries she is willing to tell the others about.
BAKERS = {
    "Boulangerie Morel": ("Moulin du Pont Vieux", "Minoterie Aubry"),
    "Au Pain Doré": ("Moulins de la Vanne",),
    "Le Fournil d'Inès": ("Moulin Saint-Clair", "Farines Delorme"),
    "Maison Lefèvre": ("Grands Moulins Réunis", "Moulin du Pont Vieux", "Coopérative du Gâtinais"),
    "La Mie Câline": ("Minoterie de l'Yonne",),
    "Boulangerie Haddad": ("Minoterie Aubry", "Moulin Saint-Clair"),
    "Chez Séraphine": ("Farines Delorme",),
    "Les Deux Frères": ("Moulin du Pont Vieux",),
    "Le Pétrin": ("Coopérative du Gâtinais", "Moulins de la Vanne"),
    "Pâtisserie Okoye": ("Minoterie Aubry",),
    "L'Épi d'Or": ("Grands Moulins Réunis", "Minoterie de l'Yonne", "Moulin Saint-Clair"),
    "Boulangerie Tran": ("Farines Delorme", "Moulin du Pont Vieux"),
}
SHOWN = "Boulangerie Morel"  # whose token is printed, and whose copy of the ledger is verified
CHANGES, INSTEAD, CHANGES_AT = "Le Fournil d'Inès", ("Moulin Saint-Clair", "Minoterie Aubry"), 300
LEAVES, LEAVES_AT = "Le Pétrin", 0.6  # of her horizon
TIME_LAPSE = 20.0  # seconds for the rest of the horizon, once all is explored
START = 60.0  # seconds that the controller has to start; it takes one or two
LOOK = 0.4  # seconds between two looks at the board


def demo(
    fast: Annotated[
        bool, typer.Option("--fast", help="Do not wait for anybody to watch, and stop at the end.")
    ] = False,
    pace: Annotated[
        float, typer.Option(metavar="P", help="Pulls of each baker per second, while they explore.")
    ] = 1.2,
    minutes: Annotated[
        float, typer.Option(metavar="M", help="The longest time to play, whether all is explored or not.")
    ] = 4.0,
    rule: Annotated[str, typer.Option(metavar="RULE", help="balanced-glr, balanced-etc or kl-etc.")] = "balanced-glr",
    port: Annotated[int, typer.Option(metavar="PORT", help="0 is any that is free.")] = 0,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keep database, log and ledgers here; else they are gone at the end."),
    ] = None,
) -> None:
    """Watch a dozen bakers find the best flour supplier together: about three minutes, live in the browser too.

    It starts a controller, plays over HTTP with the real client, closes, settles, and verifies the ledger. Then it
    goes on serving until Ctrl-C.

    [bold]partage demo --pace 3[/bold]
    """
    if not 0 < pace <= 1000 or not 0 < minutes <= 600:
        raise InputError("The pace must be above 0 and at most 1,000, and the minutes above 0 and at most 600.")
    from rich.console import Console

    from partage.cli.operator import Operator

    console = Console(highlight=False)
    with ExitStack() as opened:
        place = _place(opened, folder)
        url, token, process = opened.enter_context(_controller(place, port))
        operator = opened.enter_context(Operator(url, token))
        made = operator.post(
            "/collaborations",
            {
                "name": NAME,
                "arms": list(SUPPLIERS),
                "horizon": HORIZON,
                "rule": rule,
                "settlement": "equal-share",
                "value": VALUE,
                "invites": len(BAKERS) + 1,
            },
        )
        load("client")
        logging.getLogger("partage.client").setLevel(logging.ERROR)  # warnings would tear the live table apart
        street = Street(operator, made["id"], place, None if fast else pace, 60 * minutes)
        head, agent = asyncio.run(street.play(console, made["invites"], token))
        _verify(console, operator, made["id"], place, head, agent)
        if not fast:
            console.print(
                f"\nThe controller goes on at {url} until Ctrl-C; its files are in {place}.", soft_wrap=True
            )
            _stay(process)


def _place(opened: ExitStack, folder: Path | None) -> Path:
    """Return an empty folder: a temporary one, or a new one to keep."""
    if folder is None:
        return Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="partage-demo-")))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "partage.db").exists():
            raise InputError(f"The folder {folder} has a demo already; name another.")
    except OSError as error:
        raise FileError(f"The folder {folder} cannot be used: {error.strerror}.") from None
    return folder.resolve()


@contextmanager
def _controller(folder: Path, port: int) -> Iterator[tuple[str, str, "subprocess.Popen[str]"]]:
    """Run a controller as a process of its own: its address, the operator's token, the process."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PARTAGE_")}
    env["PARTAGE_DATABASE"] = str(folder / "partage.db")
    with _told_to_stop(), open(folder / "controller.log", "w+", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "partage.cli", "serve", f"--port={port}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=env,
            start_new_session=True,  # Ctrl-C is for us; then we end it
        )
        try:
            assert process.stdout is not None
            printed = interruptible(lambda: "".join(process.stdout.readline() for _ in range(3)))  # type: ignore[union-attr]
            address, token = (re.search(f"{words} (\\S+)", printed) for words in ("Partage is at", "this once:"))
            if address is None or token is None:
                process.wait(START)
                log.seek(0)
                said = log.read().strip().splitlines()
                raise PartageError(said[-1] if said else "The controller did not start.")
            _wait_until_ready(address[1])
            yield address[1], token[1], process
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _wait_until_ready(url: str) -> None:
    import httpx

    until = time.monotonic() + START
    while time.monotonic() < until:
        try:
            if httpx.get(f"{url}/ready").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise PartageError("The controller did not become ready.")


@contextmanager
def _told_to_stop() -> Iterator[None]:
    """Take a closed terminal and SIGTERM like Ctrl-C: the controller must not stay behind."""
    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {name: signal.getsignal(getattr(signal, name)) for name in names}
    for name in names:
        signal.signal(getattr(signal, name), lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        for name in names:
            signal.signal(getattr(signal, name), before[name])


def _stay(process: "subprocess.Popen[str]") -> None:
    """Wait until Ctrl-C, which is the good end here."""
    try:
        while process.poll() is None:
            time.sleep(0.2)
    except KeyboardInterrupt:
        return
    raise PartageError("The controller ended by itself.")


# --- the play -------------------------------------------------------------------------------------------------


@dataclass
class Street:
    """The bakers at play.

    Attributes
    ----------
    pace
        Pulls of a baker per second; None is as fast as it goes.
    limit
        Seconds after which the play ends in any case.
    board
        The board, as last seen.
    explored
        When only one arm was left; from there on time flies.
    pulls
        Pulls of everybody so far.
    news, said
        What happened so far, in sentences, and how many of them were printed.
    """

    operator: "Operator"
    collaboration: str
    folder: Path
    pace: float | None
    limit: float
    board: dict[str, Any] = field(default_factory=dict)
    explored: float | None = None
    pulls: int = 0
    news: list[str] = field(default_factory=list)
    said: int = 0

    async def play(self, console: "Console", invites: list[str], token: str) -> tuple[str, str]:
        """Let everybody join and play, close, and return the head that the shown baker kept, and her id."""
        from partage.cli.tables import board_table, show_settlement
        from partage.client import AsyncAgent

        async with AsyncExitStack() as opened:
            agents: dict[str, AsyncAgent] = {}
            state = self.folder / "morel.json"
            for (name, shares), invite in zip(BAKERS.items(), invites, strict=False):
                kept = state if name == SHOWN else None
                joined = await AsyncAgent.join(
                    self.operator.url,
                    self.collaboration,
                    invite,
                    name,
                    shares,
                    state=kept,
                    # In a rush everybody would follow an early leader that many more times.
                    max_pulls_per_board=10 if self.pace else 1,
                )
                agents[name] = await opened.enter_async_context(joined)
            self._introduce(console, token, state, invites[-1])
            await self._look()
            watching = asyncio.create_task(self._watch(console))
            try:
                async with asyncio.timeout(self.limit):
                    await asyncio.gather(*(self._bake(name, agent) for name, agent in agents.items()))
            except TimeoutError:
                self._tell(f"{self.limit / 60:g} minutes are over.")
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
            for name, agent in agents.items():
                if name != LEAVES:
                    await agent.flush()
            await self._look()
            self._say_news(console)
            console.print("", board_table(self.board, console), sep="\n")
            console.print(f"\nClosing. {self._status()}\n")
            settlement = await asyncio.to_thread(self.operator.post, self._path("/close"))
            shown = agents[SHOWN]
            await shown.ledger(self.folder / "morel.ndjson")
            head, agent_id = shown.head, shown.id
        show_settlement(console, settlement)
        return head, agent_id

    def _path(self, rest: str) -> str:
        return f"/collaborations/{self.collaboration}{rest}"

    def _introduce(self, console: "Console", token: str, state: Path, invite: str) -> None:
        import json

        member = json.loads(state.read_text(encoding="utf-8"))["token"]
        url = self.operator.url
        console.print(f"[bold]{NAME}[/bold] look for the supplier who delivers on time. Watch them:\n")
        for words, what in (
            ("in a browser", f"{url}/c/{self.collaboration}"),
            ("log in as the operator", token),
            (f"or as {SHOWN}", member),
            ("or join them yourself", self.operator.link(self.collaboration, invite)),
        ):
            console.print(f"  {words:<25}{what}", soft_wrap=True, markup=False)
        console.print()

    async def _bake(self, name: str, agent: "AsyncAgent") -> None:
        """Play as one baker until her horizon is used, or she leaves."""
        from partage.client import Closed, HorizonReached

        dice = random.Random(name)
        to_change, made = name == CHANGES, 0
        try:
            while True:
                if to_change and self.board["version"] >= CHANGES_AT:
                    to_change = False
                    await agent.share(INSTEAD)
                    self._tell(f"{name} shares {INSTEAD[1]} from now on, and not {BAKERS[CHANGES][1]}.")
                if name == LEAVES and made >= LEAVES_AT * HORIZON:
                    await agent.leave()
                    self._tell(f"{name} leaves; what she told stays, and so does her settlement.")
                    return
                pull = await agent.ask()
                await self._deliver(dice, made, pull.share)
                await agent.tell(pull, float(dice.random() < SUPPLIERS[pull.arm]))
                made += 1
                self.pulls += 1
        except (Closed, HorizonReached):
            pass

    async def _deliver(self, dice: random.Random, made: int, explore: bool) -> None:
        """Wait for the delivery: at a pace to watch while anything is explored, and then in fast motion."""
        if self.pace is None:
            return
        if self.explored is None:
            await asyncio.sleep(dice.uniform(0.5, 1.5) / self.pace)
        elif made % 20 == 0 or explore:
            await asyncio.sleep(20 * TIME_LAPSE / HORIZON)

    # what is seen

    async def _look(self) -> None:
        self.board = await asyncio.to_thread(self.operator.get, self._path("/board"))
        standing = [arm for arm in self.board["arms"] if arm["active"] and arm["sharers"]]
        if self.explored is None and len(standing) == 1:
            self.explored = time.monotonic()
            found = f"{standing[0]['name']} is found to be the best, after {self.board['version']:,} broadcasts."
            self._tell(f"{found} The rest goes in fast motion." if self.pace else found)

    async def _watch(self, console: "Console") -> None:
        """Keep the board in sight: drawn live on a terminal; elsewhere only the news are printed."""
        from rich.live import Live

        if not console.is_terminal:
            console.print("They begin.")
            while True:
                await self._look()
                self._say_news(console)
                await asyncio.sleep(LOOK)
        with Live(console=console, auto_refresh=False, transient=True) as live:
            while True:
                await self._look()
                live.update(self._picture(console), refresh=True)
                await asyncio.sleep(LOOK)

    def _picture(self, console: "Console") -> Any:
        from rich.console import Group
        from rich.text import Text

        from partage.cli.tables import board_table

        news = [Text(sentence, style="dim") for sentence in self.news[-3:]]
        return Group(board_table(self.board, console), Text(), Text(self._status()), *news)

    def _say_news(self, console: "Console") -> None:
        for sentence in self.news[self.said :]:
            console.print(sentence, markup=False)
        self.said = len(self.news)

    def _status(self) -> str:
        leader = self.board["leader"] or "nobody yet"
        return f"Leader: {leader}; {self.board['version']:,} broadcasts; {self.pulls:,} pulls of all bakers."

    def _tell(self, sentence: str) -> None:
        self.news.append(sentence)


# --- the end --------------------------------------------------------------------------------------------------


def _verify(console: "Console", operator: "Operator", id: str, folder: Path, head: str, agent: str) -> None:
    """Verify the operator's ledger and a member's copy, as `partage verify` does."""
    from partage.cli.collaboration import save
    from partage.cli.verify import say, verified

    whole, copy = folder / "operator.ndjson", folder / "morel.ndjson"
    save(operator.lines(f"/collaborations/{id}/ledger"), whole)
    for file, kept, whose in ((whole, None, None), (copy, head, agent)):
        flags = "" if kept is None else f" --head {kept} --agent {whose}"
        console.print(f"\n$ partage verify {file}{flags}", style="dim", markup=False, soft_wrap=True)
        found = verified(file, kept, whose)
        say(console, file, found, settlement=kept is not None)
        if not found.ok:
            raise PartageError("The demo's own ledger does not verify; this is a defect of Partage.")
