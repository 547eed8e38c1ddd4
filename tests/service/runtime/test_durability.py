"""What was acknowledged stays: after kill -9, with a database that fails, and after restarts from snapshots."""

import asyncio
import contextlib
import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from litestar.testing import TestClient
from tests.support.api import NAMED, TOKEN, Host, Member, Speaker, plain, serving
from tests.support.faulty_store import Faulty, Remote, all_of
from tests.support.patience import PATIENCE

from partage.ledger.chain import GENESIS, next_head, row_hash
from partage.ledger.messages import CommitRun, Commits, NewAgent, NewCollaboration, NewInvites
from partage.ledger.refusals import Refused
from partage.ledger.state import SNAPSHOT_FORMAT
from partage.ledger.verify import verify
from partage.service.http.app import create_app
from partage.service.runtime.book import Book
from partage.service.runtime.controller import Controller
from partage.service.runtime.settlements import previewed
from partage.service.runtime.system import System
from partage.service.runtime.writer import ATTEMPTS, SNAPSHOT_EVERY
from partage.service.store import Created, Row, StoreError

KILLS = 2
MORE = 10  # tells and reports before each kill, at least


# a server that is killed


class Worker:
    """An agent on a thread of its own: it works until the server is gone, and goes on when it is back."""

    def __init__(self, member: Member, seed: int) -> None:
        self.member = member
        self.random = random.Random(seed)
        self.requests = 0
        self.unfinished: tuple[str, dict[str, Any]] | None = None
        self.told: dict[int, tuple[float, dict[str, Any]]] = {}
        self.asked: dict[str, dict[str, Any]] = {}
        self.reported: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}

    def work(self) -> None:
        """Work until the server is gone."""
        with contextlib.suppress(httpx.TransportError):
            while True:
                path, body = self.unfinished = self.unfinished or self.next()
                answer = self.member.ok("POST", path, body)
                if path == "/ask":
                    self.asked[body["request"]] = answer
                elif path == "/tell":
                    self.told[body["pull"]] = (body["reward"], answer)
                else:
                    self.reported[body["request"]] = (body, answer)
                self.unfinished = None

    def next(self) -> tuple[str, dict[str, Any]]:
        """Return the next request."""
        self.requests += 1
        request = f"{self.member.agent} {self.requests}"
        waiting = [pull["pull"] for pull in self.asked.values() if pull["share"] and pull["pull"] not in self.told]
        if waiting:
            return "/tell", {"pull": waiting[0], "reward": self.random.random()}
        board = self.member.board()
        if self.member.agent in ("a1", "a2") or board["leader"] is None:
            return "/ask", {"request": request}
        run = {"version": board["version"], "arm": board["leader"], "pulls": self.random.randint(1, 3)}
        return "/commits", {"request": request, "runs": [run]}


def test_a_killed_server(database_url: str) -> None:
    moment = random.Random(7)
    workers: list[Worker] = []
    collaboration = ""
    for start in range(KILLS + 1):
        with contextlib.suppress(httpx.TransportError), serving(database_url) as server:
            operator = Speaker(server.url, TOKEN, collaboration)
            if not workers:
                operator = host = Host(server.url, horizon=1e6, arms=["a", "b", "c"], claim_seconds=600, **NAMED)
                collaboration = host.collaboration
                sharing = [("a", "b", "c"), ("a", "b"), (), ()]
                workers = [Worker(host.join(*shares), place) for place, shares in enumerate(sharing)]
            for worker in workers:
                worker.member.url = server.url
            check(operator, workers)
            if start == KILLS:
                for worker in workers:  # what was under way is answered now, and only counts once
                    if worker.unfinished is not None:
                        worker.member.ok("POST", *worker.unfinished)
                operator.ok("POST", "/close")
                break
            threads = [threading.Thread(target=worker.work) for worker in workers]
            for thread in threads:
                thread.start()
            goal, until = [count + MORE for count in made(workers)], time.monotonic() + PATIENCE
            while any(count < wanted for count, wanted in zip(made(workers), goal, strict=True)):
                assert time.monotonic() < until, (made(workers), goal)
                time.sleep(0.005)
            time.sleep(moment.random() / 10)
            server.kill()
            for thread in threads:
                thread.join(PATIENCE)
            assert not any(thread.is_alive() for thread in threads)
    assert min(made(workers)) >= KILLS * MORE


def made(workers: list[Worker]) -> tuple[int, int]:
    """Return how many tells and how many reports were acknowledged so far."""
    return sum(len(worker.told) for worker in workers), sum(len(worker.reported) for worker in workers)


