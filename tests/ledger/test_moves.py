"""Moves: on random sequences of steps, and one by one."""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support import strategies
from tests.support.sequences import (
    SEED,
    START,
    TRUTHFUL,
    Step,
    Table,
    balances,
    configurations,
    created,
    perform,
    played,
    sequences,
)

from partage.arms import reward_table
from partage.board import MOST_LAPSES
from partage.clock import TICKS, rounded
from partage.engine.reference import play_reference
from partage.engine.rewards import Rewards
from partage.game import Game
from partage.ledger import moves
from partage.ledger.events import (
    AddArm,
    AnyEvent,
    Attach,
    Claim,
    Commit,
    Consent,
    Create,
    Join,
    Lapse,
    Leave,
    Order,
    SetAside,
    Tell,
    Tick,
    UsedUp,
    decode,
    encode,
)
from partage.ledger.fields import checked_reward
from partage.ledger.moves import PullRows, Turn
from partage.ledger.refusals import CODES, Refused
from partage.ledger.settlement import inputs, own_view, settled, settlement_of, settlement_view
from partage.ledger.snapshot import Snapshot
from partage.ledger.state import REMEMBERED, State, tie_order
from partage.ledger.ties import tie_seed_of
from partage.rules import live_rules
from partage.tape import AGENT_ORDER, permutation, run_key


def kept(state: State) -> tuple[Any, ...]:
    """Everything that a state holds, to compare."""
    board = state.board
    snapshot = msgspec.msgpack.decode(state.dump(), type=Snapshot)
    return snapshot, list(state.claims), board.claims, board.shared, state.sharers, state.version


def rebuilt(events: Iterable[AnyEvent]) -> State:
    """The state that follows from a ledger, read from its bytes."""
    first, *others = [decode(encode(event)) for event in events]
    assert isinstance(first, Create)
    state = State(first)
    for event in others:
        state.apply(event)
    return state


def refused(move: Callable[..., Any], *given: Any) -> tuple[int, str]:
    """The status and the code with which a move is refused."""
    with pytest.raises(Refused) as refusal:
        move(*given)
    assert refusal.value.code in CODES
    assert refusal.value.sentence.endswith(".")
    return refusal.value.status, refusal.value.code


