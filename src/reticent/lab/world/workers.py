"""Real answers and real silence: ACS workers with allocation flags, in the simulated state's words.

The Census Bureau sets a flag where it had to fill an answer in. The records are not part of this package;
they are read from a data folder, named by RETICENT_DATA or found beside the repository.

People many of whom do not say what they earn, and the asks that donors could answer for them.

The people are a simulated state, or real workers of the American Community Survey when their records are at
hand. In the state a pilot survey teaches who keeps silent: the less schooled (or, as in the document on donors, the more schooled,
who earn more), and some groups more than others, at the rates seen in household surveys. Its law is fitted (see `reticent.lab.world.nonresponse`) and drawn afresh on the state. Given age,
schooling, sex and race, silence tells nothing of the wage, so donors who match on them can mend the answers.
The workers' silence is their own: the Census Bureau's allocation flags, with its own fillings taken as the truth.
"""

import os
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reticent.errors import PlanError
from reticent.lab.world.nonresponse import Form, Score, Silence, apply, fit, score
from reticent.lab.world.state import LEVELS, YEARS, Array, codebook, people
from reticent.plan.plan import Plan, plan_from

FILE = "pums2016_workers.parquet"

FLAGS = {
    "age": "FAGEP",
    "sex": "FSEXP",
    "race": "FRACP",
    "marital": "FMARP",
    "relationship": "FRELP",
    "schooling": "FSCHLP",
    "employment": "FESRP",
    "hours": "FWKHP",
    "wage": "FWAGP",
}

# The first words that fit decide; what fits none of them is the last.
_WORDS = {
    "sex": ("SEX", (("female", "f"), ("male", "m"))),
    "race": (
        "RAC1P",
        (("asian", "asian"), ("black", "black"), ("american indian", "native"), ("alaska", "native"),
         ("pacific", "asian"), ("white", "white"), ("", "other")),
    ),
    "marital": (
        "MAR",
        (("never", "never"), ("separated", "separated"), ("divorced", "divorced"), ("widowed", "widowed"),
         ("", "married")),
    ),
    "relationship": (
        "RELP",
        (("reference", "head"), ("husband", "partner"), ("unmarried partner", "partner"), ("in-law", "relative"),
         ("son or daughter", "child"), ("stepson", "child"), ("roommate", "unrelated"), ("roomer", "unrelated"),
         ("nonrelative", "unrelated"), ("group quarters", "unrelated"), ("", "relative")),
    ),
    "schooling": (
        "SCHL",
        (("no high", "some-high"), ("regular high", "high-school"), ("ged", "high-school"),
         ("some college", "some-college"), ("associate", "some-college"), ("bachelor", "bachelor"),
         ("", "graduate")),
    ),
}  # fmt: skip


def data_folder() -> Path | None:
    """Where the real tables lie, or nothing when they are not at hand."""
    beside = Path(__file__).parents[4] / ".." / "shared" / "data"
    folder = Path(os.environ.get("RETICENT_DATA", beside))
    return folder.resolve() if (folder / FILE).is_file() else None


def read_workers(folder: Path) -> tuple[pa.Table, pa.Table]:
    """Answers under the state's names and levels, and a table of flags with the same rows."""
    raw = pq.read_table(folder / FILE)
    answers = {"household": raw["SERIALNO"], "age": raw["AGEP"], "hours": raw["WKHP"], "wage": raw["WAGP"]}
    for name, (source, words) in _WORDS.items():
        answers[name] = _reworded(raw[source], words)
    answers["employment"] = pa.array(["employed"] * raw.num_rows)
    return pa.table(answers), pa.table({name: pc.fill_null(raw[flag], False) for name, flag in FLAGS.items()})


def _reworded(column: pa.ChunkedArray, words: tuple[tuple[str, str], ...]) -> pa.Array:
    """Each long label as the short one whose words it holds."""
    labels = np.unique(column.cast(pa.string()).drop_null().to_numpy(zero_copy_only=False))
    short = [next(to for part, to in words if part in str(label).lower()) for label in labels]
    return pa.array(short).take(pc.index_in(column.cast(pa.string()), pa.array(labels)))


PILOT, PILOT_SEED = 50_000, 1
POVERTY = 15_000
STATE_AGES, WORKER_AGES = ((20, 59), (20, 29), (40, 49)), ((20, 50), (20, 29), (40, 49))
NEAR: list[Any] = [{"column": "age", "by": "5"}, "sex", "race", "schooling", "employment"]
DONORS = {"method": "donors", "bound": "hubs", "column": "wage", "match": NEAR, "k": 1, "default": "0"}
ORDER: list[Any] = ["employment", "schooling", {"column": "age", "by": "5"}, "sex", "race"]
"""The same attributes, the most important first: capped donors give up the last of them first."""
CAPPED = {"method": "donors", "column": "wage", "match": ORDER, "default": "0"}
SHARE = "0.25"
CENTRES = {(20, 59): "50000", (20, 29): "30000", (40, 49): "60000", (20, 50): "50000"}
WORKERS = 0  # in place of a number of simulated people


LESS_SCHOOLED, MORE_SCHOOLED = "less schooled", "more schooled"
SILENCES = {LESS_SCHOOLED: (0.33, 0.10), MORE_SCHOOLED: (0.10, 0.33)}
"""Who is silent: the shares after 11 years of schooling and after 18. The second makes those who answered too poor."""


