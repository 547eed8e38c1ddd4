"""Real crashes, a few of each kind; `make crashes` runs more of them and prints what they left behind."""

from pathlib import Path

import pytest
from tests.crashes import disk, errors, kills, power, races, starts
from tests.support.postgres import Cluster

pytestmark = pytest.mark.extra

KILLS = 4
POINTS = 25
SECONDS = 12.0

on_the_layer = pytest.mark.skipif(disk.unavailable() is not None, reason=str(disk.unavailable()))


def test_a_killed_server_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    killed = kills.kill_server(tmp_path, KILLS)
    assert killed.found.ok, killed.found
    assert killed.found.acknowledged > KILLS * kills.MORE
    assert killed.found.refused > 0


def test_a_killed_postgresql_keeps_what_was_acknowledged(
    postgres: Cluster, postgres_url: str, tmp_path: Path
) -> None:
    killed = kills.kill_postgres(postgres, postgres_url, tmp_path, KILLS)
    assert killed.found.ok, killed.found
    assert killed.found.acknowledged > KILLS * kills.MORE


@on_the_layer
def test_a_power_cut_leaves_what_was_acknowledged(tmp_path: Path) -> None:
    recorded = power.record(tmp_path, checkpoints=1)
    cuts = power.cut(recorded, tmp_path, POINTS)
    assert not cuts.damaged
    assert not cuts.lost
    assert sum(cuts.cuts.values()) > POINTS
    # The same cuts show what a disk that lies about syncs would lose.
    lied = power.cut(recorded, tmp_path, 5, lying=True)
    assert lied.lost


@on_the_layer
def test_each_change_of_a_commit_may_fail(tmp_path: Path) -> None:
    found = errors.fail_each_change(tmp_path, checkpoint=6)
    assert found.refused == found.absent + found.whole > 20
    assert found.answered > 0
    assert found.not_ready == 4
    kinds = {(what, how_long, kind) for what, how_long, kind, suffix in found.struck if suffix == "-wal"}
    assert kinds == {
        (what, how_long, kind)
        for what in ("EIO", "ENOSPC")
        for how_long in ("once", "for good")
        for kind in (disk.WRITE, disk.SYNC)
    }


@on_the_layer
@pytest.mark.parametrize("older", [None, starts.OLDER], ids=["new", "migrated"])
def test_each_change_of_a_start_may_be_its_last(older: Path | None, tmp_path: Path) -> None:
    counts = starts.run(tmp_path, step=7, older=older)
    assert counts["kill: killed"] >= 3
    assert counts["EIO: refused"] > 0
    assert counts["ENOSPC: refused"] > 0


@pytest.mark.parametrize("race", [races.race_servers, races.race_workers])
def test_four_processes_race(race, postgres_url: str, tmp_path: Path) -> None:
    raced = race(postgres_url, tmp_path, SECONDS)
    assert raced.found.ok, raced.found
    assert (raced.closes, raced.kills > 0) == (1, True)