class Ledger:
    """What the ledger says, kept independently of the state: plain counts and sets."""

    def __init__(self, create: Create) -> None:
        self.shadow = State(create)
        self.shares: dict[str, frozenset[int]] = {}
        self.open: dict[int, tuple[str, int]] = {}
        self.late: dict[int, tuple[str, int]] = {}
        self.told: Counter[int] = Counter()
        self.explored: Counter[tuple[str, int]] = Counter()
        self.used: Counter[str] = Counter()
        self.reported: Counter[str] = Counter()
        self.requests: dict[tuple[str, str], AnyEvent] = {}
        self.allowed: set[tuple[str, int, int]] = set()  # agent, version, arm that it could have committed to
        self.superseded: dict[int, int] = {}
        self.claimed: dict[str, int] = {}
        self.out: set[int] = set()
        self.aside: set[str] = set()
        self.missed: Counter[int] = Counter()  # claims of each arm since it was last told
        self.horizons: dict[str, int] = {}
        self.used_up: set[int] = set()
        self.arms = list(create.arms)
        self.past: dict[tuple[str, int], int] = {}  # how many past rewards each member attached of each arm
        self.spent: set[str] = set()  # members of whom the ledger says that they have no pulls left

    def take(self, event: AnyEvent) -> None:
        """Read the next event."""
        if isinstance(event, Join) and self.shadow.format > 5:
            for arm in event.shares:
                if self.sharers(arm) <= self.spent:
                    self.missed[arm] = 0
        if isinstance(event, Join | Consent | Leave | SetAside):
            self.shares[event.agent] = frozenset(getattr(event, "shares", ()))
            for waiting in (self.open, self.late):
                for pull, (agent, arm) in list(waiting.items()):
                    if agent == event.agent and arm not in self.shares[agent]:
                        del waiting[pull]
                        self.missed[arm] += waiting is self.open
        if isinstance(event, Join):
            self.horizons[event.agent] = event.horizon or self.shadow.config.horizon
        if isinstance(event, UsedUp):
            for arm in event.arms:
                assert arm not in self.used_up
                assert self.is_used_up(arm), "somebody can still pull the arm"
                self.used_up.add(arm)
                self.spent |= self.sharers(arm)
        if isinstance(event, SetAside):
            assert event.agent not in self.aside
            self.aside.add(event.agent)
            self.superseded[event.version - 1] = event.time
            self.out.clear()
        elif isinstance(event, Claim):
            assert all(agent != event.agent for agent, _ in self.open.values()), "one open claim per agent"
            assert event.arm in self.shares[event.agent]
            interval = self.shadow.config.claim_interval
            if interval is not msgspec.UNSET and event.agent in self.claimed:
                assert event.time >= self.claimed[event.agent] + 1000 * interval
            self.claimed[event.agent] = event.time
            self.open[event.seq] = (event.agent, event.arm)
            self.used[event.agent] += 1
        elif isinstance(event, Lapse):
            self.late[event.pull] = self.open.pop(event.pull)
            self.missed[self.late[event.pull][1]] += 1
        elif isinstance(event, Tell):
            waiting = self.open if event.pull in self.open else self.late
            assert waiting.pop(event.pull) == (event.agent, event.arm)
            assert event.arm in self.shares[event.agent], "agents broadcast only arms that they share"
            self.told[event.arm] += 1
            self.missed[event.arm] = 0
            self.explored[event.agent, event.arm] += 1
            self.superseded[event.version - 1] = event.time
        elif isinstance(event, AddArm):
            assert event.name not in self.arms
            self.arms.append(event.name)
        elif isinstance(event, Attach):
            assert event.arm in self.shares[event.agent], "agents attach only arms that they share"
            assert not self.used[event.agent], "past rewards come before the first pull"
            assert event.agent not in self.aside
            assert (event.agent, event.arm) not in self.past, "each arm's are attached once"
            assert 0 < len(event.rewards) <= self.shadow.config.histories
            assert event.version == self.shadow.version + 1
            self.past[event.agent, event.arm] = len(event.rewards)
            self.superseded[event.version - 1] = event.time
        elif isinstance(event, Commit):
            self.used[event.agent] += sum(run.pulls for run in event.runs) + (
                0 if event.unnamed is msgspec.UNSET else event.unnamed
            )
            if not event.asked and event.runs:
                self.reported[event.agent] = event.runs[-1].version
        if isinstance(event, Claim | Commit) and event.request:
            self.requests[event.agent, event.request] = event
        self.used_up = {arm for arm in self.used_up if self.sharers(arm) <= self.spent}
        self.shadow.apply(event)
        board = self.shadow.board
        if any(board.public) and self.shadow.ordered:
            rule, waits = self.shadow.rule, set()
            if self.shadow.format > 5:
                waits = {agent for agent, _ in self.open.values()}
            for agent, shares in self.shares.items():
                # who is not offered an arm may commit
                arm, share = rule.decide(board, () if rule.offers or agent in waits else shares)
                if not share:
                    self.allowed.add((agent, self.shadow.version, arm))

    def past_in(self, state: State) -> Counter[int]:
        """The past rewards of each arm in the record: all, or where members may lie, those of a fair share."""
        found: Counter[int] = Counter()
        most = state.rule.tolerate
        for (agent, arm), count in self.past.items():
            if agent in self.aside:
                continue
            record = state.board.by_member.get(agent)
            kept = (record.counts[arm] if record else 0) - self.explored[agent, arm]
            assert kept == count or (most and 0 <= kept < count)
            if 1 < kept < count and not self.aside and not state.cancelled:  # as many as others had, and one more
                others = [one.counts[arm] for name, one in state.board.by_member.items() if name != agent]
                claims = [state.board.claimed.get(name, {}).get(arm, 0) for name in state.members]
                assert kept <= sorted([*others, *[0] * most], reverse=True)[most - 1] + 1 + sum(claims)
            found[arm] += kept
        return found

    def is_used_up(self, arm: int) -> bool:
        """Whether the arm has sharers, and all of them have used their horizons."""
        sharers = self.sharers(arm)
        return bool(sharers) and all(self.used[agent] == self.horizons[agent] for agent in sharers)

    def sharers(self, arm: int) -> set[str]:
        """The agents that share the arm."""
        return {agent for agent, shares in self.shares.items() if arm in shares}

    def check(self, state: State) -> None:
        """Compare with the state, and check the invariants."""
        board, arms = state.board, range(state.board.arms)
        assert {pull: (handed.agent, handed.arm) for pull, handed in state.claims.items()} == self.open
        assert {pull: (handed.agent, handed.arm) for pull, handed in state.late.items()} == self.late
        assert board.claims == [sum(arm == of for _, of in self.open.values()) for arm in arms]
        stalls = dict.fromkeys(self.used_up, MOST_LAPSES)
        assert board.lapses == [self.missed[arm] + stalls.get(arm, 0) if state.format > 3 else 0 for arm in arms]
        gone = Counter({arm: sum(self.explored[agent, arm] for agent in self.aside) for arm in arms})
        assert state.arms == self.arms
        assert len(self.arms) <= state.board.arms == (state.config.most_arms or len(state.config.arms))
        assert all(arm < len(self.arms) for shares in self.shares.values() for arm in shares)
        assert not any(board.public[len(self.arms) :])
        past = self.past_in(state)
        assert board.counts == [self.told[arm] - gone[arm] + past[arm] for arm in arms]
        assert state.attached() == [past[arm] for arm in arms]
        assert state.version == sum(self.told.values()) + len(self.past) + len(self.aside)
        assert {agent for agent, member in state.members.items() if member.aside} == self.aside
        for agent, member in state.members.items():
            assert member.shares == self.shares[agent]
            assert member.used == self.used[agent] <= self.horizons[agent] == member.horizon <= state.config.horizon
            assert member.explore == {arm: n for (of, arm), n in self.explored.items() if of == agent}
            assert member.claim == next((pull for pull, (of, _) in self.open.items() if of == agent), None)
        assert board.shared == [any(arm in shares for shares in self.shares.values()) for arm in arms]
        assert all(board.public[arm] or not board.active[arm] for arm in arms)
        out = {arm for arm in arms if board.public[arm] and not board.active[arm]}
        if state.config.rule not in ("balanced-glr", "network-glr"):
            assert self.out <= out, "eliminated stays eliminated"
        self.out = out
        assert state.used_up == self.used_up
        assert not [arm for arm in state.idle if not self.is_used_up(arm)]
        if state.format > 2:
            assert board.all_pulls == sum(self.horizons.values())
        assert board.clock <= rounded(sum(self.used.values()))
        assert board.clock == 0 or (state.rule.clocked and board.clock in TICKS)

    def allows(self, table: Table, agent: str, runs: Iterable[tuple[int, int, int]], unnamed: int) -> bool:
        """Whether commit pulls may be reported, according to the contract."""
        state = table.state
        if not state.ordered:
            return False
        now, reported = max(table.now, state.time), self.reported[agent]
        runs = list(runs)
        if self.used[agent] + sum(pulls for _, _, pulls in runs) + unnamed > self.horizons[agent]:
            return False
        if unnamed and state.format < 3:
            return False
        if runs and state.format > 3 and state.config.settlement not in TRUTHFUL:
            return False
        for version, arm, _ in runs:
            gone = version in self.superseded and self.superseded[version] + 1000 < now
            if version > state.version or version < reported or gone or (agent, version, arm) not in self.allowed:
                return False
            reported = version
        return True


