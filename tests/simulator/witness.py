"""The witness: it folds what is committed, and holds every answer of the servers against it at once.

It sees each commit as the disk takes it, so it knows the true ledger whatever the servers believe. An answer is
checked when a server sends it, even if the network then loses it.
"""

import re
from collections import Counter
from typing import Any

import msgspec
from tests.simulator.servers import OPERATOR, Handled, Watch
from tests.simulator.world import Violation, World

from partage.client.calls import refusal
from partage.ledger import events, messages
from partage.ledger.chain import GENESIS, Row, line, next_head, row_hash
from partage.ledger.checkpoints import Checkpoint, origin_of, read_checkpoint
from partage.ledger.merkle import Tree
from partage.ledger.receipts import HEADER, Receipt, check_receipt
from partage.ledger.settlement import own_view, settlement_of, settlement_view
from partage.ledger.state import State
from partage.ledger.views import agent_views, board_view

RECEIPTED = ("POST ask", "POST tell", "POST commits", "POST reveal")  # each of them writes a row
_TALLY = re.compile(rb',"tally":\{[^}]*\}')
_DAMAGED = re.compile(rb'\{"error":"[^"]* row \d[^"]*","code":"damaged_ledger"\}\n\Z')  # after lines that are right
PASSING = (429, 503)  # refusals that say nothing about the request


class _WithReceipt(msgspec.Struct):
    receipt: Receipt | None = None


def must(right: bool, what: str) -> None:
    """Fail with a sentence unless something is right."""
    if not right:
        raise Violation(what)