def check(operator: Speaker, workers: list[Worker]) -> None:
    """Everything acknowledged is there, once, and repeated requests get the same answers."""
    answer = operator.call("GET", "/ledger")
    assert verify(answer.content.splitlines(keepends=True)).ok
    ledger = operator.ledger()
    heads = {line["row"]["seq"]: line["head"] for line in ledger}
    tells = Counter(
        (row["pull"], row["reward"], row["agent"]) for row in (line["row"] for line in ledger) if "pull" in row
    )
    reports = Counter(line["row"]["request"] for line in ledger if line["row"]["kind"] == "commit")
    assert all(count == 1 for count in [*tells.values(), *reports.values()])
    told = {line["row"]["pull"]: line for line in ledger if line["row"]["kind"] == "tell"}
    for worker in workers:
        for pull, (reward, acknowledged) in worker.told.items():
            assert told[pull]["row"]["reward"] == reward
            assert told[pull]["row"]["agent"] == worker.member.agent
            assert (told[pull]["row"]["version"], told[pull]["head"]) == (
                acknowledged["version"],
                acknowledged["head"],
            )
        for request, (_, acknowledged) in worker.reported.items():
            assert reports[request] == 1
            assert acknowledged["head"] in heads.values()
        # Repeated, the same; of many, the last few.
        for pull, (reward, acknowledged) in list(worker.told.items())[-3:]:
            assert plain(worker.member.tell(pull, reward)) == plain(acknowledged)
        for body, acknowledged in list(worker.reported.values())[-3:]:
            assert plain(worker.member.ok("POST", "/commits", body)) == plain(acknowledged)
        for request, acknowledged in list(worker.asked.items())[-3:]:
            assert plain(worker.member.ask(request=request)) == plain(acknowledged)
    assert len(operator.ledger()) == len(ledger)


# a database that fails


Game = Callable[[Controller, Book, str], Awaitable[None]]


def play(kind: type[Faulty], path: Path, game: Game, snapshot_every: int = SNAPSHOT_EVERY) -> None:
    """Play with a controller and an agent that shares both arms, and check the ledger at the end."""

    async def all_of_it() -> None:
        controller = Controller(kind(path), snapshot_every=snapshot_every)
        controller.start()
        new = NewCollaboration(name="Trial", arms=["a", "b"], horizon=1000, **NAMED)
        id, codes = await controller.create("secret", new)
        agent, _ = await controller.join(id, codes[0], NewAgent(name="Ann", shares=["a", "b"]))
        book = await controller.library.book(id)
        await asyncio.wait_for(game(controller, book, agent), PATIENCE)
        await right(controller, book)
        await controller.stop()

    asyncio.run(all_of_it())


async def right(controller: Controller, book: Book) -> None:
    """The ledger verifies, and what is in memory is what is on disk."""
    assert await controller.library.fresh(book.id) is book
    fresh = Book.load(controller.store, book.id)
    assert fresh is not None
    assert all_of(book.state) == all_of(fresh.state)
    assert book.head == fresh.head
    assert book.board() == fresh.board()
    lines = [part async for part in await controller.ledger(book.id, None)]
    assert verify(b"".join(lines).splitlines(keepends=True)).ok


async def pull_of(controller: Controller, book: Book, agent: str) -> int:
    pull = await controller.ask(book, agent, None, False)
    assert pull is not None
    return pull.pull


