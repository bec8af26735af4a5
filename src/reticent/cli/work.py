"""What the commands do, in words of the library. Progress counts steps of the plan, never rows."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from reticent.cli.show import (
    show_coarse,
    show_doubts,
    show_files,
    show_findings,
    show_gaps,
    show_patterns,
    show_release,
    show_same_rows,
)
from reticent.errors import Interrupted, PlanError, ReticentError
from reticent.plan.plan import Plan, read_plan
from reticent.prepare.repair import NO_REPAIR
from reticent.privacy.ledger import Ledger
from reticent.release.release import Release
from reticent.report.pages import ReportPages, installed
from reticent.workflow.releasing import (
    check_rows,
    folder_of,
    get_ready,
    is_unchecked,
    rehearse,
    rows_of,
    steps_of,
)

PAGES = installed()


def release_plan(
    path: Path,
    *,
    data: str | None,
    ledger: Path | None,
    out: Path | None,
    resume: str | None = None,
    plan: Plan | None = None,
) -> Release:
    """Charge, compute, publish; print where the report is. The `plan` may be a part of the one in the file."""
    ready = get_ready(path, data=data, ledger=ledger, out=out, resume=resume, plan=plan)
    plan, folder = ready.plan, ready.folder
    show_files(plan)
    undrawn: list[str] = []
    pages = ReportPages(endings=tuple(PAGES), tell=undrawn.append)
    whole = _resume_command(plan.release_id, path, data=data, ledger=ledger, out=out)
    with _whole_hint(plan.release_id, whole):
        with _bar(plan) as step:
            made = ready.run(pages, step)
        show_release(made)
        remind_of_check(path, plan, ready.rows)
    if undrawn:
        drawn_by = undrawn[0].replace("reticent resume ID", whole)
        typer.echo(
            f"note: {drawn_by.replace('FILE.json', str(folder / f'{plan.release_id}.json'))}", err=True
        )
    else:
        typer.echo(f"report: {folder / (plan.release_id + '.html')}")
    return made


def _resume_command(
    release_id: str, path: Path, *, data: str | None, ledger: Path | None, out: Path | None
) -> str:
    """The whole command that finishes a release, to be copied."""
    given = {"--plan": str(path), "--data": data, "--ledger": ledger, "--out": out}
    words = [word for key, value in given.items() if value is not None for word in (key, str(value))]
    return shlex.join(["reticent", "resume", release_id, *words])


@contextmanager
def _whole_hint(release_id: str, command: str) -> Iterator[None]:
    """Whoever is told to resume, or interrupts, is told the whole command."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(
            f"run the command again, or finish what was charged with `{command}`", field="interrupted"
        ) from None
    except ReticentError as problem:
        problem.args = tuple(
            str(each)
            .replace(f"`reticent resume {release_id}`", f"`{command}`")
            .replace("`reticent resume`", f"`{command}`")
            for each in problem.args
        )
        raise


def rehearse_plan(path: Path, out: Path | None) -> None:
    """The whole plan on made-up rows; nothing is charged and nothing may be published."""
    plan = read_plan(path)
    with _bar(plan) as step:
        made = rehearse(plan, step)
    typer.echo("REHEARSAL on rows simulated from the codebook. Not a release: nothing was read or charged.")
    show_files(plan)
    remind_of_check(path, plan, rows_of(path, plan))
    show_release(made)
    if out is not None:
        _write_rehearsal(made, folder_of(path, out))


def _write_rehearsal(made: Release, folder: Path) -> None:
    from reticent.files import check_new, write_new
    from reticent.report.page import page

    target = folder / f"rehearsal-{made.id}.html"
    check_new(target)
    write_new(target, page(made), private=False)
    typer.echo(f"report: {target}")


def check_plan(path: Path, data: str | None, ledger: Path | None = None) -> None:
    """Show the curator what the rows hold, and whose else they are. Nothing is charged; that it was done is noted."""
    plan = read_plan(path, rows=data)
    found = check_rows(path, plan, data, ledger)
    show_findings(found.findings)
    show_doubts(found.doubts)
    show_coarse(found.unit, found.coarse)
    if found.patterns is not None:
        show_patterns(found.patterns)
    if plan.repair != NO_REPAIR:
        show_gaps(found.gaps)
    show_same_rows(found.same_rows)


def remind_of_check(path: Path, plan: Plan, rows: str) -> None:
    """One line where `check` has not been run on these rows and this codebook, as they are now."""
    if is_unchecked(path, plan, rows):
        typer.echo(
            f"note: `reticent check {path}` has not been run on these rows and this codebook. What does not fit the codebook, "
            "such as levels in other case or a decimal comma, counts as missing, and no release says so."
        )


def run_demo(out: Path, rows: int) -> None:
    """Make the survey, open a ledger with a budget of 10, release, and say what to look at."""
    from reticent.lab.demo import demo_survey

    if out.exists() and any(out.iterdir() if out.is_dir() else [out]):
        # The demo's own folder: a second run gives the same bytes and no charge.
        if not (out / "plan.toml").is_file():
            raise PlanError("is in use by something else; name another folder", field="out")
    else:
        (out / "releases").mkdir(parents=True)
        demo_survey(out, rows=rows)
        plan = read_plan(out / "plan.toml")
        Ledger.create(
            out / plan.ledger,
            dataset=plan.schema.name,
            change=plan.change.value,
            unit="epsilon",
            budget="10",
            outputs=out / "releases",
        )
    release_plan(out / "plan.toml", data=None, ledger=None, out=None)


@contextmanager
def _bar(plan: Plan) -> Iterator[Callable[[str], None]]:
    """A bar over the plan's steps, when somebody is watching."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("releasing", total=steps_of(plan))
        yield lambda name: progress.update(task, advance=1)
