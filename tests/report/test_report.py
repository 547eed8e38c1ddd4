"""The report: numbers in words, figures, tables, one page that needs nothing but itself."""

import re
from html.parser import HTMLParser
from itertools import combinations

import polars as pl
import pytest
from tests.studies.test_studies import play, small

from partage.report.claims import Judged, judge, summary
from partage.report.draw import draw, write_figures
from partage.report.format import estimate, measured, number
from partage.report.page import Drawn, Facts, audit_tables, claims_table, page
from partage.report.style import DARK, LIGHT, house_style, inline_svg
from partage.report.tables import table, write_tables
from partage.simulate.result import Estimate
from partage.studies import FAILS, HOLDS, STUDIES, UNDECIDED, Claim
from partage.theory.audit import AuditRow, Section

FACTS = Facts("partage reproduce", 6, 0, "threads", 1.0, {"partage": "0"})


@pytest.fixture(scope="module")
def all_played():
    """Every study, at few runs; the random one with few agents."""
    studies = [study for study in STUDIES.values() if study.name != "random"]
    return play(*studies, runs=6)


# --- words ----------------------------------------------------------------------------------------------------


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
def test_an_estimate_is_written_as_far_as_its_error_bears(value, text):
    assert estimate(value) == text


def test_numbers_and_percentages():
    assert [number(value) for value in (0, 0.5, 2.345, 1234567.8)] == ["0", "0.500", "2.35", "1,234,568"]
    assert measured(Estimate(0.2351, 0.002), percent=True) == "23.51% ± 0.20%"


# --- claims ---------------------------------------------------------------------------------------------------


def judged(verdict, **changes):
    claim = Claim("It is < so & so", "it", lambda played: None, at_most=1, **changes)
    return Judged("small", claim, Estimate(2.0, 0.1), verdict)


def test_a_verdict_is_a_surprise_if_it_contradicts_what_is_known():
    assert not judged(HOLDS).surprising
    assert judged(FAILS).surprising
    assert not judged(UNDECIDED).surprising
    assert not judged(FAILS, expected=False).surprising
    assert judged(HOLDS, expected=False).surprising


def test_verdicts_are_counted():
    some = [judged(HOLDS), judged(HOLDS), judged(FAILS), judged(UNDECIDED)]
    assert summary(some) == "2 of 4 claims hold, 1 does not, 1 is undecided."


def test_what_a_study_says_is_escaped():
    assert "It is &lt; so &amp; so" in claims_table([judged(HOLDS)])


def test_every_claim_is_in_the_table_with_its_verdict(all_played):
    found = judge(all_played)
    html = claims_table(found)
    assert html.count('class="verdict') == len(found)
    for each in found:
        assert measured(each.measured, each.claim.percent) in html


def test_known_verdicts_show_at_few_runs(all_played):
    assert not [each for each in judge(all_played) if each.surprising]


# --- figures --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "narrow"])
def test_no_label_covers_another(all_played, narrow):
    for played in all_played:
        with house_style("test"):
            figure = draw(played, narrow)
        figure.draw_without_rendering()
        for axes in figure.axes:
            boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
            assert not [pair for pair in combinations(boxes, 2) if _overlap(*pair) > 2]
            assert all(box.x1 <= figure.bbox.x1 and box.x0 >= 0 for box in boxes)


def _overlap(one, other):
    """Height in pixels by which two boxes cover each other."""
    wide = min(one.x1, other.x1) - max(one.x0, other.x0)
    return min(one.y1, other.y1) - max(one.y0, other.y0) if wide > 0 else 0


def test_equal_figures_are_equal_files(tmp_path):
    (played,) = play(small(), runs=3)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = write_figures(played, tmp_path / "a"), write_figures(played, tmp_path / "b")
    assert first[1:] == second[1:]
    for mine, other in zip(first[0], second[0], strict=True):
        assert mine.read_bytes() == other.read_bytes()


def test_a_figure_in_a_page_takes_its_colours_and_clashes_with_none(tmp_path):
    (played,) = play(small(), runs=3)
    _, wide, narrow = write_figures(played, tmp_path)
    one, other = inline_svg(wide, "one", "It does"), inline_svg(narrow, "other", "It does")
    names = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (one, other)]
    assert names[0].isdisjoint(names[1])
    for svg in (one, other):
        assert "http" not in svg
        assert not re.findall(r"#[0-9a-f]{6}\b", svg)
        assert all(f'id="{name}"' in svg for name in re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    assert LIGHT.keys() == DARK.keys()


# --- tables ---------------------------------------------------------------------------------------------------


def test_both_tables_say_what_was_played(tmp_path):
    (played,) = play(small(checkpoints=(5, 50)), runs=8, seed=2)
    csv, parquet = write_tables(played, tmp_path)
    frame = pl.read_parquet(parquet)
    assert frame.equals(table(played))
    assert pl.read_csv(csv, schema=frame.schema).equals(frame)
    (row,) = frame.filter(figure="overall_regret", agents=6).rows(named=True)
    assert (row["mean"], row["stderr"]) == played.result(6).overall_regret
    assert (row["step"], row["runs"], row["seed"]) == (2000, 8, 2)
    over_time = frame.filter(figure="two_ucb_regret_up_to", agents=30, step=50)
    assert over_time["mean"].item() == played.alone(30).curve[1].mean


# --- the page -------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """Checks that what is opened is closed, and collects addresses."""

    EMPTY = frozenset({"meta", "path", "use", "br", "rect"})

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.names = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in self.EMPTY:
            self.open.append(tag)
        self._collect(attrs)

    def handle_startendtag(self, tag, attrs):
        self._collect(attrs)

    def _collect(self, attrs):
        self.addresses += [value for name, value in attrs if name in ("href", "src", "xlink:href")]
        self.names += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        if tag not in self.EMPTY:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def html(all_played, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    drawn = []
    for played in all_played:
        files, wide, narrow = write_figures(played, folder)
        drawn.append(Drawn(wide, narrow, [file.name for file in files]))
    row = AuditRow("Th1", "Theorem 4.1", "regret <", "T > 1", True, "≤ 5", "3", 1.7, 0, 100, "holds")
    return page(all_played, drawn, judge(all_played), [Section("A game", "small", 100, [row])], FACTS)


def test_the_page_needs_nothing_but_itself(html):
    assert "http" not in html
    assert "<script" not in html
    assert "@import" not in html
    assert "url(" not in re.sub(r"url\(#", "", html)


def test_the_page_is_whole(html):
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    assert len(tags.names) == len(set(tags.names))
    inside = {address[1:] for address in tags.addresses if address.startswith("#")}
    assert inside <= set(tags.names)


def test_the_page_begins_with_the_claims_and_says_all(html, all_played):
    assert html.index('class="claims"') < html.index("<section")
    for played in all_played:
        assert f'id="{played.study.name}"' in html
    assert "horizon 1,000,000" in html
    assert "from seed 0" in html
    assert "Theorem 4.1: regret &lt;" in html


def test_the_audit_says_what_became_of_each_promise():
    rows = [
        AuditRow("a", "Lemma 1", "x", "p", False, "≤ 5", "6", 0.8, 3, 100, "violated", "a note"),
        AuditRow("b", "Lemma 2", "y", "–", None, "≤ 5", "6", None, None, 100, "no verdict"),
    ]
    html = audit_tables([Section("A game", "small", 100, rows)])
    for words in ("✗ p", "3 of 100", "✗ violated", "a note", "– no verdict", "× 0.800"):
        assert words in html
