"""The tutorial works exactly as written."""

import re
import subprocess
import sys

from tests.docs.pages import blocks, run_tutorial

TUTORIAL = "docs/tutorial.md"


def test_the_tutorial_works_as_written(tmp_path):
    assert run_tutorial(TUTORIAL, tmp_path) > 12
    # the first version of the loop, without Partage
    assert subprocess.run([sys.executable, tmp_path / "three-shops" / "shop.py"], check=False).returncode == 0


def test_adding_partage_takes_five_lines():
    found = [text for kind, text in blocks(TUTORIAL) if kind == "python"]
    harbour = next(text for text in found if text.startswith("# harbour.py"))
    assert re.findall(r"  # (\d)$", harbour, re.MULTILINE) == ["1", "2", "3", "4", "5"]
