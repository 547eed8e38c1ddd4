"""Members who declare their own horizon and pace (format 6), and arms whose sharers have no pulls left."""

from typing import Any

import msgspec
import pytest
from tests.support.sequences import START, Table, created

from partage.ledger.chain import GENESIS, line, seal
from partage.ledger.events import FORMAT, AnyEvent, Claim, Close, Commit, Join, UsedUp
from partage.ledger.refusals import CODES, Refused
from partage.ledger.settlement import settlement_of
from partage.ledger.state import State
from partage.ledger.verify import Verified, verify
from partage.ledger.views import agent_view, board_view

HOUR = 3_600_000  # ms


def refusal(table: Table, **declared: Any) -> Refused:
    """The refusal of a member who declares this."""
    with pytest.raises(Refused) as found:
        table.join(0, **declared)
    assert found.value.code in CODES
    return found.value


def verdict(events: list[AnyEvent], reader: str | None = None) -> Verified:
    """What `verify` says of a ledger with these events."""
    head, lines = GENESIS, []
    for event in events:
        row = seal(event, head)
        head = row.head
        lines.append(line(row, event, reader, {}))
    return verify(lines, agent=reader)


def exhausted(**config: Any) -> Table:
    """A collaboration in which the only sharer of arm c has used the two pulls of its horizon."""
    table = Table(created(arms=["a", "b", "c"], **config))
    able, brief = table.join(0, 1), table.join(2, horizon=2)
    table.now += 1
    for agent in (able, able, brief, able, able, brief, able, able):
        table.work(agent, lambda arm: 1.0 if arm else 0.0)
    return table


def test_a_member_has_the_horizon_that_it_declared() -> None:
    table = Table(created(horizon=100))
    brief, other = table.join(0, 1, horizon=3, pace=4.5), table.join(0, 1)
    assert [table.state.members[one].horizon for one in (brief, other)] == [3, 100]
    assert table.state.board.all_pulls == 103
    assert table.state.board.horizon == 100, "rules keep the collaboration's"
    for _ in range(3):
        table.work(brief, lambda arm: 1.0)
    with pytest.raises(Refused, match="All 3 pulls of the horizon are used"):
        table.ask(brief)
    view = agent_view(table.state, table.now, brief)
    assert (view.horizon, view.horizon_left, view.pace) == (3, 0, 4.5)
    assert agent_view(table.state, table.now, other).horizon_left == 100


def test_commits_count_against_the_declared_horizon() -> None:
    table = Table(created(horizon=100, rule="balanced-etc", settlement="none"))
    table.join(0, 1)
    brief = table.join(horizon=5)
    table.commits(brief, "all", unnamed=5)
    with pytest.raises(Refused, match="0 of 5"):
        table.commits(brief, "more", unnamed=1)


@pytest.mark.parametrize("horizon", [1, 0, -4, 101, 10**15])
def test_a_horizon_beyond_the_collaborations_is_refused(horizon: int) -> None:
    found = refusal(Table(created(horizon=100)), horizon=horizon)
    assert (found.status, found.code, found.field) == (422, "invalid_field", "horizon")
    assert found.sentence == "Your horizon must be a whole number from 2 to the collaboration's, 100."


@pytest.mark.parametrize("pace", [0.0, -1.0, 1e10, float("nan"), float("inf")])
def test_a_pace_is_a_number_above_0(pace: float) -> None:
    found = refusal(Table(created()), pace=pace)
    assert (found.status, found.field) == (422, "pace")


@pytest.mark.parametrize("declared", [{"horizon": 5}, {"pace": 1.0}])
def test_earlier_terms_know_neither(declared: dict[str, Any]) -> None:
    assert refusal(Table(created(format=5)), **declared).code == "earlier_terms"


def test_the_board_says_when_it_ends_by_the_declared_paces() -> None:
    table = Table(created(horizon=100))
    assert board_view(table.state).ends is None
    table.join(0, pace=10.0)
    assert board_view(table.state).ends == START + 10 * HOUR
    table.join(1, horizon=30, pace=0.5)
    assert board_view(table.state).ends == START + 60 * HOUR
    table.join()  # shares nothing, so nobody waits for it
    assert board_view(table.state).ends == START + 60 * HOUR
    table.join(0)
    assert board_view(table.state).ends is None, "one of them declared no pace"


