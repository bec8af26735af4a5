"""The parser of filter expressions: from text to tokens, and to a tree by recursive descent.

Nothing is evaluated and no row is read. Every character is accounted for, or refused with its position and a remedy.

predicate   any ( "or" any )*
any         one ( "and" one )*
one         "not" one | "(" predicate ")" | "everyone" | condition
condition   column sign value                      sign is one of = != < <= > >=
          | column ["not"] "in" "(" value ( "," value )* ")"
          | column ["not"] "between" value "and" value
          | column "is" ["not"] ( "missing" | "answered" | "structural" )
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, NoReturn, TypeVar, cast, get_args

from reticent.errors import PlanError
from reticent.schema.predicate import (
    MAX_DEPTH,
    MAX_DIGITS,
    NAME,
    RESERVED,
    And,
    Compare,
    Everyone,
    Kind,
    Not,
    Op,
    Or,
    Predicate,
    Status,
    is_refused_character,
)

MAX_LENGTH: Final = 10_000

TokenKind = Literal["space", "number", "word", "text", "sign", "end"]

_TOKEN: Final = re.compile(
    r"(?P<space> +)"
    r"|(?P<number>-?[0-9]+(?:\.[0-9]+)?(?![A-Za-z0-9_.]))"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<text>'(?:[^']|'')*')"
    r"|(?P<sign><=|>=|!=|<(?!>)|>|=(?![=<>])|[(),])"
)

_HINTS: Final = (
    ("==", 'write "=" for equality'),
    ("<>", 'write "!=" for inequality'),
    ("=<", 'write "<="'),
    ("=>", 'write ">="'),
    ("≤", 'write "<="'),
    ("≥", 'write ">="'),
    ("≠", 'write "!="'),
    ("!", 'write the word "not"'),
    ("&", 'write the word "and"'),
    ("|", 'write the word "or"'),
    ('"', "put text into single quotes, and write column names bare"),
)
_CURLY: Final = "‘’‚‛“”„‟`´"
_NUMBER_START: Final = re.compile(r"-?\.?[0-9]")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text, and the number of its first character, counted from one."""

    kind: TokenKind
    text: str
    at: int

    def says(self, word: str) -> bool:
        """True for this reserved word in any case, or this sign."""
        return self.kind in ("word", "sign") and self.text.lower() == word

    def shown(self) -> str:
        """The token as an error may quote it: short, and printable on any terminal."""
        if self.kind == "end":
            return "the end"
        short = self.text if len(self.text) <= 40 else self.text[:37] + "..."
        return short.encode("ascii", "backslashreplace").decode("ascii")


def refuse(field: str, at: int, message: str) -> NoReturn:
    """Raise the error of this grammar: the field, the position, and what to do."""
    raise PlanError(f"at character {at}: {message}.", field=field)


def check_length(text: str, field: str) -> None:
    """Refuse a text that is too long to be a predicate."""
    if len(text) > MAX_LENGTH:
        refuse(field, MAX_LENGTH + 1, f"the predicate is longer than {MAX_LENGTH:,} characters; shorten it")


def tokens(text: str, *, field: str) -> list[Token]:
    """All tokens of the text without its spaces, and one that marks the end."""
    _check_text(text, field)
    found: list[Token] = []
    start = 0
    while start < len(text):
        match = _TOKEN.match(text, start)
        if match is None:
            refuse(field, start + 1, _remedy(text, start))
        token = Token(cast(TokenKind, match.lastgroup), match.group(), start + 1)
        if token.kind != "space":
            _check_size(token, field)
            found.append(token)
        start = match.end()
    return [*found, Token("end", "", len(text) + 1)]


def _check_text(text: str, field: str) -> None:
    check_length(text, field)
    for start, char in enumerate(text):
        if is_refused_character(char):
            refuse(
                field,
                start + 1,
                f"the control character U+{ord(char):04X} is not allowed; write the predicate on one line, "
                "with plain spaces",
            )


def _check_size(token: Token, field: str) -> None:
    if token.kind == "word" and not NAME.fullmatch(token.text):
        refuse(
            field, token.at, "the name is longer than 63 characters; map it to a shorter one in the codebook"
        )
    if token.kind == "number" and max(map(len, token.text.lstrip("-").split("."))) > MAX_DIGITS:
        refuse(
            field,
            token.at,
            f"the number has more than {MAX_DIGITS} digits on one side of the point; round it",
        )


def _remedy(text: str, start: int) -> str:
    """What to do about a character that begins no token."""
    if _NUMBER_START.match(text, start):
        return "write the number in full, as in 1500 or -0.5, without exponent, unit or separator"
    for wrong, hint in _HINTS:
        if text.startswith(wrong, start):
            return f"this sign is not part of the grammar; {hint}"
    if text[start] == "'":
        return (
            "the text does not end; close it with a single quote, and double one inside, as in 'don''t know'"
        )
    if text[start] in _CURLY:
        return "this is not a plain quote; put text into single quotes '...'"
    char = text[start] if text[start].isascii() else f"U+{ord(text[start]):04X}"
    return (
        f"the character {char} is not part of the grammar; put text into single quotes, "
        "and write names with letters a to z, digits and _"
    )


_SIGNS: Final = frozenset({"=", "!=", "<", "<=", ">", ">="})
_NULLS: Final = frozenset({"null", "none", "nan", "na", "nil", "missing"})
_Node = TypeVar("_Node", bound=Predicate)


def parse(text: str, *, field: str) -> Predicate:
    """The tree of a predicate, or a `PlanError` that names the field, the position and the remedy."""
    predicate = _Parser(tokens(text, field=field), field).whole()
    # Plans and reports keep the canonical text, with its spaces, and must be able to read it again.
    check_length(str(predicate), field)
    return predicate