class Truth:
    """One collaboration as it was committed."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.events: list[Any] = []
        self.state: State | None = None
        self.head = GENESIS
        self.tree = Tree()
        self.boards: dict[bytes, int] = {}  # every board there ever was, and the last row with it
        self.told: dict[int, events.Tell] = {}
        self.requests: dict[tuple[str, str], events.AnyEvent] = {}  # by agent and id of the request
        self.joined: dict[str, events.Join] = {}
        self.used: Counter[str] = Counter()  # pulls of each agent
        self.horizons: dict[str, int] = {}  # the most pulls of each agent
        self.withdrawn: dict[tuple[str, int], int] = {}  # by agent and arm: the last row that withdrew it
        self.over: dict[str, int] = {}  # agents that left or were removed, and the row
        self.revoked: dict[str, int] = {}  # agents whose token ended, and the row
        self.arms: list[str] = []  # their names
        self.attached: dict[tuple[str, int], events.Attach] = {}  # past rewards, by agent and arm

    def add(self, row: Row) -> None:
        """Add a row that was committed."""
        event = events.decode(row.body)
        must(event.seq == row.seq == len(self.rows) + 1, f"Row {row.seq} came after row {len(self.rows)}.")
        self.head = next_head(self.head, row_hash(row.salt, row.body))
        must(self.head == row.head, f"Row {row.seq} does not have the head that follows from it.")
        if self.events:
            must(event.time >= self.events[-1].time, f"Time went back in row {row.seq}.")
        self.tree.append(row_hash(row.salt, row.body))
        self.rows.append(row)
        self.events.append(event)
        self._index(event)
        if self.state is None:
            assert isinstance(event, events.Create)
            self.state = State(event)
        else:
            self.state.apply(event)
        self.boards[msgspec.json.encode(board_view(self.state))] = row.seq

    def _index(self, event: Any) -> None:
        """Note what an event says, and check it without the fold that the service uses."""
        self._check_membership(event)
        self._check_pulls(event)
        if isinstance(event, events.Tell):
            must(event.pull not in self.told, f"Pull {event.pull} is in the ledger twice.")
            handed = self.events[event.pull - 1] if event.pull < event.seq else None
            must(isinstance(handed, events.Claim), f"Row {event.seq} reports pull {event.pull}, which is no claim.")
            same = (handed.agent, handed.arm) == (event.agent, event.arm)  # type: ignore[union-attr]
            must(same, f"Row {event.seq} reports another agent's pull, or another arm.")
            withdrawn = self.withdrawn.get((event.agent, event.arm), 0)
            must(withdrawn < event.pull, f"Row {event.seq} reports an arm that the agent withdrew.")
            self.told[event.pull] = event
        elif isinstance(event, events.Join):
            must(event.agent not in self.joined, f"The agent {event.agent} joined twice.")
            used = {one.invite for one in self.joined.values()}
            must(event.invite not in used, f"Row {event.seq} uses an invite again.")
            self.joined[event.agent] = event
        request = getattr(event, "request", None)
        if request is not None:
            key = (event.agent, request)
            must(key not in self.requests, f"The request of row {event.seq} is in the ledger twice.")
            self.requests[key] = event

    def _check_membership(self, event: Any) -> None:
        """Nothing is written in the name of an agent that is not there; withdrawn arms are noted."""
        if isinstance(event, events.Create):
            self.arms = list(event.arms)
        if isinstance(event, events.AddArm):
            must(event.name not in self.arms, f"Row {event.seq} adds an arm that is there.")
            self.arms.append(event.name)
            must(len(self.arms) <= (self.events[0].most_arms or 0), f"Row {event.seq} adds an arm too many.")
        arms = range(len(self.arms))
        if isinstance(event, events.Create | events.Join):
            return
        agent = getattr(event, "agent", None)
        if agent is not None:
            must(agent in self.joined, f"Row {event.seq} names an agent that never joined.")
        if isinstance(event, events.Claim | events.Tell | events.Commit | events.Consent | events.Attach):
            must(event.agent not in self.over, f"Row {event.seq} is of an agent that is no longer a member.")
        if isinstance(event, events.Revoke):
            self.revoked[event.agent] = event.seq
        shares: tuple[int, ...] | None = None
        if isinstance(event, events.Consent):
            shares = event.shares
        elif isinstance(event, events.SetAside | events.Leave | events.Remove):
            shares = ()
        if isinstance(event, events.Leave | events.Remove):
            self.over[event.agent] = event.seq
        if shares is not None:
            self.withdrawn |= {(event.agent, arm): event.seq for arm in arms if arm not in shares}

    def _check_pulls(self, event: Any) -> None:
        """No agent makes more pulls than its horizon, and no claim lapses early."""
        if isinstance(event, events.Attach):
            key = (event.agent, event.arm)
            must(key not in self.attached, f"Row {event.seq} attaches past rewards a second time.")
            must(not self.used[event.agent], f"Row {event.seq} attaches past rewards of an agent that has pulled.")
            must(len(event.rewards) <= (self.events[0].histories or 0), f"Row {event.seq} attaches too many rewards.")
            self.attached[key] = event
        if isinstance(event, events.Join):
            self.horizons[event.agent] = event.horizon if isinstance(event.horizon, int) else self.events[0].horizon
        elif isinstance(event, events.Claim):
            self.used[event.agent] += 1
        elif isinstance(event, events.Commit):
            self.used[event.agent] += sum(run.pulls for run in event.runs) + (event.unnamed or 0)
        elif isinstance(event, events.Lapse):
            handed = self.events[event.pull - 1]
            waited = event.time - handed.time
            must(waited >= 1000 * self.events[0].claim_seconds, f"Pull {event.pull} lapsed after {waited} ms.")
        agent = getattr(event, "agent", "")
        must(
            self.used[agent] <= self.horizons.get(agent, 0),
            f"{agent} made more pulls than its horizon in row {event.seq}.",
        )

    def lines(self, reader: str | None) -> bytes:
        """Return the ledger as someone may read it."""
        pairs = zip(self.rows, self.events, strict=True)
        return b"".join(line(row, event, reader) for row, event in pairs)


class Witness(Watch):
    """All collaborations as they were committed, and what the servers said about them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.truths: dict[str, Truth] = {}
        self.owners: dict[str, tuple[str, str]] = {}  # tokens that were given to members
        self.joins: dict[tuple[str, str], str] = {}  # by code and request: the agent
        self.outcomes: Counter[str] = Counter()
        self.logged = ""  # the last error that a server logged
        self.checkpoints: list[tuple[str, Checkpoint]] = []  # all that were ever signed and shown

    def committed(self, collaboration: str, rows: Any) -> None:
        """Take what the disk took."""
        truth = self.truths.setdefault(collaboration, Truth())
        try:
            for row in rows:
                truth.add(row)
        except Exception as error:  # here: the server would take it for an error of its own
            self.world.fail(error)
        if rows:
            self.world.note("committed", collaboration, rows[0].seq, rows[-1].head)

    # requests and answers

    def begins(self, handled: Handled) -> None:
        handled.floor = {id: len(truth.rows) for id, truth in self.truths.items()}

    def answered(self, handled: Handled) -> None:
        request, answer = handled.request, handled.answer
        parts = request.path.partition("?")[0].split("/")  # /v1/collaborations/ID/…
        id = parts[3] if len(parts) > 3 else ""
        what = f"{request.method} {'/'.join(parts[4:]) or ('collaboration' if id else 'collaborations')}"
        if len(parts) > 6:  # …/agents/AGENT/what
            what = f"{request.method} {parts[-1]}"
        self.world.note(handled.process, what, answer.status, answer.body)
        code = "" if answer.status < 400 else f" {refusal(answer.status, answer.body).code}"
        self.outcomes[f"{what} {answer.status}{code}"] += 1
        must(answer.status != 500, f"{what} failed: {self.logged}")
        must(b"The controller is busy" not in answer.body, f"{what} lost too many races in a row.")
        sound = self.world.damaged or b'"code":"damaged_ledger"' not in answer.body
        must(sound, f"{what} says that a ledger is damaged which is not.")
        if answer.status in PASSING:
            return
        if answer.status >= 400:
            self._refused(what, id, handled)
            return
        body = msgspec.json.decode(request.body) if request.body else {}
        if handled.token in self.owners:
            owner, agent = self.owners[handled.token]
            ended = self.truths[owner].revoked.get(agent, len(self.truths[owner].rows) + 1)
            must(ended > handled.floor[owner], f"{what} was answered with a token that had ended.")
        if id in self.truths:
            self._check_receipt(what, id, handled)
        check = CHECKS.get(what)
        if check is not None and (what == "POST collaborations" or id in self.truths):
            check(self, handled, self.truths.get(id), body, answer)

    def streamed(self, collaboration: str, process: int, body: bytes) -> None:
        self.world.note(process, "streams", body)
        self.outcomes["board streamed"] += 1
        truth = self.truths[collaboration]
        must(body in truth.boards, "A stream sent a board that is not on disk.")

    def agent_of(self, handled: Handled) -> str | None:
        """Return the agent whose token a request has; None is the operator."""
        if handled.token == OPERATOR:
            return None
        must(handled.token in self.owners, "A request with an unknown token was answered.")
        return self.owners[handled.token][1]

    def _check_receipt(self, what: str, id: str, handled: Handled) -> None:
        """A receipt shows the true row, and a signed checkpoint of the true tree that continues the one named."""
        answer, truth = handled.answer, self.truths[id]
        receipt = None
        if answer.body[:1] == b"{" and answer.body.find(b'"receipt":{') > 0:
            receipt = msgspec.json.decode(answer.body, type=_WithReceipt).receipt
        if receipt is None:
            must(what not in RECEIPTED or not answer.body, f"{what} was answered without a receipt.")
            return
        size = int(handled.request.headers.get(HEADER, "0"))
        seen = Checkpoint(origin_of(id), size, truth.tree.root(size)) if size else None
        found = check_receipt(receipt, id, str(truth.events[0].key), seen)
        self.check_checkpoint(truth, found.checkpoint)
        row = truth.rows[found.event.seq - 1]
        same = (bytes(receipt.row), receipt.salt) == (row.body, row.salt.hex())
        must(same, "A receipt shows a row that is not in the ledger.")
        agent = getattr(found.event, "agent", None)
        if what != "POST agents":
            must(agent in (None, self.agent_of(handled)), "A receipt shows another agent's row.")
        self.outcomes["receipt"] += 1
        self.checkpoints.append((id, found.checkpoint))

    def check_checkpoint(self, truth: Truth, found: Checkpoint) -> None:
        """A checkpoint covers only rows that are on disk, and has the root of their tree."""
        must(found.size <= len(truth.rows), "A checkpoint covers rows that are not on disk.")
        must(found.root == truth.tree.root(found.size), "A checkpoint is of another tree than the ledger's.")

    def checkpoint(self, handled: Handled, truth: Truth, body: Any, answer: Any) -> None:
        id = handled.request.path.split("/")[3]
        found = read_checkpoint(answer.body.decode(), id, str(truth.events[0].key))
        must(found is not None, "A checkpoint is not signed by the ledger's key.")
        assert found is not None
        self.check_checkpoint(truth, found)
        must(found.size >= handled.floor[id], "A checkpoint was served that lacks rows on disk.")
        self.checkpoints.append((id, found))

    # one check per call

    def create(self, handled: Handled, _: Any, body: Any, answer: Any) -> None:
        found = msgspec.json.decode(answer.body, type=messages.Created)
        must(found.id in self.truths, "A collaboration was acknowledged before it was on disk.")

    def join(self, handled: Handled, truth: Truth, body: Any, answer: Any) -> None:
        found = msgspec.json.decode(answer.body, type=messages.Joined)
        event = truth.joined.get(found.agent)
        must(event is not None, "A join was acknowledged before it was on disk.")
        assert event is not None
        arms = truth.arms
        same = event.name == body["name"] and {arms[arm] for arm in event.shares} == set(body["shares"])
        must(same, "A join was acknowledged that is another one in the ledger.")
        before = self.owners.setdefault(found.token, (handled.request.path.split("/")[3], found.agent))
        must(before[1] == found.agent, "A token belongs to two agents.")
        if body.get("request"):
            agent = self.joins.setdefault((handled.token, body["request"]), found.agent)
            must(agent == found.agent, "A repeated join made two agents.")

    def ask(self, handled: Handled, truth: Truth, body: Any, answer: Any) -> None:
        if answer.status == 204:
            return
        found, agent = msgspec.json.decode(answer.body, type=messages.Pull), self.agent_of(handled)
        must(0 < found.pull <= len(truth.rows), "A pull was handed out before it was on disk.")
        event, arms = truth.events[found.pull - 1], truth.arms
        if found.share:
            same = isinstance(event, events.Claim) and (event.agent, arms[event.arm]) == (agent, found.arm)
        else:
            same = isinstance(event, events.Commit) and event.agent == agent and arms[event.runs[0].arm] == found.arm
        must(same, f"Pull {found.pull} was handed out, and is another one in the ledger.")
        if body.get("request"):
            first = truth.requests.get((str(agent), body["request"]))
            must(first is None or first.seq == found.pull, "A repeated request was answered with another pull.")

    def tell(self, handled: Handled, truth: Truth, body: Any, answer: Any) -> None:
        found, event = msgspec.json.decode(answer.body, type=messages.Told), truth.told.get(body["pull"])
        must(event is not None, "A reward was acknowledged before it was on disk.")
        assert event is not None
        same = (event.agent, event.reward) == (self.agent_of(handled), body["reward"])
        must(same, "A reward was acknowledged that is another one in the ledger.")
        where = (event.version, truth.rows[event.seq - 1].head)
        must(
            (found.version, found.head) == where, "A reward was acknowledged with the version or head of another row."
        )

    def commits(self, handled: Handled, truth: Truth, body: Any, answer: Any) -> None:
        found, agent = msgspec.json.decode(answer.body, type=messages.Told), self.agent_of(handled)
        event = truth.requests.get((str(agent), body["request"]))
        must(isinstance(event, events.Commit), "A report of commits was acknowledged before it was on disk.")
        assert isinstance(event, events.Commit)
        must(found.head == truth.rows[event.seq - 1].head, "Commits were acknowledged with the head of another row.")

    def consent(self, handled: Handled, truth: Truth, body: Any, answer: Any) -> None:
        agent, arms = self.agent_of(handled), truth.arms
        if body.get("request"):
            event = truth.requests.get((str(agent), body["request"]))
            must(isinstance(event, events.Consent), "A consent was acknowledged before it was on disk.")
            assert isinstance(event, events.Consent)
            if {arms[arm] for arm in event.shares} != set(body["shares"]):
                raise Violation("A consent was acknowledged that is another one in the ledger.")
        found = msgspec.json.decode(answer.body, type=messages.AgentView)
        must(found.agent == agent, "An agent was shown another agent's entry.")

    def history(self, handled: Handled, truth: Truth, body: Any, answer: Any) -> None:
        found = msgspec.json.decode(answer.body, type=messages.Told)
        event = truth.attached.get((str(self.agent_of(handled)), truth.arms.index(body["arm"])))
        must(event is not None, "Past rewards were acknowledged before they were on disk.")
        assert event is not None
        must(list(event.rewards) == body["rewards"], "Past rewards were acknowledged that are others in the ledger.")
        same = (found.version, found.head) == (event.version, truth.rows[event.seq - 1].head)
        must(same, "Past rewards were acknowledged with the version or head of another row.")

    def add_arm(self, handled: Handled, truth: Truth, body: Any, answer: Any) -> None:
        must(body["name"] in truth.arms, "An arm was acknowledged before it was on disk.")

    def leave(self, handled: Handled, truth: Truth, body: Any, answer: Any) -> None:
        agent = self.agent_of(handled)
        left, removed = (
            sum(isinstance(event, kind) and event.agent == agent for event in truth.events)
            for kind in (events.Leave, events.Remove)
        )
        must(left + removed > 0, "A leave was acknowledged before it was on disk.")  # who was removed has left
        must(left <= 1, "A leave is in the ledger twice.")

    def set_aside(self, handled: Handled, truth: Truth, body: Any, answer: Any) -> None:
        agent = handled.request.path.split("/")[5]
        found = [event.seq for event in truth.events if isinstance(event, events.SetAside) and event.agent == agent]
        must(len(found) == 1, "A set-aside was acknowledged before it was on disk, or is in the ledger twice.")

    def end(self, handled: Handled, truth: Truth, body: Any, answer: Any) -> None:
        agent = handled.request.path.split("/")[5]
        must(
            agent in truth.revoked or agent in truth.over,
            "A removal or a revocation was acknowledged before it was on disk.",
        )

    def close(self, handled: Handled, truth: Truth, body: Any, answer: Any) -> None:
        must(
            truth.state is not None and truth.state.closed is not None,
            "A close was acknowledged before it was on disk.",
        )
        self.settlement(handled, truth, body, answer)

    def board(self, handled: Handled, truth: Truth, body: Any, answer: Any) -> None:
        if answer.status == 304:
            return
        found = truth.boards.get(answer.body)
        must(found is not None, "A board was served that never was on disk.")
        assert found is not None
        floor = handled.floor.get(handled.request.path.split("/")[3], 0)
        must(found >= floor, f"A board was served without row {floor}, which was on disk before.")

    def settlement(self, handled: Handled, truth: Truth, body: Any, answer: Any) -> None:
        found = msgspec.json.decode(answer.body, type=messages.SettlementView)
        agent = self.agent_of(handled)
        check_money(found, whole=agent is None)
        if self._unchanged(handled, truth):
            assert truth.state is not None
            expected = settlement_view(truth.state, settlement_of(truth.state))
            expected = expected if agent is None else own_view(expected, agent)
            must(agent is None or set(found.salts) <= {agent}, "A member was shown another agent's salt.")
            expected.salts = found.salts
            must(found == expected, "A settlement was served that does not follow from the ledger.")

    def ledger(self, handled: Handled, truth: Truth, body: Any, answer: Any) -> None:
        agent = self.agent_of(handled)
        lines = truth.lines(agent)
        for text in answer.body.splitlines() if agent else ():
            hidden = b'"kind":"commit"' not in text or b'"agent":"%b"' % agent.encode() in text
            must(hidden, "A member was shown another agent's commits.")
        served = _DAMAGED.sub(b"", _TALLY.sub(b"", answer.body))  # salts that only their owner sees, beside the row
        for shown in _TALLY.findall(answer.body) if agent else ():
            must(shown.count(b":") == 2 and agent.encode() in shown, "A member was shown another agent's salt.")
        must(lines.startswith(served), "A ledger was served that is not the one on disk.")
        if served.count(b"\n") < answer.body.count(b"\n"):  # the last line says where it is damaged
            return
        floor = handled.floor.get(handled.request.path.split("/")[3], 0)
        must(answer.body.count(b"\n") >= floor, f"A ledger was served without row {floor}, which was on disk before.")

    def me(self, handled: Handled, truth: Truth, body: Any, answer: Any) -> None:
        found, agent = msgspec.json.decode(answer.body, type=messages.AgentView), self.agent_of(handled)
        must(found.agent == agent, "An agent was shown another agent's entry.")
        must(0 <= found.horizon_left <= truth.horizons[agent], "An agent has more pulls than its horizon.")
        if self._unchanged(handled, truth):
            assert truth.state is not None
            expected = next(view for view in agent_views(truth.state, 0) if view.agent == agent)
            expected.claim_in = found.claim_in  # it depends on the server's clock
            must(found == expected, "An agent's entry does not follow from the ledger.")

    def _unchanged(self, handled: Handled, truth: Truth) -> bool:
        """Whether nothing was written since a request began: then its answer can only be about this state."""
        return handled.floor.get(handled.request.path.split("/")[3]) == len(truth.rows)

    # refusals, which must have their reason in the ledger

    def _refused(self, what: str, id: str, handled: Handled) -> None:
        found = refusal(handled.answer.status, handled.answer.body)
        truth = self.truths.get(id)
        code = found.code
        if handled.token in self.owners:
            must(code != "unknown_token", "A token that was given to a member is unknown.")
        if truth is None or truth.state is None:
            return
        must(code != "no_such_collaboration", "A collaboration on disk is said not to exist.")
        state, body = truth.state, _body(handled)
        agent = self.owners.get(handled.token, ("", ""))[1]
        if handled.token == OPERATOR and "/agents/" in handled.request.path:  # whom the operator's request is about
            agent = handled.request.path.split("/")[5]
        if code == "closed":
            must(state.closed is not None, "A collaboration is said to be closed that is open.")
        elif code == "left":
            must(state.members[agent].left, "An agent is said to have left that has not.")
        elif code == "token_ended":
            must(agent in truth.revoked, "A token is said to have ended that has not.")
        elif code == "removed":
            must(agent in truth.over, "An agent is said to be removed that is not.")
        elif code == "told_differently":
            told = truth.told.get(body.get("pull", 0))
            must(told is not None and told.reward != body.get("reward"), "A reward is refused as another one.")
        elif code == "claim_cancelled":
            gone = body["pull"] in state.cancelled or state.members[agent].aside
            must(bool(gone), "A claim is said to be cancelled that is not.")
        elif code == "other_agents_pull":
            must(truth.events[body["pull"] - 1].agent != agent, "An agent's own pull is said to be another's.")
        elif code == "no_such_pull":
            pull = body.get("pull", 0)
            known = 0 < pull <= len(truth.rows) and isinstance(truth.events[pull - 1], events.Claim | events.Commit)
            must(not known, "A pull on disk is said not to exist.")
        elif code == "horizon_used":
            must(state.members[agent].used >= truth.horizons[agent], "A horizon is said to be used that is not.")
        elif code == "invite_used" and body.get("request"):
            must((handled.token, body["request"]) not in self.joins, "A repeated join is refused.")


