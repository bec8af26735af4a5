"""Runs are the same on any number of workers, go on where they were cut, and never mix with others."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from reticent.errors import PlanError, ResourceError
from reticent.lab.run import runner
from reticent.lab.run import runner as shards
from reticent.lab.run.experiment import Experiment, Outcome
from reticent.lab.run.summary import rows_of

ROOT = Path(__file__).parents[2]


def toss(index: int, seed: int, *, pause: float = 0.0) -> list[Outcome]:
    """Two estimates of zero."""
    time.sleep(pause)
    draws = np.random.default_rng(seed).normal(size=2)
    return [
        Outcome(method="toss", query=name, epsilon=1.0, truth=0.0, estimate=float(x), low=x - 1, high=x + 1)
        for name, x in zip("ab", draws, strict=True)
    ]


def experiment(pause: float = 0.0, **changes) -> Experiment:
    made = Experiment(name="toss", title="A toss", source="none", run=partial(toss, pause=pause), batch=3)
    return replace(made, **changes)


def test_one_and_two_workers_give_the_same_results(tmp_path):
    one = runner.run(experiment(), out=tmp_path / "one", runs=11, workers=1)
    two = runner.run(experiment(), out=tmp_path / "two", runs=11, workers=2)
    assert one.equals(two) and one.num_rows == 22
    assert one["run"].to_pylist() == sorted(one["run"].to_pylist())


def test_seeds_depend_on_name_seed_and_run_alone():
    made = experiment()
    seeds = [made.seed_of(index, 1) for index in range(200)]
    assert len(set(seeds)) == 200 and seeds == [made.seed_of(index, 1) for index in range(200)]
    assert made.seed_of(0, 2) != seeds[0] != experiment(name="other").seed_of(0, 1)
    assert made.seed_of(0, 1) == 12832437611888738288  # a result on disk depends on it: it may not change


def test_seeds_of_cases_do_not_move_when_others_join_them():
    """The naive seed, that of the run's number, moves."""
    few, more = (experiment(pieces=each, cases=each) for each in (("a", "b"), ("new", "b", "a")))
    for repeat in range(20):
        assert few.seed_of(2 * repeat, 1) == more.seed_of(3 * repeat + 2, 1)
        assert few.seed_of(2 * repeat + 1, 1) == more.seed_of(3 * repeat + 1, 1)
    assert len({few.seed_of(index, 1) for index in range(200)}) == 200
    naive = [experiment(pieces=each).seed_of(0, 1) for each in (("b", "a"), ("new", "b", "a"))]
    assert naive[0] == naive[1] == experiment().seed_of(0, 1)  # of `b` before, of `new` now


def test_more_runs_are_added_to_those_there_and_fewer_are_read(tmp_path):
    few = runner.run(experiment(), out=tmp_path, runs=4, workers=1)
    names = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "toss").glob("*.parquet")}
    more = runner.run(experiment(), out=tmp_path, runs=9, workers=1)
    assert more.slice(0, few.num_rows).equals(few) and more.num_rows == 18
    assert (
        names.items() <= {p.name: p.stat().st_mtime_ns for p in (tmp_path / "toss").glob("*.parquet")}.items()
    )
    assert runner.run(experiment(), out=tmp_path, runs=4, workers=1).equals(few)


KILLED = """
from pathlib import Path
from reticent.lab.run import runner
from tests.lab.test_runner import experiment
if __name__ == "__main__":
    runner.run(experiment(pause=0.05), out=Path({out!r}), runs=40, workers={workers})
"""


