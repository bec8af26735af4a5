"""Where keys and values stand in a TOML text that is known to be valid. Nothing is interpreted, only found."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

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
