"""The synth-missing experiment: its pieces are the paper's figures, and each is judged as it says."""

import json
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from reticent.cli import lab as door
from reticent.errors import ReticentError
from reticent.lab.experiments import synth_missing as lab
from reticent.lab.experiments.synth_missing import figures, told
from reticent.lab.judge import classify
from reticent.lab.papers.synth_findings import findings
from reticent.lab.run import runner
from reticent.lab.run.experiment import Experiment, table_of
from reticent.lab.run.summary import rows_of
from reticent.lab.trials import fitting, points, tables, teaching
from reticent.lab.trials.masks import mask
from reticent.lab.trials.points import DOCUMENTED, EVERY_TARGET, Point
from reticent.privacy.claim import Change
from reticent.synth.base import MissingMethod
from reticent.synth.imputed import ImputeFirst

DOCS = Path(__file__).parents[2] / "docs" / "lab"
KEYS = ("dataset", "mask", "rate", "method", "strategy", "epsilon", "tvd1", "tvd2", "tvd3", "f1", "seconds")
QUICK = lab.experiment(("census",), setting=teaching.TrialSize(rows=400, judges=("tree", "naive-bayes")))


def at(text: str, repeat: int = 0) -> list:
    """The outcomes of one piece of the quick experiment."""
    index = repeat * len(QUICK.pieces) + QUICK.pieces.index(text)
    return QUICK.run(index, QUICK.seed_of(index, 1))


def values(text: str, repeat: int = 0) -> dict[str, float]:
    return {line.query.split("/")[0]: line.estimate for line in at(text, repeat)}


@pytest.fixture(scope="module")
def outcomes() -> pa.Table:
    """Two repeats of the floors, the baseline and two pieces of MST, on 400 people."""
    trees = {"census/MCAR/0.2/mst/holes/1", "census/MCAR/0.2/mst/holes/3"}
    quick = (*points.FLOORS, points.BASELINE[0])
    chosen = [i for i, p in enumerate(QUICK.pieces) if Point.read(p).method in quick or p in trees]
    made = {}
    for index in (repeat * len(QUICK.pieces) + i for repeat in range(2) for i in chosen):
        made[index] = QUICK.run(index, QUICK.seed_of(index, 1))
    return table_of(made)


@pytest.mark.parametrize("dataset", tables.NAMES)
def test_the_pieces_hold_all_four_figures_once(dataset):
    every = [piece for piece in lab.experiment().pieces if piece.startswith(f"{dataset}/")]
    assert len(set(every)) == len(every)
    pieces = [piece for piece in every if not piece.endswith(EVERY_TARGET)]
    assert all(str(Point.read(piece)) == piece for piece in pieces)
    strategies = ["holes" if each is MissingMethod.VALUES else str(each) for each in DOCUMENTED] + [
        "no-missing"
    ]
    needed = {f"MCAR/0.2/{method}/{s}/1" for method in ("privbayes", "mst", "aim") for s in strategies}
    for method in ("privbayes", "mst", "aim"):
        for line in (f"{method}/complete", f"{method}/available", f"{method}/holes"):
            rates = ("0.01", "0.05", "0.1", "0.2", "0.3")
            needed |= {f"MCAR/{rate}/{line}/{e}" for rate in rates for e in "13"}
            kinds = ("MCAR/0.1", "MAR/0.1", "MNAR/0.1", "MAR/0.35", "MAR/0.2")
            needed |= {f"{kind}/{line}/1" for kind in kinds}
            needed |= {f"MCAR/0.2/{line}/{e}" for e in ("0.5", "1", "3", "5", "10", "none")}
    needed |= {"MCAR/0.2/bootstrap/none/none", "MCAR/0.2/decode-floor/none/none"}
    needed.add("MCAR/0.2/independent/available/1")
    assert needed <= {piece.removeprefix(f"{dataset}/") for piece in pieces}


