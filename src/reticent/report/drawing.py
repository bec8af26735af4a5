"""How one section of a release is shown: on the page, in pictures and on the terminal. From released numbers alone."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reticent.release.product import Document, Line
from reticent.report.marks import Spec

HOW = "pip install 'reticent[report]'"
"""How to get what draws pictures and workbooks."""

Drawn = tuple[str, str | None, tuple[str, Spec]]
"""Title, table, and (caption, specification) of a picture; no table for single estimates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """How the section of one product is shown.

    **Fields**

    - `heading`: of the part of the page that holds what was asked.
    - `template`: draws it on the page, from what `view` gives it under the name `told`.
    - `view`: from a document, what the page says of it; `asked` lists name and words of each statistic or table.
    - `lines`: from a document, what the terminal prints after a release.
    - `charts`: from a document, its pictures.
    - `is_estimates`: whether the advice on noisy numbers goes for it.
    - `uses`: how it may be used, a sentence each, beside that advice.
    """

    heading: str
    template: str
    view: Callable[[Document], dict[str, Any]]
    lines: Callable[[Document], Iterator[Line]]
    charts: Callable[[Document], Iterator[Drawn]]
    is_estimates: bool = True
    uses: Sequence[str] = ()
