"""What a page says of synthetic rows: what they are, what may be done with them, and how to say so elsewhere."""

from collections.abc import Mapping
from typing import Any

Document = Mapping[str, Any]

USE = (
    (
        "Each row is drawn from a model that was learned with noise. No row is anybody's; one that looks like somebody's is so by "
        "chance, and says nothing about them."
    ),
    (
        "Good for: writing and testing programs, teaching, looking at tables of one or two columns, finding out which question is "
        "worth asking of the real data."
    ),
    (
        "Not for: final numbers. Standard errors and tests computed from synthetic rows are too small, since they know neither of the "
        "noise, nor of the sampling, nor that the model is one. Ask the question in a plan instead, and get an interval."
    ),
    (
        "The number of rows comes from the plan. More rows are no more information, and say nothing about how many "
        "respondents there were."
    ),
    "What the model does not hold is not in the rows: often relations of three or more columns, and inside a bin any.",
    "Files made from the rows, and models fitted to them, keep the promise above without a further charge.",
)


def promised(table: Document) -> str:
    """The claim, and how far it reaches."""
    return f"{table['guarantee']['words']}, for these rows and all that is made from them."


def ruled(table: Document) -> list[str]:
    """The rules that every row keeps, a sentence each."""
    never = [f"No row with {rule}." for rule in table.get("never") or []]
    settled = (table.get("determines") or {}).items()
    return never + [f"{source} settles {target}." for source, target in settled]


def heaped(table: Document) -> list[str]:
    """The numbers that had a bin of their own, a sentence for each column."""
    masses = (table.get("point_masses") or {}).items()
    return [
        f"Point masses of {name}, each with a bin of its own: {', '.join(map(str, values))}."
        for name, values in masses
    ]


def methodology(document: Document) -> str:
    """A paragraph on the synthetic tables of a release, to paste; nothing where it has none."""
    said = [
        f"“{table['name']}” holds {table['rows']:,} rows of {len(table['columns'])} columns, drawn from a model that was "
        f"learned by the method {table['method']!r} ({table['guarantee']['words']}). Of missing answers: {table['missing_words']}."
        + "".join(f" {each}" for each in heaped(table))
        for table in document.get("synth") or []
    ]
    if not said:
        return ""
    return (
        f"{' '.join(said)} Numbers were put into bins that were declared beforehand, and drawn evenly inside them. The rows "
        "understate uncertainty: no sampling error, noise or error of the model can be read off them."
    )