def test_the_document_s_own_settings_are_among_the_pieces():
    """Figure 5 at 10 %, three splits of every paid imputation, ten bins, the printed PrivBayes, F1 over all targets."""
    pieces = set(lab.experiment().pieces)
    needed = {
        f"adult/MCAR/0.1/privbayes/{way}/{e}"
        for way in ("complete", "available")
        for e in ("0.5", "1", "3", "5", "10", "none")
    }
    for dataset in tables.FILES:
        needed |= {f"{dataset}/MCAR/0.2/privbayes/impute-mean-{split}/1" for split in (25, 50, 75)}
        needed |= {f"{dataset}/MCAR/0.2/dpautogan/impute-kamino-{split}/3" for split in (25, 50, 75)}
        needed |= {f"{dataset}-10/MCAR/0.2/{m}/available/1" for m in ("independent", "privbayes", "aim")}
        needed |= {f"{dataset}/MCAR/0.2/privbayes-printed/{way}/1" for way in ("holes", "no-missing")}
        needed |= {f"{dataset}/{kind}/privbayes/complete/1/every-target" for kind in ("MAR/0.1", "MCAR/0.2")}
    assert needed <= pieces
    assert "national/MCAR/0.3/privbayes/complete/1/every-target" not in pieces


def test_a_piece_says_its_bins_and_its_split():
    point = Point.read("adult-10/MCAR/0.2/privbayes/impute-mean-25/none/every-target")
    assert (point.table, point.bins, point.way, point.share) == ("adult", 10, "impute-mean", Fraction(1, 4))
    assert point.amount is None and point.row()["dataset"] == "adult-10"
    plain = Point.read("adult/MCAR/0.2/aim/impute-mean/1")
    assert (plain.bins, plain.way, plain.share) == (16, "impute-mean", None)


def test_kamino_completes_rows_for_others_at_the_share_that_is_said():
    point = Point.read("adult/MCAR/0.2/dpautogan/impute-kamino-25/3")
    made = fitting.method_for(point.method, point.way, point.share)
    assert isinstance(made, ImputeFirst) and (made.imputer.name, made.name) == ("kamino", "dpautogan")
    assert made.share == Fraction(1, 4) and fitting.missing_of(point.way) is MissingMethod.MODEL


@pytest.mark.parametrize("dataset", [name for name in tables.NAMES if tables.at_hand(name)])
def test_every_piece_can_be_fitted(dataset):
    """Each method is asked before any row is read; a run of a day should not end at its last piece."""
    table = tables.trial(dataset)
    for point in map(Point.read, lab.experiment((dataset,)).pieces):
        if point.method not in points.FLOORS:
            given = table, point.method, point.amount, point.bins
            domain, spend = fitting.domain_and_spend(*given)
            method = fitting.method_for(point.method, point.way, point.share)
            method.check(domain, fitting.missing_for(point.method, point.way), spend)


def test_f1_over_every_target_is_the_mean_of_each(monkeypatch):
    """From one set of synthetic rows; a piece of its own, which measures nothing else."""
    table = tables.trial("census", rows=300)
    setting = teaching.TrialSize(rows=300, judges=("tree",), most_every=200)
    rng = np.random.default_rng(3)
    kept = []

    def make(flags):
        kept.append(flags)
        return table.codes[flags]

    found = teaching.taught_every(table, make, rng, setting)
    rows = np.random.default_rng(3).permutation(table.codes[kept[0]])
    args = rows, table.codes[~kept[0]], table.schema, table.columns
    each = [classify.mean_f1(*args, targets=[t], using=("tree",), most=200) for t in table.columns]
    assert len(kept) == 1 and found == pytest.approx(np.mean(each))
    one = classify.mean_f1(*args, targets=[tables.TARGETS["census"]], using=("tree",), most=200)
    assert found != one


def test_the_printed_privbayes_is_told_the_number_of_rows():
    """It is proved for a public number of rows, one of them replaced; with other methods nothing is declared."""
    table = tables.trial("census", rows=300)
    domain, spend = fitting.domain_and_spend(table, "privbayes-printed", Fraction(1), 16)
    assert domain.schema.sample_size == 300 and spend.change is Change.REPLACE
    assert fitting.domain_and_spend(table, "aim", None, 10)[0].axes != domain.axes


def test_a_row_says_everything_about_its_point(outcomes):
    rows = rows_of(QUICK, outcomes)
    assert all(set(KEYS) | {"runs", "complete"} <= set(row) for row in rows)
    assert {row["runs"] for row in rows} == {2} and QUICK.repeats(outcomes) == 2
    assert len(rows) == len({tuple(row[key] for key in KEYS[:6]) for row in rows})
    assert all(0 <= row[f"tvd{k}"] <= 1 for row in rows for k in (1, 2, 3))
    json.dumps(rows, allow_nan=False)


