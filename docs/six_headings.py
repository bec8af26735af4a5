"""For the reference pages: the six headings of a docstring become a list, one line for each."""

import re
from typing import Any

import griffe

LINE = re.compile(r"^(Guarantee|Adjacency|Theorem|Proof|Assumes|Keeps back) {2,}", re.MULTILINE)


class SixHeadings(griffe.Extension):
    """Rewrites docstrings as they are collected."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is not None and LINE.search(obj.docstring.value):
            obj.docstring.value = LINE.sub(r"- **\1**: ", obj.docstring.value)
