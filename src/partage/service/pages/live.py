"""What the pages show of a collaboration while it runs: snapshots, a feed of sentences, the settlement, its history.

An operator's snapshot lists all agents. A member's has the board, which every member may read, and the member alone.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UNSET, Struct

from partage.ledger.events import (
    AddArm,
    AnyEvent,
    Attach,
    Claim,
    Close,
    Commit,
    Consent,
    Create,
    Draw,
    Join,
    Lapse,
    Leave,
    Order,
    Remove,
    Revoke,
    Rotate,
    SetAside,
    Tell,
    Tick,
    UsedUp,
    decode,
)
from partage.ledger.messages import SettlementView
from partage.ledger.patches import Replace, changes
from partage.ledger.settlement import own_view
from partage.ledger.state import State
from partage.service.pages.html import counted, listed, money
from partage.service.runtime.book import Book, Preview
from partage.service.runtime.controller import Controller
from partage.service.runtime.frames import Frames
from partage.service.runtime.sessions import Who
from partage.service.runtime.settlements import PREVIEW_PAUSE

FEED = 40  # sentences on a page
SCANNED = 50_000  # events that a history reads at most, counted from the end
POINTS = 300  # of a history
NUMBERS = 60_000  # in a history; with many arms it has fewer points
PAUSE = 0.15  # seconds between two snapshots, in addition to the pause between two changes
BYTES_A_SECOND = 500_000  # of snapshots on one page; large ones are sent less often
LONGEST = 900.0  # seconds of one stream; then the browser opens another, which checks its session again


class Said(Struct):
    """A sentence of the feed. One that sums up several events has the key of the first, so that it grows in place."""

    key: int
    time: int
    kind: str
    text: str
    arm: int | None = None


class AgentRow(Struct):
    """An agent on the operator's page."""

    agent: str
    name: str
    shares: list[int]
    explore: int
    commit: int
    left: bool


class Pending(Struct):
    """A claim that waits for its report: its pull and its arm."""

    pull: int
    arm: int


class Weighing(Struct):
    """The rule's evidence against each arm, its threshold, and about how many more broadcasts it takes."""

    threshold: float | None
    evidence: list[float | None]
    more: list[int | None]


class Own(Struct):
    """A member on their own page; pulls by arm, those whose arm the member did not name, and the open claim."""

    shares: list[int]
    explore: list[int]
    commit: list[int]
    unnamed: int
    used: int
    left: bool
    aside: bool
    claim: Pending | None = None


class Snapshot(Struct, omit_defaults=True):
    """A collaboration at one moment, for the operator (`agents`) or for a member (`me`); the board comes on top."""

    time: int
    feed: list[Said]
    agents: list[AgentRow] | None = None
    me: Own | None = None
    weighing: Weighing | None = None
    board: msgspec.Raw | None = None


class News(Struct):
    """What makes the next snapshot of the last one.

    `board` has the patches of the board, one after another, and `rest` is a patch of all but the board and the feed.
    The new feed is `said`, followed by the old feed without its first `skip` sentences, `FEED` of them at most.
    """

    board: list[msgspec.Raw]
    rest: list[Replace]
    said: list[Said]
    skip: int


class Follower:
    """What one page knows: each event brings it from the last snapshot to the next."""

    def __init__(self) -> None:
        self._frame = 0
        self._feed: list[Said] = []
        self._rest: dict[str, Any] = {}

    def event(self, frames: Frames, snapshot: Snapshot) -> bytes:
        """Return the event that makes this snapshot, with the newest board, of the last; empty if it is the same."""
        feed, rest = snapshot.feed, msgspec.to_builtins(msgspec.structs.replace(snapshot, feed=[]))
        patches = frames.patches(self._frame)
        if patches is None or rest.keys() != self._rest.keys():
            name, made = (
                b"board",
                msgspec.json.encode(msgspec.structs.replace(snapshot, board=msgspec.Raw(frames.whole))),
            )
        else:
            new, skip = _new_sentences(self._feed, feed)
            news = News(list(map(msgspec.Raw, patches)), list(changes("", self._rest, rest)), new, skip)
            if not (news.board or news.rest or news.said or feed != self._feed):
                return b""
            name, made = b"patch", msgspec.json.encode(news)
        self._frame, self._feed, self._rest = frames.last, feed, rest
        return b"event: " + name + b"\ndata: " + made + b"\n\n"


def _new_sentences(old: list[Said], new: list[Said]) -> tuple[list[Said], int]:
    """Return the first sentences of a feed, and after how many of the old feed the others follow.

    >>> said = [Said(key, 0, "told", "") for key in range(4)]
    >>> _new_sentences([said[1], said[0]], [said[3], said[2], said[1], said[0]])[1]
    0
    """
    for fresh in range(len(new)):
        for skip in range(len(old)):
            if old[skip] == new[fresh] and (new[:fresh] + old[skip:])[:FEED] == new:
                return new[:fresh], skip
    return new, len(old)


