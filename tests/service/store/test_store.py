"""The store, with both databases: what it keeps, what it refuses, and what survives."""

import multiprocessing
import os
import queue
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest
import sqlalchemy as sa
from tests.support.patience import PATIENCE

from partage.service.store import Created, Invite, Lost, NewToken, Row, Store, StoreError, open_store, tables
from partage.service.store.interface import MOST_ROWS, PART


def row(seq, pull=None, body=b"{}"):
    return Row(seq, body, seq.to_bytes(16, "big"), f"{seq:064x}", pull)


def create(store: Store, *names: str) -> None:
    with store.begin({}) as writing:
        writing.commit({}, created=[Created(name, 1, None) for name in names])


def append(store: Store, name: str, *rows: Row) -> None:
    with store.begin({name: rows[0].seq - 1}) as writing:
        writing.commit({name: rows})


@pytest.fixture
def store(database_url):
    store = open_store(database_url)
    create(store, "one", "two")
    yield store
    store.close()


def plain(url: str) -> str:
    """The URL as psycopg itself reads it."""
    return url.replace("+psycopg", "", 1)


def reopened(store: Store, url: str) -> Store:
    """The store as another process would see it."""
    if not store.several:
        store.close()
    return open_store(url)


# --- the ledger ---------------------------------------------------------------------------------------------


def test_rows_are_read_back_as_they_were_written(store, database_url):
    rows = [row(1, body=bytes(range(256))), row(2, pull=7), row(3, pull=2**40), row(4, body=b"x" * 100_000), row(5)]
    append(store, "one", *rows[:3])
    append(store, "one", *rows[3:])
    other = reopened(store, database_url)
    assert other.rows("one") == rows
    assert other.rows("one", after=2) == rows[2:]
    assert other.rows("one", after=1, limit=2) == rows[1:3]
    assert other.rows("one", after=5) == other.rows("two") == other.rows("three") == []
    assert other.row("one", 2) == other.told("one", 7) == rows[1]
    assert other.row("one", 6) is other.row("two", 1) is other.told("one", 8) is other.told("two", 7) is None
    assert isinstance(other.rows("one")[0].body, bytes)
    other.close()


