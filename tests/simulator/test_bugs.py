"""The simulator finds every planted bug, and finds nothing where none is planted."""

import pytest
from tests.simulator.bugs import BUGS
from tests.simulator.scenario import Trial

MOST = 600  # seeds until a bug must be found; the rarest shows in one of a hundred


def test_there_are_enough_bugs() -> None:
    assert len(BUGS) >= 20
    assert all(plant.__doc__ for plant in BUGS.values())


def found_by(name: str) -> int | None:
    """Return the first seed that finds a bug."""
    with BUGS[name]():
        for seed in range(MOST):
            try:
                Trial(seed).run()
            except Exception as error:
                print(f"{name}: found by seed {seed}: {error}")
                return seed
    return None


@pytest.mark.extra
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str) -> None:
    assert found_by(name) is not None, f"{BUGS[name].__doc__} It was not found within {MOST} seeds."


def test_a_bug_is_gone_with_its_context() -> None:
    seed = found_by("answer before commit")
    assert seed is not None
    Trial(seed).run()
