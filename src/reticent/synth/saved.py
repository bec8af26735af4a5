"""Models saved and loaded: one TOML file that says what it is, and for a network one array for each step. Nothing can run.

Whoever loads it brings the codebook, and every name, bin and size in the TOML file is held against it. Digests tell of a
file that was changed or mixed up; they are no signature, since whoever writes all the files can write those too.
"""

import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import pairwise
from math import isfinite, prod
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import Field

from reticent.engine.wants import Key, has_universe
from reticent.errors import PlanError, SourceError
from reticent.files import Section, fill, make_folder, read_toml, write_new
from reticent.privacy.claim import About, Arithmetic, Change, Claim, Measure, check_exact
from reticent.schema import Schema
from reticent.synth.base import Conditional, Floats, MissingMethod, Model, Places
from reticent.synth.domain import Axis, Domain
from reticent.synth.learned.autogan import AutoGanModel
from reticent.synth.learned.chain import ChainModel
from reticent.synth.learned.ctgan import CtGanModel
from reticent.synth.learned.kamino import KaminoModel
from reticent.synth.learned.misgan import MisGanModel
from reticent.synth.learned.model import PARAMETERS, LearnedModel
from reticent.synth.lists import Lists, ListsPart, lists_from, lists_size
from reticent.synth.marginals.study import plain
from reticent.synth.network import Network
from reticent.synth.written import LISTS, MODEL, digest_of, name_of, words_of

# A decimal or a fraction. No exponents: a few letters would be a number of a gigabyte.
Amount = Annotated[str, Field(pattern=r"^[0-9]{1,80}([./][0-9]{1,80})?$")]


class AxisPart(Section):
    """One column, its levels or bounds in the codebook's words, its bins and its cells."""

    column: str
    words: list[str]
    starts: list[int]
    answers: int
    unasked: bool


class StepPart(Section):
    """One step, by the names of its columns, and the digest of its array."""

    column: str
    given: list[str]
    sha256: str


class TheoremPart(Section):
    """What a claim rests on."""

    theorem: str
    proof: str


class ClaimPart(Section):
    """A claim as its dictionary."""

    measure: Measure
    epsilon: Amount = "0"
    delta: Amount = "0"
    rho: Amount = "0"
    change: str
    rests_on: list[TheoremPart]
    arithmetic: Arithmetic
    about: About

    def claim(self) -> Claim:
        """The claim itself, which checks its amounts."""
        return Claim(
            measure=self.measure,
            epsilon=Fraction(self.epsilon),
            delta=Fraction(self.delta),
            rho=Fraction(self.rho),
            change=Change(self.change),
            rests_on=tuple((each.theorem, each.proof) for each in self.rests_on),
            arithmetic=self.arithmetic,
            about=self.about,
        )


class MeasuredPart(ListsPart):
    """The noisy lists that the model was fitted to, and the digest of their numbers."""

    sha256: str


class ModelPart(Section):
    """The whole file."""

    format: Literal[1]
    sha256: str
    total: str
    claim: ClaimPart
    axes: list[AxisPart]
    steps: list[StepPart]
    measured: MeasuredPart | None = None


def axis_of(part: AxisPart, schema: Schema) -> Axis:
    """The axis, if the codebook still has its column with the same cells."""
    if part.column not in schema.coded:
        raise SourceError(f"no column {part.column[:80]!r} in the codebook", field=MODEL)
    column, starts = schema.coded[part.column], tuple(part.starts)
    if words_of(column) != part.words:
        raise SourceError(f"the codebook has other levels or bounds for {part.column}", field=MODEL)
    rising = all(a < b for a, b in pairwise(starts))
    if starts and not (rising and starts[0] == column.low and starts[-1] <= column.high):
        raise SourceError(f"the bins of {part.column} do not fit the codebook", field=MODEL)
    key = Key(column=part.column, starts=starts, silent=True)
    if key.answers(schema) != part.answers or has_universe(schema, part.column) != part.unasked:
        raise SourceError(f"the cells of {part.column} do not fit the codebook", field=MODEL)
    return Axis(key=key, answers=part.answers, has_unasked=part.unasked)


def total_of(text: str) -> float:
    """The noisy number of respondents."""
    total = None
    with suppress(ValueError):
        total = float(text)
    if total is None or not isfinite(total):
        raise SourceError("is no number", field=f"{MODEL}: total")
    return total


