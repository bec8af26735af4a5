"""Plans and codebooks of format 1 rewritten in the words of format 2. Comments, order and spacing stay as they were.

Where a plan left its donors' bound to the default of then, the new text says it.

The words are moved in the text itself: keys and values of a valid TOML text are found, not interpreted. The new text is
then read, and must hold exactly what the dictionary of the old one holds in today's words, or nothing is written.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from reticent.errors import PlanError
from reticent.former import DEEPEST, EDITS, IMPUTES, MODELS, REPAIR, VALUES, renamed

Path = tuple[str | int, ...]
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\r\n]+")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'[\s\S]*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Place:
    """A key, a value or a statement: its path, numbers for places in lists, and where its text stands."""

    path: Path
    start: int
    end: int
    text: str | None = None


@dataclass(slots=True)
class Scan:
    """All keys and all plain values of a text, its statements, and where the first of them begins."""

    keys: list[Place] = field(default_factory=list)
    values: list[Place] = field(default_factory=list)
    statements: list[Place] = field(default_factory=list)
    first: int = 0


def scanned(text: str) -> Scan:
    """The places of a valid text."""
    return _Scanner(text).run()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text, self.at, self.scan = text, 0, Scan()
        self.base: Path = ()
        self.counts: dict[Path, int] = {}

    def run(self) -> Scan:
        self._skip(_SPACE)
        self.scan.first = self.at
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                self._header()
            else:
                self._statement(self.base)
            self._skip(_SPACE)
        return self.scan

    def _header(self) -> None:
        is_list = self.text.startswith("[[", self.at)
        self.at += 2 if is_list else 1
        path: Path = ()
        parts = self._parts()
        for place, (name, start, end) in enumerate(parts):
            path = (*path, name)
            if is_list and place == len(parts) - 1:
                self.counts[path] = self.counts.get(path, 0) + 1
            if path in self.counts:
                path = (*path, self.counts[path] - 1)
            self.scan.keys.append(Place(path, start, end))
        self._skip(_BLANK)
        self.at += 2 if is_list else 1
        self.base = path

    def _statement(self, base: Path) -> None:
        """A key, dotted or not, and its value."""
        begin, path = self.at, base
        for name, start, end in self._parts():
            path = (*path, name)
            self.scan.keys.append(Place(path, start, end))
        self._skip(_BLANK)
        self.at += 1  # the sign of equality
        self._skip(_BLANK)
        self._value(path)
        self.scan.statements.append(Place(path, begin, self.at))

    def _parts(self) -> list[tuple[str, int, int]]:
        found = []
        while True:
            self._skip(_BLANK)
            start = self.at
            match = _STRING.match(self.text, start) or _BARE.match(self.text, start)
            self.at = match.end() if match else len(self.text)
            found.append((self.text[start : self.at].strip("\"'"), start, self.at))
            blank = _BLANK.match(self.text, self.at)
            after = blank.end() if blank else self.at
            if self.text[after : after + 1] != ".":
                return found
            self.at = after + 1

    def _value(self, path: Path) -> None:
        sign = self.text[self.at : self.at + 1]
        if sign == "{":
            self._inside("}", lambda _: self._statement(path))
        elif sign == "[":
            self._inside("]", lambda place: self._value((*path, place)))
        else:
            start, is_text = self.at, sign in "\"'"
            match = (_STRING if is_text else _SCALAR).match(self.text, start)
            self.at = match.end() if match else len(self.text)
            words = self.text[start : self.at]
            self.scan.values.append(
                Place(path, start, self.at, words.strip("\"'") if is_text else words.strip())
            )

    def _inside(self, close: str, each: Callable[[int], None]) -> None:
        self.at += 1
        place = 0
        while True:
            self._skip(_SPACE)
            sign = self.text[self.at : self.at + 1]
            if sign in ("", close):
                self.at += 1
                return
            if sign == ",":
                self.at += 1
                place += 1
                continue
            each(place)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else self.at


FORMAT = 2
ESTIMATORS = ("centred", "functional", "adassp", "output", "privgene", "objective")
Data = dict[str, Any]
Edit = tuple[int, int, str]


def upgrade(text: str, codebook: Mapping[str, Any] | None = None) -> str:
    """The file in today's words. The `codebook` of a plan says which columns have levels."""
    data = tomllib.loads(text, parse_float=Decimal)
    if data.get("format", 1) not in (1, FORMAT):
        raise PlanError("is neither 1 nor 2; a newer reticent wrote this file", field="format")
    if not {"protect", "columns"} & set(data):
        raise PlanError("is neither a plan nor a codebook", field="FILE")
    models = [_model(each, codebook) if _kind(each) == "model" else "" for each in _repairs(data)]
    wanted = in_todays_words(data, models)
    made = _applied(text, _edits(text, data, models))
    if not _holds(made, wanted):
        raise PlanError(
            "is written in a way that cannot be rewritten without losing something; write [[repair]] as tables of their "
            "own, or change the words by hand",
            field="FILE",
        )
    return made


