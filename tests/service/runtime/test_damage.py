"""A ledger that is not the one that was written is refused, with the place named. No other history is served."""

import asyncio
import json
import logging
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.support.faulty_store import all_of
from tests.support.patience import PATIENCE

from partage.ledger.messages import NewAgent, NewCollaboration
from partage.ledger.state import SNAPSHOT_FORMAT
from partage.ledger.verify import verify
from partage.service.runtime.book import Book
from partage.service.runtime.controller import Controller
from partage.service.runtime.damage import Damaged
from partage.service.store import StoreError, open_store
from partage.service.store.wal import FRAME_HEADER, HEADER, wal_is_damaged

FIXTURES = Path(__file__).parents[2] / "golden"
STEPS = 30


async def some_history(controller: Controller) -> tuple[str, str, int]:
    """Create a collaboration, and return its id, its agent, and a pull that was reported."""
    new = NewCollaboration(name="Trial", arms=["a", "b"], horizon=1000)
    id, codes = await controller.create("secret", new)
    agent, _ = await controller.join(id, codes[0], NewAgent(name="Ann", shares=["a", "b"]))
    book, pull = await controller.library.book(id), 0
    for step in range(STEPS):
        asked = await controller.ask(book, agent, f"r{step}", False)
        assert asked is not None
        if asked.share:
            pull = asked.pull
            await controller.tell(book, agent, pull, 0.75 if asked.arm == "a" else 0.25)
    return id, agent, pull


def written(url: str, collaborations: int = 1, snapshot_every: int = 10**6) -> list[str]:
    """Write some collaborations, and return their ids."""

    async def scenario() -> list[str]:
        controller = Controller(open_store(url), snapshot_every=snapshot_every)
        found = [(await some_history(controller))[0] for _ in range(collaborations)]
        await controller.stop()
        return found

    return asyncio.run(asyncio.wait_for(scenario(), PATIENCE))


def spoil(url: str, *statements: str) -> None:
    """Change a database as an operator could, without the triggers that keep rows."""
    if url.startswith("postgresql"):
        with psycopg.connect(url.replace("+psycopg", "", 1), autocommit=True) as connection:
            connection.execute("ALTER TABLE events DISABLE TRIGGER USER")
            for statement in statements:
                connection.execute(statement)  # type: ignore[call-overload]
        return
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
        for change in ("update", "delete"):
            connection.execute(f"DROP TRIGGER IF EXISTS events_no_{change}")
        for statement in statements:
            connection.execute(statement.replace("convert_from(body, 'UTF8')", "CAST(body AS TEXT)"))


EDIT = (
    "UPDATE events SET "
    "body = CAST(replace(convert_from(body, 'UTF8'), '\"reward\":0.75', '\"reward\":0.95') AS {blob}) "
    "WHERE collaboration = '{id}' AND seq = {row}"
)
LAST = "(SELECT max(seq) FROM events WHERE collaboration = '{id}')"
DAMAGES: dict[str, tuple[tuple[str, ...], str]] = {
    "a reward": ((EDIT,), "row {row} "),
    "the last row": (("DELETE FROM events WHERE collaboration = '{id}' AND seq = " + LAST,), "row {last} is missing"),
    "a row": (("DELETE FROM events WHERE collaboration = '{id}' AND seq = {row}",), "row {row} is missing"),
    "every row": (("DELETE FROM events WHERE collaboration = '{id}'",), "row 1 is missing"),
    "a head": (
        ("UPDATE events SET head = '" + "0" * 64 + "' WHERE collaboration = '{id}' AND seq = {row}",),
        "row {row} ",
    ),
    "two rows": (
        (
            "UPDATE events SET seq = 10000 WHERE collaboration = '{id}' AND seq = {row}",
            "UPDATE events SET seq = {row} WHERE collaboration = '{id}' AND seq = {row} + 1",
            "UPDATE events SET seq = {row} + 1 WHERE collaboration = '{id}' AND seq = 10000",
        ),
        "row {row} ",
    ),
    "a pull": (("UPDATE events SET pull = 10000 WHERE collaboration = '{id}' AND seq = {row}",), "row {row} "),
    "the record of the last row": (("DELETE FROM heads WHERE collaboration = '{id}'",), "{last}"),
    "a head in that record": (
        ("UPDATE heads SET head = '" + "0" * 64 + "' WHERE collaboration = '{id}'",),
        "row {last} ",
    ),
    "an older record": (("UPDATE heads SET seq = seq - 1 WHERE collaboration = '{id}'",), "{last}"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_was_edited_is_refused_and_the_others_go_on(
    damage: str, database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logging.getLogger("partage"), "propagate", True)  # a server may have set it up before
    damaged, good = written(database_url, 2)
    with closing(open_store(database_url)) as store:
        rows = store.rows(damaged)
        row = next(found.seq for found in rows if b'"reward":0.75' in found.body)
    blob = "bytea" if database_url.startswith("postgresql") else "BLOB"
    facts = {"id": damaged, "row": row, "last": rows[-1].seq, "blob": blob}
    statements, place = DAMAGES[damage]
    if blob == "bytea" and damage == "a reward":
        statements = (EDIT.replace("CAST(replace(", "convert_to(replace(").replace(" AS {blob})", ", 'UTF8')"),)
    spoil(database_url, *(statement.format(**facts) for statement in statements))

    async def scenario() -> None:
        controller = Controller(open_store(database_url))
        for _ in range(2):
            with pytest.raises(Damaged) as refused:
                await controller.library.fresh(damaged)
            assert (refused.value.status, refused.value.code) == (503, "damaged_ledger")
            assert place.format(**facts) in refused.value.sentence
        (said,) = (record for record in caplog.records if record.message == "damaged ledger")
        assert (vars(said)["collaboration"], vars(said)["reason"]) == (damaged, refused.value.sentence)
        assert await controller.library.all(lambda book: book.id) == [good]
        assert "collaboration left out" in {record.message for record in caplog.records}
        book = await controller.library.book(good)
        assert await controller.ask(book, "a1", None, False) is not None
        await controller.stop()

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE))


