"""Every public name and every section of a plan lists its parameters, all of them and no other."""

import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest

import reticent
import reticent.plan
from reticent.files import Section
from reticent.schema import codebook

LISTED = re.compile(r"^\s*- `(\w+)`: \S", re.MULTILINE)
MADE_OTHERWISE = {"Ledger": ("create", "open")}
"""Classes whose instances come from a class method, which then has the list."""


LAB = {
    "lab.demo": ("demo_survey",),
    "lab.papers.anonymity": (
        "distinct_diversity",
        "intervals",
        "k_anonymity",
        "recode_globally",
        "recode_locally",
    ),
    "lab.world.design": ("allocate", "frame", "simple", "stratified", "systematic"),
    "lab.world.nonresponse": ("apply", "clustered", "self_masking", "validate"),
    "lab.world.state": ("known_totals", "people", "write_people"),
}
"""What the pages of the lab call from Python."""


def listed(text: str | None) -> list[str]:
    """The names that a docstring has a line for."""
    return LISTED.findall(text or "")


def taken(called: Callable[..., Any]) -> list[str]:
    """The names that a class or function takes, as they are written there."""
    return [name for name in inspect.signature(called).parameters if name != "self"]


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in dir(reticent):
        found = getattr(reticent, name)
        if name in MADE_OTHERWISE:
            yield from ((f"{name}.{way}", getattr(found, way)) for way in MADE_OTHERWISE[name])
        elif callable(found):
            yield name, found
    for home, names in LAB.items():
        yield from ((f"{home}.{name}", getattr(import_module(f"reticent.{home}"), name)) for name in names)


def sections() -> Iterator[type[Section]]:
    """The sections of plans and codebooks, each once."""
    homes = [import_module(f"reticent.plan.{each.name}") for each in iter_modules(reticent.plan.__path__)]
    for home in (*homes, codebook):
        for found in vars(home).values():
            is_section = isinstance(found, type) and issubclass(found, Section) and found is not Section
            if is_section and found.__module__ == home.__name__:
                yield found


def keys(section: type[Section]) -> list[str]:
    """The keys as a plan writes them: `from` and `if` are no names in Python."""
    return [field.alias or name for name, field in section.model_fields.items()]


PUBLIC, SECTIONS = dict(public()), list(sections())


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_lists_what_it_takes(name):
    assert listed(PUBLIC[name].__doc__) == taken(PUBLIC[name])


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_a_section_lists_its_keys(section):
    assert listed(section.__doc__) == keys(section)


def test_all_are_looked_at():
    assert len(PUBLIC) >= 15 and len(SECTIONS) > 20


def test_a_forgotten_and_a_former_parameter_are_noticed():
    """The naive twin: a list that did not follow its function."""

    def blur(rows: int, epsilon: str) -> None:
        """Blur.

        - `rows`: how many.
        - `eps`: how much.
        """

    assert taken(blur) == ["rows", "epsilon"] and listed(blur.__doc__) == ["rows", "eps"]
