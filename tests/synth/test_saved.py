"""A saved network comes back as it was, and one that was changed does not come back at all."""

import hashlib
import io
import os
import tomllib
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from reticent.errors import PlanError, SourceError
from reticent.privacy.claim import Change, Claim
from reticent.schema.codebook import schema_from
from reticent.synth import saved
from reticent.synth.base import Conditional
from reticent.synth.domain import domain_of
from reticent.synth.network import Network
from reticent.synth.saved import load, save
from reticent.synth.written import digest_of, toml_of

COLUMNS = {
    "age": {"kind": "integer", "bounds": [0, 99]},
    "sex": {"kind": "categorical", "levels": ["m", 'the "f" \\ word']},
    "wage": {"kind": "integer", "bounds": [0, 5000], "universe": "age >= 15"},
}
CLAIM = Claim(
    measure="approximate",
    epsilon=Fraction(1, 2),
    delta=Fraction(1, 10**6),
    change=Change.REPLACE,
    rests_on=(("Bun and Steinke 2016", "proofs/a.md"), ("AIM", "proofs/b.md")),
)


def schema_with(**changes):
    columns = {name: {**column, **changes.get(name, {})} for name, column in COLUMNS.items()}
    return schema_from({"survey": {"name": "s", "unit": "row"}, "columns": columns})


@pytest.fixture
def network():
    domain = domain_of(schema_with())
    rng = np.random.default_rng(0)
    a, s, w = domain.shape
    steps = (
        Conditional(place=1, given=(), table=rng.dirichlet(np.ones(s))),
        Conditional(place=2, given=(1,), table=rng.dirichlet(np.ones(w), size=s)),
        Conditional(place=0, given=(1, 2), table=rng.dirichlet(np.ones(a), size=(s, w))),
    )
    return Network(domain=domain, steps=steps, total=1234.5, claim=CLAIM)


@pytest.fixture
def folder(network, tmp_path):
    save(network, tmp_path / "model")
    return tmp_path / "model"


def test_what_is_saved_comes_back(network, folder):
    back = load(folder, schema_with())
    assert back.domain == network.domain and back.claim == CLAIM and back.total == 1234.5
    for a, b in zip(back.steps, network.steps, strict=True):
        assert (a.place, a.given) == (b.place, b.given)
        assert (a.table == b.table).all()


@pytest.mark.parametrize(
    "claim",
    [
        Claim(measure="pure", epsilon=Fraction(1, 3)),
        Claim(measure="zcdp", rho=Fraction(1, 8)),
        Claim(measure="observed"),
    ],
)
def test_every_kind_of_claim_comes_back(network, tmp_path, claim):
    save(replace(network, claim=claim), tmp_path / "m")
    assert load(tmp_path / "m", schema_with()).claim == claim


def test_a_claim_in_ideal_reals_does_not_come_back(network, tmp_path):
    """No model is learned so, and a file that says it was is not one of ours."""
    save(replace(network, claim=replace(CLAIM, arithmetic="ideal reals")), tmp_path / "m")
    with pytest.raises(SourceError, match="no claim that could have been made"):
        load(tmp_path / "m", schema_with())


def test_files_hold_no_objects(folder):
    """Arrays of doubles and TOML: no pickle's first bytes, nothing else in the folder."""
    assert sorted(path.name for path in folder.iterdir()) == [
        "model.toml",
        *(f"step-{i:03d}.npy" for i in range(3)),
    ]
    for path in folder.glob("*.npy"):
        assert np.load(path, allow_pickle=False).dtype == np.float64
    tomllib.loads((folder / "model.toml").read_text())


def test_nothing_is_overwritten(network, folder):
    with pytest.raises(PlanError, match="never overwritten"):
        save(network, folder)


def test_half_a_model_is_none(network, tmp_path):
    """Without the TOML, which is written last, there is nothing to load."""
    save(network, tmp_path / "m")
    (tmp_path / "m" / "model.toml").unlink()
    with pytest.raises(SourceError, match="cannot be opened"):
        load(tmp_path / "m", schema_with())


