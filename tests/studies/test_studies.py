"""Studies as data: what they play, how claims are judged, what is kept and found again."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partage
from partage.settle.paper import break_even
from partage.simulate.parallel import ranges, workers
from partage.simulate.result import Estimate
from partage.studies import (
    FAILS,
    HOLDS,
    STUDIES,
    UNDECIDED,
    Claim,
    Curve,
    Line,
    Panel,
    Study,
    Trial,
    crossing,
    find,
    largest,
    play_studies,
    quotient,
    ratio,
    smallest,
)
from partage.studies import cache as storing
from partage.studies.cache import Store

ARMS = partage.bernoulli([0.9, 0.5, 0.1])


def small(**changes):
    """A study that takes no time."""
    study = Study(
        name="small",
        question="Does it play?",
        values=(3, 6, 30),
        lines=(Line("etc", partage.BalancedETC(), lambda agents: game(agents)),),
        sharing="In turn.",
        panels=(Panel((Curve("overall_regret", "overall"),)),),
        title=lambda played: "It does",
        text=lambda played: "It plays. It ends.",
    )
    return replace(study, **changes)


def game(agents, pattern=partage.Sharing.round_robin, horizon=2000):
    return partage.Game(ARMS, pattern(agents, 3), horizon)


def play(*studies, runs=40, seed=0, **options):
    with workers(jobs=2) as spread:
        return play_studies(studies, spread, runs, seed, **options)


class Counting:
    """Plays chunks, remembers which, and can be interrupted."""

    def __init__(self, stop_after=None):
        self.chunks, self._stop_after = [], stop_after

    def __call__(self, chunks):
        with workers(jobs=1) as spread:
            for done, finished in enumerate(spread(chunks)):
                if done == self._stop_after:
                    raise KeyboardInterrupt
                self.chunks.append(chunks[finished.place])
                yield finished


# --- the paper's studies --------------------------------------------------------------------------------------


def test_the_studies_are_those_of_the_paper_and_two_more():
    assert list(STUDIES) == ["balanced", "imbalanced", "profit", "over-time", "random", "balance", "order"]


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_every_study_makes_its_games_and_claims_something(study):
    for line in study.lines:
        for at in study.values:
            made = line.game(at)
            assert (made.agents, len(made.arms)) == (at, 10)
            assert made.sharing.sharers().all()
    assert study.claims
    assert study.question.endswith("?")


def test_axes_are_as_wide_as_the_spec_says():
    ends = {name: (study.values[0], study.values[-1]) for name, study in STUDIES.items()}
    assert ends["balanced"] == ends["imbalanced"] == (10, 1000)
    assert ends["profit"] == (10, 10_000)
    assert STUDIES["random"].values == (10, 30, 100, 300, 1000)
    assert STUDIES["over-time"].lines[0].game(20).horizon == 10**5


@pytest.fixture(scope="module")
def known():
    """The paper's settings where values are known, at fewer runs."""
    balanced = replace(STUDIES["balanced"], values=(10, 1000, 10_000))
    imbalanced = replace(STUDIES["imbalanced"], values=(100, 1000))
    return play(balanced, imbalanced, runs=48, seed=1)


@pytest.mark.parametrize(
    ("study", "figure", "at", "mean", "stderr"),
    [
        (0, "two_ucb_regret", 10, 742.2, 2.5),
        (0, "overall_regret", 10, 3127, 9),
        (0, "overall_regret", 10_000, 3127, 9),
        (0, "broadcasts", 1000, 28_204, 121),
        (0, "max_individual_regret", 10, 1113, 6),
        (0, "max_incentive_regret", 1000, 1.75, 0.005),
        (0, "controller_profit", 1000, -4494, 7),
        (0, "controller_profit", 10_000, 11_270, 16),
        (1, "overall_regret", 100, 3312, 15),
        (1, "overall_regret", 1000, 5142, 120),
        (1, "max_individual_regret", 1000, 1113, 6),
    ],
)
def test_known_values(known, study, figure, at, mean, stderr):
    ours = Estimate.of(known[study].by_run(figure, at))
    assert abs(ours.mean - mean) < 5 * math.hypot(ours.stderr, stderr)