@pytest.mark.parametrize("pace", [5e-324, 1e-300, 1e-9])
def test_the_slowest_pace_ends_on_no_day(pace: float) -> None:
    table = Table(created(horizon=10**15))
    table.join(0, pace=pace)
    assert board_view(table.state).ends is None


def test_no_other_arm_waits_for_one_whose_sharers_have_no_pulls_left() -> None:
    table = exhausted()
    assert not table.ask("a1").share, "in the same millisecond the ledger does not say so yet"
    table.now += 1
    assert table.ask("a1").share
    assert [event.arms for event in table.events if isinstance(event, UsedUp)] == [(2,)]
    shown = board_view(table.state).arms[2]
    assert (shown.used_up, shown.stalled, shown.open) == (True, True, True)


def test_a_late_report_does_not_make_others_wait_again() -> None:
    table = Table(created(arms=["a", "b", "c"]))
    able, brief = table.join(0, 1), table.join(2, horizon=2)
    table.work(brief, lambda arm: 0.0)
    table.work(able, lambda arm: 1.0)
    table.work(able, lambda arm: 1.0)
    last = table.ask(brief)
    table.now += 1
    for _ in range(8):
        assert table.work(able, lambda arm: 1.0).share
    table.tell(brief, last.seq, 0.0)
    assert table.state.board.stalled(2)
    table.now += 1
    assert table.ask(able).share


@pytest.mark.parametrize("settlement", ["none", "paper"])
def test_another_sharer_makes_others_wait_again(settlement: str) -> None:
    table = exhausted(settlement=settlement)
    table.now += 1
    table.work("a1", lambda arm: 1.0)
    table.work("a1", lambda arm: 1.0)
    another = table.join(2)
    assert not table.state.used_up
    assert not table.state.board.stalled(2)
    table.work(another, lambda arm: 0.0)
    assert not table.ask("a1").share
    table.leave(another)
    table.now += 1
    assert table.ask("a1").share, "who stays has no pulls left"
    assert verify(table.lines()).ok


def test_in_earlier_formats_others_go_on_waiting() -> None:
    table = Table(created(arms=["a", "b"], horizon=2, format=5))
    able, brief = table.join(0), table.join(1)
    for agent in (able, brief, brief):
        table.work(agent, lambda arm: 1.0 - arm)
    table.now += 1
    table.ask(able)
    assert not any(isinstance(event, UsedUp) for event in table.events)
    assert verify(table.lines()).ok


def test_a_snapshot_keeps_it() -> None:
    table = exhausted()
    table.now += 1
    before = State.load(table.state.dump())
    assert before.due_used_up(table.now) == [2]
    table.ask("a1")
    after = State.load(table.state.dump())
    assert (after.used_up, after.idle, after.board.lapses) == ({2}, table.state.idle, table.state.board.lapses)
    assert after.due_used_up(table.now) == []


@pytest.mark.parametrize("reader", [None, "a1", "a2", "a3"])
def test_the_ledger_and_every_copy_verify(reader: str | None) -> None:
    table = exhausted(settlement="equal-share", rule="balanced-glr")
    committer = table.join(2, horizon=40)
    table.now += 1
    while table.state.members[committer].horizon_left:
        if not table.work(committer, lambda arm: 0.0).share:
            table.follow(committer, f"of {table.state.seq}", table.state.members[committer].horizon_left)
    table.now += 1
    table.work("a1", lambda arm: 1.0)
    assert any(isinstance(event, UsedUp) for event in table.events)
    table.close()
    assert settlement_of(table.state).accounts[1].charge <= table.state.members["a2"].horizon * 10**6
    found = verify(table.lines(reader), agent=reader)
    assert found.ok, found.problem


def without(kind: type) -> Any:
    """Leave out the first event of this kind, and number the others anew."""

    def forge(events: list[AnyEvent]) -> list[AnyEvent]:
        place = next(at for at, event in enumerate(events) if isinstance(event, kind))
        rest = [msgspec.structs.replace(event, seq=event.seq - 1) for event in events[place + 1 :]]
        return events[:place] + rest

    return forge


def changed(kind: type, **fields: Any) -> Any:
    """Change the first event of this kind."""

    def forge(events: list[AnyEvent]) -> list[AnyEvent]:
        place = next(at for at, event in enumerate(events) if isinstance(event, kind))
        return [*events[:place], msgspec.structs.replace(events[place], **fields), *events[place + 1 :]]

    return forge


