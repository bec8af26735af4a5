"""Plans of every product, for a page that has to show what it cannot compose; their survey is the simulated state."""

from pathlib import Path

from reticent.lab.demo import GROUPS
from reticent.lab.world.state import codebook

HEAD = """format = 2

[survey]
source = "survey.parquet"
codebook = "survey.codebook.toml"
ledger = "survey.ledger.db"

[release]
id = "{name}"

[expect]
rows = 20000

[protect]
change = "one respondent added or removed"
{budget}
"""
PLANS = {
    "statistics": """
[[statistic]]
name = "hours by region"
query = { mean = "hours", where = "employment = 'employed'", by = ["region"], centre = "38" }
epsilon = "0.5"

[[statistic]]
name = "hours and wage"
query = { correlation = ["hours", "wage"], where = "employment = 'employed'", centres = ["38", "45000"] }
epsilon = "1"

[[statistic]]
name = "median rent"
query = { median = "rent", step = "10" }
epsilon = "0.3"
interval = { level = 0.95, epsilon = "0.15" }
""",
    "tables": """
[[tables]]
name = "who lives where"
margins = [["region", "sex"], ["sex", "age"], ["region", "employment"]]
bins = { age = [0, 15, 25, 45, 65, 99] }
epsilon = "1"
""",
    "regression": """
[[regression]]
name = "hours of the employed"
y = "hours"
x = ["age", "sex"]
where = "employment = 'employed'"
epsilon = "1"
""",
    "donors": """
[[edit]]
if = "hours > 0"
then = { employment = "employed" }

[[impute]]
method = "donors"
column = "wage"
default = "40000"

[[impute.match]]
on = ["sex", "schooling"]
serve = 2

[[impute.match]]
on = []
serve = 1

[[statistic]]
name = "wage"
query = { mean = "wage" }
epsilon = "0.4"
""",
    "models": """
[[impute]]
method = "classes"
column = "schooling"
from = ["age", "employment"]
epsilon = "0.5"

[[impute]]
method = "regression"
column = "wage"
from = ["hours", "schooling"]
epsilon = "1"
fill = "drawn"
copies = 5

[[statistic]]
name = "mean wage, employed"
query = { mean = "wage", where = "employment = 'employed'", centre = "45000" }
epsilon = "0.5"
interval = { epsilon = "0.5" }
""",
    "weights": """
[weight]
base = "weight"
epsilon = "0.2"
totals = [
  { age = "0 to under 25", sex = "f", total = 15100 },
  { age = "0 to under 25", sex = "m", total = 15900 },
  { age = "25 to under 65", sex = "f", total = 25600 },
  { age = "25 to under 65", sex = "m", total = 25300 },
  { age = "65 to 99", sex = "f", total = 9900 },
  { age = "65 to 99", sex = "m", total = 8200 },
]

[[weight.by]]
column = "age"
bins = [0, 25, 65, 99]
missing = "25 to under 65"

[[weight.by]]
column = "sex"
missing = "f"

[[weight.strategy]]
name = "age by sex"

[[weight.strategy]]
name = "age"
by = ["age"]

[[statistic]]
name = "at work"
query = { count = "*", where = "employment = 'employed'", weight = "poststratified" }
epsilon = "0.5"
interval = { epsilon = "0.2" }
""",
    "cells": """
[[cells]]
name = "mean wage by stratum"
cell = "stratum"
y = "wage"
estimate = { mean = true }
method = "smooth"
epsilon = "1"
""",
    "synth": """
[[synth]]
name = "people"
method = "independent"
rows = 3000
epsilon = "1"
columns = ["age", "sex"]
""",
    "answers": """
[[synth]]
name = "people"
inference = true
rows = 3000
epsilon = "2"
delta = "0.000001"
columns = ["age", "sex", "employment", "hours"]

[[synth.answer]]
name = "women"
query = { proportion = "sex = 'f'" }
design_effect = "1.5"
""",
    "design": """
[design]
items = ["employed", "married"]
epsilon = "0.2"

[[statistic]]
name = "employed"
query = { proportion = "employment = 'employed'" }
epsilon = "0.2"

[[statistic]]
name = "married"
query = { proportion = "marital = 'married'" }
epsilon = "0.2"
sampling = { epsilon = "0.1" }
""",
    "waves": """
[wave]
name = "2026q1"
at_most = 4
of = 20

[[statistic]]
name = "adults"
query = { count = "*", where = "age >= 18" }
rho = "0.005"
""",
    "rho": """
[[statistic]]
name = "age by sex"
query = { table = ["sex", "age"], bins = { age = [0, 18, 65, 100] } }
rho = "0.01"

[[statistic]]
name = "women"
query = { count = "*", where = "sex = 'f'" }
epsilon = "0.1"
""",
}
BUDGETS = {
    "waves": 'measure = "zcdp"\nrho = "0.1"',
    "rho": 'measure = "zcdp"\nrho = "0.1"',
    "answers": 'epsilon = "4"\ndelta = "0.000001"',
}


def text_of(name: str) -> str:
    """A whole plan with one product."""
    return HEAD.format(name=f"{name}-1", budget=BUDGETS.get(name, 'epsilon = "4"')) + PLANS[name]


def state(folder: Path) -> Path:
    """A folder with every plan and the codebook of the simulated state, and no rows."""
    (folder / "survey.codebook.toml").write_text(codebook() + GROUPS)
    for name in PLANS:
        (folder / f"{name}.toml").write_text(text_of(name))
    return folder
