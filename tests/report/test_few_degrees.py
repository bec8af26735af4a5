"""Domains whose sampling error is known badly are named beside the intervals, from released degrees of freedom alone."""

from typing import Any

from reticent.report.words import sampled


def told(df: float, **source: Any) -> list[str]:
    domains = [
        {"cell": {"sex": "f"}, "se": 1.0, "degrees_of_freedom": df},
        {"cell": {"sex": "m"}, "se": 1.0, "degrees_of_freedom": 40.0},
    ]
    own = {"x by sex": {"domains": domains}, "x": {"se": 1.0, "degrees_of_freedom": 2.0}}
    return sampled({"sampling": {**source, "own": own}})


def test_a_domain_with_few_degrees_of_freedom_is_named_and_others_are_not() -> None:
    for source in ({}, {"source": "declared", "design_effect": "2"}, {"source": "bought", "units": 40}):
        said = told(3.1, **source)[-1]
        assert said.startswith("Note: x by sex, in f:") and "known badly" in said
        assert not any("known badly" in each for each in told(10.0, **source))
