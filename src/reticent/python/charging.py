"""Charges for work that Python asks for without a plan: reserve, read, commit, in that order and no other (R09).

The ledger is the one that plans charge, and so are the words it is told. Each call is a release of its own under a fresh
id: what is learned twice is charged twice, and a run that was cut off keeps its charge. `Params` has arguments by name, as
scikit-learn reads, sets and copies them.
"""

from collections.abc import Mapping, Sequence
from inspect import signature
from os import PathLike
from pathlib import Path
from secrets import token_hex
from typing import Any, ClassVar, Protocol, Self

from reticent.errors import PlanError
from reticent.notebook import html_table, paragraph
from reticent.plan.budgets import LARGE
from reticent.plan.digest import digest_of
from reticent.privacy.claim import Change, Claim, Unit, check_exact, in_unit
from reticent.privacy.ledger import Ledger, Origin, Reservation
from reticent.schema import Schema

Account = str | PathLike[str] | Ledger
"""A ledger, or where it lies."""


class Source(Protocol):
    """Whatever noise or draws come from."""

    @property
    def is_private(self) -> bool: ...


def open_account(account: Account | None) -> Ledger | None:
    """The ledger to be charged, if any. One that is not there is refused, never begun."""
    if account is None or isinstance(account, Ledger):
        return account
    return Ledger.open(Path(account))


def check_public(schema: Schema, change: Change) -> None:
    """What a plan would be refused for, whatever it asks."""
    if not schema.finished:
        raise PlanError("is marked unfinished; complete it and remove 'unfinished'", field="codebook")
    if schema.sample_size is not None and change is Change.ADD_REMOVE:
        raise PlanError("a public sample size goes with replaced = True", field="replaced")


def reserve(
    ledger: Ledger,
    what: str,
    *,
    words: Mapping[str, Any],
    codebook: Mapping[str, Any],
    schema: Schema,
    claim: Claim,
    files: Sequence[Origin],
) -> Reservation:
    """Charge `claim` in the ledger's unit, on disk, before a row is read. `words` are what was asked for, of rows in `files`."""
    check_public(schema, claim.change)
    ledger.check_alone(files)
    plan = digest_of({what: dict(words)}, codebook)
    return _charge(ledger, what, plan, dataset=schema.name, claim=claim, files=files)


def reserve_arrays(ledger: Ledger, what: str, *, words: Mapping[str, Any], claim: Claim) -> Reservation:
    """The same for arrays. They have no codebook and no name, and are taken for rows of the ledger's own survey."""
    plan = digest_of({what: dict(words)}, {})
    return _charge(ledger, what, plan, dataset=ledger.facts.dataset, claim=claim)


def refuse_replayed(*sources: Source) -> None:
    """Of a test's double nothing may be promised (R06)."""
    if not all(source.is_private for source in sources):
        raise PlanError("noise that can be replayed is charged to no ledger", field="ledger")


def _charge(
    ledger: Ledger, what: str, plan: str, *, dataset: str, claim: Claim, files: Sequence[Origin] = ()
) -> Reservation:
    check_exact(claim, field=what)
    if claim.epsilon > LARGE:
        raise PlanError(
            f"is above {LARGE}, which guarantees little; write it in a plan with accept_large = true",
            field="epsilon",
        )
    unit: Unit = "rho" if ledger.facts.unit == "rho" else "epsilon"
    counted = in_unit(claim, unit, field=what)
    return ledger.reserve(
        release_id=f"{what}-{token_hex(8)}",
        plan_hash=plan,
        dataset=dataset,
        change=claim.change.value,
        unit=unit,
        amount=counted.rho if unit == "rho" else counted.epsilon,
        claim={**counted.as_dict(), "accept_large": False},
        files=files,
    )


def _short(value: Any) -> str:
    """A value as a notebook shows it: an account by its name, a long one cut."""
    if isinstance(value, PathLike):
        return repr(Path(value).name)
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class Params:
    """Whatever keeps its arguments as they were given; they are checked when it is fitted."""

    _NAMES: ClassVar[tuple[str, ...]]

    def __repr__(self) -> str:
        """The arguments that are not at their default, short; nothing that was learned."""
        defaults = {name: each.default for name, each in signature(type(self).__init__).parameters.items()}
        said = [
            (name, getattr(self, name))
            for name in self._NAMES
            if getattr(self, name) is not defaults.get(name)
        ]
        shown = ", ".join(f"{name}={_short(value)}" for name, value in said if value != defaults.get(name))
        return f"{type(self).__name__}({shown})"

    def _repr_html_(self) -> str:
        claim = getattr(self, "claim_", None) if self._is_fitted else None
        state = f"fitted: {claim}" if claim is not None else "fitted" if self._is_fitted else "not fitted yet"
        rows = [(name, _short(getattr(self, name))) for name in self._NAMES]
        return paragraph(f"{type(self).__name__}, {state}") + html_table(("argument", "value"), rows)

    @property
    def _is_fitted(self) -> bool:
        return any(name.endswith("_") and not name.startswith("_") for name in vars(self))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments it was made with."""
        return {name: getattr(self, name) for name in self._NAMES}

    def set_params(self, **params: Any) -> Self:
        """Change arguments by name."""
        for name, value in params.items():
            if name not in self._NAMES:
                raise PlanError(f"{type(self).__name__} has no argument {name[:80]!r}", field="set_params")
            setattr(self, name, value)
        return self
