"""`reticent upgrade`: old plans and codebooks in today's words."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

KEPT = ".bak"


def add_to(app: typer.Typer) -> None:
    """Hang the command on the root."""
    app.command(epilog="Example: reticent upgrade plan.toml survey.codebook.toml")(upgrade)


def upgrade(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Plans and codebooks, TOML files.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder for the new files; default: in place, the old one kept as FILE.bak."
        ),
    ] = None,
    codebook: Annotated[
        Path | None, typer.Option("--codebook", help="The plan's codebook, where it lies elsewhere.")
    ] = None,
) -> None:
    """Rewrite plans and codebooks of format 1 in the words of format 2. Comments and order stay; all files or none."""
    made = [(path, *_rewritten(path, codebook)) for path in files]
    for path, old, new in made:
        if new != old:
            _check_free(path, out)
    for path, old, new in made:
        typer.echo(_put(path, out, old, new))


def _rewritten(path: Path, codebook: Path | None) -> tuple[bytes, bytes]:
    from reticent.errors import PlanError
    from reticent.files import read_toml
    from reticent.plan.upgrade import upgrade

    data = read_toml(path, error=PlanError)
    old = path.read_bytes()
    mark = b"\xef\xbb\xbf" if old.startswith(b"\xef\xbb\xbf") else b""
    try:
        new = upgrade(old[len(mark) :].decode(), _codebook(path, data, codebook))
    except PlanError as problem:
        raise PlanError(str(problem), field=path.name[:100]) from None
    return old, mark + new.encode()


def _codebook(path: Path, data: Mapping[str, Any], named: Path | None) -> Mapping[str, Any] | None:
    """The codebook that was named, or the plan's own where it can be read; its columns' kinds are all that is used."""
    from reticent.errors import PlanError
    from reticent.files import read_toml

    if named is not None:
        return read_toml(named, error=PlanError)
    survey = data.get("survey")
    said = (survey.get("codebook") or survey.get("schema")) if isinstance(survey, Mapping) else None
    if not isinstance(said, str):
        return None
    try:
        return read_toml(path.parent / said, error=PlanError)
    except (PlanError, ValueError):
        return None


def _check_free(path: Path, out: Path | None) -> None:
    from reticent.files import check_new

    check_new(out / path.name if out is not None else path.with_name(path.name + KEPT))


def _put(path: Path, out: Path | None, old: bytes, new: bytes) -> str:
    from reticent.files import replace_file, write_new

    if new == old:
        return f"{path.name}: is in today's words already"
    if out is not None:
        write_new(out / path.name, new, private=False)
        return f"{path.name}: written to {out / path.name}"
    write_new(path.with_name(path.name + KEPT), old, private=False)
    replace_file(path, new)
    return f"{path.name}: rewritten; the old one is {path.name + KEPT}"
