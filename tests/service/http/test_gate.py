"""Streams that are opened at the same moment get in some at a time."""

import asyncio

from partage.service.http.gate import AT_ONCE, Gate


def test_some_get_in_with_each_turn_in_their_order() -> None:
    async def main() -> None:
        gate, came = Gate(), []

        async def client(place: int) -> None:
            await gate.enter()
            came.append(place)

        clients = [asyncio.ensure_future(client(place)) for place in range(5 * AT_ONCE)]
        await asyncio.sleep(0)
        clients[0].cancel()
        most = before = 0
        for _ in range(100):
            await asyncio.sleep(0)
            most, before = max(most, len(came) - before), len(came)
        await asyncio.gather(*clients, return_exceptions=True)
        assert came == list(range(1, 5 * AT_ONCE))
        assert 0 < most <= AT_ONCE
        await client(-1)  # and later ones
        assert came[-1] == -1

    asyncio.run(main())
