"""The tools of the crash tests find what they look for: a lost row, a doubled one, a write that was not synced."""

import json
import random
from pathlib import Path

import pytest
from tests.crashes.disk import DELETE, OPEN, SYNC, TRUNCATE, WRITE, Change
from tests.crashes.load import Answered, compare, keys_of
from tests.crashes.power import WAYS, File, Folder

LINES = (
    (Path(__file__).parents[1] / "golden" / "format-4" / "imed-pool.ndjson").read_bytes().splitlines(keepends=True)
)
ROWS = [json.loads(line)["row"] for line in LINES]
SOURCE = random.Random(1)


def test_what_was_acknowledged_and_is_there_is_fine() -> None:
    answered = [Answered(key, 200, 0) for row in ROWS for key in keys_of(row)]
    found = compare(LINES, answered)
    assert found.ok
    assert found.rows == len(ROWS)
    assert found.acknowledged == len(answered) > 0


def test_what_is_lost_or_there_although_refused_is_found() -> None:
    tell = next(row for row in ROWS if row["kind"] == "tell")
    key = ("tell", tell["agent"], tell["pull"], tell["reward"])
    other = ("tell", tell["agent"], tell["pull"], 1 - tell["reward"])
    assert compare(LINES, [Answered(other, 200, 0)]).lost == (other,)
    assert compare(LINES, [Answered(other, 409, 0)]).ok
    assert compare(LINES, [Answered(key, 409, 0)]).refused_but_there == (key,)
    assert compare(LINES, [Answered(key, 409, 0)], unsure={key}).ok


def test_a_ledger_without_its_last_rows_has_lost_them() -> None:
    answered = [Answered(key, 200, 0) for row in ROWS for key in keys_of(row)]
    lost = compare(LINES[:-20], answered).lost
    assert set(lost) == {key for row in ROWS[-20:] for key in keys_of(row)}


def test_a_doubled_row_has_a_key_twice() -> None:
    tell = next(row for row in ROWS if row["kind"] == "tell")
    assert set(keys_of(tell)) & set(keys_of(tell | {"seq": tell["seq"] + 1, "reward": 0.123}))


def written(*changes: Change) -> File:
    file = File()
    file.pending = [Change(WRITE, "", 0, b"a" * 1024)]
    file.sync()
    file.pending = list(changes)
    return file


def test_only_what_was_synced_is_certain() -> None:
    file = written(Change(WRITE, "", 512, b"b" * 1024), Change(TRUNCATE, "", 700, b""))
    assert file.after("nothing", SOURCE) == b"a" * 1024
    assert file.after("all", SOURCE) == b"a" * 512 + b"b" * 188
    sectors = {file.after("some sectors", SOURCE) for _ in range(200)}
    assert b"a" * 1024 + b"b" * 512 in sectors  # the second sector alone
    assert b"a" * 512 + b"b" * 512 in sectors  # the first alone
    file.sync()
    assert {file.after(way, SOURCE) for way in WAYS} == {b"a" * 512 + b"b" * 188}


@pytest.mark.parametrize(("synced", "names"), [(0, [[""], ["", "-wal"]]), (1, [[""]])])
def test_a_deleted_file_may_come_back_unless_the_folder_is_synced(synced: int, names: list[list[str]]) -> None:
    folder = Folder()
    for change in (Change(OPEN, "-wal", 0, b""), Change(WRITE, "-wal", 0, b"x"), Change(SYNC, "-wal", 0, b"")):
        folder.change(change)
    assert folder.after("nothing", SOURCE) == {"": b"", "-wal": b"x"}
    folder.change(Change(DELETE, "-wal", synced, b""))
    assert sorted({tuple(sorted(folder.after("some", SOURCE))) for _ in range(100)}) == [
        tuple(each) for each in names
    ]
