"""The package points one way, and the release path holds no door that a plan or a row could open.

Both are read off the source as a tree, so that nothing has to be imported or run to be judged.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "reticent"

ORDER = (
    *(
        "errors",
        "former",
        "exact",
        "notebook",
        "files",
        "services",
        "schema",
        "privacy",
        "prepare",
        "engine",
        "query",
        "sensitivity",
        "noise",
    ),
    *("refine", "models", "missing", "synth", "answer", "smallcells"),
    *("plan", "release", "preview", "report", "python", "workflow", "web", "cli"),
)
BEYOND = "lab"  # may use the library; of the library only the command line may use it
MAKES_UP_ROWS = ("lab", "release/survey.py", "synth/bootstrap.py")  # of the last, from released numbers alone

NEVER = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "random", "yaml"}
NUMPY_RANDOM = ("np.random", "numpy.random")
NEVER_CALLED = {"eval", "exec", "compile", "__import__", "mktemp", "system", "popen"}


def home(path: str) -> str:
    """The part of the package that a file belongs to."""
    return path.split("/")[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[str]:
    """Every module named by an import, wherever in the file it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = ("." * node.level) + (node.module or "")
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def wrong_way(path: str, text: str) -> list[str]:
    """Imports of `text` that point to the right, or reach for what belongs to one place only."""
    found, here = [], home(path)
    for module in imports(ast.parse(text)):
        first, _, rest = module.partition(".")
        if first == "":
            found.append(f"{path}: relative import")
        if first == "duckdb" and here != "engine":
            found.append(f"{path}: duckdb outside engine/")
        if first != "reticent" or rest in ("", "__version__"):
            continue
        there = rest.split(".")[0]
        if there == here or here == BEYOND:
            continue
        if there == BEYOND:
            if here != "cli":
                found.append(f"{path}: imports {BEYOND}")
        elif there not in ORDER or ORDER.index(there) > ORDER.index(here):
            found.append(f"{path}: imports {there}, which stands to its right")
    return found


ENGINE_NAME = "duckdb"  # of the one engine there is; its kind of file has the name as an ending


def names_an_engine(path: str, text: str) -> list[str]:
    """Where `text` names the engine by an import, a name or a word, though it stands outside `engine/`."""
    found = []
    for node in ast.walk(ast.parse(text)):
        said = _said(node)
        if any(ENGINE_NAME in each.lower() for each in said):
            found.append(f"{path}:{getattr(node, 'lineno', 0)}: names the engine; use engine/open.py")
    return found


