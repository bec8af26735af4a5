"""Changes of a plan's text: sections added and taken out, keys set and amounts moved. Comments and order stay.

The text of the plan is what counts; forms only write it. After every change the text is read again and must hold exactly
what was meant, or nothing is changed and the curator is asked to edit the text.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from reticent.errors import PlanError
from reticent.files import parse_toml
from reticent.plan.upgrade import scanned
from reticent.web.compose import AMOUNT, block, toml, toml_key

Path = tuple[str | int, ...]
NO_FORM = "is written in a way that no form can change; change it in the text"


def with_block(text: str, added: str) -> str:
    """The text with one more section at its end."""
    joined = text.rstrip("\n") + "\n\n" + added.rstrip("\n") + "\n"
    before, more = plan_data(text), plan_data(added)
    return _meant(joined, _merged(before, more))


def _merged(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(deepcopy(before))
    for key, value in more.items():
        if isinstance(value, list):
            made[key] = [*made.get(key, []), *value]
        elif key in made:
            raise PlanError("is in the plan already; change it in the text", field=key)
        else:
            made[key] = value
    return made


def without_block(text: str, section: str, place: int | None = None) -> str:
    """The text without the section of that number, such as the second `[[statistic]]`, or without one that stands once."""
    path: Path = (section,) if place is None else (section, place)
    heads = [key for key in scanned(text).keys if _is_head(text, key.start)]
    found = next((number for number, key in enumerate(heads) if key.path == path), None)
    data = dict(deepcopy(plan_data(text)))
    if found is None or not _taken_out(data, section, place):
        raise PlanError("is not there; look at the plan again", field=section)
    start = text.rfind("\n", 0, heads[found].start) + 1
    after = next((key.start for key in heads[found + 1 :] if key.path[: len(path)] != path), len(text))
    end = text.rfind("\n", 0, after) + 1 if after < len(text) else len(text)
    kept = text[:start].rstrip("\n") + "\n\n" + _remarks(text[start:end]) + text[end:].lstrip("\n")
    return _meant(kept.rstrip("\n") + "\n", data)


def _taken_out(data: dict[str, Any], section: str, place: int | None) -> bool:
    """Take a section out of what a text holds, if it is there."""
    held = data.get(section)
    if place is None:
        return isinstance(data.pop(section, None), Mapping)
    if not isinstance(held, list) or not 0 <= place < len(held):
        return False
    data[section] = [each for number, each in enumerate(held) if number != place]
    if not data[section]:
        del data[section]
    return True


def _is_head(text: str, start: int) -> bool:
    return text[text.rfind("\n", 0, start) + 1 : start].strip() in ("[", "[[")


def _remarks(cut: str) -> str:
    """Comments at the end of what is cut out speak of what comes after it, and stay."""
    lines = cut.rstrip("\n").split("\n")
    kept: list[str] = []
    while lines and lines[-1].lstrip().startswith("#"):
        kept.insert(0, lines.pop())
    return "".join(f"{line}\n" for line in kept)


def with_value(text: str, path: Path, value: str) -> str:
    """The text with another decimal at a place where one stands."""
    if AMOUNT.fullmatch(value) is None:
        raise PlanError("is a decimal such as 0.5", field=str(path[-1]))
    place = next((each for each in scanned(text).values if each.path == path), None)
    if place is None:
        raise PlanError("stands nowhere that a form can change; change it in the text", field=str(path[-1]))
    written = f'"{value}"' if text[place.start] in "\"'" else value
    data = dict(deepcopy(plan_data(text)))
    inner: Any = data
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = parse_toml(f"x = {written}", "", error=PlanError)["x"]
    return _meant(_replaced(text, place.start, place.end, written), data)


def _replaced(text: str, start: int, end: int, written: str) -> str:
    """The text with another one between two places; blanks before the second stay."""
    tail = text[start:end]
    return text[:start] + written + tail[len(tail.rstrip()) :] + text[end:]


def with_keys(text: str, at: Path, values: Mapping[str, Any]) -> str:
    """The text with these keys in a section, such as `("expect",)` or `("statistic", 2)`; an empty one is taken out.

    A section that stands once is added where it is not there.
    """
    data = dict(deepcopy(plan_data(text)))
    inner: Any = data
    for step in at:
        inner = inner.get(step) if isinstance(inner, Mapping) else inner[step]
    if inner is None:
        wanted = {key: each for key, each in values.items() if each not in EMPTY}
        return with_block(text, block(f"[{at[0]}]", wanted)) if wanted else text
    if not isinstance(inner, dict):
        raise PlanError(NO_FORM, field=str(at[0]))
    for key, value in values.items():
        was = inner.get(key)
        if value in EMPTY:
            inner.pop(key, None)
        else:
            inner[key] = plan_data(f"x = {toml(value)}")["x"]
        if inner.get(key) != was:
            text = _with_key(text, at, key, value)
    return _meant(text, data)


EMPTY: tuple[Any, ...] = ("", None, [], {})


def _with_key(text: str, at: Path, key: str, value: Any) -> str:
    """One key of a section set, on a line of its own where it is new, or taken out with its line."""
    found = scanned(text)
    place = next((each for each in found.statements if each.path == (*at, key)), None)
    written = f"{toml_key(key)} = {toml(value)}" if value not in EMPTY else ""
    if place is not None and written:
        return _replaced(text, place.start, place.end, written)
    if place is not None:
        start, end = text.rfind("\n", 0, place.start) + 1, text.find("\n", place.end) + 1 or len(text)
        return text[:start] + text[end:]
    own = [each for each in found.statements if each.path[:-1] == at]
    last = own or [each for each in found.keys if each.path == at]
    if not written or not last:
        raise PlanError(NO_FORM, field=str(at[0]))
    line = text.find("\n", last[-1].end) + 1 or len(text)
    return text[:line] + ("" if text[:line].endswith("\n") else "\n") + written + "\n" + text[line:]


def plan_data(text: str) -> dict[str, Any]:
    """What a text holds, whether or not it is a plan."""
    return parse_toml(text, "plan", error=PlanError)


def _meant(text: str, data: Mapping[str, Any]) -> str:
    """The text, if it holds just that."""
    try:
        held = plan_data(text)
    except PlanError:
        held = {}
    if held != data:
        raise PlanError(NO_FORM, field="plan")
    return text
