"""How a release, a plan, a preview or a ledger shows itself in a notebook: small pieces of HTML, escaped, without scripts."""

from collections.abc import Iterable, Sequence
from html import escape

STYLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"
CELL = "text-align:left;padding:2px 10px 2px 0;border-bottom:1px solid #8884"


def html_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str = "") -> str:
    """A table of plain texts."""
    top = f"<caption style='text-align:left'>{escape(caption)}</caption>" if caption else ""
    head = "".join(f"<th style='{CELL}'>{escape(str(text))}</th>" for text in headings)
    body = "".join(
        "<tr>" + "".join(f"<td style='{CELL}'>{escape(str(text))}</td>" for text in row) + "</tr>"
        for row in rows
    )
    return f"<table style='{STYLE}'>{top}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def paragraph(*sentences: str) -> str:
    """Sentences, each on a line."""
    return "".join(f"<div>{escape(sentence)}</div>" for sentence in sentences if sentence)
