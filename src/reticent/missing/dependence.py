"""Does silence go with what was answered? Asked privately, for tables that are declared before a row is read.

Under MCAR the number of missing answers in a row is independent of every answer in it. Each `Look` is one table in which
that would show. What no such table can show is whether silence depends on the answer that was not given (MNAR), nor
a dependence that cancels within the public groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reticent.engine.silences import Look
from reticent.errors import PlanError
from reticent.missing.reference import tail
from reticent.noise.bits import Bits
from reticent.noise.source import Noise
from reticent.privacy.claim import Change, Claim
from reticent.schema import Schema
from reticent.sensitivity.neighbours import Neighbours

PAGE = "proofs/missing/dependence.md"
DRAWS = 1_999


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One look: its noisy table, which may be published, the statistic and its own p."""

    look: Look
    table: tuple[tuple[int, ...], ...]
    statistic: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """All looks together. `p` is the least p times the number of looks: a small one speaks against MCAR."""

    seen: tuple[Seen, ...]
    p: float
    scale: Fraction
    claim: Claim
    is_private: bool


def ask_dependence(
    tables: Sequence[NDArray[np.int64]],
    looks: Sequence[Look],
    schema: Schema,
    *,
    epsilon: Fraction,
    noise: Noise,
    bits: Bits,
    change: Change = Change.ADD_REMOVE,
    draws: int = DRAWS,
) -> Verdict:
    """Noise on every cell of every table, then a test that knows the noise.

    Guarantee   epsilon-DP for one call.
    Adjacency   `change`, for a respondent of at most schema.at_most rows.
    Theorem     a row is in at most one cell of each table; Laplace noise in the L1 norm, then post-processing.
    Proof       proofs/missing/dependence.md
    Assumes     `looks` and epsilon were fixed without looking at rows; `tables` are what the engine counted for them.
    Keeps back  the exact tables.
    """
    _check(tables, looks, schema, draws)
    steps = Neighbours(replaced=change is Change.REPLACE, records=schema.at_most).steps
    reach = len(looks) * steps
    exact = [int(n) for table in tables for n in table.ravel()]
    noisy = np.array(noise.laplace_many(exact, sensitivity=reach, epsilon=epsilon), dtype=np.int64)
    scale = Fraction(reach) / epsilon
    ends = np.cumsum([table.size for table in tables])[:-1]
    parts = [
        part.reshape(look.shape(schema)) for part, look in zip(np.split(noisy, ends), looks, strict=True)
    ]
    seen = tuple(
        _seen(look, part, float(scale), draws, bits) for look, part in zip(looks, parts, strict=True)
    )
    return Verdict(
        seen=seen,
        p=min(1.0, len(seen) * min(each.p for each in seen)),
        scale=scale,
        claim=Claim(
            measure="pure",
            epsilon=epsilon,
            change=change,
            rests_on=(("the Laplace mechanism in the L1 norm", PAGE),),
        ),
        is_private=noise.is_private,
    )


def _seen(look: Look, table: NDArray[np.int64], scale: float, draws: int, bits: Bits) -> Seen:
    reached, p = tail(table.astype(float), scale=scale, draws=draws, bits=bits)
    return Seen(look=look, table=tuple(tuple(map(int, line)) for line in table), statistic=reached, p=p)


def _check(tables: Sequence[NDArray[np.int64]], looks: Sequence[Look], schema: Schema, draws: int) -> None:
    if not looks or len(set(looks)) < len(looks):
        raise PlanError("are at least one, each once.", field="looks")
    if [table.shape for table in tables] != [look.shape(schema) for look in looks]:
        raise PlanError("have the shapes of their looks, one for each.", field="tables")
    if draws < 99:
        raise PlanError("are at least 99.", field="draws")
