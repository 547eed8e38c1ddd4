"""Random collaborations: configurations, sequences of moves, and a table to play them on."""

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st
from msgspec import UNSET
from tests.support.strategies import rewards

from partage.ledger import moves
from partage.ledger.chain import GENESIS, Row, line, seal
from partage.ledger.config import PREPAID, Config, checked_config, live_rule
from partage.ledger.events import FORMAT, AnyEvent, Create, Run, Tell
from partage.ledger.fields import MOST_MONEY
from partage.ledger.moves import PullRows, Turn
from partage.ledger.refusals import Refused
from partage.ledger.settlement import closed_with
from partage.ledger.state import State
from partage.ledger.tallies import salts_of
from partage.ledger.ties import commitment_to
from partage.rules import live_parameters, live_rules
from partage.settle import SETTLEMENTS

START = 1_700_000_000_000  # ms
SECRET = b"of all these tests"  # of the tallies
TRUTHFUL = ("paper", "equal-share", "equal-share-expected")  # settlements that assume truthful members
Step = tuple[Any, ...]
TIE_SEED = "0123456789abcdef" * 2
SEED = f"{0x7F:032x}"  # of the operator: without nonces, it gives the tie orders of TIE_SEED, up to six arms

_SEEDS: dict[Any, bytes] = {}  # the operator's seeds, by their commitments


def created(tie_seed: str = "", format: Any = FORMAT, **config: Any) -> Create:
    """Return the first event of a collaboration: balanced-etc with the paper's settlement, unless given.

    From format 5 on, `tie_seed` is the operator's part of the tie order. Where the format needs it, the operator
    underwrites as much as is allowed.
    """
    config = {"name": "Trial", "arms": ["a", "b"], "horizon": 100, "claim_seconds": 1.0, **config}
    config.setdefault("rule", "balanced-etc")
    if config["rule"] == "balanced-etc" and config.get("balance") != "inf":
        config["settlement"] = config.get("settlement") or "paper"
    if config.get("settlement") in TRUTHFUL:
        config.setdefault("underwriting", MOST_MONEY)
    elif config.get("settlement") in PREPAID:
        config.setdefault("prepaid", 3.0)
    checked = checked_config(Config(**config), 1 if format is UNSET else format)
    given: dict[str, Any] = {"tie_seed": tie_seed or TIE_SEED}
    if format is not UNSET and format > 4:
        seed = bytes.fromhex(tie_seed or SEED)
        given = {"tie_commitment": commitment_to(seed)}
        _SEEDS[commitment_to(seed)] = seed
    return Create(seq=1, time=START, format=format, collaboration="c1", **given, **checked)


