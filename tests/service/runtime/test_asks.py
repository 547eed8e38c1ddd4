"""Asks that wait for a claim: each gets the first that opens for its agent, in the order of arrival."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.support.api import NAMED
from tests.support.faulty_store import Faulty
from tests.support.simulation import Machine

from partage.ledger.messages import NewAgent, NewCollaboration, Pull
from partage.ledger.refusals import Refused
from partage.service.runtime.book import Book
from partage.service.runtime.controller import Controller

NEW = NewCollaboration(name="T", arms=["a", "b"], horizon=1000, rule="balanced-etc", balance=1, invites=8, **NAMED)
WAIT = 0.5


class Played:
    """A collaboration in which several agents share arm a, one shares arm b, and arm a is closed for now."""

    def __init__(self, controller: Controller, book: Book, agents: list[str], b: str) -> None:
        self.controller, self.book, self.b = controller, book, b
        self.free = agents  # those that have no claim
        self.holders: list[str] = []

    @classmethod
    async def begin(cls, controller: Controller) -> "Played":
        id, codes = await controller.create("secret", NEW)
        joins = [
            NewAgent(name=f"Agent {place}", shares=["b"] if place == 0 else ["a"]) for place in range(len(codes))
        ]
        b, *agents = [(await controller.join(id, code, new))[0] for code, new in zip(codes, joins, strict=True)]
        played = cls(controller, await controller.library.book(id), agents, b)
        while await played.ask(played.free[0]) is not None:
            played.holders.append(played.free.pop(0))
        return played

    async def ask(self, agent: str, wait: float = 0.0, request: str | None = None) -> Pull | None:
        return await self.controller.ask(self.book, agent, request, True, wait=wait)

    def asking(self, agent: str, request: str | None = None) -> "asyncio.Task[Pull | None]":
        return asyncio.ensure_future(self.ask(agent, WAIT, request))

    async def open_a(self) -> None:
        """Let the other arm be claimed, which opens arm a for one claim, and told."""
        pull = await self.ask(self.b)
        assert pull is not None
        await self.controller.tell(self.book, self.b, pull.pull, 0.5)


def on_machine(path: Path, scenario: Callable[[Played, Faulty], Awaitable[None]]) -> None:
    """Play a scenario in simulated time."""
    machine, store = Machine(1), Faulty(path, durable=False)

    async def main() -> None:
        controller = Controller(store, "token", machine.system())
        controller.start()
        await scenario(await Played.begin(controller), store)
        await controller.stop()

    machine.run(main())


def now() -> float:
    return asyncio.get_running_loop().time()


async def soon() -> None:
    """Let the requests so far be played."""
    await asyncio.sleep(0.1)


def test_the_first_that_waits_gets_the_claim_with_the_commit_that_opened_it(tmp_path: Path) -> None:
    async def scenario(played: Played, store: Faulty) -> None:
        first, second = played.asking(played.free[0]), played.asking(played.free[1])
        await soon()
        assert not first.done()
        assert not second.done()
        before = now()
        await played.open_a()
        await soon()
        pull = first.result()
        assert pull is not None
        assert (pull.arm, pull.share) == ("a", True)
        assert store.row(played.book.id, pull.pull) is not None
        assert pull.receipt is not None
        assert now() - before < WAIT / 2
        assert not second.done()
        await played.open_a()
        assert (await second) is not None

    on_machine(tmp_path / "partage.db", scenario)


def test_who_waits_in_vain_is_answered_in_time(tmp_path: Path) -> None:
    async def scenario(played: Played, store: Faulty) -> None:
        before, seq = now(), played.book.state.seq
        assert await played.ask(played.free[0], WAIT) is None
        assert WAIT <= now() - before < WAIT + 0.1
        assert await played.ask(played.free[0]) is None
        assert played.book.state.seq == seq
        assert played.book.asks == {}

    on_machine(tmp_path / "partage.db", scenario)


def test_a_request_that_is_sent_twice_gets_one_claim(tmp_path: Path) -> None:
    async def scenario(played: Played, store: Faulty) -> None:
        first = played.asking(played.free[0], "one")
        await soon()
        second = played.asking(played.free[0], "one")
        await soon()
        assert await first is None  # the newer one waits
        await played.open_a()
        pull = await second
        assert pull is not None
        again = await played.ask(played.free[0], WAIT, "one")
        assert again is not None
        assert again.pull == pull.pull
        assert sum(claim.agent == played.free[0] for claim in played.book.state.claims.values()) == 1

    on_machine(tmp_path / "partage.db", scenario)


def test_nothing_is_handed_to_a_request_that_was_given_up(tmp_path: Path) -> None:
    async def scenario(played: Played, store: Faulty) -> None:
        gone, next_one = played.asking(played.free[0]), played.asking(played.free[1])
        await soon()
        gone.cancel()
        await played.open_a()
        assert (await next_one) is not None
        assert played.book.state.members[played.free[0]].claim is None

    on_machine(tmp_path / "partage.db", scenario)


def test_the_close_answers_who_waits(tmp_path: Path) -> None:
    async def scenario(played: Played, store: Faulty) -> None:
        asking = played.asking(played.free[0])
        await soon()
        before = now()
        await played.controller.settlements.close(played.book.id)
        with pytest.raises(Refused) as refused:
            await asking
        assert refused.value.code == "closed"
        assert now() - before < WAIT / 2

    on_machine(tmp_path / "partage.db", scenario)


@pytest.mark.parametrize("fault", ["lost", "full", "unknown"])
def test_a_commit_that_fails_hands_out_nothing_twice(tmp_path: Path, fault: str) -> None:
    async def scenario(played: Played, store: Faulty) -> None:
        agent = played.free[0]
        asking = played.asking(agent, "one")
        await soon()
        store.faults = [fault]
        opening = asyncio.ensure_future(played.ask(played.b, request="b"))
        await asyncio.gather(asking, opening, return_exceptions=True)
        assert await played.ask(played.b, request="b") is not None  # again, if it failed
        pull = await played.ask(agent, WAIT, "one")
        assert pull is not None
        if asking.exception() is None and asking.result() is not None:
            assert asking.result().pull == pull.pull
        claims = [claim for claim in played.book.state.claims.values() if claim.agent == agent]
        assert len(claims) == 1
        assert store.row(played.book.id, pull.pull) is not None

    on_machine(tmp_path / "partage.db", scenario)


def test_what_another_process_wrote_wakes_who_waits(tmp_path: Path) -> None:
    async def scenario(played: Played, store: Faulty) -> None:
        asking = played.asking(played.free[0])
        await soon()
        queued = len(played.controller.library._writer.tasks)
        played.controller.library._heard(played.book.id, played.book.state.seq + 1)
        assert len(played.controller.library._writer.tasks) == queued + 1  # it reads what is new
        assert await asking is None

    on_machine(tmp_path / "partage.db", scenario)
