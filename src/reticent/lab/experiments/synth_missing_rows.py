"""The rows of `synth-missing`: a point of a figure, what was measured there, and what others measured there."""

from dataclasses import astuple, dataclass

import numpy as np
import pyarrow as pa

from reticent.lab.experiment import Outcome, Row
from reticent.lab.summary import groups

# Measured with the public code of the paper, by its own masks, bins and decoding, at epsilon 1 and MCAR 20 %: distances of
# 1- and 2-way tables. The last two lines are of our own making, on its masks. They are no numbers of ours on these tables.
PRINTED: dict[tuple[str, str], dict[str, tuple[float, float]]] = {
    ("privbayes", "no-missing"): {
        "adult": (0.069, 0.145),
        "bank": (0.030, 0.063),
        "national": (0.065, 0.141),
        "br2000": (0.047, 0.089),
    },
    ("privbayes", "complete"): {
        "adult": (0.266, 0.443),
        "bank": (0.226, 0.379),
        "national": (0.434, 0.654),
        "br2000": (0.116, 0.208),
    },
    ("privbayes", "available"): {
        "adult": (0.097, 0.187),
        "bank": (0.068, 0.122),
        "national": (0.092, 0.180),
        "br2000": (0.069, 0.123),
    },
    ("independent", "available"): {
        "adult": (0.010, 0.083),
        "bank": (0.006, 0.043),
        "national": (0.026, 0.091),
        "br2000": (0.005, 0.053),
    },
    ("bootstrap", "none"): {
        "adult": (0.004, 0.011),
        "bank": (0.003, 0.007),
        "national": (0.005, 0.013),
        "br2000": (0.004, 0.008),
    },
}
MEASURED = ("complete", "tvd1", "tvd2", "tvd3", "f1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One method and strategy on one table with one mask, at one epsilon. Numbers are kept as they are written."""

    dataset: str
    mask: str
    rate: str
    method: str
    strategy: str
    epsilon: str

    def __str__(self) -> str:
        return "/".join(astuple(self))

    @classmethod
    def read(cls, text: str) -> "Point":
        return cls(**dict(zip(cls.__slots__, text.split("/"), strict=True)))

    def outcome(self, name: str, value: float, seconds: float) -> Outcome:
        """What was measured here. A distance of 0 is the truth; so it is written as an estimate of 0."""
        return Outcome(
            method=self.method,
            query=f"{name}/{self}",
            epsilon=None if self.epsilon == "none" else float(self.epsilon),
            truth=0.0,
            estimate=value,
            seconds=seconds,
        )

    def row(self) -> Row:
        """The public part of a row: where it stands."""
        return {
            "dataset": self.dataset,
            "mask": self.mask,
            "rate": float(self.rate),
            "method": self.method,
            "strategy": self.strategy,
            "epsilon": None if self.epsilon == "none" else float(self.epsilon),
        }


def told(outcomes: pa.Table) -> list[Row]:
    """A row for every point: means over the repeats, with the standard deviation of the 2-way distance."""
    found: dict[Point, Row] = {}
    for key, lines in groups(outcomes):
        name, _, text = key["query"].partition("/")
        point = Point.read(text)
        row = found.setdefault(point, {**point.row(), **dict.fromkeys(MEASURED)})
        row[name] = float(np.mean(lines["estimate"]))
        if name == "tvd2":
            row["runs"], row["seconds"] = len(lines["estimate"]), float(np.mean(lines["seconds"]))
            row["tvd2_sd"] = float(np.std(lines["estimate"], ddof=1)) if row["runs"] > 1 else None
    return [{**row, **_printed(point)} for point, row in found.items()]


def _printed(point: Point) -> Row:
    """What was measured with the paper's public code at this point, where it was."""
    known = PRINTED.get((point.method, point.strategy), {}).get(point.dataset)
    here = (point.mask, point.rate) == ("MCAR", "0.2") and point.epsilon in ("1", "none")
    return {} if known is None or not here else {"printed_tvd1": known[0], "printed_tvd2": known[1]}
