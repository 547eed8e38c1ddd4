"""Check the close event: all of it on a whole ledger, otherwise what the copy's owner can check.

Where commits are not paid, every member sees all that money depends on, so its copy checks all of it too.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import UNSET

from partage.errors import MissingExtra
from partage.ledger.events import Close
from partage.ledger.state import State
from partage.ledger.tallies import has_entries, wrong_form
from partage.ledger.verify.lines import Wrong
from partage.settle.core import Measured, arms_left
from partage.settle.money import (
    Account,
    Books,
    account,
    books_of,
    ceilings_of,
    common_charge,
    micro_units,
    rates_of,
    settle,
    worth,
)

TOLERANCE = 1e-9  # the logarithms of another platform may differ in the last digit of a ceiling or a threshold


class Reader(NamedTuple):
    """Who reads a ledger: the agent whose copy it is, if that is known, and what the copy shows.

    `hidden` counts the lines that it hides, and `salts` has those that it shows of the tallies, by agent.
    """

    owner: str | None
    hidden: int
    salts: Mapping[str, bytes]

    @property
    def whole(self) -> bool:
        """Whether no commit pulls are hidden."""
        return not self.hidden


def check_close(state: State, event: Close, reader: Reader) -> bool:
    """Check the close event against the state before it.

    Returns
    -------
    bool
        Whether the ceilings were computed again: of all agents, or in formats before 5 on a copy of its owner. An
        install without the packages for it takes them on trust.
    """
    _check_fields(state, event)
    _check_totals(state, event, reader.whole)
    _check_tallies(state, event, reader)
    _check_pulls(state, event, reader)
    if state.format > 3:
        _check_left(state, event)
    checked = _check_ceilings(state, event, _known_pulls(state, event, reader))
    if state.settlement.is_prepaid:
        _check_prepaid(state, event)
        return checked
    _check_charge(state, event)
    if state.settlement.underwriting is None:
        _check_profit(state, event)
    else:
        _check_underwritten(state, event)
    return checked


def tallied(state: State) -> bool:
    """Whether a close event tallies the paid commits of each member."""
    return state.format > 4 and state.names_commits


def account_of(state: State, event: Close, agent: str) -> Account:
    """Return an agent's account, from its pulls and what the close event states."""
    pulls = state.pulls_of(agent)
    plain = account(
        _rates(state, event),
        pulls,
        event.common_charge,
        None if event.ceilings is None else event.ceilings[agent],
        state.config.value,
        limited=state.settlement.underwriting is not None,
    )
    return plain if state.settlement.underwriting is None else _books(state, event).account(pulls, plain)


# --- what the event must state --------------------------------------------------------------------------------


def _check_fields(state: State, event: Close) -> None:
    """Check that the event has the fields of its format and settlement, and no others."""
    expected = {
        "commit": state.names_commits,
        "left": state.format > 3,
        "scale": state.format > 3,
        "prepaid": state.settlement.is_prepaid,
        "charge": state.settlement.is_prepaid,
        "tallies": tallied(state),
        "pulls": tallied(state) and state.settlement.has_ceilings,
    }
    for name, there in expected.items():
        if (getattr(event, name) is not UNSET) != there:
            what = "does not state" if there else "states"
            raise Wrong(f"it {what} {name}, unlike every close event of such a collaboration.")


def _check_totals(state: State, event: Close, whole: bool) -> None:
    explore, commit = state.totals()
    if list(event.explore) != explore:
        raise Wrong("its totals of explore pulls do not match the lines before it.")
    if event.commit is UNSET:
        return
    if len(event.commit) != state.board.arms or (
        list(event.commit) != commit if whole else _any_above(commit, event.commit)
    ):
        raise Wrong("its totals of commit pulls do not match the lines before it.")


def _any_above(seen: Iterable[int], stated: Iterable[int]) -> bool:
    """Whether the lines show more pulls of some arm than are stated."""
    return any(shown > total for shown, total in zip(seen, stated, strict=True))


def _check_tallies(state: State, event: Close, reader: Reader) -> None:
    """Check the form and the sums of the tallies, and each entry whose member and salt the reader knows."""
    if event.tallies is UNSET:
        return
    assert event.commit is not UNSET
    most = max((member.horizon for member in state.members.values()), default=0)
    wrong = wrong_form(event.tallies, event.commit, state.led, len(state.members), most)
    if wrong:
        raise Wrong(wrong)
    commits = {agent: member.commit for agent, member in state.members.items()}
    for tally in event.tallies:
        stated = sorted(count for _, count in tally.entries)
        seen = sorted(own.get(tally.arm, 0) for own in commits.values())
        if reader.whole and stated != seen:
            raise Wrong("the counts of a tally do not match the lines before it.")
        if stated.count(0) < seen.count(0) - reader.hidden:
            raise Wrong("its tallies have more members with commit pulls than there are lines that count them.")
    if event.tallies and (not reader.salts or reader.owner not in (None, *reader.salts)):
        raise Wrong("it comes without the salts of its tallies, so nobody can find their own entries.")
    for agent, salt in reader.salts.items():
        if not has_entries(event.tallies, agent, commits[agent], salt):
            raise Wrong(f"its tallies do not have the commit pulls of agent {agent} that the lines before it count.")


