"""The command `reticent`: its groups, and the one place where an error becomes a line and a status (R16)."""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

import typer
from typer import Abort
from typer._click.exceptions import ClickException

from reticent.cli import amplify, codebook, lab, ledger, missing, plans, report, serve, upgrade
from reticent.cli.groups import WholeSentences
from reticent.errors import PlanError, ReticentError

INTERRUPTED = "interrupted: resume what was charged, or else run the command again"

app = typer.Typer(
    name="reticent",
    cls=WholeSentences,
    help="Differentially private releases from surveys that people did not finish answering.",
    epilog="Start with: reticent demo",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
plans.add_to(app)
plans.add_synth_to(app)
report.add_to(app)
upgrade.add_to(app)
amplify.add_to(app)
missing.add_to(app)
serve.add_to(app)
app.add_typer(codebook.app, name="codebook")
app.add_typer(ledger.app, name="ledger")
app.add_typer(lab.app, name="lab")


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    """Differentially private releases from surveys that people did not finish answering."""
    if version:
        from reticent import __version__

        typer.echo(f"reticent {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; never a traceback, always one line and a status."""
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, _interrupt)
    _open_streams()
    _calm_products()
    status, text = _run()
    if text:
        _say(f"error: {text}")
    sys.exit(status)


def _run() -> tuple[int, str]:
    try:
        _check_once(sys.argv[1:])
        status = int(app(standalone_mode=False) or 0)
        sys.stdout.flush()
        return status, INTERRUPTED if status == 130 else ""
    except ReticentError as problem:
        return problem.status, _line(problem.told)
    except (KeyboardInterrupt, Abort):
        return 130, INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # Nobody reads on, which is no failure of ours: what was published stays published.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0, ""
    except ClickException as problem:
        return 2, _line(f"call: {problem.format_message()}")
    except MemoryError:
        return 4, "memory: not enough memory; close other programs or use a smaller plan"
    except Exception:  # noqa: BLE001 - whatever it was, its text may hold something read from a row
        return 4, "internal: something failed that should not; please report the command you ran"


def _check_once(arguments: Sequence[str]) -> None:
    """Of an option given twice the last would win in silence, unless it is made to be given several times."""
    names = [word.partition("=")[0] for word in arguments if word.startswith("--") and word != "--"]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None and twice not in _repeatable(typer.main.get_command(app), arguments):
        raise PlanError(f"{twice[:40]} is given twice; give it once", field="call")


def _repeatable(command: Any, arguments: Sequence[str]) -> set[str]:
    """Options of the command that is called, and of those it stands under, that may be given several times."""
    found = {name for each in command.params if getattr(each, "multiple", False) for name in each.opts}
    inner = getattr(command, "commands", {})
    called = next((place for place, word in enumerate(arguments) if word in inner), None)
    return found if called is None else found | _repeatable(inner[arguments[called]], arguments[called + 1 :])


def _open_streams() -> None:
    """Where a standard stream is closed, let it lead nowhere; otherwise the next file opened would take its place.

    A terminal that has no letter for something gets a mark: R, for one, may run us in a locale of ASCII alone.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def _calm_products() -> None:
    """One thread for products of matrices, unless the caller says otherwise, as long as NumPy is not loaded.

    Ours are small: on a busy machine the threads of OpenBLAS wait for each other in a loop, at eight times the work.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:600]


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # nobody may be listening
        print(text, file=sys.stderr, flush=True)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