def _holds(text: str, wanted: Data) -> bool:
    try:
        return tomllib.loads(text, parse_float=Decimal) == wanted
    except tomllib.TOMLDecodeError:
        return False


def in_todays_words(data: Data, models: Iterable[str] = ()) -> Data:
    """The same plan or codebook; of the repairs, `models` says which method each is, where it is one."""
    made: Data = {}
    for key, value in data.items():
        if key == REPAIR:
            continue
        _put(made, renamed((key,)), _moved(value, (renamed((key,)),)))
    for each, model in zip(_repairs(data), models, strict=True):
        name = EDITS if _kind(each) == "edit" else IMPUTES
        entry = _moved({k: v for k, v in each.items() if name == IMPUTES or k != "kind"}, (name,))
        entry |= {"bound": HUBS} if _is_silent(each) else {}
        made.setdefault(name, []).append({**entry, "method": model} if model else entry)
    return {**made, "format": FORMAT}


def _moved(value: Any, path: tuple[str, ...]) -> Any:
    if len(path) > DEEPEST:
        return value
    if isinstance(value, list):
        return [_moved(each, path) for each in value]
    if isinstance(value, dict):
        made: Data = {}
        for key, inner in value.items():
            now = renamed((*path, key))
            _put(made, now, _moved(inner, (*path, now)))
        return made
    return VALUES.get(path, {}).get(value, value) if isinstance(value, str) else value


def _put(made: Data, key: str, value: Any) -> None:
    if key in made:
        raise PlanError("stands beside the word it had before; keep one of the two", field=key)
    made[key] = value


def _repairs(data: Data) -> list[Data]:
    found = data.get(REPAIR, [])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise PlanError("is a list of tables: [[repair]]", field=REPAIR)
    return found


def _kind(entry: Data) -> str:
    return str(entry.get("kind"))


HUBS = "hubs"


def _is_silent(entry: Data) -> bool:
    """Whether donors say nothing of their bound: it was that of hubs then (decision 23)."""
    return _kind(entry) == "donors" and "bound" not in entry


def _model(entry: Data, codebook: Mapping[str, Any] | None) -> str:
    """Regression for numbers, classes for levels: by what goes with one of them alone, or by the codebook."""
    regression, classes = MODELS
    if entry.get("estimator") in ESTIMATORS or entry.get("fill") == "line" or entry.get("copies", 1) != 1:
        return regression
    if entry.get("estimator") == "table" or entry.get("fill") == "mode" or "groups" in entry:
        return classes
    columns = (codebook or {}).get("columns", {})
    kind = (columns.get(entry.get("column")) or {}).get("kind")
    if kind is None:
        raise PlanError(
            f"does not say whether {str(entry.get('column'))[:80]!r} is a number or has levels, and the codebook was not "
            "found; name it with --codebook",
            field="repair.column",
        )
    return classes if kind in ("categorical", "ordinal") else regression


