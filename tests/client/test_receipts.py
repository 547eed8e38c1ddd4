"""Receipts and witnesses: an operator who breaks a promise is found, and the agent sends nothing more."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from tests.support.fake_controller import ID, FakeController, json_of

from partage.client import Agent, AsyncAgent, Forked, Refused
from partage.client.effects import Answer, Save, Send
from partage.client.protocol import Protocol
from partage.client.statefile import read
from partage.errors import InputError
from partage.ledger.checkpoints import read_checkpoint, read_cosignature
from partage.ledger.keys import Key, encoded
from partage.ledger.receipts import Receipted

URL = "http://controller"


def joined(controller: FakeController, state: Path | None = None, name: str = "Shop", **options: Any) -> Agent:
    """An agent that joined and shares both arms."""
    options = {"transport": controller, "listen": False, "patience": 0.0} | options
    return Agent.join(URL, ID, f"invite of {name}", name, ["a", "b"], state=state, **options)


def resumed(controller: FakeController, state: Path) -> Agent:
    return Agent.resume(state, transport=controller, listen=False, patience=0.0)


def explore(agent: Agent, rewards: tuple[float, ...] = (0.5, 0.25, 0.75)) -> None:
    for reward in rewards:
        pull = agent.ask()
        agent.tell(pull, reward)


def test_receipts_are_checked_and_the_newest_checkpoint_is_kept(tmp_path: Path) -> None:
    controller, state = FakeController(), tmp_path / "agent.json"
    with joined(controller, state) as agent:
        explore(agent)
        agent.share(["a"])
        kept = read_checkpoint(agent.checkpoint(), ID, controller.log.key.public)
        assert kept == controller.log.checkpoint()
    saved = read(state)
    assert saved.log_key == controller.log.key.public
    assert read_checkpoint(saved.checkpoint, ID, saved.log_key) == controller.log.checkpoint()
    assert not saved.forked
    again = resumed(controller, state)
    explore(again)
    again.close()


def test_the_key_is_made_and_saved_before_joining(tmp_path: Path) -> None:
    controller, state = FakeController(), tmp_path / "agent.json"
    seen: list[str] = []

    def look(request: httpx.Request, answer: Any) -> Any:
        if request.url.path.endswith("/agents"):
            saved = read(state)
            assert saved.private_key is not None
            assert json_of(request)["key"] == saved.private_key.public
            seen.append(saved.key)
        return answer

    controller.lie = look
    agent = joined(controller, state)
    assert seen == [read(state).key]
    assert seen[0] not in repr(agent) + repr(agent._protocol.saved)


def test_the_commits_that_have_receipts_are_counted(tmp_path: Path) -> None:
    for receipts in (True, False):
        controller, state = FakeController(receipts=receipts), tmp_path / f"{receipts}.json"
        explore(joined(controller, name="Other"))
        with joined(controller, state) as agent:
            agent.share([])
            for _ in range(2):
                agent.ask()
                agent.flush()
        made = controller.table.state.members[agent.id].commit
        assert sum(made.values()) == 2
        expected = {"ab"[arm]: pulls for arm, pulls in made.items()} if receipts else {}
        assert read(state).receipted == Receipted(expected)


def test_a_report_that_two_calls_sent_is_counted_once() -> None:
    """Both calls of one agent wait for the answer to the same report."""
    controller = FakeController()
    explore(joined(controller, name="Other"))
    agent = joined(controller)
    agent.share([])
    agent.ask()
    protocol = agent._protocol
    first, second = protocol.flush(), protocol.flush()
    sent = [next_send(first), next_send(second)]
    assert sent[0].body == sent[1].body
    for steps, step in zip((first, second), sent, strict=True):
        finish(agent, steps, step)
    assert protocol.saved.receipted.pulls == 1


def next_send(steps: Any) -> Send:
    """Go on to the next request to report commits."""
    step = next(steps)
    while not (isinstance(step, Send) and step.path.endswith("/commits")):
        assert isinstance(step, Save)
        step = steps.send(None)
    return step


def finish(agent: Agent, steps: Any, step: Any) -> None:
    """Carry out the remaining steps."""
    try:
        while True:
            step = steps.send(agent._do(step))
    except StopIteration:
        return


# --- row 3: a report that is swallowed ------------------------------------------------------------------------

Attack = Callable[[FakeController, httpx.Request, Any], Any]


def another_rows_receipt(controller: FakeController, request: httpx.Request, answer: Any) -> Any:
    """The report is not written; the answer shows another row of the ledger."""
    return _with_receipt(answer, controller.log.receipt(2, _seen(request)))


def an_old_receipt(controller: FakeController, request: httpx.Request, answer: Any) -> Any:
    """The answer has the receipt of an earlier report of the same member."""
    tells = [row.seq for row in controller.table.rows if row.pull is not None]
    return _with_receipt(answer, controller.log.receipt(tells[0], _seen(request)))


def another_reward(controller: FakeController, request: httpx.Request, answer: Any) -> Any:
    """The row is the right one but for the reward, and properly in the tree."""
    row = controller.table.rows[-1]
    body = row.body.replace(b'"reward":0.125', b'"reward":0.875')
    assert body != row.body
    controller.table.rows[-1] = row._replace(body=body)
    controller.log._tree = type(controller.log.tree)()
    return _with_receipt(answer, controller.log.receipt(row.seq, _seen(request)))


def no_inclusion(controller: FakeController, request: httpx.Request, answer: Any) -> Any:
    """The row is shown but is not in the signed tree: it is signed as it was before."""
    row = controller.table.rows.pop()
    controller.log._tree = type(controller.log.tree)()
    receipt = controller.log.receipt(1, _seen(request))
    return _with_receipt(
        answer, msgspec.structs.replace(receipt, row=msgspec.Raw(row.body), salt=row.salt.hex(), inclusion=[])
    )


def another_key(controller: FakeController, request: httpx.Request, answer: Any) -> Any:
    """The checkpoint is signed, by another key."""
    controller.log.key = Key(b"\x08" * 32)
    return _with_receipt(answer, controller.log.receipt(len(controller.table.rows), _seen(request)))


def no_receipt(controller: FakeController, request: httpx.Request, answer: Any) -> Any:
    """The controller gave receipts before and gives none now."""
    return _with_receipt(answer, None)


ATTACKS = (another_rows_receipt, an_old_receipt, another_reward, no_inclusion, another_key, no_receipt)


def _seen(request: httpx.Request) -> int:
    return int(request.headers["Partage-Checkpoint"])


def _with_receipt(answer: Any, receipt: Any) -> Any:
    if isinstance(answer, dict):
        return answer | {"receipt": receipt}
    return msgspec.structs.replace(answer, receipt=receipt)


def attacking(controller: FakeController, attack: Attack, path: str) -> Callable[[httpx.Request, Any], Any]:
    return lambda request, answer: attack(controller, request, answer) if request.url.path.endswith(path) else answer


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_swallowed_report_is_found_and_nothing_more_is_sent(attack: Attack, tmp_path: Path) -> None:
    controller, state = FakeController(), tmp_path / "agent.json"
    agent = joined(controller, state)
    explore(agent, (0.5, 0.5))
    claim = agent.ask()
    controller.lie = attacking(controller, attack, "/tell")
    with pytest.raises(Forked) as caught:
        agent.tell(claim, 0.125)
    sent = len(controller.requests)
    for call in (agent.ask, agent.board, agent.close, lambda: agent.share([]), lambda: agent.tell(claim, 0.125)):
        with pytest.raises(Forked) as again:
            call()
        assert again.value.sentence == caught.value.sentence
    with pytest.raises(Forked):
        resumed(controller, state).ask()
    assert len(controller.requests) == sent
    saved = read(state)
    assert saved.forked == caught.value.sentence
    assert saved.evidence == caught.value.evidence == agent.evidence
    assert read_checkpoint(saved.evidence[0], ID, saved.log_key) is not None
    assert "sends nothing more" in str(caught.value)
    assert saved.telling is not None, "the report is kept, since nobody else has it"


def test_what_was_sent_and_what_was_shown_are_named() -> None:
    controller = FakeController()
    agent = joined(controller)
    explore(agent)
    claim = agent.ask()
    controller.lie = attacking(controller, another_reward, "/tell")
    with pytest.raises(Forked, match=rf"sent tell .*'pull': {claim.number}, 'reward': 0\.125.*'reward': 0\.875"):
        agent.tell(claim, 0.125)


def another_agents_row(controller: FakeController, request: httpx.Request, answer: Any) -> Any:
    """The row is of the right kind, and of another member."""
    kind = type(controller.table.events[-1])
    for event in reversed(controller.table.events):
        if type(event) is kind and event.agent == "a1":
            return _with_receipt(answer, controller.log.receipt(event.seq, _seen(request)))
    raise AssertionError(kind)


def other_contents(controller: FakeController, request: httpx.Request, answer: Any) -> Any:
    """The controller wrote something else in the member's name."""
    table, last = controller.table, controller.table.events[-1]
    changed = {"claim": {"arm": 1 - getattr(last, "arm", 0)}, "consent": {"shares": (0, 1)}}
    changed |= {"commit": {"unnamed": 99, "runs": ()}, "join": {"name": "Somebody else"}}
    kind = type(last).__struct_config__.tag
    forged = msgspec.structs.replace(last, **changed[str(kind)])
    table.events[-1] = forged
    table.rows[-1] = table.rows[-1]._replace(body=msgspec.json.encode(forged, order="sorted"))
    controller.log._tree = type(controller.log.tree)()
    seen = request.headers.get("Partage-Checkpoint")
    return _with_receipt(answer, controller.log.receipt(last.seq, None if seen is None else int(seen)))