class Table:
    """A collaboration that is played by making moves; it keeps the ledger as the controller does."""

    def __init__(self, create: Create) -> None:
        self.state = State(create)
        self.now = create.time
        self.head = GENESIS
        self.rows: list[Row] = []
        self.events: list[AnyEvent] = []
        self._keep(create)

    def _keep(self, event: AnyEvent) -> None:
        row = seal(event, self.head)
        self.head = row.head
        self.rows.append(row)
        self.events.append(event)

    def move(self, move: Callable[..., Any], *given: Any) -> Any:
        """Make a move now. What it wrote is kept even if it refuses: lapses that were due."""
        turn = Turn(self.state, self.now, lambda: _SEEDS[self.state.config.tie_commitment])
        try:
            return move(turn, *given)
        finally:
            for event in turn.events:
                self._keep(event)

    def join(self, *shares: int, nonce: bytes | None = None, **declared: Any) -> str:
        """Let an agent join, which commits to a nonce for the tie order if it has one, and may declare something."""
        number = len(self.state.members) + 1
        commitment = UNSET if nonce is None else commitment_to(nonce)
        given = (shares, f"invite {number}", commitment, UNSET, moves.Declared(**declared))
        return self.move(moves.join, f"Agent {number}", *given).agent

    def reveal(self, agent: str, nonce: bytes) -> Any:
        return self.move(moves.reveal, agent, nonce.hex())

    def order(self) -> None:
        """Fix the tie order, as the first ask does."""
        self.move(moves.order)

    def ask(self, agent: str, request: str | None = None, explore_only: bool = False) -> Any:
        return self.move(moves.ask, agent, request, explore_only)

    def tell(self, agent: str, pull: int, reward: float) -> Any:
        """Tell a reward; of a pull that is not a claim, with its rows of the ledger, as the controller does."""
        told = self.move(moves.tell, agent, pull, reward)
        return told or self.move(moves.tell, agent, pull, reward, self.rows_of(pull))

    def rows_of(self, pull: int) -> PullRows:
        """Return what the ledger has of a pull."""
        handed = self.events[pull - 1] if 0 < pull <= len(self.events) else None
        told = next((event for event in self.events if isinstance(event, Tell) and event.pull == pull), None)
        return PullRows(handed, told)

    def commits(self, agent: str, request: str, *runs: tuple[int, int, int], unnamed: int = 0) -> Any:
        return self.move(moves.commits, agent, request, [Run(*run) for run in runs], unnamed)

    def follow(self, agent: str, request: str, pulls: int) -> Any:
        """Report commits to the leader: with arm and version, or their number where they earn nothing."""
        if not self.state.names_commits:
            return self.commits(agent, request, unnamed=pulls)
        if any(self.state.board.public):
            self.order()
        leader = self.state.target()
        assert leader is not None
        return self.commits(agent, request, (self.state.version, leader, pulls))

    def attach(self, agent: str, arm: int, rewards: Sequence[float], request: str | None = None) -> Any:
        return self.move(moves.attach, agent, arm, tuple(rewards), request)

    def add_arm(self, name: str) -> None:
        self.move(moves.add_arm, name)

    def consent(self, agent: str, *shares: int) -> None:
        self.move(moves.consent, agent, shares)

    def leave(self, agent: str) -> None:
        self.move(moves.leave, agent)

    def set_aside(self, agent: str, reason: str = "It told what it did not see.") -> Any:
        return self.move(moves.set_aside, agent, reason)

    def close(self) -> Any:
        return self.move(moves.close, closed_with(self.state, SECRET))

    def work(self, agent: str, reward: Callable[[int], float]) -> Any:
        """Ask, and tell the reward at once if the pull is a claim."""
        answer = self.ask(agent)
        if answer.share:
            self.tell(agent, answer.seq, reward(answer.arm))
        return answer

    def lines(self, reader: str | None = None) -> list[bytes]:
        """Return the lines of the ledger's file."""
        salts = salts_of(SECRET, self.state.members)
        return [line(row, event, reader, salts) for row, event in zip(self.rows, self.events, strict=True)]


def balances(rule: str) -> st.SearchStrategy[float | str | None]:
    """Balances that a rule takes."""
    takes = any(parameter.name == "balance" for parameter in live_rules()[rule].parameters)
    return st.sampled_from([1.0, 2.0, 1.5, "inf"]) if takes else st.none()


def parameters(rule: str) -> st.SearchStrategy[dict[str, Any]]:
    """Other parameters that a rule takes in live play."""
    known: dict[str, st.SearchStrategy[Any]] = {
        "lead": st.sampled_from([1.0, 2.5]),
        "clock": st.just(0.1),
        "evidence": st.just("betting"),
        "indifference": st.just(False),
        "tolerate": st.sampled_from([1, 2]),
        "late": st.just("worst"),
    }
    drawn = st.fixed_dictionaries({}, optional={name: known[name] for name in live_parameters(rule)})
    # Bets tolerate no liars, and neither knows the worst of what is late.
    return drawn.filter(lambda found: len({"evidence", "tolerate", "late"} & found.keys()) <= 1)


