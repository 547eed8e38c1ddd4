"""One seed, one history: the configuration that a seed decides, what happens, and what must hold at the end."""

import asyncio
import logging
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import msgspec
from tests.simulator.disk import Disk, DiskFaults
from tests.simulator.members import Habits, Liar, Member
from tests.simulator.reference import Turns
from tests.simulator.servers import OPERATOR, Network, NetworkFaults, Server
from tests.simulator.witness import Truth, Witness, must
from tests.simulator.world import Machine, World
from tests.support.faulty_store import all_of

from partage.client.calls import refusal
from partage.client.effects import Answer, Send
from partage.ledger.chain import row_hash
from partage.ledger.events import Commit, Tell
from partage.ledger.merkle import Tree
from partage.ledger.state import State
from partage.ledger.verify import verify
from partage.rules import live_rules
from partage.service.runtime.book import Book

SETTLEMENTS = ("none", "pool", "pool", "dues", "equal-share-expected", "paper")


@dataclass
class Plan:
    """What a seed decides."""

    config: dict[str, Any]
    members: int
    liars: int
    steps: int
    several: bool
    servers: int
    locks: bool
    snapshot_every: int
    disk: DiskFaults
    network: NetworkFaults
    habits: list[Habits] = field(default_factory=list)
    crash: float = 0.0  # of servers, per second
    clock: float = 0.0  # jumps, per second
    set_aside: bool = False
    end: str = ""  # a membership: "remove", or its token: "revoke"
    close: bool = False  # before the members are done
    corrupt: float = 0.0  # after this many seconds something that is stored is damaged; 0: never
    turns: list[list[int]] = field(default_factory=list)  # what each agent shares, if they play in turns


def plan_of(world: World) -> Plan:
    """Return what the seed of a world decides."""
    random = world.random
    pick, chance = random.choice, random.random

    def rate(most: float, how_often: float = 0.5) -> float:
        return most * chance() if chance() < how_often else 0.0

    arms, members = random.randint(2, 4), random.randint(2, 5)
    rule = pick([*live_rules()])
    config: dict[str, Any] = {
        "name": "Trial",
        "arms": [f"arm {place}" for place in range(arms)],
        "horizon": random.randint(15, 40),
        "rule": rule,
        "claim_seconds": pick((0.5, 1.0, 2.0, 5.0)),
        "claim_interval": pick((0.0, 0.0, 0.0, 0.2)),
        "invites": members + 2,
        "request": "create",
        "signed": chance() < 0.3,
        **settlement_of_plan(random, rule),
    }
    turns = [random.sample(range(arms), random.randint(0, arms)) for _ in range(members)]
    # Where nobody shares some arm, the reference plays such arms too, and the controller never learns of them.
    turns = turns if chance() < 0.1 and len({arm for shares in turns for arm in shares}) == arms else []
    if turns:  # no claim lapses
        config |= {"claim_seconds": 60.0, "claim_interval": 0.0, "signed": False}
    harsh = chance() < 0.85 and not turns  # the others play without faults
    several = chance() < 0.5
    scale = pick((0.3, 1.0, 1.0, 2.0)) if harsh else 0.0
    disk = DiskFaults(
        read=scale * rate(0.02),
        refused=scale * rate(0.05),
        unknown=scale * rate(0.05),
        crash=scale * rate(0.05),
        full=scale * rate(0.01, 0.3),
        lost=scale * rate(0.05),
        locked=scale * rate(0.01, 0.3),
        silence=scale * rate(0.3),
    )
    network = NetworkFaults(*(scale * rate(0.08) for _ in range(6)))
    habits = [
        Habits(
            pause=pick((0.1, 0.5, 2.0)),
            lag=scale * rate(0.2),
            crash=scale * rate(0.03),
            consent=rate(0.1),
            leave=rate(0.02, 0.3),
            listens=chance() < 0.5,
            patience=pick((2.0, 10.0)),
            horizon=random.randint(2, config["horizon"]) if chance() < 0.2 else None,
        )
        for _ in range(members)
    ]
    # Drawn apart, so that all other seeds play as before.
    later = Random(f"later {world.seed}")
    if not turns and later.random() < 0.3 and rule != "network-glr" and config["settlement"] != "paper":
        config["histories"] = later.choice((1, 5))
        habits = [replace(one, past=config["histories"] if later.random() < 0.7 else 0) for one in habits]
    if not turns and later.random() < 0.3:
        config["most_arms"] = arms + later.choice((1, 2))
    return Plan(
        config=config,
        members=members,
        liars=random.randint(0, 2),
        steps=random.randint(10, 40),
        several=several,
        servers=random.randint(1, 3) if several else 1,
        locks=chance() < 0.7,
        snapshot_every=pick((5, 20, 50, 1000)),
        disk=disk,
        network=network,
        habits=habits,
        crash=scale * rate(0.2),
        clock=scale * rate(0.5),
        set_aside=chance() < 0.35,
        close=chance() < 0.2,
        end=pick(("remove", "revoke", "", "", "", "", "", "")),
        turns=turns,
        corrupt=random.uniform(2.0, 15.0) if harsh and chance() < 0.25 else 0.0,
    )


