"""Answers of a fitted synthesizer, from the noisy tables it was fitted to: estimate, interval, and what the interval rests on.

Each answer is a smooth function of one measured table, or for a regression on several predictors of all pairs among its
columns. Its gradient gives the variance of the noise and of the sample (`synth/direct.py`). Outside measured tables the
fitted model is all there is; its number is told as *model only*, without an interval, since none would hold.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log, nan, sqrt
from numbers import Real
from statistics import NormalDist

import numpy as np

from reticent.errors import PlanError
from reticent.exact import read_decimal
from reticent.refine.total import DesignFactor
from reticent.synth.base import MissingMethod, Places
from reticent.synth.direct import MeasuredTables, NoInterval, variance_of
from reticent.synth.domain import HOLE, Rows
from reticent.synth.functionals import KINDS, is_binned, variable_of
from reticent.synth.lists import Lists
from reticent.synth.model_only import rows_answer
from reticent.synth.moments import PairMoments
from reticent.synth.questions import LEVEL, TableQuestion

USED = (MissingMethod.AVAILABLE, MissingMethod.WEIGHTED, MissingMethod.VALUES)
AT_MIDPOINTS = ", at the midpoints of bins"
"""What is said of an answer in which numbers count as the midpoints of their bins: its interval is about that."""
ASKED = "declared with the question"
"""The source of a design effect that came with a question, before whatever a release tells of the survey."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectAnswer:
    """One estimate with its interval for sampling and privacy noise together, or the reason why it has none.

    `noise` and `sampling` are the standard errors of the two by themselves. `columns` name the tables it rests on,
    `deviation` is the noise of one of their cells in rows, `is_chosen` whether a look at the data decided that they were
    measured, `answered` the share that answered them of those asked whom the question is about. `design` is the factor
    that `sampling` was multiplied by, and where it comes from; None where rows were taken to be drawn one by one.
    """

    words: str
    estimate: float
    low: float | None = None
    high: float | None = None
    level: float = LEVEL
    noise: float | None = None
    sampling: float | None = None
    columns: tuple[str, ...] = ()
    deviation: float | None = None
    is_chosen: bool = False
    answered: float = 1.0
    merged: float = 0.0
    is_model_only: bool = False
    reason: str = ""
    design: DesignFactor | None = None

    def __str__(self) -> str:
        """`share where sex = 'f': 0.512, 95 % interval 0.48 to 0.544`, or why there is none."""
        said = f"{self.words}: {self.estimate:.4g}"
        if self.low is None or self.high is None:
            return f"{said}{', model only' if self.is_model_only else ''}, no interval: {self.reason}"
        return f"{said}, {100 * self.level:g} % interval {self.low:.4g} to {self.high:.4g} for sampling and privacy noise"

    @property
    def standard_error(self) -> float | None:
        """Of sampling and noise together."""
        return None if self.noise is None or self.sampling is None else sqrt(self.noise**2 + self.sampling**2)


def answered(
    question: TableQuestion,
    lists: Lists | MeasuredTables | None,
    rows: Callable[[], Rows],
    *,
    level: float = LEVEL,
    design_effect: float | str | None = None,
    released: DesignFactor | None = None,
) -> tuple[DirectAnswer, ...]:
    """The answer from measured tables or, where these have none, the number that synthetic `rows` give, marked *model only*.

    Not a number where the question asks who answered and synthetic rows are of complete respondents: it would always be 0 or 1.
    """
    try:
        return _from_tables(question, lists, level=level, design_effect=design_effect, released=released)
    except NoInterval as why:
        reason, estimate = why.reason, why.estimate
    except (ArithmeticError, np.linalg.LinAlgError):
        reason, estimate = "the noisy tables leave it open", None
    if estimate is not None:
        words = f"{question.words}{AT_MIDPOINTS}"
        return (DirectAnswer(words=words, estimate=estimate, level=level, reason=reason),)
    drawn = rows()
    is_told = not question.is_of_silence or _has_silence(lists, drawn)
    return tuple(
        DirectAnswer(
            words=words, estimate=value if is_told else nan, level=level, is_model_only=True, reason=reason
        )
        for words, value in rows_answer(question, drawn, question.schema)
    )


