"""Every test can fail: it asserts something, itself or through a helper that does."""

import ast
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parents[1]

# Calls that fail a test by themselves: pytest's, the browser's `expect`, PettingZoo's, and the check that Partage
# gives its users.
CHECKS = {"raises", "warns", "fail", "expect", "api_test", "parallel_api_test", "check_rule"}


class Function(NamedTuple):
    """A function or method, whether it asserts anything by itself, and the names of the functions that it calls."""

    name: str
    asserts: bool
    calls: set[str]

    @property
    def is_test(self) -> bool:
        """Whether pytest takes it for a test."""
        return self.name.startswith("test")


class File(NamedTuple):
    """The functions of a file, and the modules that it imports from."""

    functions: list[Function]
    imports: set[str]


def without_assertion(sources: dict[str, str]) -> list[str]:
    """Return the tests that assert nothing.

    A test asserts something if it has an `assert`, makes one of the calls in `CHECKS`, or calls a helper that does.
    A helper is a function or method of the same file, or of a file of the tests that it imports from.

    Parameters
    ----------
    sources
        The source of each file by its module's name, as in `tests.support.api`.
    """
    files = {module: _parsed(source) for module, source in sources.items()}
    found = []
    for module, file in files.items():
        known = [*file.functions, *(f for name in file.imports & files.keys() for f in files[name].functions)]
        helpers = _helpers([function for function in known if not function.is_test])
        found += [
            f"{module}::{function.name}"
            for function in file.functions
            if function.is_test and not function.asserts and not function.calls & helpers
        ]
    return found


def _helpers(functions: list[Function]) -> set[str]:
    """Return the names of the functions that assert something, themselves or through others of them."""
    names = {function.name for function in functions if function.asserts}
    while more := {function.name for function in functions if function.calls & names} - names:
        names |= more
    return names


def _parsed(source: str) -> File:
    functions, imports = [], set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = list(ast.walk(node))
            calls = {name for part in inside if (name := _called(part))}
            asserts = any(isinstance(part, ast.Assert) for part in inside) or bool(calls & CHECKS)
            functions.append(Function(node.name, asserts, calls))
        elif isinstance(node, ast.ImportFrom) and node.module:
            imports.add(node.module)
    return File(functions, imports)


def _called(node: ast.AST) -> str | None:
    """Return the name that a call uses: `check(…)`, `host.refused(…)`; not `subprocess.run(…)`, `"".join(…)`."""
    match node:
        case ast.Call(func=ast.Attribute(ast.Constant() | ast.JoinedStr() | ast.Name("subprocess"), _)):
            return None
        case ast.Call(func=ast.Name(name) | ast.Attribute(_, name)):
            return name
    return None


def test_every_test_asserts_something() -> None:
    files = [path for path in sorted(TESTS.rglob("*.py")) if path != Path(__file__)]
    sources = {".".join(path.relative_to(TESTS.parent).with_suffix("").parts): path.read_text() for path in files}
    assert without_assertion(sources) == []


def test_a_test_without_an_assertion_is_found() -> None:
    helpers = """
def check(): assert one()
def through(): check()
def idle(): pass
class Host:
    def refused(self): assert self.status == 400
"""
    tests = """
from tests.helpers import Host, idle, through
def test_by_itself(): assert 1
def test_by_pytest():
    with pytest.raises(ValueError): raise ValueError
def test_by_a_helper(): through()
def test_by_a_method(): host.refused()
def test_idle(): idle()
def test_of_text(): "".join(assertion)
class TestSome:
    async def test_nothing(self): pass
"""
    alone = "def test_of_another_file(): through()"
    found = without_assertion({"tests.helpers": helpers, "tests.some": tests, "tests.alone": alone})
    assert [name.rpartition("::")[2] for name in found] == [
        "test_idle",
        "test_of_text",
        "test_nothing",
        "test_of_another_file",
    ]
