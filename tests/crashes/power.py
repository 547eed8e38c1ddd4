"""A power cut: what SQLite's files may be after it, at many points of a real server's life.

A server works on the layer of `tests.crashes.disk`, which records each change of its files. From the record the files
are built as a power cut may leave them at any point: all that was synced, and any part, down to sectors, of what was
written since. The real store then opens them.
"""

import asyncio
import json
import random
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.crashes import disk
from tests.crashes.disk import DELETE, OPEN, SECTOR, SYNC, TRUNCATE, WRITE, Change
from tests.crashes.kills import ROOT
from tests.crashes.load import Agents, Answered, compare, keys_of
from tests.crashes.memory import in_memory
from tests.support.api import NAMED, OPERATOR, TOKEN, Host, hang_up
from tests.support.server import Server

from partage.ledger.chain import line
from partage.ledger.events import decode
from partage.ledger.messages import NewCollaboration
from partage.service.runtime.controller import Controller
from partage.service.store import Row, open_store

WAYS = ("nothing", "all", "the first ones", "the last ones", "some", "some sectors")


class Recorded(NamedTuple):
    """A server's life: the changes of its files, what was answered, and its ledger in the end."""

    log: bytes
    answered: list[Answered]
    collaboration: str
    rows: list[Row]
    verified: set[int]  # how many of the rows, from the first, were verified already


def record(folder: Path, agents: int = 4, checkpoints: int = 2) -> Recorded:
    """Let a server work until SQLite has moved its log into the database so often, restart it, and record it all."""
    with in_memory(folder) as memory:
        return _record(memory, agents, checkpoints)


