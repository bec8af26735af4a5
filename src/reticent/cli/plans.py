"""The commands for a plan: preview, rehearse, check, release, resume, synth and the demo.

`reticent synth` releases the synthetic tables of a plan and nothing else.
"""

from pathlib import Path
from typing import Annotated

import typer

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


def rehearse(plan: PlanFile, out: Out = None) -> None:
    """Run the plan on rows simulated from the codebook: uncharged, marked, not a release."""
    from reticent.cli.work import rehearse_plan

    rehearse_plan(plan, out)


def check(plan: PlanFile, data: Data = None, ledger: LedgerFile = None) -> None:
    """For the curator's eyes only: read the rows, show what is missing and what does not fit, and name other ledgers
    that keep a fingerprint of the same rows. CONFIDENTIAL."""
    from reticent.cli.work import check_plan

    check_plan(plan, data, ledger)


def release(
    plan: PlanFile,
    data: Data = None,
    ledger: LedgerFile = None,
    out: Out = None,
    debug: Annotated[bool, typer.Option("--debug", hidden=True)] = False,
) -> None:
    """Charge the privacy budget in the ledger, compute, and write the release and its report."""
    from reticent.cli.work import release_plan

    release_plan(plan, data=data, ledger=ledger, out=out)


def resume(
    release_id: Annotated[str, typer.Argument(metavar="ID", help="The release that was cut off.")],
    plan: Annotated[Path, typer.Option("--plan", help="Its plan.")] = Path("plan.toml"),
    data: Data = None,
    ledger: LedgerFile = None,
    out: Out = None,
) -> None:
    """Finish a release that was charged but cut off, as the ledger allows; no new charge."""
    from reticent.cli.work import release_plan

    release_plan(plan, data=data, ledger=ledger, out=out, resume=release_id)


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder to fill; made if missing.")] = Path("demo"),
    rows: Annotated[
        int, typer.Option("--rows", min=100, max=1_000_000, help="Respondents to simulate.")
    ] = 20_000,
) -> None:
    """Simulate a survey with missing answers and release twelve statistics and a table from it, with a report."""
    from reticent.cli.work import run_demo

    run_demo(out, rows)


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

    In a plan that holds nothing else this is `release`. Where a plan holds asks or cells too, they are neither answered
    nor charged: what is released is another plan, under the plan's id followed by -synth, and to release the whole plan
    later draws and charges its synthetic tables once more.
    """
    from reticent.cli.work import release_plan
    from reticent.plan.plan import read_synth_plan

    read = read_synth_plan(plan, rows=data, ledger=ledger)
    release_plan(
        plan, data=data, ledger=ledger, out=out, plan=read, resume=read.release_id if resume else None
    )
