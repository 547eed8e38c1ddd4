"""What the wheel and the source archive contain."""

import tarfile
import zipfile
from pathlib import PurePosixPath

from tests.support.archives import ROOT, Archives

import partage

PACKAGE = ROOT / "src" / "partage"
JUNK = {
    "__pycache__",
    ".venv",
    ".git",
    ".hypothesis",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    "dist",
    "results",
}


def test_the_wheel_holds_the_package_and_nothing_else(archives: Archives) -> None:
    with zipfile.ZipFile(archives.wheel) as wheel:
        names = set(wheel.namelist())
    about = f"partage-{partage.__version__}.dist-info"
    expected = {
        f"partage/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if not name.startswith(about)} == expected
    assert {name.removeprefix(f"{about}/") for name in names if name.startswith(about)} == {
        "METADATA",
        "WHEEL",
        "RECORD",
        "entry_points.txt",
        "licenses/LICENSE",
    }


def test_the_wheel_holds_what_is_not_python(archives: Archives) -> None:
    with zipfile.ZipFile(archives.wheel) as wheel:
        kinds = {PurePosixPath(name).suffix for name in wheel.namelist() if name.startswith("partage/")}
        assert "partage/py.typed" in wheel.namelist()
    assert {".html", ".css", ".js", ".svg"} <= kinds


def test_the_source_archive_can_be_tested(archives: Archives) -> None:
    with tarfile.open(archives.sdist) as sdist:
        paths = [PurePosixPath(name).relative_to(f"partage-{partage.__version__}") for name in sdist.getnames()]
    assert {"src", "tests", "docs", "requirements", "pyproject.toml", "Makefile", "LICENSE"} <= {
        path.parts[0] for path in paths
    }
    assert [path for path in paths if JUNK & {*path.parts} or path.suffix == ".pyc"] == []