def test_rows_are_means_over_repeats(outcomes):
    row = next(r for r in told(outcomes) if r["method"] == "mst" and r["strategy"] == "holes" and r["f1"])
    text = f"census/{row['mask']}/{row['rate']:g}/mst/holes/{row['epsilon']:g}"
    found = [values(text, repeat) for repeat in range(2)]
    assert found[0]["tvd2"] != found[1]["tvd2"]
    assert row["tvd2"] == np.mean([f["tvd2"] for f in found]) and row["f1"] == np.mean(
        [f["f1"] for f in found]
    )
    assert row["complete"] == (~mask("census", row["mask"], row["rate"], rows=400).any(axis=1)).sum()


def test_floors_are_floors_and_classifiers_judge_the_stated_points_alone(outcomes):
    rows = told(outcomes)
    floor = next(r for r in rows if r["method"] == "decode-floor")
    assert [floor[f"tvd{k}"] for k in (1, 2, 3)] == [0, 0, 0] and floor["epsilon"] is None
    assert {(r["epsilon"], r["rate"]) for r in rows if r["f1"] is not None} == {(None, 0.2), (3.0, 0.2)}


def test_a_plain_install_is_told_before_the_first_piece(monkeypatch, tmp_path):
    """Without scikit-learn: pieces with classifiers are refused at once, the others run, and nothing was made before."""
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ReticentError, match="scikit-learn"):
        runner.run(QUICK, out=tmp_path / "a", runs=1, workers=1, only=["mst", "holes", "0.2"])
    assert not list((tmp_path / "a").rglob("*.parquet"))
    made = runner.run(QUICK, out=tmp_path / "b", runs=1, workers=1, only=["independent", "0.1", "1"])
    assert made.num_rows > 0


def row(strategy, tvd2, f1=None, epsilon=1.0):
    """One of PrivBayes on Adult."""
    where = {"dataset": "adult", "mask": "MCAR", "rate": 0.2, "method": "privbayes", "complete": 1068.0}
    return {**where, "strategy": strategy, "epsilon": epsilon, "tvd1": tvd2, "tvd2": tvd2, "f1": f1}


def test_findings_are_read_off_the_rows():
    """By hand: complete rows half as good, available cells a quarter better than those; no row, no finding."""
    rows = [row("no-missing", 0.1), row("complete", 0.2), row("available", 0.15)]
    found = {r["item"]: r for r in findings(rows)}
    utility = found["Finding: loss of utility, at most 20 % missing, to"]
    assert (utility["value"], utility["printed"]) == (pytest.approx(100), 190)
    assert found["Finding: gain by adaptive methods, 2-way, up to"]["value"] == pytest.approx(25)
    complete = found["complete rows of Adult, MCAR 20 %, about"]
    assert (complete["value"], complete["printed"]) == (1068, 1000)
    assert not any("F1" in item for item in found)
    assert findings([]) == []


def test_findings_on_f1_are_read_at_the_document_s_own_setting():
    """Over every column, a tenth missing, each pair at its epsilon; one target with a fifth missing is another number."""
    tenth = {"rate": 0.1}
    rows = [
        {**row("no-missing", 0.1, 0.9), "f1_every": 0.8},
        {**row("complete", 0.2, 0.1), **tenth, "f1_every": 0.6},
        {**row("available", 0.2), **tenth, "f1_every": 0.75},
        {**row("complete", 0.2), "f1_every": 0.3},
        {**row("no-missing", 0.1, epsilon=3.0), "method": "dpautogan", "f1_every": 0.5},
        {**row("complete", 0.1, epsilon=3.0), **tenth, "method": "dpautogan", "f1_every": 0.45},
    ]
    found = {r["item"]: r for r in findings(rows)}
    lost = [found[f"Finding: loss of F1 at 10 % missing, {end}"] for end in ("from", "to")]
    assert [r["value"] for r in lost] == pytest.approx([10, 25])
    assert [r["printed"].digits for r in lost] == ["4", "18.5"]
    assert found["Finding: gain by adaptive methods, F1, up to"]["value"] == pytest.approx(25)
    single = [row("no-missing", 0.1, 0.8, 3.0), row("complete", 0.2, 0.6, 3.0)]
    assert not any("F1" in r["item"] for r in findings(single))


