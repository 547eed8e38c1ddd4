"""Replay: pulls that count are distributed as if the rule had played; other events are skipped."""

from pathlib import Path

import numpy as np
import pytest

from partage.board import Pull
from partage.errors import InputError
from partage.logs import Columns, read_log, replay
from partage.logs.reading import read_events
from partage.rules import make_rule

MEANS = [0.2, 0.5, 0.8]


@pytest.fixture(scope="module")
def uniform(tmp_path_factory) -> Path:
    rng, rows = np.random.default_rng(1), 6000
    path = tmp_path_factory.mktemp("log") / "events.csv"
    arms = rng.integers(0, 3, rows)
    lines = [
        f"Shop {agent},arm {arm},{int(rng.random() < MEANS[arm])}"
        for agent, arm in zip(rng.integers(0, 4, rows), arms, strict=True)
    ]
    path.write_text("\n".join(["agent,arm,reward", *lines]))
    return path


class Fixed:
    """Pulls one arm, and shares the first ten rewards."""

    name, private = "fixed", False

    def decide(self, board, shares, own):
        return Pull(2, share=board.record.counts[2] < 10)

    def revise(self, board):
        pass


def test_a_fixed_choice_counts_exactly_the_events_of_its_arm(uniform):
    log = read_log(uniform)
    found = replay(log, read_events(uniform, log), Fixed())
    assert found.pulls == log.counts[:, 2].sum()
    assert found.by_arm == {"arm 0": 0, "arm 1": 0, "arm 2": found.pulls}
    assert list(found.by_agent.values()) == log.counts[:, 2].tolist()
    assert found.reward.mean == log.sums[:, 2].sum() / found.pulls
    assert found.broadcasts == 10
    assert found.logged.mean == log.sums.sum() / log.rows
    assert found.warning is None


@pytest.mark.parametrize("name", ["shared-imed", "balanced-glr", "network-glr", "thompson"])
def test_a_rule_learns_in_a_replay(uniform, name):
    log = read_log(uniform)
    found = replay(log, read_events(uniform, log), make_rule(name), seed=3)
    assert abs(found.pulls - log.rows / 3) < 5 * np.sqrt(log.rows * 2 / 9)
    assert found.reward.mean - found.logged.mean > 5 * found.logged.stderr
    assert max(found.by_arm, key=found.by_arm.get) == "arm 2"
    assert sum(found.by_arm.values()) == sum(found.by_agent.values()) == found.pulls
    assert found == replay(log, read_events(uniform, log), make_rule(name), seed=3)


def test_nobody_shares_what_they_do_not_consent_to(uniform):
    log = read_log(uniform)
    found = replay(log, read_events(uniform, log), make_rule("shared-imed"), shares=[[], [], [], []])
    assert found.broadcasts == 0


def test_a_log_that_is_not_uniform_is_said(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("agent,arm,reward\n" + "A,x,1\nB,x,0\n" * 40 + "A,y,1\nB,y,0\n")
    log = read_log(path)
    found = replay(log, read_events(path, log), make_rule("balanced-glr"))
    assert found.warning.startswith("Arms were not logged uniformly (chi-squared ")
    assert found.as_dict()["uniform"]["fits"] is False


def test_counts_have_no_order(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("agent,arm,reward,n\nA,x,1,2\nB,y,0,3\n")
    log = read_log(path, Columns(count="n"))
    with pytest.raises(InputError, match="their order is not known"):
        read_events(path, log, Columns(count="n"))
