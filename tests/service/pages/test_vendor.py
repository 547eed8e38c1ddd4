"""The vendored files are those that their README names."""

import hashlib
import re
from pathlib import Path

import partage

VENDOR = Path(partage.__file__).parent / "service/pages/static/vendor"


def test_the_vendored_files_are_the_named_ones():
    rows = re.findall(r"^\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|$", (VENDOR / "README.md").read_text(), re.MULTILINE)
    there = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in VENDOR.iterdir()
        if file.name != "README.md"
    }
    assert there == dict(rows)


def test_each_vendored_package_comes_with_its_licence():
    for name in ("htmx", "uPlot"):
        assert "THE SOFTWARE IS PROVIDED" in (VENDOR / f"{name}.LICENSE").read_text()