def test_the_profit_crosses_zero_at_the_closed_form(known):
    assert crossing(known[0], "controller_profit").mean == pytest.approx(break_even(), rel=1e-3)


# --- claims ---------------------------------------------------------------------------------------------------


@given(st.floats(-5, 5), st.floats(0, 2), st.floats(-2, 0), st.floats(0, 2))
def test_a_claim_is_judged_by_two_standard_errors(mean, stderr, low, high):
    claim = Claim("It is so", "it", lambda played: None, at_least=low, at_most=high)
    within = low <= mean - 2 * stderr and mean + 2 * stderr <= high
    outside = mean + 2 * stderr < low or high < mean - 2 * stderr
    expected = HOLDS if within else FAILS if outside else UNDECIDED
    assert claim.verdict(Estimate(mean, stderr)) == expected


@pytest.mark.parametrize("measured", [Estimate(0.5, None), Estimate(math.nan, None), Estimate(math.nan, 0.1)])
def test_what_cannot_be_judged_is_undecided(measured):
    assert Claim("It is so", "it", lambda played: None, at_most=1).verdict(measured) == UNDECIDED


@pytest.mark.parametrize("limits", [{}, {"at_least": 2, "at_most": 1}, {"at_least": math.inf}])
def test_a_claim_that_cannot_be_judged_is_refused(limits):
    with pytest.raises(partage.InputError, match="limit"):
        Claim("It is so", "it", lambda played: None, **limits)


def test_claims_fail_in_a_world_without_sharing():
    """Everyone alone: the overall regret grows with the number of agents, and nobody is better off."""
    alone = Line("etc", partage.BalancedETC(), lambda agents: game(agents, partage.Sharing.nothing))
    (played,) = play(small(lines=(alone,), claims=STUDIES["balanced"].claims))
    verdicts = [claim.verdict(claim.measure(played)) for claim in played.study.claims]
    assert verdicts[0] == verdicts[2] == verdicts[5] == FAILS


def test_claims_hold_in_a_world_with_sharing():
    (played,) = play(small(claims=STUDIES["balanced"].claims[:2]))
    assert [claim.verdict(claim.measure(played)) for claim in played.study.claims] == [HOLDS, HOLDS]


def test_a_line_may_have_a_pool():
    terms = {"settlement": "pool", "prepaid": lambda agents: 60 / agents, "underwriting": 5.0, "fee": 0.1}
    (played,) = play(small(lines=(Line("pool", partage.BalancedGLR(), game, **terms),)))
    for agents in (3, 6, 30):
        found = played.result(agents).as_dict()
        assert (found["settlement"], found["prepaid"], found["underwriting"]) == ("pool", 60 / agents, 5.0)
        assert found["pooled_charge"]["mean"] <= 60 / agents


def test_ratios_have_the_spread_that_is_seen():
    random = np.random.default_rng(0)
    seen = []
    for _ in range(400):
        below = random.normal(10, 2, 50)
        seen.append(ratio(below * 2 + random.normal(0, 1, 50), below))
    means = np.array([each.mean for each in seen])
    assert means.mean() == pytest.approx(2, abs=0.01)
    assert np.mean([each.stderr for each in seen]) == pytest.approx(means.std(), rel=0.15)
    assert ratio(np.array([3.0]), np.array([2.0])) == (1.5, None)


def test_quotients_largest_and_smallest():
    assert quotient(Estimate(6.0, 0.0), Estimate(2.0, 0.2)) == pytest.approx((3.0, 0.3))
    assert quotient(Estimate(6.0, None), Estimate(2.0, 0.2)) == (3.0, None)
    some = [Estimate(1.0, 0.1), Estimate(3.0, 0.2), Estimate(2.0, 0.3)]
    assert (largest(some).mean, smallest(some).mean) == (3.0, 1.0)


# --- playing --------------------------------------------------------------------------------------------------


def _coin(seed, run):
    return [float((seed + run) % 2), float(run)]