@cache
def law(silence: str = LESS_SCHOOLED) -> Silence:
    """Who keeps the wage to themselves, learned from a pilot, at the shares of `SILENCES`."""
    return fit(*pilot(silence, year=0), Form.ANSWERS)


def pilot(silence: str, *, year: int) -> tuple[pa.Table, pa.Table]:
    """The people of a pilot who were asked for their wage, and whether they said it; each year asks others."""
    seed = PILOT_SEED + year
    asked_of = people(PILOT, seed=seed)
    lost = np.random.default_rng(seed).random(PILOT) < _rates(asked_of, silence)
    asked = asked_of["wage"].is_valid()
    return asked_of.filter(asked), pa.table({"wage": lost}).filter(asked)


def check_law(silence: str = LESS_SCHOOLED, *, asked: str | None = None) -> Score:
    """How the law that one year's pilot taught fares on the next year's, in which the silence may be another one."""
    return score(law(silence), *pilot(asked or silence, year=1), seed=PILOT_SEED)


def _rates(table: pa.Table, silence: str) -> Array:
    steps = pc.index_in(table["schooling"].cast(pa.string()), pa.array(LEVELS["schooling"]))
    years = YEARS[pc.fill_null(steps, 0).to_numpy().astype(int)]
    more = pc.equal(table["race"].cast(pa.string()), "black").to_numpy()
    least, most = SILENCES[silence]
    return np.asarray(np.interp(years, [11, 18], [least, most]) * np.where(more, 1.6, 1.0))


def complete(size: int, *, seed: int) -> pa.Table:
    """The first `size` people of the state, or all of the real workers, with every wage."""
    return people(size, seed=seed).combine_chunks() if size != WORKERS else _workers()[0]


def silent(state: pa.Table, *, seed: int, silence: str = LESS_SCHOOLED) -> pa.Table:
    """The state as it answers: some wages are missing."""
    return apply(state, law(silence).draw(state, seed=seed))


def flagged() -> pa.Table:
    """The real workers without the wages that had to be filled in."""
    answers, flags = _workers()
    return apply(answers, flags.select(["wage"]))


@cache
def _workers() -> tuple[pa.Table, pa.Table]:
    folder = data_folder()
    if folder is None:
        raise PlanError("needs the workers' records; name their folder in RETICENT_DATA", field="NAME")
    return read_workers(folder)


def declared(rows: pa.Table) -> pa.Table:
    """The rows with every column of the codebook, null where the source has none: labels are made of all of them."""
    for name in tomllib.loads(codebook())["columns"]:
        if name not in rows.column_names:
            rows = rows.append_column(name, pa.nulls(len(rows), pa.string()))
    return rows


def among(ages: tuple[int, int]) -> str:
    """A filter expression for workers of these ages."""
    return f"age >= {ages[0]} and age <= {ages[1]}"


def asks(size: int) -> dict[str, dict[str, Any]]:
    """Mean wage, and the share above the poverty line, of three ages."""
    ages_asked = STATE_AGES if size != WORKERS else WORKER_AGES
    said = {f"{low}-{high}": (low, high) for low, high in ages_asked}
    means = {
        f"mean wage, {name}": {"mean": "wage", "where": among(ages), "centre": CENTRES[ages]}
        for name, ages in said.items()
    }
    shares = {
        f"above poverty, {name}": {"proportion": f"wage > {POVERTY}", "where": among(ages)}
        for name, ages in said.items()
    }
    return {**means, **shares}


def ages_of(name: str) -> tuple[int, int]:
    """The ages an ask is about."""
    low, high = name.split(", ")[1].split("-")
    return int(low), int(high)


def truth_of(state: pa.Table, size: int) -> dict[str, float]:
    """The six answers by their textbook formulas, where everybody has said what they earn."""
    age, wage = state["age"].to_numpy(), np.nan_to_num(state["wage"].to_numpy())
    found = {}
    for name, query in asks(size).items():
        low, high = ages_of(name)
        mine = wage[(age >= low) & (age <= high)]
        found[name] = float(np.mean(mine if "mean" in query else mine > POVERTY))
    return found


def plan(
    size: int,
    *,
    epsilon: str,
    bar: str | None = None,
    donors: bool = True,
    capped: bool = False,
    sizes: dict[str, int] | None = None,
    **more: Any,
) -> Plan:
    """Each ask at `epsilon`, and `bar` for its interval; `sizes` are public, `more` is said of the donors, nearest or capped."""
    listed = []
    for name, query in asks(size).items():
        ask: dict[str, Any] = {"name": name, "query": query, "epsilon": epsilon}
        ask |= {"interval": {"epsilon": bar}} if bar else {}
        ask |= {"size": sizes[name]} if sizes else {}
        listed.append(ask)
    data = {
        "survey": {"source": "rows", "codebook": "codebook", "ledger": "none"},
        "release": {"id": "donors-income"},
        "protect": {"change": "one respondent added or removed", "epsilon": "1000", "accept_large": True},
        "expect": {"missing": {"wage": SHARE}},
        "impute": [{**(CAPPED if capped else DONORS), **more}] if donors else [],
        "statistic": listed,
    }
    return plan_from(data, tomllib.loads(codebook()))
