"""What the board says about a record that cannot be compared, and the close about claims that are out."""

import pytest
from tests.support.sequences import Table, created

from partage.cli.collaboration import _still_out
from partage.ledger import moves
from partage.ledger.config import Config, checked_config
from partage.ledger.outstanding import out_view
from partage.ledger.refusals import Refused
from partage.ledger.settlement import settlement_of, settlement_view
from partage.ledger.state import State
from partage.ledger.views import board_view

SEED = "0" * 32
ARMS = ["SMS", "Mail", "Letter"]


def table(rule: str = "network-glr", settlement: str = "pool", **config: object) -> Table:
    return Table(created(SEED, arms=ARMS, rule=rule, settlement=settlement, horizon=1000, **config))


def test_arms_that_nobody_compares_are_named_until_somebody_does() -> None:
    live = table()
    assert board_view(live.state).notes == []
    live.join(0, 1)
    assert board_view(live.state).notes == [], "nobody shares Letter at all, which the board shows already"
    live.join(2)
    sentence = "Nobody shares both Letter and any other arm: contrasts with it are unknown until somebody does."
    assert board_view(live.state).notes == [sentence]
    live.join(1, 2)
    assert board_view(live.state).notes == []


def test_other_rules_need_no_connection() -> None:
    live = table("balanced-glr")
    live.join(0)
    live.join(1, 2)
    assert board_view(live.state).notes == []


def test_the_board_says_that_nothing_shows_whether_members_agree() -> None:
    live = table("balanced-etc", balance=1.0)
    first, second = live.join(0), live.join(1)
    said = []
    for _ in range(12):
        for agent in (first, second):
            answer = live.ask(agent)
            if answer.share:
                live.tell(agent, answer.seq, 0.5)
        said.append((sum(live.state.board.counts), board_view(live.state).notes))
    sentence = "No two members have told the same arm, so nothing shows whether they agree."
    assert all(notes == ([sentence] if told >= 20 else []) for told, notes in said)
    assert said[-1][0] >= 20
    third = live.join(0, 1)
    while not (answer := live.ask(third)).share:
        pass
    live.tell(third, answer.seq, 0.5)
    assert board_view(live.state).notes == []


@pytest.mark.parametrize(("settlement", "end"), [("pool", ", and are not paid for."), ("none", ".")])
def test_the_close_says_what_is_out(settlement: str, end: str) -> None:
    live = table("balanced-glr", settlement, claim_seconds=60.0)
    agents = [live.join(0, 1, 2) for _ in range(6)]
    assert out_view(live.state) is None
    live.ask(agents[0])
    live.now += 61_000
    live.move(moves.lapse)
    asked = [live.ask(agent) for agent in agents[1:]]
    assert all(one.share for one in asked)
    arms = [ARMS[one.arm] for one in asked]
    named = ", ".join(f"of {live.state.members[agents[place + 1]].name} for {arms[place]}" for place in range(3))
    subject = f"The rewards {named}, of 2 more, and of 1 lapsed claim"
    view = settlement_view(live.state, settlement_of(live.state))
    assert view.out is not None
    assert view.out.text == f"{subject} are still out."
    assert [one.agent for one in view.out.claims] == agents[1:]
    assert board_view(live.state).notes == []
    live.close()
    for state in (live.state, State.load(live.state.dump())):
        view = settlement_view(state, settlement_of(state))
        assert view.out is not None
        assert view.out.text == f"{subject} were not told before the close{end}"
        assert board_view(state).notes == [view.out.text]


def test_a_close_with_nothing_out_says_nothing() -> None:
    live = table("balanced-glr")
    agent = live.join(0, 1)
    live.tell(agent, live.ask(agent).seq, 1.0)
    live.close()
    assert settlement_view(live.state, settlement_of(live.state)).out is None
    assert board_view(live.state).notes == []


def test_network_glr_takes_no_more_arms_than_it_compares() -> None:
    def config(arms: int) -> Config:
        return Config(name="Many", arms=[f"arm {number}" for number in range(arms)], horizon=100, rule="network-glr")

    assert len(checked_config(config(32))["arms"]) == 32
    with pytest.raises(Refused, match="There are 33 arms; the rule network-glr compares 32 at most") as refused:
        checked_config(config(33))
    assert (refused.value.field, refused.value.code) == ("arms", "too_many_arms")


def test_the_question_before_a_close_names_open_claims() -> None:
    live = table("balanced-glr")
    agents = [live.join(0, 1) for _ in range(2)]
    assert _still_out(board_view(live.state)) == ""
    arm = ARMS[live.ask(agents[1]).arm]
    name = live.state.members[agents[1]].name
    assert _still_out(board_view(live.state)) == f" The rewards of {name} for {arm} are still out."