def test_rows_are_read_in_parts_of_about_the_same_size(store):
    sizes = [10, PART + 1, 10, 10, PART // 2, PART // 3, PART, *[300] * 1200, PART, PART]
    rows = [row(place + 1, body=b"x" * size) for place, size in enumerate(sizes)]
    append(store, "one", *rows)
    for last in (None, 5, len(rows) - 1):
        found, parts = [], 0
        while part := store.some_rows("one", after=len(found), last=last):
            assert sum(len(one.body) for one in part[:-MOST_ROWS]) < PART
            found += part
            parts += 1
        assert found == rows[:last]
        assert parts < 12
    assert store.some_rows("two") == store.some_rows("one", after=5, last=5) == []


def test_a_database_of_several_processes_brings_its_clock(store):
    before = time.time_ns() // 1_000_000
    with store.begin({"one": 0}) as writing:
        pass
    with store.begin({}) as later:
        pass
    if not store.several:
        assert writing.now is later.now is None
    else:  # it runs on this machine, so the clocks agree
        assert before - 1 <= writing.now <= later.now <= time.time_ns() // 1_000_000 + 1


def test_collaborations_stand_in_order_of_creation(store):
    create(store, "b", "a")
    create(store, "0")
    assert store.collaborations() == ["one", "two", "b", "a", "0"]


def test_a_request_creates_once(store):
    with store.begin({"x": 0}) as writing:
        writing.commit({"x": [row(1)]}, created=[Created("x", 5, "key")])
    assert store.made("key") == "x"
    assert store.made("other") is None
    with store.begin({"y": 0}) as writing, pytest.raises(Lost):
        writing.commit({"y": [row(1)]}, created=[Created("y", 6, "key")])
    assert store.collaborations() == ["one", "two", "x"]
    assert store.rows("y") == []


@pytest.mark.parametrize("taken", [row(2), row(3, pull=1)], ids=["seq", "pull"])
def test_what_is_taken_is_lost_and_nothing_of_it_stays(store, taken):
    append(store, "one", row(1), row(2, pull=1))
    append(store, "two", row(1))
    invite = Invite("code", "i1", "one", 1, 2, False)
    with store.begin({"one": 1, "two": 1}) as writing, pytest.raises(Lost):
        writing.commit(
            {"two": [row(2), row(3)], "one": [taken]},
            created=[Created("three", 1, None)],
            tokens=[NewToken("token", "two", "ada")],
            invites=[invite],
        )
    assert store.rows("one") == [row(1), row(2, pull=1)]
    assert store.rows("two") == [row(1)]
    assert store.collaborations() == ["one", "two"]
    assert store.token("token") is store.invite("code") is None
    append(store, "two", row(2))  # and the store goes on


def test_several_collaborations_are_written_at_once(store):
    with store.begin({"one": 0, "two": 0, "new": 0}) as writing:
        assert writing.news == {"one": [], "two": [], "new": []}
        writing.commit(
            {"one": [row(1, pull=1)], "two": [row(1, pull=1), row(2)], "new": [row(1)]},
            created=[Created("new", 3, "key")],
            tokens=[NewToken("token", "new", "ada"), NewToken("other", "two", "bob")],
            invites=[Invite("code", "i1", "new", 1, 2, False)],
        )
    assert [len(store.rows(name)) for name in ("one", "two", "new")] == [1, 2, 1]
    assert store.token("token") == ("token", "new", "ada", 0)
    assert store.token("other") == ("other", "two", "bob", 0)
    assert store.token("none") is None
    assert store.invite("code") == Invite("code", "i1", "new", 1, 2, False)


def test_a_row_of_no_collaboration_is_an_error_and_not_a_race(store):
    with store.begin({"none": 0}) as writing, pytest.raises(StoreError):
        writing.commit({"none": [row(1)]})


def test_what_is_not_committed_is_not_there(store):
    with store.begin({"one": 0}) as writing:
        pass
    writing.rollback()
    with pytest.raises(RuntimeError):
        writing.commit({"one": [row(1)]})
    done = store.begin({"one": 0})
    done.commit({"one": [row(1)]})
    done.rollback()
    assert store.rows("one") == [row(1)]


def test_many_threads_race_and_one_wins_each_place(store):
    def write(number):
        known, won = 0, 0
        while known < 20:
            with store.begin({"one": known}) as writing:
                known += len(writing.news["one"])
                try:
                    if known < 20:
                        writing.commit({"one": [row(known + 1, body=b"%d" % number)]})
                        won += 1
                    known += 1
                except Lost:
                    known = len(store.rows("one"))
        return won

    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(write, range(4), timeout=PATIENCE))
    rows = store.rows("one")
    assert [found.seq for found in rows] == list(range(1, 21))
    assert won == [sum(found.body == b"%d" % number for found in rows) for number in range(4)]


def test_who_begins_late_reads_what_others_wrote(postgres_url):
    with closing(open_store(postgres_url)) as first, closing(open_store(postgres_url)) as second:
        create(first, "one", "two")
        writing = first.begin({"one": 0, "two": 0})
        with ThreadPoolExecutor(1) as pool:
            late = pool.submit(second.begin, {"two": 0, "one": 0})
            append_now = {"one": [row(1), row(2)], "two": [row(1)]}
            writing.commit(append_now)
            with late.result(PATIENCE) as other:
                assert other.news == append_now
                other.commit({"one": [row(3)]})
        assert len(second.rows("one")) == 3