@st.composite
def configurations(
    draw: st.DrawFn,
    settlements: Sequence[str | None] = (*SETTLEMENTS, "pool"),
    formats: Sequence[Any] = (FORMAT, FORMAT, 5, 4, 3, 2, UNSET),
) -> Create:
    """Any live rule and format, a few arms, short horizons; settlements that do not fit the rule become "none"."""
    rule = draw(st.sampled_from(list(live_rules())))
    balance = draw(balances(rule))
    settlement = draw(st.sampled_from(settlements))
    format = draw(st.sampled_from(formats))
    if settlement not in live_rule(rule, balance).settlements or (
        settlement in PREPAID and format not in (FORMAT, 5, 4)
    ):
        settlement = "none"
    surety = {}
    if format in (FORMAT, 5, 4) and settlement in TRUTHFUL:
        surety["underwriting"] = draw(st.sampled_from([0.0, 0.25, MOST_MONEY]))
    elif settlement in PREPAID:
        surety["prepaid"] = draw(st.sampled_from([0.5, 1e-6, 7.3, 1000.0]))
        surety["fee"] = 0.0 if settlement == "dues" else draw(st.sampled_from([0.0, 0.1]))
    arms = draw(st.sampled_from([2, 3, 1, 4, 6]))
    if format == FORMAT and settlement != "paper" and not live_rule(rule, balance).by_contrasts:
        surety["histories"] = draw(st.sampled_from([0, 8]))
    if format == FORMAT:
        surety["most_arms"] = arms + draw(st.sampled_from([0, 0, 1, 3]))
    return created(
        tie_seed=f"{draw(st.integers(0, 2**128 - 1)):032x}",
        format=format,
        arms=[f"arm {number}" for number in range(arms)],
        rule=rule,
        balance=balance,
        parameters=draw(parameters(rule)),
        settlement=settlement,
        horizon=draw(st.sampled_from([60, 20, 200, 5, 2])),
        value=draw(st.sampled_from([1.0, 0.01, 1234.5])),
        claim_interval=0.0 if format not in (FORMAT, 5, 4) else draw(st.sampled_from([0.0, 0.0, 0.4, 1.5])),
        **surety,
    )


def _agents() -> st.SearchStrategy[int]:
    return st.integers(0, 4)


def _arms() -> st.SearchStrategy[int]:
    return st.integers(0, 5)


def _requests() -> st.SearchStrategy[str]:
    return st.sampled_from(["r1", "r2", "r3", "r4", "r5", "r6"])


def _waits() -> st.SearchStrategy[int]:
    return st.sampled_from([0, 1, 400, 999, 1000, 1001, 3000, -500])


def _shares() -> st.SearchStrategy[frozenset[int]]:
    return st.one_of(st.just(frozenset(range(6))), st.frozensets(_arms()))


def _horizons() -> st.SearchStrategy[int]:
    """Horizons that members declare; 0 stands for none."""
    return st.sampled_from([0, 0, 2, 4, 20])


def steps() -> st.SearchStrategy[Step]:
    """One step of somebody. Agents, arms, pulls and versions are taken modulo how many there are."""
    runs = st.lists(st.tuples(st.integers(0, 3), _arms(), st.sampled_from([1, 2, 9])), min_size=1, max_size=3)
    work = st.tuples(st.just("work"), _agents(), rewards())
    return st.one_of(
        st.tuples(st.just("join"), _shares(), _horizons()),
        work,
        work,
        st.tuples(st.just("many"), st.sampled_from([2, 10, 200]), st.sampled_from([0.0, 1.0, 0.5]), rewards()),
        st.tuples(st.just("ask"), _agents(), st.none() | _requests(), st.booleans()),
        st.tuples(st.just("ask"), _agents(), st.none(), st.just(True)),
        st.tuples(st.just("tell"), _agents(), st.integers(0, 3), rewards()),
        st.tuples(st.just("tell"), _agents(), st.integers(0, 3), rewards()),
        st.tuples(st.just("commits"), _agents(), _requests(), runs),
        st.tuples(st.just("legal"), _agents(), st.integers(0, 5), st.integers(1, 3)),
        st.tuples(st.just("unnamed"), _agents(), st.sampled_from([1, 2, 30])),
        st.tuples(st.just("consent"), _agents(), _shares()),
        st.tuples(st.just("arm"), _arms()),
        st.tuples(st.just("attach"), _agents(), _arms(), _past(), st.none() | _requests()),
        st.tuples(st.just("leave"), _agents(), st.integers(0, 4)),
        st.tuples(st.just("aside"), _agents(), st.integers(0, 4)),
        st.tuples(st.just("wait"), _waits()),
        st.tuples(st.just("wait"), _waits()),
    )


