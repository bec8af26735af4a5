"""`reticent codebook`: draft one from a header, or check one."""

from collections.abc import Mapping
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
    from reticent.schema import read_schema

    left = _left(_todo(file))
    try:
        schema = read_schema(file)
    except SchemaError as refused:  # a draft is refused for what its TODOs ask; say how many there are
        if not left:
            raise
        raise SchemaError(f"{refused.args[0]} ({file.name}: {left})", field=refused.field) from None
    state = left or ("finished" if schema.finished else "still marked unfinished")
    typer.echo(f"{schema.name}: {len(schema.columns)} columns, unit {schema.unit}; {state}")


def _left(lines: list[int]) -> str:
    """How many TODOs are left and where the first of them stand; nothing where there are none."""
    shown = ", ".join(map(str, lines[:10])) + (", ..." if len(lines) > 10 else "")
    return f"not finished: {len(lines)} TODO left, in lines {shown}" if lines else ""


def _todo(file: Path) -> list[int]:
    """The numbers of the lines that still say TODO."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return []  # what reads the codebook says it better
    lines = enumerate(text.splitlines(), start=1)
    # The drafted head speaks of every TODO; that sentence is none.
    return [number for number, line in lines if "TODO" in line and "Every TODO" not in line]
