"""Tables for the terminal: a preview, a release, and CONFIDENTIAL what `check` shows the curator.

A preview says what will be filled, noise under assumptions, since its scale is confidential, and how weights will be
made; after a release, which bins were used. What `check` shows goes to the terminal and nowhere else.
"""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from reticent.engine.confidential import Finding, Patterns
from reticent.errors import PlanError
from reticent.exact import show
from reticent.plan.budgets import wave_words
from reticent.plan.plan import Plan
from reticent.plan.repairs import external_imputation_section
from reticent.preview.products import foresee_plan
from reticent.preview.units import unit_line, unit_section
from reticent.privacy.claim import in_words
from reticent.release.check import Gaps
from reticent.release.document import drawn_section, public_files_section, wave_section, weight_words
from reticent.release.doubts import Doubt
from reticent.release.product import Grid, Line
from reticent.release.release import Release
from reticent.report.pages import drawings
from reticent.schema.public_files import published_words
from reticent.workflow.releasing import WARNING


def show_repairs(plan: Plan) -> None:
    """Every repair in words, with the default that stands last."""
    for said in plan.repair_words:
        typer.echo(f"imputation: {said}")


def show_weights(plan: Plan) -> None:
    """One line, with the price of finding the bins."""
    if plan.weight is not None:
        price = f", for {show(plan.weight.price)}" if plan.weight.price else ", which costs nothing"
        typer.echo(f"{weight_words(plan.weight)}{price}")


def weights_dict(plan: Plan) -> dict[str, Any]:
    """The same for JSON; nothing where a plan has no weights."""
    if plan.weight is None:
        return {}
    return {"weights": {"words": weight_words(plan.weight), "epsilon": show(plan.weight.price)}}


def show_design(plan: Plan) -> None:
    """Where sampling errors come from, and at what price; that there are none where nothing is said."""
    for said in plan.design.words:
        typer.echo(f"sampling error: {said}")


def design_dict(plan: Plan) -> dict[str, Any]:
    """The same for JSON."""
    return {"design": {"words": list(plan.design.words), "epsilon": show(plan.design.epsilon)}}


def show_drawn(plan: Plan) -> None:
    """The piece that is read, and what the guarantee is worth to those it was drawn from."""
    told = drawn_section(plan)
    if "piece" in told:
        typer.echo(f"reads {told['piece']['words']}")
        if "secret" in told["piece"]:
            typer.echo(f"its guarantee: {told['piece']['secret']}")
    for each in told.get("frames", []):
        typer.echo(f"{each['words']}; {each['secret']}")


def show_preview(plan: Plan, target: str, *, as_json: bool) -> None:
    """The guarantee, the cost and the expected errors, as a table or as JSON."""
    cv = _cv(target)
    foreseen = foresee_plan(plan, cv)
    if as_json:
        told: dict[str, Any] = {
            "release": plan.release_id,
            "guarantee": plan.claim.as_dict(),
            "statistics": [],
        }
        told |= {"imputation": list(plan.repair_words)} if plan.repair_words else {}
        told |= external_imputation_section(plan.external, plan.claim)
        told |= {
            **weights_dict(plan),
            **design_dict(plan),
            **drawn_section(plan),
            **wave_section(plan),
            **public_files_section(plan),
        }
        told |= {"units": unit_section(plan)}
        told |= {each.key: list(each.told) for each in foreseen}
        typer.echo(json.dumps(told, indent=1))
        return
    typer.echo(f"release {plan.release_id}: {plan.worded(plan.claim)}")
    cost = show(plan.cost) if plan.unit == "epsilon" else in_words(plan.cost, plan.delta)
    typer.echo(f"cost {cost} of at most {show(plan.cap)}; no row was read and nothing was charged")
    typer.echo(unit_line(plan))
    if plan.wave is not None:
        typer.echo(wave_words(plan.wave, plan.schema.unit_name))
    show_repairs(plan)
    for each in external_imputation_section(plan.external, plan.claim).values():
        typer.echo(f"imputed before: {each['words']}")
    show_weights(plan)
    if plan.asks:
        show_design(plan)
    show_drawn(plan)
    show_files(plan)
    for each in foreseen:
        show_lines(each.lines)


def show_lines(lines: Iterable[Line]) -> None:
    """Sentences as they are; tables drawn as wide as the terminal."""
    for line in lines:
        if isinstance(line, str):
            typer.echo(line)
            continue
        _print_grid(line)


CROPPED = "…"


