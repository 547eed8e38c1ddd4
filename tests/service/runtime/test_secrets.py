"""What opens what, and for how long: joins that are repeated, sessions of the operator, reports after the close."""

import asyncio
from pathlib import Path

import pytest

from partage.ledger import messages as wire
from partage.ledger.chain import line
from partage.ledger.events import decode
from partage.ledger.refusals import Refused
from partage.service.runtime import controller
from partage.service.runtime import secrets as access
from partage.service.runtime.controller import Controller
from partage.service.store import open_store

NEW = wire.NewCollaboration(name="Trial", arms=["a", "b"], horizon=100, invites=2)
DAY = 24 * 3600 * 1000


def run(path: Path, work):
    """Run a piece of work on a controller of its own."""

    async def main():
        held = Controller(open_store(str(path)))
        await held.start()
        try:
            return await work(held)
        finally:
            await held.stop()

    return asyncio.run(main())


@pytest.fixture(autouse=True)
def operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTAGE_OPERATOR_TOKEN", "the first token of the operator")


def test_a_join_is_repeated_for_a_day_and_no_member_can_repeat_it(tmp_path: Path, monkeypatch) -> None:
    async def work(held: Controller) -> None:
        id, (code, other) = await held.create("secret", NEW)
        ada = wire.NewAgent(name="Ada", shares=["a"], request="known to Ada alone")
        joined = await held.join(id, code, ada)
        await held.join(id, other, wire.NewAgent(name="Eve", shares=[]))
        assert await held.join(id, code, ada) == joined

        # Eve has the used link and the whole ledger.
        shown = b"".join(line(row, decode(row.body), "a2") for row in held.store.rows(id)).decode()
        assert "known to Ada alone" not in shown
        for request in [None, "", *shown.replace('"', " ").split()]:
            with pytest.raises(Refused) as refused:
                await held.join(id, code, wire.NewAgent(name="Eve", shares=[], request=request and request[:100]))
            assert refused.value.status in (403, 422)

        later = controller.clock() + DAY + 1000
        monkeypatch.setattr(controller, "clock", lambda: later)
        with pytest.raises(Refused, match="invite was used"):
            await held.join(id, code, ada)

    run(tmp_path / "partage.db", work)


def test_a_session_of_the_operator_ends_with_her_token(tmp_path: Path, monkeypatch) -> None:
    async def before(held: Controller) -> tuple[str, str]:
        id, (code, _) = await held.create("secret", NEW)
        _, token = await held.join(id, code, wire.NewAgent(name="Ada", shares=["a"]))
        operator, _ = await held.log_in("the first token of the operator")
        member, _ = await held.log_in(token)
        assert (await held.session(operator)).operator
        return operator, member

    async def after(held: Controller) -> None:
        with pytest.raises(Refused, match="log in again"):
            await held.session(operator)
        assert (await held.session(member)).agent == "a1"

    operator, member = run(tmp_path / "partage.db", before)
    monkeypatch.setenv("PARTAGE_OPERATOR_TOKEN", "the second token of the operator")
    run(tmp_path / "partage.db", after)


def test_after_the_close_a_report_is_repeated_and_no_other_taken(tmp_path: Path) -> None:
    async def work(held: Controller) -> None:
        id, (code, other) = await held.create("secret", NEW)
        await held.join(id, code, wire.NewAgent(name="Ada", shares=["a", "b"]))
        await held.join(id, other, wire.NewAgent(name="Bea", shares=["a", "b"]))
        book = await held.book(id)
        told = await held.ask(book, "a1", None, False)
        open_claim = await held.ask(book, "a2", None, False)
        answer = await held.tell(book, "a1", told.pull, 0.5)
        await held.close(id)
        assert await held.tell(book, "a1", told.pull, 0.5) == answer
        for agent, pull in (("a2", open_claim.pull), ("a1", 10**6), ("a1", 1), ("a1", open_claim.pull)):
            with pytest.raises(Refused) as refused:
                await held.tell(book, agent, pull, 0.5)
            assert refused.value.status in (409, 403)
        for agent, pull in (("a2", open_claim.pull), ("a1", 10**6), ("a1", 1)):
            with pytest.raises(Refused, match="is closed"):
                await held.tell(book, agent, pull, 0.5)

    run(tmp_path / "partage.db", work)


def test_secrets_of_a_request_need_the_secret() -> None:
    assert access.derived("x", "one", "a", "b") == access.derived("x", "one", "a", "b")
    assert access.derived("x", "one", "a", "b") != access.derived("x", "two", "a", "b")
    assert access.derived("x", "one", "a", "b") != access.derived("x", "one", "b", "a")
