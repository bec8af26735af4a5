"""Broken texts in SPSS, Stata and SAS files: missing one by one, and nobody else's (T34)."""

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reticent.engine.sources import arrow as statistical
from reticent.engine.sources.open import open_frame, open_path
from reticent.engine.wants import Rows, Sum
from reticent.errors import EngineError, SourceError
from reticent.schema.bind import Is
from reticent.schema.codebook import schema_from
from reticent.schema.columns import Identifier
from tests.badinput.house import House
from tests.engine.carriers import readings
from tests.engine.opening import open_any

pytestmark = pytest.mark.usefixtures("every_engine")

KINDS = ("plain.sav", "rows.sav", "packed.zsav", "new.dta", "old.dta", "rows.xpt", "rows.por")
WIDTH = 8
BROKEN = b"Q\xff\xc3Q\x80QQQ"


def place(number: int) -> str:
    """Eight letters that stand for the text of a row until its bytes are put there."""
    return f"QZ{number:06d}"


def put(path: Path, cells: Sequence[bytes]) -> Path:
    """A file of this kind with one text, given by its bytes, and one number in every row."""
    frame = pd.DataFrame(
        {"town": [place(i) for i in range(len(cells))], "x": [float(i) for i in range(len(cells))]}
    )
    write = {".sav": pyreadstat.write_sav, ".zsav": pyreadstat.write_sav, ".dta": pyreadstat.write_dta}
    write |= {".xpt": pyreadstat.write_xport, ".por": pyreadstat.write_por}
    options = {
        "rows.sav": {"row_compress": True},
        "packed.zsav": {"compress": True},
        "old.dta": {"version": 12},
    }
    write[path.suffix](frame, str(path), **options.get(path.name, {}))
    data = path.read_bytes()
    pad = b"\0" if path.suffix == ".dta" else b" "
    spoil = packed if path.suffix == ".zsav" else exchanged
    path.write_bytes(spoil(data, {place(i).encode(): cell.ljust(WIDTH, pad) for i, cell in enumerate(cells)}))
    return path


def exchanged(data: bytes, cells: dict[bytes, bytes]) -> bytes:
    for old, new in cells.items():
        assert data.count(old) == 1 and len(old) == len(new)
        data = data.replace(old, new)
    return data


def packed(data: bytes, cells: dict[bytes, bytes]) -> bytes:
    """The same for a compressed SPSS file of one block: its header, the block, and the table of blocks at the end."""
    start = next(i for i in range(len(data) - 24) if struct.unpack("<q", data[i : i + 8])[0] == i)
    at, trailer, size = struct.unpack("<3q", data[start : start + 24])
    table = bytearray(data[trailer : trailer + size])
    block = zlib.compress(exchanged(zlib.decompress(data[at + 24 : trailer]), cells), 0)
    struct.pack_into("<i", table, 24 + 20, len(block))
    head = struct.pack("<3q", at, at + 24 + len(block), size)
    return data[:at] + head + block + bytes(table)


def texts(path: Path) -> list[str | None]:
    """The texts as the engine gets them."""
    schema = pa.schema([("TOWN" if path.suffix == ".por" else "town", pa.string())])
    return [cell for batch in statistical.batches(path, schema) for cell in batch.column(0).to_pylist()]


def meant(cell: bytes, path: Path) -> str | None:
    """What a cell says on its own. Blanks at the end are padding, but in Stata's files."""
    if path.suffix == ".por":
        plain = cell.isascii() and cell.decode("ascii").isprintable()
        return cell.decode("ascii").rstrip(" ") if plain else None
    try:
        text = cell.decode("cp1252" if path.name == "old.dta" else "utf-8")
        return text if path.suffix == ".dta" else text.rstrip(" ")
    except UnicodeDecodeError:
        return None


def naive(path: Path) -> list[str | None]:
    """The reader left to itself: it decodes as it goes, and stops at the first text it cannot."""
    frame, _ = getattr(pyreadstat, statistical.READERS[path.suffix])(str(path))
    return list(frame.iloc[:, 0])


# covers T34 B064
@pytest.mark.parametrize("kind", KINDS)
def test_a_broken_text_is_missing_and_the_others_stay(kind, tmp_path):
    """The same rows with one cell broken, wherever it stands; and the reader left to itself loses them all."""
    good = [b"Leeds", b"York", b"Hull", b"Bath"]
    assert texts(put(tmp_path / kind, good)) == [cell.decode() for cell in good]
    for row in range(4):
        cells = [BROKEN if i == row else cell for i, cell in enumerate(good)]
        path = put(tmp_path / kind, cells)
        wanted = [None if i == row else cell.decode() for i, cell in enumerate(good)]
        if kind == "old.dta":  # a page of single bytes: these are characters there
            wanted[row] = BROKEN.decode("cp1252")
        assert texts(path) == wanted
        if kind.endswith(("sav", "new.dta", "xpt")):
            with pytest.raises((pyreadstat.ReadstatError, UnicodeDecodeError)):
                naive(path)