@pytest.mark.parametrize("attack", [another_rows_receipt, another_agents_row, other_contents, no_receipt])
@pytest.mark.parametrize("call", ["/ask", "/commits", "/agents/me"])
def test_the_receipts_of_other_calls_are_checked_too(call: str, attack: Attack) -> None:
    controller = FakeController()
    other = joined(controller, name="Other")
    explore(other, (0.5, 0.5, 0.5))
    other.share(["b"])
    other.share(["a", "b"])
    controller.table.follow("a1", "a report", 3)
    agent = joined(controller)
    explore(agent, (0.5, 0.5))
    act: Callable[[], object] = agent.ask
    if call == "/ask":
        other.ask()
    elif call == "/commits":
        agent.share([])
        agent.ask()
        act = agent.flush
    else:
        act = partial(agent.share, ["a"])
    lie = attacking(controller, attack, call)
    controller.lie = lambda request, answer: answer if request.method == "GET" else lie(request, answer)
    with pytest.raises(Forked):
        act()


def test_the_receipt_of_the_join_is_checked(tmp_path: Path) -> None:
    controller, state = FakeController(), tmp_path / "agent.json"
    controller.lie = attacking(controller, other_contents, "/agents")
    with pytest.raises(Forked, match="Somebody else"):
        joined(controller, state)
    sent = len(controller.requests)
    with pytest.raises(Forked):
        joined(controller, state)
    assert len(controller.requests) == sent


