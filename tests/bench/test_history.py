"""Ratios by release."""

import pytest
from bench import history
from bench.parts import PARTS
from bench.rows import Row


@pytest.fixture
def file(tmp_path):
    return tmp_path / "history.csv"


def part(*rows):
    return {"name": "engine", "rows": list(rows)}


def test_only_ratios_that_were_measured_are_recorded():
    rows = Row("a", 2.0), Row("b", 2.0, unit="ms"), Row("c", None, note="too slow"), Row("d", 20.0, above=True)
    assert list(history.ratios([part(*rows)])) == ["engine: a"]


def test_a_release_has_one_line(file):
    history.record("0.1.0", "2026-01-01", {"engine: a": Row("a", 2.0)}, file)
    history.record("0.2.0", "2026-02-01", {"engine: a": Row("a", 1.5), "engine: b": Row("b", 1 / 3)}, file)
    history.record("0.2.0", "2026-02-02", {"engine: a": Row("a", 1.25), "engine: b": Row("b", 1 / 3)}, file)
    assert file.read_text(encoding="utf-8").splitlines() == [
        "version,date,engine: a,engine: b",
        "0.1.0,2026-01-01,2,",
        "0.2.0,2026-02-02,1.25,0.3333",
    ]


def test_the_committed_file_can_be_read():
    lines = history.read()
    assert len({line["version"] for line in lines}) == len(lines)
    assert all(float(value) > 0 for line in lines for name, value in line.items() if ":" in name and value)


def test_recorded_names_belong_to_a_part_and_can_be_read_alone():
    names = [name for line in history.read() for name in line if ":" in name]
    assert {name.partition(":")[0] for name in names} <= {part.name for part in PARTS}
    assert not [name for name in names if "…" in name]


@pytest.mark.parametrize(
    ("before", "now", "more_is_better", "worse"),
    [(2.0, 2.4, False, False), (2.0, 2.6, False, True), (2.0, 1.0, False, False), (2.0, 1.5, True, True)],
)
def test_a_ratio_that_got_worse_is_marked(file, before, now, more_is_better, worse):
    history.record("0.1.0", "2026-01-01", {"engine: a": Row("a", before)}, file)
    table = history.drift({"engine: a": Row("a", now, more_is_better=more_is_better)}, "0.2.0", file)
    assert table["versions"] == ["0.1.0, recorded on 2026-01-01", "0.2.0, now"]
    (row,) = table["rows"]
    assert [cell["value"] for cell in row["cells"]] == [before, now]
    assert [cell["worse"] for cell in row["cells"]] == [False, worse]


def test_a_missing_ratio_is_compared_with_the_last_one_that_exists(file):
    history.record("0.1.0", "2026-01-01", {"engine: a": Row("a", 1.0), "engine: b": Row("b", 1.0)}, file)
    history.record("0.2.0", "2026-02-01", {"engine: b": Row("b", 1.0)}, file)
    table = history.drift({"engine: a": Row("a", 3.0), "engine: c": Row("c", 1.0)}, "0.3.0", file)
    (row,) = table["rows"]
    assert [(cell["value"], cell["worse"]) for cell in row["cells"]] == [(1.0, False), (None, False), (3.0, True)]


def test_a_release_is_compared_with_its_own_line(file):
    history.record("0.2.0", "2026-02-01", {"engine: a": Row("a", 2.0)}, file)
    table = history.drift({"engine: a": Row("a", 3.0)}, "0.2.0", file)
    assert table["versions"] == ["0.2.0, recorded on 2026-02-01", "0.2.0, now"]
    (row,) = table["rows"]
    assert [(cell["value"], cell["worse"]) for cell in row["cells"]] == [(2.0, False), (3.0, True)]


def test_without_a_release_there_is_no_drift(file):
    assert history.drift({"engine: a": Row("a", 1.0)}, "0.1.0", file)["rows"] == []
