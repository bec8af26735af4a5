"""The commands for a plan: preview, rehearse, check, release, resume, synth and the demo; and what they do.

`reticent synth` releases the synthetic tables of a plan and nothing else. Progress counts steps of the plan, never rows.
"""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:  # the command line starts without the library
    from reticent.plan.plan import Plan
    from reticent.release.release import Release

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="The plan, a TOML file.")]
Data = Annotated[str | None, typer.Option("--data", help="Rows to use instead of the plan's source.")]
LedgerFile = Annotated[Path | None, typer.Option("--ledger", help="Ledger to use instead of the plan's.")]
Out = Annotated[
    Path | None, typer.Option("--out", help="Folder for the release; default: releases beside the plan.")
]


def add_to(app: typer.Typer) -> None:
    """Hang the commands on the root."""
    for command, example in (
        (preview, "reticent preview plan.toml --target cv=5%"),
        (rehearse, "reticent rehearse plan.toml --out trial"),
        (check, "reticent check plan.toml"),
        (release, "reticent release plan.toml --out published"),
        (resume, "reticent resume income-2026-1 --plan plan.toml"),
        (demo, "reticent demo --out demo"),
    ):
        app.command(epilog=f"Example: {example}")(command)


def preview(
    plan: PlanFile,
    target: Annotated[str, typer.Option("--target", help="Say which epsilon would do, such as cv=5%.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print the guarantee, the cost in privacy budget and the expected error. Reads no row and charges nothing."""
    from reticent.cli.show import show_preview
    from reticent.plan.plan import read_plan
    from reticent.release.run import try_plan

    read = read_plan(plan)
    try_plan(read)  # what a release would refuse, a preview refuses too
    show_preview(read, target, as_json=as_json)


def rehearse(
    plan: PlanFile,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the report; without it none is written.")
    ] = None,
) -> None:
    """Run the plan on rows simulated from the codebook: uncharged, marked, not a release."""
    from reticent.cli.show import show_files, show_release
    from reticent.plan.plan import read_plan
    from reticent.workflow.releasing import folder_of, rows_of
    from reticent.workflow.releasing import rehearse as rehearsed

    read = read_plan(plan)
    with _bar(read) as step:
        made = rehearsed(read, step)
    typer.echo("REHEARSAL on rows simulated from the codebook. Not a release: nothing was read or charged.")
    show_files(read)
    remind_of_check(plan, read, rows_of(plan, read))
    show_release(made)
    if out is not None:
        _write_rehearsal(made, folder_of(plan, out))


def check(plan: PlanFile, data: Data = None, ledger: LedgerFile = None) -> None:
    """For the curator's eyes only: read the rows, show what is missing and what does not fit, and name other ledgers
    that keep a fingerprint of the same rows. CONFIDENTIAL."""
    from reticent.cli import show
    from reticent.plan.plan import read_plan
    from reticent.prepare.repair import NO_REPAIR
    from reticent.workflow.releasing import check_rows

    read = read_plan(plan, rows=data)
    found = check_rows(plan, read, data, ledger)
    show.show_findings(found.findings)
    show.show_doubts(found.doubts)
    show.show_coarse(found.unit, found.coarse)
    if found.patterns is not None:
        show.show_patterns(found.patterns)
    if read.repair != NO_REPAIR:
        show.show_gaps(found.gaps)
    show.show_same_rows(found.same_rows)


def release(
    plan: PlanFile,
    data: Data = None,
    ledger: LedgerFile = None,
    out: Out = None,
    debug: Annotated[bool, typer.Option("--debug", hidden=True)] = False,
) -> None:
    """Charge the privacy budget in the ledger, compute, and write the release and its report."""
    release_plan(plan, data=data, ledger=ledger, out=out)


def resume(
    release_id: Annotated[str, typer.Argument(metavar="ID", help="The release that was cut off.")],
    plan: Annotated[Path, typer.Option("--plan", help="Its plan.")] = Path("plan.toml"),
    data: Data = None,
    ledger: LedgerFile = None,
    out: Out = None,
) -> None:
    """Finish a release that was charged but cut off, as the ledger allows; no new charge."""
    release_plan(plan, data=data, ledger=ledger, out=out, resume=release_id)


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder to fill; made if missing.")] = Path("demo"),
    rows: Annotated[
        int, typer.Option("--rows", min=100, max=1_000_000, help="Respondents to simulate.")
    ] = 20_000,
) -> None:
    """Simulate a survey with missing answers and release thirteen statistics and a table from it, with a report."""
    from reticent.errors import PlanError
    from reticent.lab.demo import demo_survey
    from reticent.plan.plan import read_plan
    from reticent.privacy.ledger import Ledger

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


def add_synth_to(app: typer.Typer) -> None:
    """Hang the command on the root."""
    app.command(epilog="Example: reticent synth plan.toml --out published")(synth)


def synth(
    plan: PlanFile,
    data: Data = None,
    ledger: LedgerFile = None,
    out: Out = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Finish a run that was charged but cut off; no new charge.")
    ] = False,
) -> None:
    """Charge the ledger for the plan's [[synth]] sections alone, and write their rows and the report.

    In a plan that holds nothing else this is `release`. Where a plan holds statistics or small cells too, they are neither answered
    nor charged: what is released is another plan, under the plan's id followed by -synth, and to release the whole plan
    later draws and charges its synthetic tables once more.
    """
    from reticent.plan.plan import read_synth_plan

    read = read_synth_plan(plan, rows=data, ledger=ledger)
    release_plan(
        plan, data=data, ledger=ledger, out=out, plan=read, resume=read.release_id if resume else None
    )