def test_another_key_of_the_ledger_is_refused(tmp_path: Path) -> None:
    controller, state = FakeController(), tmp_path / "agent.json"
    joined(controller, state).close()
    controller.log.key = Key(b"\x08" * 32)
    with pytest.raises(Forked, match="states another key"):
        resumed(controller, state).ask()


# --- rewritten and truncated history --------------------------------------------------------------------------


def test_a_rewritten_history_is_found(tmp_path: Path) -> None:
    controller, state = FakeController(), tmp_path / "agent.json"
    agent = joined(controller, state)
    explore(agent)
    row = controller.table.rows[2]
    controller.table.rows[2] = row._replace(salt=bytes(16))  # the least that can be rewritten
    controller.log._tree = type(controller.log.tree)()
    with pytest.raises(Forked, match="does not continue the one"):
        explore(agent)


def test_a_truncated_history_is_found() -> None:
    controller = FakeController()
    agent = joined(controller)
    backup = controller.fork()
    explore(agent)
    agent.flush()
    agent._client._transport = backup
    with pytest.raises(Forked, match=r"signed a ledger of \d+ rows and now has fewer"):
        explore(agent)


def test_a_truncated_history_that_grew_again_is_found() -> None:
    controller = FakeController()
    agent = joined(controller)
    backup = controller.fork()
    explore(agent)
    other = joined(backup, name="Other")
    explore(other, (0.5,) * 8)
    agent._client._transport = backup
    with pytest.raises(Forked, match="does not continue the one"):
        explore(agent)


