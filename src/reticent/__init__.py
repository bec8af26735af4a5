"""reticent: differentially private releases from surveys that people did not finish answering.

The names below load what they need when first used, so that importing the package costs little.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from reticent.plan.plan import Plan as Plan
    from reticent.plan.plan import read_plan as read_plan
    from reticent.preview.products import Preview as Preview
    from reticent.privacy.claim import Claim as Claim
    from reticent.privacy.ledger import Ledger as Ledger
    from reticent.python.curator import Curator as Curator
    from reticent.python.donor_imputer import DonorImputer as DonorImputer
    from reticent.python.missing import ask_missing as ask_missing
    from reticent.python.missing import describe_missing as describe_missing
    from reticent.python.missing import draw_missing as draw_missing
    from reticent.python.private_imputer import PrivateImputer as PrivateImputer
    from reticent.python.private_regression import PrivateRegression as PrivateRegression
    from reticent.python.synthesizer import Synthesizer as Synthesizer
    from reticent.refine.combine import combine as combine
    from reticent.release.release import Release as Release
    from reticent.release.survey import Survey as Survey
    from reticent.schema import Schema as Schema
    from reticent.schema import read_schema as read_schema

_HOMES = {
    "Claim": "reticent.privacy.claim",
    "Curator": "reticent.python.curator",
    "DonorImputer": "reticent.python.donor_imputer",
    "Ledger": "reticent.privacy.ledger",
    "Plan": "reticent.plan.plan",
    "Preview": "reticent.preview.products",
    "PrivateImputer": "reticent.python.private_imputer",
    "PrivateRegression": "reticent.python.private_regression",
    "Release": "reticent.release.release",
    "Schema": "reticent.schema",
    "Survey": "reticent.release.survey",
    "Synthesizer": "reticent.python.synthesizer",
    "ask_missing": "reticent.python.missing",
    "combine": "reticent.refine.combine",
    "describe_missing": "reticent.python.missing",
    "draw_missing": "reticent.python.missing",
    "read_plan": "reticent.plan.plan",
    "read_schema": "reticent.schema",
}


__all__ = ["__version__", *_HOMES]  # noqa: PLE0604 - names that are loaded when asked for


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'reticent' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
