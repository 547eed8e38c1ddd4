"""Live play equals simulated play: the same schedule, with paces, horizons, delays, lapses, joins and leaves."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.schedule import Schedule, words_of
from tests.support.sequences import balances, parameters

from partage.arms import Bernoulli, bernoulli
from partage.engine.reference import play_reference
from partage.game import Game
from partage.ledger.config import live_rule
from partage.ledger.verify import verify
from partage.rules import live_rules
from partage.sharing import Sharing
from partage.traits import Change, Delay, Traits

# Times are exact in milliseconds for these.
PACES = st.sampled_from([1.0, 1.0, 2.0, 0.5, 0.125, 4.0])
DELAYS = st.one_of(
    st.sampled_from([0.0, 0.0, 1.0, 2.5, 3.5]),
    st.builds(
        Delay,
        st.sampled_from(["constant", "uniform", "exponential"]),
        st.sampled_from([0.5, 3.0]),
        st.sampled_from(["all", "successes", "failures"]),
    ),
)
SEEDS = st.integers(0, 2**128 - 1).map("{:032x}".format)


@st.composite
def uneven_games(draw: st.DrawFn) -> Game:
    """Games in which one agent shares all arms and stays, so that no arm is private."""
    arms, agents, horizon = draw(st.integers(2, 3)), draw(st.integers(1, 4)), draw(st.integers(40, 90))
    shares = [list(range(arms))] + [draw(st.sets(st.integers(0, arms - 1))) for _ in range(agents - 1)]
    traits = []
    for agent in range(agents):
        joins = draw(st.sampled_from([1, 1, 5, 20])) if agent else 1
        traits.append(
            Traits(
                pace=draw(PACES),
                horizon=draw(st.sampled_from([None, None, 30, 16])),
                delay=draw(DELAYS),
                offset=draw(st.sampled_from([0.0, 0.0, 0.1])),
                joins=joins,
                leaves=draw(st.sampled_from([None, None, joins + 15])) if agent else None,
            )
        )
    changes = draw(st.sampled_from([(), (Change(15, 0, Bernoulli(0.1)),)]))
    claim_steps = draw(st.sampled_from([None, 0.5, 2.0, 5.0]))
    means = [0.8, 0.3, 0.5][:arms]
    game = Game(bernoulli(means), Sharing.lists(shares, arms), horizon, None, traits, (), claim_steps)
    return replace(game, changes=changes) if game.last_step >= 15 else game


def both(game: Game, seed: str, rule: str, **config: Any) -> Schedule:
    """Play a game through the moves of the ledger and by the reference, and check that they agree."""
    schedule = Schedule(game, seed, rule=rule, **config)
    live, simulated = schedule.played(), play_reference(game, schedule.table.state.rule, words_of(seed))
    for name, found in vars(simulated).items():
        mine = getattr(live, name)
        assert (mine is None) == (found is None), name
        assert mine is None or (mine == found).all(), (name, mine, found)
    return schedule


@settings(max_examples=80)
@given(game=uneven_games(), seed=SEEDS, data=st.data(), rule=st.sampled_from(list(live_rules())))
@pytest.mark.parametrize("settlement", ["none", "equal-share"])
def test_the_ledger_plays_what_the_reference_plays(
    settlement: str, game: Game, seed: str, data: st.DataObject, rule: str
) -> None:
    config = {"balance": data.draw(balances(rule)), "parameters": data.draw(parameters(rule))}
    if settlement not in live_rule(rule, config["balance"], config["parameters"]).settlements:
        settlement = "none"
    schedule = both(game, seed, rule, settlement=settlement, **config)
    schedule.table.close()
    found = verify(schedule.table.lines())
    assert found.ok, found.problem
    found = verify(schedule.table.lines("a1"), agent="a1")
    assert found.ok, found.problem


@pytest.mark.parametrize("seed", range(8))
def test_rewards_of_members_whose_horizons_are_used_come_late(seed: int) -> None:
    """Then no arm waits for theirs, not even when such a reward is told."""
    traits = [Traits(delay=Delay("exponential", 3)), Traits(pace=0.5, horizon=30, delay=4), Traits(pace=2, delay=6)]
    sharing = Sharing.lists([[0, 1, 2], [0, 1], [1, 2]], 3)
    game = Game(bernoulli([0.8, 0.3, 0.5]), sharing, 50, None, traits, (), 5.25)
    both(game, f"{seed:032x}", "network-glr")
