"""Past rewards that members attach: evidence, never pulls."""

from collections.abc import Callable, Hashable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from tests.support.sequences import SECRET, Table, created
from tests.support.strategies import rewards

from partage.board import Board
from partage.ledger import moves
from partage.ledger.chain import GENESIS, line, seal
from partage.ledger.events import FORMAT, AnyEvent, Attach, Close, Draw, Order
from partage.ledger.keys import Key
from partage.ledger.refusals import CODES, Refused
from partage.ledger.settlement import settlement_of
from partage.ledger.signatures import sign
from partage.ledger.state import State
from partage.ledger.tallies import salts_of
from partage.ledger.verify import verify
from partage.ledger.views import agent_view, board_view, collaboration_view
from partage.rules import live_rules

RULES = [
    ("shared-imed", {}),
    ("balanced-etc", {}),
    ("kl-etc", {}),
    ("balanced-glr", {}),
    ("balanced-glr", {"evidence": "betting"}),
]


def table_with(histories: int = 50, **config: Any) -> Table:
    return Table(created(**{"rule": "balanced-glr", "settlement": "pool", "histories": histories, **config}))


def refused(move: Callable[..., Any], *given: Any) -> tuple[int, str]:
    with pytest.raises(Refused) as refusal:
        move(*given)
    assert refusal.value.code in CODES
    return refusal.value.status, refusal.value.code


# --- what they count for --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "parameters"), RULES)
@given(past=st.lists(st.tuples(st.integers(0, 1), st.lists(rewards(), min_size=1, max_size=50)), max_size=2))
@settings(max_examples=25)
def test_the_board_is_that_of_a_rule_that_saw_the_same_rewards(
    rule: str, parameters: dict[str, Any], past: list[tuple[int, list[float]]]
) -> None:
    """The reference: a plain board to which each reward is added, and the rule's own decisions on it."""
    table = table_with(rule=rule, parameters=parameters, arms=["a", "b"])
    members = [table.join(0, 1), table.join(0, 1)]
    for place, (arm, seen) in enumerate(past):
        table.attach(members[place], arm, seen)
    assert table.state.ordered == bool(past)
    table.order()
    board = Board(100, table.state.board.tie_order, [True, True])
    board.shares, board.sharers = dict(table.state.board.shares), [2, 2]
    board.all_pulls = table.state.board.all_pulls
    for place, (arm, seen) in enumerate(past):
        for reward in seen:
            board.broadcast(members[place], arm, reward)
            if parameters:  # bets are made on each reward, in their order
                table.state.rule.revise(board)
        if not parameters:
            table.state.rule.revise(board)
    live = table.state.board
    assert (live.record, live.active, live.state, live.by_member) == (
        board.record,
        board.active,
        board.state,
        board.by_member,
    )
    assert table.state.open_arms() == table.state.rule.open_arms(board)
    for _ in range(20):
        for agent in members:
            answer = table.ask(agent)
            board.clock = live.clock
            arm, share = table.state.rule.decide(board, {0, 1})
            assert (answer.arm, answer.share) == (arm, share)
            if share:
                table.tell(agent, answer.seq, 0.5)
                board.broadcast(agent, arm, 0.5)
                table.state.rule.revise(board)
    assert verify(table.lines()).ok


