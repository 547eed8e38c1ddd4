"""Random arms, sharing, games, rules and boards for hypothesis, on coarse grids so that ties are likely."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from partage.arms import (
    Arm,
    Bernoulli,
    Beta,
    Constant,
    Discrete,
    Empirical,
    Mixture,
    RandomBernoulli,
    TruncatedNormal,
    Uniform,
)
from partage.board import Board, Record
from partage.engine.rewards import run_keys
from partage.game import Game
from partage.rules import RULES, BuiltIn
from partage.sharing import Sharing
from partage.traits import KINDS, OF, Change, Delay, Traits

MOST_AGENTS, MOST_ARMS = 7, 5


def rewards() -> st.SearchStrategy[float]:
    """A reward on a coarse grid, 0 and 1 included."""
    return st.sampled_from([0.0, 1.0, 0.5, 0.25, 0.75])


@st.composite
def _discrete(draw: st.DrawFn) -> Discrete:
    values = draw(st.lists(rewards(), min_size=1, max_size=4))
    parts = draw(st.lists(st.integers(0, 4), min_size=len(values), max_size=len(values)).filter(any))
    return Discrete(values, [part / sum(parts) for part in parts])


def arms() -> st.SearchStrategy[Arm]:
    """Any kind of arm; simple ones, which tie and are eliminated, first."""
    shapes = st.sampled_from([1.0, 0.5, 2.0, 20.0])
    return st.one_of(
        st.builds(Constant, rewards()),
        st.builds(Bernoulli, st.one_of(rewards(), st.sampled_from([0.1, 0.9]))),
        st.builds(lambda ends: Uniform(*sorted(ends)), st.tuples(rewards(), rewards())),
        _discrete(),
        st.builds(Empirical, st.lists(rewards(), min_size=1, max_size=4)),
        st.builds(
            lambda one, two: Mixture([one, Beta(2, 3), two], [0.5, 0.2, 0.3]),
            st.builds(Bernoulli, rewards()),
            st.builds(Constant, rewards()),
        ),
        st.builds(Beta, shapes, shapes),
        st.builds(TruncatedNormal, st.sampled_from([0.5, 0.0, 1.0, -1.0, 2.0]), st.sampled_from([0.1, 1.0, 10.0])),
    )


@st.composite
def sharings(draw: st.DrawFn, agents: int, arms: int, every_arm_shared: bool | None = None) -> Sharing:
    """Who shares what, shuffled or not.

    Every arm has a sharer if `every_arm_shared` is True, some arm has none if it is False, either if it is None.
    """
    rows = draw(st.lists(st.sets(st.integers(0, arms - 1)), min_size=agents, max_size=agents))
    if every_arm_shared is True:
        for arm in set(range(arms)).difference(*rows):
            rows[draw(st.integers(0, agents - 1))].add(arm)
    elif every_arm_shared is False:
        hidden = draw(st.sets(st.integers(0, arms - 1), min_size=1))
        rows = [row - hidden for row in rows]
    return Sharing.lists(rows, arms).in_shuffled_order(draw(st.booleans()))


def horizons() -> st.SearchStrategy[int]:
    """Pulls per agent: two or three, few, or enough to eliminate arms."""
    return st.one_of(st.sampled_from([2, 3]), st.integers(4, 60), st.integers(100, 800))


@st.composite
def games(
    draw: st.DrawFn,
    every_arm_shared: bool | None = None,
    arms: st.SearchStrategy[Arm] | None = None,
    horizons: st.SearchStrategy[int] | None = None,
) -> Game:
    """A game of up to seven agents and five arms, whose sharing is fixed."""
    drawn_arms = draw(st.lists(_arms() if arms is None else arms, min_size=1, max_size=MOST_ARMS))
    agents = draw(st.integers(1, MOST_AGENTS))
    sharing = draw(sharings(agents, len(drawn_arms), every_arm_shared))
    return Game(drawn_arms, sharing, draw(_horizons() if horizons is None else horizons))


_arms, _horizons = arms, horizons  # `games` has arguments of these names


def delays() -> st.SearchStrategy[Delay]:
    """Any kind of delay of a few steps; often none."""
    steps = st.sampled_from([0.0, 1.0, 0.5, 3.0, 10.0, 1e-17])  # the last vanishes when it is added to a time
    return st.builds(Delay, st.sampled_from(KINDS), steps, st.sampled_from(OF))


@st.composite
def traits(draw: st.DrawFn, arms: Sequence[Arm], horizon: int, changes: bool, moves: bool) -> Traits:
    """What makes an agent differ, in a game with these arms; it joins late or leaves early only if it `moves`."""
    pace = draw(st.sampled_from([1.0, 1.0, 1 / 3, 2.5, 0.5, 2.0, 0.7]))
    own = draw(st.sampled_from([None, None, 2, 7, 150]))
    given: dict[str, Any] = {"pace": pace, "horizon": own, "delay": draw(delays())}
    if given["delay"].steps >= (own or horizon) / pace:
        given["delay"] = 0.0
    if all(isinstance(arm, Bernoulli) and 0.1 <= arm.mean <= 0.9 for arm in arms) and draw(st.booleans()):
        given["offset"] = draw(st.sampled_from([0.1, -0.1]))
    elif not changes and draw(st.booleans()):
        given["rewards"] = draw(st.lists(_arms(), min_size=len(arms), max_size=len(arms)))
    if moves:
        given["joins"] = draw(st.sampled_from([1, 1, 2, 5, 30]))
        stays = draw(st.sampled_from([None, None, 1, 4, 40]))
        given["leaves"] = stays and given["joins"] + stays
    return Traits(**given)


@st.composite
def uneven_games(draw: st.DrawFn, every_arm_shared: bool | None = None, moves: bool | None = None) -> Game:
    """A game in which agents differ in every way, arms change, and claims lapse. If nobody `moves`, all stay."""
    tame = st.builds(Bernoulli, st.sampled_from([0.5, 0.3, 0.9, 0.1, 0.6]))
    kinds = draw(st.sampled_from([tame, _arms()]))
    game = draw(games(every_arm_shared, kinds, st.sampled_from([2, 5, 40, 120])))
    arms = [arm for arm in game.arms if not isinstance(arm, RandomBernoulli)]
    places = st.tuples(st.sampled_from([2, 5, 20, 77]), st.integers(0, len(arms) - 1))
    when = draw(st.lists(places, unique=True, max_size=3))
    changes = [Change(step, arm, draw(kinds)) for step, arm in when]
    moving = draw(st.booleans()) if moves is None else moves
    all_arms = [*arms, *(change.to for change in changes)]
    own = [draw(traits(all_arms, game.horizon, bool(changes), moving)) for _ in range(game.agents)]
    lapse = draw(st.sampled_from([None, 1.0, 2.5, 6.0, 0.3]))
    game = replace(game, traits=own, claim_steps=lapse)
    return replace(game, changes=[change for change in changes if change.step <= game.last_step])


def balances() -> st.SearchStrategy[float]:
    """The balance of Balanced-ETC."""
    return st.sampled_from([1.0, 2.0, 1.5, 3.0, math.inf])


# Values to try of each parameter of a rule.
PARAMETERS = {
    "balance": balances(),
    "lead": st.sampled_from([3.0, 1.0, 2.5, 200.0, 1e300]),
    "sees": st.sampled_from(["own", "shared", "both"]),
    "evidence": st.sampled_from(["likelihood", "betting"]),
    "indifference": st.booleans(),
    "clock": st.sampled_from([1.0, 1e-3, 0.3, 7.0]),
    "late": st.just("ignored"),  # tests of late rewards try the other
    "tolerate": st.just(0),  # tests of bounded influence try others
    "own": st.sampled_from([0, 0, 3]),
}


def rules() -> st.SearchStrategy[BuiltIn]:
    """Any built-in rule, with any values of its parameters."""
    return st.one_of(
        [
            st.builds(rule, **{parameter.name: PARAMETERS[parameter.name] for parameter in rule.parameters})
            for rule in RULES.values()
        ]
    )


def keys() -> st.SearchStrategy:
    """The key of a run."""
    return st.integers(0, 2**32).map(lambda seed: run_keys(seed, 0, 1)[0])


def board(
    counts: Sequence[int],
    means: Sequence[float],
    *,
    horizon: int = 100,
    tie_order: Sequence[int] | None = None,
    hidden: Sequence[int] = (),
    gone: Sequence[int] = (),
) -> Board:
    """A board on which arm i was broadcast `counts[i]` times with mean `means[i]`, ties by index unless told."""
    every = range(len(counts))
    made = Board(horizon, list(every if tie_order is None else tie_order), [arm not in hidden for arm in every])
    made.record = Record(list(counts), [count * mean for count, mean in zip(counts, means, strict=True)])
    for arm in gone:
        made.active[arm] = False
    return made


def records(arms: int) -> st.SearchStrategy[Record]:
    """What was seen of each arm, often alike."""
    some = st.sampled_from([0, 1, 2, 3, 4, 50, 400])
    return st.builds(
        lambda seen: Record([count for count, _ in seen], [count * mean for count, mean in seen]),
        st.lists(st.tuples(some, rewards()), min_size=arms, max_size=arms),
    )


@st.composite
def boards(draw: st.DrawFn, hidden: bool = False) -> Board:
    """A board of up to five arms, some of them gone, and with `hidden` some that nobody shares."""
    arms = draw(st.integers(1, MOST_ARMS))
    every = st.sets(st.integers(0, arms - 1))
    unseen = draw(every) if hidden else set()
    tie_order = draw(st.permutations(range(arms)))
    drawn = Board(draw(st.integers(2, 1000)), tie_order, [arm not in unseen for arm in range(arms)])
    drawn.record = draw(records(arms))
    for arm in unseen:
        drawn.record.counts[arm], drawn.record.sums[arm] = 0, 0.0
    public = [arm for arm in range(arms) if drawn.public[arm]]
    for arm in public[1:] and draw(st.sets(st.sampled_from(public), max_size=len(public) - 1)):
        drawn.active[arm] = False
    return drawn
