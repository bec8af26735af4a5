"""The sections of a plan file as they are written, `[weight]` with its parts among them, checked by pydantic.

Public words only; no row has been read. Sections that a feature reads by itself are dictionaries here.
"""

import re
from decimal import Decimal
from typing import Any

from pydantic import Field, field_validator

from reticent.answer.poststrata import Law
from reticent.errors import is_printable
from reticent.files import Section
from reticent.plan.totals import Rows

FORMAT = 2
RELEASE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


class SurveySection(Section):
    source: str
    codebook: str
    ledger: str
    relation: str | None = None
    imputed_before: dict[str, Any] | None = None

    @field_validator("source", "codebook", "ledger")
    @classmethod
    def _inside(cls, path: str) -> str:
        if not path or len(path) > 500 or not is_printable(path):
            raise ValueError("is a file name relative to the plan")
        doors = ("/", "\\", "~", "$", ":", "%")
        if path.startswith(doors) or any(c in path for c in "\\$:~") or ".." in path.split("/"):
            raise ValueError("stays inside the plan's folder; give paths elsewhere on the command line")
        return path


class ReleaseSection(Section):
    id: str
    title: str = Field(default="", max_length=200)

    @field_validator("id")
    @classmethod
    def _plain(cls, text: str) -> str:
        if RELEASE_ID.fullmatch(text) is None or ".." in text:
            raise ValueError(
                "is up to 100 letters, digits, '.', '_' or '-', beginning with a letter or digit"
            )
        return text


class ExpectSection(Section):
    rows: int | None = Field(default=None, ge=1, le=2**40)
    design_effect: str | int | Decimal | None = None


class ProtectSection(Section):
    change: str
    epsilon: str
    delta: str | None = None
    accept_large: bool = False


class IntervalSection(Section):
    level: Any = Decimal("0.95")
    epsilon: str | None = None


class ExpectAnswer(Section):
    value: str | int | Decimal
    size: int | None = Field(default=None, ge=1, le=2**40)


class StatisticSection(Section):
    name: str = Field(min_length=1, max_length=200)
    query: dict[str, Any]
    epsilon: str | None = None
    size: int | None = Field(default=None, ge=1, le=2**40)
    missing: str = "available"
    interval: IntervalSection = IntervalSection()
    variance: str | None = None
    expect: ExpectAnswer | None = None


class PlanSections(Section):
    format: int = FORMAT
    survey: SurveySection
    release: ReleaseSection
    expect: ExpectSection = ExpectSection()
    protect: ProtectSection
    edit: list[dict[str, Any]] = Field(default=[])
    impute: list[dict[str, Any]] = Field(default=[])
    statistic: list[StatisticSection] = Field(default=[], max_length=1000)
    cells: list[dict[str, Any]] = Field(default=[])
    synth: list[dict[str, Any]] = Field(default=[])
    weight: dict[str, Any] | None = None
    partition: dict[str, Any] | None = None
    sample: dict[str, Any] | None = None


NAME = "poststratified"
MOST_STRATEGIES = 1000


class BySection(Section):
    column: str
    bins: list[Any] | None = None
    missing: str | int


class StrategySection(Section):
    name: str = Field(min_length=1, max_length=100)
    by: list[str] | None = None
    groups: dict[str, list[list[str | int]]] = Field(default={})
    totals: Rows | str | None = None


class CollapseSection(Section):
    along: list[str] = Field(min_length=1)


class TolerateSection(Section):
    chance: str
    gap: str


class AttributeSection(Section):
    by: list[str] = Field(min_length=1, max_length=20)
    strategy: list[StrategySection] = Field(default=[], max_length=MOST_STRATEGIES)
    epsilon: str | None = None
    tolerate: TolerateSection | None = None


class MarginSection(Section):
    by: list[str] = Field(min_length=1, max_length=20)
    totals: Rows | str


class RakeSection(Section):
    epsilon: str
    margin: list[MarginSection] = Field(min_length=1, max_length=100)
    zero: list[dict[str, str | int]] = Field(default=[], max_length=10_000)
    join: list[dict[str, list[list[str | int]]]] = Field(default=[], max_length=100)
    least: str | int = 0


class WeightSection(Section):
    name: str = Field(default=NAME, min_length=1, max_length=60)
    base: str | None = None
    by: list[BySection] = Field(min_length=1, max_length=20)
    totals: Rows | str | None = None
    rake: RakeSection | None = None
    strategy: list[StrategySection] = Field(default=[], max_length=MOST_STRATEGIES)
    attribute: list[AttributeSection] = Field(default=[], max_length=20)
    collapse: CollapseSection | None = None
    choose: str | None = None
    epsilon: str | None = None
    tolerate: TolerateSection | None = None
    noise: str = Law.LOMAX.value
    smoothness: int = Field(default=8, ge=4, le=64)