@pytest.mark.parametrize("damage", ["salt = body", "head = 'x'", "head = '" + "0" * 64 + "'"])
def test_a_ledger_that_is_damaged_while_it_is_served(damage: str, database_url: str) -> None:
    """Rows that are read again are checked: for the ledger's file, a repeated report, and after a failure."""

    async def scenario() -> None:
        controller = Controller(open_store(database_url))
        id, agent, pull = await some_history(controller)
        other, *_ = await some_history(controller)
        book = await controller.library.fresh(id)
        told = await controller.call(controller.store.told, id, pull)
        await controller.call(
            spoil, database_url, f"UPDATE events SET {damage} WHERE collaboration = '{id}' AND seq = {told.seq}"
        )

        async def ledger() -> None:
            assert [part async for part in await controller.ledger(id, None)]

        reward = json.loads(told.body)["reward"]
        attempts: list[Callable[[], Awaitable[object]]] = [
            ledger,
            lambda: controller.tell(book, agent, pull, reward),
            lambda: controller.receipts.of(book, told.seq),
        ]
        for attempt in attempts:
            with pytest.raises(Damaged, match=f"row {told.seq} "):
                await attempt()
        # What is not damaged goes on, until the ledger has to be read again; then only the others do.
        assert await controller.ask(book, agent, None, False) is not None
        book.valid = False
        neighbour = await controller.library.book(other)
        answers = await asyncio.gather(
            controller.ask(book, agent, None, False),
            controller.ask(neighbour, agent, None, False),
            return_exceptions=True,
        )
        assert isinstance(answers[0], Damaged)
        assert not isinstance(answers[1], BaseException)
        await controller.stop()

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE))