def _said(node: ast.AST) -> list[str]:
    """The names that a node writes, and its text where it is that word alone: prose may say it."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return list(imports(node))
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
        return [node.value]
    return []


def open_doors(path: str, text: str) -> list[str]:
    """What the release path must not hold (S08): code from data, shells, other randomness, asserts."""
    found = []
    tree = ast.parse(text)
    makes_up_rows = path.startswith(MAKES_UP_ROWS)
    for module in imports(tree):
        if module.split(".")[0] in NEVER:
            found.append(f"{path}: imports {module}")
        if module.startswith("numpy.random") and not makes_up_rows:
            found.append(f"{path}: numpy.random")
        if module == "importlib.import_module" and path != "__init__.py":
            found.append(f"{path}: imports by name")
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            found.append(f"{path}:{node.lineno}: assert")
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            on_a_name = isinstance(node.func, ast.Name) or name in ("mktemp", "system", "popen")
            if name in NEVER_CALLED and on_a_name:
                found.append(f"{path}:{node.lineno}: {name}()")
            if any(k.arg == "shell" and not _is_false(k.value) for k in node.keywords):
                found.append(f"{path}:{node.lineno}: shell")
        if isinstance(node, ast.Attribute) and ast.unparse(node) in NUMPY_RANDOM and not makes_up_rows:
            found.append(f"{path}:{node.lineno}: numpy.random")
    return found


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def sources() -> Iterator[tuple[str, str]]:
    for file in sorted(SOURCE.rglob("*.py")):
        yield file.relative_to(SOURCE).as_posix(), file.read_text(encoding="utf-8")


def test_every_module_imports_from_its_left():
    """All files but the root, which only names where things are."""
    files = [(path, text) for path, text in sources() if path != "__init__.py"]
    assert len(files) > 80
    assert [line for path, text in files for line in wrong_way(path, text)] == []


def test_every_part_has_its_place_in_the_order():
    """A new package or module must be given a place before it can be imported."""
    assert {home(path) for path, _ in sources()} - {"__init__"} == {*ORDER, BEYOND}


def test_the_root_imports_nothing_of_ours_when_it_runs():
    """Names load lazily: outside `if TYPE_CHECKING` the root imports the standard library alone."""
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if not isinstance(node, ast.If)]
    assert not [module for module in imports(tree) if module.startswith("reticent")]


def test_the_release_path_has_no_open_door():
    """Every file of the package, at every depth."""  # covers S08
    assert [line for path, text in sources() for line in open_doors(path, text)] == []


def test_nobody_outside_the_engine_names_one():
    """The lab compares engines and writes their versions, and may."""
    outside = [(path, text) for path, text in sources() if home(path) not in ("engine", BEYOND)]
    assert len(outside) > 80
    assert [line for path, text in outside for line in names_an_engine(path, text)] == []


ENGINES_OWN = ("engine/duckdb/", "engine/postgres/", "engine/spark/", "engine/sources/", "engine/open.py")


def test_statements_take_an_engines_words_from_one_place():
    """What builds statements names no engine: its words, and how they are printed, stand in its own folder."""
    made = [(p, t) for p, t in sources() if home(p) == "engine" and not p.startswith(ENGINES_OWN)]
    assert len(made) > 12
    assert [line for path, text in made for line in names_an_engine(path, text)] == []
    assert names_an_engine("engine/sql/offender.py", "text = tree.sql('duckdb')")


@pytest.mark.parametrize(
    "text",
    [
        "from reticent.engine.duckdb.engine import DuckDBEngine",
        "def f():\n    from reticent.engine import duckdb",
        "def f(rows: 'DuckDBEngine'): ...",
        "def f(engine):\n    return engine.DuckDBEngine(1)",
        "def f(tree):\n    return tree.sql('duckdb')",
    ],
)
def test_an_engine_named_outside_is_caught(text):
    """The naive twin: each way to name it."""
    assert names_an_engine("release/offender.py", text)
    assert names_an_engine("cli/offender.py", "from reticent.engine.open import open_engine") == []


WRONG_WAYS = {
    "noise/loud.py": "from reticent.plan.plan import Plan",
    "schema/peek.py": "def f():\n    import reticent.engine.duckdb.engine",
    "answer/fast.py": "import duckdb",
    "report/sql.py": "from duckdb import connect",
    "release/truth.py": "from reticent.lab.world.state import people",
    "errors.py": "from reticent import files",
    "query/near.py": "from ..release import plan",
    "engine/new.py": "from reticent.surprise import thing",
}


@pytest.mark.parametrize("path", WRONG_WAYS)
def test_an_import_from_the_right_is_caught(path):
    """The naive twin: one module of each kind of offence."""
    assert wrong_way(path, WRONG_WAYS[path])


DOORS = {
    "pickle": "import pickle",
    "from pickle": "from pickle import loads",
    "eval": "eval('1')",
    "exec": "exec('x = 1')",
    "shell": "run('ls', shell=True)",
    "random": "import random",
    "numpy": "import numpy as np\nnp.random.default_rng()",
    "from numpy": "from numpy.random import default_rng",
    "numpy attribute": "from numpy import random",
    "assert": "def f(x):\n    assert x > 0",
    "by name": "from importlib import import_module",
    "temporary": "import tempfile\ntempfile.mktemp()",
}


@pytest.mark.parametrize("door", DOORS)
def test_an_open_door_is_caught(door):
    """The naive twin: each offence in a module of the release path."""
    assert open_doors("answer/offender.py", DOORS[door])


def test_made_up_rows_may_use_numpys_generator_and_nothing_else_may():
    text = "import numpy as np\nrows = np.random.default_rng()"
    assert open_doors("lab/new.py", text) == open_doors("release/survey.py", text) == []
    assert open_doors("release/curator.py", text)
