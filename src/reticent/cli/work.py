"""What the commands do, in words of the library. Progress counts steps of the plan, never rows."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from reticent.cli.checked import remember_check, remind_of_check
from reticent.cli.hints import finish_with
from reticent.cli.opening import found_nearby
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
from reticent.engine.confidential import coarse_identifiers, inspect, patterns
from reticent.engine.open import open_engine
from reticent.engine.sources.open import located, open_source
from reticent.errors import PlanError, ReticentError
from reticent.plan.plan import Plan, read_plan
from reticent.prepare.repair import NO_REPAIR
from reticent.privacy.ledger import Ledger
from reticent.release.check import gaps
from reticent.release.curator import Curator
from reticent.release.doubts import doubts
from reticent.release.products import producers
from reticent.release.release import Release
from reticent.release.run import run_plan, try_plan
from reticent.release.survey import Survey, simulate
from reticent.report.pages import ReportPages, installed

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
    plan = plan or read_plan(path, rows=data, ledger=ledger)
    if resume is not None and resume != plan.release_id:
        raise PlanError(
            f"the plan's release is {plan.release_id!r}; name its own plan with --plan", field="ID"
        )
    book = Ledger.open(ledger or path.parent / plan.ledger)
    survey = Survey(_rows(path, plan, data), codebook=path.parent / plan.codebook, relation=plan.relation)
    show_files(plan)
    undrawn: list[str] = []
    curator = Curator(book, pages=ReportPages(endings=tuple(PAGES), tell=undrawn.append))
    folder = _folder(path, out)
    whole = _resume_command(plan.release_id, path, data=data, ledger=ledger, out=out)
    with _bar(plan) as step, _whole_hint(plan.release_id, whole):
        run = curator.resume if resume is not None else curator.release
        made = run(plan, survey, folder, step=step)
    show_release(made)
    remind_of_check(path, plan, _rows(path, plan, data))
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
    """Whoever is told to resume is told the whole command."""
    finish_with(command)
    try:
        yield
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
    try_plan(plan)
    engine = open_engine(simulate(plan.schema, plan.rows))
    try:
        with _bar(plan) as step:
            lot = plan.partition.lot(token_hex(32)) if plan.partition else None
            done = run_plan(plan, engine, lot, step=step)
    finally:
        engine.close()
    made = Release(done.told(plan, receipt=None, engine=engine.version))
    typer.echo("REHEARSAL on rows simulated from the codebook. Not a release: nothing was read or charged.")
    show_files(plan)
    remind_of_check(path, plan, _rows(path, plan, None))
    show_release(made)
    if out is not None:
        _write_rehearsal(made, _folder(path, out))


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
    engine = open_engine(open_source(_rows(path, plan, data), table=plan.relation, schema=plan.schema))
    try:
        engine.check(plan.schema)
        findings = inspect(engine, plan.schema)
        silent = [found.column for found in findings if found.missing]
        show_findings(findings)
        show_doubts(doubts(engine, plan, findings))
        show_coarse(plan.schema.unit, coarse_identifiers(engine, plan.schema))
        if silent:
            show_patterns(patterns(engine, plan.schema, silent))
        if plan.repair != NO_REPAIR:
            show_gaps(gaps(engine, plan))
        book = ledger or path.parent / plan.ledger
        show_same_rows(found_nearby(book, engine.fingerprint(plan.schema), engine, path.parent / "releases"))
        remember_check(path, plan, _rows(path, plan, data))
    finally:
        engine.close()


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


def _rows(path: Path, plan: Plan, data: str | None) -> str:
    return data if data is not None else located(path.parent, plan.source)


def _folder(path: Path, out: Path | None) -> Path:
    if out is not None:
        if not os.path.isdir(out):  # a path that is too long is no folder either
            raise PlanError("is not a folder; make it first", field="out")
        return out
    return path.parent / "releases"  # made when there is something to publish


@contextmanager
def _bar(plan: Plan) -> Iterator[Callable[[str], None]]:
    """A bar over the plan's steps, when somebody is watching."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        steps = sum(producer.steps for producer in producers(plan)) + 2
        task = progress.add_task("releasing", total=steps)
        yield lambda name: progress.update(task, advance=1)
