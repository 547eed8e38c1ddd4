"""The agent for asyncio does what the blocking one does."""

import asyncio
import contextlib
import inspect
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.live import BEFORE, URL, App, Live, New

from partage.client import Agent, AsyncAgent, HorizonReached
from partage.client.stream import BoardLines, Garbled
from partage.errors import InputError


def test_both_agents_have_the_same_names() -> None:
    def names(kind: type) -> dict[str, list[str]]:
        public = {name: member for name, member in vars(kind).items() if not name.startswith("_")}
        return {
            name: list(inspect.signature(getattr(member, "__func__", member)).parameters)
            for name, member in public.items()
        }

    assert names(Agent) == names(AsyncAgent)


def comparable(live: Live) -> list[tuple[str, bytes]]:
    """All requests, with the ids of requests numbered as they come."""
    ids: dict[str, int] = {}
    found = []
    for name, request in zip(live.names(), live.requests, strict=True):
        body = msgspec.json.decode(request.content or b"{}")
        if "request" in body:
            body["request"] = ids.setdefault(body["request"], len(ids))
        if "pull" in body:
            body["pull"] = ids.setdefault(body["pull"], len(ids))
        body.pop("checkpoint", None)  # of different ledgers
        body.pop("name", None)
        found.append((name, msgspec.json.encode(body)))
    return found


def two_alike(app: App) -> tuple[Live, Live]:
    """Two collaborations with the same tie order."""
    first = Live(app, ["a", "b", "c"], 150)
    while True:
        second = Live(app, ["a", "b", "c"], 150)
        if second.state.board.tie_order == first.state.board.tie_order:
            return first, second


@pytest.mark.parametrize("seed", range(6))
def test_both_agents_do_the_same(app: App, seed: int) -> None:
    plain, other = two_alike(app)

    def happens(live: Live, draw: random.Random) -> Callable[[str], float]:
        def pull_arm(arm: str) -> float:
            live.sleep(draw.random())
            if draw.random() < 0.3 and live.open_to("a1"):
                live.broadcast("a1", draw.random())
            live.fault = lambda request: BEFORE if draw.random() < 0.1 else None
            return draw.random()

        return pull_arm

    async def play_async() -> Any:
        agent = await other.async_agents.join(
            URL, other.id, other.invite("i"), "Shop", ["a"], transport=other.async_transport, listen=False
        )
        async with agent:
            return await agent.play(happens(other, random.Random(seed)), 200)

    random.seed(seed)
    plain.join("b")
    with plain.joined("a", invite="i") as agent:
        expected = agent.play(happens(plain, random.Random(seed)), 200)
    random.seed(seed)
    other.join("b")
    assert asyncio.run(play_async()) == expected
    assert comparable(other) == comparable(plain)


def test_a_cancelled_call_changes_nothing(new: New, tmp_path: Path) -> None:
    live = new(["a", "b"], horizon=60)

    async def play() -> str:
        agent = await AsyncAgent.join(
            URL,
            live.id,
            live.invite("i"),
            "Shop",
            ["a", "b"],
            transport=live.async_transport,
            listen=False,
            state=tmp_path / "s.json",
        )
        cancelled = 0
        async with agent:
            for turn in range(1000):
                call = asyncio.create_task(agent.ask())
                for _ in range(turn % 7):
                    await asyncio.sleep(0)
                if call.cancel():
                    cancelled += 1
                with contextlib.suppress(asyncio.CancelledError, HorizonReached):
                    await call
                try:
                    pull = await agent.ask()
                except HorizonReached:
                    break
                await agent.tell(pull, 0.5)
        assert cancelled > 10
        return agent.id

    member = live.state.members[asyncio.run(play())]
    assert member.used == 60
    assert member.claim is None


def test_a_transport_of_the_other_kind_is_refused(new: New) -> None:
    live = new(["a"])
    with pytest.raises(InputError, match="AsyncBaseTransport"):
        AsyncAgent(URL, live.id, "pt_ag_x", transport=live.transport)
    with pytest.raises(InputError, match=r"httpx\.BaseTransport"):
        Agent(URL, live.id, "pt_ag_x", transport=live.async_transport)


def test_boards_are_read_from_the_streams_lines() -> None:
    lines = BoardLines()
    stream = [": still here", "", "event: board", 'data: {"a": 1}', "", "event: other", "data: no", "", "data:[]", ""]
    assert [board for line in stream if (board := lines.read(line)) is not None] == [{"a": 1}, []]


@pytest.mark.parametrize(
    "stream",
    [
        ["event: board", "data: {", ""],
        ["event: patch", 'data: [{"op":"replace","path":"/a","value":1}]', ""],  # of which board?
        ["data: {}", "", "event: patch", 'data: [{"op":"replace","path":"/a/b","value":1}]', ""],
        ["data: [1]", "", "event: patch", 'data: [{"op":"replace","path":"/a","value":1}]', ""],
        ["data: {}", "", "event: patch", 'data: [{"op":"remove","path":"/a"}]', ""],
    ],
)
def test_what_is_no_board_and_fits_none_ends_the_stream(stream: list[str]) -> None:
    lines = BoardLines()
    *before, last = stream
    for line in before:
        lines.read(line)
    with pytest.raises(Garbled):
        lines.read(last)
