"""`reticent synth`: release the synthetic tables of a plan and nothing else."""

from typing import Annotated

import typer

from reticent.cli.plans import Data, LedgerFile, Out, PlanFile


def add_to(app: typer.Typer) -> None:
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
    from reticent.release.synth_only import read_synth_plan

    read = read_synth_plan(plan, rows=data, ledger=ledger)
    release_plan(
        plan, data=data, ledger=ledger, out=out, plan=read, resume=read.release_id if resume else None
    )
