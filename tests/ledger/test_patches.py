"""Patches: applied one after another to the first board, they give every later one."""

import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.sequences import Step, Table, configurations, perform, sequences

from partage.ledger.events import Create
from partage.ledger.messages import BoardView
from partage.ledger.patches import Replace, patch_of, patched
from partage.ledger.views import board_view


def encoded(board: BoardView) -> bytes:
    return msgspec.json.encode(board)


def applied(document: Any, patch: bytes) -> Any:
    """Apply a patch as RFC 6902 says, in place and with nothing of the package."""
    for operation in json.loads(patch):
        assert operation["op"] == "replace"
        *way, last = (step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:])
        place = document
        for step in way:
            place = place[int(step)] if isinstance(place, list) else place[step]
        key = int(last) if isinstance(place, list) else last
        place[key]  # a value that is there is replaced
        place[key] = operation["value"]
    return document


@settings(max_examples=30)
@given(configurations(), sequences(), st.randoms(use_true_random=False))
def test_patches_give_every_later_board(create: Create, steps: list[Step], random: Any) -> None:
    table = Table(create)
    old = board_view(table.state)
    ours: Any = json.loads(encoded(old))
    others = json.loads(encoded(old))
    for step in steps:
        perform(table, step)
        if random.random() < 0.5:  # boards are coalesced
            continue
        new = board_view(table.state)
        patch = msgspec.json.encode(patch_of(old, new))
        assert (patch == b"[]") == (encoded(old) == encoded(new))
        ours, others = patched(ours, msgspec.json.decode(patch, type=list[Replace])), applied(others, patch)
        assert encoded(msgspec.convert(ours, BoardView)) == encoded(new)
        assert json.dumps(ours) == json.dumps(others)
        old = new


SCALARS = st.sampled_from([None, False, True, 0, 1, 0.0, 1.0, 0.5, "", "a/b", "~"])
KEYS = st.sampled_from(["a", "b/c", "~1", ""])
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)


@given(JSON, JSON)
def test_any_state_of_a_rule_is_patched_exactly(before: Any, after: Any) -> None:
    old = BoardView(1, False, None, [], 10, "balanced-glr", None, [], 2, state=before)
    new = msgspec.structs.replace(old, state=after)
    document = json.loads(encoded(old))
    kept = json.dumps(document)
    found = patched(document, msgspec.json.decode(msgspec.json.encode(patch_of(old, new)), type=list[Replace]))
    assert json.dumps(found) == json.dumps(json.loads(encoded(new)))  # 0, 0.0 and false are not the same
    assert json.dumps(document) == kept
