"""What Partage computes is what it computed when the golden file was recorded, value by value."""

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from tests.golden import record

GOLDEN = json.loads(record.FILE.read_text())


def differences(expected: Any, found: Any, place: str = "") -> Iterator[str]:
    """Yield the places at which two JSON values differ."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted({*expected, *found}):
            missing = object()
            yield from differences(expected.get(key, missing), found.get(key, missing), f"{place} / {key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for at, (before, after) in enumerate(zip(expected, found, strict=True)):
            yield from differences(before, after, f"{place} [{at}]")
    elif isinstance(expected, float) and isinstance(found, float) and math.isnan(expected) and math.isnan(found):
        return
    elif type(expected) is not type(found) or expected != found:
        yield f"{place}: {str(expected)[:80]} became {str(found)[:80]}"


@pytest.mark.parametrize("part", record.PARTS)
def test_nothing_changed(part: str) -> None:
    found = json.loads(json.dumps(record.PARTS[part]()))
    changed = list(differences(GOLDEN[part], found))
    assert not changed, f"{len(changed)} values changed:\n" + "\n".join(changed[:40])
