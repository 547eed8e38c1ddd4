"""Tallies: the paid commits of each member in the close event, without names, in a form that every member can check.

For each arm with paid commits, the close event lists one entry per member: a leaf and the member's count.

    salt of a member = HMAC-SHA-256(the collaboration's secret, agent)        known to the operator and that member
    salt of an arm   = HMAC-SHA-256(salt of a member, arm)
    leaf             = SHA-256(salt of the arm, canonical JSON of [agent, arm, count])

Entries are in order of their leaves, which is a random order to everybody who does not know the salts. A leaf names
its member, so two members never find themselves in one entry.
"""

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec

from partage.ledger.events import Tally

SALT = 32  # bytes

Commits = Mapping[str, Mapping[int, int]]  # by agent: its paid commits of each arm


def salt_of(secret: bytes, agent: str) -> bytes:
    """Return a member's salt."""
    return hmac.digest(secret, agent.encode(), "sha256")


def salts_of(secret: bytes, agents: Iterable[str]) -> dict[str, bytes]:
    """Return the salts of these members."""
    return {agent: salt_of(secret, agent) for agent in agents}


def leaf_of(salt: bytes, agent: str, arm: int, count: int) -> str:
    """Return the leaf of a member's count, by the member's salt."""
    of_arm = hmac.digest(salt, str(arm).encode(), "sha256")
    return hashlib.sha256(of_arm + msgspec.json.encode([agent, arm, count])).hexdigest()


def tallies_of(commits: Commits, secret: bytes) -> tuple[Tally, ...]:
    """Return the tallies of all arms with paid commits."""
    salts = salts_of(secret, commits)
    arms = sorted({arm for counts in commits.values() for arm, count in counts.items() if count})
    return tuple(
        Tally(arm, _entries(arm, {agent: counts.get(arm, 0) for agent, counts in commits.items()}, salts))
        for arm in arms
    )


def _entries(arm: int, counts: Mapping[str, int], salts: Mapping[str, bytes]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((leaf_of(salts[agent], agent, arm, count), count) for agent, count in counts.items()))


# --- checks ---------------------------------------------------------------------------------------------------


def wrong_form(tallies: Sequence[Tally], totals: Sequence[int], led: Iterable[int], members: int, most: int) -> str:
    """Say what is wrong with tallies for whoever reads them; empty if nothing is.

    Parameters
    ----------
    tallies, totals
        What the close event states: the tallies, and the commits of each arm.
    led
        The arms that ever led: a commit pulls the leader.
    members, most
        How many members there are, and the most commits that one of them can have made.
    """
    if [tally.arm for tally in tallies] != [arm for arm, total in enumerate(totals) if total]:
        return "it does not tally exactly the arms that have commit pulls."
    known = frozenset(led)
    for tally in tallies:
        leaves = [leaf for leaf, _ in tally.entries]
        if tally.arm not in known:
            return "it states commit pulls of an arm that never led, and a commit pulls the leader."
        if len(leaves) != members or any(one >= other for one, other in pairwise(leaves)):
            return "a tally does not have one entry per member, in order of their leaves."
        if any(count > most for _, count in tally.entries):
            return "a tally has more commit pulls of one member than a horizon."
        if sum(count for _, count in tally.entries) != totals[tally.arm]:
            return "the entries of a tally do not sum to the total of the arm."
    return ""


def has_entries(tallies: Sequence[Tally], agent: str, counts: Mapping[int, int], salt: bytes) -> bool:
    """Whether the tallies have a member's entry for each arm, with these counts."""
    stated = {tally.arm: tally.entries for tally in tallies}
    if any(count and arm not in stated for arm, count in counts.items()):
        return False
    return all(
        (leaf_of(salt, agent, arm, counts.get(arm, 0)), counts.get(arm, 0)) in entries
        for arm, entries in stated.items()
    )
