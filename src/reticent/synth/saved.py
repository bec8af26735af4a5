"""A network on disk: one TOML file that says what it is, and one array for each step. Nothing in it can run.

Whoever loads it brings the codebook, and every name, bin and size is held against it. Digests tell of a file that was
changed or mixed up; they are no signature, since whoever writes all the files can write those too.
"""

import hashlib
import io
from collections.abc import Sequence
from contextlib import suppress
from math import prod
from pathlib import Path

import numpy as np

from reticent.errors import SourceError
from reticent.files import make_folder, write_new
from reticent.schema import Schema
from reticent.synth.base import Conditional, Floats, Network, Places
from reticent.synth.domain import Domain
from reticent.synth.saved_parts import (
    MODEL,
    ModelPart,
    StepPart,
    axis_of,
    claim_of,
    digest_of,
    told_of,
    toml_of,
    total_of,
)
from reticent.tomlfile import fill, read_toml

OFF_BY = 1e-9
HEADER = 4096
MOST_CELLS = 2**28
"""Of one step: what a file says of its own size is not believed beyond this."""


def save(network: Network, folder: Path) -> None:
    """Write `network` into a folder, new or without a model. The TOML comes last, so that half a model is none."""
    make_folder(folder)
    words, files = written(network)
    for i, data in enumerate(files):
        write_new(folder / _name(i), data, private=False)
    write_new(folder / MODEL, words, private=False)


def written(network: Network) -> tuple[bytes, list[bytes]]:
    """The TOML file, and the array of each step, whose digests it holds."""
    files = [_bytes(step.table) for step in network.steps]
    told = told_of(network, [hashlib.sha256(data).hexdigest() for data in files])
    return toml_of({"sha256": digest_of(told), **told}).encode(), files


def load(folder: Path, schema: Schema) -> Network:
    """The network in `folder`, or a refusal that names the file. `schema` is the codebook it was made with."""
    data = read_toml(folder / MODEL, error=SourceError)
    part = fill(ModelPart, data, error=SourceError, at="")
    if part.sha256 != digest_of({key: value for key, value in data.items() if key != "sha256"}):
        raise SourceError("has been changed since it was saved; save the model again", field=MODEL)
    domain = Domain(schema=schema, axes=tuple(axis_of(axis, schema) for axis in part.axes))
    places = [_places(i, step, domain) for i, step in enumerate(part.steps)]
    _check_order(places, domain)
    steps = tuple(
        Conditional(
            place=place, given=given, table=_table(folder, i, domain.sizes((*given, place)), step.sha256)
        )
        for i, (step, (place, given)) in enumerate(zip(part.steps, places, strict=True))
    )
    return Network(domain=domain, steps=steps, total=total_of(part.total), claim=claim_of(part.claim))


def _name(i: int) -> str:
    return f"step-{i:03d}.npy"


def _bytes(table: Floats) -> bytes:
    file = io.BytesIO()
    np.save(file, np.ascontiguousarray(table, dtype="<f8"), allow_pickle=False)
    return file.getvalue()


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
    name = _name(i)
    if prod(sizes) > MOST_CELLS:
        raise SourceError(f"a step has more than {MOST_CELLS:,} cells", field=f"{MODEL}: steps[{i}]")
    data = _read(folder / name, 8 * prod(sizes) + HEADER)
    if hashlib.sha256(data).hexdigest() != digest:
        raise SourceError("is not the array that was saved; save the model again", field=name)
    table = _array(data, sizes)
    if table is None:
        raise SourceError(f"is no array of doubles of sizes {list(sizes)}", field=name)
    if not (np.isfinite(table).all() and (table >= 0).all()):
        raise SourceError("holds a number that is no chance", field=name)
    if np.abs(table.sum(axis=-1) - 1).max() > OFF_BY:
        raise SourceError("has a line of chances that do not sum to one", field=name)
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