@pytest.mark.parametrize("kind", [Faulty, Remote])
@pytest.mark.parametrize("unreadable", [False, True])
def test_a_full_disk(kind: type[Faulty], unreadable: bool, tmp_path: Path) -> None:
    async def game(controller: Controller, book: Book, agent: str) -> None:
        store = controller.store
        assert isinstance(store, Faulty)
        pull = await pull_of(controller, book, agent)
        seq = book.state.seq
        store.faults, store.unreadable = ["full", "full"], unreadable
        for _ in range(2):
            with pytest.raises(StoreError):
                await controller.tell(book, agent, pull, 0.5)
        if unreadable:  # the state cannot even be read back: nothing is answered from it until it is
            for reading in (controller.library.fresh(book.id), controller.settlements.view(book.id)):
                with pytest.raises(StoreError):
                    await reading
        store.faults, store.unreadable = [], False
        assert (await controller.library.fresh(book.id)).state.seq == seq
        told = await controller.tell(book, agent, pull, 0.5)
        assert told == await controller.tell(book, agent, pull, 0.5)
        assert (told.version, book.state.seq) == (1, seq + 1)

    play(kind, tmp_path / "partage.db", game)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"kind":"create","seq":1,"time":1,"format":99}', "newer_format"),
        (b'{"kind":"create"}', "damaged_ledger"),
        (None, "no_such_collaboration"),
    ],
)
@pytest.mark.parametrize("kind", [Faulty, Remote])
def test_a_collaboration_that_cannot_be_read_does_not_hide_the_others(
    kind: type[Faulty],
    body: bytes | None,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(logging.getLogger("partage"), "propagate", True)  # a server may have set it up before

    async def game(controller: Controller, book: Book, agent: str) -> None:
        store = controller.store
        assert isinstance(store, Faulty)
        head = next_head(GENESIS, row_hash(bytes(16), body or b""))
        rows = [] if body is None else [Row(1, body, bytes(16), head, None)]
        with store.begin({}) as writing:
            writing.commit({"c0": rows} if rows else {}, created=[Created("c0", 1, None)])
        new = NewCollaboration(name="Later", arms=["a", "b"], horizon=1000)
        later, _ = await controller.create("secret", new)
        caplog.clear()
        assert await controller.library.all(lambda found: found.id) == [book.id, later]
        (warning,) = (record for record in caplog.records if record.levelname == "WARNING")
        assert (warning.message, vars(warning)["collaboration"]) == ("collaboration left out", "c0")
        assert vars(warning)["error"] == reason
        with pytest.raises(Refused) as refused:
            await controller.library.fresh("c0")
        assert refused.value.code == reason
        store.unreadable = True  # then nothing can be read, which is no fault of the collaborations
        with pytest.raises(StoreError):
            await controller.library.all(lambda found: found.id)
        store.unreadable = False

    play(kind, tmp_path / "partage.db", game)


def test_a_preview_never_shows_what_was_not_written(tmp_path: Path) -> None:
    """It waits behind another one while a report comes in, whose write then fails."""
    settling, storing = asyncio.Semaphore(0), asyncio.Semaphore(1000)

    async def in_thread(work: Callable[..., Any], *given: Any) -> Any:
        await (settling if work is previewed else storing).acquire()
        return work(*given)

    async def others() -> None:
        for _ in range(100):
            await asyncio.sleep(0)

    async def scenario() -> None:
        store = Remote(tmp_path / "partage.db")
        controller = Controller(store, system=System(in_thread=in_thread))
        new = NewCollaboration(name="Trial", arms=["a", "b"], horizon=1000, settlement="none")
        id, codes = await controller.create("secret", new)
        agent, _ = await controller.join(id, codes[0], NewAgent(name="Ann", shares=["a", "b"]))
        book = await controller.library.book(id)
        pull = await pull_of(controller, book, agent)
        seq = book.state.seq
        first, second = (asyncio.ensure_future(controller.settlements.view(id)) for _ in range(2))
        await others()

        while not storing.locked():
            await storing.acquire()
        store.faults = ["full"]
        telling = asyncio.ensure_future(controller.tell(book, agent, pull, 1.0))
        storing.release()  # the transaction begins, and its commit takes time
        await others()
        assert book.state.seq == seq + 1
        settling.release()
        assert (await first).rows[0].explore == 0
        await others()
        for _ in range(1000):
            storing.release()
        with pytest.raises(StoreError):
            await telling
        await controller.consent(book, agent, ["a"])  # the event that now has this number
        assert book.state.seq == seq + 1
        for _ in range(10):
            settling.release()
        assert (await second).rows[0].explore == 0
        assert (await controller.settlements.view(id)).rows[0].explore == 0
        await controller.stop()

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE))


@pytest.mark.parametrize("kind", [Faulty, Remote])
def test_a_commit_whose_outcome_is_unknown(kind: type[Faulty], tmp_path: Path) -> None:
    async def game(controller: Controller, book: Book, agent: str) -> None:
        store = controller.store
        assert isinstance(store, Faulty)
        pull = await pull_of(controller, book, agent)
        store.faults = ["unknown"]
        with pytest.raises(StoreError):
            await controller.tell(book, agent, pull, 0.5)
        told = await controller.tell(book, agent, pull, 0.5)
        assert (told.version, told.head) == (1, book.head)
        with pytest.raises(Refused) as refused:
            await controller.tell(book, agent, pull, 0.6)
        assert refused.value.status == 409
        # A report of commit pulls, and an ask, the same way.
        eve = await controller.invites.add("secret", book.id, NewInvites())
        agent, _ = await controller.join(book.id, eve[0], NewAgent(name="Eve", shares=[]))
        leader = book.state.config.arms[book.state.target() or 0]
        report = Commits(request="r1", runs=[CommitRun(version=1, arm=leader, pulls=5)])
        for again in (
            lambda: controller.commits(book, agent, report),
            lambda: controller.ask(book, agent, "r2", False),
        ):
            store.faults = ["unknown"]
            with pytest.raises(StoreError):
                await again()
            assert await again() == await again()
        assert book.state.members[agent].commit == {book.arms[leader]: 6}

    play(kind, tmp_path / "partage.db", game)


