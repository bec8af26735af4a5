"""`reticent report`: draw a published release again, as a page, charts or a workbook, from its JSON alone."""

from pathlib import Path
from typing import Annotated

import typer

KINDS = ("html", "png", "svg", "xlsx", "pdf", "csvw", "sdmx")


def add_to(app: typer.Typer) -> None:
    """Hang the command on the root."""
    app.command(epilog="Example: reticent report releases/demo-1.json --as png --out charts")(report)


def report(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="A release, the JSON file.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for the files; it must exist. Default: beside the JSON."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--as", help="html, pdf, png, svg, xlsx, csvw or sdmx; may be given several times."),
    ] = None,
) -> None:
    """Draw a release again from its JSON: no data and no ledger are needed, and nothing is charged."""
    from reticent.errors import PlanError
    from reticent.files import check_new, write_new

    wanted = kind or ["png"]
    unknown = next((word for word in wanted if word not in KINDS), None)
    if unknown is not None:
        raise PlanError(f"is one of {', '.join(KINDS)}", field="--as")
    made, folder = _drawn(release, wanted), release.parent if out is None else out
    for name in made:
        check_new(folder / name)
    for name, data in made.items():
        write_new(folder / name, data, private=False)
        typer.echo(str(folder / name))


def _drawn(path: Path, kinds: list[str]) -> dict[str, bytes]:
    from reticent.release.csvw import csvw
    from reticent.release.release import Release
    from reticent.release.sdmx import sdmx
    from reticent.report.charts import png, svgs
    from reticent.report.page import page
    from reticent.report.printed import pdf
    from reticent.report.sheet import sheet

    release = Release.from_bytes(_bytes(path))
    files: dict[str, bytes] = {}
    if "html" in kinds:
        files[f"{release.id}.html"] = page(release)
    if "xlsx" in kinds:
        files[f"{release.id}.xlsx"] = sheet(release)
    if "png" in kinds:
        files |= {f"{release.id}-{key}.png": data for key, data in png(release).items()}
    if "svg" in kinds:
        files |= {f"{release.id}-{key}.svg": data for key, data in svgs(release).items()}
    if "pdf" in kinds:
        files[f"{release.id}.pdf"] = pdf(release)
    if "csvw" in kinds:
        files |= csvw(release)
    return files | (sdmx(release) if "sdmx" in kinds else {})


def _bytes(path: Path) -> bytes:
    from reticent.errors import PlanError

    try:
        return path.read_bytes()
    except OSError:
        raise PlanError("cannot be read; name the JSON file of a release", field="RELEASE") from None
