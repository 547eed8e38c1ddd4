"""The tutorial works exactly as written."""

import re
import subprocess
import sys

from tests.docs.pages import blocks, free_port, run_script

TUTORIAL = "docs/tutorial.md"


def shape(text: str) -> list[str]:
    """Return the lines without what depends on chance: numbers, ids, hashes, mills, the state of an arm, bars."""
    text = re.sub(r"[0-9a-f]{64}|\bc[0-9a-f]{12}\b", "#", text)
    text = re.sub(r"-?\d[\d.,]*\d|-?\d", "#", text)
    text = re.sub(r"(North|East|West) Mill", "a mill", text)
    text = re.sub(r"^(a mill[^a-z\n]*)[a-z ]+$", r"\1", text, flags=re.MULTILINE)
    text = re.sub(r"[─├┤●]", "", text)
    return [line for raw in text.splitlines() if (line := " ".join(raw.split()))]


def assert_shown(shown: str, printed: str) -> None:
    """Check that each line on the page was printed, in this order."""
    rest = iter(shape(printed))
    for line in shape(shown):
        assert any(line == found for found in rest), f"{line!r} was not printed:\n{printed}"


def test_the_tutorial_works_as_written(tmp_path):
    port = str(free_port())
    parts, shown = [], []
    for kind, text in blocks(TUTORIAL):
        text = text.replace("127.0.0.1:8000", f"127.0.0.1:{port}")
        if kind == "python":  # to be saved under the name in its first line
            name = re.match(r"# (\w+\.py)\n", text)[1]
            parts.append(f"cat > {name} <<'END OF FILE'\n{text}END OF FILE\n")
        elif kind == "sh":
            text = text.replace("partage serve ", f"partage serve --port {port} ")
            parts.append(f"echo '==== block'\n{text}")
            shown.append("")
        else:
            assert kind == "text"
            shown[-1] += text
    assert len(shown) > 12
    printed = run_script("".join(parts), tmp_path, PARTAGE_URL=f"http://127.0.0.1:{port}")
    assert len(printed) == len(shown)
    for promised, found in zip(shown, printed, strict=True):
        assert_shown(promised, found)
    # the first version of the loop, without Partage
    assert subprocess.run([sys.executable, tmp_path / "three-shops" / "shop.py"], check=False).returncode == 0


def test_adding_partage_takes_five_lines():
    found = [text for kind, text in blocks(TUTORIAL) if kind == "python"]
    harbour = next(text for text in found if text.startswith("# harbour.py"))
    assert re.findall(r"  # (\d)$", harbour, re.MULTILINE) == ["1", "2", "3", "4", "5"]
