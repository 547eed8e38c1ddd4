"""The HTML report: complete, well-formed and self-contained."""

import re
from html.parser import HTMLParser

import pytest

from partage.report.draw import write_figures
from partage.report.format import measured
from partage.report.judged_claims import JudgedClaim, judge_claims
from partage.report.page import Provenance, StudyFigure, page
from partage.report.style import DARK
from partage.simulate.result import Estimate
from partage.studies import HOLDS, Claim
from partage.theory.audit import AuditRow, Section

PROVENANCE = Provenance("partage reproduce", 6, 0, "threads", 1.0, "partage 0")


class Tags(HTMLParser):
    """Checks that every tag is closed, and collects links and ids."""

    EMPTY = frozenset({"meta", "path", "use", "br", "rect"})

    def __init__(self):
        super().__init__()
        self.open, self.links, self.ids = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in self.EMPTY:
            self.open.append(tag)
        self.collect(attrs)

    def handle_startendtag(self, tag, attrs):
        self.collect(attrs)

    def collect(self, attrs):
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href")]
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        if tag not in self.EMPTY:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def html(played_studies, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    figures = []
    for played in played_studies:
        files, wide, narrow = write_figures(played, folder)
        figures.append(StudyFigure(wide, narrow, [file.name for file in files]))
    row = AuditRow("Th1", "Theorem 4.1", "regret <", "T > 1", True, "≤ 5", "3", 1.7, 0, 100, "holds")
    audit = [Section("A game", "small", 100, [row])]
    return page(played_studies, figures, judge_claims(played_studies), audit, PROVENANCE)


def test_the_page_loads_nothing(html):
    assert "http" not in html
    assert "<script" not in html
    assert "@import" not in html
    assert "url(" not in re.sub(r"url\(#", "", html)


def test_the_page_is_well_formed(html):
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    assert len(tags.ids) == len(set(tags.ids))
    assert {link[1:] for link in tags.links if link.startswith("#")} <= set(tags.ids)


def test_the_page_starts_with_the_claims_and_shows_every_study(html, played_studies):
    assert html.index('class="claims"') < html.index("<section")
    for played in played_studies:
        assert f'id="{played.study.name}"' in html
    assert "horizon 1,000,000" in html
    assert "from seed 0" in html
    assert "Theorem 4.1: regret &lt;" in html


def test_the_style_sheet_is_inside_the_page(html):
    assert html.count("<style>") == 1
    assert "border-collapse: collapse;" in html
    for name, code in DARK.items():
        assert f"--{name}: {code};" in html


def test_every_claim_has_its_measured_value_and_verdict(html, played_studies):
    claims = judge_claims(played_studies)
    table = html[html.index('<table class="claims">') : html.index("<section")]
    assert table.count('class="verdict') == len(claims)
    for each in claims:
        assert measured(each.measured, each.claim.percent) in table


def test_text_is_escaped():
    claim = Claim("A < B & C", "<b>", lambda played: None, at_most=1, note="<i>")
    html = page([], [], [JudgedClaim("small", claim, Estimate(0.5, 0.1), HOLDS)], None, PROVENANCE)
    assert "A &lt; B &amp; C" in html
    assert "&lt;b&gt;" in html
    assert "&lt;i&gt;" in html


def test_the_audit_shows_every_promise():
    rows = [
        AuditRow("a", "Lemma 1", "x", "p", False, "≤ 5", "6", 0.8, 3, 100, "violated", "a note"),
        AuditRow("b", "Lemma 2", "y", "–", None, "≤ 5", "6", None, None, 100, "no verdict"),
    ]
    html = page([], [], [], [Section("A game", "small", 100, rows)], PROVENANCE)
    for words in ("✗ p", "3 of 100", "✗ violated", "a note", "– no verdict", "×\N{NO-BREAK SPACE}0.800"):
        assert words in html