def claim_of(part: ClaimPart) -> Claim:
    """The claim, if one like it can be made: no model is learned in ideal reals."""
    with suppress(PlanError, ValueError, ZeroDivisionError):
        return check_exact(part.claim(), field="arithmetic")
    raise SourceError("is no claim that could have been made", field=f"{MODEL}: claim")


OFF_BY = 1e-9
HEADER = 4096
MOST_CELLS = 2**28
"""Of one step: what a file says of its own size is not believed beyond this."""


def save(model: Model, folder: Path) -> None:
    """Write `model` into a folder, new or without a model. The TOML comes last, so that half a model is none."""
    make_folder(folder)
    files = model.files()
    for name in sorted(files, key=lambda name: (name == MODEL, name)):
        write_new(folder / name, files[name], private=False)


def load(folder: Path, schema: Schema) -> Model:
    """The model in `folder`, or a refusal that names the file. `schema` is the codebook it was made with."""
    data = read_toml(folder / MODEL, error=SourceError)
    kind = data.get("kind", NETWORK)
    if not isinstance(kind, str) or kind not in READERS:
        raise SourceError(f"is of a kind that is not known here; known: {', '.join(READERS)}", field=MODEL)
    return READERS[kind](folder, data, schema)


def load_network(folder: Path, data: Mapping[str, Any], schema: Schema) -> Network:
    """The network whose TOML file says `data`. Every name, bin and size in it is held against the codebook."""
    part = _said(ModelPart, data)
    _check_digest(part.sha256, data)
    domain = Domain(schema=schema, axes=tuple(axis_of(axis, schema) for axis in part.axes))
    places = [_places(i, step, domain) for i, step in enumerate(part.steps)]
    _check_order(places, domain)
    steps = tuple(
        Conditional(
            place=place, given=given, table=_table(folder, i, domain.sizes((*given, place)), step.sha256)
        )
        for i, (step, (place, given)) in enumerate(zip(part.steps, places, strict=True))
    )
    return Network(
        domain=domain,
        steps=steps,
        total=total_of(part.total),
        claim=claim_of(part.claim),
        lists=None if part.measured is None else _lists(folder, part.measured, domain),
    )


def _lists(folder: Path, part: MeasuredPart, domain: Domain) -> Lists:
    """The noisy lists, if they are those that were saved and fit the codebook."""
    size = lists_size(part)
    if size > MOST_CELLS:
        raise SourceError(f"has lists of more than {MOST_CELLS:,} numbers", field=f"{MODEL}: measured")
    numbers = _saved_array(folder, LISTS, (size,), part.sha256)
    first = tuple(side.into for side in plain(domain, part.missing).sides)
    found = lists_from(part, numbers, domain, first)
    if found is None:
        raise SourceError("holds lists that do not fit the codebook", field=f"{MODEL}: measured")
    return found


class LearnedPart(Section):
    """The whole file of a learned model."""

    format: Literal[1]
    sha256: str
    kind: str
    missing: Annotated[MissingMethod, Field(strict=False)]
    parameters: str
    total: str
    claim: ClaimPart
    axes: list[AxisPart]


MOST_PARAMETER = 1e6
"""Far above what training leaves. Beyond it sums overflow while rows are drawn."""
LEARNED: dict[str, type[LearnedModel]] = {
    kind.kind: kind for kind in (ChainModel, KaminoModel, MisGanModel, CtGanModel, AutoGanModel)
}
"""Kinds of learned models: one array each, as long as the codebook makes it."""


def load_learned(folder: Path, data: Mapping[str, Any], schema: Schema) -> LearnedModel:
    """The learned model whose TOML file says `data`; its array has as many numbers as the codebook makes of its columns."""
    part = _said(LearnedPart, data)
    _check_digest(part.sha256, data)
    domain = Domain(schema=schema, axes=tuple(axis_of(axis, schema) for axis in part.axes))
    if not domain.axes or len(set(domain.columns)) < len(domain.axes):
        raise SourceError("has no column, or one of them twice", field=MODEL)
    kind = LEARNED[part.kind]
    found = _saved_array(folder, PARAMETERS, (kind.size(domain, part.missing),), part.parameters)
    if not ((np.abs(found) <= MOST_PARAMETER).all() and kind.is_sound(domain, found)):
        raise SourceError(
            "holds what is no number, or a larger one than any training leaves, or no order of the columns",
            field=PARAMETERS,
        )
    return kind(
        domain=domain,
        holes=part.missing,
        parameters=found,
        total=total_of(part.total),
        claim=claim_of(part.claim),
    )