def test_findings_on_the_adaptive_methods_are_read_at_a_tenth_missing():
    """Of tables on their own bins alone: those with another number of bins are the same table once more."""
    tenth = {"rate": 0.1, "strategy": "available"}
    rows = [
        row("no-missing", 0.1),
        {**row("available", 0.12), **tenth},
        {**row("available", 0.9), **tenth, "dataset": "adult-10"},
        {**row("no-missing", 0.1), "dataset": "adult-10"},
        {**row("no-missing", 0.08), "method": "kamino"},
        {**row("available", 0.09), **tenth, "method": "kamino-i"},
        {**row("available", 0.2, epsilon=0.5), **tenth},
        {**row("available", 0.3, epsilon=0.5), **tenth, "method": "kamino-i"},
    ]
    found = {r["item"].removeprefix("Finding: "): r for r in findings(rows)}
    equal = {name: r["value"] for name, r in found.items() if "no-missing line" in name}
    assert equal == {
        "adaptive methods equal the no-missing line, adult, privbayes": pytest.approx(1.2),
        "adaptive methods equal the no-missing line, adult, kamino-i": pytest.approx(1.125),
    }
    choice = found["which method, epsilon up to which PrivBayesE"]
    assert (choice["value"], choice["printed"]) == (1.0, 1.0)


def test_without_missing_cells_the_mask_does_not_matter(monkeypatch):
    """The same seed with every answer gone: the rows of `no-missing` are the same, others are not."""
    before = {s: values(f"census/MCAR/0.2/mst/{s}/3") for s in ("no-missing", "available")}
    lost = mask("census", "MCAR", 0.2, rows=400)
    monkeypatch.setattr(lab, "mask", lambda *_, **__: lost | (np.arange(len(lost)) % 2 == 0)[:, None])
    after = {s: values(f"census/MCAR/0.2/mst/{s}/3") for s in ("no-missing", "available")}
    same = [before["no-missing"][k] == after["no-missing"][k] for k in ("tvd1", "tvd2", "f1")]
    assert all(same) and before["available"]["tvd2"] != after["available"]["tvd2"]


def test_held_out_rows_are_not_learned_from(monkeypatch):
    """What is synthesized for the classifiers is four fifths of the table, and what they are tried on the rest."""
    seen = {}
    monkeypatch.setattr(
        teaching.classify, "mean_f1", lambda made, held, *_, **__: seen.update(made=made, held=held) or 0.5
    )
    values("census/MCAR/0.2/bootstrap/none/none")
    assert len(seen["made"]) == 320 and len(seen["held"]) == 80
    assert not {tuple(r) for r in seen["made"].tolist()} & {tuple(r) for r in seen["held"].tolist()}


def test_charts_are_drawn_for_each_figure(outcomes):
    made = figures(outcomes)
    assert set(made) == {f"synth-{x}" for x in ("strategies", "rates", "rates-3", "silence", "epsilons")}
    for chart in made.values():
        assert chart["data"]["values"] and chart["title"]["subtitle"]


def test_without_its_data_a_piece_is_left_out(monkeypatch, tmp_path):
    monkeypatch.setenv("RETICENT_DATA", str(tmp_path))
    made: Experiment = lab.experiment()
    names = {made.pieces[i % len(made.pieces)].split("/")[0] for i in made.wanted(2)}
    assert names == {"census"}


def test_one_piece_can_be_run_from_the_command_line(tmp_path):
    """The whole census, columns one by one, at epsilon a half."""
    words = "--only", "census", "--only", "independent", "--only", "0.5"
    done = CliRunner().invoke(
        door.app,
        ["run", "synth-missing", "--runs", "1", "--out", str(tmp_path), "--workers", "1", "--json", *words],
    )
    said = json.loads(done.stdout)
    assert said["runs"] == 1 and [(r["dataset"], r["epsilon"]) for r in said["rows"]] == [("census", 0.5)]


