"""Respondents for attacks: ordinary ones, and strange ones who answer what nobody asked for."""

import math
from typing import Any

Person = dict[str, Any]


def person(sex: str | None, age: float | None, pay: float | None, w: float | None) -> Person:
    return {"sex": sex, "age": age, "pay": pay, "w": w}


SEXES = ("f", "m", "x", None)

ORDINARY: list[Person] = [
    person(
        SEXES[i % 4] if i % 9 else None,
        (17 * i + 5) % 100 if i % 7 else None,
        ((13 * i) % 400 - 100) / 2 if i % 5 else None,
        (i % 17) / 4 if i % 11 else None,
    )
    for i in range(35)
]

STRANGE: list[Person] = [
    person("new category", 40, 10, 1),
    person("", 40, 10, 1),
    person("F", 40, 10, 1),
    person("f ", 40, 10, 1),
    person("f", 40, 10, 1e300),
    person("f", 40, 10, math.inf),
    person("f", 40, 10, -math.inf),
    person("f", 40, 10, -3),
    person("f", 40, 10, math.nan),
    person("f", 40, 10, None),
    person("m", 1e300, 10, 4),
    person("m", -1e300, 10, 4),
    person("m", math.inf, 150, 4),
    person("m", math.nan, 150, 4),
    person("m", 40.5, 150, 4),
    person("m", -1, 150, 4),
    person("m", -0.0, 150, 4),
    person("m", 5e-324, 150, 4),
    person("m", 2.0**53 + 2, 150, 4),
    person("x", 50, 1e308, 4),
    person("x", 50, -1e308, 4),
    person("x", 50, math.inf, 4),
    person("x", 50, -math.inf, 4),
    person("x", 50, math.nan, 4),
    person("x", 50, 0.1, 0.1),
    person("x", 50, 149.99, 3.99),
    person("x", 14, 150, 4),
    person("x", 15, 150, 4),
    person("f", None, 150, 4),
    person("f", None, None, None),
    person(None, None, None, None),
    person(None, 99, 150, 4),
    person("f", 99, 150, 4),
    person("f", 0, -50, 4),
    person("m", 99, -50, 4),
]
