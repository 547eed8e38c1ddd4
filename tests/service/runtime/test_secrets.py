"""What opens what, and for how long: repeated joins, sessions of the operator, reports after the close."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from partage.ledger import messages as wire
from partage.ledger.chain import line
from partage.ledger.events import decode
from partage.ledger.keys import Key
from partage.ledger.refusals import Refused
from partage.ledger.signatures import Signed, sign
from partage.service.runtime import secrets as access
from partage.service.runtime.controller import Controller
from partage.service.runtime.sessions import By
from partage.service.runtime.system import System, wall_clock
from partage.service.store import open_store

NEW = wire.NewCollaboration(name="Trial", arms=["a", "b"], horizon=100, invites=2)
DAY = 24 * 3600 * 1000
FIRST, SECOND = "the first token of the operator", "the second token of the operator"

T = TypeVar("T")


class Clock:
    """The machine's clock, which a test can set forward."""

    def __init__(self) -> None:
        self.ahead = 0

    def __call__(self) -> int:
        return wall_clock() + self.ahead


def run(path: Path, work: Callable[[Controller], Awaitable[T]], token: str = FIRST, **system: Any) -> T:
    """Run a piece of work on a controller of its own."""

    async def main() -> T:
        held = Controller(open_store(str(path)), token, System(**system))
        held.start()
        try:
            return await work(held)
        finally:
            await held.stop()

    return asyncio.run(main())


def test_a_join_is_repeated_for_a_day_and_no_member_can_repeat_it(tmp_path: Path) -> None:
    clock = Clock()

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
            assert refused.value.code in ("invite_used", "invalid_field")

        clock.ahead = DAY + 1000
        with pytest.raises(Refused) as refused:
            await held.join(id, code, ada)
        assert refused.value.code == "invite_used"

    run(tmp_path / "partage.db", work, clock=clock)


def test_a_repeated_join_is_signed_like_the_first(tmp_path: Path) -> None:
    key = Key(b"1" * 32)

    async def work(held: Controller) -> None:
        id, (code, _) = await held.create("secret", msgspec.structs.replace(NEW, signed=True))
        ada = wire.NewAgent(name="Ada", shares=["a"], request="first", key=key.public)

        def signed(by: Key, number: int) -> By:
            return By(sign(by, "join", id, number, name="Ada", shares=["a"], key=by.public, tie_commitment=None))

        joined = await held.join(id, code, ada, signed(key, 1))
        assert await held.join(id, code, ada, signed(key, 2)) == joined
        for by, refusal in ((By(), "signature_required"), (signed(Key(b"2" * 32), 3), "wrong_signature")):
            with pytest.raises(Refused) as refused:
                await held.join(id, code, ada, by)
            assert refused.value.code == refusal

    run(tmp_path / "partage.db", work)


def test_a_session_of_the_operator_ends_when_the_token_changes(tmp_path: Path) -> None:
    async def before(held: Controller) -> tuple[str, str]:
        id, (code, _) = await held.create("secret", NEW)
        _, token = await held.join(id, code, wire.NewAgent(name="Ada", shares=["a"]))
        operator, _ = await held.sessions.log_in(FIRST)
        member, _ = await held.sessions.log_in(token)
        assert (await held.sessions.session(operator)).operator
        return operator, member

    async def after(held: Controller) -> None:
        with pytest.raises(Refused) as refused:
            await held.sessions.session(operator)
        assert refused.value.code == "session_over"
        assert (await held.sessions.session(member)).agent == "a1"

    operator, member = run(tmp_path / "partage.db", before)
    run(tmp_path / "partage.db", after, token=SECOND)


def test_a_session_ends_after_half_a_day(tmp_path: Path) -> None:
    clock = Clock()

    async def work(held: Controller) -> None:
        session, _ = await held.sessions.log_in(FIRST)
        clock.ahead = DAY // 2 - 60_000
        assert (await held.sessions.session(session)).operator
        clock.ahead = DAY // 2 + 1
        with pytest.raises(Refused) as refused:
            await held.sessions.session(session)
        assert refused.value.code == "session_over"

    run(tmp_path / "partage.db", work, clock=clock)


