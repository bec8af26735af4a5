"""Lines of arrays, charged to a ledger where one is given: check, charge, read, keep, and only then hand out."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from reticent.errors import PlanError, ResourceError
from reticent.models.fit import Fit
from reticent.privacy.claim import Claim, check_exact, compose
from reticent.release.charging import Account, Source, open_account, refuse_replayed, reserve_arrays

Lines = tuple[Fit, ...]
FAILED = "could not be fitted as it was charged; nothing is handed out, and the charge stays"


def shape_of(x: Any, *, field: str) -> tuple[int, ...]:
    """The shape that `x` tells of itself, so that no row is read for it."""
    shape = getattr(x, "shape", None)
    if not isinstance(shape, tuple):
        raise PlanError("with a ledger, give an array or a frame, which tells its shape unread.", field=field)
    return shape


def claim_of(lines: Lines) -> Claim:
    """What the lines promise together."""
    return compose([fit.claim for fit in lines])


def fit_lines(
    account: Account | None,
    what: str,
    *,
    words: Mapping[str, Any],
    sources: Sequence[Source],
    nobody: Callable[[], Lines],
    read: Callable[[], Lines],
) -> tuple[Lines, dict[str, Any] | None]:
    """The lines that `read` finds, and the receipt of their charge, where there is a ledger.

    `nobody` fits the same lines to no rows: that tries the arguments and gives the claim, before a row is read. An
    estimator that is proved for ideal reals alone is refused here, ledger or not.
    """
    ledger = open_account(account)
    if ledger is not None:
        refuse_replayed(*sources)
    claim = check_exact(claim_of(nobody()), field="estimator")
    if ledger is None:
        return read(), None
    held = reserve_arrays(ledger, what, words=words, claim=claim)
    lines = _fenced(read, claim)
    if lines is None:
        raise ResourceError(FAILED, field="fit")
    ledger.commit(held, _kept(lines, claim))
    return lines, held.receipt.as_dict()


def _fenced(read: Callable[[], Lines], claim: Claim) -> Lines | None:
    """The lines, if they are what was charged. Whatever a fit says when it fails may hold something read from a row."""
    with suppress(Exception):
        lines = read()
        return lines if claim_of(lines) == claim else None
    return None


def _kept(lines: Lines, claim: Claim) -> bytes:
    """The lines as they were handed out, number for number."""
    told = [
        {
            "intercept": str(fit.intercept),
            "slopes": [str(slope) for slope in fit.slopes],
            "variance": str(fit.variance),
        }
        for fit in lines
    ]
    return json.dumps({"lines": told, "claim": claim.as_dict()}, sort_keys=True).encode()
