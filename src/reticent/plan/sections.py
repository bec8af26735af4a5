"""The sections of a plan file as they are written, `[weight]` with its parts among them, checked by pydantic.

Public words only; no row has been read. Sections that a feature reads by itself are dictionaries here.
"""

import re
from decimal import Decimal
from typing import Any

from pydantic import Field, ValidationInfo, field_validator

from reticent.answer.poststrata import Law
from reticent.engine.sources.open import ADDRESS, IS_ADDRESS, is_remote
from reticent.files import Amount, Section, is_printable
from reticent.plan.totals import Rows
from reticent.privacy.ledger.store import ledger_service

FORMAT = 2
RELEASE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


class SurveySection(Section):
    """The `[survey]` section: where rows, codebook and ledger are.

    **Keys**

    - `source`: the rows: a file, relative to the plan; `postgres:SERVICE`; or `spark`.
    - `codebook`: the codebook file.
    - `ledger`: the ledger file; or `postgres:SERVICE/NAME`.
    - `relation`: which table, where the source is a database, as `schema.name` where that is elsewhere.
    - `imputed_before`: the rule and the reach of an imputation that was done before.
    """

    source: str
    codebook: str
    ledger: str
    relation: str | None = None
    imputed_before: dict[str, Any] | None = None

    @field_validator("source", "codebook", "ledger")
    @classmethod
    def _inside(cls, path: str, info: ValidationInfo) -> str:
        if info.field_name == "source" and is_remote(path):
            return path
        if info.field_name == "ledger" and ledger_service(path) is not None:
            return path
        if info.field_name == "source" and ADDRESS.search(path):
            raise ValueError(IS_ADDRESS)  # without the address, which may hold a password
        if not path or len(path) > 500 or not is_printable(path):
            raise ValueError("is a file name relative to the plan")
        doors = ("/", "\\", "~", "$", ":", "%")
        if path.startswith(doors) or any(c in path for c in "\\$:~") or ".." in path.split("/"):
            raise ValueError("stays inside the plan's folder; give paths elsewhere on the command line")
        return path


class ReleaseSection(Section):
    """The `[release]` section.

    **Keys**

    - `id`: letters, digits, `.`, `_` and `-`; also the name of the files.
    - `title`: for readers.
    """

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
    """The `[expect]` section: public guesses that a preview uses.

    **Keys**

    - `rows`: how many respondents.
    - `mean_weight`: what a respondent weighs on average, by the base weight.
    - `design_effect`: for total intervals.
    - `missing`: for columns, the share of answers that are missing; capped donors take their caps from it.
    """

    rows: int | None = Field(default=None, ge=1, le=2**40)
    mean_weight: str | int | Decimal | None = None
    design_effect: str | int | Decimal | None = None
    missing: dict[str, Any] | None = None


class ProtectSection(Section):
    """The `[protect]` section: the guarantee.

    **Keys**

    - `change`: the adjacency, in words.
    - `measure`: `"epsilon"`, or `"zcdp"` for a budget in rho.
    - `epsilon`: the privacy budget of the whole plan.
    - `rho`: the same in zCDP, in place of epsilon.
    - `delta`: where something in it needs one; in zCDP, the one at which epsilon is shown.
    - `accept_large`: go on although epsilon is large.
    """

    change: str
    measure: str = "epsilon"
    epsilon: Amount | None = None
    rho: Amount | None = None
    delta: Amount | None = None
    accept_large: bool = False


class IntervalSection(Section):
    """The `interval` of a statistic, for privacy noise.

    **Keys**

    - `level`: the probability that it covers, 0.95 where not said.
    - `epsilon`: what it costs, where an interval has to be bought.
    - `rho`: the same, where the statistic has its budget in rho.
    """

    level: Any = Decimal("0.95")
    epsilon: Amount | None = None
    rho: Amount | None = None


class ExpectAnswer(Section):
    """The `expect` of a statistic: what a preview assumes.

    **Keys**

    - `value`: the value.
    - `size`: how many respondents it is about, weighted or not.
    - `weight`: in place of `size`, what they weigh in all.
    """

    value: str | int | Decimal
    size: int | None = Field(default=None, ge=1, le=2**40)
    weight: str | int | Decimal | None = None


