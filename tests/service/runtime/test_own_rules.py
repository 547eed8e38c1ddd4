"""A server with rules of one's own: it plays them, needs the same module again, and survives their faults."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import httpx
import pytest
from tests.ledger.test_own_rules import HALVING, module
from tests.support.api import TOKEN, Host, Speaker, serving
from tests.support.command_line import partage, sentence
from tests.support.faulty_store import Faulty
from tests.support.simulation import Machine

from partage.client import Agent
from partage.errors import InputError
from partage.ledger import own_rules
from partage.ledger.messages import Attach, NewAgent, NewCollaboration
from partage.ledger.own_rules import RuleFailed, load_rules
from partage.ledger.state import State
from partage.ledger.verify import verify
from partage.rules import OWN_RULES
from partage.service.runtime.book import Book
from partage.service.runtime.controller import Controller


@pytest.fixture(autouse=True)
def none_loaded() -> Iterator[None]:
    """Leave no rule behind: they are known to the whole process."""
    yield
    OWN_RULES.clear()
    load_rules()


def test_a_collaboration_plays_and_needs_the_same_module(tmp_path: Path) -> None:
    database, mine = f"sqlite:///{tmp_path}/partage.db", tmp_path / "halving.py"
    shutil.copy(HALVING, mine)
    with serving(database, options=["--rules", str(mine)]) as server:
        host = Host(server.url, rule="halving", horizon=40, parameters={"rounds": 3}, invites=2)
        config = host.ok("GET")
        assert (config["rule"], config["parameters"]) == ("halving", {"rounds": 3})
        stranger = host.join("a")
        given = (server.url, host.collaboration, host.invite(), "Shop", ["b"])
        with pytest.raises(InputError, match=f"the rule halving .* SHA-256 {config['rule_source']}; load"):
            Agent.join(*given, state=tmp_path / "shop.json").ask()
        with Agent.resume(tmp_path / "shop.json", rules=mine, listen=False, max_pulls_per_board=1000) as agent:
            for _ in range(12):
                agent.tell(agent.ask(), 1.0)
                stranger.work(0.0)
        assert [arm["active"] for arm in host.board()["arms"]] == [False, True]
        host.ok("POST", "/close")
        lines = host.call("GET", "/ledger").text.splitlines()
    assert verify(lines, rules=mine).ok

    # The rules of another start: none, and those of a file that was changed since.
    ledger = tmp_path / "ledger.ndjson"
    ledger.write_text("\n".join(lines) + "\n")
    assert partage("verify", str(ledger), "--rules", str(mine)).code == 0
    OWN_RULES.clear()
    assert config["rule_source"] in sentence(partage("verify", str(ledger)))
    mine.write_text(mine.read_text() + "# changed\n")
    with serving(database, options=["--rules", str(mine)]) as server:
        again = Speaker(server.url, TOKEN, host.collaboration)
        refusal = again.refused(409, "GET", "/board", code="rule_missing")
        assert config["rule_source"] in refusal["error"]
        assert Host(server.url, rule="halving").board()["version"] == 0


def test_a_rule_that_fails_or_loops_is_refused_and_the_server_goes_on(tmp_path: Path) -> None:
    """The check at the start does not reach this horizon."""
    late = "if board.horizon == 77 and sum(board.counts) == 3: "
    raising = module(tmp_path, revise=late + "1 / 0", name="raising.py")
    looping = module(tmp_path, revise=late + "while_true()", name="looping.py")
    looping.write_text(
        looping.read_text().replace('"faulty"', '"looping"') + "\ndef while_true():\n    while True: pass\n"
    )
    options = ["--rules", str(raising), "--rules", str(looping)]
    with serving(f"sqlite:///{tmp_path}/partage.db", options=options) as server:
        for rule, said in (("faulty", "ZeroDivisionError"), ("looping", "more than 2 seconds")):
            host = Host(server.url, rule=rule, horizon=77)
            members = [host.join("a"), host.join("b")]
            told = 0
            for turn in range(6):
                pull = members[turn % 2].ask()
                answer = members[turn % 2].call("POST", "/tell", {"pull": pull["pull"], "reward": 0.5})
                told += answer.is_success
                if not answer.is_success:
                    break
            assert (told, answer.status_code, answer.json()["code"]) == (2, 409, "rule_failed")
            assert said in answer.json()["error"]
            assert host.board()["version"] == 2  # as before
            assert httpx.get(f"{server.url}/health").is_success
            host.ok("POST", "/close")
            lines = host.call("GET", "/ledger").text.splitlines()
            assert verify(lines, rules=[raising, looping]).ok


def test_a_rule_that_cannot_be_served_is_one_sentence(tmp_path: Path) -> None:
    faulty = module(tmp_path, decide="if board.actives(): return (min(shares) if shares else 0), False")
    ended = partage("serve", "--database", f"{tmp_path}/partage.db", "--rules", str(faulty))
    assert "The rule faulty of" in sentence(ended)
    assert not (tmp_path / "partage.db").exists()
    assert "There is no module no_such" in sentence(partage("serve", "--rules", "no_such"))


# --- faults, in simulated time ---------------------------------------------------------------------------------


def on_machine(path: Path, scenario: Callable[[Controller], Awaitable[None]]) -> None:
    """Play a scenario with a controller, in simulated time."""
    machine, store = Machine(1), Faulty(path, durable=False)

    async def main() -> None:
        controller = Controller(store, "token", machine.system())
        controller.start()
        await scenario(controller)
        await controller.stop()

    machine.run(main())


async def opened(controller: Controller, *shares: list[str], **config: object) -> tuple[Book, list[str]]:
    """A collaboration with members who share these arms."""
    given = {"name": "T", "horizon": 77, "arms": ["a", "b", "c"], "settlement": "none", "invites": len(shares)}
    id, codes = await controller.create("secret", NewCollaboration(**(given | config)))  # type: ignore[arg-type]
    joins = [NewAgent(name=f"Agent {place}", shares=arms) for place, arms in enumerate(shares)]
    agents = [(await controller.join(id, code, new))[0] for code, new in zip(codes, joins, strict=True)]
    return await controller.library.book(id), agents


@pytest.mark.parametrize("race", [False, True])
def test_a_failing_rule_leaves_the_other_moves_of_a_transaction_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, race: bool
) -> None:
    load_rules(module(tmp_path, decide="if board.horizon == 77 and len(shares) == 2: 1 / 0"))
    read: list[str] = []
    load = Book.load.__func__  # type: ignore[attr-defined]
    monkeypatch.setattr(Book, "load", classmethod(lambda cls, store, id: (read.append(id), load(cls, store, id))[1]))

    async def scenario(controller: Controller) -> None:
        book, (good, *bad) = await opened(controller, ["c"], *[["a", "b"]] * 25, rule="faulty")
        other, (agent,) = await opened(controller, ["a", "b"])
        read.clear()
        controller.library.store.faults = ["lost"] * race  # type: ignore[attr-defined]
        asks = [controller.ask(book, one, None, True) for one in (good, *bad)]
        first, *refused, last = await asyncio.gather(
            *asks, controller.ask(other, agent, None, True), return_exceptions=True
        )
        assert all(isinstance(one, RuleFailed) for one in refused)
        assert first.share
        assert last.share
        assert race or read == [book.id]  # nothing else was played again
        assert list(book.state.claims) == [first.pull]
        assert book.durable == book.state.seq
        await controller.tell(book, good, first.pull, 0.5)  # type: ignore[union-attr]

    on_machine(tmp_path / "partage.db", scenario)


def test_a_rule_that_fails_for_asks_that_wait_leaves_the_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opens = State.open_arms
    failing: list[Book] = []

    def fail(state: State) -> list[int]:
        if failing and state is failing[0].state:
            failing.clear()
            raise RuleFailed("faulty", "it took more than 2 seconds")
        return opens(state)

    async def scenario(controller: Controller) -> None:
        config = {"rule": "balanced-etc", "balance": 1, "arms": ["a", "b"]}
        book, (b, *agents) = await opened(controller, ["b"], *[["a"]] * 5, **config)
        other, (agent, _) = await opened(controller, ["a"], ["b"], **config)
        while await controller.ask(book, agents[0], None, True) is not None:
            agents.pop(0)
        waiting = asyncio.ensure_future(controller.ask(book, agents[0], None, True, wait=3.0))
        await asyncio.sleep(0.1)
        assert book.asks
        failing.append(book)
        asks = controller.ask(book, b, None, True), controller.ask(other, agent, None, True)
        answers = await asyncio.gather(*asks)
        assert all(answers)
        with pytest.raises(RuleFailed):
            await waiting
        assert not book.asks
        assert book.valid

    monkeypatch.setattr(State, "open_arms", fail)
    on_machine(tmp_path / "partage.db", scenario)


def test_claims_whose_lapse_the_rule_cannot_take_rest_for_minutes(tmp_path: Path) -> None:
    """Each attempt may take two seconds of the server's time."""
    failing = "if board.horizon == 77 and any(board.lapses): TIMES.append(1), 1 / 0"
    path = module(tmp_path, decide=failing)
    path.write_text("TIMES = []\n" + path.read_text())
    (rule,) = load_rules(path)
    times = rule.made.decide.__globals__["TIMES"]  # type: ignore[attr-defined]

    async def scenario(controller: Controller) -> None:
        book, (first, second) = await opened(controller, ["a"], ["b"], rule="faulty", claim_seconds=1.0)
        assert await controller.ask(book, first, None, True)
        await asyncio.sleep(250.0)
        assert len(times) == 1
        await controller.leave(book, second)  # something new: it is tried again
        await asyncio.sleep(10.0)
        assert len(times) == 2
        await asyncio.sleep(300.0)
        assert len(times) == 3

    on_machine(tmp_path / "partage.db", scenario)


