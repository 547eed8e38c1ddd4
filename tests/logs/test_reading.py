"""Logs become what they say; what cannot be used is refused in one sentence."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage.errors import FileError, InputError
from partage.logs import Columns, game_of_log, read_consent, read_log
from partage.logs.game import MOST_POINTS, compact
from partage.unit import Unit

PLAIN = "agent,arm,reward\nA,x,1\nA,y,0\nB,x,1\nB,y,1\nB,x,0\n"


@pytest.fixture
def written(tmp_path: Path):
    def write(text: str, name: str = "events.csv") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_counts_and_sums(written):
    log = read_log(written(PLAIN))
    assert (log.agents, log.arms, log.rows, log.unit, log.binary) == (("A", "B"), ("x", "y"), 5, None, True)
    assert log.counts.tolist() == [[1, 1], [2, 1]]
    assert log.sums.tolist() == [[1, 0], [1, 1]]


def test_parquet_and_counts_say_the_same(written, tmp_path):
    table = pl.read_csv(written(PLAIN))
    table.with_columns(pl.col("reward").cast(pl.Boolean)).write_parquet(tmp_path / "events.parquet")
    told = written("agent,arm,reward,n\nA,x,1,1\nA,y,0,1\nB,x,1,1\nB,x,0,1\nB,y,1,1\nB,y,0,0\n", "told.csv")
    plain = read_log(written(PLAIN))
    for other in (read_log(tmp_path / "events.parquet"), read_log(told, Columns(count="n"))):
        assert other.cells.equals(plain.cells)


def test_names_are_texts_in_natural_order(written):
    log = read_log(written("shop,product,sales\n10,007,1\n9, 7 ,0\n10,x,true\n"), Columns("shop", "product", "sales"))
    assert log.agents == ("9", "10")
    assert log.arms == ("007", "7", "x")


def test_values_are_rescaled_and_the_map_is_kept(written):
    text = "agent,arm,reward\nA,x,-20\nA,y,30\nB,x,5\nB,y,80\n"
    log = read_log(written(text), unit="minutes")
    assert log.unit == Unit(-20, 80, "minutes")
    assert [log.unit.value(one) for one in (log.sums / log.counts).ravel()] == pytest.approx([-20, 30, 5, 80])
    less = read_log(written(text), less_is_better=True)
    assert less.unit == Unit(80, -20)
    assert less.sums.ravel().tolist() == pytest.approx([1, 0.5, 0.75, 0])
    assert read_log(written(text), best=-30).unit == Unit(80, -30)
    assert read_log(written(text), worst=100).unit == Unit(100, -20)
    assert read_log(written(text), worst=-100).unit == Unit(-100, 80)
    assert read_log(written(text), worst=-100, best=100).unit == Unit(-100, 100)


def test_rows_without_a_value_are_left_out_and_said(written):
    log = read_log(written(PLAIN + "A,x,\nA,y,NA\n,x,1\nB,,0\n"))
    assert log.rows == 5
    assert [note.split(" and are")[0] for note in log.notes] == [
        "1 of 9 rows have no 'agent'",
        "1 of 9 rows have no 'arm'",
        "2 of 9 rows have no 'reward'",
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("agent,arm,sales\nA,x,1\n", "there is no column 'reward'; it has 'agent', 'arm', 'sales'"),
        ("agents,arm,reward\nA,x,1\n", "there is no column 'agent' (did you mean 'agents'?)"),
        ("agent,arm,reward\nA,x,1\nB,y,many\n", "a value of the column 'reward' is 'many'"),
        ("agent,arm,reward\nA,x,1\nB,y,inf\n", "a value of the column 'reward' is 'inf'"),
        ("agent,arm,reward\nA,x,1\nA,y,0\n", "the only agent in the column 'agent' is 'A'"),
        ("agent,arm,reward\nA,x,1\nB,x,0\n", "the only arm in the column 'arm' is 'x'"),
        ("agent,arm,reward\nA,x,3\nB,y,3\n", "every reward is 3"),
        ("agent,arm,reward\nA,x,\nB,,3\n", "no row has an agent, an arm and a reward"),
        ("agent,arm,reward\n", "no row has an agent, an arm and a reward"),
        ("agent,arm,reward\n" + "".join(f"A,{i},{i % 2}\nB,{i},1\n" for i in range(1001)), "at most 1,000 arms"),
    ],
)
def test_what_is_refused(written, text, sentence):
    path = written(text)
    with pytest.raises(InputError, match=re.escape(f"{path}: {sentence}" if "most" not in sentence else sentence)):
        read_log(path)


@pytest.mark.parametrize(("rows", "sentence"), [("A,x,1,-1\n", "negative"), ("A,x,1,some\n", "not a whole number")])
def test_counts_are_whole_numbers(written, rows, sentence):
    with pytest.raises(InputError, match=sentence):
        read_log(written("agent,arm,reward,n\n" + rows), Columns(count="n"))


def test_values_outside_the_given_ends_are_refused(written):
    with pytest.raises(InputError, match=r"a reward is 1; all must be between the worst value, 0, and the best, 0.5"):
        read_log(written(PLAIN), worst=0, best=0.5)


def test_a_file_that_is_no_table(tmp_path):
    with pytest.raises(FileError, match="there is no such file"):
        read_log(tmp_path / "none.csv")
    (tmp_path / "text.parquet").write_text("no")
    with pytest.raises(FileError, match="cannot be read"):
        read_log(tmp_path / "text.parquet")


def test_consent(written):
    log = read_log(written(PLAIN))
    assert read_consent(written("agent,arm\nB,y\nB,x\nB,y\n", "consent.csv"), log) == [[], [0, 1]]
    with pytest.raises(InputError, match="the arm 'z' is not in the log"):
        read_consent(written("agent,arm\nB,z\n", "consent.csv"), log)


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0, 1), st.integers(1, 50)), min_size=1), st.integers(1, 6))
def test_compact_cells_keep_counts_and_means(rows, points):
    cells = pl.DataFrame(rows, schema={"arm": pl.Int64, "reward": pl.Float64, "count": pl.Int64}, orient="row")
    cells = cells.group_by("arm", "reward").agg(pl.col("count").sum()).with_columns(agent=pl.lit(0, pl.Int64))
    found = compact(cells.select("agent", "arm", "reward", "count"), points)
    paid = (pl.col("reward") * pl.col("count")).sum()
    for arm in cells["arm"].unique():
        before, after = (table.filter(pl.col("arm") == arm) for table in (cells, found))
        assert after.height <= points or after.height == before.height <= points
        assert after["count"].sum() == before["count"].sum()
        assert after.select(paid).item() == pytest.approx(before.select(paid).item(), rel=1e-12, abs=1e-12)
        assert after["reward"].is_sorted()


def test_a_large_log_makes_a_short_game(tmp_path):
    rng = np.random.default_rng(7)
    table = pl.DataFrame(
        {
            "agent": rng.integers(0, 3, 30_000),
            "arm": rng.integers(0, 2, 30_000),
            "reward": rng.normal(20, 5, 30_000),
        }
    )
    table.write_parquet(tmp_path / "events.parquet")
    log = read_log(tmp_path / "events.parquet", unit="euros")
    game = game_of_log(log, means="one").file
    assert game.game.unit == log.unit
    for arm, name in zip(game.game.arms, log.arms, strict=True):
        assert len(arm.values) <= MOST_POINTS
        rewards = table.filter(pl.col("arm") == int(name))["reward"]
        assert log.unit.value(arm.mean) == pytest.approx(rewards.mean(), rel=1e-12)
        spread = np.sqrt(np.average((np.array(arm.values) - arm.mean) ** 2, weights=arm.counts))
        assert log.unit.amount(spread) == pytest.approx(rewards.std(), rel=0.01)