@pytest.mark.parametrize("kind", [Faulty, Remote])
def test_races_that_are_lost(kind: type[Faulty], tmp_path: Path) -> None:
    async def game(controller: Controller, book: Book, agent: str) -> None:
        store = controller.store
        assert isinstance(store, Faulty)
        for lost in (1, ATTEMPTS - 1):
            pull = await pull_of(controller, book, agent)
            store.faults = ["lost"] * lost
            await controller.tell(book, agent, pull, 0.5)
        pull, seq = await pull_of(controller, book, agent), book.state.seq
        store.faults = ["lost"] * ATTEMPTS
        with pytest.raises(Refused) as refused:
            await controller.tell(book, agent, pull, 0.5)
        assert (refused.value.status, book.state.seq) == (503, seq)
        assert (await controller.tell(book, agent, pull, 0.5)).version == 3

    play(kind, tmp_path / "partage.db", game)


@pytest.mark.parametrize("kind", [Faulty, Remote])
def test_one_move_that_breaks_leaves_the_others_alone(kind: type[Faulty], tmp_path: Path) -> None:
    async def game(controller: Controller, book: Book, agent: str) -> None:
        def broken(turn: Any) -> None:
            raise ZeroDivisionError

        answers = await asyncio.gather(
            controller.ask(book, agent, "r1", False),
            controller.library.put(book, broken),
            controller.ask(book, agent, "r2", False),
            return_exceptions=True,
        )
        assert isinstance(answers[1], ZeroDivisionError)
        assert answers[0] == answers[2]

    play(kind, tmp_path / "partage.db", game)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:litestar")
def test_a_failing_database_over_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partage.service.runtime.readiness.EVERY", 0)
    store = Faulty(tmp_path / "partage.db")
    with TestClient(create_app(Controller(store, TOKEN))) as client:
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        body = {"name": "Trial", "arms": ["a"], "horizon": 10}
        store.faults = ["full"]
        answer = client.post("/v1/collaborations", json=body)
        assert answer.status_code == 503
        sentence = "The database does not answer; try again later."
        assert answer.json() == {"error": sentence, "code": "database_unavailable"}
        store.unreadable = True
        assert client.get("/ready").status_code == 503
        assert client.get("/health").status_code == 200
        store.unreadable = False
        assert client.get("/ready").status_code == 200
        assert client.get("/v1/collaborations").json() == []
        assert client.post("/v1/collaborations", json=body).status_code == 201


# requests that are cancelled


def test_a_cancelled_request_ends_no_other(tmp_path: Path) -> None:
    async def game(controller: Controller, book: Book, agent: str) -> None:
        store = controller.store
        assert isinstance(store, Faulty)
        store.pause = 0.1
        for _ in range(3):
            asked = asyncio.create_task(controller.ask(book, agent, None, False))
            while not book.writing:
                await asyncio.sleep(0)
            waiting = [asyncio.create_task(controller.library.fresh(book.id)), asyncio.create_task(book.on_disk())]
            await asyncio.sleep(0.01)
            for task in waiting:
                task.cancel()
            pull = await asked
            assert pull is not None
            told = asyncio.create_task(controller.tell(book, agent, pull.pull, 0.5))
            await asyncio.sleep(0.01)
            told.cancel()  # what was reported stays reported
            assert (await controller.library.fresh(book.id)).state.claims == {}

    play(Remote, tmp_path / "partage.db", game)


@pytest.mark.parametrize("kind", [Faulty, Remote])
def test_no_request_is_forgotten_as_the_writer_ends(kind: type[Faulty], tmp_path: Path) -> None:
    async def game(controller: Controller, book: Book, agent: str) -> None:
        async def later(turns: int) -> None:
            for _ in range(turns):
                await asyncio.sleep(0)
            await controller.ask(book, agent, None, False)

        for turns in range(12):
            await asyncio.gather(later(0), later(turns))

    play(kind, tmp_path / "partage.db", game)


# snapshots


