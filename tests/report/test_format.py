"""How numbers and estimates are written."""

import pytest

from partage.report.format import estimate, measured, number
from partage.simulate.result import Estimate


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Estimate(3135.083, 20.4), "3,135 ± 20"),
        (Estimate(1.7538, 0.0055), "1.7538 ± 0.0055"),
        (Estimate(-4499.5, 14.1), "-4,500 ± 14"),
        (Estimate(12.0, None), "12.0"),
        (Estimate(1e-15, 1e-16), "0 ± 0"),
        (Estimate(float("nan"), None), "nan"),
    ],
)
def test_the_mean_has_as_many_decimals_as_its_error(value, text):
    assert estimate(value) == text


def test_numbers_and_percentages():
    assert [number(value) for value in (0, 0.5, 2.345, 1234567.8)] == ["0", "0.500", "2.35", "1,234,568"]
    assert measured(Estimate(0.2351, 0.002), percent=True) == "23.51% ± 0.20%"
