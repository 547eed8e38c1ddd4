"""The stream of a page, on a simulated machine."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.api import NAMED
from tests.support.faulty_store import Faulty
from tests.support.simulation import Machine

from partage.ledger.messages import NewAgent, NewCollaboration
from partage.service.pages.live import live, operator_snapshot
from partage.service.runtime.book import Book
from partage.service.runtime.controller import Controller
from partage.service.runtime.sessions import Who

NEW = NewCollaboration(name="T", arms=["a", "b"], horizon=100, **NAMED)


Scenario = Callable[[Controller, Book, AsyncIterator[bytes]], Awaitable[None]]


def on_machine(path: Path, seed: int, scenario: Scenario) -> None:
    """Play a scenario with one member and the operator's open page."""
    machine = Machine(seed)

    async def main() -> None:
        controller = Controller(Faulty(path, durable=False), "token", machine.system())
        controller.start()
        id, codes = await controller.create("secret", NEW)
        await controller.join(id, codes[0], NewAgent(name="Ann", shares=["a", "b"]))
        book = await controller.library.book(id)
        await scenario(controller, book, live(controller, book, operator_snapshot, Who()))
        await controller.stop()

    machine.run(main())


async def next_of(stream: AsyncIterator[bytes], *names: str) -> tuple[str, Any]:
    """Return the next event with one of these names, and what it holds."""
    async for event in stream:
        name, _, data = event.decode().removeprefix("event: ").partition("\ndata: ")
        if name in names:
            return name, msgspec.json.decode(data)
    raise AssertionError(f"The stream ended without {' or '.join(names)}.")


@pytest.mark.parametrize("seed", range(10))
def test_the_settlement_follows_a_close_between_two_events(seed: int, tmp_path: Path) -> None:
    """The page's own settlement was computed before the close, and is sent after it."""

    async def scenario(controller: Controller, book: Book, stream: AsyncIterator[bytes]) -> None:
        name, _ = await next_of(stream, "board", "money")
        if name == "board":
            await controller.settlements.view(book.id)  # of now, for the page too
        await asyncio.sleep(1)
        await controller.settlements.close(book.id)
        while not (await next_of(stream, "money"))[1]["closed"]:
            pass

    on_machine(tmp_path / "partage.db", seed, scenario)