def _edits(text: str, data: Data, models: list[str]) -> list[Edit]:
    """What changes in the text, place by place."""
    scan = scanned(text)
    found = [edit for key in scan.keys for edit in _key_edit(key, data)]
    for place in scan.values:
        found += _value_edit(place, data, models)
    for statement in scan.statements:
        if _is_edit_kind(statement.path, data):
            found = [edit for edit in found if not statement.start <= edit[0] < statement.end]
            found.append((statement.start, _after(text, statement.end), ""))
    found += [edit for statement in scan.statements for edit in _bound_edit(text, statement, data)]
    return [*found, *_format_edit(text, data, scan)]


def _bound_edit(text: str, statement: Place, data: Data) -> list[Edit]:
    """Say of donors, behind their kind, how they were bounded."""
    place = next((part for part in statement.path if isinstance(part, int)), None)
    if statement.path[0] != REPAIR or _today(statement.path, data) != (IMPUTES, "method") or place is None:
        return []
    if not _is_silent(_repairs(data)[place]):
        return []
    is_line = not text[text.rfind("\n", 0, statement.start) + 1 : statement.start].strip()
    return [(statement.end, statement.end, f'{chr(10) if is_line else ", "}bound = "{HUBS}"')]


def _key_edit(key: Place, data: Data) -> list[Edit]:
    before, now = _names(key.path)[-1], _today(key.path, data)[-1]
    return [(key.start, key.end, now)] if now != before else []


def _value_edit(place: Place, data: Data, models: list[str]) -> list[Edit]:
    path = _today(place.path, data)
    new = VALUES.get(path, {}).get(place.text or "")
    if path == (IMPUTES, "method") and place.text == "model":
        new = models[next(part for part in place.path if isinstance(part, int))]
    return [(place.start, place.end, f'"{new}"')] if new else []


def _is_edit_kind(path: tuple[str | int, ...], data: Data) -> bool:
    return _today(path, data) == (EDITS, "kind")


def _format_edit(text: str, data: Data, scan: Scan) -> list[Edit]:
    if "format" not in data:
        return [(scan.first, scan.first, f"format = {FORMAT}\n\n")]
    return [(v.start, v.end, str(FORMAT)) for v in scan.values if v.path == ("format",)]


def _names(path: tuple[str | int, ...]) -> tuple[str, ...]:
    return tuple(part for part in path if isinstance(part, str))


def _today(path: tuple[str | int, ...], data: Data) -> tuple[str, ...]:
    """The names of a path in today's words, the places in lists left out."""
    made: tuple[str, ...] = ()
    for place, part in enumerate(path):
        if isinstance(part, int):
            continue
        if not made and part == REPAIR:
            made = (_section(path[place + 1] if len(path) > place + 1 else None, data),)
        elif len(made) > DEEPEST:
            made = (*made, part)
        else:
            made = (*made, renamed((*made, part)))
    return made


def _section(place: str | int | None, data: Data) -> str:
    """What one of the repairs is, or all of them where they stand in one list; mixed lists do not read back."""
    entries = _repairs(data)
    chosen = [entries[place]] if isinstance(place, int) else entries
    return EDITS if all(_kind(each) == "edit" for each in chosen) else IMPUTES


def _after(text: str, end: int) -> int:
    """Past what a removed statement leaves: its comma in a list, or its line where nothing else is on it."""
    rest = text[end:]
    bare = rest.lstrip(" \t")
    if bare.startswith(","):
        return len(text) - len(bare[1:].lstrip(" \t"))
    if bare.startswith(("\n", "\r\n")):
        return len(text) - len(bare) + (2 if bare.startswith("\r") else 1)
    return len(text) - len(bare)


def _applied(text: str, edits: Iterable[Edit]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text
