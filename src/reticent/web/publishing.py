"""The pages that lead to a release: the confirmation with its approvals, and the progress.

The id of a release stands in its plan before any form is shown, and the ledger charges an id once: a second click, a reload,
the back button or another tab finds the release that is there (W15).
"""

import json
from typing import Any

from starlette.responses import Response

from reticent.errors import PlanError, ReticentError
from reticent.exact import show
from reticent.plan.plan import Plan
from reticent.privacy.ledger import Approval, Ledger
from reticent.release.document import promised_section
from reticent.release.run import try_plan
from reticent.report.words import promise
from reticent.schema.public_files import published_words
from reticent.web import compose
from reticent.web.asked import Asked, elsewhere
from reticent.web.desk import ChangedError, PlanFile, ledger_key
from reticent.workflow.approving import add_approval, sign_plan, signer, standing
from reticent.workflow.releasing import get_ready, is_unchecked, rows_of


def confirm(asked: Asked, problem: str = "", status: int = 200) -> Response:
    """What the release promises and costs, what is left afterwards, and who has approved it."""
    plan = asked.plan
    view: dict[str, Any] = {"whole": None, "has_plan": False, "state": "draft", "busy": ""}
    try:
        whole = asked.desk.whole(plan)
        try_plan(whole)
        view["has_plan"] = True
        job = asked.desk.worker.job(whole)
        if job is not None and job.is_running:
            return elsewhere("plans", plan.name, "progress")
        view |= _confirmed(asked, plan, whole)
    except ReticentError as refused:
        problem = problem or refused.told
    return asked.page("confirm.html.j2", status=status, plan=plan, problem=problem, **view)


def _confirmed(asked: Asked, plan: PlanFile, whole: Plan) -> dict[str, Any]:
    book = asked.desk.ledger(whole)
    given, needed = standing(whole, book)
    own = signer(book, asked.desk.key) if asked.desk.key else None
    return {
        "whole": whole,
        "claim": whole.worded(whole.claim),
        "promise": promise({"published": True, **promised_section(whole, whole.claim)}),
        "sign": "ρ" if whole.unit == "rho" else "ε",
        "key": ledger_key(whole.ledger),
        "state": book.state(whole.release_id),
        "is_used_up": book.is_used_up(whole.release_id),
        "is_same": _is_same(whole, book),
        "busy": asked.desk.worker.running,
        **_amounts(whole, book),
        "given": given,
        "needed": needed,
        "approvers": list(book.sign_off.approvers) if book.sign_off else [],
        "own": own,
        "unchecked": is_unchecked(plan.path, whole, rows_of(plan.path, whole)),
        "files": [published_words(each) for each in whole.files if each.published],
        "names": [(product.noun, name) for product in whole.products for name in product.names],
    }


def _amounts(whole: Plan, book: Ledger) -> dict[str, Any]:
    """What the release costs, what it adds to what counts, and what is left before and after it."""
    budget, spent = book.facts.budget, book.spent
    more = book.growth(whole.cost, piece=whole.partition.piece if whole.partition else None, wave=whole.wave)
    after = budget - spent - more
    return {
        "cost": show(whole.cost),
        "more": "" if more == whole.cost else show(more),
        "left": show(book.left),
        "after": show(after) if after >= 0 else "",
        "spent": show(spent),
        "budget": show(budget),
        "shares": [float(each / budget) for each in (spent, more)],
    }


def _is_same(whole: Plan, book: Ledger) -> bool:
    """Whether the id of a plan is free in its ledger, or was charged for this very plan."""
    charged = book.plan(whole.release_id)
    return charged in (None, whole.digest) or charged in whole.former


def _as_shown(asked: Asked) -> Plan:
    """The plan, if it is still the one that the curator saw on the page."""
    whole = asked.desk.whole(asked.plan)
    if compose.one(asked.form, "digest") != whole.digest:
        raise ChangedError("the plan has changed since this page was shown; look at it again, then confirm")
    return whole


def approve(asked: Asked) -> Response:
    """Add an approval: signed with this desk's key, or one that was signed elsewhere and sent."""
    try:
        whole = _as_shown(asked)
        book = asked.desk.ledger(whole)
        sent = compose.one(asked.form, "approval")
        if sent:
            approval = Approval.read(_json(sent))
        elif asked.desk.key is not None:
            approval = sign_plan(whole, book, asked.desk.key)
        else:
            raise PlanError("paste the approval that was signed elsewhere", field="approval")
        add_approval(whole, book, approval)
    except ReticentError as refused:
        return confirm(asked, problem=refused.told, status=422)
    return elsewhere("plans", asked.plan.name, "confirm")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise PlanError(
            "is the line that `reticent ledger approve --detached` prints", field="approval"
        ) from None


def release(asked: Asked) -> Response:
    """Charge, compute, publish, in the worker's thread. A release that was begun is shown, never begun again."""
    try:
        whole = _as_shown(asked)
        state = asked.desk.ledger(whole).state(whole.release_id)
        if state == "none":
            asked.desk.worker.begin(get_ready(asked.plan.path, plan=whole))
    except ReticentError as refused:
        return confirm(asked, problem=refused.told, status=409)
    return elsewhere("plans", asked.plan.name, "progress")


def resume(asked: Asked) -> Response:
    """Finish a release that was cut off; no new charge."""
    try:
        whole = _as_shown(asked)
        asked.desk.worker.begin(get_ready(asked.plan.path, plan=whole, resume=whole.release_id))
    except ReticentError as refused:
        return confirm(asked, problem=refused.told, status=409)
    return elsewhere("plans", asked.plan.name, "progress")


def progress(asked: Asked) -> Response:
    """How far a release has come, in steps of its plan."""
    plan = asked.plan
    whole = asked.desk.whole(plan)
    job = asked.desk.worker.job(whole)
    book = asked.desk.ledger(whole)
    state = book.state(whole.release_id)
    is_running = job is not None and not job.is_over
    return asked.page(
        "progress.html.j2",
        plan=plan,
        whole=whole,
        job=job,
        key=ledger_key(whole.ledger),
        state=state,
        is_same=_is_same(whole, book),
        is_used_up=book.is_used_up(whole.release_id),
        is_running=is_running,
        problem=job.problem if job is not None and not is_running else "",
    )