def test_without_the_lock_the_key_decides(postgres_url):
    """Two writers that do not wait for each other: the second meets the sequence number of the first."""
    with closing(open_store(postgres_url)) as first, closing(open_store(postgres_url)) as second:
        create(first, "one")
        writings = [first.begin({}), second.begin({})]
        with ThreadPoolExecutor(2) as pool:
            outcomes = [pool.submit(writing.commit, {"one": [row(1)]}).exception(PATIENCE) for writing in writings]
        assert [type(outcome) for outcome in outcomes] == [type(None), Lost]


@pytest.mark.parametrize(
    "statement",
    ["UPDATE events SET body = salt", "DELETE FROM events", "UPDATE events SET pull = 3 WHERE seq = 1"],
)
def test_what_is_written_stays(store, database_url, statement):
    append(store, "one", row(1), row(2))
    engine = sa.create_engine(database_url)
    with pytest.raises(sa.exc.DBAPIError, match="append-only"), engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()
    assert store.rows("one") == [row(1), row(2)]


def test_the_table_cannot_be_emptied(postgres_url):
    with closing(open_store(postgres_url)) as store:
        create(store, "one")
        append(store, "one", row(1))
        with psycopg.connect(plain(postgres_url)) as connection:
            with pytest.raises(psycopg.Error, match="append-only"):
                connection.execute("TRUNCATE events")
            connection.rollback()
        assert store.rows("one") == [row(1)]


# --- what survives ------------------------------------------------------------------------------------------

WRITER = """
import sys
from partage.service.store import Row, open_store
store = open_store(sys.argv[1])
seq = len(store.rows("one"))
while True:
    batch = [Row(seq + step, b"x" * 300, bytes(16), "0" * 64, seq + step) for step in (1, 2, 3)]
    with store.begin({"one": seq}) as writing:
        writing.commit({"one": batch})
    seq += 3
    print(seq, flush=True)
"""


def test_what_was_acknowledged_survives_kill_9(store, database_url):
    if not store.several:
        store.close()
    for lines in (1, 3, 20, 50):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, database_url], stdout=subprocess.PIPE, text=True)
        deadline = threading.Timer(PATIENCE, writer.kill)
        deadline.start()
        acknowledged = [int(writer.stdout.readline()) for _ in range(lines)]
        os.kill(writer.pid, signal.SIGKILL)
        acknowledged += map(int, writer.communicate(timeout=PATIENCE)[0].split())
        deadline.cancel()
        again = open_store(database_url)
        seqs = [found.seq for found in again.rows("one")]
        assert seqs == list(range(1, len(seqs) + 1))
        assert len(seqs) >= acknowledged[-1]
        assert len(seqs) % 3 == 0  # a batch is there or it is not
        again.close()