COIN = Trial("coin", ("heads", "run"), _coin, most_runs=5)


def test_a_trial_is_played_beside_the_lines_and_alone():
    (both,) = play(small(trials=(COIN,)), runs=7, seed=3)
    (alone,) = play(small(lines=(), panels=(), trials=(COIN,)), runs=7, seed=3)
    for played in (both, alone):
        assert played.of_trial("coin", "run").tolist() == [0, 1, 2, 3, 4]
        assert played.of_trial("coin", "heads").tolist() == [1, 0, 1, 0, 1]
    assert len(both.by_run("overall_regret")) == 7


def test_a_trial_is_kept_and_found_again(tmp_path):
    study, store = small(lines=(), panels=(), trials=(COIN,)), Store(tmp_path, print)
    for expected in (5, 0):
        counting = Counting()
        (played,) = play_studies([study], counting, 7, 3, store)
        assert len(counting.chunks) == expected
        assert played.of_trial("coin", "run").tolist() == [0, 1, 2, 3, 4]
    other = Counting()
    play_studies([study], other, 7, 4, store)
    assert len(other.chunks) == 5


def test_a_study_needs_a_line_or_a_trial():
    with pytest.raises(partage.InputError, match="at least one"):
        small(lines=(), panels=())
    with pytest.raises(partage.InputError, match="names must differ"):
        small(trials=(replace(COIN, name="etc"),))


def test_a_study_gives_the_figures_of_play():
    (played,) = play(small(checkpoints=(5, 50)), seed=3)
    direct = partage.play(game(6), partage.BalancedETC(), runs=40, seed=3, checkpoints=[5, 50])
    ours = played.result(6)
    assert all(np.array_equal(*pair, equal_nan=True) for pair in zip(ours.folded, direct.folded, strict=True))
    assert ours.two_ucb_regret == direct.two_ucb_regret
    assert played.over_time("average_regret")[1].mean == pytest.approx(played.result(30).curve[1].mean / 30)
    assert len(played.over_time("two_ucb_regret")) == 2


def test_what_studies_have_in_common_is_played_once():
    counting = Counting()
    other = small(name="other", values=(6, 60))
    play_studies([small(), other], counting, runs=40)
    tasks = {id(chunk.task): chunk.task for chunk in counting.chunks}.values()
    assert sorted(task.game.agents for task in tasks) == [1, 3, 6, 30, 60]


def test_longest_chunks_come_first():
    counting = Counting()
    play_studies([small()], counting, runs=40)
    expected = [chunk.expected for chunk in counting.chunks]
    assert expected == sorted(expected, reverse=True)


# --- keeping --------------------------------------------------------------------------------------------------


def test_a_finished_chunk_is_never_played_again(tmp_path):
    store = Store(tmp_path / ".chunks", pytest.fail)
    (first,) = play(small(), store=store)
    counting = Counting()
    (second,) = play_studies([small()], counting, 40, 0, store)
    assert counting.chunks == []
    assert first.seconds == pytest.approx(second.seconds)
    for key, result in first.results.items():
        pairs = zip(result.folded, second.results[key].folded, strict=True)
        assert all(np.array_equal(*pair, equal_nan=True) for pair in pairs)


@pytest.mark.parametrize(
    "change",
    [
        {"lines": (Line("etc", partage.BalancedETC(2), game),)},
        {"lines": (Line("etc", partage.BalancedETC(), lambda agents: game(agents, horizon=2001)),)},
        {"lines": (Line("etc", partage.BalancedETC(), game, settlement="none"),)},
        {"checkpoints": (7,)},
    ],
    ids=["rule", "game", "settlement", "checkpoints"],
)
def test_a_changed_study_is_played_again(tmp_path, change):
    store = Store(tmp_path / ".chunks", pytest.fail)
    play(small(values=(3,)), store=store)
    counting = Counting()
    play_studies([small(values=(3,), **change)], counting, 40, 0, store)
    assert any(chunk.task.game.agents == 3 for chunk in counting.chunks)


