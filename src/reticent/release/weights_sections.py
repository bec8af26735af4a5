"""The `[weight]` section of a plan, as it is written. Public words only; no row has been read."""

from typing import Any

from pydantic import Field

from reticent.answer.poststrata import Law
from reticent.release.totals import Rows
from reticent.tomlfile import Section

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