def _from_tables(
    question: TableQuestion,
    lists: Lists | MeasuredTables | None,
    *,
    level: float,
    design_effect: float | str | None,
    released: DesignFactor | None,
) -> tuple[DirectAnswer, ...]:
    """Direct answers; where only the sampling variance is not known, the tables' estimates without intervals: rows know no better."""
    try:
        return answer_directly(question, lists, level=level, design_effect=design_effect, released=released)
    except NoSampling as why:
        found, reason = _direct(question, _tables(lists), level, None), why.reason
    return tuple(
        replace(each, low=None, high=None, sampling=None, design=None, reason=reason) for each in found
    )


def _has_silence(lists: Lists | MeasuredTables | None, rows: Rows) -> bool:
    """Whether synthetic rows may lack answers: by the strategy, or, where that is not known, because some do."""
    if lists is not None:
        return lists.missing is MissingMethod.VALUES
    return any(bool((codes == HOLE).any()) for codes in rows.values())


def answer_directly(
    question: TableQuestion,
    lists: Lists | MeasuredTables | None,
    *,
    level: float = LEVEL,
    design_effect: float | str | None = None,
    released: DesignFactor | None = None,
) -> tuple[DirectAnswer, ...]:
    """The answer from measured tables: one, or for a regression one for each coefficient.

    The sampling part is multiplied by `design_effect` where the question declares one, else by the survey's factor that was
    `released`, with its degrees of freedom. Raises `NoInterval` where the tables do not have an answer. `lists` given as
    `MeasuredTables` are worked out once for many questions.
    """
    if not (isinstance(level, Real) and 0 < level < 1):
        raise PlanError("lies between 0 and 1, such as 0.95", field="level")
    if isinstance(design_effect, str):  # as a plan writes it
        design_effect = float(read_decimal(design_effect) or 0)
    if design_effect is not None and not (isinstance(design_effect, Real) and 0.1 <= design_effect <= 1000):
        raise PlanError("is a number from 0.1 to 1000, such as 1.6", field="design_effect")
    tables = _tables(lists)
    design = released if design_effect is None else DesignFactor(deft=sqrt(design_effect), source=ASKED)
    _check_sampling(question, tables.lists, design)
    return _direct(question, tables, level, design)


def _tables(lists: Lists | MeasuredTables | None) -> MeasuredTables:
    """The measured tables; refused where none were kept, or rows were changed before they were counted."""
    if lists is None:
        raise NoInterval("this method keeps no noisy tables; use mst, aim or pairs")
    if lists.missing not in USED:
        raise NoInterval(
            f"rows were changed before they were counted (missing = {lists.missing.value!r}); use 'response-weighted', 'available' or "
            "'category'"
        )
    return lists if isinstance(lists, MeasuredTables) else MeasuredTables(lists)


def _direct(
    question: TableQuestion, tables: MeasuredTables, level: float, design: DesignFactor | None
) -> tuple[DirectAnswer, ...]:
    told = _Teller(tables=tables, level=level, design=design)
    if question.kind == "regression" and len(question.on) > 1:
        return _several(question, told)
    return (_one(question, told),)


class NoSampling(NoInterval):
    """The tables have an estimate, and nothing tells its sampling variance."""


FILLED = "missing answers to {} are filled before rows are counted, and the tables cannot tell what was answered from what was filled"
"""Why an answer about imputed columns has no interval: imputation adds to the sampling variance, and may be off."""