def _record(folder: Path, agents: int, checkpoints: int) -> Recorded:
    database, log = folder / "partage.db", folder / "log"
    given = OPERATOR | {"DISK_LOG": str(log), "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}

    def start(port: int = 0) -> Server:
        return Server(f"sqlite:///{database}", env=given, module="tests.crashes.disk", port=port)

    def moved() -> int:
        return sum(change.kind == SYNC and change.suffix == "" for _, change in disk.read_log(log.read_bytes()))

    answered: list[Answered] = []
    server = start()
    try:
        host = Host(server.url, horizon=10**6, arms=["a", "b", "c"], claim_seconds=600, invites=20, **NAMED)
        for again, wanted in enumerate((checkpoints, 0)):
            if again:
                server.stop()  # in good order, which empties the write-ahead log
                hang_up(server.url)
                server = start()
                host.url = server.url
            states = folder / f"agents-{again}"
            states.mkdir()
            working = Agents(host, states, agents, mark=lambda: log.stat().st_size)
            goal = moved() + wanted
            while moved() < goal:
                working.wait(20)
            working.wait(20)
            working.stop()
            answered += working.answered
    finally:
        server.kill()
        hang_up(server.url)
    with closing(open_store(f"sqlite:///{database}")) as store:
        return Recorded(log.read_bytes(), answered, host.collaboration, store.rows(host.collaboration), set())


# files on a disk


class File:
    """A file: what is on disk for certain, and the changes that may be there or not."""

    def __init__(self) -> None:
        self.synced = bytearray()
        self.pending: list[Change] = []
        self.named = False  # whether its folder was synced since it was made

    def sync(self) -> None:
        """Make all changes certain."""
        for change in self.pending:
            _apply(self.synced, change)
        self.pending = []

    def after(self, way: str, source: random.Random) -> bytes:
        """Return the file as it may be after a power cut."""
        content, pending = bytearray(self.synced), self.pending
        place = source.randint(0, len(pending))
        kept = {
            "nothing": [],
            "all": pending,
            "the first ones": pending[:place],
            "the last ones": pending[place:],
            "some": [change for change in pending if source.random() < 0.5],
            "some sectors": [part for change in pending for part in _sectors(change) if source.random() < 0.5],
        }
        for change in kept[way]:
            _apply(content, change)
        return bytes(content)


def _apply(content: bytearray, change: Change) -> None:
    if change.kind == TRUNCATE:
        del content[change.place :]
        content.extend(bytes(change.place - len(content)))
    else:
        content.extend(bytes(max(0, change.place - len(content))))
        content[change.place : change.place + len(change.data)] = change.data


def _sectors(change: Change) -> Iterator[Change]:
    """Yield the parts of a write that a disk writes one by one."""
    if change.kind != WRITE:
        yield change
        return
    begin, end = change.place, change.place + len(change.data)
    while begin < end:
        until = min(end, (begin // SECTOR + 1) * SECTOR)
        yield Change(WRITE, change.suffix, begin, change.data[begin - change.place : until - change.place])
        begin = until


class Folder:
    """The files of a database by name: as programs see them, and as they are on disk for certain."""

    def __init__(self) -> None:
        self.now: dict[str, File] = {"": File()}  # the store makes the database's file before SQLite opens it
        self.synced: dict[str, File] = {}

    def change(self, change: Change) -> None:
        """Follow a change."""
        if change.kind == OPEN:
            self.now[change.suffix] = File()
        elif change.kind == DELETE:
            del self.now[change.suffix]
            if change.place:
                self.synced = dict(self.now)
        elif change.kind == SYNC:
            file = self.now[change.suffix]
            file.sync()
            if change.suffix and not file.named:  # SQLite syncs the folder with a new file, except for the database
                self.synced, file.named = dict(self.now), True
        else:
            self.now[change.suffix].pending.append(change)

    def after(self, way: str, source: random.Random) -> dict[str, bytes]:
        """Return the files as they may be after a power cut."""
        names = {}
        for suffix in {*self.now, *self.synced}:
            newest = way == "all" or (way != "nothing" and source.random() < 0.5)
            file = (self.now if newest else self.synced).get(suffix)
            if file is not None:
                names[suffix] = file
        return {suffix: file.after(way, source) for suffix, file in names.items()}


# cuts


@dataclass
class Cuts:
    """What power cuts left behind."""

    changes: int = 0
    cuts: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    seconds: float = 0.0


def cut(recorded: Recorded, folder: Path, points: int, seed: int = 1, lying: bool = False) -> Cuts:
    """Cut the power at this many points of the record, in each way that leaves something else.

    With `lying`, the disk says that the write-ahead log is synced and it is not: the cuts must show it.
    """
    with in_memory(folder) as memory:
        return _cut(recorded, memory / "cut", points, seed, lying)


def _cut(recorded: Recorded, folder: Path, points: int, seed: int, lying: bool) -> Cuts:
    source, cuts, began = random.Random(seed), Cuts(), time.monotonic()
    changes = list(disk.read_log(recorded.log))
    cuts.changes, cuts.acknowledged = len(changes), sum(one.status < 300 for one in recorded.answered)
    # Half of the points are where the database itself is written, which is seldom and delicate.
    delicate = [place for place, (_, change) in enumerate(changes) if change.suffix != "-wal"]
    chosen = {*source.sample(delicate, min(points // 2, len(delicate)))}
    chosen |= {*source.sample(range(len(changes)), min(points - len(chosen), len(changes)))}
    seqs = {key: row.seq for row in recorded.rows for key in keys_of(json.loads(row.body))}
    disk_now = Folder()
    for place, (end, change) in enumerate(changes):
        if not (lying and change.kind == SYNC and change.suffix == "-wal"):
            disk_now.change(change)
        if place not in chosen:
            continue
        required = max(
            (seqs[one.key] for one in recorded.answered if one.status < 300 and one.mark <= end), default=0
        )
        seen = set()
        for way in WAYS:
            files = disk_now.after(way, source)
            key = hash(tuple(sorted(files.items())))
            if key in seen:
                continue
            seen.add(key)
            cuts.cuts[way] += 1
            said = f"{way} of the changes not synced at change {place} ({change.kind} {change.suffix or 'database'})"
            try:
                found = _opened(files, folder, recorded)
            except AssertionError as error:
                cuts.damaged.append(f"{said}: {error}")
            except Exception as error:
                cuts.damaged.append(f"{said}: {type(error).__name__}: {error}")
            else:
                if found < required:
                    cuts.lost.append(f"{said}: {found} rows, and row {required} was acknowledged")
    cuts.seconds = time.monotonic() - began
    return cuts


def _opened(files: dict[str, bytes], folder: Path, recorded: Recorded) -> int:
    """Open the files with the real store, check them and go on; return the number of rows."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    database = folder / "partage.db"
    for suffix, content in files.items():
        (folder / f"partage.db{suffix}").write_bytes(content)
    with closing(open_store(f"sqlite:///{database}")) as store:
        rows = store.rows(recorded.collaboration)
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        joined = sum(b'"kind":"join"' in row.body for row in rows)
        tokens = connection.execute("SELECT count(*) FROM tokens").fetchone()[0]
        assert tokens == joined, f"{tokens} tokens for {joined} members"
    assert rows == recorded.rows[: len(rows)], "the rows are not the first ones of the ledger"
    if rows and len(rows) not in recorded.verified:
        recorded.verified.add(len(rows))
        compare([line(row, decode(row.body), None) for row in rows], [])
    asyncio.run(_go_on(database, recorded.collaboration if rows else None))
    return len(rows)


async def _go_on(database: Path, collaboration: str | None) -> None:
    """Load the collaboration, and write."""
    controller = Controller(open_store(f"sqlite:///{database}"), TOKEN)
    try:
        if collaboration is not None:  # the secret that its first row follows from is there with it
            book = await controller.library.book(collaboration)
            assert book.state.config.key == controller.secret.key.public, "the server's secret is lost"
        await controller.create("secret", NewCollaboration(name="After the cut", arms=["x"], horizon=10))
    finally:
        await controller.stop()