def test_all_answers_in_one_move_have_one_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule revises after each attached reward."""
    busy = "end = time.thread_time() + 0.01 * (board.horizon == 77)\n        while time.thread_time() < end: pass"
    path = module(tmp_path, revise=busy)
    path.write_text("import time\n" + path.read_text())
    load_rules(path)
    monkeypatch.setattr(own_rules, "SECONDS", 0.2)

    async def scenario(controller: Controller) -> None:
        book, (first, second) = await opened(controller, ["a"], ["a", "b"], rule="faulty", histories=1000)
        with pytest.raises(RuleFailed, match=r"more than 0\.2 seconds"):
            await controller.attach(book, first, Attach(arm="a", rewards=[0.5] * 1000))
        assert book.state.board.counts == [0, 0, 0]
        for arm in ("a", "b"):  # the next moves have their own
            await controller.attach(book, second, Attach(arm=arm, rewards=[0.5] * 10))

    on_machine(tmp_path / "partage.db", scenario)


def test_a_rule_that_fails_only_as_the_board_is_shown_keeps_no_other_collaboration_waiting(tmp_path: Path) -> None:
    """It works in the move, and fails when the watchers of its collaboration are woken."""
    late = "if board.horizon == 77 and len(shares) == 1 and sum(board.counts) == 1: "
    failing = module(tmp_path, decide=late + "(TIMES.append(1), len(TIMES) < 3 or 1 / 0)")
    failing.write_text("TIMES = []\n" + failing.read_text())
    load_rules(failing)

    async def scenario(controller: Controller) -> None:
        bad, (told,) = await opened(controller, ["a", "b"], rule="faulty")
        good, (asking,) = await opened(controller, ["a", "b"])
        ended: list[Exception] = []

        async def watch() -> None:
            try:
                async for book in controller.watch(bad.id):
                    if book is not None:
                        book.shown()
            except RuleFailed as error:
                ended.append(error)

        watching = asyncio.ensure_future(watch())
        await asyncio.sleep(1)
        pull = await controller.ask(bad, told, None, True)
        assert pull is not None
        await asyncio.sleep(1)
        async with asyncio.timeout(30):
            _, claim = await asyncio.gather(
                controller.tell(bad, told, pull.pull, 0.5), controller.ask(good, asking, None, True)
            )
            assert claim is not None
            await controller.tell(good, asking, claim.pull, 0.5)
            assert (await controller.library.fresh(good.id)).state.version == 1
            await watching
        assert ended

    on_machine(tmp_path / "partage.db", scenario)