@settings(max_examples=200)
@given(configurations(), sequences())
def test_random_sequences(create: Create, happens: list[Step]) -> None:
    table, ledger = Table(create), Ledger(create)
    known = 1

    def catch_up() -> None:
        nonlocal known
        for event in table.events[known:]:
            ledger.take(event)
        known = len(table.events)

    def commits(agent: str, request: str, *runs: tuple[int, int, int], unnamed: int = 0) -> Any:
        before = len(table.events)
        repeated = (agent, request) in ledger.requests
        gone = table.state.members[agent].left or table.state.closed is not None
        # Claims that are due lapse first, the tie order may be fixed, and the clock may tick; the report itself does
        # not change the board.
        table_commits = Table.commits
        try:
            return table_commits(table, agent, request, *runs, unnamed=unnamed)
        finally:
            written = [event for event in table.events[before:] if isinstance(event, Commit)]
            for event in table.events[before:]:
                if isinstance(event, Lapse | Order | Tick | UsedUp):
                    ledger.take(event)
            expected = not gone and not repeated and ledger.allows(table, agent, runs, unnamed)
            assert bool(written) == expected
            for event in written:
                ledger.take(event)
            nonlocal known
            known = len(table.events)

    table.commits = commits  # type: ignore[method-assign]
    for step in happens:
        perform(table, step)
        catch_up()
        ledger.check(table.state)
        assert table.state.time >= START
    assert kept(ledger.shadow) == kept(table.state)
    assert kept(rebuilt(table.events)) == kept(table.state)


@settings(max_examples=60)
@given(configurations(), sequences(), sequences(20))
def test_a_snapshot_goes_on_as_the_state_does(create: Create, before: list[Step], after: list[Step]) -> None:
    one = played(create, before)
    other = Table(create)
    other.state, other.now, other.head = State.load(one.state.dump()), one.now, one.head
    other.rows, other.events = [*one.rows], [*one.events]
    assert kept(other.state) == kept(one.state)
    for step in after:
        first, second = perform(one, step), perform(other, step)
        assert repr(first) == repr(second)
    assert kept(other.state) == kept(one.state)
    assert one.events == other.events