def test_sqlite_commits_to_disk(tmp_path):
    """kill -9 cannot show this: without these settings, a power cut would lose what was acknowledged."""
    with closing(open_store(str(tmp_path / "partage.db"))) as store:
        settings = [store._driver.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    assert settings == ["wal", 2]


def test_postgresql_commits_as_the_database_is_set(postgres_url):
    with closing(open_store(postgres_url)) as store, store._engine.connect() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
        assert connection.exec_driver_sql("SHOW transaction_isolation").scalar() == "read committed"


def test_settings_that_are_not_durable_are_named(store, database_url):
    assert store.risks() == []
    if store.several:  # as ALTER ROLE or ALTER DATABASE would set it; fsync is the whole server's
        with closing(open_store(f"{database_url}&options=-c%20synchronous_commit%3Doff")) as other:
            assert other.risks() == ["synchronous_commit = off"]
        with closing(open_store(f"{database_url}&options=-c%20synchronous_commit%3Dlocal")) as other:
            assert other.risks() == []


# --- snapshots ----------------------------------------------------------------------------------------------


def test_a_snapshot_gives_way_to_a_newer_one_only(store):
    assert store.snapshot("one", "f1") is None
    store.keep_snapshot("one", 5, "f1", b"five")
    store.keep_snapshot("one", 3, "f1", b"three")
    store.keep_snapshot("one", 4, "f2", b"other format")
    assert store.snapshot("one", "f1") == (5, b"five")
    store.keep_snapshot("one", 9, "f1", b"nine")
    assert store.snapshot("one", "f1") == (9, b"nine")
    assert store.snapshot("one", "f2") == (4, b"other format")
    assert store.snapshot("two", "f1") is None


# --- access -------------------------------------------------------------------------------------------------


def test_meta_is_set_once_by_the_first(store):
    assert store.meta("operator") is None
    with ThreadPoolExecutor(4) as pool:
        stands = list(pool.map(lambda value: store.set_meta_once("operator", value), "abcd", timeout=PATIENCE))
    assert len(set(stands)) == 1
    assert store.meta("operator") == stands[0]
    assert store.set_meta_once("other", "x") == "x"
    assert (store.meta("operator"), store.meta("other")) == (stands[0], "x")


def test_invites_are_listed_and_revoked(store):
    codes = [Invite(f"code{i}", f"i{i}", "one", 10 - i, 2**41, False) for i in range(3)]
    store.add_invites([*codes, Invite("theirs", "i1", "two", 1, 2, False)])
    store.add_invites([])
    assert store.invites("one") == codes[::-1]
    assert store.invite("code2") == codes[2]
    assert store.invite("none") is None
    assert store.revoke("one", "i1")
    assert store.revoke("one", "i1")
    assert not store.revoke("one", "i9")
    assert not store.revoke("two", "i2")
    assert store.invite("code1").revoked is True
    assert [invite.revoked for invite in store.invites("one")] == [False, True, False]
    assert store.invite("theirs").revoked is False


def test_invites_are_added_all_or_none(store):
    with pytest.raises(StoreError):
        store.add_invites([Invite("a", "i1", "one", 1, 2, False), Invite("b", "i1", "one", 1, 2, False)])
    assert store.invites("one") == []


def test_sessions_expire(store):
    store.add_session("a", "operator", 100, now=0)
    assert store.session("a", 99) == "operator"
    assert store.session("a", 100) is store.session("b", 0) is None
    store.add_session("b", "ada", 200, now=100)
    assert store.session("a", 0) is None  # dropped
    store.drop_session("b")
    store.drop_session("b")
    assert store.session("b", 0) is None
    store.add_session("c", "ada", 2**42, now=200)
    assert store.session("c", 0) == "ada"


# --- several processes --------------------------------------------------------------------------------------


def heard_until(heard: queue.Queue, wanted) -> None:
    """Wait for one notification among all that arrive."""
    while heard.get(timeout=PATIENCE) != wanted:
        pass


def test_others_are_woken(postgres_url):
    heard = queue.Queue()
    with closing(open_store(postgres_url)) as store, closing(open_store(postgres_url)) as other:
        stop = other.listen(lambda collaboration, seq: heard.put((collaboration, seq)))
        with store.begin({"one": 0}) as writing:
            writing.commit({"one": [row(1), row(2)]}, created=[Created("one", 1, None)])
        assert heard.get(timeout=PATIENCE) == ("one", 2)
        with store.begin({"one": 2}) as writing, pytest.raises(Lost):
            writing.commit({"one": [row(2)]})
        # The listener loses its connection: it listens again, and says that it may have missed something.
        with psycopg.connect(plain(postgres_url), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND query LIKE 'LISTEN%'"
            )
        assert heard.get(timeout=PATIENCE) == ("", 0)
        append(store, "one", row(3))
        heard_until(heard, ("one", 3))
        with psycopg.connect(plain(postgres_url), autocommit=True) as connection:
            connection.execute("NOTIFY partage")
        heard_until(heard, ("", 0))
        stop()
        stop()
        append(store, "one", row(4))
        assert not [thread for thread in threading.enumerate() if thread.name == "partage-listen"]
        assert heard.empty()


def test_a_closed_store_listens_no_more(postgres_url):
    store = open_store(postgres_url)
    store.listen(lambda *_: None)
    store.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "partage-listen"]