@pytest.mark.parametrize(
    ("rule", "parameters"), [*RULES, ("balanced-glr", {"tolerate": 1}), ("kl-etc", {"tolerate": 1})]
)
def test_the_rule_decides_once_on_a_history_unless_it_bets_on_each_reward(
    rule: str, parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_with(rule=rule, parameters=parameters)
    members = [table.join(0, 1), table.join(0, 1)]
    decided: list[State] = []
    revise = State.revise
    monkeypatch.setattr(State, "revise", lambda state: (decided.append(state), revise(state)))
    for agent in members:
        table.attach(agent, 0, [0.5] * 40)
    assert len(decided) == (80 if "evidence" in parameters else 2)
    answer = table.ask(members[0])
    decided.clear()
    table.tell(members[0], answer.seq, 0.5)
    assert len(decided) == 1


def test_they_are_evidence_and_nobodys_pulls() -> None:
    table = table_with(horizon=1000, prepaid=10.0)
    one, other = table.join(0, 1), table.join(0, 1)
    table.attach(one, 0, [1.0] * 50)
    table.attach(one, 1, [0.0] * 50)
    state = table.state
    assert state.board.counts == [50, 50]
    assert not state.board.active[1], "50 against 50 settle it"
    member = state.members[one]
    assert (member.explore, member.used, member.horizon_left) == ({}, 0, 1000)
    assert state.board.clock == state.pulls_made == 0
    assert state.board.all_pulls == 2000
    shown = board_view(state)
    assert [(arm.broadcasts, arm.attached) for arm in shown.arms] == [(50, 50), (50, 50)]
    assert shown.notes == ["Past rewards that members attached, for which nobody is paid: a 50, b 50."]
    assert agent_view(state, table.now, one).attached == {"a": 50, "b": 50}
    assert collaboration_view(state).histories == 50
    assert "up to 50 past rewards" in collaboration_view(state).terms
    table.follow(other, "r", 7)
    table.close()
    closed = table.events[-1]
    assert isinstance(closed, Close)
    assert closed.explore == (0, 0)
    found = settlement_of(state)
    assert {(account.compensation, account.charge) for account in found.accounts} == {(0, 0)}
    for reader in (None, one, other):
        verdict = verify(table.lines(reader), agent=reader)
        assert verdict.ok
        assert any("100 past rewards" in sentence for sentence in verdict.trusted)


def test_explore_pulls_are_paid_at_rates_that_past_rewards_determine() -> None:
    table = table_with(horizon=1000, prepaid=10.0, value=1.0)
    one, other = table.join(0, 1), table.join(0, 1)
    table.attach(one, 0, [1.0] * 50)
    answer = table.ask(other)
    assert (answer.arm, answer.share) == (1, True), "what the history lacks is explored"
    table.tell(other, answer.seq, 0.0)
    while table.state.board.active[1]:
        table.work(other, lambda arm: float(not arm))
    pulls = table.state.members[other].explore[1]
    table.close()
    accounts = settlement_of(table.state).accounts
    assert accounts[1].compensation == pulls * 1_000_000
    assert accounts[0].compensation == 0
    assert verify(table.lines()).ok


def test_a_set_aside_takes_them_out() -> None:
    table = table_with()
    one, other = table.join(0, 1), table.join(0, 1)
    table.attach(one, 0, [1.0] * 50)
    table.attach(one, 1, [0.0] * 50)
    table.attach(other, 1, [0.5] * 3)
    table.set_aside(one)
    assert table.state.board.counts == [0, 3]
    assert table.state.attached() == [0, 3]
    assert all(table.state.board.active)
    assert State.load(table.state.dump()).attached() == [0, 3]
    assert verify(table.lines()).ok
    assert refused(table.attach, one, 0, [1.0])[1] == "history_attached"


# --- bounded influence ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["balanced-glr", "kl-etc"])
def test_where_members_may_lie_they_weigh_no_more_than_broadcasts(rule: str) -> None:
    """One member's past rewards enter the record as the others tell: it never has more than one more than another."""
    table = table_with(rule=rule, parameters={"tolerate": 1}, horizon=1000)
    agents = [table.join(0, 1) for _ in range(4)]
    table.attach(agents[0], 0, [0.0] * 50)
    table.attach(agents[0], 1, [1.0] * 50)
    by_member = table.state.board.by_member
    assert by_member[agents[0]].counts == [1, 1]
    for _ in range(30):
        for agent in agents[1:]:
            table.work(agent, lambda arm: float(not arm))
        for arm in (0, 1):
            told = sorted(by_member[agent].counts[arm] for agent in agents[1:] if agent in by_member)
            assert by_member[agents[0]].counts[arm] <= (told[-1] if told else 0) + 1
    assert by_member[agents[0]].counts[0] > 5, "they do enter"
    assert table.state.target() == 0
    loaded = State.load(table.state.dump())
    assert loaded.attached() == table.state.attached()
    assert loaded.past == table.state.past
    assert verify(table.lines()).ok
    assert verify(table.lines(agents[1]), agent=agents[1]).ok


def test_what_enters_is_computed_once_and_for_the_arm_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []
    handed_to = Board.handed_to

    def counted(board: Board, member: Hashable, arm: int) -> int:
        looked_at.append(arm)
        return handed_to(board, member, arm)

    table = table_with(200, rule="balanced-glr", parameters={"tolerate": 4}, arms=["a", "b", "c"])
    agents = [table.join(0, 1, 2) for _ in range(8)]
    for agent in agents[:4]:
        table.attach(agent, 0, [0.5] * 200)
    table.attach(agents[0], 1, [0.5] * 200)
    monkeypatch.setattr(Board, "handed_to", counted)
    table.attach(agents[4], 0, [0.5] * 190)
    assert table.state.board.counts[0] == 4 * 191 + 190
    assert len(looked_at) <= 2 * len(agents)
    claim = table.ask(agents[7])
    looked_at.clear()
    table.tell(agents[7], claim.seq, 0.5)
    assert set(looked_at) <= {claim.arm}


@settings(max_examples=30)
@given(
    lie=st.lists(st.tuples(st.integers(0, 1), st.lists(rewards(), min_size=1, max_size=50)), min_size=1, max_size=2),
    settlement=st.sampled_from(["pool", "dues", "equal-share"]),
    told=st.lists(rewards(), min_size=30, max_size=30),
)
def test_an_attached_lie_moves_no_money_beyond_the_stated_bounds(
    lie: list[tuple[int, list[float]]], settlement: str, told: list[float]
) -> None:
    limit = {"underwriting": 0.25} if settlement == "equal-share" else {"prepaid": 0.5}
    table = table_with(settlement=settlement, horizon=40, value=1.0, **limit)
    liar, honest = table.join(0, 1), table.join(0, 1)
    for arm, seen in dict(lie).items():
        table.attach(liar, arm, seen)
    for reward in told:
        for agent in (liar, honest):
            table.work(agent, lambda arm, reward=reward: reward)
    table.close()
    found = settlement_of(table.state)
    assert found.profit + sum(account.net for account in found.accounts) == 0
    assert found.profit >= -250_000
    if settlement != "equal-share":
        assert found.profit >= 0
        assert all(account.net >= -500_000 for account in found.accounts)
        explored = sum(table.state.members[liar].explore.values())
        assert found.accounts[0].compensation <= explored * 1_000_000
    assert verify(table.lines()).ok


# --- ties -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_ties_between_histories_are_broken_by_the_tie_order(seed: int) -> None:
    """Two arms with the same rewards beat the third, and which of them leads the tie order says."""
    table = table_with(200, tie_seed=f"{seed:032x}", arms=["a", "b", "c"], horizon=1000)
    agent = table.join(0, 1, 2)
    for arm, reward in ((0, 1.0), (1, 1.0), (2, 0.0)):
        table.attach(agent, arm, [reward] * (3 if arm == 0 else 200))
    board = table.state.board
    reference = Board(1000, board.tie_order, [True] * 3)
    for arm, reward in ((0, 1.0), (1, 1.0), (2, 0.0)):
        for _ in range(3 if arm == 0 else 200):
            reference.broadcast(agent, arm, reward)
        table.state.rule.revise(reference)
    assert board.active == reference.active
    assert table.state.target() == next(arm for arm in board.tie_order if arm < 2)


def test_the_draw_waits_for_nonces_before_a_history_is_taken() -> None:
    table = table_with()
    agent, other = table.join(0, nonce=b"1" * 16), table.join(0, nonce=b"2" * 16)
    assert refused(table.attach, agent, 1, [1.0])[1] == "not_shared"
    assert len(table.events) == 3, "what is refused draws nothing"
    assert refused(table.attach, agent, 0, [1.0], "mine") == (409, "order_pending")
    assert isinstance(table.events[-1], Draw)
    table.reveal(agent, b"1" * 16)
    assert refused(table.attach, agent, 0, [1.0], "mine") == (409, "order_pending")
    table.reveal(other, b"2" * 16)
    table.attach(agent, 0, [1.0], "mine")
    assert [type(event) for event in table.events[-2:]] == [Order, Attach]
    assert verify(table.lines()).ok


# --- who may attach what, and when ----------------------------------------------------------------------------


def test_what_is_refused() -> None:
    table = table_with(5)
    agent, other = table.join(0), table.join(0, 1)
    assert refused(table.attach, agent, 1, [1.0]) == (403, "not_shared")
    assert refused(table.attach, agent, 0, [1.0] * 6) == (422, "invalid_field")
    table.attach(agent, 0, [1.0] * 5)
    assert refused(table.attach, agent, 0, [1.0]) == (409, "history_attached")
    table.ask(other)
    assert refused(table.attach, other, 0, [1.0]) == (409, "has_pulled")
    late = table.join(0)
    table.attach(late, 0, [0.5])
    table.leave(late)
    assert refused(table.attach, late, 0, [0.5]) == (409, "left")
    gone = table.join(0)
    table.set_aside(gone)
    assert refused(table.attach, gone, 0, [0.5]) == (409, "set_aside")
    table.close()
    assert refused(table.attach, agent, 0, [1.0]) == (409, "closed")


def test_who_committed_has_pulled() -> None:
    table = table_with()
    agent = table.join(0)
    table.follow(agent, "r", 1)
    assert refused(table.attach, agent, 0, [1.0]) == (409, "has_pulled")


@pytest.mark.parametrize("format", [FORMAT, 6, 5, UNSET])
def test_only_if_it_was_declared(format: Any) -> None:
    config = {"settlement": "none", "rule": "balanced-glr"}
    table = Table(created(format=format, **config))
    agent = table.join(0)
    assert refused(table.attach, agent, 0, [1.0]) == (409, "no_histories")
    if format != FORMAT:
        assert created(format=format, histories=5, **config).histories is UNSET


def test_a_repeated_request_changes_nothing_and_is_never_forgotten() -> None:
    table = table_with(horizon=2000)
    agent = table.join(0, 1)
    first = table.attach(agent, 0, [0.25, 0.5], "mine")
    for number in range(300):
        table.commits(agent, f"r{number}", unnamed=1)
    written = len(table.events)
    assert table.attach(agent, 0, [0.25, 0.5], "mine") == first
    assert State.load(table.state.dump()).members[agent].attached[0] == first
    assert len(table.events) == written
    assert (first.seq, first.version, first.rewards) == (4, 1, 2)
    assert refused(table.attach, agent, 0, [0.25, 0.75], "mine") == (409, "request_reused")
    assert refused(table.attach, agent, 1, [0.5], "mine") == (409, "request_reused")
    assert refused(table.attach, agent, 1, [0.5], "r299") == (409, "request_reused")
    other = table.join(0)
    table.attach(other, 0, [0.5], "its own")
    assert refused(table.ask, other, "its own") == (409, "request_reused")


def test_a_claim_that_was_not_reported_is_not_answered_by_past_rewards() -> None:
    table = table_with(claim_seconds=1.0)
    agent, other = table.join(0, 1), table.join(0, 1)
    for _ in range(3):
        assert table.ask(agent, explore_only=True).share
        table.now += 1001
    table.ask(agent)
    before = list(table.state.board.lapses)
    table.attach(other, 0, [1.0])
    table.attach(other, 1, [1.0])
    assert table.state.board.lapses == before
    assert sum(before) == 3


def test_they_are_signed_where_members_sign() -> None:
    table = table_with(signed=True)
    key = Key(b"k" * 32)

    def made(number: int, kind: str, move: Callable[..., Any], *given: Any, **stated: Any) -> Any:
        turn = moves.Turn(table.state, table.now)
        turn.signed = sign(key, kind, "c1", number, **stated)
        found = move(turn, *given)
        for event in turn.events:
            table._keep(event)
        return found

    stated = {"name": "Ada", "shares": ["a"], "key": key.public, "tie_commitment": None}
    made(1, "join", moves.join, "Ada", (0,), "i", UNSET, key.public, **stated)
    assert refused(table.attach, "a1", 0, [0.5]) == (403, "signature_required")
    table.order()
    right = {"agent": "a1", "request": None, "arm": "a", "rewards": [0.5]}
    with pytest.raises(Refused, match="signature"):
        made(2, "attach", moves.attach, "a1", 0, [0.25], **right)
    made(2, "attach", moves.attach, "a1", 0, [0.5], **right)
    assert verify(table.lines()).ok
    events = [*table.events]
    events[-1] = msgspec.structs.replace(events[-1], rewards=(0.75,))
    assert "signature" in problem(events)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"rule": "balanced-etc", "settlement": "paper", "underwriting": 1.0}, "histories"),
        ({"rule": "network-glr", "settlement": "pool"}, "histories"),
        ({"histories": 1001}, "histories"),
        ({"histories": -1}, "histories"),
    ],
)
def test_configurations_that_take_no_histories(config: dict[str, Any], field: str) -> None:
    with pytest.raises(Refused) as refusal:
        table_with(**config)
    assert refusal.value.field == field


