"""The example of docs/own-rules.md is the module that the tests load, check and serve."""

from tests.docs.pages import ROOT, blocks


def test_the_page_shows_the_module():
    shown = [block.text for block in blocks("docs/own-rules.md") if block.kind == "python"]
    assert shown[0].strip() == (ROOT / "docs/own_rules/halving.py").read_text().strip()