# covers T34
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, deadline=None)
@given(cells=st.lists(st.binary(max_size=WIDTH), min_size=1, max_size=6))
@example(cells=[b"\xff" * 8, b"caf\xc3\xa9", b"caf\xe9", b"\xc3\xa9" * 4, b"Leeds \xc3", b"\xed\xa0\x80"])
def test_every_text_is_read_on_its_own(tmp_path_factory, kind, cells):
    """Any bytes but those that end a text or a line: each cell says what it says alone, whoever stands beside it."""
    cells = [
        bytes(b for b in cell if b not in b"\0\n\r" and (b >= 32 or kind != "rows.por")) for cell in cells
    ]
    path = put(tmp_path_factory.mktemp("cells") / kind, cells)
    assert texts(path) == [meant(cell, path) for cell in cells]


SCHEMA = {
    "survey": {"name": "towns", "unit": "row"},
    "columns": {
        "town": {"kind": "categorical", "levels": ["Leeds", "Málaga"]},
        "x": {"kind": "integer", "bounds": [0, 9]},
    },
}


# covers T34
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("old.dta", "rows.por")])
def test_formats_count_alike(kind, tmp_path):
    """Answered and missing through the engine, as in a CSV file with the same bytes."""
    cells = [b"Leeds", BROKEN, "Málaga".encode(), b"Hull", b"Leeds\xff"]
    lines = b"".join(cell + b",%d\n" % i for i, cell in enumerate(cells))
    (tmp_path / "rows.csv").write_bytes(b"town,x\n" + lines)
    schema = schema_from(SCHEMA)
    wants = [Sum(rows=Rows(where=Is("town", word))) for word in ("answered", "missing")]
    found = []
    for path in (tmp_path / "rows.csv", put(tmp_path / kind, cells)):
        engine = open_any(open_path(str(path)))
        engine.check(schema)
        sums = engine.tally(schema, wants).statistics
        found.append([sums[want] for want in wants])
        engine.close()
    assert found == [[2, 3], [2, 3]]


# covers T34
@pytest.mark.parametrize("kind", ["plain.sav", "packed.zsav", "new.dta", "rows.xpt"])
def test_a_release_does_not_notice_a_broken_cell(kind, tmp_path):
    """Charged, published, and of the same shape as without it."""
    codebook = '[survey]\nname = "town-2026"\nunit = "row"\n[columns.town]\nkind = "categorical"\nlevels = ["Leeds"]\n'
    plan = (
        f'[survey]\nsource = "{kind}"\ncodebook = "town.codebook.toml"\nledger = "town.ledger.db"\n[release]\nid = "town-1"\n'
        '[protect]\nchange = "one respondent added or removed"\nepsilon = "1"\n'
        '[[statistic]]\nname = "Leeds"\nquery = { count = "*", where = "town = \'Leeds\'" }\nepsilon = "1"\n'
    )
    shapes = []
    for place_, cell in (("good", b"Leeds"), ("bad", BROKEN)):
        (tmp_path / place_).mkdir()
        house = House(tmp_path / place_, plan=plan, codebook=codebook)
        put(house.folder / kind, [b"Leeds", cell, b"Hull"])
        seen = house.release()
        assert seen.status == 0 and house.spent == 1, seen
        shapes.append(
            (seen.err, {name: text for name, text in house.made().items() if name.endswith(".json")})
        )
    assert shapes[0] == shapes[1]


def test_names_of_columns_are_read_in_the_code_page(tmp_path):
    """Rows are read as bytes, and so are the names; the codebook knows them as the header has them."""
    path = tmp_path / "rows.sav"
    pyreadstat.write_sav(pd.DataFrame({"größe": [1.0, 2.0], "città": ["Málaga", "Leeds"]}), str(path))
    schema = pa.schema([("città", pa.string()), ("größe", pa.float64())])
    (batch,) = statistical.batches(path, schema)
    assert batch.to_pydict() == {"città": ["Málaga", "Leeds"], "größe": [1.0, 2.0]}


