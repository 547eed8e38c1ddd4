"""The bakers of the demo: who they are, what they do not know, and how they play."""

import asyncio
import contextlib
import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from partage.client import AsyncAgent, Closed, HorizonReached
from partage.client.operator import Operator
from partage.errors import PartageError
from partage.report.collaboration_tables import board_table, show_settlement

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
NEW = {
    "name": NAME,
    "arms": list(SUPPLIERS),
    "horizon": HORIZON,
    "settlement": "equal-share",
    "value": VALUE,
    "invites": len(BAKERS) + 1,  # one for whoever watches
}
SHOWN = "Boulangerie Morel"  # whose token is printed, and whose copy of the ledger is verified
CHANGES, INSTEAD, CHANGES_AT = "Le Fournil d'Inès", ("Moulin Saint-Clair", "Minoterie Aubry"), 300
LEAVES, LEAVES_AT = "Le Pétrin", 0.6  # of her horizon
TIME_LAPSE = 20.0  # seconds for the rest of the horizon, once all is explored
LOOK = 0.4  # seconds between two looks at the board


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
        Whether only one arm is left; from there on time flies.
    pulls
        Pulls of everybody so far.
    news, said
        What happened so far, in sentences, and how many of them were printed.
    """

    operator: Operator
    collaboration: str
    folder: Path
    pace: float | None
    limit: float
    board: dict[str, Any] = field(default_factory=dict)
    explored: bool = False
    pulls: int = 0
    news: list[str] = field(default_factory=list)
    said: int = 0

    async def play(self, console: Console, invites: list[str], token: str) -> tuple[str, str]:
        """Let everybody join and play, close, and return the head that the shown baker kept, and her id."""
        async with contextlib.AsyncExitStack() as opened:
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
            for agent in agents.values():
                await agent.flush()
            await self._look()
            self._say_news(console)
            console.print("", board_table(self.board, console), sep="\n")
            console.print(f"\nClosing. {self._status()}\n")
            settlement = await asyncio.to_thread(self.operator.post, self._path("/close"))
            shown = agents[SHOWN]
            await shown.ledger(self.folder / "morel.ndjson")
            late = sum(agent.unpaid for agent in agents.values())
        show_settlement(console, settlement)
        if late:
            console.print(f"{late:,} commit pulls were reported too late, and are not in it.")
        return shown.head, shown.id

    def _path(self, rest: str) -> str:
        return f"/collaborations/{self.collaboration}{rest}"

    def _introduce(self, console: Console, token: str, state: Path, invite: str) -> None:
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

    async def _bake(self, name: str, agent: AsyncAgent) -> None:
        """Play as one baker until her horizon is used, or she leaves."""
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
        if not self.explored:
            await asyncio.sleep(dice.uniform(0.5, 1.5) / self.pace)
        elif made % 20 == 0 or explore:
            await asyncio.sleep(20 * TIME_LAPSE / HORIZON)

    # what is seen

    async def _look(self) -> None:
        self.board = await asyncio.to_thread(self.operator.get, self._path("/board"))
        standing = [arm for arm in self.board["arms"] if arm["active"] and arm["sharers"]]
        if not self.explored and len(standing) == 1:
            self.explored = True
            found = f"{standing[0]['name']} is found to be the best, after {self.board['version']:,} broadcasts."
            self._tell(f"{found} The rest goes in fast motion." if self.pace else found)

    async def _watch(self, console: Console) -> None:
        """Keep the board in sight: drawn live on a terminal; elsewhere only the news are printed."""
        if not console.is_terminal:
            console.print("They begin.")
            while True:
                await asyncio.sleep(LOOK)
                with contextlib.suppress(PartageError):  # one look that fails is no reason to stop
                    await self._look()
                self._say_news(console)
        with Live(console=console, auto_refresh=False, transient=True) as live:
            while True:
                live.update(self._picture(console), refresh=True)
                await asyncio.sleep(LOOK)
                with contextlib.suppress(PartageError):
                    await self._look()

    def _picture(self, console: Console) -> Any:
        news = [Text(sentence, style="dim") for sentence in self.news[-3:]]
        return Group(board_table(self.board, console), Text(), Text(self._status()), *news)

    def _say_news(self, console: Console) -> None:
        for sentence in self.news[self.said :]:
            console.print(sentence, markup=False)
        self.said = len(self.news)

    def _status(self) -> str:
        leader = self.board["leader"] or "nobody yet"
        return f"Leader: {leader}; {self.board['version']:,} broadcasts; {self.pulls:,} pulls of all bakers."

    def _tell(self, sentence: str) -> None:
        self.news.append(sentence)
