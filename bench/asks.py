"""Ten asks, and the same ten numbers as somebody without privacy on their mind would have DuckDB add them up."""

import tomllib

from reticent.lab.world.state import codebook
from reticent.plan.plan import Plan, plan_from

EMPLOYED = "employment = 'employed'"

# One sum each, so that the two sides can be compared number by number.
SUMS: list[tuple[dict[str, str], str]] = [
    ({"count": "*", "where": "age >= 18"}, "sum(1) filter (where age >= 18)"),
    (
        {"count": "*", "where": f"{EMPLOYED} and sex = 'f'"},
        f"sum(1) filter (where {EMPLOYED} and sex = 'f')",
    ),
    (
        {"count": "*", "where": "schooling >= 'bachelor' and age >= 25", "weight": "weight"},
        "sum(weight) filter (where schooling in ('bachelor', 'graduate') and age >= 25)",
    ),
    (
        {"total": "wage", "where": f"{EMPLOYED} and sex = 'f'"},
        f"sum(wage) filter (where {EMPLOYED} and sex = 'f')",
    ),
    (
        {"total": "wage", "where": f"{EMPLOYED} and sex = 'm'"},
        f"sum(wage) filter (where {EMPLOYED} and sex = 'm')",
    ),
    ({"total": "hours", "where": "age between 25 and 64"}, "sum(hours) filter (where age between 25 and 64)"),
    (
        {"total": "hours", "where": "marital = 'married' and region = 'coast'", "weight": "weight"},
        "sum(hours * weight) filter (where marital = 'married' and region = 'coast')",
    ),
    (
        {"total": "rent", "where": "region in ('hills', 'plains')"},
        "sum(rent) filter (where region in ('hills', 'plains'))",
    ),
    (
        {"total": "rent", "where": "race = 'black' or race = 'native'", "weight": "weight"},
        "sum(rent * weight) filter (where race = 'black' or race = 'native')",
    ),
    (
        {"count": "*", "where": "wage is missing and age >= 15"},
        "sum(1) filter (where wage is null and age >= 15)",
    ),
]
PLAIN = "select " + ", ".join(aggregate for _, aggregate in SUMS) + " from read_parquet($1)"

# One of every kind; together seventeen sums and two tables.
MIXED: list[dict[str, object]] = [
    {"count": "*", "where": "age >= 18"},
    {"count": "*", "where": "age >= 18", "weight": "weight"},
    {"total": "rent", "where": "region in ('hills', 'plains')"},
    {"proportion": EMPLOYED, "where": "age >= 18"},
    {"proportion": "wage is missing", "where": "age >= 15"},
    {"mean": "wage", "where": f"{EMPLOYED} and sex = 'f'", "centre": "40000"},
    {"mean": "wage", "where": f"{EMPLOYED} and sex = 'm'", "centre": "40000"},
    {"variance": "hours", "where": EMPLOYED},
    {"median": "wage", "step": "500", "where": EMPLOYED},
    {"table": ["sex", "age"], "bins": {"age": [0, 15, 25, 45, 65, 100]}},
]


def plan(asks: list[dict[str, object]]) -> Plan:
    """A plan of these asks over the simulated state."""
    return plan_from(
        {
            "survey": {"source": "people.parquet", "codebook": "people.codebook.toml", "ledger": "people.db"},
            "release": {"id": "bench"},
            "protect": {"change": "one respondent added or removed", "epsilon": "10"},
            "statistic": [{"name": f"ask {i}", "query": ask, "epsilon": "0.1"} for i, ask in enumerate(asks)],
        },
        tomllib.loads(codebook()),
    )


def plans() -> dict[str, Plan]:
    """The two plans by name."""
    return {"ten sums": plan([dict(ask) for ask, _ in SUMS]), "ten of all kinds": plan(MIXED)}
