"""What is missing, told to everybody: from rows to noisy numbers in one call, which a ledger may be charged for.

Arguments are tried on an empty survey first: that checks them and gives the claim, before a row is read.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from reticent.engine.confidential import Patterns, look_tables
from reticent.engine.confidential import patterns as patterns_in
from reticent.engine.protocol import CuratorEngine
from reticent.missing.describe import each_column
from reticent.missing.describe import pairs as looks_of
from reticent.missing.private import (
    PrivateDescription,
    Verdict,
    ask_dependence,
    describe_private,
    public_columns,
)
from reticent.noise.bits import SystemBits
from reticent.noise.source import SystemNoise
from reticent.privacy.claim import Change, Claim, read_epsilon
from reticent.python.charging import Account, check_public, open_account, reserve
from reticent.release.survey import Survey
from reticent.report.missing import MissingPictures, missing_pictures
from reticent.schema import Schema
from reticent.schema.codebook import schema_from

FEW = 99
"""Draws of the test on the empty survey, where only its claim is wanted."""


class Told(Protocol):
    """Whatever has a claim."""

    @property
    def claim(self) -> Claim: ...


T = TypeVar("T", bound=Told)


def describe_missing(
    survey: Survey,
    *,
    epsilon: str,
    columns: Sequence[str] | None = None,
    patterns: Sequence[Collection[str]] = (),
    replaced: bool = False,
    ledger: Account | None = None,
) -> PrivateDescription:
    """Item nonresponse with noise: rates by column, missing answers per row, and rows that miss exactly each declared pattern.

    With a `ledger` the epsilon is charged before a row is read, and what is told is kept there before it is handed out.

    **Parameters**

    - `survey`: the rows and their codebook.
    - `epsilon`: the privacy budget, a decimal as text.
    - `columns`: which columns, all that can be asked about where not said.
    - `patterns`: sets of columns; counted are rows that miss exactly these.
    - `replaced`: protect one respondent's answers replaced, and not one added or removed.
    - `ledger`: a `Ledger` or its path.
    """
    schema, amount = schema_from(survey.book()), read_epsilon(epsilon, field="epsilon")
    names = public_columns(schema) if columns is None else tuple(columns)

    def told(found: Patterns) -> PrivateDescription:
        return describe_private(
            found,
            schema,
            epsilon=amount,
            noise=SystemNoise(),
            columns=names,
            patterns=patterns,
            change=_change(replaced),
        )

    nobody = Patterns(columns=names, counts=())
    words = {"epsilon": epsilon, "columns": list(names), "patterns": [sorted(each) for each in patterns]}
    return _asked(
        survey,
        schema,
        claim=told(nobody).claim,
        words=words,
        read=lambda engine: told(patterns_in(engine, schema, names)),
        kept=_counts,
        ledger=ledger,
    )


def ask_missing(
    survey: Survey,
    *,
    epsilon: str,
    pairs: Sequence[tuple[str, str]] | None = None,
    replaced: bool = False,
    ledger: Account | None = None,
) -> Verdict:
    """A private test of MCAR: does silence go with answers? For every column, or for `pairs` of missing and answered.

    With a `ledger` the epsilon is charged before a row is read, and what is told is kept there before it is handed out.

    **Parameters**

    - `survey`: the rows and their codebook.
    - `epsilon`: the privacy budget, a decimal as text.
    - `pairs`: which column is missing, and which was answered; every column where not said.
    - `replaced`: protect one respondent's answers replaced, and not one added or removed.
    - `ledger`: a `Ledger` or its path.
    """
    schema, amount = schema_from(survey.book()), read_epsilon(epsilon, field="epsilon")
    looks = each_column(schema) if pairs is None else looks_of(schema, pairs)

    def told(tables: Sequence[Any], **few: int) -> Verdict:
        return ask_dependence(
            tables,
            looks,
            schema,
            epsilon=amount,
            noise=SystemNoise(),
            bits=SystemBits(),
            change=_change(replaced),
            **few,
        )

    nobody = [np.zeros(look.shape(schema), dtype=np.int64) for look in looks]
    return _asked(
        survey,
        schema,
        claim=told(nobody, draws=FEW).claim,
        words={"epsilon": epsilon, "looks": [repr(look) for look in looks]},
        read=lambda engine: told(look_tables(engine, schema, looks)),
        kept=lambda made: {"tables": [each.table for each in made.seen], "p": repr(made.p)},
        ledger=ledger,
    )


def draw_missing(survey: Survey, *, by: str | None = None) -> MissingPictures:
    """CONFIDENTIAL: pictures of item nonresponse for the curator: rates of those asked, patterns, what goes missing together.

    Exact and uncharged, so never to be published; shows itself in a notebook.

    **Parameters**

    - `survey`: the rows and their codebook.
    - `by`: a column; rates are also drawn in each of its levels or groups.
    """
    schema, engine = schema_from(survey.book()), survey.open()
    try:
        engine.check(schema)
        return missing_pictures(engine, schema, by)
    finally:
        engine.close()


def _asked(
    survey: Survey,
    schema: Schema,
    *,
    claim: Claim,
    words: Mapping[str, Any],
    read: Callable[[CuratorEngine], T],
    kept: Callable[[T], Mapping[str, Any]],
    ledger: Account | None,
) -> T:
    """Look at the header, charge, read, keep, and only then hand out."""
    check_public(schema, claim.change)
    book = open_account(ledger)
    engine = survey.open()
    try:
        engine.check(schema)
        if book is None:
            return read(engine)
        held = reserve(
            book,
            "missing",
            words=words,
            codebook=survey.book(),
            schema=schema,
            claim=claim,
            files=engine.files,
        )
        made = read(engine)
    finally:
        engine.close()
    answer = {**kept(made), "claim": made.claim.as_dict()}
    book.commit(held, json.dumps(answer, sort_keys=True).encode())
    return made


def _counts(made: PrivateDescription) -> dict[str, Any]:
    names = ("columns", "missing", "per_row", "declared")
    return {name: list(getattr(made, name)) for name in names}


def _change(replaced: bool) -> Change:
    return Change.REPLACE if replaced else Change.ADD_REMOVE