# --- a controller of an earlier release -----------------------------------------------------------------------


def test_a_controller_without_receipts_is_served_as_before(tmp_path: Path) -> None:
    controller, state = FakeController(receipts=False), tmp_path / "agent.json"
    with joined(controller, state) as agent:
        explore(agent)
        agent.share(["a"])
        agent.ask()
        assert agent.checkpoint() == ""
    assert not [name for name in controller.requests if "cosign" in name or "proof" in name]
    controller.receipts = True  # the operator upgrades
    with resumed(controller, state) as agent:
        explore(agent)
        assert agent.checkpoint()
    controller.receipts = False
    with pytest.raises(Forked, match="states another key"):
        resumed(controller, state).ask()


def test_a_key_with_which_anybody_can_sign_is_not_kept() -> None:
    controller = FakeController()
    controller.log.key.public = encoded((1).to_bytes(32, "little"))  # the neutral element
    with pytest.raises(Forked, match="not a sound one"):
        joined(controller)


def test_a_controller_cannot_pass_for_an_earlier_release() -> None:
    """Ledgers of format 5 state their key, and whoever states one gives receipts."""
    with pytest.raises(Forked, match="states no key"):
        joined(FakeController(receipts=False, format=5))
    controller = FakeController()
    controller.lie = attacking(controller, no_receipt, "/agents")
    with pytest.raises(Forked, match="gave no receipt for join"):
        joined(controller)


def test_a_state_file_of_an_earlier_release_gets_receipts_but_no_cosignature(tmp_path: Path) -> None:
    controller, state = FakeController(), tmp_path / "agent.json"
    joined(controller, state).close()
    old = msgspec.json.decode(state.read_bytes())
    for name in ("key", "log_key", "checkpoint", "forked", "evidence"):
        del old[name]
    state.write_bytes(msgspec.json.encode(old))
    controller.cosignatures.clear()
    with resumed(controller, state) as agent:
        explore(agent)
        assert read_checkpoint(agent.checkpoint(), ID, controller.log.key.public) is not None
    assert not controller.cosignatures


# --- row 4: a split view --------------------------------------------------------------------------------------


def split() -> tuple[Agent, Agent, FakeController, FakeController]:
    """Two members of one collaboration, to whom the operator shows different histories from some row on."""
    controller = FakeController()
    first, second = joined(controller, name="First"), joined(controller, name="Second")
    explore(first), explore(second)
    other = controller.fork()
    second._client._transport = other
    controller.cosignatures, other.cosignatures = {}, {}  # the operator keeps the relays apart
    explore(first)
    explore(second, (0.1, 0.2, 0.3))
    return first, second, controller, other


def test_two_members_of_two_histories_notice_nothing_alone() -> None:
    first, second, *_ = split()
    explore(first), explore(second)
    first.close(), second.close()
    assert not first.evidence
    assert not second.evidence


def test_a_split_view_is_found_by_comparing() -> None:
    first, second, controller, _ = split()
    kept, shown = first.checkpoint(), second.checkpoint()
    for agent, note in ((first, shown), (second, kept)):
        with pytest.raises(Forked, match=r"two histories|does not prove") as caught:
            agent.compare(note)
        for evidence in caught.value.evidence:
            assert read_checkpoint(evidence, ID, controller.log.key.public) is not None
        with pytest.raises(Forked):
            agent.ask()


