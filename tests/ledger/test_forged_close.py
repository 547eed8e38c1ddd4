"""A close where commits are paid: what an operator may state that did not happen, and who notices."""

import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from tests.support.sequences import SECRET, TRUTHFUL, Table, configurations, created, played, sequences

from partage.ledger.chain import line, seal
from partage.ledger.events import Close, Tally
from partage.ledger.state import State
from partage.ledger.tallies import leaf_of, salt_of, salts_of, tallies_of, wrong_form
from partage.ledger.verify import verify
from partage.ledger.verify.closing import account_of
from partage.settle.money import account, books_of, ceilings_of, common_charge, rates_of

SHARES = ("equal-share", "equal-share-expected")


@cache
def a_game(settlement: str = "equal-share-expected", format: int = 5) -> Table:
    """A closed collaboration of eight: two explore and commit, one leaves without a commit, the others only commit.

    Nobody shares the last arm, so it never led.
    """
    terms = {"rule": "balanced-etc"} if settlement == "paper" else {"rule": "balanced-glr", "alone": "two-ucb"}
    table = Table(created(arms=["a", "b", "c"], horizon=40_000, settlement=settlement, format=format, **terms))
    ada, bob = table.join(0, 1), table.join(0, 1)
    while table.state.board.active[1] or not table.state.version:
        for agent in (ada, bob):
            table.work(agent, lambda arm: 0.9 - 0.5 * arm)
    fan, guest, *others = (table.join() for _ in range(6))
    for agent, pulls in ((fan, 28_000), (ada, 20), (bob, 80), (fan, 3), *((other, 20_000) for other in others)):
        table.follow(agent, f"report {pulls}", pulls)
    table.leave(guest)
    table.close()
    assert table.state.led == {0, 1}
    return table


def copy_of(table: Table, event: Close, reader: str | None, salts: Mapping[str, bytes] | None = None) -> list[bytes]:
    """The reader's copy of a ledger that ends with this close event, with all hashes right."""
    *lines, _ = table.lines(reader)
    row = seal(event, table.rows[-2].head)
    return [*lines, line(row, event, reader, salts_of(SECRET, table.state.members) if salts is None else salts)]


def close_of(table: Table) -> Close:
    event = table.events[-1]
    assert isinstance(event, Close)
    return event


def settled_again(state: State, event: Close) -> Close:
    """The event with the charge, scale and profit that follow from its totals and ceilings."""
    settlement, left, value = state.settlement, event.left or (), state.config.value
    rates = rates_of(settlement, state.board, left)
    paid = [explore + commit for explore, commit in zip(event.explore, event.commit or (), strict=True)]
    ceilings = None if event.ceilings is None else [event.ceilings[agent] for agent in state.members]
    common = common_charge(settlement, state.board, paid, ceilings, rates)
    limits = ceilings or [None] * len(state.members)
    charges = [account((), (), common, ceiling, value, limited=True).charge for ceiling in limits]
    books = books_of(settlement, rates, paid, charges, value)
    profit = sum(charges) - math.floor(books.scale * books.rates.worth(paid))
    return msgspec.structs.replace(event, common_charge=common, scale=float(books.scale), profit=profit)


def by_counts(state: State, event: Close, counts: Mapping[str, Mapping[int, int]]) -> Close:
    """The event with these commits of each agent: totals, tallies, pulls and ceilings that fit each other."""
    commit = [sum(own.get(arm, 0) for own in counts.values()) for arm in range(state.board.arms)]
    changed: dict[str, Any] = {"commit": tuple(commit), "tallies": tallies_of(counts, SECRET)}
    if event.pulls is not UNSET:
        explore = {agent: sum(member.explore.values()) for agent, member in state.members.items()}
        pulls = {agent: explore[agent] + sum(own.values()) for agent, own in counts.items()}
        found = ceilings_of(state.settlement, state.board, [*pulls.values()], event.left or ())
        changed |= {"pulls": pulls, "ceilings": dict(zip(pulls, found or (), strict=True))}
    return settled_again(state, msgspec.structs.replace(event, **changed))


