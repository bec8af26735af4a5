"""Quantiles of a column that every recipient's nearest donor fills: a private choice by how many respondents a rank is off.

How many ranks one respondent moves is read off the rows there, so ranks have no public bound. Counted in respondents, who may
take their donees along, a candidate is at most one nearer or farther where one comes or goes: THEORY 12. Whatever is not in
the answer, its interval is shifted by a public number of respondents.
"""

from fractions import Fraction

from reticent.answer.context import Context, weight_of
from reticent.answer.expect import LEAST_RANKS, Expected
from reticent.answer.parts import GAPS_WORDS, SELECTED_WORDS, Answer, Estimate, Interval, Measurement
from reticent.answer.quantile import QuantileRoute, rate_of, selection, slack
from reticent.answer.statistic import CHOICE, FLIP, Ground, Setting
from reticent.answer.woodruff import end_budgets
from reticent.engine.wants import Aggregate, Blocks
from reticent.errors import PlanError
from reticent.prepare.repair import Bounding
from reticent.query.base import RowQuery
from reticent.query.filled import Role, roles
from reticent.query.filled import check as check_imputed
from reticent.sensitivity.bounds import Global
from reticent.sensitivity.value_ladder import RankLengths, length_scores

PAGE = "proofs/answer/value_ladder.md"
HIDDEN_RANKS = (
    "none: how many respondents lie between this value and the exact one depends on how busy donors are, which is confidential; "
    "give interval an epsilon for an interval of values"
)
MOST_CANDIDATES = 20_000
NO_LADDER = "leave bound = 'hubs' out: capped donors have a public bound"


def check_nearest(query: RowQuery, setting: Setting, field: str, *, what: str, way_out: str) -> None:
    """Refuse what does not rest on one column alone that one nearest donor fills, from public words."""
    schema, repair = setting.schema, setting.repair
    check_imputed(query, schema, repair, field=field, is_bounded=True)
    found = roles(query, schema, repair)
    donors = repair.of(found[0].column)
    if len(found) > 1:
        names = " and ".join(role.column for role in found)
        raise PlanError(
            f"rests on {names}, which donors fill one by one; {what} is bounded for one such column: ask among others, or "
            + way_out,
            field=field,
        )
    if donors.k > 1 or donors.bounding is not Bounding.HUBS:
        raise PlanError(
            f"{donors.column} is not filled from one nearest donor under bound = 'hubs', and no theorem bounds {what} of it; "
            f"write k = 1, or {way_out}",
            field=field,
        )


