"""The change that must stay hidden, as a value the bounds below are functions of."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """One respondent, of at most `records` rows, is added or removed; or (`replaced`) answers otherwise."""

    replaced: bool = False
    records: int = 1

    def __post_init__(self) -> None:
        if self.records < 1:
            raise ValueError("a respondent owns at least one record")

    @property
    def steps(self) -> int:
        """How many records must be added or removed, one at a time, to get from one to the other."""
        return self.records * (2 if self.replaced else 1)
