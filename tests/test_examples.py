"""The worked examples run on the data that they name, and end in a figure, a settlement and what it cannot show."""

import polars as pl
import pytest
from examples.class_size import class_size
from examples.common import DATA
from examples.flights import CARRIERS, flights
from examples.smoking import smoking

EXAMPLES = {"smoking": (smoking, 24, 4), "flights": (flights, 10, 4), "class-size": (class_size, 79, 3)}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_ends_in_a_figure_a_settlement_and_a_limit(name, tmp_path):
    example, agents, arms = EXAMPLES[name]
    found = example(2, tmp_path)
    assert (len(found.log.agents), len(found.log.arms)) == (agents, arms)
    assert found.game.own  # one mean of each arm fits none of these
    assert "does not fit" in found.game.notes[0]
    assert found.settlement["agent"].to_list() == list(found.log.agents)
    kept = found.result.controller_profit.mean
    assert found.settlement["received less paid"].sum() == pytest.approx(-kept, abs=0.01 * agents)
    found.figure.savefig(tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size > 5000
    assert found.limit.startswith("The data cannot show ")


def test_the_flights_are_those_of_2013():
    table = pl.read_csv(DATA / "flights.csv")
    assert table["flights"].sum() == 336_776 - 9_430  # without those that never arrived
    assert table["carrier"].n_unique() == 16
    assert set(CARRIERS) < set(table["carrier"])


def test_the_pupils_are_those_of_star():
    table = pl.read_csv(DATA / "class-size.csv")
    assert table["pupils"].sum() == 5748
    assert dict(table.group_by("class").agg(pl.col("pupils").sum()).iter_rows()) == {
        "regular": 2000,
        "small": 1733,
        "regular with aide": 2015,
    }


def test_destinations_disagree_and_the_log_says_so(tmp_path):
    found = flights(1, tmp_path)
    assert any(
        note.startswith("MCO sees United Air Lines Inc. differently: 0.06 higher") for note in found.game.notes
    )
    best = (found.log.sums / found.log.counts).argmax(axis=1)
    assert len(set(best.tolist())) > 1
