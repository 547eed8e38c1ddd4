"""The close of a large collaboration: `python -m bench.close [--short]`.

How long a close takes, and how long the event loop stands still at most meanwhile. Members and their pulls are put
into the state of a controller with SQLite, without their rows: only what a settlement reads matters here.
"""

import argparse
import asyncio
import gc
import random
import tempfile
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from partage.board import Record
from partage.ledger.fields import MOST_PAID_ARMS, MOST_PLAYED_ARMS
from partage.ledger.members import Member
from partage.ledger.messages import NewCollaboration, SettlementView
from partage.service.runtime.controller import Controller
from partage.service.store import open_store

TICK = 0.002  # seconds between two looks at the clock


class Case(NamedTuple):
    """A collaboration: half of its arms are left if `left` is, otherwise one; every member has other pulls."""

    settlement: str
    alone: str | None
    arms: int
    horizon: int
    members: int
    left: bool = False


class Measured(NamedTuple):
    """What a close took, and what it settled.

    Attributes
    ----------
    seconds
        Until it was answered.
    pause
        The longest that the event loop stood still, in milliseconds.
    looks
        How often the event loop was looked at meanwhile.
    view
        The settlement.
    """

    seconds: float
    pause: float
    looks: int
    view: SettlementView


CASES = (
    Case("paper", None, MOST_PAID_ARMS, 10**15, 1000),
    Case("equal-share", "best", MOST_PAID_ARMS, 10**15, 1000),
    Case("equal-share", "best", MOST_PAID_ARMS, 10**6, 1000, left=True),
    Case("equal-share-expected", "two-ucb", MOST_PLAYED_ARMS, 10**6, 1000),
    Case("equal-share", "two-ucb", MOST_PLAYED_ARMS, 10**6, 1000),
    Case("pool", None, 1000, 10**15, 1000),
)
SHORT = (Case("equal-share", "best", 100, 10**6, 100, left=True),)


def measure(case: Case) -> Measured:
    """Close such a collaboration, on an event loop of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measure(case, Path(folder)))


async def _measure(case: Case, folder: Path) -> Measured:
    controller = Controller(open_store(str(folder / "partage.db")))
    new = NewCollaboration(
        name="Large",
        arms=[f"arm {arm}" for arm in range(case.arms)],
        horizon=case.horizon,
        rule="balanced-etc",
        settlement=case.settlement,
        alone=case.alone,
        underwriting=None if case.settlement == "pool" else 1e9,
        prepaid=20.0 if case.settlement == "pool" else None,
    )
    id, _ = await controller.create("secret", new)
    _fill((await controller.library.book(id)).state, case)
    pauses, over = [0.0], asyncio.Event()

    async def watch() -> None:
        last = perf_counter()
        while not over.is_set():
            await asyncio.sleep(TICK)
            last, before = perf_counter(), last
            pauses.append(last - before - TICK)

    gc.collect()
    gc.freeze()  # as the server does at its start
    watching = asyncio.ensure_future(watch())
    await asyncio.sleep(10 * TICK)
    began, before = perf_counter(), len(pauses)
    view = await controller.settlements.close(id)
    seconds, looks = perf_counter() - began, len(pauses) - before
    over.set()
    await watching
    await controller.stop()
    gc.unfreeze()
    return Measured(seconds, 1000 * max(pauses), looks, view)


def _fill(state, case):
    """Put members, their pulls and a record of all arms into the state."""
    chance, board = random.Random(1), state.board
    board.public = [True] * case.arms
    good = case.arms // 2 if case.left else 1
    counts = [40 if case.left else 10_000] * good + [chance.randint(100, 400) for _ in range(case.arms - good)]
    shares = [0.9] * good + [chance.uniform(0.05, 0.3 if case.left else 0.7) for _ in range(case.arms - good)]
    board.record = Record(counts, [float(round(count * share)) for count, share in zip(counts, shares, strict=True)])
    board.active = [arm < good for arm in range(case.arms)]
    state.led = set(range(case.arms))
    for number in range(1, case.members + 1):
        member = Member(f"a{number}", f"Member {number}", frozenset(), 1, 1, [], state.config.horizon)
        member.commit = {0: int(min(case.horizon, 10**9) * chance.random()) + number}
        member.commit |= {chance.randrange(case.arms): 5 for _ in range(10)}
        member.explore = {chance.randrange(case.arms): 7}
        state.members[member.id] = member


def main() -> None:
    """Print a table of all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="Measure one small case.")
    given = parser.parse_args()
    table = Table("settlement", "alone", "arms", "horizon", "members", "arms left", "seconds", "longest pause, ms")
    for case in SHORT if given.short else CASES:
        measure(case._replace(members=3))  # compiled code is loaded before
        found = measure(case)
        left = case.arms // 2 if case.left else 1
        sizes = (f"{case.arms:,}", f"{case.horizon:.0e}", f"{case.members:,}", str(left))
        table.add_row(case.settlement, case.alone or "", *sizes, f"{found.seconds:.1f}", f"{found.pause:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