def _check_pulls(state: State, event: Close, reader: Reader) -> None:
    """Check every agent's settled pulls, from which the ceilings follow."""
    if event.pulls is UNSET:
        return
    assert event.commit is not UNSET
    assert event.tallies is not UNSET
    if event.pulls.keys() != state.members.keys():
        raise Wrong("it does not state the pulls of every agent.")
    fewest, most = (sum(pick(count for _, count in tally.entries) for tally in event.tallies) for pick in (min, max))
    for agent, member in state.members.items():
        commits = event.pulls[agent] - sum(member.explore.values())
        if agent == reader.owner or reader.whole:
            if commits != sum(member.commit.values()):
                raise Wrong(f"it does not state the pulls of agent {agent} as the lines before it count them.")
        elif not fewest <= commits <= min(most, member.horizon_left):
            raise Wrong(f"the pulls of agent {agent} do not fit the tallies and its horizon.")
    if sum(event.pulls.values()) != sum(event.explore) + sum(event.commit):
        raise Wrong("the pulls of all agents do not sum to the totals of all arms.")


def _known_pulls(state: State, event: Close, reader: Reader) -> dict[str, int]:
    """Return the settled pulls of the agents for whom they are known."""
    if event.pulls is not UNSET:
        return event.pulls
    known = [agent for agent in state.members if reader.whole or agent == reader.owner]
    return {agent: sum(state.pulls_of(agent)) for agent in known}


def _check_left(state: State, event: Close) -> None:
    """Check the arms left. Those that another platform's logarithms may have decided either way are accepted."""
    stated = list(event.left or ())
    fewest, most = (set(arms_left(state.settlement, state.board, slack)) for slack in (-TOLERANCE, TOLERANCE))
    if stated != sorted(set(stated)) or not fewest <= set(stated) <= most:
        raise Wrong("its arms left do not follow from the board.")


# --- ceilings and charges -------------------------------------------------------------------------------------


def _check_ceilings(state: State, event: Close, known: Mapping[str, int]) -> bool:
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
        computed = ceilings_of(settlement, state.board, [*known.values()], _left(event))
    except MissingExtra:
        return False
    assert computed is not None
    for agent, ceiling in zip(known, computed, strict=True):
        if not math.isclose(ceiling, stated[agent], rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            raise Wrong(f"the ceiling of agent {agent} does not follow from its pulls and the board.")
    return True


def _check_charge(state: State, event: Close) -> None:
    stated = event.common_charge
    computed = common_charge(
        state.settlement, state.board, _paid(event), _ceilings(state, event), _rates(state, event)
    )
    if computed is None or stated is None:
        alike = computed is stated
    else:
        alike = math.isclose(computed, stated, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    if not alike:
        raise Wrong("its common charge does not follow from its totals and ceilings.")


def _check_prepaid(state: State, event: Close) -> None:
    """Check scale, charge and profit where members prepay: given the arms left, they are exact on every platform."""
    if event.common_charge is not None:
        raise Wrong("it states a common charge in units of reward, and members prepay in money.")
    found = settle(
        state.settlement, state.board, state.pulls(), state.config.value, Measured(None, None, _left(event))
    )
    charge = max((one.charge for one in found.accounts), default=0)
    if (event.scale, event.prepaid, event.charge) != (found.scale, found.prepaid, charge):
        raise Wrong("its scale, prepaid and charge do not follow from its totals, the board and the terms.")
    if event.profit != found.profit:
        raise Wrong("its profit does not follow from the charges and compensations.")


# --- the profit -----------------------------------------------------------------------------------------------


def _check_profit(state: State, event: Close) -> None:
    """Check the profit against the bill: what all pulls together are compensated with.

    A member's copy hides the compensations of the others, but not their sum. Each of them was rounded by half a
    micro-unit at most, and the logarithms of another platform may differ in the last digit.
    """
    bill = micro_units(worth(_rates(state, event), _paid(event)), state.config.value)
    _compare_profit(state, event, bill, len(state.members) / 2 + 1)


def _check_underwritten(state: State, event: Close) -> None:
    """Check scale and profit where the operator's loss is limited: each compensation was rounded down."""
    books = _books(state, event)
    if event.scale is UNSET or not math.isclose(float(books.scale), event.scale, rel_tol=TOLERANCE):
        raise Wrong("its scale does not follow from the charges, the totals and the underwriting.")
    if event.profit < -books.underwriting:
        raise Wrong("the operator loses more than it underwrites.")
    bill = float(books.scale * books.rates.worth(_paid(event)))
    _compare_profit(state, event, bill, len(state.members) + 1)


def _compare_profit(state: State, event: Close, bill: float, rounded: float) -> None:
    """Compare the profit with the charges less the bill, in micro-units."""
    if abs(event.profit - (sum(_charges(state, event)) - bill)) > rounded + TOLERANCE * bill:
        raise Wrong("its profit does not follow from the charges and compensations.")


# --- what several checks read ---------------------------------------------------------------------------------


def _left(event: Close) -> tuple[int, ...] | None:
    """Return the arms left that the event states; None if it states none."""
    return None if event.left is UNSET else event.left


def _rates(state: State, event: Close) -> tuple[float, ...]:
    return rates_of(state.settlement, state.board, _left(event))


def _paid(event: Close) -> list[int]:
    """Return the totals of the pulls that are paid."""
    if event.commit is UNSET:
        return list(event.explore)
    return [explore + commit for explore, commit in zip(event.explore, event.commit, strict=True)]


def _ceilings(state: State, event: Close) -> list[float] | None:
    """Return the stated ceilings, in order of joining."""
    return None if event.ceilings is None else [event.ceilings[agent] for agent in state.members]


def _charges(state: State, event: Close) -> list[int]:
    """Return every agent's charge in micro-units, where they do not prepay."""
    ceilings: Sequence[float | None] = _ceilings(state, event) or [None] * len(state.members)
    value, limited = state.config.value, state.settlement.underwriting is not None
    return [account((), (), event.common_charge, ceiling, value, limited).charge for ceiling in ceilings]


def _books(state: State, event: Close) -> Books:
    """Return what all accounts have in common where the operator's loss is limited."""
    charges = _charges(state, event)
    return books_of(state.settlement, _rates(state, event), _paid(event), charges, state.config.value)