# covers T34
def test_a_declared_code_page_is_used_and_an_unknown_one_refused_from_the_header(tmp_path):
    path = put(tmp_path / "plain.sav", [b"caf\x82", b"caf\xc3\xa9"])
    data = path.read_bytes()
    path.write_bytes(data.replace(b"UTF-8", b"CP437"))
    assert texts(path) == ["café", "caf├⌐"]
    meta = statistical._header(path)
    meta.file_encoding = "UTF-16"
    with pytest.raises(SourceError, match="code page"):
        statistical._code_page(path, meta)


# covers T34
def test_texts_without_a_length_are_refused_from_the_header(tmp_path):
    """Stata keeps them apart, and the reader decodes them whatever it is told: one broken one would stop the release."""
    path = tmp_path / "long.dta"
    pyreadstat.write_dta(pd.DataFrame({"town": ["Q" * 3000, "Leeds"], "x": [1.0, 2.0]}), str(path))
    engine = open_any(open_path(str(path)))
    with pytest.raises(SourceError, match="has a type that no column can have"):
        engine.check(schema_from(SCHEMA))
    engine.close()
    path.write_bytes(path.read_bytes().replace(b"Q" * 8, b"\xff" * 8))
    with pytest.raises(UnicodeDecodeError):  # the naive twin, told to read bytes
        pyreadstat.read_dta(str(path), encoding=statistical.BYTES)


# covers T34 B080
@pytest.mark.parametrize("kind", ["plain.sav", "packed.zsav", "new.dta"])
def test_a_file_that_is_cut_fails_with_one_text(kind, tmp_path):
    """After the header, wherever it is cut: nothing of the file, and nothing of the reader."""
    path = put(tmp_path / kind, [b"Leeds", BROKEN, b"Zebedee"] * 60)
    data = path.read_bytes()
    found = set()
    for share in (0.5, 0.6, 0.7):
        path.write_bytes(data[: int(len(data) * share)])
        try:
            texts(path)
        except (EngineError, SourceError) as problem:
            found.add(f"{problem.status} {problem}")
    assert found <= {
        "4 source: the file cannot be read to its end; save it anew",
        f"2 source: cannot be read as a {path.suffix} file",
    }
    assert found


NUMBERS = [17.0, 0.5, 2.5, -3.0, 99.0, 0.0, None, 12.25]
TEXTS = ["17", "017", "17.0", "1E5", "true", "yes", None, "2026-01"]
MEANT = {
    "score": {
        "kind": "decimal",
        "bounds": [-10, 50],
        "grid": "1",
        "source": "number",
        "missing_codes": ["99"],
    },
    "band": {"kind": "categorical", "levels": ["17", "0.5", "2.50"], "source": "number"},
    "word": {"kind": "categorical", "levels": ["17", "1E5", "TRUE", "yes"], "source": "word"},
    "spelled": {"kind": "categorical", "levels": ["17", "017"], "text": True, "source": "word"},
    "whole": {"kind": "integer", "bounds": [0, 20], "source": "word"},
}


# covers T31 T32
@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_means_in_a_statistical_file_what_it_means_in_a_frame(kind, tmp_path):
    """Numbers at half steps, missing codes, levels by number and by spelling, identifiers: the same codes and labels."""
    frame = pd.DataFrame({"number": NUMBERS, "word": [text or "" for text in TEXTS]})
    write = {".sav": pyreadstat.write_sav, ".zsav": pyreadstat.write_sav, ".dta": pyreadstat.write_dta}
    write |= {".xpt": pyreadstat.write_xport, ".por": pyreadstat.write_por}
    options = {
        "rows.sav": {"row_compress": True},
        "packed.zsav": {"compress": True},
        "old.dta": {"version": 12},
    }
    path = tmp_path / kind
    write[path.suffix](frame, str(path), **options.get(kind, {}))
    table = pa.table({"number": pa.array(NUMBERS, pa.float64()), "word": pa.array(TEXTS, pa.string())})
    known = [
        schema_from({"survey": {"name": "s", "unit": "row"}, "columns": {n: c}}).coded[n]
        for n, c in MEANT.items()
    ]
    columns = [*known, Identifier(name="i", source="number"), Identifier(name="i", source="word")]
    for column in columns:
        (here,) = readings(open_path(str(path)), column, [header(path, column.source)]).values()
        (there,) = readings(open_frame(table), column, [column.source]).values()
        assert here == there and len(set(there)) > 1, column


def header(path: Path, name: str) -> str:
    """SPSS portable files write names in capitals."""
    return name.upper() if path.suffix == ".por" else name
