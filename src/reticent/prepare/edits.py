"""Edit rules: deductions from a record's own answers. A record uses only itself, so they cost nothing."""

from dataclasses import dataclass

from reticent.predicate.bind import Bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Where `when` is true of a record, its missing `column` becomes `code`; with `replaces`, any other answer too."""

    when: Bound
    column: str
    code: int
    replaces: bool = False
