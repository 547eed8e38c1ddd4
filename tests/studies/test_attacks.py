"""Liars at a table: they play through the moves of live play, and honest members play what the engine plays."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partage
from partage.board import Board, Record
from partage.report.csv_and_parquet import table as data_table
from partage.report.draw import draw
from partage.report.page import describe_games
from partage.report.style import house_style
from partage.settle import settlement_for
from partage.settle.core import rates_of, worth
from partage.settle.money import MICRO, settle
from partage.simulate.parallel import workers
from partage.studies import FAILS, HOLDS, attacks, find, play_studies
from partage.studies.attack_cells import Cell, Terms, bounds
from partage.studies.attack_liars import ATTACKS, BEST, NOBODY, WORST, MadeUpExplores, PhantomCommits
from partage.studies.attack_table import Conduct, Table

RULES = [partage.BalancedGLR(), partage.SharedIMED(), partage.BalancedETC(), partage.KLETC()]
NAMES = [attack.name for attack in ATTACKS]


def small(horizon=400, agents=6):
    return partage.Game(partage.bernoulli([0.9, 0.7, 0.2]), partage.Sharing.round_robin(agents, 3), horizon)


def played_table(attack=NOBODY, rule=RULES[0], run=0, game=None, **options):
    table = Table(game or small(), rule, 1, run, attack.liars, attack.operator, **options)
    table.play()
    return table


# --- the table ------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    st.sampled_from(RULES),
    st.lists(st.floats(0, 1), min_size=2, max_size=4),
    st.integers(1, 7),
    st.integers(2, 300),
    st.integers(0, 2**32),
)
def test_honest_members_play_the_run_that_the_reference_plays(rule, means, agents, horizon, seed):
    sharing = partage.Sharing.dealt(agents, len(means))
    game = partage.Game(partage.bernoulli(means), sharing, horizon)
    table = Table(game, rule, seed, 0)
    table.play()
    tally = partage.play_run(game, rule, seed, reference=True)
    assert np.array_equal(table.told(), tally.explore)
    assert np.array_equal(table.paid(), tally.explore + tally.commit)
    assert np.array_equal([seat.pulls for seat in table.seats], tally.explore + tally.commit)
    board = table.state.board
    assert (board.counts, board.record.sums) == (tally.broadcasts.tolist(), tally.sums.tolist())
    assert board.active == tally.active.tolist()


@pytest.mark.parametrize("attack", ATTACKS, ids=NAMES)
@pytest.mark.parametrize("rule", RULES[:2], ids=lambda rule: rule.name)
def test_a_silent_stretch_is_what_pull_by_pull_play_gives(monkeypatch, rule, attack):
    skipped = played_table(attack, rule)
    monkeypatch.setattr(Table, "_silent_rounds", lambda table: 0)
    plain = played_table(attack, rule)
    assert plain.state.board == skipped.state.board
    assert (plain.told(), plain.paid()) == (skipped.told(), skipped.paid())
    assert [seat.pulls for seat in plain.seats] == [seat.pulls for seat in skipped.seats]


@pytest.mark.parametrize("attack", [each for each in ATTACKS if not each.phantom], ids=lambda attack: attack.name)
def test_reports_as_counts_give_the_same_board_and_claims(attack):
    named, counted = played_table(attack), played_table(attack, named=False)
    assert counted.state.board == named.state.board
    assert counted.told() == named.told()
    used = [[member.used for member in table.state.members.values()] for table in (named, counted)]
    assert used[0] == used[1]


def test_nobody_pulls_more_often_than_the_horizon():
    for attack in ATTACKS:
        table = played_table(attack)
        assert all(member.used <= table.game.horizon for member in table.state.members.values())
        assert all(sum(seat.pulls) == table.game.horizon for seat in table.seats if seat.is_honest)


# --- the attacks ----------------------------------------------------------------------------------------------


def test_phantom_commits_are_on_the_worst_arm_and_were_never_made():
    table = played_table(ATTACKS[0])
    (liar,) = (seat for seat in table.seats if not seat.is_honest)
    member = table.member(liar)
    assert (member.explore, member.commit) == ({WORST: 1}, {WORST: table.game.horizon - 1})
    assert not member.shares
    assert sum(liar.pulls) == 0
    assert table.state.board.by_member[liar.agent].sums == [0, 0, 1.0]


def test_sybils_all_report_the_whole_horizon():
    table = played_table(ATTACKS[2])
    liars = [table.member(seat) for seat in table.seats if not seat.is_honest]
    assert [member.used for member in liars] == 5 * [table.game.horizon]
    assert sum(member.commit[WORST] for member in liars) == 5 * table.game.horizon - 1


def test_made_up_explores_follow_the_mean_of_the_board():
    """What an honest explorer tells has the mean of the arm; what this one tells has that of the board."""
    table = Table(small(), RULES[0], 0, 0, [MadeUpExplores()])
    liar = table.seats[-1]
    table.state.board.record = Record([0, 10, 0], [0.0, 7.0, 0.0])
    told = []
    for _ in range(400):
        told.append(liar.conduct.tells(table, liar, 1))
        table.member(liar).used += 1
    assert set(told) == {0.0, 1.0}
    assert np.mean(told) == pytest.approx(0.7, abs=4 * np.sqrt(0.21 / 400))
    assert liar.pulls == [0, 0, 0]


def test_a_hurried_liar_gets_more_claims_than_one_at_honest_pace():
    slow, fast = (played_table(replace(NOBODY, liars=(MadeUpExplores(pace),))) for pace in (1, 50))
    share = [sum(table.told()[-1]) / sum(table.state.board.counts) for table in (slow, fast)]
    assert share[1] > 1.5 * share[0]


def test_late_and_early_members_are_settled_like_all_others():
    late, early = (next(each for each in ATTACKS if each.name == name) for name in ("joins late", "leaves early"))
    table = played_table(late)
    assert table.member(table.seats[-1]).used == table.game.horizon / 2
    table = played_table(early)
    assert table.member(table.seats[-1]).left
    assert len(table.told()) == len(table.state.members) == 7


def test_an_operator_who_sets_honest_members_aside_lets_the_liar_decide():
    table = played_table(ATTACKS[-1], game=small(horizon=2000))
    aside = [member for member in table.state.members.values() if member.aside]
    assert len(aside) == 2
    assert not {member.id for member in aside} & {*table.state.board.by_member}
    assert table.state.target() != BEST


# --- money ----------------------------------------------------------------------------------------------------


class Anything(Conduct):
    """Do whatever the numbers say."""

    commits = False

    def __init__(self, shares, pace, rewards):
        self.shares, self.pace, self._rewards = shares, pace, rewards

    def tells(self, table, seat, arm):
        return self._rewards[table.state.version % len(self._rewards)]


arms = st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True).map(tuple)
liars = st.builds(Anything, arms, st.integers(1, 20), st.lists(st.floats(0, 1), min_size=1, max_size=5))


@settings(max_examples=15)
@given(
    st.lists(liars | st.just(PhantomCommits()), min_size=1, max_size=4),
    st.sampled_from(RULES[:2]),
    st.floats(0, 20),
    st.floats(0, 50),
    st.booleans(),
)
def test_no_liars_gain_more_than_the_bound(some, rule, prepaid, underwriting, with_operator):
    attack = replace(NOBODY, liars=tuple(some), with_operator=with_operator)
    terms = (
        Terms("none", "none"),
        Terms("pool", "pool", prepaid, underwriting),
        Terms("dues", "dues", prepaid),
        Terms("expected", "equal-share-expected", None, underwriting),
    )
    cell = Cell(small(), rule, attack, terms)
    found = dict(zip(cell.figures, cell(0, 0), strict=True))
    for each in terms:
        assert found[f"{each.name}: operator's room"] >= 0
        if each.name != "expected":
            assert found[f"{each.name}: room"] >= 0
        total = found[f"{each.name}: others"] + found[f"{each.name}: gain"]
        total += 0 if with_operator else found[f"{each.name}: operator"]
        assert total == pytest.approx(0, abs=1e-9)


def test_the_bounds_are_those_of_the_issue():
    board = Board(1000, [0, 1], [True, True])
    board.record, board.active = Record([300, 100], [270.0, 30.0]), [True, False]
    rule, rows = partage.BalancedGLR(), 5 * [[0, 20]]
    for name, with_operator, expected in (
        ("pool", False, (3 * 7 + 4, 4)),
        ("pool", True, (3 * 7, 4)),
        ("dues", False, (0, 0)),
        ("dues", True, (3 * 7, 0)),
        ("none", False, (0, 0)),
    ):
        terms = {} if name == "none" else {"prepaid": 7.0}
        terms |= {"underwriting": 4.0} if name == "pool" else {}
        settled = settle(settlement_for(name, rule, **terms), board, rows)
        assert bounds(settled, 2, with_operator) == tuple(MICRO * each for each in expected)
    assert bounds(settle(settlement_for("equal-share", rule), board, rows), 2) == (None, None)
    without = settle(settlement_for("pool", rule, prepaid=0.0), board, rows)
    assert bounds(without, 2) == bounds(without, 2, with_operator=True) == (0, 0)


BILLED = [
    pytest.param(each, marks=[pytest.mark.extra] if each.horizon == attacks.LONG else [], id=each.title)
    for each in attacks.SETTINGS
]


@pytest.mark.parametrize("setting", BILLED)
def test_the_prepaid_amount_is_the_quantile_of_the_honest_bill(setting):
    game, bills = attacks.game(setting.horizon), []
    settlement = settlement_for("pool", setting.rule, prepaid=1.0)
    for run in range(200):
        tally = partage.play_run(game, setting.rule, 1, run)
        board = Board(game.horizon, range(3), [True] * 3)
        board.record, board.active = Record(tally.broadcasts.tolist(), tally.sums.tolist()), tally.active.tolist()
        bills.append(worth(rates_of(settlement, board), tally.explore.sum(axis=0)) / game.agents)
    assert np.ceil(np.quantile(bills, 0.95)) == setting.prepaid


# --- the study ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def played():
    """The study with short horizons and two runs."""
    trials = []
    for trial in attacks.STUDY.trials:
        cell = trial.play
        game = partage.Game(cell.game.arms, cell.game.sharing, 120)
        trials.append(replace(trial, play=replace(cell, game=game)))
    with workers(jobs=2) as spread:
        return play_studies([replace(attacks.STUDY, trials=trials)], spread, runs=2, seed=3)[0]


def test_it_is_played_with_the_other_studies():
    assert "attacks" in [study.name for study in find([])]
    assert [study.name for study in find(["attacks"])] == ["attacks"]


def test_every_attack_of_the_list_meets_every_settlement():
    fit = {terms.settlement for terms in attacks.GLR.terms}
    assert fit == {"none", "equal-share", "equal-share-expected", "pool", "dues"}
    assert "paper" in {terms.settlement for terms in attacks.SETTINGS[-1].terms}
    assert len(attacks.STUDY.trials) == sum(1 + len(setting.attacks) for setting in attacks.SETTINGS)


def test_a_trial_has_the_figures_of_its_cell(played):
    trial = played.study.trials[1]
    for run in range(2):
        assert played.trials[trial.name][run].tolist() == trial.play(3, run)


def test_the_claims_of_the_bounds_hold_at_any_size(played):
    for claim in attacks.CLAIMS[:5]:
        assert claim.verdict(claim.measure(played)) == HOLDS


def test_a_single_run_beyond_the_bound_is_seen(played):
    name = attacks.GLR.trial(ATTACKS[3])
    column = next(each for each in played.study.trials if each.name == name).figures.index("pool: room")
    broken = {key: values.copy() for key, values in played.trials.items()}
    broken[name][1, column] = -1e-6
    claim = attacks.CLAIMS[0]
    assert claim.verdict(claim.measure(replace(played, trials=broken))) == FAILS


def test_losses_compare_the_same_runs(played):
    setting, attack = attacks.GLR, ATTACKS[0]
    before, after = (played.of_trial(setting.trial(each), "regret") for each in (NOBODY, attack))
    assert attacks.regret(played, setting, attack).mean == pytest.approx(np.mean(after - before))


def test_it_says_and_draws_what_it_found(played):
    study = attacks.STUDY
    assert study.title(played)
    assert study.text(played).endswith(".")
    assert "runs of each trial" in describe_games(played)
    for shown in study.tables(played):
        assert all(len(row) in (1, len(shown.headings)) for row in shown.rows)
    rows = data_table(played)
    assert len(rows) == sum(len(trial.figures) for trial in study.trials)
    for narrow in (False, True):
        with house_style("test"):
            figure = draw(played, narrow)
            figure.canvas.draw()
        assert len(figure.axes[0].containers) == len(attacks.COLOURS)
