"""Check the close event: all of it on a whole ledger, otherwise what the copy's owner can check."""

import math
from collections.abc import Iterable

from partage.errors import MissingExtra
from partage.ledger.events import Close
from partage.ledger.state import State
from partage.ledger.verify.lines import Wrong
from partage.settle.money import (
    Account,
    account,
    ceilings_of,
    common_charge,
    micro_units,
    rates_of,
    worth,
)

TOLERANCE = 1e-9  # the logarithms of another platform may differ in the last digit of a ceiling


def check_close(state: State, event: Close, whole: bool, owner: str | None) -> bool:
    """Check the close event against the state before it.

    Parameters
    ----------
    state, event
        The state before the close, and the close event.
    whole
        Whether no commit pulls are hidden.
    owner
        The agent whose copy it is, if that is known.

    Returns
    -------
    bool
        Whether the ceilings were computed again: of all agents, or on a copy of its owner. An install without the
        packages for it takes them on trust.
    """
    _check_totals(state, event, whole)
    known = [agent for agent in state.members if whole or agent == owner]
    checked = _check_ceilings(state, event, known)
    _check_charge(state, event)
    _check_profit(state, event)
    return checked


def account_of(state: State, event: Close, agent: str) -> Account:
    """Return an agent's account, from its pulls and the charge and ceiling that the close event states."""
    return account(
        rates_of(state.settlement, state.board),
        _pulls(state, agent),
        event.common_charge,
        None if event.ceilings is None else event.ceilings[agent],
        state.config.value,
    )


def _pulls(state: State, agent: str) -> list[int]:
    """Return an agent's settled pulls of each arm."""
    member = state.members[agent]
    return [member.explore.get(arm, 0) + member.commit.get(arm, 0) for arm in range(state.board.arms)]


def _check_totals(state: State, event: Close, whole: bool) -> None:
    explore, commit = state.totals()
    if list(event.explore) != explore:
        raise Wrong("its totals of explore pulls do not match the lines before it.")
    if len(event.commit) != state.board.arms or (
        list(event.commit) != commit if whole else _any_above(commit, event.commit)
    ):
        raise Wrong("its totals of commit pulls do not match the lines before it.")


def _any_above(seen: Iterable[int], stated: Iterable[int]) -> bool:
    """Whether the lines show more pulls of some arm than are stated."""
    return any(shown > total for shown, total in zip(seen, stated, strict=True))


def _check_ceilings(state: State, event: Close, known: list[str]) -> bool:
    """Check that the ceilings are there, and compute again those of the agents whose pulls are all known."""
    settlement, stated = state.settlement, event.ceilings
    if not settlement.has_ceilings:
        if stated is not None or event.ceiling_seed is not None:
            raise Wrong(f"it states ceilings, and the settlement {settlement.name} has none.")
        return True
    if stated is None or stated.keys() != state.members.keys() or event.ceiling_seed != settlement.ceiling_seed:
        raise Wrong("it does not state every agent's ceiling and the seed of the plays that measured it.")
    if not all(0 <= ceiling <= state.config.horizon for ceiling in stated.values()):
        raise Wrong("a ceiling is not between 0 and the horizon.")
    try:
        computed = ceilings_of(settlement, state.board, [sum(_pulls(state, agent)) for agent in known])
    except MissingExtra:
        return False
    assert computed is not None
    for agent, ceiling in zip(known, computed, strict=True):
        if not math.isclose(ceiling, stated[agent], rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            raise Wrong(f"the ceiling of agent {agent} does not follow from its pulls and the board.")
    return True


def _check_charge(state: State, event: Close) -> None:
    totals = [explore + commit for explore, commit in zip(event.explore, event.commit, strict=True)]
    stated = event.common_charge
    computed = common_charge(state.settlement, state.board, totals, _ceilings(state, event))
    if computed is None or stated is None:
        alike = computed is stated
    else:
        alike = math.isclose(computed, stated, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    if not alike:
        raise Wrong("its common charge does not follow from its totals and ceilings.")


def _ceilings(state: State, event: Close) -> list[float] | None:
    """Return the stated ceilings, in order of joining."""
    return None if event.ceilings is None else [event.ceilings[agent] for agent in state.members]


def _check_profit(state: State, event: Close) -> None:
    """Check the profit against the bill: what all pulls together are compensated with.

    A member's copy hides the compensations of the others, but not their sum. Each of them was rounded by half a
    micro-unit at most, and the logarithms of another platform may differ in the last digit.
    """
    charges = sum(account_of(state, event, agent).charge for agent in state.members)
    totals = [explore + commit for explore, commit in zip(event.explore, event.commit, strict=True)]
    bill = micro_units(worth(rates_of(state.settlement, state.board), totals), state.config.value)
    if abs(event.profit - (charges - bill)) > len(state.members) / 2 + 1 + TOLERANCE * bill:
        raise Wrong("its profit does not follow from the charges and compensations.")