def _past() -> st.SearchStrategy[list[float]]:
    return st.lists(rewards(), min_size=1, max_size=9)


def _joins() -> st.SearchStrategy[Step]:
    """Somebody joins, mostly with past rewards of some arms."""
    past = st.dictionaries(_arms(), _past(), max_size=3)
    return st.tuples(st.just("join"), _shares(), _horizons(), past)


def sequences(most: int = 40) -> st.SearchStrategy[list[Step]]:
    """A sequence of steps in a collaboration, up to its close or not."""
    return st.tuples(
        st.lists(_joins(), min_size=2, max_size=4),
        st.lists(steps(), min_size=most // 2, max_size=most),
        st.sampled_from([[], [("close",)], [("close",)]]),
    ).map(lambda parts: parts[0] + parts[1] + parts[2])


def perform(table: Table, step: Step) -> Any:
    """Take one step, and return the answer or the refusal."""
    kind, *given = step
    state = table.state
    arms = len(state.arms)
    if kind == "wait":
        table.now += given[0]
        return None
    if kind == "close":
        return table.close()
    if kind == "arm":
        return _tried(table.add_arm, f"arm {given[0] + 2}")
    if kind == "join":
        horizon = min(given[1] if len(given) > 1 else 0, state.config.horizon)
        declared = {"horizon": horizon} if horizon and state.format > 5 else {}
        joined = _tried(lambda: table.join(*(arm for arm in given[0] if arm < arms), **declared))
        past = given[2] if len(given) > 2 and isinstance(joined, str) else {}
        return [joined, *(_tried(table.attach, joined, arm % arms, past[arm]) for arm in past)]
    if not state.members:
        return None
    if kind == "many":
        agents = list(state.members) * given[0]
        return [_tried(table.work, agent, lambda arm: given[1 if arm else 2]) for agent in agents[: given[0]]]
    agent = list(state.members)[given[0] % len(state.members)]
    if kind == "work":
        return _tried(table.work, agent, lambda arm: given[1])
    if kind == "ask":
        return _tried(table.ask, agent, given[1], given[2])
    if kind == "tell":
        waiting = {**state.late, **state.claims}
        pulls = [*waiting, *sorted(state.cancelled)] or [1]
        pull = pulls[given[1] % len(pulls)]
        if pull in waiting and given[0]:  # otherwise anybody tells it, mostly without permission
            agent = waiting[pull].agent
        return _tried(table.tell, agent, pull, given[2])
    if kind == "commits":
        runs = [(max(0, state.version - back), arm % arms, pulls) for back, arm, pulls in given[2]]
        return _tried(table.commits, agent, given[1], *runs)
    if kind == "legal":
        if not state.windows:  # only their number is reported
            return _tried(lambda: table.commits(agent, f"of {state.seq}", unnamed=given[2]))
        window = state.windows[-1 - given[1] % len(state.windows)]
        moment = window.moments[given[1] % len(window.moments)]
        return _tried(table.commits, agent, f"of {state.seq}", (window.version, max(0, moment[1]), given[2]))
    if kind == "unnamed":
        return _tried(lambda: table.commits(agent, f"of {state.seq}", unnamed=given[1]))
    if kind == "attach":
        return _tried(table.attach, agent, given[1] % arms, given[2], given[3])
    if kind == "consent":
        return _tried(table.consent, agent, *(arm for arm in given[1] if arm < arms))
    move = {"leave": table.leave, "aside": table.set_aside}[kind]
    return _tried(move, agent) if given[1] == 4 else None  # or soon no agent would be left


def _tried(move: Callable[..., Any], *given: Any) -> Any:
    try:
        return move(*given)
    except Refused as refused:
        return refused


def played(create: Create, happens: Sequence[Step]) -> Table:
    """Return the table after a sequence."""
    table = Table(create)
    for step in happens:
        perform(table, step)
    return table