def _check_sampling(question: TableQuestion, lists: Lists, design: DesignFactor | None) -> None:
    filled = [name for name in question.columns if name in lists.filled]
    if filled:
        raise NoSampling(FILLED.format(" and ".join(filled)))
    if lists.is_complex and design is None:
        raise NoSampling(
            "the codebook declares weights, strata or sampling units, or that a respondent may own several rows, and rows are "
            "counted as if they were drawn one by one; give the design effect of the survey, or buy its design factor under "
            "[design]"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Teller:
    """Makes answers of estimates and variances."""

    tables: MeasuredTables
    level: float
    design: DesignFactor | None

    @property
    def lists(self) -> Lists:
        return self.tables.lists

    def tell(
        self,
        words: str,
        value: float,
        noise: float,
        sampling: float,
        places: Sequence[Places],
        response: float,
        *,
        is_share: bool = False,
    ) -> DirectAnswer:
        sampling *= self._factor.effect
        half = self._half(noise, sampling)
        low, high = value - half, value + half
        if is_share:
            # Never empty: it reaches one standard error into what a share can be, from either end.
            reach = min(1.0, sqrt(noise + sampling))
            low, high = max(0.0, min(low, 1.0 - reach)), min(1.0, max(high, reach))
            value = min(max(value, 0.0), 1.0)
        lists = [each for at in places for each in self.lists.used(at)]
        domain = self.lists.domain
        return DirectAnswer(
            words=words,
            estimate=float(value),
            low=float(low),
            high=float(high),
            level=self.level,
            noise=sqrt(noise),
            sampling=sqrt(sampling),
            columns=tuple(dict.fromkeys(domain.columns[place] for at in places for place in at)),
            deviation=max(each.deviation for each in lists),
            is_chosen=any(each.is_chosen for each in lists),
            answered=response,
            merged=max(self._merged(at) for at in places),
            design=self.design,
        )

    @property
    def _factor(self) -> DesignFactor:
        return self.design or DesignFactor(deft=1.0)

    def _half(self, noise: float, sampling: float) -> float:
        tail = (1 - self.level) / 2
        normal = NormalDist().inv_cdf(1 - tail)
        # Laplace noise has longer tails than normal noise of the same variance: quantile b ln(1/(2 tail)), variance 2 b^2.
        law = normal if self.lists.is_gaussian else max(normal, log(1 / (2 * tail)) / sqrt(2))
        # A bought factor is an estimate: Student's quantile, with the degrees of freedom it was bought with (THEORY 13.3).
        return sqrt(law**2 * noise + self._factor.quantile(self.level) ** 2 * sampling)

    def _merged(self, places: Places) -> float:
        """The share of rows in cells of a pair that stand for several of the domain's cells."""
        if len(places) == 1:
            return 0.0
        found = self.tables.of(places)
        indices, mass = np.indices(found.shape).reshape(len(places), -1), found.positive
        is_merged = np.zeros(mass.shape, dtype=bool)
        for at, place in enumerate(places):
            many = np.bincount(self.lists.groups[place][self.lists.groups[place] >= 0])
            is_merged |= many[indices[at]] > 1
        return float(mass[is_merged].sum())


def _one(question: TableQuestion, told: _Teller) -> DirectAnswer:
    places = _places(question, told.lists)
    table = told.tables.of(places)
    made = KINDS[question.kind](question, table)
    noise = table.noise(made.gradient + made.residual_gradient) + made.noise
    sampling = max(0.0, table.sampling(made.gradient) + made.sampling)
    is_share = question.kind == "proportion"
    response = float(table.own.response[made.gradient != 0].min(initial=1.0))
    words = f"{question.words}{AT_MIDPOINTS if made.is_of_midpoints else ''}"
    return told.tell(words, made.value, noise, sampling, [places], response, is_share=is_share)


def _places(question: TableQuestion, lists: Lists) -> Places:
    columns = lists.domain.columns
    found = tuple(sorted(columns.index(name) for name in question.columns))
    if len(found) > 2:
        raise NoInterval("it speaks of more than two columns, and tables of two were measured")
    if not found:
        raise PlanError("names no column; a share is of an answer", field="query")
    return found


def _several(question: TableQuestion, told: _Teller) -> tuple[DirectAnswer, ...]:
    """Least squares on several predictors: all moments come from pairs, and each coefficient is a function of moments."""
    fit = PairMoments(tables=told.tables, variables=(*question.on, variable_of(question)))
    line, made = fit.solve(), []
    remark = AT_MIDPOINTS if any(is_binned(each, told.lists) for each in fit.variables) else ""
    for at, variable in enumerate(question.on):
        parts, factors = fit.gradient(at, line)
        noise = variance_of(parts, factors, told.lists)
        response = min(float(told.tables.of(places).own.response.min()) for places in fit.sets)
        influence = line.residual * float(line.bread[at, at]) + fit.apart(parts, factors)
        sampling = max(0.0, influence) / told.lists.total
        words = f"coefficient of {variable.words}, {question.words}{remark}"
        made.append(told.tell(words, float(line.coefficients[at]), noise, sampling, fit.sets, response))
    return tuple(made)
