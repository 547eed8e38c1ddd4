"""The version, the dependencies and their pins agree wherever they are written."""

import re
import tomllib

import pytest
from tests.support.archives import ROOT

import partage
from partage import errors

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
LEVELS = {"base": [], "research": ["research"], "server": ["postgres"], "dev": ["dev"]}
PIN = re.compile(r"^([A-Za-z0-9_.-]+)==([^ ;]+)", re.MULTILINE)


def name_of(requirement: str) -> str:
    """Return the name of a requirement, as in httpx of httpx>=0.27."""
    found = re.match(r"[A-Za-z0-9_.-]+", requirement)
    assert found, requirement
    return found[0]


def packages(requirements: list[str]) -> set[str]:
    """Return the packages that requirements name, those of the project's own extras included."""
    named = set()
    for requirement in requirements:
        if name_of(requirement) == "partage":
            extras = requirement.partition("[")[2].rstrip("]").split(",")
            named |= {package for extra in extras for package in packages(EXTRAS[extra])}
        else:
            named.add(name_of(requirement))
    return named


def pins(level: str) -> set[tuple[str, str]]:
    """Return the name and version of every pin in a requirements file."""
    return set(PIN.findall((ROOT / "requirements" / f"{level}.txt").read_text()))


def test_the_version_is_the_same_everywhere() -> None:
    citation = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    changes = re.search(r"^## \[(\d.*?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert citation
    assert changes
    assert citation[1] == changes[1] == partage.__version__


def test_the_base_install_is_light() -> None:
    assert packages(PROJECT["dependencies"]) == {"cryptography", "httpx", "msgspec", "rich", "typer"}


def test_all_is_every_extra_for_users() -> None:
    assert packages(EXTRAS["all"]) == {
        package for extra in EXTRAS.keys() - {"all", "dev", "docs"} for package in packages(EXTRAS[extra])
    }


@pytest.mark.parametrize("extra", errors.EXTRAS)
def test_the_sentence_on_a_missing_extra_looks_for_its_packages(extra: str) -> None:
    own = {name_of(requirement) for requirement in EXTRAS[extra]} - {"partage"}
    assert {package.replace("_", "-") for package in errors.EXTRAS[extra]} - {"distributed"} == own


@pytest.mark.parametrize("level", LEVELS)
def test_every_dependency_is_pinned(level: str) -> None:
    wanted = packages([*PROJECT["dependencies"], *(f"partage[{extra}]" for extra in LEVELS[level])])
    assert wanted <= {name for name, _ in pins(level)}


@pytest.mark.parametrize("level", [*LEVELS, "build"])
def test_the_levels_agree_on_versions(level: str) -> None:
    assert pins(level)
    assert pins(level) <= pins("dev")


@pytest.mark.parametrize("level", [*LEVELS, "build"])
def test_pins_have_hashes_and_no_addresses(level: str) -> None:
    text = (ROOT / "requirements" / f"{level}.txt").read_text()
    requirements = re.sub(r"\\\n", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    assert [line for line in requirements if "--hash=sha256:" not in line] == []
    assert "://" not in text
    assert "--index" not in text