def test_every_other_rule_and_settlement_takes_them() -> None:
    for name, rule in live_rules().items():
        for settlement in rule().settlements:
            if name != "network-glr" and settlement != "paper":
                assert created(rule=name, settlement=settlement, histories=9).histories == 9


# --- forged ledgers -------------------------------------------------------------------------------------------


def problem(events: list[AnyEvent], reader: str | None = None) -> str:
    """What is wrong with these events, after all hashes were computed again."""
    head, lines = GENESIS, []
    for event in events:
        row = seal(event, head)
        head = row.head
        lines.append(line(row, event, reader, salts_of(SECRET, ["a1", "a2"])))
    found = verify(lines, agent=reader)
    return "" if found.problem is None else found.problem.sentence


def a_game() -> Table:
    table = table_with(horizon=400, prepaid=1.0)
    one, other = table.join(0, 1), table.join(0)
    table.attach(one, 0, [1.0] * 20 + [0.0])
    table.attach(one, 1, [0.0] * 20, "r")
    for _ in range(20):
        table.work(other, lambda arm: 1.0)
        table.work(one, lambda arm: float(not arm))
    table.close()
    return table


FIRST, SECOND = 4, 5  # the indices of the attaches


@pytest.mark.parametrize("reader", [None, "a2"])
@pytest.mark.parametrize(
    ("where", "fields", "says"),
    [
        (SECOND, {"rewards": (1.0,) * 20}, "does not follow"),  # a changed reward
        (SECOND, {"active": (0, 1)}, "active"),
        (SECOND, {"active": (1,)}, "active"),
        (SECOND, {"version": 7}, "other contents"),
        (SECOND, {"rewards": (0.0,) * 51}, "at most 50"),
        (SECOND, {"rewards": (1.5,)}, "from 0 to 1"),
        (SECOND, {"rewards": ()}, "list of 1"),
        (SECOND, {"arm": 0}, "once"),
        (SECOND, {"arm": 2}, "does not have"),
        (SECOND, {"agent": "a2"}, "do not share"),
        (SECOND, {"agent": "a9"}, "not joined"),
        (0, {"histories": UNSET}, "takes no past rewards"),
        (0, {"histories": 10}, "at most 10"),
        (0, {"histories": 0}, "never creates"),
        (0, {"histories": 2000}, "histories"),
        (0, {"format": 6}, ""),
        (-1, {"explore": (41, 20)}, "explore pulls"),  # counted as explore pulls
    ],
)
def test_forgeries(where: int, fields: dict[str, Any], says: str, reader: str | None) -> None:
    table = a_game()
    events = [*table.events]
    assert isinstance(events[FIRST], Attach)
    assert isinstance(events[SECOND], Attach)
    assert problem(events, reader) == ""
    events[where] = msgspec.structs.replace(events[where], **fields)
    found = problem(events, reader)
    assert found
    assert says in found


def test_an_attach_before_the_tie_order_is_found() -> None:
    events = [*a_game().events]
    assert isinstance(events[FIRST - 1], Order)
    events[FIRST - 1 : SECOND + 1] = [events[FIRST], events[SECOND], events[FIRST - 1]]
    events = [msgspec.structs.replace(event, seq=place) for place, event in enumerate(events, 1)]
    assert "tie order" in problem(events)


def test_an_attach_after_a_pull_is_found() -> None:
    table = a_game()
    events = [*table.events]
    moved = events.pop(SECOND)
    events.insert(len(events) - 1, moved)
    events = [msgspec.structs.replace(event, seq=place) for place, event in enumerate(events, 1)]
    assert problem(events)
