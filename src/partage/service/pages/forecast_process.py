"""A process of its own that simulates a collaboration for its join page: a question on standard input, JSON out.

Its argument is a limit of processor time in seconds, so it ends even if the server that started it is gone.
"""

import os
import sys
from contextlib import suppress

import msgspec

from partage.ledger.events import Create, decode
from partage.ledger.state import State


class Question(msgspec.Struct):
    """A collaboration by its first event.

    With it come how many arms it has now, how many members it will have, and what those so far share.
    """

    create: msgspec.Raw
    arms: int
    members: int
    shares: list[list[int]]


def answer(question: Question) -> bytes:
    """Return the forecast, as JSON."""
    from partage.simulate.forecast import forecast

    create = decode(bytes(question.create))
    assert isinstance(create, Create)
    state = State(create)
    terms = state.settlement
    found = forecast(
        question.arms,
        question.members,
        create.horizon,
        state.rule,
        shares=question.shares,
        quick=True,
        jobs=1,
        settlement=terms.name,
        fee=terms.fee,
        alone=terms.alone,
        coverage=terms.coverage,
        prepaid=terms.prepaid if terms.is_prepaid else None,
        underwriting=terms.underwriting if terms.assumes_truth or terms.underwriting else None,
    )
    return msgspec.json.encode(
        found.as_dict() | {"assumptions": [*found.assumptions, *_later(question.arms, create)]}
    )


def _later(arms: int, create: Create) -> list[str]:
    """Return what is assumed of options that may be added: the tests for the places that they have are stricter."""
    places = create.most_arms or arms
    if places <= arms:
        return []
    return [
        f"No option is added to the {arms:,} so far. Up to {places:,} are allowed, so some rules ask for more "
        "evidence before they drop an option than the simulation does."
    ]


def main() -> None:
    """Answer the question on standard input."""
    with suppress(ImportError, AttributeError, OSError):  # neither exists on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]), int(sys.argv[1])))
        os.nice(5)  # requests come first
    sys.stdout.buffer.write(answer(msgspec.json.decode(sys.stdin.buffer.read(), type=Question)))


if __name__ == "__main__":
    main()
