"""Help texts: an example in each, and facts from the registry."""

import subprocess
import sys

import pytest
from tests.support.command_line import partage
from typer.main import get_command

from partage.cli import app
from partage.ledger.config import DEFAULTS
from partage.ledger.terms import PREPAY, TRUTHFUL
from partage.rules import RULES, live_parameters, live_rules
from partage.settle import SETTLEMENTS


def commands(group, words=()):
    """Yield the words of every command."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name)


@pytest.mark.parametrize("words", list(commands(get_command(app))), ids=" ".join)
def test_every_help_has_an_example(words):
    printed = partage(*words, "--help")
    assert printed.code == 0
    assert any(line.strip().startswith(f"partage {' '.join(words)}") for line in printed.out.splitlines()), printed


def test_the_help_of_a_group_has_an_example():
    for group in ([], ["collaboration"], ["agent"]):
        shown = partage(*group, "--help").out
        assert any(line.strip().startswith("partage ") for line in shown.splitlines()), shown


@pytest.mark.parametrize(("words", "rules"), [(["simulate"], RULES), (["collaboration", "create"], live_rules())])
def test_help_names_every_rule_and_settlement(words, rules):
    shown = " ".join(partage(*words, "--help", COLUMNS="1000").out.split())
    for name, rule in rules.items():
        assert f"{name}: {rule.summary}" in shown
    for settlement in SETTLEMENTS:
        assert settlement in shown
    if rules is not RULES:
        assert f"{DEFAULTS['rule']} (default)" in shown
        for name in rules:
            for parameter in live_parameters(name).values():
                assert f"{parameter.name}: " in shown
                assert parameter.allowed in shown
        assert "default pool with --prepaid, otherwise none" in shown
        assert f"{PREPAY} {TRUTHFUL}" in shown


@pytest.mark.parametrize(
    "program", ["import partage", "import partage.client", "from partage.cli import app; app(['--help'])"]
)
def test_what_computes_nothing_imports_nothing_that_computes(program):
    heavy = {"joblib", "matplotlib", "numba", "numpy", "polars", "scipy", "sqlalchemy", "litestar"}
    watch = f"import atexit, sys; atexit.register(lambda: print('loaded', *({heavy} & set(sys.modules))))"
    command = [sys.executable, "-c", f"{watch}\n{program}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "loaded"