def test_every_flipped_byte_of_an_array_is_noticed(folder):
    path = folder / "step-001.npy"
    data = path.read_bytes()
    for place in [0, 8, 64, *range(128, len(data), 37)]:
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(SourceError, match="step-001"):
            load(folder, schema_with())


def retold(folder, change):
    """The naive tamperer: changes the words, and leaves the digest."""
    path = folder / "model.toml"
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(*change, 1))


@pytest.mark.parametrize(
    "change",
    [
        ('epsilon = "0.5"', 'epsilon = "0.1"'),
        ('total = "1234.5"', 'total = "99.0"'),
        ("replaced", "added or removed"),
        ('column = "sex"', 'column = "age"'),
        ("answers = 16", "answers = 17"),
    ],
)
def test_changed_words_are_noticed(folder, change):
    retold(folder, change)
    with pytest.raises(SourceError):
        load(folder, schema_with())


def rewritten(folder, change):
    """A careful tamperer: changes what is told and writes a digest that fits."""
    path = folder / "model.toml"
    told = tomllib.loads(path.read_text())
    del told["sha256"]
    change(told)
    path.write_text(toml_of({"sha256": digest_of(told), **told}))


CAREFUL = {
    "unknown column": lambda t: t["axes"][0].update(column="salary"),
    "axis twice": lambda t: t["axes"].append(dict(t["axes"][0])),
    "no column": lambda t: t.update(axes=[], steps=[]),
    "step missing": lambda t: t["steps"].pop(),
    "step twice": lambda t: t["steps"].append(dict(t["steps"][0])),
    "given later": lambda t: t["steps"].reverse(),
    "given twice": lambda t: t["steps"][1].update(given=["sex", "sex"]),
    "given nowhere": lambda t: t["steps"][1].update(given=["salary"]),
    "bins elsewhere": lambda t: t["axes"][0]["starts"].__setitem__(0, -1),
    "bins falling": lambda t: t["axes"][0]["starts"].__setitem__(3, 0),
    "other cells": lambda t: t["axes"][1].update(answers=3),
    "universe gone": lambda t: t["axes"][2].update(unasked=False),
    "other levels": lambda t: t["axes"][1].update(words=["f", "m"]),
    "no number": lambda t: t.update(total="many"),
    "not finite": lambda t: t.update(total="nan"),
    "a number of a gigabyte": lambda t: t["claim"].update(epsilon="1e999999999"),
    "no amount": lambda t: t["claim"].update(epsilon="0"),
    "amount by nought": lambda t: t["claim"].update(epsilon="1/0"),
    "delta of a pure claim": lambda t: t["claim"].update(measure="pure"),
    "no change": lambda t: t["claim"].update(change="nobody"),
    "no measure": lambda t: t["claim"].update(measure="perfect"),
    "other format": lambda t: t.update(format=2),
}


@pytest.mark.parametrize("name", CAREFUL)
def test_what_cannot_be_a_model_is_refused(folder, name):
    rewritten(folder, CAREFUL[name])
    with pytest.raises(SourceError):
        load(folder, schema_with())


def test_the_careful_tamperer_can_write_what_loads(folder):
    """Or the refusals above would be those of a wrong digest."""
    rewritten(folder, lambda told: told.update(total="7.0"))
    assert load(folder, schema_with()).total == 7.0


def swapped(folder, data):
    """Another array under the first name, with its own right digest."""
    (folder / "step-000.npy").write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    rewritten(folder, lambda told: told["steps"][0].update(sha256=digest))


