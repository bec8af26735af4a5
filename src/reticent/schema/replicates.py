"""Replicate weights: columns of the file that show how an estimate varies with the sample, and the factors of their variance.

An office that does not publish where people were drawn publishes replicate weights instead. The variance of an estimate is the
sum over replicates of c_r (estimate with weight r - estimate)^2. Which way the weights were made fixes the factors c_r: balanced
repeated replication (BRR), Fay's way, the jackknife (JK1, JKn), successive differences (SDR). THEORY 13.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from pydantic import Field

from reticent.errors import SchemaError
from reticent.exact import read_decimal
from reticent.files import Section
from reticent.schema.columns import Number
from reticent.schema.predicate import is_column_name

REPLICATIONS = ("brr", "fay", "jk1", "jkn", "sdr")
REPLICATE = "replicate"
"""The role of a column that is a replicate weight: it serves sampling errors and cannot be asked about."""
MOST_REPLICATES = 1000
TIMES = 4
"""A replicate weight is clamped to so many times the bound of its base weight, in either sign."""
WHOLE_LENGTH = 1 << 10
"""A record's deviations are summed in 1024ths of the weight's grid."""
AT = "survey.replicates"


class ReplicatesPart(Section):
    """The `[survey.replicates]` section of a codebook.

    **Keys**

    - `weight`: the base weight that they are replicates of.
    - `columns`: their headers, or one header with `{}` in the place of its number.
    - `count`: how many there are, where `columns` is one header.
    - `method`: how they were made: `"brr"`, `"fay"`, `"jk1"`, `"jkn"` or `"sdr"`.
    - `fay`: the factor of Fay's way, such as 0.5.
    - `factors`: the factor of each replicate, for `"jkn"`: (n - 1)/n of its stratum.
    - `reach`: how far a respondent's own replicates may lie from the base weight, 1 where not said.
    - `degrees_of_freedom`: of the design; one less than replicates where not said.
    """

    weight: str
    columns: list[str] | str
    count: int = 0
    method: str
    fay: str | int | Decimal = 0
    factors: list[str | int | Decimal] = Field(default=[])
    reach: str | int | Decimal = 1
    degrees_of_freedom: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicates:
    """Replicate weights of a survey: their columns by our names, the factors of the variance, and public limits.

    A record's own deviations, over its weight, have the length sqrt(sum of c_r eta_r^2), which is 1 for every method as its
    weights are made, and near it after they were adjusted. They are scaled down to `reach` where they are longer.
    """

    weight: str
    columns: tuple[str, ...]
    method: str
    factors: tuple[Fraction, ...]
    reach: Fraction = Fraction(1)
    df: int = 0

    def __post_init__(self) -> None:
        if not 2 <= len(self.columns) <= MOST_REPLICATES:
            raise SchemaError(f"names from 2 to {MOST_REPLICATES} replicate weights", field=f"{AT}.columns")
        if len(self.factors) != len(self.columns):
            raise SchemaError("has one factor for each replicate", field=f"{AT}.factors")
        if not Fraction(1, 10) <= self.reach <= 10:
            raise SchemaError("is a decimal from 0.1 to 10; 1 as the weights are made", field=f"{AT}.reach")
        if not 2 <= self.df <= 10**6:
            raise SchemaError("is a whole number from 2 on", field=f"{AT}.degrees_of_freedom")

    @property
    def words(self) -> str:
        """For a sentence."""
        return f"{len(self.columns)} replicate weights ({self.method.upper()})"


def read_replicates(part: ReplicatesPart, base: Number) -> tuple[Replicates, dict[str, Number]]:
    """The replicates of the base weight, and their columns by name."""
    sources = _sources(part)
    fay, reach = read_decimal(part.fay), read_decimal(part.reach)
    declared = [read_decimal(each) for each in part.factors]
    if fay is None or reach is None or None in declared:
        raise SchemaError("are plain decimals such as 0.5", field=f"{AT}.factors")
    names = tuple(f"{base.name[:50]}_r{place}" for place in range(1, len(sources) + 1))
    factors = replicate_factors(
        part.method, len(names), fay=fay, declared=[each for each in declared if each is not None]
    )
    made = Replicates(
        weight=base.name,
        columns=names,
        method=part.method,
        factors=factors,
        reach=reach,
        df=part.degrees_of_freedom or max(2, len(names) - 1),
    )
    most = TIMES * base.upper
    columns = {
        name: Number(name=name, source=source, role=REPLICATE, lower=-most, upper=most, grid=base.grid)
        for name, source in zip(names, sources, strict=True)
    }
    return made, columns


def _sources(part: ReplicatesPart) -> list[str]:
    if isinstance(part.columns, list):
        if part.count not in (0, len(part.columns)):
            raise SchemaError("is not how many columns are listed; leave it out", field=f"{AT}.count")
        return part.columns
    if part.columns.count("{}") != 1 or not is_column_name(part.columns.replace("{}", "1")):
        raise SchemaError(
            "lists headers, or gives one with {} in the place of its number: 'pwgtp{}'", field=f"{AT}.columns"
        )
    if not 2 <= part.count <= MOST_REPLICATES:
        raise SchemaError(f"says how many there are, from 2 to {MOST_REPLICATES}", field=f"{AT}.count")
    return [part.columns.replace("{}", str(place)) for place in range(1, part.count + 1)]


def replicate_factors(
    method: str, replicates: int, *, fay: Fraction = Fraction(0), declared: Sequence[Fraction] = ()
) -> tuple[Fraction, ...]:
    """The factor of every replicate in the variance.

    Balanced repeated replication 1/R, Fay's way 1/(R (1 - k)^2), the jackknife of one stratum (R - 1)/R, successive
    differences 4/R; the jackknife of several strata has factors of its own, which the codebook declares.
    """
    if method not in REPLICATIONS:
        raise SchemaError(f"is one of {', '.join(REPLICATIONS)}", field=f"{AT}.method")
    if replicates < 2:
        raise SchemaError("has at least 2 replicate weights", field=f"{AT}.columns")
    if (method == "jkn") != bool(declared) or (declared and len(declared) != replicates):
        raise SchemaError("has one factor for each replicate with jkn, and none else", field=f"{AT}.factors")
    if declared:
        if any(not 0 < each <= 1 for each in declared):
            raise SchemaError("is above 0 and at most 1: (n - 1)/n of its stratum", field=f"{AT}.factors")
        return tuple(declared)
    if (method == "fay") != (fay != 0) or not 0 <= fay < 1:
        raise SchemaError("is above 0 and below 1 with Fay's way, and left out else", field=f"{AT}.fay")
    each = {
        "brr": Fraction(1, replicates),
        "fay": 1 / (replicates * (1 - fay) ** 2),
        "jk1": Fraction(replicates - 1, replicates),
        "sdr": Fraction(4, replicates),
    }[method]
    return (each,) * replicates