def _print_grid(grid: Grid) -> None:
    """As wide as the terminal; a number is never cut off, so columns of text give way first, and then the terminal's width."""
    console = Console()
    with console.capture() as drawn:
        console.print(_table(grid, [None] * len(grid.headings)))
    if CROPPED not in drawn.get() or any(CROPPED in text for row in grid.rows for text in row):
        sys.stdout.write(drawn.get())
        return
    frame = 3 * len(grid.headings) + 1
    widths = column_widths(grid, console.width - frame)
    Console(width=max(console.width, sum(widths) + frame)).print(_table(grid, widths))


def _table(grid: Grid, widths: Sequence[int | None]) -> Table:
    table = Table(*(Column(each, width=width) for each, width in zip(grid.headings, widths, strict=True)))
    for row in grid.rows:
        table.add_row(*(Text(text) for text in row))
    return table


def column_widths(grid: Grid, room: int) -> list[int]:
    """As wide as its longest word, every column; what room is left goes to those that lack most."""
    columns = list(zip(grid.headings, *grid.rows, strict=True))
    widths = [max(cell_len(word) for text in column for word in (text.split() or [""])) for column in columns]
    whole = [max(cell_len(row) for text in column for row in text.split("\n")) for column in columns]
    for _ in range(room - sum(widths)):
        place = max(range(len(widths)), key=lambda each: whole[each] - widths[each])
        widths[place] += 1
    return widths


def show_files(plan: Plan) -> None:
    """Every file whose texts leave with the release, for the curator to read before they do."""
    for each in plan.files:
        if each.published:
            typer.echo(f"will be published from {published_words(each)}")


def _cv(target: str) -> float:
    if not target:
        return 0.0
    match = re.fullmatch(r"cv=([0-9]{1,3}(?:\.[0-9]{1,4})?)%", target)
    if match is None or not 0 < float(match[1]) <= 100:
        raise PlanError("is written like cv=5%", field="--target")
    return float(match[1]) / 100


def show_release(release: Release) -> None:
    """What was released, section by section, and the guarantee; the files hold all of it."""
    for drawing in drawings(release.document):
        show_lines(drawing.lines(release.document))
    typer.echo(str(release.document["guarantee"]["words"]))


MOST_PATTERNS, MOST_PAIRS = 12, 12


def show_findings(findings: Sequence[Finding]) -> None:
    """Every column: how much is missing, drawn as a bar, and what does not fit the codebook."""
    typer.echo(WARNING)
    typer.echo(
        "Missing: the share of those who were asked, so of all rows but the ones outside the universe."
    )
    table = Table("column")
    for heading in ("missing", "answered", "not asked", "clamped", "does not fit"):
        table.add_column(heading, justify="right", no_wrap=True)
    for found in findings:
        asked = found.answered + found.missing
        counts = (found.answered, found.not_asked, found.clamped, found.unfit)
        texts = (found.column, _share(found.missing, asked), *(f"{n:,}" for n in counts))
        table.add_row(*(Text(text) for text in texts))
    Console().print(table)
    for found in findings:
        if found.examples:
            typer.echo(f"  {found.column} does not fit, such as: {', '.join(map(repr, found.examples))}")


def show_doubts(found: Sequence[Doubt]) -> None:
    """What should make the curator stop, one line each."""
    for each in found:
        typer.secho(f"WARNING  {each.column + ' ' if each.column else ''}{each.words}.", bold=True)


def show_patterns(found: Patterns) -> None:
    """Common patterns (a filled square is missing), and which columns go missing together."""
    typer.echo("Common patterns of missing answers:")
    table = Table()
    for heading in ("of all rows", "rows"):
        table.add_column(heading, justify="right", no_wrap=True)
    for column in found.columns:
        table.add_column(Text(column), justify="center")
    for missing, count in found.counts[:MOST_PATTERNS]:
        marks = ("■" if column in missing else "·" for column in found.columns)
        texts = (_share(count, found.rows), f"{count:,}", *marks)
        table.add_row(*(Text(text) for text in texts))
    Console().print(table)
    strongest = found.together[:MOST_PAIRS]
    if strongest:
        typer.echo("Columns that go missing together (correlation of their flags):")
        for one, other, strength in strongest:
            typer.echo(f"  {strength:+.2f}  {one}, {other}")


def show_coarse(unit: str, rows: int) -> None:
    """Identifiers that floating point cannot tell apart, where there are any."""
    if rows:
        typer.echo(
            f"{unit}: {rows:,} rows name their respondent by a number from 2^53 on. Read as floating point, several "
            "respondents may become one; keep the column as text in the file, and write text = true in the codebook."
        )


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


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "nobody asked"
