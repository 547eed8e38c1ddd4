"""What Partage computes is what it computed when the golden file was recorded, value by value."""

import json

import pytest
from tests.golden import record

GOLDEN = json.loads(record.FILE.read_text())


@pytest.mark.parametrize("part", record.PARTS)
def test_nothing_changed(part: str) -> None:
    found = json.loads(json.dumps(record.PARTS[part]()))
    changed = list(record.differences(GOLDEN[part], found))
    shown = "\n".join(f"{place}: {before} became {after}" for place, before, after in changed[:40])
    assert not changed, f"{len(changed)} values changed:\n{shown}"