class Amounts(Struct):
    """An agent's part of the settlement, as text. `word` says what the sign of net means, `back` is prepaid + net."""

    agent: str
    explore: int
    commit: int
    compensation: str
    charge: str
    net: str
    word: str
    back: str


class Money(Struct, omit_defaults=True):
    """The settlement on a page; only the operator gets the totals.

    `scale` is what is paid of each compensation, in percent; None if all is paid. `prepaid` is what every member
    prepaid, and `limit` the most that the operator can lose; None if there is none. `disagree` says whether members
    see arms differently, and `currency` is what amounts are in.
    """

    closed: bool
    settlement: str
    finished: bool
    viable: bool
    rows: list[Amounts]
    scale: str | None = None
    prepaid: str | None = None
    limit: str | None = None
    compensation: str | None = None
    charge: str | None = None
    profit: str | None = None
    profit_word: str | None = None
    disagree: bool = False
    currency: str = ""


class _Broadcast(Struct):
    """The part of a broadcast that a history needs."""

    agent: str
    time: int
    arm: int
    reward: float


# snapshots


def operator_snapshot(book: Book, earlier: list[AnyEvent]) -> Snapshot:
    """Return what the operator sees now."""
    state = book.state
    rows = [
        AgentRow(
            member.id,
            member.name,
            sorted(member.shares),
            sum(member.explore.values()),
            state.commits_of(member.id),
            member.left,
        )
        for member in state.members.values()
    ]
    said = feed(state, [*earlier, *book.recent], None)
    return Snapshot(state.time, said, agents=rows, weighing=weighing(book))


def member_snapshot(book: Book, earlier: list[AnyEvent], agent: str) -> Snapshot:
    """Return what a member sees now."""
    state = book.state
    member, arms = state.members[agent], range(len(state.arms))
    own = Own(
        sorted(member.shares),
        [member.explore.get(arm, 0) for arm in arms],
        [member.commit.get(arm, 0) for arm in arms],
        member.unnamed,
        member.used,
        member.left,
        bool(member.aside),
        None if member.claim is None else Pending(member.claim, state.claims[member.claim].arm),
    )
    said = feed(state, [*earlier, *book.recent], agent)
    return Snapshot(state.time, said, me=own, weighing=weighing(book))


_WEIGHED: WeakKeyDictionary[Book, tuple[State, int, Weighing | None]] = WeakKeyDictionary()


def weighing(book: Book) -> Weighing | None:
    """Return what the rule's own test says of each arm, computed once for all pages that show it."""
    state, kept = book.state, _WEIGHED.get(book)
    if kept is not None and kept[0] is state and kept[1] == state.seq:
        return kept[2]
    found = state.rule.weigh(state.board)
    made = None
    if found is not None:
        threshold = None if found.threshold is None else round(found.threshold, 3)
        evidence = [None if one is None else round(one, 3) for one in found.evidence]
        made = Weighing(threshold, evidence, list(found.more))
    _WEIGHED[book] = (state, state.seq, made)
    return made


def money_view(view: SettlementView, agent: str | None, currency: str = "") -> Money:
    """Return a settlement for the operator's page (`agent` None) or a member's."""
    seen = view if agent is None else own_view(view, agent)
    most = max((amount for row in seen.rows for amount in (row.compensation, row.charge)), default=0)
    fine = most < 1_000_000  # if every amount is below one unit, hundredths would hide it
    rows = []
    for row in seen.rows:
        net = money(row.net, fine)
        amounts = (money(row.compensation, fine), money(row.charge, fine), net.lstrip("−"))
        word, back = _word(net, "receives", "pays"), money(row.prepaid + row.net, fine)
        rows.append(Amounts(row.agent, row.explore, row.commit, *amounts, word, back))
    shown = Money(seen.closed, seen.settlement, seen.finished, seen.viable, rows)
    shown.scale = f"{math.floor(1000 * seen.scale) / 10:.1f} %" if seen.scale < 1 else None
    shown.prepaid = money(seen.prepaid, fine) if seen.prepaid else None
    shown.limit = None if seen.underwriting is None else money(seen.underwriting, fine)
    shown.disagree = bool(seen.disagreements)
    shown.currency = currency
    if agent is None:
        shown.compensation, shown.charge = money(seen.compensation, fine), money(seen.charge, fine)
        shown.profit = money(seen.profit, fine)
        shown.profit_word = _word(shown.profit, "gains", "loses")
    return shown