def test_a_piece_depends_on_its_seed_alone(tmp_path):
    """Made by the runner or by hand, in whichever order."""
    text = "census/MCAR/0.2/mst/holes/1"
    table = runner.run(QUICK, out=tmp_path, runs=1, workers=1, only=["mst", "holes", "1", "0.2", "MCAR"])
    assert table["estimate"].to_pylist() == [line.estimate for line in at(text)]


PRINTED = tuple(  # lines whose rates, epsilons and kinds of silence the page prints for all five tables
    line
    for line in points.LINES
    if line not in (("mst", "complete"), ("aim", "complete"), ("chain", "available"))
)


def measured() -> dict[tuple, dict]:
    """The rows behind the page, by what they are of."""
    made = json.loads((DOCS / "synth-missing.json").read_text())["rows"]
    return {tuple(row[key] for key in KEYS[:6]): row for row in made if "item" not in row}


def page_lines(found: dict[tuple, dict]) -> list[str]:
    """The lines that six tables of the page must have: strategies, ratios, kinds, rates, epsilons and classifiers."""
    datasets = (*tables.FILES, "census")

    def by_chance(dataset: str, method: str, strategy: str, epsilon: float | None = 1.0) -> dict:
        return found[dataset, "MCAR", 0.2, method, strategy, epsilon]

    def short(value: float, digits: int = 3) -> str:
        return f"{value:.{digits}f}".removeprefix("0")

    def strategies(method: str, strategy: str, epsilon: float | None = 1.0) -> str:
        rows = [by_chance(dataset, method, strategy, epsilon) for dataset in datasets]
        cells = [f"{short(row['tvd1'])} / {short(row['tvd2'])}" for row in rows]
        return f"| `{method}` | `{strategy}` | {' | '.join(cells)} |"

    def ratios(method: str, strategy: str) -> str:
        cells = []
        for dataset in datasets:
            ours = by_chance(dataset, method, strategy)["tvd2"]
            own, alone = by_chance(dataset, method, "no-missing"), by_chance(dataset, *points.BASELINE)
            cells.append(f"{ours / own['tvd2']:.2f}, {ours / alone['tvd2']:.2f}")
        return f"| `{method}`, `{strategy}` | {' | '.join(cells)} |"

    def depending(method: str, strategy: str) -> str:
        rows = [found[dataset, "MAR", 0.2, method, strategy, 1.0] for dataset in datasets]
        cells = [f"{short(row['tvd1'], 4)} / {short(row['tvd2'], 4)}" for row in rows]
        return f"| `{method}` | `{strategy}` | {' | '.join(cells)} |"

    def adult(method: str, strategy: str, rate: float, epsilon: float | None) -> str:
        return short(found["adult", "MCAR", rate, method, strategy, epsilon]["tvd2"])

    def by_rate(method: str, strategy: str) -> str:
        cells = [
            " / ".join(adult(method, strategy, float(rate), e) for e in (1.0, 3.0)) for rate in points.RATES
        ]
        return f"| `{method}` | `{strategy}` | {' | '.join(cells)} |"

    def by_epsilon(method: str, strategy: str) -> str:
        epsilons = [None if word == "none" else float(word) for word in points.EPSILONS]
        cells = [adult(method, strategy, 0.2, epsilon) for epsilon in epsilons]
        return f"| `{method}` | `{strategy}` | {' | '.join(cells)} |"

    def taught(method: str, strategy: str, mask: str, said: str, epsilon: float | None = 3.0) -> str:
        cells = [short(found[d, mask, 0.2, method, strategy, epsilon]["f1"]) for d in datasets]
        return f"| `{method}` | `{strategy}` | {said} | {' | '.join(cells)} |"

    return [
        *(strategies(m, s) for m in points.METHODS for s in points.STRATEGIES),
        *(strategies(*points.BASELINE), strategies("bootstrap", "none", None)),
        *(ratios(m, s) for m in ("mst", "aim") for s in ("available", "holes")),
        *(make(*each) for make in (depending, by_rate, by_epsilon) for each in PRINTED),
        *(taught(*each, mask, mask) for each in PRINTED for mask in ("MCAR", "MAR")),
        *(taught(method, "no-missing", "MCAR", "none") for method in points.METHODS),
        *(taught(floor, "none", "MCAR", "none", None) for floor in points.FLOORS),
    ]


