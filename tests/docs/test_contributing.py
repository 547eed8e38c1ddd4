"""CONTRIBUTING and the page on dependencies agree with pyproject.toml and the Makefile."""

import re
import tomllib
from itertools import pairwise

from tests.docs.pages import ROOT, page

PROJECT = tomllib.loads(page("pyproject.toml"))
CONTRIBUTING = page("CONTRIBUTING.md")


def section(text: str, heading: str) -> str:
    return re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)[1]


def first_cells(text: str) -> list[str]:
    """Return the first cell of each row of the tables in a text, without the headings."""
    lines = text.splitlines()
    rows = [line for line, after in pairwise([*lines, ""]) if line[:2] == "| " and not after.startswith("|---")]
    return [row.split("|")[1].strip() for row in rows]


def layers() -> list[set[str]]:
    """Return the rooms of each layer of the import contract, highest first."""
    contract = next(each for each in PROJECT["tool"]["importlinter"]["contracts"] if each["type"] == "layers")
    return [set(re.split(r" [|:] ", layer)) for layer in contract["layers"]]


def test_the_table_of_rooms_is_the_import_contract():
    rows = first_cells(section(CONTRIBUTING, "Layout"))
    assert [set(re.findall(r"`(\w+)`", row)) for row in rows] == layers()


def test_every_room_is_in_the_import_contract():
    package = ROOT / "src" / "partage"
    modules = {file.stem for file in package.glob("*.py")} - {"__init__"}
    folders = {file.parent.name for file in package.glob("*/__init__.py")}
    assert modules | folders == set().union(*layers())


def test_every_make_target_is_listed():
    targets = re.findall(r"^([a-z-]+):.*##", page("Makefile"), re.MULTILINE)
    assert {f"make {target}" for target in targets} - {"make help"} == set(
        re.findall(r"^\| `(make [a-z-]+)`", CONTRIBUTING, re.MULTILINE)
    )


def packages(requirements: list[str]) -> set[str]:
    """Return the names of required packages, other than Partage with one of its extras."""
    return {name for each in requirements if (name := re.match(r"[\w-]+", each)[0]) != "partage"}


def test_every_dependency_has_a_reason():
    text = page("docs/dependencies.md")
    extras = PROJECT["project"]["optional-dependencies"]
    assert packages(PROJECT["project"]["dependencies"]) == listed(section(text, "Base: `pip install partage`"))
    for name in ("research", "server"):
        heading = re.search(rf"^## (Extra `{name}`.*)$", text, re.MULTILINE)[1]
        assert packages(extras[name]) == listed(section(text, heading)), name
    others = section(text, "Other extras")
    for name in set(extras) - {"research", "server", "dev", "all"}:
        row = re.search(rf"^\| `{name}` \| (.*?) \|", others, re.MULTILINE)[1]
        assert packages(extras[name]) == set(re.findall(r"[\w-]+(?![\w\]])", row.split("[")[0])), name
    assert packages(extras["dev"]) == listed(section(text, "Development \\(extra `dev`\\)"))


def listed(table: str) -> set[str]:
    return {re.sub(r"\[.*", "", name) for cell in first_cells(table) for name in cell.split(", ")}
