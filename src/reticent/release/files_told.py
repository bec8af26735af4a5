"""What leaves with a release because a file that the plan names holds it: group names, population totals."""

from typing import Any

from reticent.release.plan import Plan


def files_told(plan: Plan) -> dict[str, Any]:
    """Every such file with every text that is published from it; nothing for a plan that has all of it inside."""
    told = [each.as_dict() for each in plan.files if each.published]
    return {"public_files": told} if told else {}