@pytest.mark.parametrize(
    "forge",
    [
        without(UsedUp),
        changed(UsedUp, arms=()),
        changed(UsedUp, arms=(0,)),
        changed(UsedUp, arms=(0, 2)),
        changed(UsedUp, arms=(2, 7)),
        changed(Join, horizon=1),
        changed(Join, horizon=1000),
        changed(Join, pace=-1.0),
    ],
)
def test_a_forged_ledger_is_found(forge: Any) -> None:
    table = exhausted()
    table.now += 1
    table.work("a1", lambda arm: 1.0)
    assert verdict(table.events).ok
    assert not verdict(forge(table.events)).ok


def test_a_member_with_pulls_left_finds_that_its_arm_is_called_used_up() -> None:
    """On a copy that hides commits, only the owner's own pulls are known for certain."""
    table = Table(created(arms=["a", "b"], horizon=50, rule="balanced-glr", settlement="equal-share"))
    one, other = table.join(0), table.join(1)
    for _ in range(3):
        table.work(one, lambda arm: 1.0)
        table.work(other, lambda arm: 0.0)
    events = [*table.events]
    hides = Commit(
        seq=len(events) + 1, time=table.now, format=FORMAT, agent=one, runs=(), request="hidden", unnamed=1
    )
    forged = UsedUp(seq=len(events) + 2, time=table.now, format=FORMAT, arms=(1,))
    found = verdict([*events, hides, forged], reader=other)
    assert found.problem is not None
    assert "no pulls left" in found.problem.sentence


def test_a_close_does_not_depend_on_it() -> None:
    table = exhausted()
    table.close()
    assert isinstance(table.events[-1], Close)
    assert verify(table.lines()).ok


def spent_by_commits(settlement: str) -> Table:
    """A collaboration in which both sharers of arm c used their horizons by commits, which a1 does not see."""
    table = Table(created(arms=["a", "b", "c"], settlement=settlement))
    able, *others = table.join(0, 1), table.join(2, horizon=12), table.join(2, horizon=12)
    table.now += 1
    for agent in (able, able, *others, able, able):
        table.work(agent, lambda arm: 0.5)
    for agent in others:
        while table.work(agent, lambda arm: 0.5).share:
            pass
        table.follow(agent, f"rest of {agent}", table.state.members[agent].horizon_left)
    table.now += 1
    for _ in range(6):
        table.work(able, lambda arm: 0.5)
    assert table.state.used_up == {2}
    return table


@pytest.mark.parametrize("settlement", ["none", "paper"])
@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.join(2),
        lambda table: (table.consent("a2"), table.consent("a2", 0, 2)),
        lambda table: (table.leave("a2"), table.leave("a3"), table.join(2)),
    ],
    ids=["another joins", "one withdraws and returns", "both leave"],
)
def test_what_follows_does_not_depend_on_hidden_commits(settlement: str, change: Any) -> None:
    table = spent_by_commits(settlement)
    change(table)
    for _ in range(3):
        table.now += 1
        for agent in [agent for agent, member in table.state.members.items() if member.able]:
            for _ in range(4):
                table.work(agent, lambda arm: 0.5)
    for reader in (None, *table.state.members):
        found = verify(table.lines(reader), agent=reader)
        assert found.ok, (reader, found.problem)
        assert any("used-up" in sentence for sentence in found.trusted) == (reader is not None)


def test_who_has_no_pulls_left_is_handed_no_claim() -> None:
    """A copy that hides commits finds a claim of somebody who, as the ledger says, has no pulls left."""
    table = spent_by_commits("paper")
    last = len(table.events)
    forged = Claim(seq=last + 1, time=table.now, format=FORMAT, agent="a2", arm=2, request="more")
    assert not verdict([*table.events, forged], reader="a1").ok


def test_whoever_withdraws_an_arm_and_shares_it_again_keeps_its_lapses() -> None:
    """Otherwise a member could let others wait for ever, if somebody without pulls left shares the arm too."""
    table = spent_by_commits("none")
    mute = table.join(2)
    for lapses in (1, 2, 3):
        table.now += 1
        assert table.ask(mute).arm == 2
        table.consent(mute)
        table.now += 1
        assert table.ask("a1").share, "only who has no pulls left shares it"
        table.consent(mute, 2)
        assert table.state.board.lapses[2] == lapses
        assert table.state.board.stalled(2) == (lapses == 3)
    assert verify(table.lines()).ok
