"""`partage prepaid`, and pools and dues on the command line of `partage simulate`."""

import json

import pytest
from tests.support.command_line import without_compiling

from partage import SharedIMED, propose_prepaid
from partage.cli import app

GAME = ["--means=0.9,0.5", "--agents=6", "--horizon=1e3", "--runs=4", "--rule=balanced-glr"]
FILE = """
horizon = 1000
rule = "balanced-glr"
settlement = "pool"
prepaid = 2.5
underwriting = 1
fee = 0.1
arms = [{ mean = 0.9 }, { mean = 0.5 }]
[agents]
count = 6
"""


@pytest.fixture
def run(capsys):
    def partage(*arguments):
        with pytest.raises(SystemExit) as stop:
            app(list(arguments), prog_name="partage")
        printed = capsys.readouterr()
        return stop.value.code, printed.out, without_compiling(printed.err)

    return partage


def test_a_proposal_as_json_and_in_words(run):
    code, out, err = run("prepaid", "--arms=3", "--members=6", "--horizon=1e3", "--fee=0.1", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == propose_prepaid(3, 6, 1000, SharedIMED(), fee=0.1).as_dict()
    code, out, err = run("prepaid", "--means=0.9,0.5", "--members=6", "--horizon=1e3", "--rule=balanced-glr")
    assert (code, err) == (0, "")
    assert out.startswith("Prepay ")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--members=6", "--horizon=1e3"], "Give either --arms or --means"),
        (["--arms=3", "--means=0.5", "--members=6", "--horizon=1e3"], "Give either --arms or --means"),
        (["--arms=3", "--horizon=1e3"], "--members"),
        (["--arms=x", "--members=6", "--horizon=1e3"], "The number of arms is 'x'"),
        (["--arms=3", "--members=6", "--horizon=1e3", "--rule=nonsense"], "nonsense"),
        (["--arms=3", "--members=6", "--horizon=1e3", "--quantile=2"], "The quantile is 2; it must be"),
    ],
)
def test_bad_input_to_prepaid_is_one_sentence(run, arguments, sentence):
    code, out, err = run("prepaid", *arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_a_pool_by_options_and_by_file(run, tmp_path):
    options = ["--settlement=pool", "--prepaid=2.5", "--underwriting=1", "--fee=0.1"]
    code, out, err = run("simulate", *GAME, *options, "--json")
    assert (code, err) == (0, "")
    by_options = json.loads(out)
    file = tmp_path / "game.toml"
    file.write_text(FILE)
    code, out, err = run("simulate", str(file), "--runs=4", "--json")
    assert (code, err) == (0, "")
    by_file = json.loads(out)
    assert {**by_options, "seconds": 0} == {**by_file, "seconds": 0}
    assert (by_file["prepaid"], by_file["underwriting"], by_file["settlement"]) == (2.5, 1.0, "pool")
    # Options take those of the file's terms that fit.
    code, out, _ = run("simulate", str(file), "--runs=2", "--json", "--settlement=dues")
    assert (code, json.loads(out)["prepaid"]) == (0, 2.5)
    code, out, _ = run("simulate", str(file), "--runs=2", "--json", "--settlement=none")
    assert code == 0
    assert "prepaid" not in json.loads(out)


def test_a_pool_in_words(run):
    code, out, err = run("simulate", *GAME, "--settlement=pool", "--prepaid=1")
    assert (code, err) == (0, "")
    words = " ".join(out.split())
    assert "of all compensations; the controller loses at most 0." in words
    assert "that it prepaid." in words
    assert "Individually rational against 2-UCB alone: " in words


def test_a_prepaid_amount_that_covers_nothing_is_warned_of(run):
    code, out, err = run("simulate", *GAME, "--settlement=pool", "--prepaid=1e-6", "--json")
    assert code == 0
    assert json.loads(out)["scale"]["mean"] < 0.01
    assert err.startswith("The prepaid amount of 1e-06 pays ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--settlement=pool"], "The settlement pool needs a prepaid amount"),
        (["--settlement=dues"], "The settlement dues needs a prepaid amount"),
        (
            ["--settlement=pool", "--prepaid=-1"],
            "The prepaid amount is -1; it must be a finite number of at least 0.",
        ),
        (["--settlement=pool", "--prepaid=inf"], "The prepaid amount is inf; it must be"),
        (["--settlement=pool", "--prepaid=much"], "The prepaid amount is 'much'; it must be"),
        (["--prepaid=1"], "nobody prepays; omit it, or use pool or dues."),
        (["--settlement=pool", "--prepaid=1", "--underwriting=-1"], "The underwriting is -1; it must be"),
        (["--settlement=dues", "--prepaid=1", "--fee=0.1"], "The fee is 0.1, but the settlement dues takes none"),
    ],
)
def test_bad_terms_are_one_sentence(run, options, sentence):
    code, out, err = run("simulate", *GAME, *options)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1
