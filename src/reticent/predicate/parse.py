"""From text to tree, by recursive descent. Nothing is evaluated and no row is read.

predicate   any ( "or" any )*
any         one ( "and" one )*
one         "not" one | "(" predicate ")" | "everyone" | condition
condition   column sign value                      sign is one of = != < <= > >=
          | column ["not"] "in" "(" value ( "," value )* ")"
          | column ["not"] "between" value "and" value
          | column "is" ["not"] ( "missing" | "answered" | "structural" )
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Final, NoReturn, TypeVar, cast, get_args

from reticent.predicate.tokens import Token, check_length, refuse, tokens
from reticent.predicate.tree import MAX_DEPTH, And, Compare, Everyone, Kind, Not, Op, Or, Predicate, Status
from reticent.predicate.words import RESERVED

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
