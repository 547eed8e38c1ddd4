"""Figures of studies, as files and inside the page."""

import re
from itertools import combinations

import pytest
from tests.studies.test_studies import play, small

from partage.report.draw import draw, write_figures
from partage.report.style import DARK, LIGHT, house_style, inline_svg


@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "narrow"])
def test_no_label_covers_another(played_studies, narrow):
    for played in played_studies:
        with house_style("test"):
            figure = draw(played, narrow)
        figure.draw_without_rendering()
        for axes in figure.axes:
            boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
            assert not [pair for pair in combinations(boxes, 2) if overlap(*pair) > 2]
            assert all(box.x1 <= figure.bbox.x1 and box.x0 >= 0 for box in boxes)


def overlap(one, other):
    """Return the height in pixels by which two boxes overlap."""
    wide = min(one.x1, other.x1) - max(one.x0, other.x0)
    return min(one.y1, other.y1) - max(one.y0, other.y0) if wide > 0 else 0


def test_drawing_twice_gives_identical_files(tmp_path):
    (played,) = play(small(), runs=3)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = write_figures(played, tmp_path / "a"), write_figures(played, tmp_path / "b")
    assert first[1:] == second[1:]
    for one, other in zip(first[0], second[0], strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_an_inlined_figure_uses_the_colours_of_the_page_and_has_unique_ids(tmp_path):
    (played,) = play(small(), runs=3)
    _, wide, narrow = write_figures(played, tmp_path)
    one, other = inline_svg(wide, "one", "A < B"), inline_svg(narrow, "other", "A < B")
    names = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (one, other)]
    assert names[0].isdisjoint(names[1])
    for svg in (one, other):
        assert 'aria-label="A &lt; B"' in svg
        assert "http" not in svg
        assert not re.findall(r"#[0-9a-f]{6}\b", svg)
        assert all(f'id="{name}"' in svg for name in re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    assert LIGHT.keys() == DARK.keys()
