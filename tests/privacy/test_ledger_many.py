"""Many writers at once: never over budget, one charge per id."""

import json
import os
import threading
import time
from fractions import Fraction
from pathlib import Path

from reticent.errors import BudgetError, LedgerError
from reticent.privacy.ledger import Entry, Ledger
from tests.privacy.ledgers import FACTS, FILES, in_child, make, reserve

WRITERS = 16


def all_at_once(work) -> list[int]:
    """The status of each of 16 children, let go at the same moment."""
    gate, opener = os.pipe()

    def waiting(number: int) -> None:
        os.close(opener)
        os.read(gate, 1)
        work(number)

    waits = [in_child(lambda number=number: waiting(number)) for number in range(WRITERS)]
    os.close(opener), os.close(gate)
    return [wait() for wait in waits]


def test_one_id_at_once_is_charged_once(folder, path):
    """16 runs of the same release: one draws noise, the others get its bytes or are refused."""
    # covers L06
    make(path)

    def run(number: int) -> None:
        ledger = Ledger.open(path)
        held = reserve(ledger)
        if held.fresh:
            ledger.commit(held, b"noise of %d" % number)
            ledger.publish("r1", FILES)
            (folder / f"fresh-{number}").touch()
        elif held.answer != ledger.answer("r1"):
            raise RuntimeError("other bytes")

    assert set(all_at_once(run)) <= {0, LedgerError.status}
    assert len(list(folder.glob("fresh-*"))) == 1
    ledger = Ledger.open(path)
    ledger.verify()
    assert ledger.spent == 1 and ledger.state("r1") == "published"


def race(path: Path | str) -> None:
    """16 writers with 8 releases of 0.1 each, half of which fit."""
    make(path, budget="6.4")

    def run(number: int) -> None:
        ledger = Ledger.open(path)
        for turn in range(8):
            name = f"r{number}-{turn}"
            try:
                held = reserve(ledger, name, "0.1")
            except BudgetError:
                continue
            ledger.commit(held, name.encode())
            ledger.publish(name, FILES)

    assert set(all_at_once(run)) == {0}


def test_many_writers_never_go_over_budget(folder):
    """Exactly half is published and spent is their sum, exactly. One round here; the long run does twenty."""
    # covers L07
    for turn in range(int(os.environ.get("RETICENT_ROUNDS", "1"))):
        path = folder / str(turn) / "a.db"
        path.parent.mkdir()
        race(path)
        published = published_in(path)
        print(f"round {turn + 1}: {WRITERS} writers x 8 releases, {len(published)} fit; lost 0, too many 0")


def published_in(path: Path | str) -> list[Entry]:
    """What was published after a race, once it is seen that exactly half fit."""
    ledger = Ledger.open(path)
    ledger.verify()
    published = [each for each in ledger.entries() if each.kind == "publish"]
    assert len(published) == WRITERS * 8 // 2
    assert ledger.spent == Fraction("6.4") and ledger.left == 0
    return published


def test_many_writers_on_a_server_never_go_over_budget(served):
    """The same, each a connection of its own."""
    # covers L07
    race(served)
    published_in(served)


def test_a_file_read_then_written_goes_over_budget(folder):
    """The naive twin of the test above: look, then charge, with nothing held in between."""
    # covers L07
    path = folder / "naive.json"
    path.write_text("[]")

    def run(number: int) -> None:
        for _ in range(8):
            charges = json.loads(path.read_text() or "[]")
            if len(charges) < 64:
                time.sleep(0.002)  # the noise takes a moment
                (folder / f"{number}-{_}").touch()
                path.with_suffix(f".{number}").write_text(json.dumps([*charges, number]))
                os.replace(path.with_suffix(f".{number}"), path)

    all_at_once(run)
    published = len([each for each in folder.iterdir() if "naive" not in each.name])
    assert published > len(json.loads(path.read_text())) or published > 64


def test_threads_share_one_ledger(path):
    """Four threads of one process, as in the web app, through the same object."""
    # covers L07
    ledger = make(path, budget="1")
    done = []

    def run(number: int) -> None:
        for turn in range(5):
            try:
                name = f"r{number}-{turn}"
                ledger.commit(reserve(ledger, name, "0.1"), b"x")
                done.append(name)
            except BudgetError:
                pass

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    ledger.verify()
    assert len(done) == 10 and ledger.spent == 1


def test_two_who_start_the_same_ledger(path):
    """One starts it, the others are refused, and it is whole."""
    # covers L11
    statuses = all_at_once(lambda _: Ledger.create(path, **FACTS, budget="1"))
    assert sorted(statuses) == [0] + [LedgerError.status] * (WRITERS - 1)
    Ledger.open(path).verify()
