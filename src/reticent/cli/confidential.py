"""CONFIDENTIAL: what `check` shows the curator. It goes to the terminal and nowhere else."""

from collections.abc import Sequence

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from reticent.engine.inspect import Finding
from reticent.engine.patterns import Patterns
from reticent.release.recipients import Gaps

WARNING = "CONFIDENTIAL: read off the rows, for the curator's eyes only. Do not publish or forward."
BAR, MOST_PATTERNS, MOST_PAIRS = 20, 12, 12


def show_findings(findings: Sequence[Finding]) -> None:
    """Every column: how much is missing, drawn as a bar, and what does not fit the codebook."""
    typer.echo(WARNING)
    table = Table(
        "column", "missing, of those asked", "answered", "not asked", "clamped", "does not fit", "such as"
    )
    for found in findings:
        asked = found.answered + found.missing
        counts = (found.answered, found.not_asked, found.clamped, found.unfit)
        examples = ", ".join(map(repr, found.examples))
        texts = (found.column, _bar(found.missing, asked), *(f"{n:,}" for n in counts), examples)
        table.add_row(*(Text(text) for text in texts))
    Console().print(table)


def show_patterns(found: Patterns) -> None:
    """Common patterns (a filled square is missing), and which columns go missing together."""
    typer.echo("Common patterns of missing answers:")
    table = Table(*found.columns, "rows")
    for missing, count in found.counts[:MOST_PATTERNS]:
        marks = ("■" if column in missing else "·" for column in found.columns)
        table.add_row(*(Text(mark) for mark in marks), Text(_bar(count, found.rows)))
    Console().print(table)
    pairs = [(a, b) for i, a in enumerate(found.columns) for b in found.columns[i + 1 :]]
    strongest = sorted(pairs, key=lambda pair: -abs(found.correlation(*pair)))[:MOST_PAIRS]
    if strongest:
        typer.echo("Columns that go missing together (correlation of their flags):")
        for one, other in strongest:
            typer.echo(f"  {found.correlation(one, other):+.2f}  {one}, {other}")


def show_gaps(found: Sequence[Gaps]) -> None:
    """What each repair meets: how many are missing before and after the edits, and who could donate."""
    typer.echo("Repairs:")
    table = Table("column", "missing", "after edits", "recipients", "donors", "recipients per donor")
    for each in found:
        shared = f"{each.after / each.donors:.2f}" if each.donors else "no donor"
        filled = (f"{each.after:,}", f"{each.donors:,}", shared) if each.has_donors else ("", "", "")
        filled = (
            (f"{each.after:,}", f"{each.donors:,} fitted", "private model") if each.is_modelled else filled
        )
        texts = (each.column, f"{each.before:,}", f"{each.after:,}", *filled)
        table.add_row(*(Text(text) for text in texts))
    Console().print(table)


def show_same_rows(found: Sequence[tuple[str, str]]) -> None:
    """Other ledgers for the same rows, as their fingerprints tell. Nothing is said where there is none."""
    if not found:
        return
    typer.echo(WARNING)
    for name, dataset in found:
        typer.echo(
            f'The same rows belong to {name}, for "{dataset}": what is charged there and here adds up.'
        )


def _bar(part: int, whole: int) -> str:
    """A bar, the share, and the count."""
    share = part / whole if whole else 0.0
    return f"{'█' * round(BAR * share):<{BAR}} {share:6.1%}  {part:,}"