class SizeSection(Section):
    """A public `size` of a weighted statistic.

    **Keys**

    - `weight`: what the respondents it is about weigh in all.
    """

    weight: int


MOST_ITEMS = 50
MOST_HEADS = 2**40


class DesignSection(Section):
    """The `[design]` section: sampling error.

    **Keys**

    - `items`: statistics of the plan, all of them proportions, from which one design factor is bought.
    - `epsilon`: its price.
    - `groups`: into how many groups pairs of sampling units are dealt; 25 or 50 where not said.
    - `basis`: `"units"` or `"replicates"`, where the codebook has both; units where not said.
    - `design_effect`: in place of `items`: variance over that of a simple random sample, from the documentation.
    """

    items: list[str] = Field(default=[], max_length=MOST_ITEMS)
    epsilon: Amount | None = None
    groups: int | None = Field(default=None, ge=2, le=10_000)
    basis: str = ""
    design_effect: str | int | Decimal | None = None


class SamplingSection(Section):
    """The `sampling` of a statistic: its own sampling error.

    **Keys**

    - `epsilon`: the price of a standard error of its own.
    - `design_effect`: in its place, one that is known.
    """

    epsilon: Amount | None = None
    design_effect: str | int | Decimal | None = None


class StatisticSection(Section):
    """A `[[statistic]]` section.

    **Keys**

    - `name`: its name in the release.
    - `query`: one kind of query, with its options.
    - `epsilon`: its share of the privacy budget.
    - `rho`: the same in zCDP, in place of epsilon.
    - `size`: a public number of respondents, where it is known; of a weighted statistic their weight, `{ weight = ... }`.
    - `missing`: `"available"` or `"complete"`.
    - `interval`: the interval for privacy noise.
    - `variance`: the name of a released variance, for the sampling error of a mean.
    - `sampling`: its own sampling error.
    - `expect`: what a preview assumes.
    - `noise`: `"ladder"` for a count of a column that the nearest donors fill, at a small epsilon.
    """

    name: str = Field(min_length=1, max_length=200)
    query: dict[str, Any]
    epsilon: Amount | None = None
    rho: Amount | None = None
    size: int | dict[str, Any] | None = None
    missing: str = "available"
    interval: IntervalSection = IntervalSection()
    variance: str | None = None
    sampling: SamplingSection | None = None
    expect: ExpectAnswer | None = None
    noise: str = ""


class PlanSections(Section):
    """All sections of a plan file.

    **Keys**

    - `format`: the number of the format, 2.
    - `survey`: where things are.
    - `release`: id and title.
    - `expect`: public guesses.
    - `protect`: the guarantee.
    - `design`: sampling error.
    - `edit`: edit rules.
    - `impute`: imputations.
    - `statistic`: statistics.
    - `cells`: tables of small cells.
    - `tables`: tables that add up.
    - `regression`: regressions.
    - `synth`: synthetic tables.
    - `weight`: post-stratification.
    - `partition`: the piece that is read.
    - `sample`: how the survey was drawn.
    - `wave`: the wave of a panel that is read.
    """

    format: int = FORMAT
    survey: SurveySection
    release: ReleaseSection
    expect: ExpectSection = ExpectSection()
    protect: ProtectSection
    design: DesignSection | None = None
    edit: list[dict[str, Any]] = Field(default=[])
    impute: list[dict[str, Any]] = Field(default=[])
    statistic: list[StatisticSection] = Field(default=[], max_length=1000)
    cells: list[dict[str, Any]] = Field(default=[])
    tables: list[dict[str, Any]] = Field(default=[])
    regression: list[dict[str, Any]] = Field(default=[])
    synth: list[dict[str, Any]] = Field(default=[])
    weight: dict[str, Any] | None = None
    partition: dict[str, Any] | None = None
    sample: dict[str, Any] | None = None
    wave: dict[str, Any] | None = None


NAME = "poststratified"
MOST_STRATEGIES = 1000


class BySection(Section):
    """One stratifier of `[weight]`.

    **Keys**

    - `column`: an attribute.
    - `bins`: its base bins, each level where not said.
    - `missing`: the bin of those who did not answer.
    """

    column: str
    bins: list[Any] | None = None
    missing: str | int