def test_a_checkpoint_that_another_call_keeps_meanwhile_is_compared_too() -> None:
    """As of an `AsyncAgent`: the operator answers each of two calls from another history."""
    controller = FakeController()
    first, second = joined(controller, name="First"), joined(controller, name="Second")
    explore(second), explore(first)
    other = controller.fork()
    second._client._transport = other
    explore(second, (0.1, 0.2, 0.3))
    receipts = first._protocol._receipts
    comparing = receipts.compare(second.checkpoint(), "another member")
    step = next(comparing)
    first._client._transport = other
    proof = first._do(step)  # that both continue what they have in common
    first._client._transport = controller
    explore(first, (0.5,))
    kept = receipts.kept
    step = comparing.send(proof)
    with pytest.raises(Forked, match=r"two histories|does not prove"):
        comparing.send(first._do(step))
    assert receipts.kept == kept


def test_a_split_view_is_found_over_the_relay() -> None:
    first, second, controller, other = split()
    controller.cosignatures, other.cosignatures = (shared := {}), shared
    first.close()  # it gives its checkpoint
    with pytest.raises(Forked, match=r"First|a1"):
        second.close()


def test_an_operator_that_does_not_prove_is_refused() -> None:
    """It can relay a checkpoint of another history, or none; it cannot prove that they are one."""
    first, second, controller, _ = split()
    note = second.checkpoint()
    explore(first, (0.5,))

    def silent(request: httpx.Request, answer: Any) -> Any:
        if request.url.path.endswith("/proof"):
            raise Refused(404, "not_found", "There is nothing at this address.")
        return answer

    controller.lie = silent
    with pytest.raises(Forked, match="does not prove"):
        first.compare(note)


@pytest.mark.parametrize("code", ["unknown_token", "not_permitted", "revoked"])
def test_a_proof_that_is_refused_for_another_reason_is_no_fork_and_no_agreement(code: str) -> None:
    controller = FakeController()
    first, second = joined(controller, name="First"), joined(controller, name="Second")
    explore(second)

    def refusing(request: httpx.Request, answer: Any) -> Any:
        if request.url.path.endswith("/proof"):
            raise Refused(403, code, "No.")
        return answer

    controller.lie = refusing
    with pytest.raises(Refused, match="No"):
        first.compare(second.checkpoint())
    controller.lie = lambda request, answer: answer
    first.compare(second.checkpoint())


def test_members_of_one_history_agree_and_keep_the_newer_checkpoint() -> None:
    controller = FakeController()
    first, second = joined(controller, name="First"), joined(controller, name="Second")
    explore(first)
    old = first.checkpoint()
    explore(second)
    assert second.compare(old) < len(controller.table.rows)
    assert first.compare(second.checkpoint()) == len(controller.table.rows)
    assert first.checkpoint().partition("\n\n")[0] == second.checkpoint().partition("\n\n")[0]
    explore(first)
    with pytest.raises(InputError, match="not a checkpoint of this"):
        first.compare("something else")
    with pytest.raises(InputError, match="not a checkpoint of this"):
        first.compare(FakeController(key=b"\x09" * 32).log.note())


# --- the relay ------------------------------------------------------------------------------------------------


class At(Agent):
    """An agent on a clock that the test sets."""

    now = 0.0
    _clock = staticmethod(lambda: At.now)


def test_checkpoints_are_cosigned_and_exchanged_once_a_minute_and_at_the_close() -> None:
    controller = FakeController()
    At.now = 1000.0
    options = {"transport": controller, "listen": False, "patience": 0.0}
    agent = At.join(URL, ID, "invite", "Shop", ["a", "b"], **options)
    for _ in range(10):
        explore(agent, (0.5,))
        At.now += 1.0
    assert controller.requests.count("PUT cosignature") == 1
    At.now += 60.0
    explore(agent, (0.5,))
    assert controller.requests.count("PUT cosignature") == 2
    agent.close()
    assert controller.requests.count("PUT cosignature") == 3
    assert controller.requests.count("GET cosignatures") == 3
    note, key = controller.cosignatures["a1"], agent._protocol.saved.private_key
    assert key is not None
    assert read_checkpoint(note, ID, controller.log.key.public) == controller.log.checkpoint()
    assert read_cosignature(note, ID, "a1", key.public) is not None