def test_damage_further_on_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If lines were sent, the last one says what is wrong, and the file does not verify."""
    monkeypatch.setattr("partage.service.store.interface.PART", 2000)  # bytes
    url = f"sqlite:///{tmp_path}/partage.db"

    async def scenario() -> None:
        controller = Controller(open_store(url))
        id, *_ = await some_history(controller)
        last = (await controller.library.fresh(id)).state.seq
        spoil(url, f"DELETE FROM events WHERE collaboration = '{id}' AND seq = {last - 1}")
        lines = b"".join([part async for part in await controller.ledger(id, None)]).splitlines(keepends=True)
        assert len(lines) > 1
        assert json.loads(lines[-1])["code"] == "damaged_ledger"
        assert f"row {last - 1} is missing" in json.loads(lines[-1])["error"]
        assert not verify(lines).ok
        await controller.stop()

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE))


def test_a_ledger_of_another_server_is_not_signed(tmp_path: Path) -> None:
    """Its members would take our signatures for a fork."""
    (id,) = written(f"{tmp_path}/partage.db")
    with closing(sqlite3.connect(tmp_path / "partage.db")) as connection, connection:
        connection.execute("DELETE FROM meta WHERE key = 'secret'")

    async def scenario() -> None:
        controller = Controller(open_store(f"{tmp_path}/partage.db"))
        with pytest.raises(Damaged, match="a key that is not this server's"):
            await controller.library.book(id)
        await controller.stop()

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE))


# snapshots


def test_a_snapshot_that_was_edited_is_not_trusted(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/partage.db"
    (id,) = written(url, snapshot_every=10)
    with closing(open_store(url)) as store:
        found = store.snapshot(id, SNAPSHOT_FORMAT)
        loaded = Book.load(store, id)
    assert found is not None
    assert loaded is not None
    assert loaded.snapshot_seq == found[0]
    stored = found[1]
    choose = random.Random(1)
    for _ in range(50):
        place = choose.randrange(len(stored))
        spoiled = stored[:place] + bytes([stored[place] ^ 1 << choose.randrange(8)]) + stored[place + 1 :]
        with closing(sqlite3.connect(tmp_path / "partage.db")) as connection, connection:
            connection.execute("UPDATE snapshots SET state = ?", [spoiled])
        with closing(open_store(url)) as store:
            again = Book.load(store, id)
        assert again is not None
        assert again.snapshot_seq == 0
        assert (again.head, again.tree.root(), all_of(again.state)) == (
            loaded.head,
            loaded.tree.root(),
            all_of(loaded.state),
        )


def test_a_snapshot_of_rows_that_changed_is_not_trusted(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/partage.db"
    (id,) = written(url, snapshot_every=10)
    with closing(open_store(url)) as store:
        seq = (store.snapshot(id, SNAPSHOT_FORMAT) or (0, b""))[0]
    spoil(url, f"UPDATE events SET head = '{'0' * 64}' WHERE seq = {seq}")
    with closing(open_store(url)) as store, pytest.raises(Damaged, match=f"row {seq} "):
        Book.load(store, id)


# bytes of the file


def outcome(url: str, id: str, true: tuple[int, str, bytes]) -> str:
    """Open a damaged file; either it serves the true history, or it refuses with a sentence."""
    try:
        with closing(open_store(url)) as store:
            book = Book.load(store, id)
            if book is None:
                return "none"
            assert (book.state.seq, book.head, book.tree.root()) == true
            return "true"
    except Damaged:
        return "damaged"
    except StoreError:
        return "unusable"


def spoiled_files(tmp_path: Path, seeds: Iterator[int] | range) -> dict[str, int]:
    url = f"sqlite:///{tmp_path}/partage.db"
    (id,) = written(url)
    with closing(open_store(url)) as store:
        book = Book.load(store, id)
    assert book is not None
    true = (book.state.seq, book.head, book.tree.root())
    good = (tmp_path / "partage.db").read_bytes()
    outcomes: dict[str, int] = {}
    for seed in seeds:
        choose = random.Random(seed)
        spoiled = bytearray(good)
        if seed % 2:  # 16 bytes side by side
            place = choose.randrange(len(good) - 16)
            spoiled[place : place + 16] = choose.randbytes(16)
        else:
            for _ in range(16):
                spoiled[choose.randrange(len(good))] = choose.randrange(256)
        file = tmp_path / f"{seed}.db"
        file.write_bytes(spoiled)
        found = outcome(f"sqlite:///{file}", id, true)
        outcomes[found] = outcomes.get(found, 0) + 1
        for left in tmp_path.glob(f"{seed}.db*"):
            left.unlink()
    return outcomes


def test_random_bytes_never_change_or_shorten_the_history(tmp_path: Path) -> None:
    outcomes = spoiled_files(tmp_path, range(60))
    assert set(outcomes) <= {"true", "damaged", "unusable"}, outcomes
    assert min(outcomes["true"], outcomes["damaged"]) > 0, outcomes


@pytest.mark.extra
def test_random_bytes_of_many_seeds(tmp_path: Path) -> None:
    outcomes = spoiled_files(tmp_path, range(1000, 2000))
    assert set(outcomes) <= {"true", "damaged", "unusable"}, outcomes


def crashed(tmp_path: Path) -> tuple[str, list[tuple[int, str]]]:
    """Leave a database as after kill -9, with all in its write-ahead log; return its rows' numbers and heads."""

    async def scenario() -> tuple[str, list[tuple[int, str]]]:
        controller = Controller(open_store(str(tmp_path / "partage.db")))
        id, *_ = await some_history(controller)
        for suffix in ("", "-wal"):
            shutil.copy(tmp_path / f"partage.db{suffix}", tmp_path / f"crashed.db{suffix}")
        rows = controller.store.rows(id)
        await controller.stop()
        return id, [(row.seq, row.head) for row in rows]

    return asyncio.run(asyncio.wait_for(scenario(), PATIENCE))


