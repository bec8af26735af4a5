"""Table 1 of the document on synthesis, on the tables that PrivBayes with missing data really picks.

The document multiplies epsilon by chances of being answered, over the sets of columns that came out of one run. Here PrivBayes
on available cells is run at pure epsilon 1 with the document's masks, and for the tables it picked three numbers are told:

    first order   chance times epsilon, summed over tables and choices: below every grouping of the document's algorithm 4
    exact         what these tables and choices cost, had their columns been fixed before a row was read
    claimed       what may be claimed before the rows are seen, for whatever may be picked

Half of epsilon chooses and half measures, in equal parts. A choice looks at every candidate, so it uses a row that answered any
of them; the candidates always hold single columns of some kind, so a choice is nearly never amplified. No number but the last
may be claimed: which tables are picked is read off the rows.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa

from reticent.lab.experiments.amplification_missing import before_the_rows
from reticent.lab.noise import QuickSynthNoise
from reticent.lab.papers.items import Printed, several
from reticent.lab.run.experiment import Experiment, Outcome, Row
from reticent.lab.run.summary import groups
from reticent.lab.trials import tables
from reticent.lab.trials.fitting import Held
from reticent.lab.trials.masks import mask
from reticent.lab.trials.tables import cells_of, with_missing
from reticent.privacy.missingness import IndependentMask, Use, amplified, first_order, sets_of
from reticent.privacy.missingness.masks import use
from reticent.synth.base import FitTask, MissingMethod, Places, Spend
from reticent.synth.marginals.privbayes import PrivBayes

DOCUMENT, ITEM = "synthesis", "Table 1"
PRINTED = {"adult": "Adult", "br2000": "BR2000"}
RATES = ("0.1", "0.2", "0.3", "0.4", "0.5")
HALF = Fraction(1, 2)


def picked(name: str, rate: str, rng: np.random.Generator, *, rows: int | None = None) -> list[Places]:
    """The columns of each table that PrivBayes on available cells measures, at pure epsilon 1."""
    table = tables.trial(name, rows=rows)
    lost, domain = mask(name, "MCAR", float(rate), rows=rows), table.domain()
    held = Held(domain=domain, cells=cells_of(with_missing(table.codes, lost), domain))
    spend = Spend(epsilon=Fraction(1))
    made = PrivBayes().fit(
        FitTask(held, domain, MissingMethod.AVAILABLE, spend, noise=QuickSynthNoise(rng), step=lambda _: None)
    )
    return [tuple(sorted((*step.given, step.place))) for step in made.steps]


def costs(sets: Sequence[Places], *, observed: Fraction) -> dict[str, float]:
    """The three numbers, for tables of these columns, each column answered with the same chance."""
    columns = len(sets)
    names = [f"column {place}" for place in range(columns)]
    measured = [use(*(names[place] for place in each), epsilon=HALF / columns) for each in sets]
    choices = Use(sets=sets_of(*({name} for name in names)), epsilon=HALF)
    law = IndependentMask(dict.fromkeys(names, observed))
    return {
        "first order": float(first_order([choices, *measured], law)),
        "exact": float(amplified([choices, *measured], law)),
        "claimed": float(before_the_rows(columns, observed=observed)),
        "columns a table": float(np.mean([len(each) for each in sets])),
    }


def stated_for(name: str) -> dict[str, Printed]:
    """What the document prints for this table, by the rate."""
    return dict(zip(RATES, several(DOCUMENT, ITEM, PRINTED[name]), strict=True)) if name in PRINTED else {}


def run(index: int, seed: int, *, pieces: tuple[str, ...], rows: int | None) -> list[Outcome]:
    """One table at one rate, once."""
    name, rate = pieces[index % len(pieces)].split("/")
    sets = picked(name, rate, np.random.default_rng(seed), rows=rows)
    found = costs(sets, observed=1 - Fraction(rate))
    return [
        Outcome(
            method=what,
            query=f"{name}/{rate}",
            epsilon=1.0,
            truth=0.0,
            estimate=value,
        )
        for what, value in found.items()
    ]


def told(outcomes: pa.Table) -> list[Row]:
    """A row for each table and rate: means over the repeats, beside what is printed."""
    found: dict[str, Row] = {}
    for key, lines in groups(outcomes):
        name, rate = key["query"].split("/")
        row = found.setdefault(key["query"], {"dataset": name, "rate": float(rate)})
        row |= {key["method"]: float(np.mean(lines["estimate"])), "runs": len(lines["estimate"])}
        row["printed"] = stated_for(name).get(rate)
    return list(found.values())


def _lacks(piece: str) -> bool:
    return not tables.at_hand(piece.split("/")[0])


def experiment(
    names: Sequence[str] = tuple(PRINTED), *, runs: int = 3, rows: int | None = None
) -> Experiment:
    """On the two tables of the document, where their rows are at hand."""
    pieces = tuple(f"{name}/{rate}" for name in names for rate in RATES)
    return Experiment(
        name="synth-picked",
        title="Amplified cost of PrivBayes on available cells, for the tables that it picks",
        source="Differentially private data generation with missing data, Table 1",
        run=partial(run, pieces=pieces, rows=rows),
        params={"pieces": len(pieces), "rows": rows},
        runs=runs,
        batch=1,
        pieces=pieces,
        lacks=_lacks,
        told=told,
    )
