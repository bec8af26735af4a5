"""The total intervals of tables that add up: sampling and noise of every cell and total, by the rule of counts.

All of it is computed from noisy numbers, from public ones and from what the plan bought of its design: it costs nothing.
"""

from fractions import Fraction
from math import ceil, floor
from typing import Any

from reticent.answer.add_up import MarginTables, TableLine
from reticent.answer.count import binomial, widened
from reticent.refine.total import TotalError, total_interval
from reticent.release.sampling import FILLED_TOTAL, FIXED_SIZE, TOTAL_WORDS, Sampled

TOTAL_COLUMNS = ("total_low", "total_high", "total_margin", "cv", "reliability")
FINE = 10**6
"""Parts of a respondent in which ends of intervals are told that are not whole numbers."""
NO_DESIGN = "no sampling error is known: add [design] to the plan"
NO_SIZE = (
    "how many respondents were drawn is not known, so a count has no sampling error: write rows under [expect], or buy the "
    "design factor with [design]"
)
NO_WEIGHT = "what the weight stands for in respondents is not known: buy the design factor with [design], from items with this weight"
NO_MEAN_WEIGHT = (
    "what the weight stands for in respondents is not known: write rows and mean_weight under [expect], or buy the design "
    "factor with [design], from items with this weight"
)
NO_SHARE = "donors fill a column of these tables: say under [expect] which share of its answers is missing, missing = { ... }"


def total_section(asked: MarginTables, sampled: Sampled) -> dict[str, str]:
    """What the total intervals of the tables mean, and why they are empty where they are."""
    why = _why_empty(asked, sampled)
    filled = FILLED_TOTAL if asked.is_filled(sampled.plan.schema) else ""
    return {"meaning": f"{TOTAL_WORDS}{FIXED_SIZE}{filled}", **({"empty": why} if why else {})}


def _why_empty(asked: MarginTables, sampled: Sampled) -> str:
    if sampled.factor(asked.name) is None:
        return NO_DESIGN
    size = sampled.size(asked.name)
    if size is None:
        return NO_SIZE
    if asked.among.weight is not None and size.whole(asked.among.weight) is None:
        return NO_MEAN_WEIGHT if sampled.is_declared(asked.name) else NO_WEIGHT
    everything = tuple((column, "") for column in asked.sides.columns)
    return NO_SHARE if asked.wider(everything, sampled.plan.schema) is None else ""


def total_told(asked: MarginTables, line: TableLine, sampled: Sampled) -> dict[str, Any]:
    """The total interval of a line as it is published; empty where no sampling error is known.

    Ends are rounded away: to whole numbers from 0 on where the table is of such, else to six places.
    """
    found = None if _why_empty(asked, sampled) else table_total(asked, line, sampled)
    if found is None:
        return dict.fromkeys(TOTAL_COLUMNS)
    step = 1 if asked.whole else FINE
    ends = [floor(found.low * step) / step, ceil(found.high * step) / step, ceil(found.margin * step) / step]
    numbers = [int(end) for end in ends] if asked.whole else ends
    cv = None if found.cv is None else round(found.cv, 4)
    return dict(zip(TOTAL_COLUMNS, [*numbers, cv, found.reliability], strict=True))


def table_total(asked: MarginTables, line: TableLine, sampled: Sampled) -> TotalError | None:
    """Sampling and noise of one line, around what least squares says and around what is published, both held.

    Whole numbers are not in the middle of their interval for noise, and noise can have moved them to its end: the rule of
    counts around them alone would be too short on that side. The coefficient of variation is of what is published.
    """
    middle = (line.linear - line.width, line.linear + line.width)
    found = [
        _around(asked, line, value, ends, sampled)
        for value, ends in ((line.linear, middle), (line.value, (line.low, line.high)))
    ]
    if found[0] is None or found[1] is None:
        return None
    low, high = min(found[0].low, found[1].low), max(found[0].high, found[1].high)
    return TotalError(
        low=low,
        high=high,
        margin=max(found[1].margin, line.value - low, high - line.value),
        cv=found[1].cv,
        is_unreliable=found[1].is_unreliable,
    )


def _around(
    asked: MarginTables, line: TableLine, value: float, ends: tuple[float, float], sampled: Sampled
) -> TotalError | None:
    """By the rule of counts: the binomial variance of the count, times the design effect, and the noise."""
    factor, wider = sampled.factor(asked.name), asked.wider(line.cell, sampled.plan.schema)
    plain = widened(binomial(Fraction(value), sampled.plan.rows, asked.among.weight), wider)
    variance = None if plain is None else plain(sampled.size(asked.name))
    if factor is None or variance is None:
        return None
    return total_interval(
        value,
        privacy=ends,
        noise_sd=line.noise_sd,
        variance=variance,
        factor=factor,
        level=float(asked.level),
        limits=(0.0, None),
    )