def test_one_wrong_bit_at_the_end_of_an_acknowledged_transaction(tmp_path: Path) -> None:
    """Two transactions would be dropped. A power cut loses at most the last."""
    crashed(tmp_path)
    database, wal = tmp_path / "crashed.db", tmp_path / "crashed.db-wal"
    log = wal.read_bytes()
    step = FRAME_HEADER + int.from_bytes(log[8:12], "big")
    starts = [place for place in range(HEADER, len(log), step) if log[place + 8 : place + 16] == log[16:24]]
    commits = [place for place in starts if log[place + 4 : place + 8] != bytes(4)]
    in_frame = [3, 16, 23, FRAME_HEADER, step // 2, step - 1]  # page number, checksum, content

    def damaged(place: int) -> bool:
        wal.write_bytes(log[:place] + bytes([log[place] ^ 1]) + log[place + 1 :])
        return wal_is_damaged(database)

    assert len(commits) > 2
    assert starts[-1] == commits[-1]
    for start in commits[:2] + commits[-2:-1]:
        assert all(damaged(start + place) for place in in_frame)
    for start in starts[starts.index(commits[-2]) + 1 :]:
        assert not any(damaged(start + place) for place in in_frame)


def spoiled_logs(tmp_path: Path, seeds: range) -> Counter[str]:
    id, rows = crashed(tmp_path)
    log = (tmp_path / "crashed.db-wal").read_bytes()
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        choose = random.Random(seed)
        spoiled = bytearray(log)
        # Every tenth time in the header, which is short and would hardly be hit.
        place = choose.randrange(20) if seed % 10 == 0 else choose.randrange(len(log) - 16)
        spoiled[place : place + 16] = choose.randbytes(16)
        shutil.copy(tmp_path / "crashed.db", tmp_path / "spoiled.db")
        (tmp_path / "spoiled.db-wal").write_bytes(spoiled)
        try:
            with closing(open_store(str(tmp_path / "spoiled.db"))) as store:
                book = Book.load(store, id)
            assert book is not None, seed
            # Damage in the last transaction looks like a power cut that interrupted it. Where the bytes lie at the
            # end of one transaction and in the header of the next, two more cannot be told apart from it.
            assert (book.state.seq, book.head) in rows[-4:], (seed, book.state.seq, len(rows))
            outcomes["true" if book.state.seq == len(rows) else "without the last transaction"] += 1
        except Damaged:
            outcomes["damaged"] += 1
        except StoreError:
            outcomes["unusable"] += 1
        for left in tmp_path.glob("spoiled.db*"):
            left.unlink()
    return outcomes


def test_random_bytes_of_the_write_ahead_log(tmp_path: Path) -> None:
    outcomes = spoiled_logs(tmp_path, range(40))
    assert outcomes["unusable"] > 20, outcomes


@pytest.mark.extra
def test_random_bytes_of_the_write_ahead_log_of_many_seeds(tmp_path: Path) -> None:
    assert spoiled_logs(tmp_path, range(1000, 1400))


def test_a_sound_or_torn_write_ahead_log_is_used(tmp_path: Path) -> None:
    """As after kill -9, or a power cut that lost any part of the last transaction."""
    id, rows = crashed(tmp_path)
    log = (tmp_path / "crashed.db-wal").read_bytes()
    for length in (len(log), len(log) - 1, len(log) - 4120, len(log) - 5000):
        shutil.copy(tmp_path / "crashed.db", tmp_path / "torn.db")
        (tmp_path / "torn.db-wal").write_bytes(log[:length])
        with closing(open_store(str(tmp_path / "torn.db"))) as store:
            book = Book.load(store, id)
        assert book is not None
        assert (book.state.seq, book.head) in rows[-2:]


# databases of earlier releases


def test_databases_of_earlier_formats_get_the_record_of_their_last_rows(tmp_path: Path) -> None:
    for file in sorted(FIXTURES.glob("format-*/partage.db")):
        shutil.copy(file, tmp_path / "partage.db")
        with closing(open_store(str(tmp_path / "partage.db"))) as store:
            for id in store.collaborations():
                rows = store.rows(id)
                assert store.head(id) == (rows[-1].seq, rows[-1].head)
                book = Book.load(store, id)
                assert book is not None
                assert (book.head, book.durable) == (rows[-1].head, rows[-1].seq)
        (tmp_path / "partage.db").unlink()


def test_the_store_keeps_the_last_row_of_each_ledger(database_url: str) -> None:
    first, second = written(database_url, 2)
    with closing(open_store(database_url)) as store:
        for id in (first, second):
            rows = store.rows(id)
            assert store.head(id) == (rows[-1].seq, rows[-1].head)
        assert store.head("none") is None
