"""`reticent lab`: simulations with the truth in hand."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reticent.cli.groups import WholeSentences

if TYPE_CHECKING:
    from reticent.lab.run.experiment import Experiment

app = typer.Typer(
    cls=WholeSentences,
    help="The lab: simulations with the truth in hand. Nothing made here is a release.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
SHOWN = (
    *("dataset", "mask", "rate", "complete", "method", "strategy", "query", "epsilon", "truth"),
    *("tvd1", "tvd2", "tvd3", "f1", "bias", "sd", "rmse", "medae", "coverage", "seconds"),
)
WORDS = ("dataset", "mask", "method", "strategy", "query", "item", "stands_in")
WIDTH = 100
EXACT = ("item", "stands_in", "printed", "as_printed", "value", "vector", "epsilon", "query")


@app.command("list", epilog="Example: reticent lab list")
def list_() -> None:
    """Name the experiments and say what each is about."""
    from reticent.lab.experiments import EXPERIMENTS

    for made in EXPERIMENTS.values():
        typer.echo(f"{made.name}\n    {made.title}\n    after: {made.source}")


@app.command(
    epilog="Examples: reticent lab run noise-laws; reticent lab run noise-in-context --runs 200 --out lab --figures; "
    'reticent lab run amplification-table --item "Table 5.1"'
)
def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The experiment; see reticent lab list.")],
    runs: Annotated[int | None, typer.Option("--runs", min=1, help="How often to repeat it.")] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for the results; made if missing.")] = Path(
        "lab"
    ),
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, max=256, help="Processes; default: one per core.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another seed, other draws.")] = 1,
    figures: Annotated[bool, typer.Option("--figures", help="Draw its charts beside the results.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: name, runs, rows.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Of an experiment in pieces, those with one of these words: adult,bank."),
    ] = None,
    skip: Annotated[
        list[str] | None, typer.Option("--skip", help="And without those with one of these words.")
    ] = None,
    item: Annotated[
        str | None,
        typer.Option(
            "--item", help="Of its rows, those about this item of a document; see reticent lab papers."
        ),
    ] = None,
) -> None:
    """Repeat an experiment and summarise it. Runs already in the folder are not made again."""
    from reticent.lab.experiments import find
    from reticent.lab.papers.items import item_of
    from reticent.lab.run import runner
    from reticent.lab.run.summary import rows_of

    experiment = find(name)
    about = None if item is None else item_of(experiment.name, item)
    outcomes = runner.run(
        experiment, out=out, runs=runs, workers=workers, seed=seed, only=only or (), skip=skip or ()
    )
    rows = [row for row in rows_of(experiment, outcomes) if about is None or about.holds(row)]
    count = experiment.repeats(outcomes)
    drawn = _draw(experiment, outcomes, out) if figures else []
    if as_json:
        _print_json({"name": name, "runs": count, "rows": rows})
        return
    made = "computed, nothing drawn" if experiment.exact else f"{count} runs, simulated; not a release"
    typer.echo(f"{name}: {made}")
    _print_table([row for row in rows if "item" not in row], SHOWN)
    _print_table([_as_printed(row) for row in rows if "item" in row], EXACT)
    for path in drawn:
        typer.echo(f"figure: {path}")


@app.command(
    epilog="Examples: reticent lab elsewhere demo spark; reticent lab elsewhere demo postgres owner census census.people"
)
def elsewhere(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="DEMO ENGINE ...", help="DEMO spark, or DEMO postgres OWNER READER schema.name."
        ),
    ],
) -> None:
    """Put the rows of `reticent demo` into PostgreSQL, or name them to Spark, and write the plan that reads them there.

    OWNER is a service whose role may make the table, READER the one that the plan names.
    """
    from reticent.lab.elsewhere import main

    typer.echo(f"wrote {main(words).name}")


@app.command(epilog="Examples: reticent lab papers; reticent lab papers thesis --json")
def papers(
    document: Annotated[
        str | None, typer.Argument(metavar="[DOCUMENT]", help="One of the documents, by its short name.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: documents, items.")] = False,
) -> None:
    """Find a figure, table or theorem of the documents: the command that runs it, and what differs here."""
    from reticent.errors import PlanError, nearest
    from reticent.lab.papers.items import documents, items

    titles = documents()
    if document is not None and document not in titles:
        hint = nearest(document, titles) or f"; there are {', '.join(titles)}"
        raise PlanError(f"no document is called {document[:80]!r}{hint}", field="DOCUMENT")
    wanted = {name: title for name, title in titles.items() if document in (None, name)}
    rows = [each.row() for each in items() if each.document in wanted]
    if as_json:
        _print_json({"documents": wanted, "items": rows})
        return
    for name, title in wanted.items():
        typer.echo(f"{name}: {title}")
        _print_items([row for row in rows if row["document"] == name])


def _print_items(rows: list[dict[str, Any]]) -> None:
    """An item and its status, what it is about, what it prints, how ours differs, and the command, which can be copied."""
    from textwrap import TextWrapper

    lines = TextWrapper(WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 6, break_on_hyphens=False)
    for row in rows:
        typer.echo(f"\n  {row['item']} [{row['status']}]")
        printed = "; ".join(f"{what} {digits}" for what, digits in row["printed"].items())
        setting = f"setting: {row['setting']}" if row["setting"] else ""
        told = f"printed: {printed}" if printed else ""
        for text in (row["what"], setting, told, f"here: {row['differs']}"):
            typer.echo(lines.fill(text), nl=bool(text))
        if row["command"]:
            typer.echo(f"    $ {row['command']}")
    typer.echo("")


def _as_printed(row: dict[str, Any]) -> dict[str, Any]:
    """A row with the digits of the document where it has them."""
    return {**row, "printed": row["printed_digits"]} if "printed_digits" in row else row


def _draw(experiment: "Experiment", outcomes: Any, out: Path) -> list[Path]:
    from reticent.lab.run.figures import write

    charts = experiment.figures(outcomes) if experiment.figures else {}
    return write(charts, out / experiment.name / "figures")


def _print_json(document: dict[str, Any]) -> None:
    import json

    typer.echo(json.dumps(document, ensure_ascii=False, allow_nan=False))


def _print_table(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    """Words to the left, numbers of five digits to the right, in columns wide enough for all of them."""
    shown = [name for name in columns if any(row.get(name) is not None for row in rows)]
    lines = [shown, *([_cell(row.get(name)) for name in shown] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(shown))]
    for line in lines if rows else []:
        cells = [
            cell.ljust(width) if name in WORDS else cell.rjust(width)
            for name, cell, width in zip(shown, line, widths, strict=True)
        ]
        typer.echo("  ".join(cells).rstrip())


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.5g}" if isinstance(value, float) else str(value)
