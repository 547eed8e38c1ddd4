"""What a simulation says about agents who see arms differently."""

import re

import numpy as np
import pytest

from partage.arms import bernoulli
from partage.game import Game
from partage.rules import BalancedETC
from partage.sharing import Sharing
from partage.simulate.chunk import play_chunk, play_run
from partage.simulate.disagreement import summed_up, told_by
from partage.simulate.fold import join
from partage.simulate.play import new_task, play
from partage.simulate.result import Result
from partage.simulate.summary import summary
from partage.traits import Traits

NAMES = ["Clinic A", "Clinic B", "Clinic C"]


def game(*offsets: float, horizon: int = 300) -> Game:
    """Everyone shares both arms. Three agents in lockstep take turns on two arms, so everyone tells both."""
    traits = [Traits(offset=offset) for offset in offsets]
    sharing, names = Sharing.everything(len(offsets), 2), NAMES[: len(offsets)]
    return Game(bernoulli([0.6, 0.5]), sharing, horizon, names, traits, claim_steps=100)


def said(result: Result) -> str:
    return summary(result.as_dict(), "everything").text().replace("\n", " ")


def test_an_agent_who_differs_is_named_in_most_runs() -> None:
    result = play(game(0.0, 0.0, -0.4), BalancedETC(), runs=4, seed=1, baseline=False)
    found = result.disagreement
    assert found is not None
    assert (found.compared, found.warned) == (4, 4)
    first, second = found.named[:2]
    assert {first.arm, second.arm} == {"arm 1", "arm 2"}
    assert first.agents == second.agents == ["Clinic C"]
    assert first.against is None
    assert first.runs == 4
    assert first.difference.mean == pytest.approx(-0.4, abs=0.1)
    assert f"In 4 of 4 runs the reports show that {first.text}: 0." in said(result)
    assert result.as_dict()["disagreement"]["named"][0]["runs"] == 4
    # The same whichever way runs are divided into chunks.
    parts = [play_chunk(new_task(game(0.0, 0.0, -0.4), BalancedETC(), "none", 1), *ends) for ends in ((0, 1), (1, 4))]
    assert np.array_equal(join(parts).disagreements, result.folded.disagreements)


def test_two_agents_who_differ_are_named_together() -> None:
    traits = [Traits(offset=0.3), Traits(offset=-0.3, pace=0.7)]  # another pace: otherwise each tells one arm only
    differing = Game(bernoulli([0.6, 0.5]), Sharing.everything(2, 2), 300, NAMES[:2], traits)
    result = play(differing, BalancedETC(), runs=2, baseline=False)
    assert result.disagreement is not None
    assert result.disagreement.named[0].agents == NAMES[:2]
    assert "Clinic A and Clinic B see arm" in said(result)
    assert "Clinic A is 0." in said(result)


def test_a_single_run_that_warns_has_three_digits() -> None:
    result = play(game(0.0, 0.0, -0.4), BalancedETC(), runs=1, baseline=False)
    assert re.search(
        r"In 1 of 1 run the reports show that Clinic C sees arm \d differently: 0\.\d{3} lower\.", said(result)
    )


def test_agents_who_agree_are_not_named() -> None:
    result = play(game(0.0, 0.0, 0.0), BalancedETC(), runs=3, baseline=False)
    assert result.disagreement == (3, 0, [])
    assert "In no run do the reports show that agents see arms differently." in said(result)


def test_arms_that_one_agent_tells_each_cannot_be_compared() -> None:
    """Two agents in lockstep: the first always explores one arm and the second the other."""
    tally = play_run(game(0.1, -0.1), BalancedETC(), seed=3)
    assert tally.told is not None
    assert np.count_nonzero(tally.told) == 2
    result = play(game(0.1, -0.1), BalancedETC(), runs=2, baseline=False)
    assert result.disagreement == (0, 0, [])
    assert "In no run did two agents tell the same arm, so nothing shows whether they agree." in said(result)


def test_the_papers_game_has_equal_agents() -> None:
    plain = Game(bernoulli([0.6, 0.5]), Sharing.everything(3, 2), 300)
    result = play(plain, BalancedETC(), runs=2, baseline=False)
    assert result.disagreement is None
    assert "disagreement" not in result.as_dict()
    assert "differently" not in said(result)


def test_records_are_those_that_were_told() -> None:
    tally = play_run(game(0.0, 0.0, -0.4), BalancedETC(), seed=1)
    told = told_by(tally)
    assert [sum(record.counts[arm] for record in told.values()) for arm in (0, 1)] == tally.broadcasts.tolist()
    assert np.allclose([sum(record.sums[arm] for record in told.values()) for arm in (0, 1)], tally.sums)


def test_those_who_are_named_most_come_first() -> None:
    rows = np.array([[0, 0, -1, 0.2, 1, -1, -1], [1, 0, -1, 0.4, 1, -1, -1], [1, 1, 0, 0.1, 0, 2, -1]])
    found = summed_up(game(0.0, 0.0, 0.1), rows, compared=5)
    assert (found.compared, found.warned) == (5, 2)
    assert [one.text for one in found.named] == [
        "Clinic B sees arm 1 differently",
        "Clinic A and Clinic C see arm 2 against arm 1 differently",
    ]
    assert found.named[0].difference.mean == pytest.approx(0.3)
    assert (found.named[1].runs, found.named[1].difference.stderr) == (1, None)
