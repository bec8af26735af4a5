"""`reticent codebook`: draft one from a header, or check one."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="The codebook: public facts about the survey.", no_args_is_help=True, rich_markup_mode=None
)


@app.command(epilog="Example: reticent codebook draft survey.parquet --out survey.codebook.toml")
def draft(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The survey file.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to write it; default: the terminal.")
    ] = None,
) -> None:
    """Draft a codebook from column names, types and value labels. It is marked unfinished; no row is read."""
    from reticent.engine.sources.draft import draft_codebook
    from reticent.files import write_new

    text = draft_codebook(file)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_new(out, text.encode(), private=False)
        typer.echo(f"drafted {out.name}; fill in what is marked TODO, then remove 'unfinished'")


@app.command(epilog="Example: reticent codebook check survey.codebook.toml")
def check(file: Annotated[Path, typer.Argument(metavar="CODEBOOK", help="The codebook file.")]) -> None:
    """Say whether a codebook is complete and consistent."""
    from reticent.schema import read_schema

    schema = read_schema(file)
    state = "finished" if schema.finished else "still marked unfinished"
    typer.echo(f"{schema.name}: {len(schema.columns)} columns, unit {schema.unit}; {state}")