@pytest.mark.parametrize("status", [404, 405, 403, 409, 500, 503])
@pytest.mark.parametrize("path", ["/cosignature", "/cosignatures"])
def test_a_relay_that_does_not_work_stops_nobody(path: str, status: int) -> None:
    controller = FakeController()

    def broken(request: httpx.Request, answer: Any) -> Any:
        return httpx.Response(status) if request.url.path.endswith(path) else answer

    controller.lie = broken
    with joined(controller) as agent:
        explore(agent)
    assert len([name for name in controller.requests if name.endswith(path.strip("/"))]) <= 2


@pytest.mark.parametrize(
    "relayed",
    ["nonsense", "", FakeController(key=b"\x09" * 32).log.note()],
    ids=["no note", "empty", "another key"],
)
def test_what_the_ledgers_key_did_not_sign_is_ignored(relayed: str) -> None:
    controller = FakeController()
    controller.cosignatures["a7"] = relayed
    with joined(controller) as agent:
        explore(agent)
    assert not agent.evidence


def test_few_of_many_members_are_compared_at_a_time() -> None:
    controller = FakeController()
    others = [joined(controller, name=f"Member {number}") for number in range(20)]
    for number, other in enumerate(others):
        controller.cosignatures[f"a{number + 1}"] = other.checkpoint()
    agent = joined(controller)
    agent.ask()
    assert controller.requests.count("GET proof") <= 8


# --- the same for asyncio, and calls that overlap -------------------------------------------------------------


class AsyncFake(httpx.AsyncBaseTransport):
    """The fake controller for asyncio."""

    def __init__(self, controller: FakeController) -> None:
        self.controller = controller

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        return self.controller.handle_request(request)


def test_the_asyncio_client_checks_the_same(tmp_path: Path) -> None:
    controller, state = FakeController(), tmp_path / "agent.json"

    async def play() -> None:
        options: Any = {"transport": AsyncFake(controller), "listen": False, "patience": 0.0, "state": state}
        agent = await AsyncAgent.join(URL, ID, "invite", "Shop", ["a", "b"], **options)
        await agent.tell(await agent.ask(), 0.5)
        assert await agent.compare(agent.checkpoint()) == len(controller.table.rows)
        claim = await agent.ask()
        controller.lie = attacking(controller, another_rows_receipt, "/tell")
        with pytest.raises(Forked):
            await agent.tell(claim, 0.125)
        with pytest.raises(Forked):
            await agent.close()

    asyncio.run(play())
    assert read(state).forked


def test_answers_that_overtake_each_other_are_no_fork(tmp_path: Path) -> None:
    """Two calls name the same checkpoint, and the later answer arrives first."""
    controller, state = FakeController(), tmp_path / "agent.json"
    joined(controller, state).close()
    protocol = Protocol(read(state), saves=False)

    def answered(step: Any) -> Answer | None:
        if isinstance(step, Save):
            return None
        assert isinstance(step, Send)
        request = httpx.Request(step.method, URL + step.path, headers=dict(step.headers), content=step.body)
        response = controller.handle_request(request)
        return Answer(response.status_code, response.content)

    def finish(steps: Any, reply: Any = None) -> Any:
        try:
            while True:
                reply = answered(steps.send(reply))
        except StopIteration as end:
            return end.value

    finish(protocol.board())
    slow, quick = protocol.share(["a"]), protocol.share(["b"])
    first, second = next(slow), next(quick)
    reply = answered(first)
    finish(quick, answered(second))
    finish(slow, reply)
    assert controller.requests.count("GET proof") == 1
    finish(protocol.board())