def test_the_page_says_how_much_of_it_was_run():
    """Every row is of a piece of the experiment; what is missing is counted where a reader sees it."""
    found = measured()
    wanted = {Point.read(piece) for piece in lab.experiment().pieces if not piece.endswith(EVERY_TARGET)}
    known = {tuple(point.row()[key] for key in KEYS[:6]): point for point in wanted}
    assert set(found) <= set(known)
    run = [key for key, row in found.items() if row["tvd2"] is not None]
    assert f"{len(run):,} of {len(wanted):,} points" in (DOCS / "synth-missing.md").read_text()
    every = [piece for piece in lab.experiment().pieces if piece.endswith(EVERY_TARGET)]
    judged = [row for row in found.values() if row.get("f1_every") is not None]
    told = " ".join((DOCS / "synth-missing.md").read_text().split())
    assert f"F1 over every target was run at {len(judged)} of {len(every)} points" in told
    for key in run:
        assert all(found[key][f"tvd{k}"] is not None for k in (1, 2, 3))
        assert (found[key]["f1"] is not None) == lab.is_classified(known[key])


def test_the_page_prints_the_numbers_that_were_measured():
    """Every line of six tables, whole; a page that lacks a line, or has one digit otherwise, is found out."""
    page = (DOCS / "synth-missing.md").read_text().splitlines()
    wanted = page_lines(measured())
    assert not set(wanted) - set(page)
    for line in wanted:
        wrong = line[:-3] + str((int(line[-3]) + 1) % 10) + line[-2:]
        assert set(wanted) - {wrong if each == line else each for each in page} == {line}


def short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def learned_lines(found: dict[tuple, dict]) -> list[str]:
    """Adult at 20 % and epsilon 1: the learned methods that were run, with the baseline and `aim` beside them."""
    names = ("independent", "aim", "chain", "kamino", "kamino-i", "misgan", "dpctgan", "dpautogan")
    made = []
    for (dataset, mask_, rate, method, strategy, epsilon), row in found.items():
        is_beside = method not in ("independent", "aim") or strategy == "available"
        here = (dataset, mask_, rate, epsilon) == ("adult", "MCAR", 0.2, 1.0) and method in names
        if here and is_beside and row["tvd2"] is not None and strategy[-2:] not in points.SPLITS:
            far = " / ".join(short(row[f"tvd{k}"]) for k in (1, 2, 3))
            made.append(f"| `{method}` | `{strategy}` | {far} | {row['seconds']:.0f} s | {row['runs']} |")
    return made


NAMES = {"adult": "Adult", "bank": "Bank", "br2000": "BR2000", "national": "National", "census": "census"}
NOT_RUN = "–"


def settings_lines(found: dict[tuple, dict]) -> list[str]:
    """F1 over every target, where it was run."""
    made = []
    for (dataset, mask_, rate, method, strategy, epsilon), row in found.items():
        if row.get("f1_every") is not None:
            told = "none" if epsilon is None else f"{epsilon:g}"
            where = f"{NAMES[dataset]} | {mask_} {100 * rate:g} % | `{method}` | `{strategy}` | {told}"
            made.append(f"| {where} | {short(row['f1_every'])} |")
    return made


def across(found: dict[tuple, dict], names: tuple[str, ...], *at) -> list[str]:
    """The 1-way and 2-way distances of one line on several tables, or that it was not run."""
    rows = [found.get((name, *at)) for name in names]
    return [
        f"{short(row['tvd1'])} / {short(row['tvd2'])}" if row and row["tvd2"] is not None else NOT_RUN
        for row in rows
    ]


