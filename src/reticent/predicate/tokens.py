"""From text to tokens. Every character is accounted for, or refused with its position and a remedy."""

import re
from dataclasses import dataclass
from typing import Final, Literal, NoReturn, cast

from reticent.errors import PlanError
from reticent.predicate.words import MAX_DIGITS, NAME, is_refused_character

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