def _word(amount: str, above: str, below: str) -> str:
    """Return what an amount means as it is shown: one that rounds to zero is even."""
    return below if amount.startswith("−") else above if amount.strip("0.") else "even"


# the feed


def feed(state: State, events: list[AnyEvent], reader: str | None) -> list[Said]:
    """Return the last events as sentences, newest first; a member (`reader`) does not see others' commit pulls.

    A claim appears only while it is open, since its broadcast follows. Consecutive commit pulls become one sentence.
    """
    told: list[Said] = []
    run: list[Commit] = []  # newest first

    def end_run() -> None:
        if run:
            told.append(_committed(state, run))
            run.clear()

    for event in reversed(events):
        if len(told) >= FEED:
            break
        if isinstance(event, Commit):
            if reader is None or event.agent == reader:
                run.append(event)
            continue
        said = _said(state, event)
        if said is not None:
            end_run()
            told.append(said)
    end_run()
    return told[:FEED]


def _committed(state: State, run: list[Commit]) -> Said:
    pulls = sum(part.pulls for event in run for part in event.runs)
    unnamed = sum(event.unnamed for event in run if event.unnamed is not UNSET)
    arms = {part.arm for event in run for part in event.runs}
    agents = {event.agent for event in run}
    who = state.members[run[0].agent].name if len(agents) == 1 else counted(len(agents), "agent")
    where = state.arms[next(iter(arms))] if len(arms) == 1 else counted(len(arms), "arm")
    parts = [f"{counted(pulls, 'pull')} to {where}"] if pulls else []
    if unnamed:
        parts.append(counted(unnamed, "pull") + (" without naming the arm" if state.names_commits else ""))
    text = f"{who} committed {' and '.join(parts)}"
    return Said(run[-1].seq, run[0].time, "commit", text, next(iter(arms)) if len(arms) == 1 else None)


def _said(state: State, event: AnyEvent) -> Said | None:
    """Return an event as a sentence, or None if the feed leaves it out."""
    arms = state.arms
    agent = getattr(event, "agent", None)
    name = state.members[agent].name if agent is not None and agent in state.members else ""
    arm: int | None = None
    match event:
        case Create():
            kind, text = "create", f"The collaboration was created, with {counted(len(event.arms), 'arm')}"
        case Join(shares=shares):
            kind, text = "join", f"{name} joined and shares {listed([arms[share] for share in shares])}"
        case Tell(arm=arm, reward=reward):
            kind, text = "tell", f"{name} broadcast {arms[arm]}: {reward:.3g}"
        case Claim(arm=arm) if event.seq in state.claims:
            does = "is exploring" if state.closed is None else "did not report"
            kind, text = "claim", f"{name} {does} {arms[arm]}"
        case UsedUp(arms=places):
            kind, text = (
                "used-up",
                f"The members who share {listed([arms[one] for one in places])} have no pulls left",
            )
        case Lapse():
            kind, text = "lapse", f"{name} did not report in time; the claim lapsed"
        case Tick(clock=clock):
            kind, text = "tick", f"Together the members have made about {counted(clock, 'pull')}"
        case Consent(shares=shares):
            kind, text = "consent", f"{name} now shares {listed([arms[share] for share in shares])}"
        case Leave():
            kind, text = "leave", f"{name} left"
        case Attach(arm=arm, rewards=rewards):
            kind, text = "attach", f"{name} attached {counted(len(rewards), 'past reward')} of {arms[arm]}"
        case AddArm(name=added):
            kind, text = "arm", f"The operator added the arm {added}"
        case SetAside(reason=reason):
            kind, text = "aside", f"The operator set the broadcasts of {name} aside: {reason}"
        case Draw(members=members):
            kind, text = "draw", f"The tie order is being drawn by {counted(len(members), 'member')}"
        case Order(skipped=skipped):
            without = f", without {listed([state.members[one].name for one in skipped])}" if skipped else ""
            kind, text = "order", f"The tie order is fixed{without}"
        case Rotate():
            kind, text = "token", f"{name} got a new token"
        case Revoke():
            kind, text = "token", f"The operator ended the token of {name}"
        case Remove(reason=reason):
            kind, text = "leave", f"The operator removed {name}: {reason}"
        case Close():
            kind, text = "close", "The collaboration was closed"
        case _:
            return None
    return Said(event.seq, event.time, kind, text, arm)


async def earlier_events(controller: Controller, book: Book) -> list[AnyEvent]:
    """Return events from before this process started, if the feed would be short without them."""
    if len(book.recent) >= 5 * FEED:
        return []
    first = book.recent[0].seq if book.recent else book.state.seq + 1
    after = max(0, first - 1 - 2 * FEED)
    rows = await controller.call(controller.store.rows, book.id, after, first - 1 - after)
    return [decode(row.body) for row in rows]