Reader = Callable[[Path, Mapping[str, Any], Schema], Model]
NETWORK = "network"  # a file that does not say its kind is one
READERS: dict[str, Reader] = {NETWORK: load_network, **dict.fromkeys(LEARNED, load_learned)}
"""Kinds of saved models, each with what makes a model of its folder, of what its TOML file says, and of the codebook."""


Part = TypeVar("Part", bound=Section)


def _said(kind: type[Part], data: Mapping[str, Any]) -> Part:
    """What the TOML file says, or a refusal that names the file."""
    try:
        return fill(kind, data, error=SourceError, at="")
    except SourceError as problem:
        said, field = str(problem.args[0]), problem.field
    raise SourceError(said, field=f"{MODEL}: {field}")


def _check_digest(digest: str, data: Mapping[str, Any]) -> None:
    if digest != digest_of({key: value for key, value in data.items() if key != "sha256"}):
        raise SourceError("has been changed since it was saved; save the model again", field=MODEL)


def _places(i: int, part: StepPart, domain: Domain) -> tuple[int, Places]:
    """The column that a step draws, and those it is given, by number."""
    columns = domain.columns
    if not {part.column, *part.given} <= set(columns):
        raise SourceError("names a column that has no axis", field=f"{MODEL}: steps[{i}]")
    return columns.index(part.column), tuple(columns.index(name) for name in part.given)


def _check_order(steps: Sequence[tuple[int, Places]], domain: Domain) -> None:
    drawn: list[int] = []
    for place, given in steps:
        if not set(given) <= set(drawn) or len(set(given)) < len(given):
            raise SourceError("draws a column before one it is given", field=MODEL)
        drawn.append(place)
    is_each_once = sorted(drawn) == list(range(len(domain.axes))) and len(set(domain.columns)) == len(drawn)
    if not (drawn and is_each_once):
        raise SourceError("does not draw every column once", field=MODEL)


def _table(folder: Path, i: int, sizes: Places, digest: str) -> Floats:
    """The array, if it is the one that was saved and its lines are chances."""
    name = name_of(i)
    if prod(sizes) > MOST_CELLS:
        raise SourceError(f"a step has more than {MOST_CELLS:,} cells", field=f"{MODEL}: steps[{i}]")
    table = _saved_array(folder, name, sizes, digest)
    if not (np.isfinite(table).all() and (table >= 0).all()):
        raise SourceError("holds a number that is no chance", field=name)
    if np.abs(table.sum(axis=-1) - 1).max() > OFF_BY:
        raise SourceError("has a line of chances that do not sum to one", field=name)
    return table


def _saved_array(folder: Path, name: str, sizes: Places, digest: str) -> Floats:
    """The array of that name, if it is the one that was saved and has the wanted sizes."""
    data = _read(folder / name, 8 * prod(sizes) + HEADER)
    if hashlib.sha256(data).hexdigest() != digest:
        raise SourceError("is not the array that was saved; save the model again", field=name)
    table = _array(data, sizes)
    if table is None:
        raise SourceError(f"is no array of doubles of sizes {list(sizes)}", field=name)
    return table


def _array(data: bytes, sizes: Places) -> Floats | None:
    """The doubles in `data`, if its header says what is wanted and as many follow.

    The header alone is parsed. `np.load` would first make room for as much as the header says, and open archives.
    """
    file, told = io.BytesIO(data), None
    with suppress(Exception):  # whatever a header can make its parser say
        if np.lib.format.read_magic(file) == (1, 0):
            told = np.lib.format.read_array_header_1_0(file, max_header_size=HEADER)
    start = file.tell()
    if told != (sizes, False, np.dtype("<f8")) or len(data) - start != 8 * prod(sizes):
        return None
    return np.frombuffer(data, dtype="<f8", offset=start).reshape(sizes)


def _read(path: Path, most: int) -> bytes:
    data = None
    with suppress(OSError):
        if path.is_file() and path.stat().st_size <= most:
            data = path.read_bytes()
    if data is None:
        raise SourceError("is missing, or larger than its columns allow", field=path.name)
    return data
