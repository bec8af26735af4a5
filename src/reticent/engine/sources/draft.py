"""Draft a codebook from a header: names, types and value labels. Levels and bounds never come from rows."""

import json
import re
from collections.abc import Mapping
from typing import Any

from reticent.engine.duckdb.engine import types_of
from reticent.engine.sources.arrow import read_labels
from reticent.engine.sources.open import STATISTICAL, open_path
from reticent.errors import SourceError
from reticent.files import is_printable
from reticent.schema.predicate import is_column_name

HEAD = """# Drafted from the header; no row was read. Every TODO needs an answer from the questionnaire or the design,
# never from the rows: what you write here is public.
format = 2

[survey]
name = "TODO"
unfinished = true      # remove when the codebook is complete
unit = ""              # TODO: "row" (one record, one respondent), or the identifier column below
# at_most = 1          # with an identifier: the most records one respondent may own
# sample_size = 1000   # only where the number of respondents is public
"""
IDENTIFIER = re.compile(r"(^|_)(id|serialno|seqn|caseid|pid)$", re.IGNORECASE)


def draft_codebook(text: str, elsewhere: Mapping[str, str] | None = None) -> str:
    """TOML text for the file at the path `text`, or for a header `elsewhere`, marked unfinished."""
    kinds, labels, levels = _header(text) if elsewhere is None else (dict(elsewhere), {}, {})
    names = _names(list(kinds))
    parts = [_column(names[h], h, kinds[h], labels.get(h, ""), levels.get(h, {})) for h in kinds]
    return HEAD + "".join(parts)


def _header(text: str) -> tuple[dict[str, str], dict[str, str], dict[str, dict[Any, str]]]:
    ending = "." + text.rsplit(".", 1)[-1].lower()
    if ending not in STATISTICAL:
        return types_of(open_path(text)), {}, {}
    from pathlib import Path

    if not Path(text).is_file():
        raise SourceError("does not exist or is not a file", field="source")
    kinds, labels, levels = read_labels(Path(text))
    words = {"double": "float", "float": "float", "string": "text"}
    return {name: words.get(kind, "integer") for name, kind in kinds.items()}, labels, levels


def _names(headers: list[str]) -> dict[str, str]:
    """A plain name for every header, none twice."""
    names: dict[str, str] = {}
    for header in headers:
        plain = re.sub(r"[^A-Za-z0-9_]+", "_", header).strip("_")[:55] or "column"
        plain = plain if is_column_name(plain) else f"q_{plain}"
        unique, number = plain, 2
        while unique in names.values():
            unique, number = f"{plain}_{number}", number + 1
        names[header] = unique
    return names


def _column(name: str, header: str, kind: str, label: str, levels: dict[Any, str]) -> str:
    lines = [f"\n[columns.{name}]"]
    if header != name:
        lines.append(f"source = {_quoted(header)}")
    if label:
        lines.append(f"label = {_quoted(label)}")
    lines += _domain(name, kind, levels)
    lines.append('# missing_codes = ["-9"]    # codes that mean "no answer"')
    lines.append('# universe = "age >= 15"    # who was asked, if not everybody')
    return "\n".join(lines) + "\n"


def _domain(name: str, kind: str, levels: dict[Any, str]) -> list[str]:
    if levels:
        codes = ", ".join(_quoted(_code(code)) for code in levels)
        meanings = "; ".join(f"{_code(code)} {word}" for code, word in levels.items())
        return ['kind = "categorical"', f"levels = [{codes}]", f"# {_plain(meanings)}"]
    if IDENTIFIER.search(name):
        return ['kind = "identifier"    # TODO: or remove this column']
    if kind == "boolean":
        return ['kind = "categorical"', 'levels = ["false", "true"]']
    if kind == "integer":
        return ['kind = "integer"', "bounds = []    # TODO: lowest and highest possible answer"]
    if kind.startswith(("float", "decimal")):
        return [
            'kind = "decimal"',
            "bounds = []    # TODO: lowest and highest possible answer",
            'grid = "0.01"    # TODO',
        ]
    return ['kind = "categorical"', "levels = []    # TODO: every possible answer"]


def _code(code: Any) -> str:
    return str(int(code)) if isinstance(code, float) and code.is_integer() else str(code)


def _quoted(text: str) -> str:
    return json.dumps(_plain(text), ensure_ascii=False)


def _plain(text: str) -> str:
    return "".join(c if is_printable(c) else " " for c in text)[:300]
