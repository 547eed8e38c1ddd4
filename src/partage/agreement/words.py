"""Disagreements in words."""

from collections.abc import Callable, Hashable, Sequence

from partage.agreement.cells import Disagreement


def who_and_what(one: Disagreement, name: Callable[[Hashable], str], arms: Sequence[str]) -> str:
    """Return who differs on what.

    >>> names = {1: "Clinic A", 2: "Clinic B", 3: "Clinic C"}
    >>> who_and_what(Disagreement(0, None, (3,), -0.08, -0.13, -0.03, 9.0), names.get, ["SMS", "Letter"])
    'Clinic C sees SMS differently'
    >>> who_and_what(Disagreement(0, 1, (1, 2), -0.08, -0.13, -0.03, 9.0), names.get, ["SMS", "Letter"])
    'Clinic A and Clinic B see SMS against Letter differently'
    """
    *most, last = [name(member) for member in one.members]
    who = f"{', '.join(most)} and {last}" if most else last
    what = arms[one.arm] if one.against is None else f"{arms[one.arm]} against {arms[one.against]}"
    return f"{who} {'see' if most else 'sees'} {what} differently"


def by_how_much(one: Disagreement, name: Callable[[Hashable], str]) -> str:
    """Return by how much somebody differs.

    >>> by_how_much(Disagreement(0, None, (3,), -0.08, -0.13, -0.03, 9.0), str)
    '0.08 lower than the others (0.03 to 0.13)'
    >>> by_how_much(Disagreement(0, None, (1, 2), 0.1, 0.02, 0.19, 9.0), str)
    '1 is 0.10 higher than 2 (0.02 to 0.19)'
    >>> by_how_much(Disagreement(0, None, (3,), -0.08, -0.21, 0.05, 9.0), str)
    '0.08 lower than the others (0.21 lower to 0.05 higher)'
    """
    first, *others = one.members
    amount = f"{abs(one.difference):.2f} {'lower' if one.difference < 0 else 'higher'}"
    if one.low < 0 < one.high:
        interval = f"({-one.low:.2f} lower to {one.high:.2f} higher)"
    else:
        least, most = sorted((abs(one.low), abs(one.high)))
        interval = f"({least:.2f} to {most:.2f})"
    if not others:
        return f"{amount} than the others {interval}"
    return f"{name(first)} is {amount} than {name(others[0]) if len(others) == 1 else 'the others'} {interval}"


def in_words(one: Disagreement, name: Callable[[Hashable], str], arms: Sequence[str]) -> str:
    """Return who differs on what, and by how much, as one sentence.

    >>> in_words(Disagreement(0, None, (3,), -0.08, -0.13, -0.03, 9.0), str, ["SMS"])
    '3 sees SMS differently: 0.08 lower than the others (0.03 to 0.13).'
    """
    return f"{who_and_what(one, name, arms)}: {by_how_much(one, name)}."