@pytest.mark.parametrize("change", ["seed", "runs", "engine"])
def test_changed_runs_are_played_again(tmp_path, monkeypatch, change):
    store = Store(tmp_path / ".chunks", pytest.fail)
    play(small(values=(3,)), store=store)
    if change == "engine":
        monkeypatch.setattr(storing, "sources_digest", lambda: "another engine")
    counting = Counting()
    runs, seed = (70, 0) if change == "runs" else (40, 1 if change == "seed" else 0)
    play_studies([small(values=(3,))], counting, runs, seed, store)
    assert any(chunk.task.game.agents == 3 for chunk in counting.chunks)


def test_after_an_interruption_only_the_rest_is_played(tmp_path):
    store = Store(tmp_path / ".chunks", pytest.fail)
    stopped, resumed = Counting(stop_after=5), Counting()
    with pytest.raises(KeyboardInterrupt):
        play_studies([small()], stopped, 40, 0, store)
    (played,) = play_studies([small()], resumed, 40, 0, store)
    (whole,) = play(small())
    assert len(stopped.chunks) == 5
    assert len(resumed.chunks) + 5 == 4 * len(ranges(40))  # three games, and 2-UCB alone
    for key, result in whole.results.items():
        pairs = zip(result.folded, played.results[key].folded, strict=True)
        assert all(np.array_equal(*pair, equal_nan=True) for pair in pairs)


@pytest.mark.parametrize("damage", [b"", b"not a file of arrays", None], ids=["empty", "other", "cut"])
def test_a_corrupt_file_is_named_set_aside_and_played_again(tmp_path, damage):
    folder = tmp_path / ".chunks"
    (before,) = play(small(), store=Store(folder, pytest.fail))
    victim = sorted(folder.glob("*.chunk"))[3]
    victim.write_bytes(victim.read_bytes()[:-40] if damage is None else damage)
    said, counting = [], Counting()
    (after,) = play_studies([small()], counting, 40, 0, Store(folder, said.append))
    assert len(counting.chunks) == 1
    assert len(said) == 1
    assert str(victim) in said[0]
    assert victim.with_suffix(".corrupt").exists()
    assert victim.exists()
    for key, result in before.results.items():
        assert np.array_equal(result.folded.figures, after.results[key].folded.figures, equal_nan=True)


def test_nothing_is_left_half_written(tmp_path):
    folder = tmp_path / ".chunks"
    play(small(), store=Store(folder, pytest.fail))
    assert not [file for file in folder.iterdir() if file.suffix != ".chunk"]


# --- finding --------------------------------------------------------------------------------------------------


def test_an_unknown_study_lists_the_known_ones():
    with pytest.raises(partage.InputError, match=r"no study 'balance\?'; there are balanced, imbalanced, profit"):
        find(["balance?"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no STUDY"),
        ("STUDY = 3", "has no STUDY"),
        ("STUDY = nothing", "NameError"),
        ("def", "SyntaxError"),
        ("import partage\npartage.bernoulli([2])", "between 0 and 1"),
    ],
)
def test_a_study_file_that_is_none_is_named(tmp_path, text, says):
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(partage.FileError, match=says) as caught:
        find([str(file)])
    assert str(file) in str(caught.value)


def test_a_study_file_that_is_not_there_is_named():
    with pytest.raises(partage.FileError, match=r"nowhere\.py does not exist"):
        find([str(Path("nowhere.py"))])


@pytest.mark.parametrize(
    "change",
    [
        {"name": "a/b"},
        {"values": ()},
        {"values": (5, 3)},
        {"values": (2.5,)},
        {"lines": ()},
        {"lines": (Line("a", partage.BalancedETC(), game),) * 2},
        {"panels": (Panel((Curve("regrets", "what"),)),)},
        {"panels": (Panel((Curve("broadcasts", "what", line="nobody"),)),)},
        {"panels": (Panel((Curve("overall_regret", "what"),), over_time=True),)},
    ],
)
def test_a_study_that_makes_no_sense_is_refused(change):
    with pytest.raises(partage.InputError):
        small(**change)