class _Parser:
    """One pass over the tokens, with one token of sight."""

    def __init__(self, found: list[Token], field: str) -> None:
        self.found = found
        self.field = field
        self.next = 0
        self.nesting = 0

    def whole(self) -> Predicate:
        if len(self.found) == 1:
            self.stop('the predicate is empty; leave it out or write "everyone"')
        predicate = self.either()
        if self.here.text in _SIGNS:
            self.stop('comparisons do not chain; write "column between low and high", or join two with "and"')
        if self.here.kind != "end":
            self.stop(f'found {self.here.shown()} where "and", "or" or the end should be')
        return predicate

    def either(self) -> Predicate:
        start, parts = self.here, [self.every()]
        while self.take("or"):
            parts.append(self.every())
        return parts[0] if len(parts) == 1 else self.made(start, lambda: Or(tuple(parts)))

    def every(self) -> Predicate:
        start, parts = self.here, [self.one()]
        while self.take("and"):
            parts.append(self.one())
        return parts[0] if len(parts) == 1 else self.made(start, lambda: And(tuple(parts)))

    def one(self) -> Predicate:
        if not (self.here.says("not") or self.here.says("(")):
            return self.condition()
        start = self.here
        if self.nesting == MAX_DEPTH:
            self.stop(f"conditions are nested more than {MAX_DEPTH} deep; write them flatter")
        self.nesting += 1
        inner = self.opposite(start) if self.take("not") else self.group()
        self.nesting -= 1
        return inner

    def opposite(self, start: Token) -> Not:
        part = self.one()
        return self.made(start, lambda: Not(part))

    def group(self) -> Predicate:
        self.need("(", "a group starts")
        inner = self.either()
        self.need(")", "the group should close")
        return inner

    def condition(self) -> Predicate:
        start, column = self.here, self.column()
        after = self.here
        if column.lower() == "everyone" and (after.kind == "end" or after.text.lower() in {")", "and", "or"}):
            return Everyone()
        if after.text in _SIGNS:
            self.next += 1
            value = self.value()
            return self.made(start, lambda: Compare(column, cast(Op, after.text), (value,)))
        if self.take("is"):
            return self.status(column)
        is_negated = self.take("not")
        compare = self.among(start, column)
        return self.made(start, lambda: Not(compare)) if is_negated else compare

    def column(self) -> str:
        token = self.here
        if token.kind in ("number", "text"):
            self.stop("a condition starts with a column; put the column first, as in age >= 18")
        if token.kind != "word" or token.text.lower() in RESERVED:
            self.stop(f"found {token.shown()} where a column should be; write a condition such as age >= 18")
        self.next += 1
        return token.text

    def among(self, start: Token, column: str) -> Compare:
        """The rest of `in` or `between`."""
        if self.take("between"):
            low = self.value()
            self.need("and", 'the second value of "between" should follow')
            high = self.value()
            return self.made(start, lambda: Compare(column, "between", (low, high)))
        if not self.take("in"):
            self.stop(
                f"found {self.here.shown()} after the column; compare with = != < <= > >=, "
                '"in (...)", "between ... and ..." or "is missing"'
            )
        values = self.values()
        return self.made(start, lambda: Compare(column, "in", values))

    def values(self) -> tuple[Fraction | str, ...]:
        self.need("(", 'the list of "in" should open')
        values = [self.value()]
        while self.take(","):
            values.append(self.value())
        self.need(")", 'the list of "in" should go on with a comma or close')
        return tuple(values)

    def value(self) -> Fraction | str:
        token = self.here
        if token.kind not in ("number", "text"):
            self.no_value(token)
        self.next += 1
        return Fraction(token.text) if token.kind == "number" else token.text[1:-1].replace("''", "'")

    def no_value(self, token: Token) -> NoReturn:
        if token.text.lower() in _NULLS:
            self.stop('nothing equals a missing answer; use "is missing" or "is not missing"')
        if token.kind == "word" and token.text.lower() not in RESERVED:
            self.stop(
                f"{token.shown()} is neither a number nor quoted text; a column is compared with values only, "
                f"so write '{token.shown()}' in single quotes if it is a level"
            )
        self.stop(f"found {token.shown()} where a value should be; write a number or text in single quotes")

    def status(self, column: str) -> Predicate:
        is_negated = self.take("not")
        kind, start = self.here.text.lower(), self.here
        if kind not in get_args(Kind):
            hint = "is missing" if kind in _NULLS else "is missing, is answered or is structural"
            self.stop(f"found {start.shown()} after {'is not' if is_negated else 'is'}; use {hint}")
        self.next += 1
        status = self.made(start, lambda: Status(column, cast(Kind, kind)))
        return self.made(start, lambda: Not(status)) if is_negated else status

    @property
    def here(self) -> Token:
        return self.found[self.next]

    def take(self, word: str) -> bool:
        """Step over the word if it comes next."""
        is_next = self.here.says(word)
        self.next += is_next
        return is_next

    def need(self, word: str, why: str) -> None:
        if not self.take(word):
            self.stop(f"found {self.here.shown()} where {why}; write {word}")

    def stop(self, message: str) -> NoReturn:
        refuse(self.field, self.here.at, message)

    def made(self, start: Token, node: Callable[[], _Node]) -> _Node:
        """The node, its own rules told as ours: which field, and where it starts."""
        try:
            return node()
        except ValueError as rule:
            message = str(rule)
        refuse(self.field, start.at, message)
