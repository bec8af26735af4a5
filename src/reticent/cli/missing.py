"""`reticent missing`: CONFIDENTIAL, for the curator: which answers go missing together, and Little's test."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reticent.cli.plans import Data, PlanFile

if TYPE_CHECKING:
    from reticent.engine.protocol import CuratorEngine
    from reticent.schema import Schema


def add_to(app: typer.Typer) -> None:
    """Hang the command on the root."""
    app.command(epilog="Example: reticent missing plan.toml --html missing.html --by region")(missing)


def missing(
    plan: PlanFile,
    data: Data = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write pictures to this page, for your eyes only.")
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", help="With --html: rates in each level of this column.")
    ] = None,
) -> None:
    """For the curator's eyes only: which answers go missing, together or not, and Little's test. CONFIDENTIAL."""
    from reticent.engine.confidential import MOST_COLUMNS
    from reticent.engine.open import open_engine
    from reticent.engine.sources.open import located, open_source
    from reticent.files import check_new, write_new
    from reticent.missing.private import public_columns
    from reticent.plan.plan import read_plan
    from reticent.report.missing import missing_pictures
    from reticent.workflow.releasing import WARNING

    read = read_plan(plan, rows=data)
    if html is not None:
        check_new(html)
    if by is not None:
        read.schema.column(by, field="--by")
    source = data if data is not None else located(plan.parent, read.source)
    engine = open_engine(open_source(source, table=read.relation, schema=read.schema))
    try:
        engine.check(read.schema)
        pictures = missing_pictures(engine, read.schema, by)
        tested = _tested(engine, read.schema)
    finally:
        engine.close()
    many = len(public_columns(read.schema)) > MOST_COLUMNS
    cut = [f"The first {MOST_COLUMNS} columns with a missing answer."] * many
    typer.echo("\n".join((WARNING, "", *cut, pictures.text, "", *tested)))
    if html is not None:
        write_new(html, pictures.page(), private=True)
        typer.echo(f"pictures, CONFIDENTIAL: {html}")


def _tested(engine: "CuratorEngine", schema: "Schema") -> tuple[str, ...]:
    """Little's test on the columns it is made for."""
    from reticent.engine.confidential import pattern_lines
    from reticent.missing.little import little, moments_from, ordered_columns

    names = ordered_columns(schema)
    if len(names) < 2:
        return ("Little's test: needs two columns with an order that everybody is asked.",)
    found = little(moments_from(pattern_lines(engine, schema, names), len(names)))
    return (
        f"Little's test on {', '.join(names)}:",
        f"  d2 = {found.statistic:.2f}, {found.freedom} degrees of freedom, {found.patterns} patterns, p = {found.p:.4f}",
        "  A small p speaks against missing completely at random. A large one proves nothing,",
        "  and no test sees whether nonresponse depends on the answer that was not given.",
    )
