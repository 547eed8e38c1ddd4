"""A missing package skips a test, and fails it in CI."""

import math

import pytest
from tests.support.packages import needed


def test_a_package_that_is_there_is_imported() -> None:
    assert needed("math") is math


@pytest.mark.parametrize(("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_a_missing_package_fails_in_ci_and_is_skipped_elsewhere(
    monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="no_such_package"):
        needed("no_such_package")