async def some_history(controller: Controller, book: Book, agent: str, pulls: int = 40) -> None:
    for place in range(pulls):
        pull = await controller.ask(book, agent, f"r{place}", False)
        assert pull is not None
        if pull.share:
            await controller.tell(book, agent, pull.pull, 0.9 if pull.arm == "a" else 0.2)
        if place % 10 == 7:
            await controller.consent(book, agent, ["a"])
            await controller.consent(book, agent, ["a", "b"])


@pytest.mark.parametrize("kind", [Faulty, Remote])
def test_a_restart_from_a_snapshot_is_a_full_replay(
    kind: type[Faulty], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def game(controller: Controller, book: Book, agent: str) -> None:
        store = controller.store
        for _ in range(5):
            await some_history(controller, book, agent, 9)
            found = store.snapshot(book.id, SNAPSHOT_FORMAT)
            assert found is not None
            assert found[0] == book.snapshot_seq > book.state.seq - 10
            from_snapshot = Book.load(store, book.id)
            with monkeypatch.context() as without:
                without.setattr(store, "snapshot", lambda *_: None)
                replayed = Book.load(store, book.id)
            assert from_snapshot is not None
            assert replayed is not None
            assert (from_snapshot.snapshot_seq, replayed.snapshot_seq) == (found[0], 0)
            assert all_of(from_snapshot.state) == all_of(replayed.state) == all_of(book.state)
            assert from_snapshot.head == replayed.head == book.head
            assert from_snapshot.board() == replayed.board() == book.board()

    play(kind, tmp_path / "partage.db", game, snapshot_every=7)


def test_a_snapshot_that_does_not_fit_is_not_used(tmp_path: Path) -> None:
    async def game(controller: Controller, book: Book, agent: str) -> None:
        await some_history(controller, book, agent)
        id, _ = await controller.create("secret", NewCollaboration(name="Other", arms=["x"], horizon=10))
        other, good, store = (await controller.library.book(id)).state.dump(), book.state.dump(), controller.store
        wrong = [
            (1, b""),
            (2, b"garbage"),
            (3, good[: len(good) // 2]),
            (4, other),  # another collaboration's
            (5, good),  # not of this event
            (book.state.seq + 1, good),  # of an event that is not there
            (book.state.seq + 2, b"\xc0"),
        ]
        for seq, state in wrong:
            store.keep_snapshot(book.id, seq, SNAPSHOT_FORMAT, state)
            found = store.snapshot(book.id, SNAPSHOT_FORMAT)
            assert found == (seq, state)
            loaded = Book.load(store, book.id)
            assert loaded is not None
            assert all_of(loaded.state) == all_of(book.state)
            assert (loaded.head, loaded.snapshot_seq) == (book.head, 0)

    play(Faulty, tmp_path / "partage.db", game)


@pytest.mark.parametrize("error", [StoreError("The disk is full."), OverflowError("a number of more than 64 bits")])
def test_a_failing_snapshot_fails_no_request(error: Exception, tmp_path: Path) -> None:
    class NoSnapshots(Faulty):
        def keep_snapshot(self, *_: Any) -> None:
            raise error

    play(NoSnapshots, tmp_path / "partage.db", some_history, snapshot_every=3)


# receipts


@pytest.mark.parametrize("kind", [Faulty, Remote])
def test_no_checkpoint_covers_what_is_not_on_disk(kind: type[Faulty], tmp_path: Path) -> None:
    """Not while it is being written, nor after a write that failed or whose outcome is unknown."""
    signed: list[tuple[int, int, int]] = []

    async def game(controller: Controller, book: Book, agent: str) -> None:
        store = controller.store
        assert isinstance(store, Faulty)
        write = store.commit_rows

        def look() -> None:
            checkpoint, _ = book.checkpoint(controller.secret.key)
            on_disk = len(store.rows(book.id))
            signed.append((checkpoint.size, on_disk, book.state.seq))

        def looking(*given: Any) -> None:
            look()
            write(*given)

        store.commit_rows = looking  # type: ignore[method-assign]
        for fault in ("", "full", "lost", "unknown", ""):
            store.faults = [fault]
            with contextlib.suppress(StoreError):
                pull = await controller.ask(book, agent, None, False)
                assert pull is not None
                await controller.tell(book, agent, pull.pull, 0.5)
            look()
        store.commit_rows = write  # type: ignore[method-assign]

    play(kind, tmp_path / "partage.db", game)
    assert all(size <= on_disk for size, on_disk, _ in signed)
    assert any(size < ahead for size, _, ahead in signed)
