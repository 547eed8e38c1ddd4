"""An extension of Griffe, which reads the docstrings: examples need no heading."""

import re
from typing import Any

import griffe

_FIRST = re.compile(r"^>>> ", re.MULTILINE)
_HEADING = re.compile(r"^Examples\n-+$", re.MULTILINE)


class Examples(griffe.Extension):
    """Put the heading "Examples" before the first example of each docstring, as numpydoc has it."""

    def on_object(self, *, obj: griffe.Object, **_kwargs: Any) -> None:
        """Add the heading to one object's docstring."""
        if obj.docstring is not None and not _HEADING.search(obj.docstring.value):
            obj.docstring.value = _FIRST.sub("Examples\n--------\n>>> ", obj.docstring.value, count=1)
