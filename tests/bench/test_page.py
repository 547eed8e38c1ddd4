"""The page of the bench, and the parts on it."""

import inspect
import json
import re

import pytest
from bench import history, run
from bench.elsewhere import find
from bench.page import page, summary
from bench.parts import MOST, MOST_OF_ALL, PARTS, yielded
from bench.rows import Row
from tests.bench.small_parts import ABOUT, SMALL
from tests.docs.pages import page as page_of


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Return a function that runs the bench with small parts and returns its page."""
    monkeypatch.setattr(run, "PARTS", SMALL)

    def bench(*arguments):
        run.main([*arguments, "--out", str(tmp_path)])
        (file,) = tmp_path.iterdir()
        return file.name, file.read_text(encoding="utf-8")

    return bench


def test_every_part_is_a_function_without_required_arguments():
    assert len({part.name for part in PARTS}) == len(PARTS)
    for part in PARTS:
        required = [
            one
            for one in inspect.signature(find(part.work)).parameters.values()
            if one.default is inspect.Parameter.empty
        ]
        assert not required, part.name


def test_the_parts_fit_into_ten_minutes_and_all_of_them_into_thirty():
    assert sum(part.seconds for part in PARTS if not part.long) <= MOST == 600
    assert sum(part.seconds for part in PARTS) <= MOST_OF_ALL == 1800


def test_a_part_says_what_it_is_about_first():
    about, first, *_ = yielded("tests.bench.small_parts:measure")
    assert about == ABOUT
    assert first == Row("a ratio", 2.0, 3, False, "x")


def test_rows_of_a_part_have_names_of_their_own():
    found = yielded("tests.bench.small_parts:twice")
    assert [next(found) for _ in range(3)][1:] == [Row("first", 2.0), Row("second", 2.0)]
    with pytest.raises(ValueError, match="two rows or charts are called 'first'"):
        next(found)


def test_what_a_part_needs_is_prepared_once_and_may_fail(monkeypatch, tmp_path):
    needs = "tests.bench.small_parts:prepare"
    parts = [part._replace(prepare=needs) for part in SMALL if part.name != "broken"]
    prepared = []
    monkeypatch.setattr(run, "PARTS", parts)
    monkeypatch.setattr(run, "prepare", lambda work, prepare=run.prepare: prepared.append(prepare(work)))
    run.main(["--all", "--out", str(tmp_path)])
    assert prepared == [None]


def test_the_page_has_every_row_with_its_goal_and_verdict(small):
    name, html = small()
    assert name == "bench.html"
    text = re.sub(r"\s+", " ", re.sub(r"<svg.*?</svg>|<style>.*?</style>|<[^>]+>", " ", html, flags=re.DOTALL))
    assert "a ratio 2.00 × at most 3 × ✓ met" in text
    assert (
        "many repeats a note why: docs/scale.md#starts 2.00 ms 1.00 to 4.00, 3 repeats at most 1.5 ms ✗ missed"
        in text
    )
    assert "stopped why: docs/scale.md#starts over 20.0 s at most 1 s ✗ missed" in text
    assert "nothing not measured: too slow at most 5 × ? open" in text
    assert "1 of 4 goals are met, 2 missed, and 1 could not be judged." in text
    assert "What &lt;this&gt; part shows." in text
    assert "the rest of this part failed: OSError: no such thing" in text
    assert "A long part" not in text
    assert "10^15" in text


def test_the_page_needs_nothing_from_outside(small):
    _, html = small("small")
    assert html.count("<svg") == 2  # wide and narrow
    assert not re.search(r"https?://|@import|<script|<link|<img|src=", html)
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


def test_one_part_has_a_page_of_its_own(small):
    name, html = small("long")
    assert name == "bench-long.html"
    assert "A small part" not in html


def test_json_has_all_that_was_measured(small, capsys):
    small("--all", "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["machine"]["cores"] >= 1
    assert [part["name"] for part in found["parts"]] == ["small", "broken", "long"]
    row = found["parts"][0]["rows"][1]
    assert (row["what"], row["measured"], row["goal"], row["low"], row["high"]) == (
        "many repeats",
        2.0,
        1.5,
        1.0,
        4.0,
    )


def test_drift_is_shown():
    machine = run.machine("make bench", 1.0)
    cells = [{"value": 2.0, "worse": False}, {"value": 3.0, "worse": True}]
    drift = {"versions": ["0.1.0", "0.2.0, now"], "rows": [{"what": "engine: a", "cells": cells}]}
    html = page(machine, [], drift)
    assert '<td class="bad">3.00 ✗</td>' in html
    assert "0.2.0, now" in html


def test_the_summary_counts_goals():
    assert summary([Row("a", 1.0)]) == "None of these figures has a goal."
    assert summary([Row("a", 1.0, 2), Row("b", 1.0)]) == "1 of 1 goals are met."


def test_a_missed_goal_links_to_the_section_that_explains_it(small):
    _, html = small("small")
    links = re.findall(r'<a href="../docs/([^"]+)">', html)
    assert links == ["scale.md#starts"] * 2  # of two rows that missed


def test_the_sections_that_explain_goals_exist():
    for part in PARTS:
        if part.why:
            file, _, section = part.why.partition("#")
            headings = re.findall(r"^#+ (.+)$", page_of("docs/" + file), re.MULTILINE)
            assert not section or section in [slug(heading) for heading in headings], part.why


def test_parts_with_goals_name_the_section_that_explains_a_missed_one():
    """The rows of the others have no goals (test_parts.py)."""
    assert {part.name for part in PARTS if not part.why} == {"uneven", "waiting", "peers", "ray", "installs"}
    assert all("#" in part.why for part in PARTS if part.why)


def slug(heading):
    """Return the anchor of a heading, as on GitHub and the site."""
    return re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")


def test_one_line_says_how_each_part_went(small, capsys):
    small("--all")
    lines = [line for line in capsys.readouterr().err.splitlines() if " rows in " in line]
    assert [line.partition(":")[0] for line in lines] == ["small", "broken", "long"]
    assert lines[0].endswith("of at most 120 s, 2 goals missed")
    assert lines[1].endswith("the rest of this part failed: OSError: no such thing")


def test_a_part_by_itself_updates_the_line_of_the_release(small, monkeypatch, tmp_path_factory):
    file = tmp_path_factory.mktemp("history") / "history.csv"
    file.write_text(
        f"version,date,engine: a,small: gone\n{run.partage.__version__},2026-01-01,2,3\n", encoding="utf-8"
    )
    monkeypatch.setattr(history, "FILE", file)
    small("small", "--record")
    (line,) = history.read(file)
    assert (line["engine: a"], line["small: a ratio"]) == ("2", "2")
    assert "small: gone" not in line
