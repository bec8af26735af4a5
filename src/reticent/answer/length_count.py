"""Counts of what every recipient's nearest donor fills, chosen by how many respondents it would take: for a small epsilon.

Noise scaled to a smooth bound is made for the busiest donor there could be some respondents from here, and the smaller
epsilon, the farther that looks. How many respondents would have to come or go until a count is another number depends on
recipients there are (THEORY 12.3). So a whole number is chosen by the exponential mechanism, few respondents from the count.
How much a respondent is worth there is confidential: an interval is two more choices, shifted by a public number of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil, exp, expm1, floor, log, sqrt

from reticent.answer.context import Context, weight_of
from reticent.answer.donors import FILLED_WORDS, HIDDEN_WORDS
from reticent.answer.expect import LEAST_STEPS, Assumed, Expected, least_epsilon
from reticent.answer.expect_donors import ASSUMED_HUB, HUBS
from reticent.answer.parts import UNBOUNDED, Answer, Estimate, Interval, Measurement
from reticent.answer.quantile import rate_of, selection, slack
from reticent.answer.statistic import CHOICE, EXPONENTIAL, FLIP, BaseRoute, Ground, PublicRoute
from reticent.answer.value_ladder import check_nearest
from reticent.engine.wants import Aggregate, Blocks, Sum
from reticent.errors import PlanError
from reticent.query.base import CodedSum, RowQuery
from reticent.query.filled import roles
from reticent.sensitivity.bounds import Global
from reticent.sensitivity.value_ladder import CountLengths

PAGE = "proofs/answer/length_count.md"
MOST_ENDS = 20_000
ENDS = ("lower end of its interval", "upper end of its interval")


def end_scores(lengths: Sequence[int], shift: int) -> list[int]:
    """Minus how many steps each candidate for an end is from lying `shift` steps off, the farthest of them first.

    `lengths` has how far off they lie, in steps, which falls from one to the next. A candidate stands for all numbers from its
    own up to the next one's; one more is put first, for all that lie farther.
    """
    front = -max(0, lengths[0] - shift)
    inside = [-max(0, shift - near, far - shift) for near, far in pairwise(lengths)]
    return [front, *inside, -max(0, shift - lengths[-1])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The law of the noise if every step were worth `width` numbers to each side: exp(-rate k) for each of those at k steps."""

    width: int
    rate: float

    @property
    def _fall(self) -> float:
        return exp(-self.rate)

    @property
    def _whole(self) -> float:
        return 1 - 2 * self.width * self._fall / expm1(-self.rate)

    @property
    def sd(self) -> float:
        """Its standard deviation: squares of (k - 1) width + j, j up to width, over both sides."""
        q, c, left = self._fall, self.width, -expm1(-self.rate)
        squares = c**3 * q * (1 + q) / left**3 + c**2 * (c + 1) * q / left**2
        squares += c * (c + 1) * (2 * c + 1) / 6 / left
        return sqrt(2 * q * squares / self._whole)

    def half_width(self, level: float) -> float:
        """How far off it is with probability `level`, to a whole step."""
        odds = (1 - level) * self._whole * -expm1(-self.rate) / (2 * self.width)
        return self.width * max(0, ceil(-log(odds) / self.rate) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthCountRoute(BaseRoute[RowQuery]):
    """A count by lengths; its interval can be bought. `plain` is the route of the same count without donors."""

    plain: PublicRoute[RowQuery]

    @property
    def bound(self) -> Global:
        """How far one respondent moves a length: one for each record that comes or goes."""
        return Global(bound=Fraction(self.setting.neighbours.steps))

    @property
    def _heaviest(self) -> int:
        weight = weight_of(self.query.among, self.setting.schema)
        return weight.high if weight else 1

    @property
    def _grid(self) -> Fraction:
        weight = weight_of(self.query.among, self.setting.schema)
        return weight.grid if weight else Fraction(1)

    @property
    def _members(self) -> Sum:
        """Those counted, or their weight."""
        match self.query.shape(self.setting.schema):
            case CodedSum(sum=want) if want.value is None:
                return want
            case _:
                raise TypeError("only counts are chosen by lengths")

    @property
    def _blocks(self) -> Blocks:
        """Recipients by donor; the one cell is that of members."""
        (role,) = roles(self.query, self.setting.schema, self.setting.repair)
        return Blocks(ring=role.ring, rows=self._members.rows, keys=())

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        return (*self.query.wants(self.setting.schema), self._blocks)

    @property
    def parts(self) -> tuple[Measurement, ...]:
        ask = self.statistic
        ends = [self._part(what, ask.bar / 2, is_end=True) for what in ENDS] if ask.bar else []
        return (self._part("count", ask.epsilon), *ends)

    def _part(self, what: str, amount: Fraction, *, is_end: bool = False) -> Measurement:
        mechanism = "permute-and-flip" if is_end else "exponential mechanism"
        moves, in_rho = self.bound.bound, self.statistic.in_rho
        return selection(
            what, amount, moves=moves, unit=self._grid, in_rho=in_rho, proof=PAGE, mechanism=mechanism
        )

    @property
    def rests_on(self) -> tuple[Ground, ...]:
        choice = CHOICE if self.statistic.in_rho else EXPONENTIAL
        flips = (FLIP,) if self.statistic.bar and not self.statistic.in_rho else ()
        return (("answer: count by a value ladder", PAGE), choice, *flips)

    @property
    def no_rho(self) -> str:
        return ""

    @property
    def no_bar(self) -> str:
        return ""

    def check_query(self, field: str) -> None:
        """Refuse what the theorem does not cover, from public words."""
        check_nearest(
            self.query, self.setting, field, what="a count by lengths", way_out="leave noise = 'ladder' out"
        )

    def check_budget(self, field: str) -> None:
        """An end is chosen among public numbers, and there have to be some."""
        if self.statistic.bar and self.setting.rows is None:
            raise PlanError(
                "chooses the ends of its interval among numbers up to the expected rows: say [expect] rows",
                field=field.replace(".epsilon", ".interval"),
            )

    def _ends(self) -> tuple[range, int]:
        """The candidates for an end, not much finer than its noise, and the shift in steps; from public numbers alone."""
        ask, top = self.statistic, self._heaviest * (self.setting.rows or 1)
        rate = rate_of(ask.bar / 2, in_rho=ask.in_rho)
        finest = self._heaviest * max(1, floor(2 * self.bound.bound / rate))
        step = max(finest, -(-top // MOST_ENDS))
        values = range(0, top + step, step)
        return values, slack(len(values) + 1, bound=self.bound, epsilon=rate, chance=(1 - ask.level) / 2)

    def measured(self, context: Context) -> Answer:
        """The noisy count at cost epsilon; with `bar`, an interval at that cost on top.

        Guarantee   (epsilon + bar)-DP for one call; (epsilon + bar)-zCDP where context.in_rho.
        Adjacency   context.neighbours.
        Theorem     THEORY 12.2 and 12.3: the exponential mechanism on lengths, and permute-and-flip; budgets add.
        Proof       proofs/answer/length_count.md
        Assumes     the tallies hold the count of the query and its blocks; exact arithmetic.
        Keeps back  the exact count, the blocks and the lengths.
        """
        ask, steps, grid = self.statistic, int(self.bound.bound), self._grid
        exact = context.tallies.statistics[self._members]
        lengths = CountLengths(exact, context.tallies.blocks[self._blocks], heaviest=self._heaviest)
        rate = rate_of(ask.epsilon, in_rho=context.in_rho)
        point = context.noise.around(lengths, sensitivity=steps, epsilon=rate) * grid
        inner = self._interval(lengths, context) if ask.bar else None

        def covering(wanted: Fraction) -> Interval:
            """The interval was chosen for one level; of a higher one nothing is sure."""
            if inner is None or wanted > ask.level:
                return -UNBOUNDED, UNBOUNDED
            return min(inner[0] * grid, point), max(inner[1] * grid, point)

        estimate = Estimate(value=point, interval=covering, noise_sd=None, has_interval=inner is not None)
        return Answer(
            estimates=(estimate,), parts=self.parts, meaning=FILLED_WORDS if ask.bar else HIDDEN_WORDS
        )

    def _interval(self, lengths: CountLengths, context: Context) -> Interval:
        """Both ends, each chosen so many steps off that noise does not bring it back: in steps of the grid."""
        values, shift = self._ends()
        rate = rate_of(self.statistic.bar / 2, in_rho=context.in_rho)
        draw = context.noise.choose if context.in_rho else context.noise.select

        def chosen(steps_off: Iterator[int]) -> int:
            return draw(end_scores(list(steps_off), shift), sensitivity=int(self.bound.bound), epsilon=rate)

        low = chosen(map(lengths.below, values))
        high = chosen(map(lengths.above, reversed(values)))
        top = Fraction(values[len(values) - high]) if high else UNBOUNDED
        return Fraction(values[max(0, low - 1)]), top

    def expect(self) -> Expected:
        """What it would be if every donor served so many, nobody from afar; the floor is without anybody missing."""
        assumed = tuple(self._assume(hub) for hub in HUBS)
        return Expected(margin=Fraction(assumed[0].margin), how=LEAST_STEPS, assumed=assumed)

    def _assume(self, hub: int) -> Assumed:
        ask, unit = self.statistic, float(self._grid * self.scale)
        law = self._law(hub, rate_of(ask.epsilon, in_rho=ask.in_rho))
        margin = law.half_width(float(ask.level))
        if ask.bar and self.setting.rows is not None:
            values, shift = self._ends()
            margin = float(shift * law.width + values.step)
        return Assumed(hub=hub, sd=law.sd * unit, margin=margin * unit)

    def _law(self, hub: int, rate: Fraction) -> Steps:
        return Steps(width=self._heaviest * (1 + hub), rate=float(rate / (2 * self.bound.bound)))

    def epsilon_for(self, cv: float) -> Fraction | None:
        """If every donor served `ASSUMED_HUB` recipients."""
        allowed = self.plain.allowed(cv)
        if allowed is None or self.statistic.in_rho:
            return None
        unit = float(self._grid)
        return least_epsilon(lambda epsilon: self._law(ASSUMED_HUB, epsilon).sd * unit <= allowed)
