"""Several rules on the same runs: paired differences, one baseline, tables."""

import json

import numpy as np
import pytest

from partage import (
    BalancedETC,
    BalancedGLR,
    Comparison,
    Estimate,
    Game,
    InputError,
    Sharing,
    bernoulli,
    compare,
    play,
)

GAME = Game(bernoulli([0.9, 0.6, 0.5]), Sharing.round_robin(6, 3), horizon=3000)


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compare(GAME, [BalancedETC(), BalancedGLR(), BalancedGLR(lead=2)], runs=15, seed=3)


def test_differences_are_those_of_each_run(found):
    assert list(found.results) == ["balanced-etc", "balanced-glr", "balanced-glr with lead 2"]
    single = {name: play(GAME, one.rule, runs=15, seed=3, baseline=False) for name, one in found.results.items()}
    for name in list(found.results)[1:]:
        columns = [single[one].frame()["overall_regret"].to_numpy() for one in (name, "balanced-etc")]
        assert found.difference(name) == Estimate.of(columns[0] - columns[1])
    ours = found.difference("balanced-glr", "broadcasts", than="balanced-glr with lead 2")
    theirs = found.difference("balanced-glr with lead 2", "broadcasts", than="balanced-glr")
    assert (ours.mean, ours.stderr) == (-theirs.mean, theirs.stderr)


def test_every_rule_has_the_same_bar(found):
    bars = [result.bar for result in found.results.values()]
    assert bars[0] is not None
    assert bars == [bars[0]] * 3
    assert {result.settlement.alone for result in found.results.values()} == {"best"}


def test_what_is_shown(found):
    text = str(found)
    assert str(found.difference("balanced-glr")) in text
    assert "3 rules: 6 agents, 3 arms, horizon 3,000" in text
    assert "balanced-glr with lead 2" in found._repr_html_()
    told = found.as_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["differences"]["balanced-glr"]["controller_profit"] is None, "one of them settles nothing"
    frame = found.frame()
    assert (frame.height, frame.columns[:2]) == (45, ["rule", "run"])
    assert len(found.plot().axes) == 3


def test_progress_goes_up_to_the_end():
    seen = []
    compare(GAME, [BalancedETC(), BalancedGLR()], runs=4, baseline=False, progress=lambda *at: seen.append(at))
    assert np.all(np.diff([done for done, _ in seen]) >= 0)
    assert seen[-1] == (8, 8)


def test_bad_arguments_are_refused(found):
    with pytest.raises(InputError, match="Two rules have the name balanced-glr"):
        compare(GAME, [BalancedGLR(), BalancedGLR()], runs=1)
    with pytest.raises(InputError, match="at least one"):
        compare(GAME, [], runs=1)
    with pytest.raises(InputError, match="must be one of balanced-etc, balanced-glr"):
        found.difference("thompson")
    with pytest.raises(InputError, match="must be one of overall_regret"):
        found.difference("balanced-glr", "luck")
