"""References lead somewhere: every statement cited by number, and every rule, attack or input cited by code."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.catalogue import LISTED

ROOT = Path(__file__).resolve().parents[1]
STATEMENTS = ROOT / "docs" / "theory" / "statements"


def _references() -> ModuleType:
    spec = importlib.util.spec_from_file_location("references", ROOT / "tools" / "references.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


references = _references()


def names(text: str) -> list[str]:
    return [reference.name for reference in references.cited(text)]


def test_every_reference_leads_somewhere():
    """If this names a line: correct the reference, or write the statement it needs."""
    assert references.unresolved() == []


def made_up(word: str, number: str) -> str:
    """Put together here, so that this file does not cite it."""
    return f"{word}{number}"


@pytest.mark.parametrize(
    "reference",
    [
        made_up("THEORY ", "3.9"),
        made_up("THEORY ", "3.1z"),
        made_up("THEORY ", "44"),
        made_up("THEORY 2.1 and ", "2.9"),
        made_up("THEORY 2.2, 2.3; ", "19.9"),
        made_up("THEORY 2.5 to ", "2.8"),
        made_up("(R", "77)"),
        made_up("# covers T", "13-T58"),
        made_up("covers B", "999"),
        made_up("W", "40"),
        made_up("see L", "55."),
        made_up("S", "31"),
    ],
)
def test_a_made_up_reference_is_noticed(reference, tmp_path):
    """The naive twin, in a docstring of its own."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "x.py").write_text(f'"""A sum.\n\nTheorem     {reference}\n"""\n')
    found = references.unresolved(tmp_path)
    assert found and all(line.startswith("src/x.py:3: ") for line in found)


def test_references_are_read_as_they_are_written():
    assert names("THEORY 6.1, 6.2 and 6.5a; 2.1 to 2.4 for the noise") == [
        *("6.1", "6.2", "6.5a"),
        *("2.1", "2.2", "2.3", "2.4"),
    ]
    assert names("THEORY\n    7.4: k = 3 at epsilon 1, 0.5 and 2") == ["7.4"]
    assert names("THEORY 9, kappa; THEORY 3.5, U_k = 1 + V_k; Theorem 5.3.1") == ["9", "3.5"]
    assert names("# covers T13 B001-B003, L18") == ["T13", "B001", "B002", "B003", "L18"]
    assert names("x = 1  # noqa: B008, S102") == []
    assert names("L1 and T_k, W_0, R2, v1.R16, #B041, AB012, T13x") == []


def test_many_references_are_found():
    """The search is not empty by mistake."""
    found = [
        name for path in (ROOT / "src").rglob("*.py") for name in names(path.read_text(encoding="utf-8"))
    ]
    assert len(found) > 150
    assert {"2.1", "3.1a", "3.5a", "8.4"} <= set(found)


def test_the_catalogue_of_the_tests_is_on_the_page():
    """Every rule, attack, promise and input that tests can cover has its entry."""
    assert set(LISTED) - set(references.anchors()) == set()


def test_a_name_has_one_place(tmp_path):
    (tmp_path / "theory" / "statements").mkdir(parents=True)
    page = tmp_path / "theory" / "statements" / "01.md"
    page.write_text("# 1. Here {#1}\n")
    (tmp_path / "threats.md").write_text("| **B001-B003**{#B001} | a word |\n")
    assert references.anchors(tmp_path)["B002"] == "threats.md#B001"
    references.anchors.cache_clear()
    page.write_text("# 1. Here {#1}\n\n## And here {#1}\n")
    with pytest.raises(ValueError, match="twice"):
        references.anchors(tmp_path)


def test_headings_carry_their_own_number():
    """`## 3.1a The ring` has the anchor 3.1a, and stands on the page of section 3."""
    for page in STATEMENTS.glob("[0-9]*.md"):
        heads = re.findall(
            r"^#+ ([\w.]+?)\.? .*\{#([\w.]+)\}$", page.read_text(encoding="utf-8"), re.MULTILINE
        )
        assert heads, page.name
        for number, anchor in heads:
            assert number == anchor and int(number.partition(".")[0]) == int(page.name[:2])


def missing_files(text: str) -> list[str]:
    """Modules, tests and proofs that a page names and that are not there."""
    modules = [f"src/{name.replace('.', '/')}" for name in re.findall(r"`(reticent(?:\.\w+)+)`", text)]
    files = [name for name in modules if not (ROOT / f"{name}.py").is_file() and not (ROOT / name).is_dir()]
    paths = re.findall(r"`((?:tests|proofs)/[\w/]+\.\w+)`", text)
    return files + [path for path in paths if not (ROOT / path).is_file()]


@pytest.mark.parametrize("page", sorted(STATEMENTS.glob("*.md")), ids=lambda page: page.stem)
def test_statements_name_code_that_exists(page):
    assert missing_files(page.read_text(encoding="utf-8")) == []


def test_code_that_does_not_exist_is_noticed():
    text = (
        "used by `reticent.noise.laplace`, `reticent.noise.nowhere`, shown in `tests/noise/test_nothing.py`"
    )
    assert missing_files(text) == ["src/reticent/noise/nowhere", "tests/noise/test_nothing.py"]


def test_on_the_site_references_are_links_and_code_is_left_alone():
    html = "<h2>R09</h2><p>THEORY 2.1 to 2.3, (R09) <code>R09</code> <a href='x'>R09</a> THEORY as such</p>"
    address = {"2.1": "n/#2.1", "2.3": "n/#2.3", "R09": "t/#R09"}
    assert references.linked(html, address) == (
        '<h2>R09</h2><p>THEORY <a href="n/#2.1">2.1</a> to <a href="n/#2.3">2.3</a>, (<a href="t/#R09">R09</a>) '
        "<code>R09</code> <a href='x'>R09</a> THEORY as such</p>"
    )