@settings(max_examples=60)
@given(configurations(), sequences())
def test_asking_twice(create: Create, happens: list[Step]) -> None:
    table = played(create, [step for step in happens if step != ("close",)])
    for agent, member in list(table.state.members.items()):
        if member.left or member.horizon_left <= 0 or not any(table.state.board.public):
            continue
        held = table.state.members[agent].claim
        first = table.ask(agent, "mine")
        written = len(table.events)
        assert table.ask(agent, "mine") == first
        if first.share:
            assert table.ask(agent, "another").seq == first.seq
            assert table.ask(agent, None, True).seq == first.seq
        assert len(table.events) == written
        if first.seq != held:  # otherwise nothing was written, and nothing is remembered
            if first.share:
                table.tell(agent, first.seq, 1.0)
            assert table.ask(agent, "mine") == first


# --- the reference's decisions --------------------------------------------------------------------------------

_GAMES = strategies.games(every_arm_shared=True, horizons=st.one_of(st.integers(2, 40), st.integers(60, 200)))


@settings(max_examples=60)
@given(
    game=_GAMES,
    data=st.data(),
    rule=st.sampled_from(list(live_rules())),
    tie_seed=st.integers(0, 2**128 - 1).map("{:032x}".format),
)
@pytest.mark.parametrize("bulk", [False, True])
def test_the_references_decisions(bulk: bool, game: Game, data: st.DataObject, rule: str, tie_seed: str) -> None:
    """One agent at a time, with instant reports; commit pulls asked for, or decided by the client."""
    named = "equal-share" in live_rules()[rule]().settlements  # commits are then reported with their arms
    table = Table(
        created(
            tie_seed,
            arms=[f"arm {number}" for number in range(len(game.arms))],
            rule=rule,
            balance=data.draw(balances(rule)),
            horizon=game.horizon,
            settlement="equal-share" if named else "none",
        )
    )
    key = run_key(tie_seed_of(bytes.fromhex(tie_seed), []))
    words = np.array(key, np.uint64)
    tally = play_reference(game, table.state.rule, words)

    rewards = Rewards(words, reward_table(game.fixed_arms()))
    agents = [table.join(*game.sharing.of(agent)) for agent in range(game.agents)]
    order = permutation(key, AGENT_ORDER, game.agents) if game.sharing.shuffled else range(game.agents)
    state = table.state
    for step in range(game.horizon):
        for agent in order:
            answer = table.ask(agents[agent], None, bulk)
            if answer is None:
                table.follow(agents[agent], f"step {step}", 1)
            elif answer.share:
                table.tell(
                    agents[agent], answer.seq, float(rewards.broadcast(answer.arm, state.board.counts[answer.arm]))
                )
    explore, commit = np.zeros_like(tally.explore), np.zeros_like(tally.commit)
    for row, member in enumerate(state.members.values()):
        for arm, pulls in member.explore.items():
            explore[row, arm] = pulls
        for arm, pulls in member.commit.items():
            commit[row, arm] = pulls
    np.testing.assert_array_equal(explore, tally.explore)
    if named:
        np.testing.assert_array_equal(commit, tally.commit)
    assert state.board.counts == tally.broadcasts.tolist()
    assert state.board.record.sums == tally.sums.tolist()
    assert state.board.active == tally.active.tolist()
    assert refused(table.ask, agents[0]) == (409, "horizon_used")


# --- one by one -----------------------------------------------------------------------------------------------


def test_while_no_arm_is_public_there_is_nothing_to_pull() -> None:
    table = Table(created())
    agent = table.join()
    assert refused(table.ask, agent) == (409, "no_public_arm")
    table.join(0)
    assert not table.ask(agent).share


def test_claims_spread_over_the_arms() -> None:
    table = Table(created(arms=["a", "b", "c"]))
    one, *agents = [table.join(0), *(table.join(0, 1, 2) for _ in range(5))]
    assert table.ask(one).share
    other = table.join(0)
    assert not table.ask(other).share, "a was handed out, and b and c were not"
    answers = [table.ask(agent) for agent in agents]
    assert sorted(answer.arm for answer in answers) == [0, 1, 1, 2, 2]
    assert all(answer.share for answer in answers)


