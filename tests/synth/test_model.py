"""The door for a model that is no network: learned from batches of rows, drawn, charged, saved and loaded like others."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent import Synthesizer
from reticent.errors import SourceError
from reticent.privacy.claim import Claim
from reticent.privacy.ledger import Ledger
from reticent.schema import Schema
from reticent.synth import registry, saved
from reticent.synth.base import FitTask, MissingMethod, Spend
from reticent.synth.domain import Domain, domain_of
from reticent.synth.network import Network
from reticent.synth.saved import load, save
from reticent.synth.spending import claim_of
from reticent.synth.written import MODEL
from tests.noise.seeded import SeededBits
from tests.release.synthetic import BOOK, rows
from tests.tables import ADD

KIND = "columns-by-themselves"


@dataclass(frozen=True)
class Learned:
    """For every column the chances of its answers. No conditional, no array on disk."""

    domain: Domain
    chances: tuple[tuple[float, ...], ...]
    total: float
    claim: Claim

    def draw(self, rows: int, bits: Any) -> np.ndarray:
        below = [np.array([bits.take(53) * 2.0**-53 for _ in range(rows)]) for _ in self.chances]
        cells = [np.searchsorted(np.cumsum(p)[:-1], u) for p, u in zip(self.chances, below, strict=True)]
        return np.stack(cells, axis=1).astype(np.int32)

    def files(self) -> dict[str, bytes]:
        lines = [
            f'kind = "{KIND}"',
            f"epsilon = {json.dumps(str(self.claim.epsilon))}",
            f"total = {self.total!r}",
        ]
        chances = {
            f"{name}.json": json.dumps(p).encode()
            for name, p in zip(self.domain.columns, self.chances, strict=True)
        }
        return {MODEL: "\n".join(lines).encode(), **chances}


def read(folder: Path, data: Mapping[str, Any], schema: Schema) -> Learned:
    domain = domain_of(schema, [name for name in schema.coded if (folder / f"{name}.json").exists()])
    chances = tuple(tuple(json.loads((folder / f"{name}.json").read_text())) for name in domain.columns)
    claim = claim_of(
        Spend(epsilon=Fraction(data["epsilon"])), ("toy", "proofs/synth/marginals/independent.md")
    )
    return Learned(domain, chances, data["total"], claim)


class Taught:
    """Counts as a neural method would step: batch by batch, and noise at the end."""

    name = "taught"

    def check(self, domain: Domain, holes: MissingMethod, spend: Spend) -> None:
        """Anything goes."""

    def claim(self, domain: Domain, holes: MissingMethod, spend: Spend) -> Claim:
        return claim_of(spend, ("toy", "proofs/synth/marginals/independent.md"))

    def rounds(self, domain: Domain) -> int:
        return 1

    def fit(self, task: FitTask) -> Learned:
        domain, noise, spend = task.domain, task.noise, task.spend
        sizes = [axis.size for axis in domain.axes]
        tables = [np.zeros(size, np.int64) for size in sizes]
        for batch in task.counts.batches(64, noise.bits):
            for table, line, size in zip(tables, batch, sizes, strict=True):
                table += np.bincount(line, minlength=size)
        flat = np.concatenate(tables).tolist()
        noisy = noise.laplace_many(flat, sensitivity=2 * len(sizes), epsilon=spend.epsilon)
        chances = []
        for axis, cells in zip(domain.axes, np.split(np.array(noisy), np.cumsum(sizes)[:-1]), strict=True):
            positive = np.maximum(cells[: axis.answers], 0) + 1.0
            chances.append(tuple((positive / positive.sum()).tolist()))
        task.step("columns")
        return Learned(
            domain, tuple(chances), float(sum(noisy)) / len(sizes), self.claim(domain, task.missing, spend)
        )


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two lines, as a new method would have them."""
    monkeypatch.setitem(registry.KNOWN, "taught", Taught())
    monkeypatch.setitem(saved.READERS, KIND, read)


def test_a_learned_model_is_fitted_charged_drawn_saved_and_loaded(tmp_path: Path):
    """By the same doors as a network; what comes back draws the same rows under the same claim."""
    ledger = Ledger.create(tmp_path / "a.db", dataset="tiny", change=ADD, unit="epsilon", budget="30")
    made = Synthesizer(method="taught", epsilon="20", codebook=BOOK, ledger=ledger).fit(rows())
    assert str(made.claim_).startswith("20-DP") and made.sample(50).num_rows == 50
    assert ledger.spent == 20 and made.receipt_ is not None
    model = made.model_
    assert not isinstance(model, Network)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model", model.domain.schema)
    assert again.claim == model.claim and again.total == model.total
    assert (again.draw(40, SeededBits(1)) == model.draw(40, SeededBits(1))).all()
    assert Synthesizer.load(tmp_path / "model", codebook=BOOK).sample(5).num_rows == 5


def test_a_kind_that_nobody_reads_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Whatever stands there is not run, nor taken for a network."""
    save(Synthesizer(method="taught", epsilon="20", codebook=BOOK).fit(rows()).model_, tmp_path / "model")
    monkeypatch.delitem(saved.READERS, KIND)
    with pytest.raises(SourceError, match="known here; known: network"):
        Synthesizer.load(tmp_path / "model", codebook=BOOK)
    (tmp_path / "model" / MODEL).write_text("kind = [1]\n")
    with pytest.raises(SourceError, match="known here"):
        Synthesizer.load(tmp_path / "model", codebook=BOOK)
