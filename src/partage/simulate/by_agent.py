"""Results by agent, for games whose agents differ or have names."""

from typing import TYPE_CHECKING, Any

from partage.traits import Traits

if TYPE_CHECKING:
    from partage.simulate.result import Result


def by_agent(result: "Result") -> list[dict[str, Any]]:
    """Return what every agent is like, what it lost, and what it would have lost alone."""
    game, found = result.game, []
    for agent in range(game.agents):
        traits, bar = game.traits_of(agent), result.bar_of(result.settlement.alone, agent)
        found.append(
            {
                "name": game.agent_name(agent),
                "pace": traits.pace,
                "horizon": game.horizon_of(agent),
                "traits": other_traits(traits),
                "regret": result.individual_regret(agent)._asdict(),
                "incentive_regret": result.incentive_regret(agent)._asdict() if result.settled else None,
                "bar": None if bar is None else bar._asdict(),
            }
        )
    return found


def other_traits(traits: Traits) -> dict[str, Any]:
    """Return the traits other than pace and horizon that are not the default.

    >>> other_traits(Traits(pace=2, delay=3, joins=7))
    {'delay': 3.0, 'joins': 7}
    """
    found: dict[str, Any] = {}
    late = traits.late
    if late.steps:
        plain = late.kind == "constant" and late.of == "all"
        found["delay"] = late.steps if plain else {"kind": late.kind, "steps": late.steps, "of": late.of}
    if traits.offset:
        found["offset"] = traits.offset
    if traits.rewards is not None:
        found["means"] = [arm.mean for arm in traits.rewards]
    if traits.joins > 1:
        found["joins"] = traits.joins
    if traits.leaves is not None:
        found["leaves"] = traits.leaves
    return found
