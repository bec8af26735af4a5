"""What a ledger's entries add up to, read from the first to the last under the rules that held when they were written.

The same `add` reads old entries and admits new ones, so a ledger can hold nothing that could not be written. Of a partition
it knows how the survey is cut into pieces, under which secret key, and what each was charged; of a panel, its waves.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from reticent.errors import LedgerError, PlanError, ReticentError
from reticent.privacy.claim import UNITS, Change
from reticent.privacy.ledger.approvals import Approval, MissingPartError, SignOff
from reticent.privacy.ledger.entries import (
    START,
    Entry,
    Facts,
    Raise,
    Receipt,
    decimal_text,
    digest,
    exact,
    words,
)
from reticent.privacy.ledger.waves import Waves

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


@dataclass(slots=True)
class Standing:
    """How far one release has come."""

    plan: str
    receipt: Receipt
    holder: str
    resumed: bool = False
    answer: str | None = None  # the digest of the answer's bytes
    committed: int = 0  # the entry that holds them
    files: dict[str, str] | None = None

    @property
    def state(self) -> str:
        if self.answer is None:
            return "reserved"
        return "committed" if self.files is None else "published"


@dataclass(slots=True)
class History:
    """The sums and states that follow from the entries added so far.

    `key` is the ledger's own, made of the secret salt of its first entry; `marks` are those of the files it is for, and
    `fingerprints` those of their rows, both under that key.

    `spent` is what was charged to the whole, and for every partition the most that was charged to one piece of it;
    to two, where a replaced answer can take a respondent from one to the other; and of the waves of a panel the largest
    sums, as many as a respondent can be in.

    `sign_off` says who has to approve a charge, where the ledger asks for that, and who has.
    """

    number: int = 0
    hash: str = START
    facts: Facts | None = None
    spent: Fraction = Fraction(0)
    releases: dict[str, Standing] = field(default_factory=dict)
    cuts: dict[str, Cut] = field(default_factory=dict)
    waves: Waves | None = None
    sign_off: SignOff | None = None
    hashes: list[str] = field(default_factory=list)
    key: str = field(default="", repr=False)
    marks: set[str] = field(default_factory=set, repr=False)
    fingerprints: set[str] = field(default_factory=set, repr=False)

    def add(self, entry: Entry) -> None:
        """Take one more entry, or say which rule it breaks."""
        fits = False
        try:
            rules = {
                "open": self._open,
                "sign-off": self._sign_off,
                "source": self._source,
                "rows": self._rows,
                "partition": self._partition,
                "waves": self._waves,
                "approve": self._approve,
                "reserve": self._reserve,
                "resume": self._resume,
                "commit": self._commit,
                "publish": self._publish,
                "note": self._note,
            }
            fits = (entry.kind == "open") == (self.number == 0) and rules[entry.kind](entry)
        except MissingPartError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, ReticentError):
            pass
        if not fits:
            raise LedgerError(
                f"entry {entry.number} breaks the rules of the ledger, so it was not written by us."
            )
        self.number, self.hash = entry.number, entry.hash
        self.hashes.append(entry.hash)

    def known(self) -> Facts:
        """The facts of a ledger that has its first entry."""
        if self.facts is None:
            raise LedgerError("the ledger is empty; put back a copy of it, or open a new one.")
        return self.facts

    @property
    def is_new(self) -> bool:
        """Whether nothing has happened since it was opened."""
        return self.number == (1 if self.sign_off is None else 2)

    @property
    def left(self) -> Fraction:
        return self.known().budget - self.spent

    def _open(self, entry: Entry) -> bool:
        body = entry.body
        self.facts = Facts(
            ledger=body["ledger"],
            dataset=body["dataset"],
            change=body["change"],
            unit=body["unit"],
            budget=exact(body["budget"], field="budget"),
            raises=(),
            separate=body.get("separate", False) is True,
        )
        self.key = digest(f"key of rows|{body['ledger']}|{body['salt']}".encode())
        return body["unit"] in UNITS

    def _sign_off(self, entry: Entry) -> bool:
        self.sign_off = SignOff.read(entry.body)
        return entry.number == 2  # with the first entry, or never

    def _approve(self, entry: Entry) -> bool:
        approval = Approval.read(entry.body)
        if self.sign_off is None or approval.release in self.releases:
            return False
        return self.sign_off.add(approval, self.known().ledger)

    def _source(self, entry: Entry) -> bool:
        return _gathered(self.marks, entry.body["marks"])

    def _rows(self, entry: Entry) -> bool:
        return _gathered(self.fingerprints, [entry.body["fingerprint"]])

    def _partition(self, entry: Entry) -> bool:
        cut = Cut.read(entry.body)
        if entry.body["name"] in self.cuts or not cut.fits(self.known()) or self.waves is not None:
            return False
        self.cuts[entry.body["name"]] = cut
        return True

    def _waves(self, entry: Entry) -> bool:
        if self.waves is not None or self.cuts:
            return False
        self.waves = Waves.read(entry.body)
        return True

    def more(self, amount: Fraction, body: Mapping[str, Any]) -> Fraction:
        """How much `spent` grows by a charge: by all of it, or by what it adds to what counts of its partition or panel."""
        piece, wave = body.get("piece"), body.get("wave")
        if wave is not None and self.waves is not None:
            return self.waves.counted(name=wave["name"], more=amount) - self.waves.counted()
        if piece is None:
            return amount
        cut, facts = self.cuts[piece["partition"]], self.known()
        return cut.counted(facts, number=int(piece["number"]), more=amount) - cut.counted(facts)

    def _reserve(self, entry: Entry) -> bool:
        amount = exact(entry.body["amount"], field="amount")
        if not self._has(entry.body):
            return False
        more = self.more(amount, entry.body)
        if entry.body["release"] in self.releases or not (amount > 0 and more <= self.left):
            return False
        if not self.is_approved(entry.body):
            return False
        receipt = self._receipt(entry, amount, more)
        self.spent += more
        piece, wave = entry.body.get("piece"), entry.body.get("wave")
        if piece is not None:
            self.cuts[piece["partition"]].spent[piece["number"] - 1] += amount
        if wave is not None and self.waves is not None:
            self.waves.charge(wave, amount)
        self.releases[entry.body["release"]] = Standing(
            plan=entry.body["plan"], receipt=receipt, holder=entry.hash
        )
        return True

    def is_approved(self, body: Mapping[str, Any]) -> bool:
        """Whether as many people have approved a charge as the ledger asks for."""
        asked = self.sign_off
        return asked is None or asked.covers(body["release"], body["plan"], body["amount"])

    def approved_by(self, body: Mapping[str, Any]) -> tuple[str, ...]:
        """Who has approved a charge, in the order of their entries."""
        return self.sign_off.by(body["release"], body["plan"], body["amount"]) if self.sign_off else ()

    def _has(self, body: Mapping[str, Any]) -> bool:
        """Whether the piece or the wave that a charge names is there to be charged; never both."""
        piece, wave = body.get("piece"), body.get("wave")
        if piece is not None and wave is not None:
            return False
        if piece is not None:
            return self.cuts[piece["partition"]].has(piece["number"])
        if wave is None:
            return True
        named = words(wave["name"], field="wave.name", limit=100)
        is_marked = all(_HASH.fullmatch(each) is not None for each in wave["marks"])
        return bool(named) and is_marked and self.waves is not None and not self.waves.refusal(wave)

    def _receipt(self, entry: Entry, amount: Fraction, more: Fraction) -> Receipt:
        facts, piece, wave = self.known(), entry.body.get("piece"), entry.body.get("wave")
        panel = self.waves.counting(facts) if wave and self.waves else ""
        return Receipt(
            ledger=facts.ledger,
            dataset=facts.dataset,
            entry=entry.number,
            hash=entry.hash,
            previous=entry.previous,
            release=entry.body["release"],
            unit=facts.unit,
            charged=decimal_text(amount, field="amount"),
            spent_before=decimal_text(self.spent, field="spent"),
            left_after=decimal_text(self.left - more, field="left"),
            raises=facts.raises,
            piece=f"{piece['number']} of {piece['partition']}" if piece else "",
            separate_budget=facts.separate,
            wave=f"{wave['name']}; of all waves {panel}" if wave else "",
            counted=decimal_text(more, field="counted") if wave else "",
            approved_by=self.approved_by(entry.body),
        )

    def _resume(self, entry: Entry) -> bool:
        standing = self.releases[entry.body["release"]]
        if standing.state != "reserved" or standing.resumed:
            return False
        standing.resumed, standing.holder = True, entry.hash
        return True

    def _commit(self, entry: Entry) -> bool:
        standing = self.releases[entry.body["release"]]
        if standing.state != "reserved" or entry.body["holder"] != standing.holder:
            return False
        standing.answer, standing.committed = entry.body["answer"], entry.number
        return True

    def _publish(self, entry: Entry) -> bool:
        standing = self.releases[entry.body["release"]]
        if standing.state != "committed":
            return False
        standing.files = dict(entry.body["files"])
        return True

    def _note(self, entry: Entry) -> bool:
        if entry.body.get("separate") is True:
            self.facts = replace(self.known(), separate=True)
        facts, after = self.known(), entry.body.get("budget")
        if after is None:
            return bool(entry.body["text"])
        budget = exact(after, field="budget")
        step = Raise(
            entry=entry.number,
            before=decimal_text(facts.budget, field="budget"),
            after=decimal_text(budget, field="budget"),
            reason=entry.body["text"],
        )
        self.facts = replace(facts, budget=budget, raises=(*facts.raises, step))
        return bool(step.reason) and budget > facts.budget


def _gathered(known: set[str], more: Sequence[str]) -> bool:
    """Add hashes to those that are known; at least one, and nothing else."""
    known.update(more)
    return bool(more) and all(_HASH.fullmatch(each) is not None for each in more)
