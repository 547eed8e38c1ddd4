"""`partage reproduce` and `partage studies`, as a person or a machine calls them."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.command_line import INTERRUPTIBLE, without_compiling
from tests.support.packages import needed
from tests.support.patience import PATIENCE
from typer.testing import CliRunner

from partage.cli import app
from partage.report.reproduce import reproduce

EXAMPLE = re.search(
    r"```python\n(.*?)```", (Path(__file__).parents[2] / "docs" / "studies.md").read_text(), re.DOTALL
)[1]


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def mine(tmp_path):
    file = tmp_path / "my_study.py"
    file.write_text(EXAMPLE)
    return file


def test_the_studies_are_listed():
    done = call("studies")
    assert done.exit_code == 0
    for name in ("balanced", "imbalanced", "profit", "over-time", "random", "balance", "order"):
        assert re.search(rf"^ *{name}\b", done.stdout, re.MULTILINE)


def test_the_example_of_the_docs_is_played(mine, tmp_path):
    out = tmp_path / "out"
    done = call("reproduce", mine, "--runs", 20, "--out", out)
    assert done.exit_code == 0, done.output
    assert "1 of 1 claims hold." in done.stdout
    written = {file.name for file in out.iterdir()}
    assert written == {".chunks", "report.html", *(f"horizon.{kind}" for kind in ("svg", "png", "csv", "parquet"))}
    *lines, path = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert str(out / "report.html") in path


def test_json_is_one_object_and_the_same_again(mine, tmp_path):
    first = call("reproduce", mine, "--runs", 20, "--seed", 5, "--out", tmp_path / "a", "--json")
    second = call(
        "reproduce", mine, "--runs", 20, "--seed", 5, "--out", tmp_path / "b", "--on", "processes", "--json"
    )
    one, other = json.loads(first.stdout), json.loads(second.stdout)
    assert one["claims"] == other["claims"]
    assert (one["runs"], one["seed"]) == (20, 5)
    assert one["claims"][0]["verdict"] == "holds"
    assert one["claims"][0]["at_least"] is None
    assert Path(one["files"][0]).name == "report.html"
    assert (tmp_path / "a" / "horizon.csv").read_bytes() == (tmp_path / "b" / "horizon.csv").read_bytes()


def test_a_dask_cluster_gives_the_same_files(mine, tmp_path):
    """Two worker processes, reached by the address of their scheduler."""
    distributed = needed("distributed")
    arguments = ["reproduce", mine, "--runs", 20, "--seed", 5, "--json"]
    here = call(*arguments, "--out", tmp_path / "here")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
    ) as cluster:
        there = call(*arguments, "--out", tmp_path / "there", "--on", f"dask={cluster.scheduler_address}")
    assert there.exit_code == 0, there.output
    assert json.loads(there.stdout)["claims"] == json.loads(here.stdout)["claims"]
    assert (tmp_path / "there" / "horizon.csv").read_bytes() == (tmp_path / "here" / "horizon.csv").read_bytes()


def test_a_single_run_decides_nothing(mine, tmp_path):
    done = call("reproduce", mine, "--runs", 1, "--out", tmp_path / "out", "--json")
    assert done.exit_code == 0
    (claim,) = json.loads(done.stdout)["claims"]
    assert (claim["verdict"], claim["measured"]["stderr"]) == ("undecided", None)


def test_a_claim_that_comes_out_otherwise_is_exit_code_1(mine, tmp_path):
    mine.write_text(EXAMPLE.replace("at_most=1.2", "at_least=1000"))
    done = call("reproduce", mine, "--runs", 20, "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert "does not hold" in done.stdout
    mine.write_text(EXAMPLE.replace("at_most=1.2", "expected=False, at_least=1000"))
    assert call("reproduce", mine, "--runs", 20, "--out", tmp_path / "out").exit_code == 0


def test_the_paper_is_reproduced_and_audited_at_few_runs(tmp_path):
    done = reproduce(["over-time", "profit"], runs=8, out=tmp_path, audit=True)
    assert done.exit_code == 0
    assert done.audit
    html = (tmp_path / "report.html").read_text()
    assert "What the theory promises" in html
    assert "breaks even at 3,566 agents" in html
    assert {played.study.name for played in done.studies} == {"over-time", "profit"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing"], "there are balanced, imbalanced, profit, over-time, random, balance, order"),
        (["no.py"], "no.py does not exist"),
        (["balanced", "--runs", "0"], "The number of runs is 0"),
        (["balanced", "--runs", "many"], "The number of runs is 'many'"),
        (["balanced", "--seed", "-1"], "The seed is -1"),
        (["balanced", "--on", "moon"], "threads, processes, dask"),
        (["balanced", "--out", "FILE"], "cannot be written to"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, arguments, says):
    (tmp_path / "file").write_text("in the way")
    arguments = [str(tmp_path / "file" / "results") if each == "FILE" else each for each in arguments]
    if "--out" not in arguments:
        arguments += ["--out", str(tmp_path / "out")]
    done = call("reproduce", *arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(mine, tmp_path):
    out = tmp_path / "out"
    mine.write_text(EXAMPLE.replace("0.5", "0.899"))
    # So many runs take hours: the signal comes long before the end.
    arguments = ["reproduce", str(mine), "--runs", "2000000", "--out", str(out)]
    running = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        while running.poll() is None and len(list(out.glob(".chunks/*.chunk"))) < 3:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        stdout, stderr = running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
    assert running.returncode == 130
    assert stdout == ""
    said = f"Stopped. Finished parts are in {out}; the same command continues from there.\n"
    assert without_compiling(stderr) == said
    assert len(list(out.glob(".chunks/*.chunk"))) >= 3
    assert not (out / "report.html").exists()