def test_a_late_report_is_taken() -> None:
    table = Table(created())
    agent, other = table.join(0, 1), table.join(0, 1)
    late = table.ask(agent)
    table.now += 1000
    again = table.ask(agent)
    assert again.share
    assert again.seq != late.seq
    assert [type(event) for event in table.events[-2:]] == [Lapse, Claim]
    told = table.tell(agent, late.seq, 0.5)
    assert told.version == 1
    assert table.state.board.counts[late.arm] == 1
    assert table.state.members[agent].claim == again.seq
    assert table.tell(agent, late.seq, 0.5) == told, "the same report again"
    assert refused(table.tell, agent, late.seq, 0.25) == (409, "told_differently")
    assert table.state.version == 1
    assert table.ask(other).share


def test_a_claim_that_is_due_and_was_not_seen_to_lapse_is_told_like_any() -> None:
    table = Table(created())
    agent = table.join(0, 1)
    answer = table.ask(agent)
    table.now += 10_000
    table.tell(agent, answer.seq, 1.0)
    assert not table.state.claims
    assert not table.state.late
    assert table.state.board.claims == [0, 0]


def test_a_tell_is_for_the_agent_who_asked() -> None:
    table = Table(created())
    agent, other = table.join(0, 1), table.join(0, 1)
    answer = table.ask(agent)
    assert refused(table.tell, other, answer.seq, 1.0) == (403, "other_agents_pull")
    assert table.state.version == 0


@pytest.mark.parametrize("lapsed", [False, True])
@pytest.mark.parametrize("how", ["consent", "leave"])
def test_withdrawing_an_arm_cancels_its_claims(lapsed: bool, how: str) -> None:
    table = Table(created(arms=["a", "b", "c"]))
    agent, other = table.join(0, 1), table.join(0, 1, 2)
    answer = table.ask(agent)
    if lapsed:
        table.now += 1000
        table.ask(other)
        assert answer.seq in table.state.late
    if how == "consent":
        table.consent(agent, 1 - answer.arm)
    else:
        table.leave(agent)
    assert table.state.cancelled == {answer.seq}
    assert refused(table.tell, agent, answer.seq, 1.0) == (403, "claim_cancelled")
    if how == "consent":  # sharing it again does not bring the claim back
        table.consent(agent, 0, 1)
        assert refused(table.tell, agent, answer.seq, 1.0) == (403, "claim_cancelled")
    assert table.state.version == 0


def test_consent_as_it_was_writes_nothing() -> None:
    table = Table(created())
    agent = table.join(0, 1)
    written = len(table.events)
    table.consent(agent, 1, 0)
    assert len(table.events) == written


def test_after_the_close_everything_is_refused() -> None:
    table = Table(created())
    agent, other = table.join(0, 1), table.join(0)
    late = table.ask(agent)
    table.now += 1000
    now = table.ask(agent)
    closed = table.close()
    written = len(table.events)
    for move in (
        lambda: table.join(0),
        lambda: table.ask(agent),
        lambda: table.ask(other, "new"),
        lambda: table.tell(agent, late.seq, 1.0),
        lambda: table.tell(agent, now.seq, 1.0),
        lambda: table.commits(agent, "new", (0, 0, 1)),
        lambda: table.consent(agent, 0),
        lambda: table.leave(agent),
    ):
        assert refused(move) == (409, "closed")
    assert table.close() == closed
    table.now += 100_000
    table.move(moves.lapse)
    assert len(table.events) == written


def test_an_agent_that_left_keeps_its_row() -> None:
    table = Table(created())
    agent, other = table.join(0, 1), table.join(0, 1)
    table.work(agent, lambda arm: 1.0)
    table.leave(agent)
    table.leave(agent)
    for move in (
        lambda: table.ask(agent),
        lambda: table.consent(agent, 0),
        lambda: table.commits(agent, "r", (0, 0, 1)),
    ):
        assert refused(move) == (409, "left")
    assert table.ask(other).share
    view = settlement_view(table.state, settlement_of(table.state))
    assert [row.agent for row in view.rows] == [agent, other]
    assert view.rows[0].explore == 1


def test_an_arm_without_a_sharer_stands_outside() -> None:
    table = Table(created(arms=["a", "b", "c"]))
    agent, other = table.join(0, 1), table.join(2)
    for _ in range(2):
        table.work(agent, lambda arm: 0.5)
    assert not table.ask(agent).share, "arm c was not explored yet, so a and b wait"
    table.leave(other)
    state = table.state
    assert state.board.public[2]
    assert state.board.active[2]
    assert table.ask(agent).share, "nobody can explore c, so nobody waits for it"
    assert state.rule.open_arms(state.board) == [1 - table.events[-1].arm]
    table.tell(agent, state.members[agent].claim or 0, 0.5)
    third = table.join(2)
    assert table.ask(third).arm == 2, "shared again, it is the one to explore"