def drawn() -> tuple[str, ...]:
    """The endings of the pages that are drawn of a release."""
    from reticent.report.pages import installed

    return installed()


def release_plan(
    path: Path,
    *,
    data: str | None,
    ledger: Path | None,
    out: Path | None,
    resume: str | None = None,
    plan: "Plan | None" = None,
) -> "Release":
    """Charge, compute, publish; print where the report is. The `plan` may be a part of the one in the file."""
    from reticent.cli.show import show_files, show_release
    from reticent.report.pages import ReportPages
    from reticent.workflow.releasing import get_ready

    ready = get_ready(path, data=data, ledger=ledger, out=out, resume=resume, plan=plan)
    plan, folder = ready.plan, ready.folder
    show_files(plan)
    undrawn: list[str] = []
    pages = ReportPages(endings=drawn(), tell=undrawn.append)
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
    from reticent.errors import Interrupted, ReticentError

    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(
            f"if it was charged, finish it with `{command}`; else run the command again", field="interrupted"
        ) from None
    except ReticentError as problem:
        problem.args = tuple(
            str(each)
            .replace(f"`reticent resume {release_id}`", f"`{command}`")
            .replace("`reticent resume`", f"`{command}`")
            for each in problem.args
        )
        raise


def _write_rehearsal(made: "Release", folder: Path) -> None:
    from reticent.files import check_new, write_new
    from reticent.report.page import page

    target = folder / f"rehearsal-{made.id}.html"
    check_new(target)
    write_new(target, page(made), private=False)
    typer.echo(f"report: {target}")


def remind_of_check(path: Path, plan: "Plan", rows: str) -> None:
    """One line where `check` has not been run on these rows and this codebook, as they are now."""
    from reticent.workflow.releasing import is_unchecked

    if is_unchecked(path, plan, rows):
        typer.echo(
            f"note: `reticent check {path}` has not been run on these rows and this codebook. What does not fit the codebook, "
            "such as levels in other case or a decimal comma, counts as missing, and no release says so."
        )


@contextmanager
def _bar(plan: "Plan") -> Iterator[Callable[[str], None]]:
    """A bar over the plan's steps, when somebody is watching."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from reticent.workflow.releasing import steps_of

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("releasing", total=steps_of(plan))
        yield lambda name: progress.update(task, advance=1)
