"""Environment variables: named and read in one module."""

import ast
from pathlib import Path

import partage
from partage import environment

PACKAGE = Path(partage.__file__).parent


def test_no_other_module_names_a_variable():
    found = {
        source.name
        for source in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and str(node.value).startswith("PARTAGE_")
        and str(node.value).isidentifier()
    }
    assert found == {"environment.py"}


def test_values_are_stripped_and_have_defaults(monkeypatch):
    monkeypatch.setenv("PARTAGE_OPERATOR_TOKEN", " pt_op_x\n")
    monkeypatch.setenv("PARTAGE_LOG_LEVEL", " ")
    monkeypatch.delenv("PARTAGE_DATABASE", raising=False)
    assert environment.operator_token() == "pt_op_x"
    assert environment.log_level() == "info"
    assert environment.database() == ""


def test_a_process_of_its_own_inherits_nothing_of_ours(monkeypatch):
    monkeypatch.setenv("PARTAGE_OPERATOR_TOKEN", "secret")
    monkeypatch.setenv("OTHER", "kept")
    child = environment.for_child(DATABASE="here.db")
    assert {name: value for name, value in child.items() if name.startswith("PARTAGE_")} == {
        "PARTAGE_DATABASE": "here.db"
    }
    assert child["OTHER"] == "kept"


def test_workers_inherit_what_is_passed_on(monkeypatch):
    monkeypatch.setenv("PARTAGE_DATABASE", "there.db")
    environment.pass_on(DATABASE="here.db")
    assert environment.database() == "here.db"
