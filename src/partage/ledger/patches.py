"""Patches: what changed from one board to the next, as JSON Patch (RFC 6902).

A patch replaces values that are there. It never adds or removes one: where a list or an object has other entries than
before, it is replaced as a whole. So any JSON Patch library can apply it, and a few lines can too.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from partage.ledger.messages import BoardView


class Replace(Struct, tag_field="op", tag="replace"):
    """Replace the value at a place; `path` is a JSON Pointer (RFC 6901)."""

    path: str
    value: Any


def patch_of(old: BoardView, new: BoardView) -> list[Replace]:
    """Return what makes the new board of the old one.

    >>> old = BoardView(1, False, None, [], 1000, "balanced-glr", None, [], 3)
    >>> patch_of(old, msgspec.structs.replace(old, version=2, clock=5))
    [Replace(path='/version', value=2), Replace(path='/clock', value=5)]
    """
    found: list[Replace] = []
    for name in BoardView.__struct_fields__:
        before, after = getattr(old, name), getattr(new, name)
        if name != "arms" or len(before) != len(after):
            found += changes(f"/{name}", msgspec.to_builtins(before), msgspec.to_builtins(after))
            continue
        for place, (one, other) in enumerate(zip(before, after, strict=True)):
            if one != other:  # most arms did not change, and comparing structs is fast
                found += changes(f"/arms/{place}", msgspec.to_builtins(one), msgspec.to_builtins(other))
    return found


def changes(path: str, old: Any, new: Any) -> Iterator[Replace]:
    """Yield what differs between two JSON values at a path: by entry if both have the same entries, or as a whole.

    >>> list(changes("/shop", {"flour": [1, 2, 3]}, {"flour": [1, 5, 3]}))
    [Replace(path='/shop/flour/1', value=5)]
    """
    if type(old) is type(new) is dict and list(old) == list(new):
        for key, value in new.items():
            yield from changes(f"{path}/{_escaped(key)}", old[key], value)
    elif type(old) is type(new) is list and len(old) == len(new):
        inside = [list(changes(f"{path}/{place}", old[place], value)) for place, value in enumerate(new)]
        if 2 * sum(map(bool, inside)) > len(new):  # saying where each of them is would take more room
            yield Replace(path, new)
        else:
            for found in inside:
                yield from found
    elif type(old) is not type(new) or old != new:  # 0 and 0.0 differ as JSON
        yield Replace(path, new)


def patched(document: Any, patch: Iterable[Replace]) -> Any:
    """Return the document with a patch applied. The document itself stays as it is.

    Raises
    ------
    LookupError, TypeError, ValueError
        A path leads nowhere: the patch belongs to another document.

    >>> patched({"version": 1, "arms": [{"claims": 0}]}, [Replace("/arms/0/claims", 2)])
    {'version': 1, 'arms': [{'claims': 2}]}
    """
    for one in patch:
        document = _replaced(document, [_unescaped(step) for step in one.path.split("/")[1:]], one.value)
    return document


def _replaced(document: Any, path: list[str], value: Any) -> Any:
    """Return a copy in which one value is replaced; it shares with the original what did not change."""
    if not path:
        return value
    copied = document.copy()
    step: Any = path[0] if isinstance(document, dict) else int(path[0])
    copied[step] = _replaced(document[step], path[1:], value)
    return copied


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _unescaped(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")
