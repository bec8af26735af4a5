"""A release as JSON text: laid out to be read, but each column of a table of cells on a line of its own."""

import json
from collections.abc import Mapping
from typing import Any

MARK = "\x00column "  # no text of a plan holds a control character


def written(document: Mapping[str, Any]) -> str:
    """The same document is the same text; keys stand in its own order."""
    tables = document.get("cells")
    if not tables:
        return json.dumps(document, ensure_ascii=False, indent=1)
    columns: list[Any] = []

    def marked(table: Mapping[str, Any]) -> dict[str, Any]:
        marks = {}
        for name, values in table["columns"].items():
            marks[name] = f"{MARK}{len(columns)}"
            columns.append(values)
        return {**table, "columns": marks}

    plain = {**document, "cells": [marked(table) for table in tables]}
    pieces = json.dumps(plain, ensure_ascii=False, indent=1).split(json.dumps(MARK)[:-1])
    told = [pieces[0]]
    for piece in pieces[1:]:
        place, _, rest = piece.partition('"')
        told += [json.dumps(columns[int(place)], ensure_ascii=False, separators=(",", ":")), rest]
    return "".join(told)