def test_eliminated_stays_eliminated_even_if_shared_again() -> None:
    table = Table(created(horizon=200))
    agent = table.join(0, 1)
    while all(table.state.board.active):
        table.work(agent, lambda arm: 1.0 - arm)
    table.consent(agent, 0)
    table.consent(agent, 0, 1)
    table.join(1)
    assert table.state.board.active == [True, False]
    assert not table.ask(agent).share


def test_a_single_arm_with_a_sharer_is_not_explored() -> None:
    table = Table(created())
    agent, other = table.join(0), table.join(1)
    table.work(agent, lambda arm: 0.5)
    table.leave(other)
    assert not table.ask(agent).share


def test_glr_goes_on_where_the_leader_has_no_sharer() -> None:
    table = Table(created(arms=["a", "b", "c"], rule="balanced-glr", horizon=1000))
    first, others = table.join(0), table.join(1, 2)
    for _ in range(3):
        table.work(first, lambda arm: 1.0)
        table.work(others, lambda arm: 0.5)
        table.work(others, lambda arm: 0.5)
    assert table.state.target() == 0
    table.leave(first)
    before = list(table.state.board.counts)
    for _ in range(20):
        assert table.work(others, lambda arm: 0.5).share
    assert table.state.board.counts[0] == before[0]
    assert sum(table.state.board.counts) == sum(before) + 20
    assert not table.state.rule.open_arms(table.state.board).count(0)


def test_glr_keeps_the_others_level_where_the_leader_has_no_sharer() -> None:
    table = Table(created(arms=["a", "b", "c"], rule="balanced-glr", horizon=1000))
    first, second, third = table.join(0), table.join(1), table.join(2)
    crowd = [table.join(1) for _ in range(20)]
    for _ in range(3):
        table.work(first, lambda arm: 1.0)
        table.work(second, lambda arm: 0.5)
        table.work(third, lambda arm: 0.5)
    table.leave(first)
    handed = [table.ask(agent).share for agent in crowd]
    assert 0 < sum(handed) <= 2  # not twenty claims on one arm while the other waits
    table.ask(third)
    counts, claims = table.state.board.counts, table.state.board.claims
    assert abs(counts[1] + claims[1] - counts[2] - claims[2]) <= 1


def test_an_old_consent_that_comes_again_changes_nothing() -> None:
    table = Table(created())
    agent = table.join(0)
    table.move(moves.consent, agent, [0, 1], "r1")
    table.move(moves.consent, agent, [], "r2")
    written = len(table.events)
    table.move(moves.consent, agent, [0, 1], "r1")
    assert table.state.members[agent].shares == frozenset()
    assert len(table.events) == written
    asked = table.join(0, 1)
    table.move(moves.ask, asked, "r3", False)
    assert refused(table.move, moves.consent, asked, [0], "r3") == (409, "request_reused")


def test_an_invite_is_used_once() -> None:
    table = Table(created())
    table.move(moves.join, "Ada", [0], "i1")
    assert refused(table.move, moves.join, "Eve", [0], "i1") == (403, "invite_used")


def test_requests_of_one_kind_are_not_those_of_another() -> None:
    table = Table(created())
    agent = table.join()
    table.join(0)
    asked = table.ask(agent, "r1")
    assert not asked.share
    reported = table.commits(agent, "r2", (0, 0, 3))
    assert table.commits(agent, "r2", (0, 0, 3)) == reported
    assert table.state.members[agent].used == 4
    assert refused(table.commits, agent, "r1", (0, 0, 1)) == (409, "request_reused")
    assert refused(table.ask, agent, "r2") == (409, "request_reused")


def test_old_requests_are_forgotten() -> None:
    table = Table(created(horizon=1000))
    agent = table.join()
    table.join(0)
    for number in range(REMEMBERED + 1):
        table.ask(agent, f"r{number}")
    assert len(table.state.members[agent].answers) == REMEMBERED
    assert "r0" not in table.state.members[agent].answers


def test_explore_only_is_never_a_commit() -> None:
    table = Table(created())
    agent = table.join()
    table.join(0)
    table.order()
    written = len(table.events)
    assert table.ask(agent, "r1", True) is None
    assert len(table.events) == written
    assert table.ask(agent, "r1") is not None, "nothing was written, so the request is still new"


def test_the_horizon_holds_for_claims_and_commits() -> None:
    table = Table(created(horizon=3))
    agent, _ = table.join(0), table.join(1)
    answer = table.ask(agent)
    assert answer.share
    assert refused(table.commits, agent, "r1", (0, table.state.target(), 3)) == (409, "too_many_pulls")
    table.commits(agent, "r1", (0, table.state.target(), 2))
    assert table.ask(agent).seq == answer.seq, "it keeps its claim, also at the horizon"
    table.tell(agent, answer.seq, 1.0)
    assert refused(table.ask, agent) == (409, "horizon_used")


