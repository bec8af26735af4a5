"""Draw synthesis-choice.svg: how far every two columns are from the truth, for three synthesizers, on a simulated census.

.venv/bin/python docs/howto/draw_synthesis.py
"""

from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np

from reticent.lab.judge.distances import distance, distances
from reticent.lab.run.figures import ORANGE, titled
from reticent.lab.trials.fitting import synthesize
from reticent.lab.trials.masks import mask
from reticent.lab.trials.tables import cells_of, trial
from reticent.report.charts import converter
from reticent.report.marks import IN_ORDER

METHODS = (("independent", "available"), ("mst", "holes"), ("aim", "holes"))
WORDS = (
    "20,000 simulated people, MCAR 20 %, epsilon 1, delta 0.000001, one run each. Colour: 2-way distance of two columns to "
    "the truth; white is none. Above each square: its mean."
)


def squares() -> list[dict[str, object]]:
    """A cell for every two columns and each method."""
    census, lost = trial("census"), mask("census", "MCAR", 0.2)
    domain, truth = census.domain(), np.ascontiguousarray(census.cells().T)
    rows: list[dict[str, object]] = []
    for method, strategy in METHODS:
        rng = np.random.default_rng(1)
        made = synthesize(census, lost, method=method, strategy=strategy, epsilon=Fraction(1), rng=rng)
        cells = cells_of(made, domain)
        mean = distances(census.cells(), cells, domain, ways=(2,))[2]
        lines = np.ascontiguousarray(cells.T)
        for a, b in combinations(range(len(domain.axes)), 2):
            value = distance(truth[[a, b]], lines[[a, b]], domain.sizes((a, b)))
            panel = f"{method}, {strategy}: {mean:.3f}"
            for x, y in ((a, b), (b, a)):
                shown = {"x": domain.columns[x], "y": domain.columns[y], "value": value, "panel": panel}
                rows.append({**shown, "place": len(rows)})
    return rows


def chart() -> dict[str, object]:
    rows = squares()
    side = {"type": "nominal", "sort": list(trial("census").columns), "title": None}
    scale = {"type": "sqrt", "range": ["#FFFFFF", ORANGE], "domainMin": 0, "interpolate": "rgb"}
    legend = {"title": None, "type": "symbol", "format": ".2~g"}
    encoding = {
        "x": {"field": "x", **side, "axis": {"labelAngle": -50}},
        "y": {"field": "y", **side},
        "color": {"field": "value", "type": "quantitative", "scale": scale, "legend": legend},
    }
    header = {"title": None, "labelAnchor": "start", "labelFontWeight": "bold", "labelFontSize": 13}
    spec = {
        "data": {"values": rows},
        "facet": {"field": "panel", "type": "nominal", "sort": IN_ORDER, "header": header},
        "columns": 3,
        "spec": {"width": 190, "height": 190, "mark": "rect", "encoding": encoding},
    }
    return titled(spec, "What each synthesizer knows of pairs", WORDS)


if __name__ == "__main__":
    drawn = converter().vegalite_to_svg(chart(), allowed_base_urls=[])
    Path(__file__).with_name("synthesis-choice.svg").write_text(drawn, encoding="utf-8")