class StrategySection(Section):
    """One binning strategy of `[weight]`.

    **Keys**

    - `name`: its name in the release.
    - `by`: the stratifiers it tells apart.
    - `groups`: for a stratifier, base bins put together.
    - `totals`: known totals of its bins, where they do not follow from those of the base cells.
    """

    name: str = Field(min_length=1, max_length=100)
    by: list[str] | None = None
    groups: dict[str, list[list[str | int]]] = Field(default={})
    totals: Rows | str | None = None


class CollapseSection(Section):
    """The collapsing order of `[weight]`.

    **Keys**

    - `along`: stratifiers, in the order in which neighbours are put together.
    """

    along: list[str] = Field(min_length=1)


class TolerateSection(Section):
    """A price said by what one would bear.

    **Keys**

    - `chance`: of a poor choice.
    - `gap`: how poor, in units of the score.
    """

    chance: str
    gap: str


class AttributeSection(Section):
    """One `[[weight.attribute]]`: stratifiers whose bins are chosen together, at a price of their own.

    **Keys**

    - `by`: its stratifiers.
    - `strategy`: the ways to bin them.
    - `epsilon`: the price of the choice.
    - `tolerate`: in place of epsilon.
    """

    by: list[str] = Field(min_length=1, max_length=20)
    strategy: list[StrategySection] = Field(default=[], max_length=MOST_STRATEGIES)
    epsilon: Amount | None = None
    tolerate: TolerateSection | None = None


class MarginSection(Section):
    """One known margin of `[weight.rake]`.

    **Keys**

    - `by`: its stratifiers.
    - `totals`: its totals, or a file.
    """

    by: list[str] = Field(min_length=1, max_length=20)
    totals: Rows | str


class RakeSection(Section):
    """The `[weight.rake]` section: totals from a noisy table raked to known margins.

    **Keys**

    - `epsilon`: the price of the noisy table.
    - `margin`: the known margins.
    - `zero`: cells where nobody can be.
    - `join`: how bins are joined where noise leaves a cell below `least`, from fine to coarse.
    - `least`: what every cell should hold after noise.
    """

    epsilon: Amount
    margin: list[MarginSection] = Field(min_length=1, max_length=100)
    zero: list[dict[str, str | int]] = Field(default=[], max_length=10_000)
    join: list[dict[str, list[list[str | int]]]] = Field(default=[], max_length=100)
    least: str | int = 0


class FactorsSection(Section):
    """The `factors` of `[weight]`: released once, they make every weight a public multiple of a base weight.

    **Keys**

    - `epsilon`: their price.
    """

    epsilon: Amount


class WeightSection(Section):
    """The `[weight]` section: post-stratification to known totals.

    **Keys**

    - `name`: the weight that a query names.
    - `base`: a column of base weights.
    - `by`: the stratifiers.
    - `totals`: known totals of the base cells, a file, or `"rake"`.
    - `rake`: known margins.
    - `strategy`: strategies to choose from.
    - `attribute`: choices attribute by attribute.
    - `collapse`: a collapsing order.
    - `choose`: how bins are found.
    - `epsilon`: the price of the choice.
    - `tolerate`: in place of epsilon.
    - `noise`: the law of the noise: `"lomax"`, `"student"` or `"cauchy"`.
    - `smoothness`: epsilon over beta of the noise.
    - `factors`: release the factors of bins, so that tables, quantiles and domains can be weighted.
    """

    name: str = Field(default=NAME, min_length=1, max_length=60)
    base: str | None = None
    by: list[BySection] = Field(min_length=1, max_length=20)
    totals: Rows | str | None = None
    rake: RakeSection | None = None
    strategy: list[StrategySection] = Field(default=[], max_length=MOST_STRATEGIES)
    attribute: list[AttributeSection] = Field(default=[], max_length=20)
    collapse: CollapseSection | None = None
    choose: str | None = None
    epsilon: Amount | None = None
    tolerate: TolerateSection | None = None
    noise: str = Law.LOMAX.value
    smoothness: int = Field(default=8, ge=4, le=64)
    factors: FactorsSection | None = None
