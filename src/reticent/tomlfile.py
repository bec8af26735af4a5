"""Read a TOML file that anybody may have written: bounded, exact, and never executed."""

import os
import stat
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from reticent.errors import ReticentError
from reticent.words import nearest

LARGEST_FILE = 2**20
DEEPEST = 100
MOST_POINTS = 20_000  # a key of n dotted parts takes the parser n^2 steps


class Section(BaseModel):
    """A table of a TOML file: nothing unknown, nothing converted behind the writer's back."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Model = TypeVar("Model", bound=Section)


def read_toml(path: Path, *, error: type[ReticentError]) -> dict[str, Any]:
    """The file as a dictionary; decimals stay exact. `error` says what kind of file was refused."""
    path = path if len(path.name) <= 100 else path.with_name(f"{path.name[:100]}...")
    text = _text(path, error)
    if _depth(text) > DEEPEST:
        raise error(f"is nested more than {DEEPEST} deep; write it flatter", field=path.name)
    if text.count(".") > MOST_POINTS:
        raise error(f"holds more than {MOST_POINTS} points; write it shorter", field=path.name)
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, ValueError, ArithmeticError) as problem:
        is_parsed = isinstance(problem, tomllib.TOMLDecodeError)
        reason = _unquoted(str(problem)) if is_parsed else "a number is too long"
    except RecursionError:
        reason = "it is nested too deep"
    raise error(f"is not valid TOML: {reason[:200]}", field=path.name)


def _unquoted(reason: str) -> str:
    """The parser's words without what they quote: the file may turn out to hold rows. Line and column stay."""
    words, mark, place = reason.rpartition("(at ")
    quotes = words.replace("'='", "").replace("']'", "").replace("']]'", "")
    return reason if mark and not set(quotes) & {"'", '"'} else f"see {place.removesuffix(')')}"


def _text(path: Path, error: type[ReticentError]) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as problem:
        raise error(f"cannot be opened: {os.strerror(problem.errno or 0)}", field=path.name) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise error("is not a file; give the path of one", field=path.name)
    with os.fdopen(handle, "rb") as file:
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise error("is larger than 1 MiB", field=path.name)
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise error("is not UTF-8 text; save it as UTF-8", field=path.name) from None


def _depth(text: str) -> int:
    """An upper bound of the nesting, counted without parsing."""
    deepest = depth = 0
    for char in text:
        depth += (char in "[{") - (char in "]}")
        deepest = max(deepest, depth)
    return deepest


def fill(model: type[Model], data: Mapping[str, Any], *, error: type[ReticentError], at: str) -> Model:
    """`data` as a `model`, or one sentence naming the field and the way out."""
    try:
        return model.model_validate(dict(data))
    except ValidationError as problem:
        found = problem.errors(include_url=False, include_context=False, include_input=False)
    # A word that is not known explains the one that is missing, not the other way round.
    first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    place = _place(at, first["loc"])
    if first["type"] == "extra_forbidden":
        word = str(first["loc"][-1])
        known = _fields(model, first["loc"][:-1])
        listed = ", ".join(sorted(known))
        hint = nearest(word, known) or f"; known here: {listed}"
        raise error(f"is not a known key{hint}", field=place)
    raise error(first["msg"].removeprefix("Value error, ")[:300], field=place)


def _place(at: str, parts: tuple[int | str, ...]) -> str:
    """`statistic[0].epsilon`, as a plan's reader would point at it."""
    place = at
    for part in parts:
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else part
    return place


def _fields(model: type[BaseModel], path: tuple[int | str, ...]) -> set[str]:
    """Names allowed at a place inside `model`, as far as nested models can be followed."""
    for part in path:
        known = {info.alias or name: info.annotation for name, info in model.model_fields.items()}
        inner = (known.get(str(part)), *get_args(known.get(str(part))))
        model = next((m for m in inner if isinstance(m, type) and issubclass(m, BaseModel)), model)
    return {info.alias or name for name, info in model.model_fields.items()}