def check_money(found: messages.SettlementView, whole: bool) -> None:
    """Check that money sums to zero and stays within its bounds."""
    must(found.charge - found.compensation == found.profit, "Money does not sum to zero.")
    if whole:
        nets = sum(row.net for row in found.rows)
        must(nets + found.profit == 0, "The members' nets and the profit do not sum to zero.")
        must(found.charge == sum(row.charge for row in found.rows), "The charges do not sum to their total.")
    for row in found.rows:
        must(row.net == row.compensation - row.charge, "A net is not the compensation less the charge.")
        must(min(row.compensation, row.charge) >= 0, "A compensation or a charge is negative.")
        if found.prepaid:
            must(row.charge <= found.prepaid, "A member pays more than it prepaid.")
            must(row.net >= -found.prepaid, "A member loses more than it prepaid.")
    if found.underwriting is not None:
        must(found.profit >= -found.underwriting, "The operator loses more than was underwritten.")
    if found.settlement == "dues":
        must(found.profit >= 0, "The operator loses with dues.")
    if found.settlement == "none":
        must(found.charge == found.compensation == 0, "Money moves without a settlement.")


def _body(handled: Handled) -> Any:
    try:
        return msgspec.json.decode(handled.request.body or b"{}")
    except msgspec.DecodeError:
        return {}


CHECKS: dict[str, Any] = {
    "POST collaborations": Witness.create,
    "POST agents": Witness.join,
    "POST ask": Witness.ask,
    "POST tell": Witness.tell,
    "POST commits": Witness.commits,
    "POST history": Witness.history,
    "POST arms": Witness.add_arm,
    "PATCH agents/me": Witness.consent,
    "DELETE agents/me": Witness.leave,
    "POST set-aside": Witness.set_aside,
    "POST close": Witness.close,
    "POST remove": Witness.end,
    "DELETE token": Witness.end,
    "GET board": Witness.board,
    "GET checkpoint": Witness.checkpoint,
    "GET settlement": Witness.settlement,
    "GET ledger": Witness.ledger,
    "GET agents/me": Witness.me,
}