def strategy_lines(found: dict[tuple, dict]) -> list[str]:
    """Figure 2 for the three families, the printed PrivBayes and ten bins: a column for each table."""
    made = []
    for family in points.FAMILIES:
        for method, way in family.strategies:
            cells = across(found, tuple(tables.FILES), "MCAR", 0.2, method, way, float(family.epsilon))
            made.append(f"| `{method}` | `{way}` | {family.epsilon} | {' | '.join(cells)} |")
    for way in ("holes", "impute-random", "impute-mean", "impute-model", "no-missing"):
        cells = across(found, tuple(tables.FILES), "MCAR", 0.2, points.PRINTED, way, 1.0)
        made.append(f"| `{points.PRINTED}` | `{way}` | 1 | {' | '.join(cells)} |")
    tens = tuple(f"{name}-10" for name in tables.FILES)
    for method, way in (
        *((m, "no-missing") for m in points.METHODS), points.BASELINE, *((m, "available") for m in points.METHODS)
    ):  # fmt: skip
        cells = across(found, tens, "MCAR", 0.2, method, way, 1.0)
        made.append(f"| `{method}`, 10 bins | `{way}` | 1 | {' | '.join(cells)} |")
    return made


def swept_lines(found: dict[tuple, dict]) -> list[str]:
    """Rates, kinds of silence and epsilons at 10 %: whole lines of complete rows and of adaptive methods."""

    def line(*at) -> dict:
        row = found.get(at)
        return row if row and row["tvd2"] is not None else {}

    def told(start: str, rows: list[dict | None]) -> list[str]:
        """One line if all its points were run; None is a point that nobody asks for."""
        if {} in rows:
            return []
        cells = [short(row["tvd2"]) if row else NOT_RUN for row in rows]
        return [f"{start} | {' | '.join(cells)} |"]

    made = []
    families = [pair for family in points.FAMILIES[1:] for pair in family.lines]
    for dataset, name in NAMES.items():
        for method in points.METHODS:
            for way in ("complete", "available"):
                rows = [line(dataset, "MCAR", float(rate), method, way, 1.0) for rate in points.RATES]
                made += told(f"| {name} | `{method}` | `{way}`", rows)
    for dataset, name in NAMES.items():
        for method, way in [("chain", "available"), *families]:
            epsilon = 3.0 if "gan" in method else 1.0
            asked = [
                rate for rate in (0.1, 0.2, 0.3) if dataset != "national" or rate < 0.3 or method == "chain"
            ]
            rates = [line(dataset, "MCAR", rate, method, way, epsilon) for rate in asked]
            rates += [None] * (3 - len(rates))
            kinds = [line(dataset, kind, rate, method, way, epsilon) for kind, rate in KINDS]
            made += told(f"| {name} | `{method}` | `{way}` | {epsilon:g}", [*rates, *kinds])
    epsilons = [None if word == "none" else float(word) for word in points.EPSILONS]
    for method, way in [*points.LINES, *families]:
        rows = [line("adult", "MCAR", 0.1, method, way, epsilon) for epsilon in epsilons]
        made += told(f"| `{method}` | `{way}`", rows)
    return made


KINDS = (("MAR", 0.1), ("MNAR", 0.1), ("MAR", 0.35))


@pytest.mark.parametrize(
    ("lines", "least"), [(learned_lines, 5), (settings_lines, 0), (strategy_lines, 42), (swept_lines, 40)]
)
def test_the_page_prints_what_was_run_later(lines, least):
    """Every such line, whole, and nothing like it that was not run."""
    page = (DOCS / "synth-missing.md").read_text().splitlines()
    wanted = lines(measured())
    assert len(wanted) >= least and not set(wanted) - set(page)


def test_what_was_measured_keeps_what_was_asked_for():
    """With a fifth missing, on three tables: near its own figure without holes, and far below single columns."""
    found = measured()

    def two(dataset: str, method: str, strategy: str) -> float:
        return found[dataset, "MCAR", 0.2, method, strategy, 1.0]["tvd2"]

    for dataset, most in {"adult": 0.050, "bank": 0.030, "br2000": 0.038}.items():
        ours, alone = two(dataset, "mst", "available"), two(dataset, *points.BASELINE)
        assert ours <= 1.25 * two(dataset, "mst", "no-missing") and ours <= 0.7 * alone and ours < most
        assert two(dataset, "aim", "available") < ours
    for method in points.METHODS:
        mar = {s: found["adult", "MAR", 0.2, method, s, 1.0]["tvd1"] for s in ("available", "holes")}
        assert mar["holes"] < mar["available"]
    f1 = found["adult", "MAR", 0.2, "aim", "holes", 3.0]["f1"]
    assert f1 >= 0.95 * found["adult", "MCAR", 0.2, "aim", "no-missing", 3.0]["f1"]
