"""`reticent missing`: CONFIDENTIAL, for the curator: which answers go missing together, and Little's test."""

from typing import TYPE_CHECKING

import typer

from reticent.cli.plans import Data, PlanFile

if TYPE_CHECKING:
    from reticent.engine.protocol import CuratorEngine
    from reticent.schema import Schema


def add_to(app: typer.Typer) -> None:
    """Hang the command on the root."""
    app.command(epilog="Example: reticent missing plan.toml")(missing)


def missing(plan: PlanFile, data: Data = None) -> None:
    """For the curator's eyes only: which answers go missing, together or not, and Little's test. CONFIDENTIAL."""
    from reticent.cli.show import WARNING
    from reticent.engine.confidential import MOST_COLUMNS, patterns
    from reticent.engine.open import open_engine
    from reticent.engine.sources.open import open_source
    from reticent.engine.sources.remote import located
    from reticent.missing.describe import describe
    from reticent.missing.private import public_columns
    from reticent.plan.plan import read_plan

    read = read_plan(plan, rows=data)
    source = data if data is not None else located(plan.parent, read.source)
    engine = open_engine(open_source(source, table=read.relation, schema=read.schema))
    try:
        engine.check(read.schema)
        columns = public_columns(read.schema)
        told = describe(patterns(engine, read.schema, columns)).text()
        tested = _tested(engine, read.schema)
    finally:
        engine.close()
    cut = [f"The first {MOST_COLUMNS} columns of the codebook."] * (len(columns) > MOST_COLUMNS)
    typer.echo("\n".join((WARNING, "", *cut, told, "", *tested)))


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
