"""Pages print what is computed, or what was measured and kept beside them; a changed digit is noticed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reticent.lab.experiments import (
    amplification,
    amplification_missing,
    anonymity,
    donors_example,
    donors_figures,
    noise_laws,
    partition,
    poststratify,
    poststratify_example,
)
from reticent.lab.run.experiment import Outcome

DOCS = Path(__file__).parents[2] / "docs" / "lab"
Lines = dict[str, Outcome]


def by_item(lines: list[Outcome]) -> Lines:
    return {line.item or "": line for line in lines}


def line(name: str, *cells: str) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def short(value: float, digits: int) -> str:
    """Without the zero before the point, as on the pages."""
    return f"{value:.{digits}f}".removeprefix("0") if value < 1 else f"{value:.{digits}f}"


def amplified() -> Iterator[str]:
    found = by_item(amplification.run(0, 0))
    rates, bounds = (
        [found[f"{what}, epsilon {e}"] for e in amplification.EPSILONS]
        for what in ("largest rate", "epsilon at rate 1/10")
    )
    yield line("largest β, printed", *(short(x.printed, 3) for x in rates))
    yield line("largest β, by formula", *(short(x.as_printed, 5) for x in rates))
    yield line("ε′ at β = 1/10, printed", "N/A", *(short(x.printed, 2) for x in bounds[1:]))
    yield line("ε′ at β = 1/10, by formula", *(short(x.as_printed, 5) for x in bounds))
    yield line("ε′ at β = 1/10, ours", *(short(x.value, 5) for x in bounds))


def blocks() -> Iterator[str]:
    found = by_item(poststratify_example.run(0, 0))
    names = [each.name for each in poststratify_example.CANDIDATES.strategies]
    for sample in "AB":
        weights = [found[f"weight, {sample}, {block}"] for block in poststratify_example.BLOCKS]
        counts = [found[f"in sample {sample}, {block}"] for block in poststratify_example.BLOCKS]
        yield line(f"in sample {sample}, printed", *(x.printed.digits for x in counts))
        yield line(f"weight in {sample}, printed", *(x.printed.digits for x in weights))
        yield line(f"weight in {sample}, by formula", *(f"{x.as_printed:.2f}" for x in weights))
        chances, sds, scores = (
            [found[f"{what}, {sample}, {name}"] for name in names]
            for what in ("chance at epsilon 0.01", "sd at epsilon 1", "score")
        )
        yield line("score, by formula", *(short(x.as_printed, 3) for x in scores))
        yield line("chance at ε = 0.01, printed (7.2)", *(short(x.printed, 3) for x in chances))
        yield line("chance, by formula", *(short(x.as_printed, 4) for x in chances))
        yield line("chance, ours", *(short(x.value, 4) for x in chances))
        yield line("sd at ε = 1, printed (7.4)", *(f"{x.printed:.0f}" for x in sds))
        yield line("sd, by formula", *(f"{x.as_printed:.1f}" for x in sds))
        yield line("sd, ours", *(f"{x.value:.1f}" for x in sds))


def anonymous() -> Iterator[str]:
    found = {(x.item, x.query): x.value for x in anonymity.run(0, 0)}
    for way in ("local recoding", "global recoding"):
        for what, digits in (("k", 0), ("distinct l", 0), ("t", 3)):
            pieces = [found[f"{what}, piece {n + 1}", way] for n in range(anonymity.PIECES)]
            ends = [
                found[f"{what}, {where}", way] for where in ("before the partition", "pieces put together")
            ]
            told = ", ".join(short(x, digits) for x in pieces)
            yield line(f"{what}, {way}", short(ends[0], digits), told, short(ends[1], digits))


def laws() -> Iterator[str]:
    found = by_item(noise_laws.run(0, 0))
    for epsilon, m in (("0.1", 6), ("1", 8), ("4", 6)):
        at = f"epsilon {epsilon}, beta epsilon/{m}"
        sds = [found[f"epsilon sd/S of {name}, {at}"].value for name in noise_laws.CALIBRATIONS]
        yield line(f"{epsilon}, {m}", *(f"{x:.3f}" for x in sds))


PAGES = {
    "amplification-table.md": amplified,
    "poststratify-example.md": blocks,
    "anonymity.md": anonymous,
    "noise-laws.md": laws,
}


@pytest.mark.parametrize("page", PAGES)
def test_the_page_prints_what_is_computed(page):
    printed, wanted = (DOCS / page).read_text(encoding="utf-8").splitlines(), list(PAGES[page]())
    assert len(wanted) >= 3 and [each for each in wanted if each not in printed] == []
    last = wanted[-1].rstrip(" |")
    assert f"{last[:-1]}{(int(last[-1]) + 1) % 10} |" not in printed


def test_sums_and_losses_in_sentences_are_those_computed():
    page = (DOCS / "poststratify-example.md").read_text(encoding="utf-8")
    found = by_item(poststratify_example.run(0, 0))
    for sample in "AB":
        whole, rounded = (found[f"expected sd, {sample}{more}"] for more in ("", ", rounded"))
        assert all(f"{x:.2f}" in page for x in (whole.as_printed, whole.value, rounded.as_printed))
    page = (DOCS / "amplification-missing.md").read_text(encoding="utf-8")
    coins = [x for x in amplification_missing.run(0, 0) if (x.item or "").startswith("Example 5.1,")]
    assert all(f"{x.value:.4f}" in page for x in coins)
    page = (DOCS / "donors-figures.md").read_text(encoding="utf-8")
    found = [x for x in donors_example.run(0, 0) if x.value is not None]
    deltas = [x.value for x in found if "delta at epsilon" in (x.item or "")]
    curves = [x.value for x in found if "under the curve" in (x.item or "")]
    assert (len(deltas), len(curves)) == (2, 3)
    assert all(f" {x:.3f} " in page for x in deltas) and all(f" {short(x, 3)} " in page for x in curves)


def measured(name: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads((DOCS / f"{name}.json").read_text(encoding="utf-8"))
    assert made["name"] == name
    return made


def test_the_page_on_counts_prints_what_was_measured():
    page, made = (DOCS / "poststratify.md").read_text(encoding="utf-8"), measured("poststratify")
    assert f"{made['runs']} runs" in page
    rows = {(r["method"], r["query"], r["epsilon"]): r for r in made["rows"] if "item" not in r}
    for query in poststratify.FIGURES:
        for method in ("reticent", "thesis", "naive-samp", "naive-pop"):
            row = rows[method, query, 5.0]
            cells = " | ".join(f"{row[name]:,.0f}" for name in ("bias", "sd", "rmse"))
            assert f"| `{method}` | {cells} |" in page and f"| `{method}` | {cells}1 |" not in page
        errors = [
            f"{rows[m, query, 1.0]['rmse']:,.0f}" for m in ("reticent", "thesis", "naive-samp", "naive-pop")
        ]
        assert line(query, *errors) in page


def test_the_page_on_donors_prints_what_was_measured_and_the_printed_digits():
    page, made = (DOCS / "donors-figures.md").read_text(encoding="utf-8"), measured("donors-figures")
    rows = {(r["item"], r["query"]): r for r in made["rows"] if "item" in r}
    for each in donors_figures.QUESTIONS:
        ratios = [
            rows[f"{each.figure}, error of ignore over that of {m}", each.name]
            for m in ("published", "reticent-size-known")
        ]
        told = ratios[0]["as_printed"]
        cells = [f"{told:.{0 if told > 30 else 1}f}", *(f"{r['value']:.1f}" for r in ratios)]
        assert line(each.figure, each.name, *cells) in page
        for method in each.methods:
            row = rows[f"{each.figure}, mean squared error, {method}", each.name]
            assert row["printed"] == each.printed(method)
            value = f"{row['value']:,.0f}" if row["value"] > 1 else f"{1e6 * row['value']:.1f} × 10⁻⁶"
            assert f"| {each.name} | `{method}` |" in page and f"| {value} |" in page
    assert all(
        f"| {digits} |" in page for digits in ("389899.14", "397.25", "1.3", "116.9", "1180.3", "33 × 10⁻⁶")
    )


def test_the_page_on_pieces_prints_what_was_measured():
    page, made = (DOCS / "partition.md").read_text(encoding="utf-8"), measured("partition-full")
    assert f"{made['runs']:,} runs" in page
    rows = {(r["item"], r.get("epsilon")): r for r in made["rows"] if "item" in r}
    for text in partition.SMALL:
        whole, piece = (
            rows[f"variance of the share, {method}{partition.LAPLACE}", float(text)]
            for method in (partition.SHARED, partition.PIECE)
        )
        cells = [f"{100 * r[name] ** 0.5:.3f}" for r in (whole, piece) for name in ("as_printed", "value")]
        assert f"| {float(text):g} | {' | '.join(cells)} |" in page
