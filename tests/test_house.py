"""The measuring stick measures: what is planted is found, and what differs is not."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TWIN = """
def fit(rows, budget):
    \"\"\"{words}\"\"\"
    check(rows)
    first = sums(rows)
    second = noise(first, budget)  # {words}
    third = solve(second)
    told = claim(budget)
    return third, {end}
"""


@pytest.fixture(scope="module", autouse=True)
def tools():
    sys.path.insert(0, str(ROOT / "tools"))
    yield
    sys.path.remove(str(ROOT / "tools"))


@pytest.fixture(scope="module")
def package(tools) -> dict[str, ast.Module]:
    """Every file of the package, parsed once."""
    from house import trees

    return trees()


def test_a_copy_with_other_words_is_found_and_another_ending_is_not():
    """Comments and docstrings may differ; six lines of code of seven do not make seven."""
    from lookalike import blocks

    one, other = TWIN.format(words="one", end="told"), TWIN.format(words="other", end="told")
    (block,) = blocks({"a.py": one, "b.py": "import os\n" + other})
    assert (block.one, block.other, block.size) == ("a.py:2", "b.py:3", 7)
    assert blocks({"a.py": one, "b.py": other}, least=8) == []
    assert blocks({"a.py": one, "b.py": other.replace("first", "last")}) == []


def test_names_and_ways_are_counted():
    from house import imported, naming, twice, unreached

    files = {
        "__init__.py": ast.parse("HOMES = {'Plan': 'reticent.plan'}"),
        "plan.py": ast.parse("def f():\n    from reticent.query.kinds import Mean\nclass Part: ..."),
        "cli/__init__.py": ast.parse("import reticent.plan"),
        "query/__init__.py": ast.parse(""),
        "query/kinds.py": ast.parse("class Part: ...\nclass Mean: ...\nclass _Part: ..."),
        "query/lost.py": ast.parse("class _Part: ..."),
    }
    assert unreached(files) == ["query/lost.py"]
    assert twice(files) == {"Part": ["plan.py", "query/kinds.py"]}
    assert naming(files)["Mean"] == 1 and naming(files)["Count"] == 0
    assert "reticent.query.kinds.Mean" in set(imported(files["plan.py"]))


def test_no_public_class_name_is_defined_twice(package):
    """And a second class of a name that is there would be seen."""
    from house import twice

    assert twice(package) == {}
    planted = {**package, "lab/second.py": ast.parse("class Ledger: ...")}
    assert set(twice(planted)) == {"Ledger"}


def test_a_kind_of_query_is_named_in_at_most_four_files(package):
    """By every name it could have: nobody takes the module of the kinds whole. And a ladder of cases would be seen."""
    from house import MOST_KINDS, naming

    counts = naming(package)
    assert max(counts.values()) <= MOST_KINDS == 4 and min(counts.values()) >= 3
    assert [path for path, tree in package.items() if takes_kinds_whole(tree)] == []
    for whole in (
        "import reticent.query.kinds",
        "from reticent.query import kinds",
        "import reticent.query.kinds as k",
    ):
        assert takes_kinds_whole(ast.parse(whole))
    ladder = ast.parse("from reticent.query.kinds import KINDS, Mean, Quantile")
    assert not takes_kinds_whole(ladder)
    assert naming({**package, "report/ladder.py": ladder})["Mean"] == counts["Mean"] + 1 > MOST_KINDS


def takes_kinds_whole(tree: ast.Module) -> bool:
    """Whether a file takes the module, or everything in it, and so every kind without a name."""
    for node in ast.walk(tree):
        names = [alias.name for alias in getattr(node, "names", []) if isinstance(alias, ast.alias)]
        if isinstance(node, ast.Import) and "reticent.query.kinds" in names:
            return True
        module = node.module if isinstance(node, ast.ImportFrom) else None
        if (module == "reticent.query" and "kinds" in names) or (
            module == "reticent.query.kinds" and "*" in names
        ):
            return True
    return False


def test_a_command_or_a_public_name_reaches_every_module(package):
    """But for those of the lab that a page calls from Python. And a module that nobody reaches would be seen."""
    from house import FROM_PYTHON, unreached

    assert unreached(package) == sorted(FROM_PYTHON)
    planted = {**package, "engine/lost.py": ast.parse("import reticent.lab.papers.donors")}
    assert unreached(planted) == sorted([*FROM_PYTHON, "engine/lost.py"])


def test_what_is_called_from_python_alone_belongs_to_the_lab_and_is_named_where_it_says():
    from house import FROM_PYTHON, module_of

    assert [path for path in FROM_PYTHON if not path.startswith("lab/")] == []
    lost = [
        path for path, page in FROM_PYTHON.items() if module_of(path) not in (ROOT / page).read_text("utf-8")
    ]
    assert lost == []


def test_a_module_started_by_its_name_is_reached():
    from house import unreached

    files = {
        "__init__.py": ast.parse(""),
        "cli/__init__.py": ast.parse(
            "COMMAND = ['-m', 'reticent.drawn']\nWORDS = 'reticent.lost is not meant'"
        ),
        "drawn.py": ast.parse(""),
        "lost.py": ast.parse(""),
    }
    assert unreached(files) == ["lost.py"]


def test_a_walk_notes_calls_inside_the_package_alone():
    from walks import visited

    from reticent.exact import show

    assert [code.co_name for code in visited(lambda: show(1))][:1] == ["show"]
    assert visited(lambda: max(1, 2)) == []


def test_every_public_name_has_a_docstring(package):
    """Also one whose name a colleague would understand: the reference pages print docstrings."""
    from house import undocumented

    assert undocumented(package) == []
    planted = {
        "a.py": ast.parse('"""A."""\ndef f(): ...\nclass C:\n    """C."""\ndef _g(): ...'),
        "b.py": ast.parse("x = 1"),
    }
    assert undocumented(planted) == ["b.py", "a.py:f"]


def test_code_is_not_said_twice_beyond_the_goal():
    """Look-alike blocks stay at or below their goal; a copied front of a fit once made 66 of them."""
    from house import MOST_BLOCKS, SOURCE, blocks

    texts = {path.relative_to(SOURCE).as_posix(): path.read_text("utf-8") for path in SOURCE.rglob("*.py")}
    assert len(blocks(texts)) <= MOST_BLOCKS
