"""The bakers of the demo: their names, their suppliers and how they play."""

import asyncio
import contextlib
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from partage.client import AsyncAgent, BoardView, Closed, HorizonReached, Operator
from partage.errors import PartageError
from partage.ledger.messages import Disagreement
from partage.report.collaboration_tables import board_table, show_settlement

NAME = "The bakers of Rue des Moulins"
HORIZON = 10_000
VALUE = 2.0  # money that a delivery on time is worth
# What every baker prepays. In 95 % of such games 25 is enough: `partage prepaid` with these means and 12 members.
PREPAID = 30.0
# The flour suppliers and their share of deliveries on time, which nobody knows.
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
# The bakeries, and the suppliers whose deliveries each is willing to share with the others.
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
LEAVES, LEAVES_AT = "Le Pétrin", 0.6  # of its horizon
# With trouble: one baker reports late, one has other deliveries, and one makes its reports up.
LATE, LATE_CLAIMS = "Au Pain Doré", 1.25  # of the time that a claim may take
DIFFERS, OFFSET = "Boulangerie Tran", -0.2
LIES, LIE = "L'Épi d'Or", "Moulin Saint-Clair"  # it always tells that this supplier was on time
TIME_LAPSE = 20.0  # seconds for the rest of the horizon, once exploration is over
COMMIT_PAUSE = 0.01  # seconds; at full speed a baker would use up its horizon before exploration is over
LOOK = 0.4  # seconds between two reads of the board


def _who_and_what(one: Disagreement) -> str:
    """Return who sees what, without the figures, which change with every report."""
    what = one.arm if one.against is None else f"{one.arm} against {one.against}"
    return f"{' and '.join(one.names)} {'see' if len(one.names) > 1 else 'sees'} {what}"