def settlement_of_plan(random: Any, rule: str) -> dict[str, Any]:
    """Return a settlement that fits the rule, with its sureties."""
    fits = live_rules()[rule]().settlements
    name = random.choice([one for one in SETTLEMENTS if one in fits])
    if name == "none":
        return {"settlement": name}
    if name == "dues":
        return {"settlement": name, "prepaid": random.choice((0.5, 5.0))}
    if name == "pool":
        underwriting, fee = random.choice((0.0, 0.3, 10.0)), random.choice((0.0, 0.1))
        return {"settlement": name, "prepaid": random.choice((0.5, 5.0)), "underwriting": underwriting, "fee": fee}
    return {"settlement": name, "underwriting": random.choice((0.0, 1.0))}


class Line(msgspec.Struct):
    """A line of the whole ledger."""

    row: msgspec.Raw
    salt: str


class Errors(logging.Handler):
    """Lets the witness know where a server failed, for its message."""

    def __init__(self, witness: Witness) -> None:
        super().__init__(logging.ERROR)
        self.witness = witness

    def emit(self, record: logging.LogRecord) -> None:
        found = record.__dict__
        self.witness.logged = f"{record.getMessage()} {found.get('error', '')} {found.get('where', '')}"


class Trial:
    """A simulation of one seed."""

    def __init__(self, seed: int, tell: Any = None) -> None:
        self.world = World(seed, tell)
        self.plan = plan_of(self.world)
        self.witness = Witness(self.world)
        self.id = self.damage = ""

    def run(self) -> "Trial":
        """Play it; a failure is a `Violation` or an error of the service."""
        log = logging.getLogger("partage")
        before, log.propagate, log.handlers = log.handlers, False, [Errors(self.witness)]
        try:
            self.world.run(self.play())
        finally:
            log.propagate, log.handlers = True, before
        return self

    async def play(self) -> None:
        """Play the whole history."""
        world, plan = self.world, self.plan
        self.disk = Disk(world, plan.several, plan.locks, plan.disk)
        self.disk.committed = self.witness.committed
        self.servers = [Server(world, self.disk, number, plan.snapshot_every) for number in range(plan.servers)]
        self.network = Network(world, self.servers, plan.network, self.witness)
        self.members: list[Member] = []
        self.running = [asyncio.ensure_future(server.run()) for server in self.servers]
        self.running.append(asyncio.ensure_future(self.trouble()))
        await self.create()
        if plan.turns:
            await Turns(self.network, self.id, plan.config, plan.turns).play(self.codes)
            await self.finish()
            return
        self.members = [
            Member(world, self.network, self.witness, f"Member {place}", habits)
            for place, habits in enumerate(plan.habits)
        ]
        liars = [Liar(world, self.network, self.witness, f"Liar {place}") for place in range(plan.liars)]
        arms, codes = plan.config["arms"], iter(self.codes)
        lives = [one.live(self.id, next(codes), self.some(arms), arms, plan.steps) for one in [*self.members, *liars]]
        everything = self.together([*lives, self.operate()])
        await (self.corrupted(everything) if plan.corrupt else everything)
        if not plan.corrupt or self.damage == "snapshot":
            await self.finish()

    async def together(self, lives: list[Any]) -> None:
        """Live at the same time; the first failure ends it."""
        tasks = [asyncio.ensure_future(life) for life in lives]
        try:
            done, _ = await asyncio.wait(tasks, timeout=120.0, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in tasks:  # those whom the faults kept from coming to an end
                task.cancel()
        for task in done:
            task.result()
        await asyncio.wait(tasks)

    async def corrupted(self, everything: Any) -> None:
        """Damage what is stored, and check that it is refused from then on, and never served."""
        lives = asyncio.ensure_future(everything)
        await asyncio.wait([lives], timeout=self.plan.corrupt)
        self.damage = self.disk.corrupt(self.id)
        self.world.counts[f"fault: corrupted {self.damage}"] += 1
        if self.damage == "snapshot":  # which is only a cache
            await lives
            return
        await asyncio.wait([lives], timeout=10.0)  # meanwhile the witness checks what is served
        lives.cancel()
        await asyncio.wait([lives])
        if not lives.cancelled():
            lives.result()
        self.world.calm = True
        for server in self.servers:
            server.crash()
        await asyncio.sleep(20.0)
        for path in ("board", "ledger", "settlement", "agents"):
            answer = await self.network.send(self.operators("GET", f"/{self.id}/{path}"))
            if isinstance(answer, Answer) and answer.status >= 400:
                code = refusal(answer.status, answer.body).code
                must(code == "damaged_ledger", f"A damaged ledger is refused as {code}.")
                must(b" row" in answer.body, "The refusal of a damaged ledger does not name the place.")
            else:  # what a snapshot says of it is right, and the witness has checked that
                complete = isinstance(answer, Answer) and path == "ledger"
                must(not complete, f"A damaged ledger ({self.damage}) is served.")
        for task in self.running:
            task.cancel()

    def some(self, arms: list[str]) -> list[str]:
        """Return some of the arms, most of the time more than one."""
        return self.world.random.sample(arms, self.world.random.choice([0, *range(1, len(arms) + 1), len(arms)]))

    # the operator

    async def call(self, method: str, path: str, body: Any = None, attempts: int = 200) -> Answer:
        """Make a request of the operator until it is answered."""
        request = self.operators(method, path, body)
        for _ in range(attempts):
            answer = await self.network.send(request)
            if isinstance(answer, Answer) and answer.status not in (429, 503):
                return answer
            await asyncio.sleep(0.1 + self.world.delay(1.0))
        must(False, f"{method} {path} was not answered in {attempts} attempts.")
        raise AssertionError

    def operators(self, method: str, path: str, body: Any = None) -> Send:
        """Return a request of the operator."""
        headers = {"Authorization": f"Bearer {OPERATOR}"}
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = msgspec.json.encode(body)
        return Send(method, f"/v1/collaborations{path}", headers, content)

    async def create(self) -> None:
        """Create the collaboration."""
        answer = await self.call("POST", "", self.plan.config)
        must(answer.status == 201, f"The collaboration was not created: {answer.body!r}")
        created = msgspec.json.decode(answer.body)
        self.id, self.codes = created["id"], created["invites"]
        must(len(self.witness.truths) == 1, "One request created two collaborations.")

    async def operate(self) -> None:
        """Look after the collaboration while it runs."""
        random, plan = self.world.random, self.plan
        for _ in range(random.randrange(4)):
            await asyncio.sleep(random.uniform(0.5, 5.0))
            path = random.choice(
                ("", f"/{self.id}", f"/{self.id}/agents", f"/{self.id}/ledger", f"/{self.id}/settlement")
            )
            await self.call("GET", path)
        for place in range(len(plan.config["arms"]), plan.config.get("most_arms", 0)):
            await asyncio.sleep(random.uniform(0.1, 2.0))
            answer = await self.call("POST", f"/{self.id}/arms", {"name": f"arm {place}"})
            if answer.status == 200:
                plan.config["arms"].append(f"arm {place}")  # members share it from now on
        if plan.set_aside and self.truth.joined:
            agent = random.choice(list(self.truth.joined))
            await self.call("POST", f"/{self.id}/agents/{agent}/set-aside", {"reason": "It lies."})
        if plan.end and self.truth.joined:
            agent = random.choice(list(self.truth.joined))
            path = f"/{self.id}/agents/{agent}"
            if plan.end == "remove":
                await self.call("POST", f"{path}/remove", {"reason": "It is not welcome."})
            else:
                await self.call("DELETE", f"{path}/token")
        if plan.close:
            await asyncio.sleep(random.uniform(0.5, 10.0))
            await self.call("POST", f"/{self.id}/close")

    @property
    def truth(self) -> Truth:
        """The collaboration as it was committed."""
        return self.witness.truths[self.id]

    # trouble

    async def trouble(self) -> None:
        """Let servers crash and clocks jump."""
        world, plan = self.world, self.plan
        while True:
            await asyncio.sleep(0.5)
            for server in self.servers:
                if world.fault("server crashes", plan.crash / 2):
                    server.crash()
                elif world.fault("server restarts in order", plan.crash / 8):
                    await server.stop()
            for machine in [self.disk.machine] + [one.machine for one in (*self.servers, *self.members)]:
                if world.fault("clock jumps", plan.clock / 2):
                    machine.skew += world.random.choice((300, 3_000, 60_000, 10**7, -50, -1_000, -60_000, -(10**7)))

    # the end

    async def finish(self) -> None:
        """Let everything settle without faults, and check what must hold."""
        world = self.world
        world.calm = True
        world.note("calm")
        await asyncio.sleep(20.0)  # requests that were late arrived; servers are up; claims lapsed
        must(all(server.up for server in self.servers), "A server does not start.")
        for member in self.members:
            await member.finish()
        await self.call("GET", f"/{self.id}/board")  # claims lapse while a server has the collaboration in memory
        await asyncio.sleep(10.0)
        await self.check_claims()
        closed = await self.call("POST", f"/{self.id}/close")
        must(closed.status == 200, f"The close was refused: {closed.body!r}")
        again = await self.call("POST", f"/{self.id}/close")
        must(again.body == closed.body, "Closing again gave another settlement.")
        whole = await self.check_ledger()
        self.check_disk()
        self.check_checkpoints(whole)
        for member in self.members:
            self.check_member(member)
        for task in self.running:
            task.cancel()
        for server in self.servers:
            await server.stop()

    async def check_claims(self) -> None:
        """No claim is open any longer than it may be."""
        state = self.truth.state
        assert state is not None
        if state.closed is None:
            must(not state.claims, f"Claims {list(state.claims)} have not lapsed.")

    async def check_ledger(self) -> bytes:
        """The ledger verifies, whole and as its members see it."""
        whole = await self.call("GET", f"/{self.id}/ledger")
        found = verify(whole.body.splitlines(keepends=True))
        must(found.ok, f"The ledger does not verify: {found.problem}")
        ended = {"", *self.truth.revoked}  # who has not joined, and whose token opens nothing, read no copy
        there = [member for member in self.members if member.over not in ("token_ended", "removed")]
        member = self.world.random.choice(there) if there else None
        if member is not None and member.protocol is not None and member.protocol.saved.agent not in ended:
            saved = member.protocol.saved
            copy = await member.drive(member.protocol.ledger())
            found = verify(copy.splitlines(keepends=True), saved.head or None, agent=saved.agent)
            must(found.ok, f"The copy of a member does not verify: {found.problem}")
        return whole.body

    def check_checkpoints(self, whole: bytes) -> None:
        """Every checkpoint that was ever shown belongs to the tree of the final ledger."""
        tree = Tree()
        for text in whole.splitlines():
            line = msgspec.json.decode(text, type=Line)
            tree.append(row_hash(bytes.fromhex(line.salt), bytes(line.row)))
        must(tree.size == len(self.truth.rows), "The ledger at the end lacks rows.")
        for id, found in self.witness.checkpoints:
            if id == self.id:
                must(tree.root(found.size) == found.root, "A checkpoint does not belong to the final tree.")

    def check_disk(self) -> None:
        """What is stored is what was committed, and a server that starts now has the same state."""
        store = self.disk.store(Machine(self.world, "reader"))
        must(store.rows(self.id) == self.truth.rows, "The rows on disk are not those that were committed.")
        loaded = Book.load(store, self.id)
        truth = self.truth.state
        assert loaded is not None
        assert truth is not None
        must(all_of(loaded.state) == all_of(truth), "A state loaded from disk is not the fold of the ledger.")
        folded = State(self.truth.events[0])
        for event in self.truth.events[1:]:
            folded.apply(event)
        must(all_of(folded) == all_of(truth), "The fold of the ledger depends on when it is made.")

    def check_member(self, member: Member) -> None:
        """Nothing that a member's client took is lost, and nothing counts twice."""
        if member.protocol is None or not member.protocol.saved.agent:
            return
        saved, truth = member.protocol.saved, self.truth
        assert truth.state is not None
        entry = truth.state.members[saved.agent]
        for pull, reward in (member.saved_told | member.passed).items():
            told = truth.told.get(pull)
            if told is None:
                ended = entry.left or entry.aside or entry.removed or entry.revoked
                gone = pull in truth.state.cancelled or ended or truth.state.closed
                must(bool(gone), f"A reward that {member.name} reported is not in the ledger.")
            else:
                must(told.reward == reward, f"A reward of {member.name} is another one in the ledger.")
        rows = [event for event in truth.events if isinstance(event, Commit) and event.agent == saved.agent]
        counted = sum(sum(run.pulls for run in event.runs) + (event.unnamed or 0) for event in rows)
        made = member.committed + member.asking  # the client may have counted one that it did not return
        must(counted <= made, f"{member.name} made {member.committed} commits, and {counted} count.")
        lies = [event for event in truth.events if isinstance(event, Tell) and event.reward == Liar.LIE]
        must(not lies, "A lie about another agent's pull is in the ledger.")
