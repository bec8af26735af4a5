"""Blocks of code that look alike: six lines or more that are the same in two places but for layout, comments and imports."""

import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

LEAST = 6
Line = tuple[str, int]
"""A line without its layout, and its number in the file."""


@dataclass(frozen=True, slots=True)
class Block:
    """The same `size` lines in two places, each named by its file and first line."""

    one: str
    other: str
    size: int


def blocks(files: Mapping[str, str], least: int = LEAST) -> list[Block]:
    """Every pair of places with `least` lines alike, each pair as long as it goes and counted once."""
    texts = {path: bare_lines(text) for path, text in files.items()}
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for path, lines in texts.items():
        for start in range(len(lines) - least + 1):
            places[tuple(text for text, _ in lines[start : start + least])].append((path, start))
    pairs = {pair for found in places.values() for pair in combinations(found, 2)}
    first = [pair for pair in pairs if _before(*pair) not in pairs and not _overlap(*pair, least)]
    return sorted(
        (_block(texts, pairs, *pair, least) for pair in first), key=lambda each: (each.one, each.other)
    )


def bare_lines(text: str) -> list[Line]:
    """Lines without comments, docstrings, imports, blank ones, and those of closing brackets alone."""
    skipped = _skipped(ast.parse(text))
    found: dict[int, list[str]] = defaultdict(list)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_layout = token.type in (
            tokenize.COMMENT,
            tokenize.NL,
            tokenize.NEWLINE,
            tokenize.INDENT,
            tokenize.DEDENT,
        )
        if not is_layout and token.start[0] not in skipped and token.string:
            found[token.start[0]].append(token.string)
    lines = [(" ".join(words), number) for number, words in sorted(found.items())]
    return [(line, number) for line, number in lines if line.strip(")]}, :")]


def _skipped(tree: ast.Module) -> set[int]:
    """Numbers of the lines that imports and docstrings stand on."""
    found: set[int] = set()
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Import | ast.ImportFrom) or (is_text and isinstance(node, ast.Expr)):
            found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def _before(one: tuple[str, int], other: tuple[str, int]) -> tuple[tuple[str, int], tuple[str, int]]:
    return (one[0], one[1] - 1), (other[0], other[1] - 1)


def _overlap(one: tuple[str, int], other: tuple[str, int], least: int) -> bool:
    return one[0] == other[0] and other[1] - one[1] < least


def _block(
    texts: Mapping[str, Sequence[Line]],
    pairs: set[tuple[tuple[str, int], tuple[str, int]]],
    one: tuple[str, int],
    other: tuple[str, int],
    least: int,
) -> Block:
    size = least
    while ((one[0], one[1] + size - least + 1), (other[0], other[1] + size - least + 1)) in pairs:
        size += 1
    names = (f"{path}:{texts[path][start][1]}" for path, start in (one, other))
    return Block(next(names), next(names), size)
