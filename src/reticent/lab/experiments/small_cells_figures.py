"""Error against epsilon, the scatter with and without suppression, and the log-log envelope, as the paper draws them."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.lab import atlas as lab
from reticent.lab.cellmethods import LEAST
from reticent.lab.experiment import OURS
from reticent.lab.figures import ORANGE, titled
from reticent.lab.summary import groups
from reticent.report.marks import BLUE, GREY, Spec
from reticent.smallcells.diagnostics import log_envelope
from reticent.smallcells.figures import draw_envelope, draw_scatters
from reticent.smallcells.suppress import FewEvents, Scatter, scatters

COLOURS = {
    "mos": GREY,
    "mos by state": "#999999",
    "smooth": "#56B4E9",
    OURS: BLUE,
    "pooled": "#CC79A7",
    "theil-sen": ORANGE,
}
OWN, TRUE = "beside its own people", "beside the truth"
PANELS = {OWN: "Noise alone", TRUE: "Sampling and noise, kept within 0 and 1"}
DOTS = 1_500  # in the envelope


def figures(outcomes: pa.Table, *, seed: int, tracts: int) -> dict[str, Spec]:
    """The three charts by the names of their files."""
    made = lab.atlas(tracts, seed=seed)
    said = f"{len(made.tracts.people):,} simulated tracts with {int(made.tracts.people.sum()):,} people."
    runs = len(outcomes["run"].unique())
    everything, kept = _scatters(made)
    return {
        "small-cells-error": titled(
            _errors(outcomes),
            "Error of a tract's prediction against epsilon",
            f"{said} Root mean square over tracts with at least {LEAST} people and {runs} runs; both axes are "
            "logarithmic. Dashed: sampling error without any noise. Epsilon of mos and smooth is that of the "
            "estimates, of the others that of the whole table; mos promises nothing.",
        ),
        "small-cells-scatter": titled(
            draw_scatters(everything, kept, x="share of single parents", y="rate of births"),
            "Births against single parents, with and without suppression",
            f"{said} Means within twenty bins of tracts, without noise. Suppression withholds tracts with 1 to 4 "
            f"births and keeps those with none: the slope over tracts is {kept.slope:.3f} instead of "
            f"{everything.slope:.3f}. No epsilon, one atlas.",
            width=70,
        ),
        "small-cells-envelope": titled(
            _envelope(made),
            "Local sensitivity of the prediction at 0.25 and the envelope chi / N",
            f"{said} {DOTS:,} of them are drawn, taken evenly along their size, and the one on the envelope. "
            "Simulated: of real people neither could be shown.",
            width=70,
        ),
    }


def _errors(outcomes: pa.Table) -> Spec:
    """A line for each method in two panels, and the sampling error where there is no epsilon."""
    rows: list[dict[str, Any]] = []
    alone = 0.0
    for key, lines in groups(outcomes.filter(outcomes["method"].is_valid())):
        rmse = float(np.sqrt(np.mean((lines["estimate"] - lines["truth"]) ** 2)))
        if key["query"] in PANELS and key["epsilon"] is not None:
            rows.append(
                {
                    "panel": PANELS[key["query"]],
                    "method": key["method"],
                    "epsilon": key["epsilon"],
                    "rmse": rmse,
                }
            )
        elif key["query"] == TRUE:
            alone = rmse
    panels = [
        {
            "title": {"text": title, "anchor": "start"},
            **_panel([r for r in rows if r["panel"] == title], alone),
        }
        for title in PANELS.values()
    ]
    return {"hconcat": panels, "resolve": {"scale": {"color": "shared"}}}


def _panel(rows: list[dict[str, Any]], alone: float) -> Spec:
    x = {
        "field": "epsilon",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False},
        "axis": {"values": sorted({row["epsilon"] for row in rows}), "format": "~g"},
    }
    y = {
        "field": "rmse",
        "type": "quantitative",
        "title": "root mean square error",
        "scale": {"type": "log", "nice": False},
        "axis": {"values": [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5], "format": "~g"},
    }
    shown = [name for name in COLOURS if any(row["method"] == name for row in rows)]
    colour = {
        "field": "method",
        "type": "nominal",
        "scale": {"domain": shown, "range": [COLOURS[name] for name in shown]},
        "legend": {"title": None, "orient": "bottom", "columns": 3},
    }
    rule = {"mark": {"type": "rule", "strokeDash": [5, 4]}, "encoding": {"y": {"datum": alone}}}
    lines = {
        "data": {"values": rows},
        "mark": {"type": "line", "point": True},
        "encoding": {"x": x, "y": y, "color": colour},
    }
    return {"width": 300, "height": 320, "layer": [lines, rule]}


def _scatters(made: lab.Atlas) -> tuple[Scatter, Scatter]:
    """Rates of births in all tracts where somebody was asked, and in those that suppression leaves."""
    asked = made.tracts.asked > 0
    return scatters(made.tracts.single[asked], made.tracts.asked[asked], made.events()[asked], FewEvents())


def _envelope(made: lab.Atlas) -> Spec:
    """Some tracts evenly along their size, and the one that sets chi."""
    rows = [row for row in log_envelope(made.ranks, Fraction(1, 4)) if row["size"] >= LEAST]
    rows.sort(key=lambda row: row["size"])
    product = [row["size"] * row["local"] for row in rows]
    chi = max(product)
    places = set(np.linspace(0, len(rows) - 1, min(DOTS, len(rows))).astype(int).tolist())
    places.add(product.index(chi))
    drawn = draw_envelope([{**rows[i], "envelope": chi / rows[i]["size"]} for i in sorted(places)])
    for layer in drawn["layer"]:
        layer["encoding"]["x"]["title"] = "people in the tract"
        layer["encoding"]["y"]["title"] = "local sensitivity"
    return drawn
