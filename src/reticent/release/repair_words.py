"""Repairs in words: for a preview, a release and its report. Everything said is public."""

from reticent.prepare.donors import Donors, Match, Metric, Scheme
from reticent.schema import Number, Schema


def donors_words(donors: Donors, schema: Schema) -> str:
    """`missing wages were filled from the nearest donor ...`, with whom stands in where there is none."""
    column = schema.coded[donors.column]
    who = {
        Scheme.NEAREST: "taken from the nearest donor",
        Scheme.MEAN: f"filled with the mean of the {donors.k} nearest donors",
        Scheme.MAJORITY: f"filled with the majority of the {donors.k} nearest donors",
    }[donors.scheme]
    near = ", ".join(_near(match, schema) for match in donors.near)
    how = ", by one-hot Euclidean distance" if donors.metric is Metric.ONE_HOT else ""
    values = list(dict.fromkeys(column.text(code) for code in donors.defaults))
    last = f"where donors are lacking, by {' and '.join(values)}"
    return f"missing {donors.column} was {who} by {near}{how}; {last}"


def _near(match: Match, schema: Schema) -> str:
    column = schema.coded[match.column]
    grouped = f" in {len(match.starts)} groups" if match.starts and isinstance(column, Number) else ""
    weight = f" (weight {match.weight})" if match.weight != 1 else ""
    return f"{match.column}{grouped}{weight}"
