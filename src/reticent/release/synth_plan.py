"""A synthetic table as a plan asks for it. Everything here is public: it is made of the plan and the codebook."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from reticent.decimals import show
from reticent.privacy.claim import Claim
from reticent.synth.base import Holes, Spend, SynthesisMethod
from reticent.synth.domain import Domain
from reticent.synth.ruled import Rules

DONE = {
    Holes.COMPLETE: "rows with a missing answer were left out before anything was counted",
    Holes.RANDOM: "missing answers were drawn evenly from all possible ones before anything was counted",
    Holes.MEAN: "missing answers were replaced by a noisy mean, or drawn from a noisy histogram, before anything was "
    "counted",
    Holes.MODEL: "missing answers were drawn from a private model of the answers that were given, each row from itself",
    Holes.AVAILABLE: "each table was counted over those who answered its own questions",
    Holes.VALUES: "a missing answer was counted as a value of its own",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Synth:
    """What is learned, of which columns, for how much, and how many rows are drawn. `copies` completed ones, or none."""

    name: str
    method: SynthesisMethod
    holes: Holes
    rows: int
    bins: int
    domain: Domain
    spend: Spend
    rules: Rules
    copies: int = 0
    heaps: Mapping[str, Sequence[str]] = field(default_factory=dict)
    never: tuple[str, ...] = ()
    determines: Mapping[str, str] = field(default_factory=dict)
    written: Mapping[str, Any] = field(default_factory=dict)

    @property
    def claim(self) -> Claim:
        """What the table promises, however many rows are drawn."""
        return self.method.claim(self.domain, self.holes, self.spend)

    @property
    def cost(self) -> Fraction:
        return self.spend.epsilon

    @property
    def tables(self) -> int:
        """How many tables are written: one, or one for each completed copy."""
        return max(1, self.copies)

    @property
    def rounds(self) -> int:
        """At most how many steps a progress bar hears of: those of the fit, and the rows."""
        return self.method.rounds(self.domain) + 1

    def words(self) -> str:
        """`30,000 rows of 15 columns by aim (epsilon 1, delta 0.000001); each table was counted over those ...`."""
        cost = f"epsilon {show(self.spend.epsilon)}"
        cost += f", delta {show(self.spend.delta)}" if self.spend.delta else ""
        said = f"{self.rows:,} rows of {len(self.domain.axes)} columns by {self.method.name} ({cost})"
        return f"{said}; {self.holes_words()}"

    def holes_words(self) -> str:
        """What is done about missing answers, from the rows that are read to the rows that are written."""
        if self.holes is not Holes.VALUES:
            return DONE[self.holes]
        if not self.copies:
            return f"{DONE[self.holes]}, and the synthetic rows keep their own"
        each = "was then filled" if self.copies == 1 else f"was then filled {self.copies} times over"
        return f"{DONE[self.holes]}, and {each} in the synthetic rows, which costs nothing"

    def files(self, release_id: str, first: int) -> list[str]:
        """The names of the tables, without their endings, counted from `first` over all sections of a plan."""
        return [f"{release_id}.{first + place}.synth" for place in range(self.tables)]