def test_after_the_close_a_report_is_repeated_and_no_other_taken(tmp_path: Path) -> None:
    async def work(held: Controller) -> None:
        id, (code, other) = await held.create("secret", NEW)
        await held.join(id, code, wire.NewAgent(name="Ada", shares=["a", "b"]))
        await held.join(id, other, wire.NewAgent(name="Bea", shares=["a", "b"]))
        book = await held.library.book(id)
        told = await held.ask(book, "a1", None, False)
        open_claim = await held.ask(book, "a2", None, False)
        answer = await held.tell(book, "a1", told.pull, 0.5)
        await held.settlements.close(id)
        again = await held.tell(book, "a1", told.pull, 0.5)
        assert (again.version, again.head) == (answer.version, answer.head)
        for agent, pull in (("a2", open_claim.pull), ("a1", 10**6), ("a1", 1), ("a1", open_claim.pull)):
            with pytest.raises(Refused) as refused:
                await held.tell(book, agent, pull, 0.5)
            assert refused.value.status in (409, 403)
        for agent, pull in (("a2", open_claim.pull), ("a1", 10**6), ("a1", 1)):
            with pytest.raises(Refused) as refused:
                await held.tell(book, agent, pull, 0.5)
            assert refused.value.code == "closed"

    run(tmp_path / "partage.db", work)


def test_no_token_follows_from_another_secret_and_the_request(tmp_path: Path) -> None:
    async def work(held: Controller) -> None:
        id, (code, _) = await held.create("secret", NEW)
        new = wire.NewAgent(name="Ada", shares=["a"], request="join")
        agent, first = await held.join(id, code, new)
        assert (agent, first) == await held.join(id, code, new)
        assert first != access.derived(access.AGENT, code, "agent", id, "join")
        book = await held.library.book(id)

        async def rotated() -> str:
            return (await held.rotate(book, agent, first, wire.Rotate(request="new"), by=By(None, 0))).token

        second = await rotated()
        assert await rotated() == second
        assert second != access.derived(access.AGENT, first, "token", id, agent, "new")
        third = (await held.renew(id, agent, FIRST, "renew")).token
        assert third != access.derived(access.AGENT, FIRST, "token", id, agent, "renew")
        with pytest.raises(Refused) as refused:
            await rotated()
        assert refused.value.code == "token_ended"

    run(tmp_path / "partage.db", work)


def test_a_new_token_is_repeated_to_the_member_s_key_only(tmp_path: Path) -> None:
    async def work(held: Controller) -> None:
        id, (code, _) = await held.create("secret", msgspec.structs.replace(NEW, signed=True))
        key, later = Key(b"1" * 32), Key(b"2" * 32)
        stated = {"name": "Ada", "shares": ["a"], "key": key.public, "tie_commitment": None}
        ada = wire.NewAgent(name="Ada", shares=["a"], key=key.public)
        agent, token = await held.join(id, code, ada, By(sign(key, "join", id, 1, **stated)))
        book = await held.library.book(id)

        async def rotated(signed: Signed | None) -> str:
            asked = wire.Rotate(request="new", key=later.public)
            return (await held.rotate(book, agent, token, asked, by=By(signed, 0))).token

        made = await rotated(sign(key, "rotate", id, 2, agent=agent, key=later.public))
        for number in (2, 3):
            assert await rotated(sign(key, "rotate", id, number, agent=agent, key=later.public)) == made
        for signed in (None, sign(Key(b"3" * 32), "rotate", id, 3, agent=agent, key=later.public)):
            with pytest.raises(Refused) as refused:
                await rotated(signed)
            assert refused.value.code in ("signature_required", "wrong_signature")

    run(tmp_path / "partage.db", work)


def test_secrets_of_a_request_need_the_secret() -> None:
    assert access.derived("x", "one", "a", "b") == access.derived("x", "one", "a", "b")
    assert access.derived("x", "one", "a", "b") != access.derived("x", "two", "a", "b")
    assert access.derived("x", "one", "a", "b") != access.derived("x", "one", "b", "a")
