"""`reticent codebook`: draft one from a header, or check one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from reticent.cli.groups import WholeSentences

app = typer.Typer(
    cls=WholeSentences,
    help="The codebook: public facts about the survey.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command(epilog="Example: reticent codebook draft survey.parquet --out survey.codebook.toml")
def draft(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The survey file.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to write it; default: the terminal.")
    ] = None,
    relation: Annotated[
        str | None,
        typer.Option("--relation", help="The table, schema.name, where FILE is postgres:SERVICE or spark."),
    ] = None,
) -> None:
    """Draft a codebook from column names, types and value labels. It is marked unfinished; no row is read."""
    from reticent.engine.sources.draft import draft_codebook
    from reticent.files import write_new

    text = draft_codebook(file, _elsewhere(file, relation))
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_new(out, text.encode(), private=False)
        typer.echo(f"drafted {out.name}; fill in what is marked TODO, then remove 'unfinished'")


def _elsewhere(source: str, relation: str | None) -> Mapping[str, str] | None:
    """The header of a table that is no file; None where it is one."""
    from reticent.engine.open import open_engine
    from reticent.engine.sources.open import is_remote, remote_table

    if not is_remote(source):
        return None
    engine = open_engine(remote_table(source, relation))
    try:
        return dict(engine.types)
    finally:
        engine.close()


@app.command(epilog="Example: reticent codebook check survey.codebook.toml")
def check(file: Annotated[Path, typer.Argument(metavar="CODEBOOK", help="The codebook file.")]) -> None:
    """Say whether a codebook is complete and consistent: nothing is finished while a TODO is left in it."""
    from reticent.errors import SchemaError
    from reticent.files import read_text
    from reticent.workflow.codebooks import codebook_state

    state, _ = codebook_state(read_text(file, error=SchemaError), file.name)
    typer.echo(state)