def test_there_is_nothing_to_hear_with_one_process(tmp_path):
    with closing(open_store(str(tmp_path / "partage.db"))) as store:
        assert not store.several
        store.listen(lambda *_: pytest.fail("woken"))()


def test_stale_connections_are_replaced(postgres_url):
    with closing(open_store(postgres_url)) as store:
        create(store, "one")
        for use in (
            lambda: store.rows("one"),
            lambda: store.set_meta_once("key", "value"),
            lambda: append(store, "one", row(1)),
            store.ready,
        ):
            held = [store.begin({f"c{number}": 0}) for number in range(5)]
            for writing in held:
                writing.rollback()
            with psycopg.connect(plain(postgres_url), autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            use()
        assert store.rows("one") == [row(1)]


def test_a_connection_lost_at_commit_is_a_sentence(postgres_url):
    with closing(open_store(postgres_url)) as store:
        create(store, "one")
        writing = store.begin({"one": 0})
        with psycopg.connect(plain(postgres_url), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        with pytest.raises(StoreError):
            writing.commit({"one": [row(1)]})
        writing.rollback()
        append(store, "one", row(1))
        assert store.rows("one") == [row(1)]


def _open_and_close(url: str, start, done) -> None:
    start.wait(PATIENCE)
    try:
        open_store(url).close()
        done.put("")
    except Exception as error:
        done.put(repr(error))


def test_four_processes_create_the_tables_at_once(postgres_url):
    spawn = multiprocessing.get_context("spawn")
    start, done = spawn.Barrier(4), spawn.Queue()
    processes = [spawn.Process(target=_open_and_close, args=(postgres_url, start, done)) for _ in range(4)]
    for process in processes:
        process.start()
    assert [done.get(timeout=PATIENCE) for _ in processes] == [""] * 4
    for process in processes:
        process.join(PATIENCE)
    with closing(open_store(postgres_url)) as store:
        assert store.collaborations() == []


def test_a_second_process_on_one_file_is_refused(tmp_path):
    path = tmp_path / "partage.db"
    (tmp_path / "link.db").symlink_to(path)
    store = open_store(str(path))
    program = "import sys; from partage.service.store import open_store; open_store(sys.argv[1])"
    for name in ("partage.db", "link.db"):
        second = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / name)], capture_output=True, text=True, timeout=PATIENCE
        )
        assert second.returncode == 1
        last = second.stderr.splitlines()[-1]
        assert "Another process has the SQLite file partage.db open" in last
        assert "postgresql://" in last
        assert str(tmp_path) not in last
    store.close()
    store.close()
    open_store(str(path)).close()


def test_the_file_is_its_owners_alone(tmp_path):
    with closing(open_store(str(tmp_path / "partage.db"))) as store:
        create(store, "one")
        assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


# --- schemas ------------------------------------------------------------------------------------------------


def test_a_newer_schema_is_refused(store, database_url, monkeypatch):
    monkeypatch.setattr(tables, "MIGRATIONS", (lambda connection: None,) * 98)
    reopened(store, database_url).close()
    monkeypatch.undo()
    with pytest.raises(StoreError, match=r"newer Partage: its schema is number 99, and this one knows up to 3"):
        reopened(store, database_url)


def test_release_0_1_refuses_a_database_of_this_release(store, database_url, monkeypatch):
    assert store.meta("schema") == "3"
    monkeypatch.setattr(tables, "MIGRATIONS", ())  # as in 0.1
    with pytest.raises(StoreError, match=r"newer Partage: its schema is number 3, and this one knows up to 1"):
        reopened(store, database_url)


def test_an_older_schema_is_brought_up_to_date_once(store, database_url, monkeypatch):
    append(store, "one", row(1))

    def step(connection):
        connection.exec_driver_sql("ALTER TABLE tokens ADD COLUMN extra TEXT")

    monkeypatch.setattr(tables, "MIGRATIONS", (*tables.MIGRATIONS, step))
    for _ in range(2):
        with closing(reopened(store, database_url)) as again:
            assert again.meta("schema") == "4"
            assert again.rows("one") == [row(1)]