class TestReports:
    """Reports of commit pulls that the client decided by itself."""

    def table(self) -> tuple[Table, str, str]:
        """Arm a leads at version 2; the first agent shares nothing."""
        table = Table(created(arms=["a", "b"], horizon=1000))
        agent, other = table.join(), table.join(0, 1)
        for _ in range(2):
            table.work(other, lambda arm: 1.0 - arm)
        return table, agent, other

    def refused(self, table: Table, agent: str, *runs: tuple[int, int, int]) -> str:
        status, code = refused(table.commits, agent, "refused", *runs)
        assert status == 409
        return code

    def test_leader(self) -> None:
        table, agent, _ = self.table()
        assert self.refused(table, agent, (2, 1, 1)) == "not_the_leader"
        table.commits(agent, "r1", (2, 0, 5))
        assert table.state.members[agent].commit == {0: 5}

    def test_open_arms_that_the_agent_shares(self) -> None:
        table, _, other = self.table()
        assert self.refused(table, other, (2, 0, 1)) == "not_the_leader"

    def test_an_arm_that_was_closed_for_a_moment(self) -> None:
        table, _, _ = self.table()
        third, fourth = table.join(0), table.join(0)
        assert self.refused(table, fourth, (2, 0, 1)) == "not_the_leader"
        assert table.ask(third).share
        table.consent(third)  # its claim is cancelled, and the arm is open again
        assert table.ask(fourth).share
        table.commits(fourth, "r1", (2, 0, 1))

    def test_not_before_the_agent_joined(self) -> None:
        table, _, other = self.table()
        held = table.ask(other)
        table.tell(other, held.seq, 1.0)
        newcomer = table.join()
        assert self.refused(table, newcomer, (2, 0, 1)) == "not_the_leader"
        table.commits(newcomer, "r1", (3, 0, 1))

    def test_versions_to_come_and_falling(self) -> None:
        table, agent, other = self.table()
        assert self.refused(table, agent, (3, 0, 1)) == "version_ahead"
        table.work(other, lambda arm: 1.0)
        assert self.refused(table, agent, (3, 0, 1), (2, 0, 1)) == "version_fell"
        table.commits(agent, "r1", (3, 0, 1))
        assert self.refused(table, agent, (2, 0, 1)) == "version_fell"

    def test_an_asked_commit_is_no_report(self) -> None:
        table, agent, other = self.table()
        table.work(other, lambda arm: 1.0)
        assert table.ask(agent).version == 3
        table.commits(agent, "r1", (2, 0, 1), (3, 0, 1))

    def test_until_claim_seconds_after_it_was_superseded(self) -> None:
        table, agent, other = self.table()
        table.now += 100_000
        held = table.ask(other)
        table.tell(other, held.seq, 1.0)
        table.now += 1000
        table.commits(agent, "r1", (2, 0, 1))
        table.now += 1
        assert self.refused(table, agent, (2, 0, 1)) == "version_expired"
        table.commits(agent, "r2", (3, 0, 1))

    def test_to_the_last_millisecond(self) -> None:
        table, agent, other = self.table()
        table.work(other, lambda arm: 1.0)
        table.now += 1000
        table.work(other, lambda arm: 1.0)  # expired versions are forgotten; version 2 has not expired yet
        table.commits(agent, "r1", (2, 0, 1))

    def test_earlier_shares_do_not_count_for_the_board_after_a_consent(self) -> None:
        table = Table(created())
        agent = table.join()
        table.consent(agent, 0, 1)
        table.order()
        target = table.state.target()
        assert target is not None
        assert self.refused(table, agent, (0, target, 1)) == "not_the_leader"

    def test_later_shares_do_not_count_for_the_board_before_a_consent(self) -> None:
        table = Table(created(arms=["a", "b", "c"]))
        first, second, third = tie_order(tie_seed_of(bytes.fromhex(SEED), []), 3)
        agent = table.join(second, third)
        table.order()
        table.consent(agent, first)
        assert self.refused(table, agent, (0, second, 1)) == "not_the_leader"
        table.commits(agent, "r1", (0, first, 1))

    def test_a_claim_that_is_due_lapses_first(self) -> None:
        """A lapse on one arm closes the other, so an agent that shares the other may commit."""
        table, _, _ = self.table()
        one, two = table.join(0), table.join(1)
        assert table.ask(two).share
        table.now += 500
        assert table.ask(one).share
        third = table.join(0)
        assert self.refused(table, third, (2, 0, 1)) == "not_the_leader"
        table.now += 500
        table.commits(third, "r1", (2, 0, 1))
        assert [type(event) for event in table.events[-2:]] == [Lapse, Commit]

    def test_a_report_counts_as_a_whole_or_not_at_all(self) -> None:
        table, agent, _ = self.table()
        assert self.refused(table, agent, (2, 0, 5), (2, 1, 1)) == "not_the_leader"
        assert table.state.members[agent].used == 0