def as_file(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


class Trap:
    """Leaves a mark if it is ever unpickled."""

    def __reduce__(self):
        return os.mkdir, ("sprung",)


ARRAYS = {
    "wrong shape": np.full(4, 0.25),
    "wrong sum": np.array([0.5, 0.4, 0.0]),
    "negative": np.array([1.5, -0.5, 0.0]),
    "not a number": np.array([np.nan, 0.5, 0.5]),
    "infinite": np.array([np.inf, 0.5, 0.5]),
    "singles": np.array([0.5, 0.5, 0.0], dtype=np.float32),
    "integers": np.array([1, 0, 0]),
    "texts": np.array(["a", "b", "c"]),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_are_no_chances_are_refused(folder, name):
    swapped(folder, as_file(ARRAYS[name]))
    with pytest.raises(SourceError, match="step-000"):
        load(folder, schema_with())


def test_a_pickle_is_refused_and_not_run(folder, tmp_path, monkeypatch):
    """The naive loader runs it."""
    monkeypatch.chdir(tmp_path)
    data = as_file(np.array([Trap(), 1, 2], dtype=object), allow_pickle=True)
    swapped(folder, data)
    with pytest.raises(SourceError, match="no array of doubles"):
        load(folder, schema_with())
    assert not (tmp_path / "sprung").exists()
    np.load(io.BytesIO(data), allow_pickle=True)
    assert (tmp_path / "sprung").exists()


def headed(text):
    """An array file with any words for a header, and the three doubles that are wanted."""
    head = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + np.array([0.5, 0.5, 0]).tobytes()


def header(descr="'<f8'", shape="(3,)", order="False"):
    return headed(f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}")


HOSTILE = {
    "room for petabytes": header(shape=f"({10**15},)"),
    "room for more than a word can say": header(shape=f"({10**30},)"),
    "texts of a gigabyte": header(descr="'|S1000000000'", shape="(1000,)"),
    "columns first": header(shape="(3,)", order="True"),
    "more behind": header() + b"more",
    "less behind": header()[:-1],
    "deeper than the parser": headed("-" * 3000 + "1"),
    "an archive": b"PK\x03\x04" + b"\0" * 60,
    "nothing": b"",
}


def naive_loader(data):
    """The naive twin: believes the header."""
    return np.load(io.BytesIO(data), allow_pickle=False)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_header_is_not_believed(folder, name):
    """No header makes room, opens an archive, or raises anything but a refusal."""
    swapped(folder, HOSTILE[name])
    with pytest.raises(SourceError, match="no array of doubles"):
        load(folder, schema_with())


def test_the_naive_loader_believes_headers():
    assert naive_loader(header()).tolist() == [0.5, 0.5, 0]
    for name, error in {"room for petabytes": MemoryError, "deeper than the parser": RecursionError}.items():
        with pytest.raises(error):
            naive_loader(HOSTILE[name])


def test_a_step_cannot_ask_for_more_than_a_step_may_hold(folder, monkeypatch):
    """Sizes follow from names in the file, so a file could allow itself any size."""
    monkeypatch.setattr(saved, "MOST_CELLS", 50)
    with pytest.raises(SourceError, match="more than 50 cells"):
        load(folder, schema_with())


def test_columns_are_in_order_before_an_array_is_opened(folder, monkeypatch):
    rewritten(folder, lambda told: told["steps"][1].update(given=["sex"] * 60))
    monkeypatch.setattr(saved, "_read", lambda path, most: pytest.fail("an array was opened"))
    with pytest.raises(SourceError, match="before one it is given"):
        load(folder, schema_with())


def test_large_or_missing_files_are_refused_unread(folder):
    (folder / "step-002.npy").write_bytes(b"\0" * 10**6)
    with pytest.raises(SourceError, match="larger than"):
        load(folder, schema_with())
    (folder / "step-002.npy").unlink()
    with pytest.raises(SourceError, match="is missing"):
        load(folder, schema_with())
    (folder / "step-002.npy").mkdir()
    with pytest.raises(SourceError, match="is missing"):
        load(folder, schema_with())


@pytest.mark.parametrize(
    "changes",
    [
        {"age": {"bounds": [0, 100]}},
        {"sex": {"levels": ["f", "m"]}},
        {"sex": {"levels": ["m", "f", "x"]}},
        {"wage": {"universe": ""}},
    ],
)
def test_another_codebook_is_refused(folder, changes):
    with pytest.raises(SourceError):
        load(folder, schema_with(**changes))
