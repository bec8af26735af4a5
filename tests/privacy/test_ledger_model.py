"""The ledger against a model of a few lines, with rationals, for whatever order of steps Hypothesis finds."""

import os
import shutil
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from reticent.errors import BudgetError, LedgerError, PlanError
from reticent.privacy.ledger import Ledger
from reticent.privacy.ledger.sqlite import head_path
from tests.engine.conformance.server import server
from tests.privacy.ledgers import FILES, die, in_child, make, reserve

IDS = st.sampled_from(["a", "b", "c"])
PLANS = st.sampled_from(["p", "p", "p", "q"])
AMOUNTS = st.sampled_from(["0.1", "0.25", "0.3", "1", "2.000000000001"])


class LedgerMachine(RuleBasedStateMachine):
    """`model` maps an id to [plan, amount, state, answer, resumed]; spent is the plain sum of the amounts."""

    def __init__(self) -> None:
        super().__init__()
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = Path(tempfile.mkdtemp(dir=memory, prefix="reticent-test-"))
        self.path: Any = self.place()
        self.ledger = make(self.path, budget="2.5")
        self.budget, self.model, self.rights, self.receipts = Fraction("2.5"), {}, {}, []

    def place(self) -> Path | str:
        return self.folder / "a.db"

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def spent(self) -> Fraction:
        return sum((each[1] for each in self.model.values()), Fraction(0))

    @rule(name=IDS, plan=PLANS, amount=AMOUNTS)
    def reserve(self, name, plan, amount):
        known = self.model.get(name)
        if known is None and self.spent() + Fraction(amount) > self.budget:
            with pytest.raises(BudgetError):
                reserve(self.ledger, name, amount, plan)
        elif known is None:
            held = reserve(self.ledger, name, amount, plan)
            assert held.fresh and held.answer is None
            assert held.receipt.spent_before == as_text(self.spent())
            self.model[name] = [plan, Fraction(amount), "reserved", None, False]
            self.rights[name] = held
            self.receipts.append(held.receipt.as_dict())
        elif known[0] != plan:
            with pytest.raises(PlanError):
                reserve(self.ledger, name, amount, plan)
        elif known[2] == "reserved":
            with pytest.raises(LedgerError):
                reserve(self.ledger, name, amount, plan)
        else:
            assert reserve(self.ledger, name, amount, plan).answer == known[3]

    @rule(name=IDS, plan=PLANS)
    def resume(self, name, plan):
        known = self.model.get(name)
        if known is None or (known[0] == plan and known[2] == "reserved" and known[4]):
            with pytest.raises(LedgerError):
                self.ledger.resume(name, plan)
        elif known[0] != plan:
            with pytest.raises(PlanError):
                self.ledger.resume(name, plan)
        elif known[2] == "reserved":
            known[4], self.rights[name] = True, self.ledger.resume(name, plan)
        else:
            assert self.ledger.resume(name, plan).answer == known[3]

    @precondition(lambda self: self.rights)
    @rule(name=IDS, answer=st.binary(max_size=20))
    def commit(self, name, answer):
        held = self.rights.get(name)
        if held is not None and self.model[name][2] == "reserved":
            self.ledger.commit(held, answer)
            self.model[name][2:4] = ["committed", answer]
        elif held is not None:
            with pytest.raises(LedgerError):
                self.ledger.commit(held, answer)

    @rule(name=IDS)
    def publish(self, name):
        if self.model.get(name, [0, 0, "none"])[2] in ("none", "reserved"):
            with pytest.raises(LedgerError):
                self.ledger.publish(name, FILES)
        else:
            self.ledger.publish(name, FILES)
            self.model[name][2] = "published"

    @rule(step=AMOUNTS)
    def raise_budget(self, step):
        self.budget += Fraction(step) / 10
        if self.budget * 10**12 % 1:
            self.budget = Fraction(-(-self.budget * 10**12 // 1), 10**12)
        self.ledger.note("more", raise_budget_to=as_text(self.budget))

    @rule(name=IDS)
    def crash_after_a_charge(self, name):
        """A child charges and dies; the right dies with it."""
        if name not in self.model and self.spent() + 1 <= self.budget:
            in_child(lambda: (reserve(Ledger.open(self.path), name, "1"), die()))()
            self.model[name] = ["p", Fraction(1), "reserved", None, False]

    @rule()
    def open_again(self):
        self.ledger = Ledger.open(self.path)

    @rule(place=st.integers(0, 10**6))
    def tamper(self, place):
        """One byte changed is noticed; put back, all is well."""
        kept, heads = self.path.read_bytes(), head_path(self.path).read_bytes()
        changed = bytearray(kept)
        changed[place % len(kept)] ^= 0x55
        self.path.write_bytes(changed)
        with pytest.raises(LedgerError):
            Ledger.open(self.path, timeout=0.5).verify()
        for beside in ("-wal", "-shm", "-journal"):
            self.path.with_name(self.path.name + beside).unlink(missing_ok=True)
        self.path.write_bytes(kept)
        head_path(self.path).write_bytes(heads)

    @rule()
    def verify(self):
        self.ledger.verify(self.receipts)

    @invariant()
    def holds(self):
        assert self.ledger.spent == self.spent() <= self.budget == self.ledger.facts.budget
        for name in ("a", "b", "c"):
            known = self.model.get(name)
            assert self.ledger.state(name) == (known[2] if known else "none")


def as_text(amount: Fraction) -> str:
    return f"{float(amount):.12f}".rstrip("0").rstrip(".")


# The long run of L16 (500 examples of 50 steps) is asked for by RETICENT_EXAMPLES=500.
LedgerMachine.TestCase.settings = settings(
    max_examples=int(os.environ.get("RETICENT_EXAMPLES", "30")),
    stateful_step_count=50 if "RETICENT_EXAMPLES" in os.environ else 20,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


class TestModel(LedgerMachine.TestCase):
    # covers L16
    pass


class ServedMachine(LedgerMachine):
    """The same on a server."""

    def place(self) -> Path | str:
        os.environ["XDG_STATE_HOME"] = str(self.folder / "state")
        server().run("TRUNCATE reticent.entry")
        return "postgres:ledgers/model"

    @rule(place=st.integers(0, 10**6))
    def tamper(self, place):
        """One letter changed in one column of one row is noticed; put back, all is well."""
        count = len(list(self.ledger.entries()))
        column = ("kind", "body", "previous", "hash")[place % 4]
        number = place // 4 % count + 1
        where = f"WHERE ledger = 'model' AND number = {number}"
        server().run(f"UPDATE reticent.entry SET {column} = '~' || {column} {where}")
        with pytest.raises(LedgerError):
            Ledger.open(self.path).verify()
        server().run(f"UPDATE reticent.entry SET {column} = substr({column}, 2) {where}")


def test_the_model_holds_on_a_server(served):
    # covers L16
    few = settings(
        LedgerMachine.TestCase.settings, max_examples=int(os.environ.get("RETICENT_EXAMPLES", "6"))
    )
    run_state_machine_as_test(ServedMachine, settings=few)