def test_a_step_that_fails_leaves_the_database_as_it_was(store, database_url, monkeypatch):
    def step(connection):
        connection.exec_driver_sql("ALTER TABLE tokens ADD COLUMN extra TEXT")
        connection.exec_driver_sql("ALTER TABLE nothing ADD COLUMN extra TEXT")

    monkeypatch.setattr(tables, "MIGRATIONS", (*tables.MIGRATIONS, step))
    with pytest.raises(StoreError):
        reopened(store, database_url)
    monkeypatch.undo()
    with closing(reopened(store, database_url)) as again:
        assert again.meta("schema") == "3"


@pytest.mark.parametrize("table", ["meta", "events"])
def test_tables_of_another_program_are_left_alone(database_url, table):
    engine = sa.create_engine(database_url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE TABLE {table} (key TEXT, value TEXT)")
    with pytest.raises(StoreError):
        open_store(database_url)
    with engine.begin() as connection:
        assert sa.inspect(connection).get_table_names() == [table]
    engine.dispose()


# --- what cannot be opened ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("mysql://partage:secret@db/partage", "SQLite or PostgreSQL, not in mysql"),
        ("postgresql+asyncpg://partage:secret@db/partage", "not in postgresql+asyncpg"),
        ("postgresql://partage:secret@db:port/partage", "The database's URL cannot be read"),
        ("postgresql://partage:secret@db", "names no database"),
        ("postgresql://partage:secret@/partage?host=/nowhere", "partage does not answer"),
        ("postgres://partage:secret@/partage?host=/nowhere&password=secret", "partage does not answer"),
        ("postgresql://partage:secret@127.0.0.1:1/partage", "partage at 127.0.0.1 does not answer"),
        ("postgresql://partage:secret@/partage?host=/nowhere&wrong=secret", "partage does not answer"),
        ("://", "The database's URL cannot be read"),
        ("", "The ledger needs a file"),
        (":memory:", "The ledger needs a file"),
        ("sqlite://", "The ledger needs a file"),
        ("sqlite:///:memory:", "The ledger needs a file"),
        ("sqlite:///file:x?mode=memory&uri=true", "The ledger needs a file"),
        ("/nowhere/secret/partage.db", "partage.db cannot be opened: no such file or directory"),
        ("/", "cannot be opened: is a directory"),
    ],
)
def test_a_wrong_url_is_a_sentence(url, sentence):
    with pytest.raises(StoreError) as refused:
        open_store(url)
    said = str(refused.value)
    assert sentence in said
    assert said.endswith(".")
    for hidden in ("secret", "nowhere", "SELECT", "sqlalche.me"):
        assert hidden not in said


def test_a_database_that_is_not_there_is_a_sentence(postgres_url):
    absent = sa.make_url(postgres_url).set(database="absent").render_as_string(hide_password=False)
    with pytest.raises(StoreError, match='absent refused: database "absent" does not exist'):
        open_store(absent)


def test_a_file_that_is_no_database_is_a_sentence(tmp_path):
    path = tmp_path / "partage.db"
    path.write_bytes(b"no database at all " * 1000)
    for _ in range(2):  # the lock of the first attempt is gone
        with pytest.raises(StoreError, match=r"^The SQLite file partage.db cannot be used: file is not a"):
            open_store(str(path))


def test_a_store_that_answers_is_ready(store):
    assert store.ready() is None


def test_a_store_that_does_not_answer_is_not_ready(tmp_path):
    store = open_store(str(tmp_path / "partage.db"))
    with sqlite3.connect(tmp_path / "partage.db") as shell:
        shell.execute("DROP TABLE meta")
    shell.close()
    with pytest.raises(StoreError):
        store.ready()
    store.close()