@pytest.mark.parametrize(("workers", "how"), [(1, "SIGKILL"), (2, "SIGKILL"), (2, "SIGINT")])
def test_a_cut_run_goes_on_where_it_stopped(tmp_path, workers, how):
    """Cut in the middle; the files there stay, the rest is made, and all is as if nothing had happened."""
    script = tmp_path / "killed.py"
    script.write_text(KILLED.format(out=str(tmp_path / "cut"), workers=workers))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, str(script)], env=environment, cwd=ROOT, **quiet)
    folder, deadline = tmp_path / "cut" / "toss", time.monotonic() + 60
    while len(list(folder.glob("runs-*"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(getattr(signal, how))
    assert process.wait(timeout=60) != 0
    before = {path.name: path.read_bytes() for path in folder.glob("runs-*")}
    assert 3 <= len(before) < 14
    resumed = runner.run(experiment(), out=tmp_path / "cut", runs=40, workers=1)
    assert all((folder / name).read_bytes() == data for name, data in before.items())
    assert resumed.equals(runner.run(experiment(), out=tmp_path / "whole", runs=40, workers=1))


def fall(index: int, seed: int) -> list[Outcome]:
    os._exit(9)


def test_a_worker_ended_from_outside_is_a_line_and_not_a_traceback(tmp_path):
    with pytest.raises(ResourceError, match="workers: one was ended from outside"):
        runner.run(experiment(run=fall), out=tmp_path, runs=8, workers=2)


def test_a_half_written_file_is_no_result(tmp_path):
    """What a power cut may leave behind has another name and is not read."""
    folder = tmp_path / "toss"
    whole = runner.run(experiment(), out=tmp_path, runs=3, workers=1)
    (folder / ".runs-0000003-0000005.parquet.ab.tmp").write_bytes(b"PAR1")
    assert runner.run(experiment(), out=tmp_path, runs=3, workers=1).equals(whole)
    assert runner.run(experiment(), out=tmp_path, runs=6, workers=1).num_rows == 12


def test_a_run_made_twice_is_read_once(tmp_path):
    """Two commands at once on one folder, with batches of different sizes."""
    whole = runner.run(experiment(), out=tmp_path, runs=6, workers=1)
    runner.make_batch(experiment(), tmp_path / "toss", range(1, 6), 1)
    assert runner.run(experiment(), out=tmp_path, runs=6, workers=1).equals(whole)


def test_other_parameters_seed_or_code_are_refused(tmp_path):
    runner.run(experiment(), out=tmp_path, runs=2, workers=1)
    with pytest.raises(PlanError, match="made with other params"):
        runner.run(experiment(params={"size": 3}), out=tmp_path, runs=2, workers=1)
    with pytest.raises(PlanError, match="made with other seed"):
        runner.run(experiment(), out=tmp_path, runs=2, workers=1, seed=2)
    note = tmp_path / "toss" / shards.BELONGS
    note.write_text(json.dumps(json.loads(note.read_text()) | {"code": "older"}))
    with pytest.raises(PlanError, match="made with other code"):
        runner.run(experiment(), out=tmp_path, runs=2, workers=1)


def test_results_are_tidy_parquet(tmp_path):
    runner.run(experiment(), out=tmp_path, runs=7, workers=1)
    table = pq.read_table(sorted((tmp_path / "toss").glob("runs-*.parquet")))
    assert table.num_rows == 14
    assert {"run", "method", "query", "epsilon", "truth", "estimate"} <= set(table.column_names)


def test_the_bar_is_off_when_nobody_watches(tmp_path, capsys):
    runner.run(experiment(), out=tmp_path, runs=2, workers=1)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("wrong", [{"method": "m"}, {"item": "i"}, {}, {"method": "m", "truth": 1.0}])
def test_an_outcome_is_an_estimate_or_an_item(wrong):
    with pytest.raises(PlanError):
        Outcome(**wrong)


@pytest.mark.parametrize("runs", [0, -1, 10**9])
def test_a_senseless_number_of_runs_is_refused(tmp_path, runs):
    with pytest.raises(PlanError, match="runs"):
        runner.run(experiment(), out=tmp_path, runs=runs)


def named(index: int, seed: int) -> list[Outcome]:
    """A line that says which run it was."""
    return [Outcome(method="m", query=str(index), truth=0.0, estimate=float(seed % 1000))]


PIECES = ("here/a/1", "here/b/1", "here/a/2", "gone/a/1")


def pieced(**changes) -> Experiment:
    made = Experiment(
        name="pieces", title="Pieces", source="none", run=named, runs=2, batch=1, pieces=PIECES,
        lacks=lambda piece: piece.startswith("gone"),
    )  # fmt: skip
    return replace(made, **changes)


def test_an_experiment_in_pieces_can_be_made_in_parts_with_the_same_numbers(tmp_path):
    """Two repeats of three pieces whose data are here: in one go, or those of one word first."""
    whole = runner.run(pieced(), out=tmp_path / "whole", workers=1)
    some = runner.run(pieced(), out=tmp_path / "parts", workers=1, only=["a", "here,gone"])
    rest = runner.run(pieced(), out=tmp_path / "parts", workers=1)
    assert whole["run"].to_pylist() == [0, 1, 2, 4, 5, 6] and some["run"].to_pylist() == [0, 2, 4, 6]
    assert rest.equals(whole) and pieced().repeats(whole) == 2
    assert len(list((tmp_path / "parts" / "pieces").glob("runs-*"))) == 6
    assert runner.run(pieced(), out=tmp_path / "parts", workers=1, skip=["b,2"])["run"].to_pylist() == [0, 4]


def test_one_repeat_of_pieces_is_the_beginning_of_two(tmp_path):
    one = runner.run(pieced(), out=tmp_path, runs=1, workers=1)
    assert runner.run(pieced(), out=tmp_path, runs=2, workers=1).slice(0, 3).equals(one)


@pytest.mark.parametrize("made", [pieced(), pieced(pieces=()), pieced(lacks=lambda _: True)])
def test_words_that_fit_no_piece_are_refused(tmp_path, made):
    """Of no piece, of an experiment without pieces, and where no data are at hand."""
    with pytest.raises(PlanError, match="only"):
        runner.run(made, out=tmp_path, only=["nothing"])
    assert not list(tmp_path.iterdir())


def test_what_an_experiment_tells_itself_replaces_the_summary():
    rows = [{"dataset": "here", "tvd1": 0.5}]
    assert rows_of(pieced(told=lambda _: rows), shards.COLUMNS.empty_table()) == rows
