"""A whole survey to try things on: a sample of the simulated state in which people did not answer everything."""

from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from reticent.lab.world.design import allocate, stratified
from reticent.lab.world.nonresponse import apply, clustered, self_masking
from reticent.lab.world.state import codebook, people

PEOPLE_PER_ROW = 20  # the sampling is even over uneven strata; at 20 the largest weight stays below 60
GROUPS = """
[columns.dealt]
kind = "categorical"
label = "Group that a respondent is dealt into, for the sampling error: people were drawn one by one within strata"
role = "psu"
dealt = 200
"""
RATES = {"marital": 0.04, "schooling": 0.05, "employment": 0.06, "hours": 0.10, "wage": 0.12, "rent": 0.08}


def survey(*, rows: int, seed: int) -> pa.Table:
    """A stratified sample of `rows` people; reluctant ones skip several questions, the well paid their wage.

    It carries no identifiers: one row is one respondent.
    """
    state = people(PEOPLE_PER_ROW * rows, seed=seed)
    answers = stratified(state, sizes=allocate(state, size=rows, rule="equal"), seed=seed).take(state)
    reluctant = clustered(answers, RATES, correlation=0.5, seed=seed)
    discreet = self_masking(answers, 0.08, seed=seed, columns=["wage"])
    return apply(answers, reluctant, discreet).drop_columns(["person_id", "household"])


def plan(*, rows: int) -> str:
    """The demonstration's plan, as TOML, told how many rows to expect."""
    text = files("reticent.lab").joinpath("demo.plan.toml").read_text(encoding="utf-8")
    return text.replace("rows = 20000", f"rows = {rows}")


def demo_survey(folder: Path, *, rows: int = 20_000, seed: int = 2026) -> None:
    """A demonstration survey: write `survey.parquet`, `survey.codebook.toml` and `plan.toml` into the folder.

    **Parameters**

    - `folder`: an existing folder.
    - `rows`: of the sample.
    - `seed`: of the state and of all draws.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(survey(rows=rows, seed=seed), folder / "survey.parquet", compression="zstd")
    (folder / "survey.codebook.toml").write_text(codebook() + GROUPS, encoding="utf-8")
    (folder / "plan.toml").write_text(plan(rows=rows), encoding="utf-8")