# the stream


async def live(
    controller: Controller, book: Book, snapshot: Callable[[Book, list[AnyEvent]], Snapshot], who: Who
) -> AsyncIterator[bytes]:
    """Send a snapshot now, what changes in it from then on, and the settlement whenever it is recomputed.

    The two are separate messages: a settlement can take a second, and the board does not wait for it.
    """
    changes, agent = controller.watch(book.id, who), who.agent
    earlier = await earlier_events(controller, book)
    loop = asyncio.get_running_loop()
    ends = loop.time() + LONGEST
    due, accounted, follower, sent_money = 0.0, 0, Follower(), b""
    currency = book.state.config.currency
    unit = "" if currency is UNSET else currency

    async def change() -> tuple[bool, Book | None]:
        async for changed in changes:
            return True, changed
        return False, None

    async def settlement() -> Preview:
        while not book.state.closed and loop.time() < due:
            await asyncio.sleep(0.1)
        return await controller.settlements.preview(book.id, recent=True)

    turn = asyncio.create_task(change())
    account: asyncio.Task[Preview] | None = asyncio.create_task(settlement())
    try:
        yield b"retry: 1000\n\n"
        while loop.time() < ends:
            waiting: Iterable[asyncio.Task[Any]] = (turn,) if account is None else (turn, account)
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if account is not None and account in done:
                shown = account.result()  # not the book's: that may be newer by now, and is not sent
                body, accounted = msgspec.json.encode(money_view(shown.view, agent, unit)), shown.seq
                account, due = None, loop.time() + PREVIEW_PAUSE / 1000 + 0.05
                if body != sent_money:
                    sent_money = body
                    yield b"event: money\ndata: " + body + b"\n\n"
            if turn in done:
                goes_on, changed = turn.result()
                if not goes_on:
                    return
                turn = asyncio.create_task(change())
                if changed is None:
                    yield b": still here\n\n"
                else:
                    await book.on_disk()  # a page shows only what is on disk
                    if book.valid and (event := follower.event(book.shown(), snapshot(book, earlier))):
                        yield event
                        await asyncio.sleep(PAUSE + len(event) / BYTES_A_SECOND)
            if account is None and accounted != book.state.seq:
                account = asyncio.create_task(settlement())
    finally:
        for task in (turn, account):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await task
        with suppress(RuntimeError):
            await changes.aclose()  # type: ignore[attr-defined]


# history


async def history(controller: Controller, book: Book) -> dict[str, Any]:
    """Return broadcasts and means per arm over time, from the last events.

    `points` are [time, broadcasts, of each arm …], and `means` has the mean of each arm at each point; null before
    its first broadcast. What it is at the end is known, so what it is where the reading begins follows by
    subtraction. Broadcasts that were set aside are left out.
    """
    state = book.state
    aside = {member.id for member in state.members.values() if member.aside}
    last, counts, arms = state.seq, list(state.board.counts), state.board.arms
    sums = list(state.board.record.sums)
    first = after = max(0, last - SCANNED)
    told: list[_Broadcast] = []
    decoder = msgspec.json.Decoder(_Broadcast)
    while after < last:
        rows = await controller.call(controller.store.some_rows, book.id, after, last)
        if not rows:
            break
        told += [decoder.decode(row.body) for row in rows if row.pull is not None]
        after = rows[-1].seq
        await asyncio.sleep(0)
    told = [broadcast for broadcast in told if broadcast.agent not in aside]
    for broadcast in told:
        counts[broadcast.arm] -= 1
        sums[broadcast.arm] -= broadcast.reward
    started = state.config.time if first == 0 else (told[0].time if told else state.time)
    most = max(2, min(POINTS, NUMBERS // (2 * arms + 2)))
    points, means = zip(*_points(counts, sums, told, started, most), strict=True)
    return {"whole": first == 0, "points": points, "means": means}


Point = tuple[list[int], list[float | None]]


def _points(counts: list[int], sums: list[float], told: list[_Broadcast], started: int, most: int) -> Iterator[Point]:
    """Yield about `most` points at most, evenly over the broadcasts, including the first and the last."""
    total = sum(counts)
    yield [started, total, *counts], _means(counts, sums)
    step = max(1, -(-len(told) // most))
    for place, broadcast in enumerate(told, 1):
        counts[broadcast.arm] += 1
        sums[broadcast.arm] += broadcast.reward
        if place % step == 0 or place == len(told):
            yield [broadcast.time, total + place, *counts], _means(counts, sums)


def _means(counts: list[int], sums: list[float]) -> list[float | None]:
    return [round(total / count, 4) if count else None for count, total in zip(counts, sums, strict=True)]