def test_time_never_runs_backwards() -> None:
    table = Table(created())
    agent = table.join(0, 1)
    table.now -= 10_000
    table.ask(agent)
    assert table.events[-1].time == START


def test_snapshots_of_many_arms() -> None:
    table = Table(created(arms=[f"arm {number}" for number in range(1000)], settlement="none", balance="inf"))
    agent = table.join(*range(1000))
    table.work(agent, lambda arm: 1.0)
    table.ask(agent)
    assert kept(State.load(table.state.dump())) == kept(table.state)


def test_a_pull_that_is_not_a_claim_is_looked_up() -> None:
    """The state does not know it; with its rows of the ledger, the same move answers."""
    table = Table(created())
    agent, other = table.join(0, 1), table.join(0, 1)
    claim = table.ask(agent)
    told = table.tell(agent, claim.seq, 0.5)
    assert table.move(moves.tell, agent, claim.seq, 0.5) is None
    handed = table.events[claim.seq - 1]
    commit = Commit(seq=claim.seq, time=0, agent=agent, runs=(), asked=True)

    def again(who: str, reward: float, handed: AnyEvent | None, told: Tell | None) -> Any:
        return table.move(moves.tell, who, claim.seq, reward, PullRows(handed, told))

    assert again(agent, 0.5, handed, told) is told
    assert refused(again, agent, 0.25, handed, told) == (409, "told_differently")
    assert refused(again, other, 0.5, handed, told) == (403, "other_agents_pull")
    assert refused(again, agent, 0.5, handed, None) == (403, "claim_cancelled")
    assert refused(again, other, 0.5, handed, None) == (403, "other_agents_pull")
    assert refused(again, agent, 0.5, commit, None) == (403, "commit_pull")
    assert refused(again, other, 0.5, commit, None) == (403, "other_agents_pull")
    assert refused(again, agent, 0.5, table.events[0], None) == (404, "no_such_pull")
    assert refused(again, agent, 0.5, None, None) == (404, "no_such_pull")
    table.close()
    assert again(agent, 0.5, handed, told) is told, "after the close, too"
    assert refused(again, agent, 0.5, None, None) == (409, "closed")


@pytest.mark.parametrize("reward", [-0.001, 1.001, math.nan, math.inf, -math.inf])
def test_rewards_are_from_0_to_1(reward: float) -> None:
    assert refused(checked_reward, reward) == (422, "invalid_field")


# --- accounts -------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(configurations(("paper", "equal-share", "equal-share-expected", "none")), sequences())
@example(created(arms=["a", "b"], horizon=60), [("join", frozenset({0, 1})), ("many", 150, 0.0, 1.0), ("close",)])
def test_accounts(create: Create, happens: list[Step]) -> None:
    table = played(create, [step for step in happens if step != ("close",)])
    before = inputs(table.state)
    found = settled(before)
    view = settlement_view(before, found)
    closed = table.close()
    after = settlement_view(table.state, settlement_of(table.state))
    assert (after.out and after.out.claims) == (view.out and view.out.claims), "the same claims, in other words"
    same = msgspec.structs.replace(after, closed=False, out=view.out)
    assert same == view, "what is recorded at the close is enough"
    assert closed.profit == view.profit
    assert view.profit + sum(row.net for row in view.rows) == 0
    assert view.charge - view.compensation == view.profit
    assert [row.agent for row in view.rows] == list(table.state.members)
    for row in view.rows:
        own = own_view(view, row.agent)
        assert own.rows == [row]
        assert own.profit == view.profit
        assert row.net == row.compensation - row.charge


def test_inputs_stay_as_they_were() -> None:
    table = Table(created())
    agent = table.join(0, 1)
    table.work(agent, lambda arm: 1.0)
    given = inputs(table.state)
    assert given.board.by_member == {}  # large, and no settlement reads it
    before = settlement_view(given, settled(given))
    table.join(0)
    for _ in range(20):
        table.work(agent, lambda arm: 1.0 - arm)
    assert settlement_view(given, settled(given)) == before


def test_a_turn_is_written_at_the_ledgers_time() -> None:
    table = Table(created())
    assert Turn(table.state, START - 5).now == START
    assert Turn(table.state, START + 5).now == START + 5