class LengthRoute(QuantileRoute):
    """A quantile by lengths; its interval can be bought."""

    __slots__ = ()
    goes_by_domain = False

    @property
    def bound(self) -> Global:
        """How far one respondent moves a length: one for each record that comes or goes."""
        return Global(bound=Fraction(self.setting.neighbours.steps))

    @property
    def has_total(self) -> bool:
        """Never: what filling adds to the sampling error is known for capped donors."""
        return False

    @property
    def interval_reach(self) -> None:
        """Confidential."""
        return

    @property
    def _role(self) -> Role:
        """The one filled column that the query rests on."""
        (role,) = roles(self.query, self.setting.schema, self.setting.repair)
        return role

    @property
    def _blocks(self) -> Blocks:
        table = self.query.table(self.setting.schema)
        return Blocks(ring=self._role.ring, rows=table.rows, keys=table.keys)

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        return (*self.query.wants(self.setting.schema), self._blocks)

    @property
    def parts(self) -> tuple[Measurement, ...]:
        ask = self.statistic
        end = end_budgets(ask.bar, has_total=False).end
        ends = ("lower end of its interval", "upper end of its interval") if ask.bar else ()
        return tuple(
            self._part(*each) for each in [("quantile", ask.epsilon), *((what, end) for what in ends)]
        )

    def _part(self, what: str, amount: Fraction) -> Measurement:
        in_rho, unit = self.statistic.in_rho, self.query.step
        return selection(what, amount, moves=self.bound.bound, unit=unit, in_rho=in_rho, proof=PAGE)

    @property
    def rests_on(self) -> tuple[Ground, ...]:
        return (("answer: value ladder", PAGE), CHOICE if self.statistic.in_rho else FLIP)

    def check_query(self, field: str) -> None:
        """Refuse what the theorem does not cover, from public words."""
        check_nearest(self.query, self.setting, field, what="a quantile", way_out=NO_LADDER)
        if self.query.banded:
            raise PlanError(
                f"interpolates within bands, which is not bounded where the nearest donor fills; leave step out, or {NO_LADDER}",
                field=f"{field}.step",
            )
        if len(self.query.candidates(self.setting.schema)) > MOST_CANDIDATES:
            raise PlanError(
                f"makes more than {MOST_CANDIDATES:,} candidates, for each of which recipients are put in order; take a larger step",
                field=f"{field}.step",
            )

    def expect(self) -> Expected:
        """In ranks, with nobody missing: every step is one respondent's own row then."""
        ask, at = self.statistic, self.query.at
        rate = rate_of(ask.epsilon, in_rho=ask.in_rho)
        candidates = len(self.query.candidates(self.setting.schema))
        steps = slack(candidates, bound=self.bound, epsilon=rate, chance=1 - ask.level)
        weight = weight_of(self.query.among, self.setting.schema)
        heaviest = weight.upper if weight else Fraction(1)
        return Expected(margin=steps * heaviest * max(at, 1 - at), how=LEAST_RANKS)

    def measured(self, context: Context) -> Answer:
        """The noisy quantile at cost epsilon; with `bar`, an interval at that cost on top.

        Guarantee   (epsilon + bar)-DP for one call; (epsilon + bar)-zCDP where context.in_rho.
        Adjacency   context.neighbours.
        Theorem     THEORY 12.2 and 12.3: permute-and-flip, or the exponential mechanism, on lengths; budgets add.
        Proof       proofs/answer/value_ladder.md
        Assumes     the tallies hold the table of the query and its blocks; exact arithmetic.
        Keeps back  the exact table, the blocks and the lengths.
        """
        ask, schema = self.statistic, context.schema
        cells = context.tallies.tables[self.query.table(schema)].cells
        weight = weight_of(self.query.among, schema)
        held = context.tallies.blocks[self._blocks]
        lengths = RankLengths(cells, held, self.query.at, heaviest=weight.high if weight else 1)
        values = self.query.candidates(schema)

        def pick(shift: int, budget: Fraction) -> Fraction:
            ranked = length_scores(lengths, len(cells), shift)
            draw = context.noise.choose if context.in_rho else context.noise.select
            rate = rate_of(budget, in_rho=context.in_rho)
            index = draw(ranked, sensitivity=int(self.bound.bound), epsilon=rate)
            return values[min(max(index - (shift > 0), 0), len(cells) - 1)]

        point = pick(0, ask.epsilon)
        everything = inner = (values[0], values[-1])
        if ask.bar:
            end = end_budgets(ask.bar, has_total=False).end
            rate = rate_of(end, in_rho=context.in_rho)
            reach = slack(len(cells) + 1, bound=self.bound, epsilon=rate, chance=(1 - ask.level) / 2)
            low, high = pick(reach, end), pick(-reach, end)
            inner = min(low, point), max(high, point)

        def covering(wanted: Fraction) -> Interval:
            """The interval was chosen for one level; of a higher one only the public limits are sure."""
            return inner if wanted <= ask.level else everything

        estimate = Estimate(value=point, interval=covering, noise_sd=float("nan"), has_interval=bool(ask.bar))
        meaning = SELECTED_WORDS + GAPS_WORDS if ask.bar else HIDDEN_RANKS
        return Answer(estimates=(estimate,), parts=self.parts, meaning=meaning)
