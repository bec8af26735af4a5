"""References by number and by code: where they stand, what they lead to, and links to it on the built pages.

`THEORY 3.1a` leads to the statement 3.1a of docs/theory/statements, `(R09)` to the rule R09 of docs/threats.md. Run this
file to list references that lead nowhere. mkdocs loads it as a hook, so that on the site each reference is a link.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PLACES = (
    "src/**/*.py",
    "tests/**/*.py",
    "tools/*.py",
    "bench/*.py",
    "proofs/**/*.md",
    "docs/**/*.md",
    "*.md",
)

_NUMBER = r"[1-9][0-9]?(?:\.[1-9][0-9]?[a-z]?)?(?![0-9a-z]|\.[0-9])"
_CHAIN = re.compile(rf"THEORY\s+{_NUMBER}(?:(?:,|;|\s+and|\s+to)\s+{_NUMBER})*")
_NAME = r"(?:[RTLWS][0-9]{2}|B[0-9]{3})"
_CODE = re.compile(rf"(?<![\w.#-]){_NAME}(?:-{_NAME})?(?!\w|-\w)")
_ANCHOR = re.compile(r"(?:\*\*(?P<text>[A-Z0-9-]+)\*\*)?\{#(?P<id>[\w.]+)\}")
_LINTER = re.compile(r"noqa: [A-Z0-9, ]+")
_ASIDE = re.compile(r"<(pre|code|a|h[1-6]|script|style)\b.*?</\1>|<[^>]+>", re.DOTALL)


class Reference(NamedTuple):
    """A name that is cited, and where in the text it begins and ends."""

    name: str
    start: int
    end: int


def names_between(first: str, last: str) -> list[str]:
    """`B001` to `B003` as three names; a single name as itself."""
    width = len(first) - 1
    return [f"{first[0]}{number:0{width}d}" for number in range(int(first[1:]), int(last[1:]) + 1)]


@cache
def anchors(docs: Path = DOCS) -> dict[str, str]:
    """Every name that can be cited, with the page and the anchor it leads to."""
    found: dict[str, str] = {}
    for page in (*sorted((docs / "theory" / "statements").glob("*.md")), docs / "threats.md"):
        for match in _ANCHOR.finditer(page.read_text(encoding="utf-8")):
            first, _, last = (match["text"] or "").partition("-")
            for name in names_between(first, last) if last else [match["id"]]:
                if name in found:
                    raise ValueError(f"{name} is defined twice: {found[name]} and {page.name}")
                found[name] = f"{page.relative_to(docs).as_posix()}#{match['id']}"
    return found


def cited(text: str) -> Iterator[Reference]:
    """Every reference in a text, ranges opened up: `THEORY 2.1 to 2.4` cites four statements."""
    for chain in _CHAIN.finditer(text):
        yield from _of_chain(chain)
    hidden = _LINTER.sub(lambda match: " " * len(match[0]), text)
    for match in _CODE.finditer(hidden):
        first, _, last = match[0].partition("-")
        for name in names_between(first, last or first):
            yield Reference(name, *match.span())


def _of_chain(chain: re.Match[str]) -> Iterator[Reference]:
    before = ""
    for match in re.finditer(rf"(?P<to>\bto\s+)?(?P<name>(?<![\w.]){_NUMBER})", chain[0]):
        place = (chain.start() + match.start("name"), chain.start() + match.end("name"))
        for name in _numbers(before, match["name"]) if match["to"] else [match["name"]]:
            yield Reference(name, *place)
        before = match["name"]


def _numbers(first: str, last: str) -> list[str]:
    """What lies after `first` up to `last`, within one section; across sections only the end."""
    section, _, item = first.partition(".")
    if not last.startswith(f"{section}.") or not item.isdigit() or not last.rpartition(".")[2].isdigit():
        return [last]
    return [f"{section}.{n}" for n in range(int(item) + 1, int(last.rpartition(".")[2]) + 1)]


def unresolved(root: Path = ROOT) -> list[str]:
    """References that lead nowhere, each with its file and line."""
    known = anchors()
    return [
        f"{path.relative_to(root)}:{text.count(chr(10), 0, reference.start) + 1}: {reference.name}"
        for place in PLACES
        for path in sorted(root.glob(place))
        for text in [path.read_text(encoding="utf-8")]
        for reference in cited(text)
        if reference.name not in known
    ]


def linked(html: str, address: dict[str, str]) -> str:
    """The page with its references as links; what is code, a heading or a link already stays as it is."""
    pieces, end = [], 0
    for aside in _ASIDE.finditer(html):
        pieces += [_linked(html[end : aside.start()], address), aside[0]]
        end = aside.end()
    return "".join([*pieces, _linked(html[end:], address)])


def _linked(text: str, address: dict[str, str]) -> str:
    places = {(r.start, r.end): r.name for r in cited(text)}  # of a range, its last name
    for (start, end), name in sorted(places.items(), reverse=True):
        if name in address:
            text = f'{text[:start]}<a href="{address[name]}">{text[start:end]}</a>{text[end:]}'
    return text


def on_page_content(html: str, *, page: Any, files: Any, **_: Any) -> str:
    """The hook: called by mkdocs for each page, after Markdown."""
    from mkdocs.utils import get_relative_url

    address = {}
    for name, target in anchors().items():
        path, _, anchor = target.partition("#")
        if path != page.file.src_uri:
            address[name] = f"{get_relative_url(files.get_file_from_path(path).url, page.url)}#{anchor}"
    return linked(html, address)


if __name__ == "__main__":
    found = unresolved()
    sys.stdout.write("".join(f"{line}\n" for line in found) or "every reference leads somewhere\n")
    sys.exit(1 if found else 0)
