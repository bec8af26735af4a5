"""Every error we raise, and the exit status each one stands for (R16), with small words for messages.

An error carries the field it is about and one sentence that says what to do. Texts name things of the plan and the
codebook; nothing read from a row may enter them.
"""

import difflib
import re
from collections.abc import Iterable, Mapping

REQUIRED = "is not given, and has no default"
"""Of a key that a section needs."""


class ReticentError(Exception):
    """Any refusal of ours: `error: <field>: <what to do>`."""

    status = 2

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field
        self.names: Mapping[str, str] = {}

    def __str__(self) -> str:
        message = str(self.args[0])
        return f"{self.field}: {message}" if self.field else message

    @property
    def told(self) -> str:
        """The same for a terminal: a section of a plan by its own name in place of its number."""
        found = re.fullmatch(r"(([a-z]+)\[[0-9]+\])(.*)", self.field, re.DOTALL)
        if found is None:
            return str(self)
        place, section, rest = found.groups()
        known = section if rest.startswith((" '", ' "')) else self.names.get(place, place)
        return f"{known}{rest}: {self.args[0]}"


class SchemaError(ReticentError):
    """The codebook does not fit; raised before any row is read."""


class PlanError(ReticentError):
    """The plan or the call does not fit; raised before any row is read."""


class SourceError(ReticentError):
    """The file, table or frame does not fit the codebook; judged from its header alone."""


class BudgetError(ReticentError):
    """The ledger has not enough left."""

    status = 3


class ResourceError(ReticentError):
    """A resource or a limit: disk, memory, a file that could not be read to its end."""

    status = 4


class EngineError(ResourceError):
    """The engine could not run a step. Its own words are not passed on: they may quote a cell."""


class Interrupted(ReticentError):
    """Somebody stopped a command that had something to finish; the text names the whole command that finishes it."""

    status = 130


class LedgerError(ReticentError):
    """The ledger is not usable, or what it says forbids the step."""

    status = 5


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """`; did you mean 'age'?`, or nothing when nothing is near."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {close[0]!r}?" if close else ""
