"""Partitions as a ledger knows them: how a survey is cut into pieces, under which secret key, and what each was charged."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from reticent.errors import PlanError
from reticent.privacy.claim import Change
from reticent.privacy.ledger.checks import words
from reticent.privacy.ledger.entries import Facts

MOST_PIECES = 1000
DRAWS = ("fixed sizes", "each on their own", "by values", "before the sample")
FIXED, CHANCE, VALUES, BEFORE = DRAWS
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargedPiece:
    """The piece a release is about: one of the parts of a named partition, which are told as the ledger keeps them.

    `parts` are text, `draw` says what they mean: sizes, the ends of each piece's chance, or the answers that put
    somebody there. `binds` is a digest of what the labels of respondents are made of: under another codebook the
    same key would cut otherwise.
    """

    partition: str
    number: int
    parts: tuple[str, ...]
    draw: str
    binds: str

    def __post_init__(self) -> None:
        words(self.partition, field="partition.name", limit=100)
        if not 2 <= len(self.parts) <= MOST_PIECES:
            raise PlanError(f"there are 2 to {MOST_PIECES} pieces.", field="partition")
        if not 1 <= self.number <= len(self.parts):
            raise PlanError(f"pieces are numbered from 1 to {len(self.parts)}.", field="partition.piece")
        if self.draw not in DRAWS or _HASH.fullmatch(self.binds) is None:
            raise PlanError(f"is one of: {'; '.join(DRAWS)}.", field="partition.draw")

    @property
    def charged(self) -> dict[str, Any]:
        """What a charge says of it."""
        return {"partition": self.partition, "number": self.number}

    def opening(self) -> dict[str, Any]:
        """The entry that makes the partition, with a fresh key that is never shown."""
        return {
            "name": self.partition,
            "parts": list(self.parts),
            "draw": self.draw,
            "binds": self.binds,
            "key": secrets.token_hex(32),
        }


@dataclass(slots=True)
class Cut:
    """A partition that was made, and what was charged to each of its pieces."""

    parts: tuple[str, ...]
    draw: str
    binds: str
    key: str = field(repr=False)
    spent: list[Fraction]

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> "Cut":
        """From an entry; whatever does not fit is refused by the caller."""
        parts = tuple(body["parts"])
        first = ChargedPiece(
            partition=body["name"], number=1, parts=parts, draw=body["draw"], binds=body["binds"]
        )
        if _HASH.fullmatch(body["key"]) is None or not all(isinstance(part, str) for part in parts):
            raise ValueError("a partition has a key, and parts that are text")
        return cls(
            parts=first.parts,
            draw=first.draw,
            binds=first.binds,
            key=body["key"],
            spent=[Fraction(0)] * len(parts),
        )

    def fits(self, facts: Facts) -> bool:
        """Whether such a cut has a theorem: in epsilon, and with fixed sizes only against replaced answers."""
        sized = self.draw in (FIXED, BEFORE)
        return facts.unit == "epsilon" and (not sized or facts.change == Change.REPLACE.value)

    def counted(self, facts: Facts, *, number: int = 0, more: Fraction = Fraction(0)) -> Fraction:
        """What the partition adds to `spent`, if piece `number` were charged `more`.

        The most that one piece was charged; but where a replaced answer can take a respondent from piece to piece,
        the two largest amounts together.
        """
        spent = [each + (place == number) * more for place, each in enumerate(self.spent, 1)]
        return sum(sorted(spent)[-2 if self.moves(facts) else -1 :], Fraction(0))

    def moves(self, facts: Facts) -> bool:
        """Whether the change that is hidden can take a respondent from one piece to another."""
        return self.draw == VALUES and facts.change == Change.REPLACE.value

    def counting(self, facts: Facts) -> str:
        """Which of the pieces count, in words, and what that rests on."""
        if self.moves(facts):
            return "the two largest count together"
        by_lot = self.draw in (FIXED, CHANCE) and facts.change == Change.REPLACE.value
        return "the most counts, while this ledger's key stays secret" if by_lot else "the most counts"

    def has(self, number: object) -> bool:
        return type(number) is int and 1 <= number <= len(self.parts)

    def check(self, piece: ChargedPiece) -> None:
        """Refuse a plan that cuts otherwise under the same name."""
        if (piece.parts, piece.draw) != (self.parts, self.draw):
            raise PlanError(
                f"the ledger has a partition {piece.partition!r} with other pieces; use its own, or a new name, "
                "which adds to what is spent.",
                field="partition",
            )
        if piece.binds != self.binds:
            raise PlanError(
                f"the codebook has changed since {piece.partition!r} was made, so its pieces would be others; "
                "use the old codebook, or a new name, which adds to what is spent.",
                field="partition",
            )