@dataclass
class Bakers:
    """The bakers at play.

    Attributes
    ----------
    operator, collaboration
        The controller's operator, and the collaboration's id.
    folder
        Where files go.
    pace
        Pulls of each baker per second; None means as fast as possible.
    limit
        Seconds after which play ends in any case.
    late
        Seconds that the late baker takes to report; None means that there is no trouble.
    board
        The board, as last seen.
    explored
        Whether only one arm is left; from then on the demo runs in fast motion.
    pulls
        Pulls of all bakers so far.
    news, printed
        What happened so far, in sentences, and how many of them were printed.
    noticed
        What the board has said about trouble.
    """

    operator: Operator
    collaboration: str
    folder: Path
    pace: float | None
    limit: float
    late: float | None = None
    board: BoardView = field(init=False)
    explored: bool = False
    pulls: int = 0
    news: list[str] = field(default_factory=list)
    printed: int = 0
    noticed: set[str] = field(default_factory=set)

    @property
    def state(self) -> Path:
        """The state file of the shown baker."""
        return self.folder / "morel.json"

    @property
    def copy(self) -> Path:
        """The shown baker's copy of the ledger."""
        return self.folder / "morel.ndjson"

    async def play(self, console: Console, invites: Sequence[str], token: str) -> tuple[str, str]:
        """Let all bakers join and play, then close; returns the shown baker's saved head and its id."""
        async with contextlib.AsyncExitStack() as opened:
            agents = {
                name: await opened.enter_async_context(await self._join(name, shares, invite))
                for (name, shares), invite in zip(BAKERS.items(), invites, strict=False)
            }
            self._introduce(console, token, invites[-1])
            await self._look()
            await self._bake_all(console, agents)
            for agent in agents.values():
                await agent.flush()
            await self._look()
            self._print_news(console)
            console.print("", board_table(self.board, console), sep="\n")
            console.print(f"\nClosing. {self._status()}\n")
            settlement = await asyncio.to_thread(self.operator.close, self.collaboration)
            shown = agents[SHOWN]
            await shown.ledger(self.copy)
            late = sum(agent.unpaid for agent in agents.values())
        show_settlement(console, settlement)
        if late:
            console.print(f"{late:,} commit pulls were reported too late and do not count.")
        return shown.head, shown.id

    async def _join(self, name: str, shares: Sequence[str], invite: str) -> AsyncAgent:
        return await AsyncAgent.join(
            self.operator.url,
            self.collaboration,
            invite,
            name,
            shares,
            state=self.state if name == SHOWN else None,
            max_pulls_per_board=10 if self.pace else 1,  # at full speed, 10 would mostly follow an early leader
        )

    async def _bake_all(self, console: Console, agents: dict[str, AsyncAgent]) -> None:
        """Let all bakers play, and show the board meanwhile."""
        watching = asyncio.create_task(self._watch(console))
        try:
            async with asyncio.timeout(self.limit):
                await asyncio.gather(*(self._bake(name, agent) for name, agent in agents.items()))
        except TimeoutError:
            self.news.append(f"{self.limit / 60:g} minutes are over.")
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _bake(self, name: str, agent: AsyncAgent) -> None:
        """Play as one baker until its horizon is used, or it leaves."""
        dice = random.Random(name)
        to_change, made = name == CHANGES, 0
        with contextlib.suppress(Closed, HorizonReached):
            while True:
                if to_change and self.board.version >= CHANGES_AT:
                    to_change = False
                    await agent.share(INSTEAD)
                    self.news.append(f"{name} now shares {INSTEAD[1]} instead of {BAKERS[CHANGES][1]}.")
                if name == LEAVES and made >= LEAVES_AT * HORIZON:
                    await agent.leave()
                    self.news.append(f"{name} leaves; its reports and its settlement stay.")
                    return
                pull = await agent.ask()
                await self._deliver(dice, made, pull.share)
                if self.late is not None and name == LATE and pull.share:
                    await asyncio.sleep(self.late)
                await agent.tell(pull, self._reward(dice, name, pull.arm))
                made += 1
                self.pulls += 1

    def _reward(self, dice: random.Random, name: str, arm: str) -> float:
        """Return what a baker tells of a delivery: whether it was on time, unless there is trouble."""
        on_time = SUPPLIERS[arm] + (OFFSET if self.late is not None and name == DIFFERS else 0.0)
        came = float(dice.random() < on_time)
        return 1.0 if self.late is not None and name == LIES and arm == LIE else came

    async def _deliver(self, dice: random.Random, made: int, explore: bool) -> None:
        """Wait for the delivery: at the given pace during exploration, then in fast motion."""
        if self.pace is None:
            if not self.explored and not explore:
                await asyncio.sleep(COMMIT_PAUSE)
        elif not self.explored:
            await asyncio.sleep(dice.uniform(0.5, 1.5) / self.pace)
        elif made % 20 == 0 or explore:
            await asyncio.sleep(20 * TIME_LAPSE / HORIZON)

    # what is shown

    def _introduce(self, console: Console, token: str, invite: str) -> None:
        member = json.loads(self.state.read_text(encoding="utf-8"))["token"]
        console.print(f"[bold]{NAME}[/bold] look for the supplier that delivers on time.")
        if self.late is not None:
            console.print(f"{LATE} reports late, {DIFFERS} has worse deliveries, and {LIES} makes its reports up.")
        console.print(f"Each of them prepays {PREPAID:g}, and never loses more. Watch them:\n")
        for words, what in (
            ("in a browser", f"{self.operator.url}/c/{self.collaboration}"),
            ("log in as the operator", token),
            (f"or as {SHOWN}", member),
            ("or join them yourself", self.operator.link(self.collaboration, invite)),
        ):
            console.print(f"  {words:<25}{what}", soft_wrap=True, markup=False)
        console.print()

    async def _look(self) -> None:
        self.board = await asyncio.to_thread(self.operator.board, self.collaboration)
        self._notice()
        left = [arm for arm in self.board.arms if arm.active and arm.sharers]
        if not self.explored and len(left) == 1:
            self.explored = True
            found = f"{left[0].name} is found to be the best, after {self.board.version:,} broadcasts."
            self.news.append(f"{found} The rest runs in fast motion." if self.pace else found)

    def _notice(self) -> None:
        """Tell what the board says about trouble while they explore, once each."""
        said = [f"A claim on {arm.name} has lapsed: somebody is late." for arm in self.board.arms if arm.lapses]
        said += [f"{_who_and_what(one)} differently." for one in self.board.disagreements]
        for sentence in said:
            if self.late is not None and not self.explored and sentence not in self.noticed:
                self.noticed.add(sentence)
                self.news.append(sentence)

    async def _watch(self, console: Console) -> None:
        """Show the board: live in a terminal; elsewhere only the news is printed."""
        if not console.is_terminal:
            console.print("They begin.")
            while True:
                await self._look_again()
                self._print_news(console)
        with Live(console=console, auto_refresh=False, transient=True) as live:
            while True:
                live.update(self._picture(console), refresh=True)
                await self._look_again()

    async def _look_again(self) -> None:
        await asyncio.sleep(LOOK)
        with contextlib.suppress(PartageError):  # a single failed read does not end the demo
            await self._look()

    def _picture(self, console: Console) -> RenderableType:
        news = [Text(sentence, style="dim") for sentence in self.news[-3:]]
        return Group(board_table(self.board, console), Text(), Text(self._status()), *news)

    def _print_news(self, console: Console) -> None:
        for sentence in self.news[self.printed :]:
            console.print(sentence, markup=False)
        self.printed = len(self.news)

    def _status(self) -> str:
        leader = self.board.leader or "none yet"
        return f"Leader: {leader}; {self.board.version:,} broadcasts; {self.pulls:,} pulls of all bakers."
