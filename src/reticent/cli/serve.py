"""`reticent serve`: the curator's desk, a web page on this machine alone."""

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    """Hang the command on the root."""
    app.command(epilog="Example: reticent serve surveys --port 8000")(serve)


def serve(
    folder: Annotated[
        Path, typer.Argument(metavar="[FOLDER]", help="The folder that holds the plans.")
    ] = Path(),
    port: Annotated[
        int,
        typer.Option("--port", min=0, max=65535, help="Where to listen on this machine; 0 is any free one."),
    ] = 0,
    key: Annotated[
        Path | None, typer.Option("--key", help="Your private key, to approve releases at the desk.")
    ] = None,
) -> None:
    """Open the curator's desk: look at the survey, compose a plan, preview it, confirm and release, in a browser on this
    machine. Prints the address first; it works once."""
    from reticent.cli.approving import ask_passphrase
    from reticent.errors import PlanError
    from reticent.privacy.ledger import ApproverKey

    try:
        from reticent.web.serve import serve as run
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] not in ("starlette", "uvicorn", "h11", "anyio"):
            raise
        raise PlanError(
            "needs further parts; install them with pip install 'reticent[web]'", field="serve"
        ) from None
    run(folder, port=port, key=ApproverKey.load(key, ask_passphrase) if key else None)