def true_counts(state: State) -> dict[str, dict[int, int]]:
    return {agent: dict(member.commit) for agent, member in state.members.items()}


# --- the attack that was accepted -----------------------------------------------------------------------------


def forged(table: Table, victim: str) -> Close:
    """Commits of a bad arm that nobody made, and no ceiling for anyone but the victim."""
    event, others = close_of(table), table.state.members.keys() - {victim}
    commit = (event.commit or ())[0], 10**6, 0
    ceilings = {**(event.ceilings or {}), **dict.fromkeys(others, 0.0)}
    return settled_again(table.state, msgspec.structs.replace(event, commit=commit, ceilings=ceilings))


@pytest.mark.parametrize("settlement", SHARES)
def test_a_forged_close_passes_by_the_terms_of_format_4(settlement: str) -> None:
    table = a_game(settlement, 4)
    event = forged(table, "a3")
    assert verify(copy_of(table, event, "a3"), agent="a3").ok
    before, after = (account_of(table.state, one, "a3").charge for one in (close_of(table), event))
    assert after > 3 * before


@pytest.mark.parametrize("settlement", SHARES)
def test_a_forged_close_is_refused(settlement: str) -> None:
    table = a_game(settlement)
    event = forged(table, "a3")
    assert not verify(copy_of(table, event, "a3"), agent="a3").ok
    tally = Tally(1, tuple(sorted((f"{place:064x}", 10**6 // 8) for place in range(8))))
    told = msgspec.structs.replace(event, tallies=(*(event.tallies or ()), tally))
    found = verify(copy_of(table, told, "a3"), agent="a3")
    assert found.problem is not None
    assert "than a horizon" in found.problem.sentence


# --- what remains of it -----------------------------------------------------------------------------------------

Change = Callable[[State, Close], Close]


def add_ghost(state: State, event: Close) -> Close:
    """One more entry than there are members."""
    counts = {**true_counts(state), "a9": {0: 3000}}
    ghost = by_counts(state, event, true_counts(state))
    commit = ((event.commit or ())[0] + 3000, 0, 0)
    return settled_again(state, msgspec.structs.replace(ghost, tallies=tallies_of(counts, SECRET), commit=commit))


def lower_ceilings(state: State, event: Close) -> Close:
    ceilings = {agent: 0.0 if agent != "a3" else most for agent, most in (event.ceilings or {}).items()}
    return settled_again(state, msgspec.structs.replace(event, ceilings=ceilings))


def fewer_pulls(state: State, event: Close) -> Close:
    """Fewer pulls of everybody else, so that their ceilings are lower."""
    pulls = {agent: 1 if agent != "a3" else count for agent, count in (event.pulls or {}).items()}
    found = ceilings_of(state.settlement, state.board, [*pulls.values()], event.left or ())
    ceilings = dict(zip(pulls, found or (), strict=True))
    return settled_again(state, msgspec.structs.replace(event, pulls=pulls, ceilings=ceilings))


def swap_pulls(state: State, event: Close) -> Close:
    """The reader's pulls under another name, and the other way round."""
    pulls = {**(event.pulls or {})}
    pulls["a1"], pulls["a3"] = pulls["a3"], pulls["a1"]
    found = ceilings_of(state.settlement, state.board, [*pulls.values()], event.left or ())
    ceilings = dict(zip(pulls, found or (), strict=True))
    return settled_again(state, msgspec.structs.replace(event, pulls=pulls, ceilings=ceilings))


def beyond_the_horizon(state: State, event: Close) -> Close:
    return by_counts(state, event, {**true_counts(state), "a1": {0: 40_001}})


def beyond_what_is_left(state: State, event: Close) -> Close:
    """Within the horizon, but not together with the claims that everybody sees."""
    return by_counts(state, event, {**true_counts(state), "a1": {0: 40_000}})


def of_an_arm_that_never_led(state: State, event: Close) -> Close:
    return by_counts(state, event, {**true_counts(state), "a4": {2: 10}})


def not_in_order(state: State, event: Close) -> Close:
    """Members in the order of joining, so that everybody knows whose each entry is."""
    counts = true_counts(state)
    entries = [(leaf_of(salt_of(SECRET, one), one, 0, own.get(0, 0)), own.get(0, 0)) for one, own in counts.items()]
    return msgspec.structs.replace(event, tallies=(Tally(0, tuple(entries)),))


def other_sums(state: State, event: Close) -> Close:
    ((arm, entries),) = [(tally.arm, tally.entries) for tally in event.tallies or ()]
    found = tuple((leaf, count + (place == 0)) for place, (leaf, count) in enumerate(entries))
    return msgspec.structs.replace(event, tallies=(Tally(arm, found),))


def omit_an_arm(state: State, event: Close) -> Close:
    return msgspec.structs.replace(event, tallies=())


def two_of_one(state: State, event: Close) -> Close:
    (tally,) = event.tallies or ()
    return msgspec.structs.replace(event, tallies=(tally, tally))


def without(field: str) -> Change:
    return lambda state, event: msgspec.structs.replace(event, **{field: UNSET})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (add_ghost, "one entry per member"),
        (lower_ceilings, "ceiling of agent a1"),
        (fewer_pulls, "do not fit the tallies|sum to the totals"),
        (beyond_the_horizon, "than a horizon"),
        (beyond_what_is_left, "pulls of agent a1 do not fit"),
        (of_an_arm_that_never_led, "never led"),
        (not_in_order, "in order of their leaves"),
        (other_sums, "do not sum"),
        (omit_an_arm, "exactly the arms"),
        (two_of_one, "exactly the arms"),
        (without("tallies"), "does not state tallies"),
        (without("pulls"), "does not state pulls"),
    ],
)
@pytest.mark.parametrize("settlement", SHARES)
@pytest.mark.parametrize("reader", ["a3", "a4", None])
def test_forgeries_that_every_reader_finds(settlement: str, reader: str | None, change: Change, says: str) -> None:
    table = a_game(settlement)
    event = change(table.state, close_of(table))
    found = verify(copy_of(table, event, reader), agent=reader)
    assert found.problem is not None
    if reader == "a3":
        assert re.search(says, found.problem.sentence), found.problem.sentence


@pytest.mark.parametrize("settlement", TRUTHFUL)
@pytest.mark.parametrize("victim", ["a1", "a3", "a4"])
def test_a_member_finds_commits_made_up_in_its_name(settlement: str, victim: str) -> None:
    table = a_game(settlement)
    counts = true_counts(table.state)
    counts[victim] = {0: counts[victim].get(0, 0) + 100}
    event = by_counts(table.state, close_of(table), counts)
    found = verify(copy_of(table, event, victim), agent=victim)
    assert found.problem is not None
    assert f"of agent {victim}" in found.problem.sentence


@pytest.mark.parametrize("settlement", TRUTHFUL)
def test_a_member_finds_that_its_entry_is_somebody_elses(settlement: str) -> None:
    """Two members' counts swapped, or a member omitted for a made-up one: each of the two notices."""
    table = a_game(settlement)
    counts = true_counts(table.state)
    swapped = {**counts, "a1": counts["a3"], "a3": counts["a1"]}
    event = by_counts(table.state, close_of(table), swapped)
    for victim in ("a1", "a3"):
        assert not verify(copy_of(table, event, victim), agent=victim).ok
    ghost = {("a9" if agent == "a2" else agent): own for agent, own in counts.items()}
    replaced = msgspec.structs.replace(close_of(table), tallies=tallies_of(ghost, SECRET))
    assert not verify(copy_of(table, replaced, "a2"), agent="a2").ok
    assert verify(copy_of(table, replaced, "a1"), agent="a1").ok  # everybody checks their own entry
    assert not verify(copy_of(table, replaced, None)).ok


@pytest.mark.parametrize("settlement", SHARES)
@pytest.mark.parametrize("victim", ["a1", "a3"])
def test_a_member_finds_that_its_pulls_are_somebody_elses(settlement: str, victim: str) -> None:
    table = a_game(settlement)
    found = verify(copy_of(table, swap_pulls(table.state, close_of(table)), victim), agent=victim)
    assert found.problem is not None
    assert re.search("pulls of agent a[13]", found.problem.sentence)


def test_nobody_commits_without_a_line() -> None:
    """More members with commits than there are lines that may count them."""
    table = Table(created(settlement="paper"))
    ada = table.join(0)
    table.join(1)
    table.join(1)
    table.work(ada, lambda arm: 1.0)
    table.follow(ada, "report", 3)
    table.close()
    counts = {**true_counts(table.state), "a2": {0: 9}, "a3": {0: 9}}
    event = by_counts(table.state, close_of(table), counts)
    found = verify(copy_of(table, event, "a3"), agent="a3")
    assert found.problem is not None
    assert "lines that count them" in found.problem.sentence


def test_a_copy_without_salts_is_refused() -> None:
    table = a_game()
    for reader in ("a3", None):
        found = verify(copy_of(table, close_of(table), reader, {}), agent=reader)
        assert found.problem is not None
        assert "without the salts" in found.problem.sentence
    others = verify(copy_of(table, close_of(table), None, salts_of(SECRET, ["a1"])), agent="a3")
    assert not others.ok
    wrong = verify(copy_of(table, close_of(table), "a3", salts_of(b"another", table.state.members)))
    assert not wrong.ok
    for tally in (b'{"a3":""}', b'{"a3":"zz"}', b'{"a3":3}', b"{}}", b'{"a9":"%b"}' % (b"0" * 64)):
        *lines, last = table.lines("a3")
        shown = last.split(b',"tally":')[0]
        assert not verify([*lines, shown + b',"tally":' + tally + b"}\n"]).ok


# --- what is right, and what it shows ---------------------------------------------------------------------------


@settings(max_examples=60)
@given(configurations(settlements=TRUTHFUL, formats=[5]), sequences(30))
def test_every_member_finds_its_entries(create: Any, happens: Any) -> None:
    table = played(create, [*happens, ("close",)])
    whole = verify(table.lines())
    assert whole.ok, whole.problem
    for agent in table.state.members:
        found = verify(table.lines(agent), agent=agent)
        assert found.ok, found.problem
        if table.state.names_commits and found.row is not None and whole.settlement is not None:
            assert found.row == next(row for row in whole.settlement.rows if row.agent == agent)


@pytest.mark.parametrize("settlement", TRUTHFUL)
def test_what_remains_on_trust(settlement: str) -> None:
    found = verify(a_game(settlement).lines("a3"))
    assert found.agent == "a3"
    trusted = " ".join(found.trusted)
    assert "as the close event" not in trusted
    assert "Each other agent's entries in the tallies" in trusted
    assert "your own commit pulls among them" in " ".join(found.checked)


def test_a_copy_shows_no_name_beside_a_count() -> None:
    """Members with the same counts, or with none, have different leaves, whose order says nothing."""
    counts = {f"a{number}": {0: 7} for number in range(1, 40)}
    (tally,) = tallies_of(counts, SECRET)
    leaves = [leaf for leaf, _ in tally.entries]
    assert len(set(leaves)) == 39
    assert leaves == sorted(leaves)
    order = [leaves.index(leaf_of(salt_of(SECRET, agent), agent, 0, 7)) for agent in counts]
    assert order != sorted(order)
    assert not wrong_form([tally], [39 * 7], [0], 39, 7)
    copy = a_game().lines("a1")[-1]
    assert salt_of(SECRET, "a1").hex().encode() in copy
    assert not any(salt_of(SECRET, agent).hex().encode() in copy for agent in ("a2", "a3", "a4"))


@given(st.text(max_size=3), st.text(max_size=3), st.integers(0, 2), st.integers(0, 2), st.integers(0, 12))
def test_leaves_of_different_entries_differ(one: str, other: str, arm: int, second: int, count: int) -> None:
    salt = b"s" * 32
    same = (one, arm, count) == (other, second, 1)
    assert (leaf_of(salt, one, arm, count) == leaf_of(salt, other, second, 1)) == same
