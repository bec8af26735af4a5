"""Plans, codebooks, ledgers and releases from before the words moved: refused by name, rewritten, and known again."""

import json
import re
import shutil
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest

from reticent.errors import PlanError, ReticentError, SchemaError
from reticent.former import RENAMED, VALUES, FormerDigests, as_format_1, check_words, without_hubs
from reticent.plan.plan import plan_from, read_plan
from reticent.plan.upgrade import in_todays_words, upgrade
from reticent.privacy.ledger import Ledger
from reticent.release.curator import Curator
from reticent.release.format import FORMAT
from reticent.release.release import Release
from reticent.release.survey import Survey
from reticent.report.page import page
from reticent.schema.codebook import schema_from
from tests.tables import book, make_plan

BEFORE = Path(__file__).parents[1] / "fixtures" / "format-1"
PLANS = ("released", "cut", "every")
DIGESTS = json.loads((BEFORE / "digests.json").read_text())


def old(name: str) -> str:
    return (BEFORE / f"{name}.toml").read_text()


def read(text: str) -> dict:
    return tomllib.loads(text, parse_float=Decimal)


@pytest.fixture
def folder(tmp_path):
    """The folder of before with its plans and its codebook in today's words."""
    shutil.copytree(BEFORE, tmp_path / "held")
    for name in (*PLANS, "codebook"):
        (tmp_path / "held" / f"{name}.toml").write_text(upgrade(old(name)))
    return tmp_path / "held"


OLD_WORDS = {
    "ask": ({"ask": []}, "ask", "'statistic'"),
    "schema": ({"survey": {"source": "r", "schema": "c", "ledger": "l"}}, "survey.schema", "'codebook'"),
    "table": ({"survey": {"source": "r", "table": "t", "ledger": "l"}}, "survey.table", "'relation'"),
    "brought": ({"survey": {"brought": {"reach": 3}}}, "survey.brought", "'imputed_before'"),
    "repair": ({"repair": [{"kind": "edit"}]}, "repair", "[[edit]] and [[impute]]"),
    "kind": ({"impute": [{"kind": "donors"}]}, "impute[0].kind", "'method'"),
    "kind of an edit": ({"edit": [{"kind": "edit"}]}, "edit[0].kind", "not needed"),
    "near": ({"impute": [{"method": "donors", "near": ["a"]}]}, "impute[0].near", "'match'"),
    "model": ({"impute": [{"method": "model"}]}, "impute[0].method", "'regression'"),
    "line": ({"impute": [{"fill": "line"}]}, "impute[0].fill", "'predicted'"),
    "draws": ({"impute": [{"fill": "draws"}]}, "impute[0].fill", "'drawn'"),
    "margin": ({"statistic": [{"query": {"margin": ["sex"]}}]}, "statistic[0].query.margin", "'table'"),
    "error_bar": ({"statistic": [{"error_bar": {}}]}, "statistic[0].error_bar", "'interval'"),
    "holes": ({"synth": [{"holes": "available"}]}, "synth[0].holes", "'missing'"),
    "holes as a value": ({"synth": [{"missing": "holes"}]}, "synth[0].missing", "'category'"),
    "heaps": ({"synth": [{"heaps": {}}]}, "synth[0].heaps", "'point_masses'"),
}


@pytest.mark.parametrize("name", OLD_WORDS)
def test_an_old_word_is_refused_by_the_new_one_and_the_command(name):
    said, field, new = OLD_WORDS[name]
    with pytest.raises(PlanError) as problem:
        plan_from({"format": 2, **said}, book())
    assert problem.value.field == field
    assert new in str(problem.value) and "reticent upgrade" in str(problem.value)


def test_every_word_that_moved_is_refused():
    """So that a word added to the table cannot be forgotten above."""
    refused = {field.split(".")[-1].split("[")[0] for _, field, _ in OLD_WORDS.values()}
    assert {path[-1] for path in RENAMED} - {"imputed", "missing"} <= refused
    assert len(VALUES) == 2


def test_codes_of_missing_answers_have_their_own_key():
    column = {"kind": "integer", "bounds": [0, 9], "missing": [-1]}
    with pytest.raises(
        SchemaError, match=r"columns\.a\.missing: is called 'missing_codes' now; `reticent upgrade`"
    ):
        schema_from(book({"a": column}))
    assert schema_from(book({"missing": {"kind": "integer", "bounds": [0, 9]}})).columns["missing"]


@pytest.mark.parametrize("said", [1, 3, "2"])
def test_another_format_is_refused(said):
    data = {"format": said, "survey": {}}
    with pytest.raises(PlanError, match=r"^format: ") as problem:
        plan_from(data, book())
    assert ("reticent upgrade" in str(problem.value)) == (said == 1)
    with pytest.raises(SchemaError, match=r"^format: "):
        schema_from({**book(), "format": said})


# --- the digest --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_in_todays_words_is_known_by_its_old_digest(name, folder):
    """The digests were written by the code of before; another plan's is not taken for this one."""
    plan = read_plan(folder / f"{name}.toml")
    assert DIGESTS[name] in plan.former
    assert not any(DIGESTS[other] in plan.former for other in PLANS if other != name)
    assert plan.digest != DIGESTS[name]


def test_the_fixture_is_in_the_words_of_before():
    """The old digest is that of the old dictionary itself, so nothing was lost on the way there and back."""
    for name in PLANS:
        there_and_back = as_format_1(without_hubs(read(upgrade(old(name)))))
        assert there_and_back | {"format": 1} == read(old(name)) | {"format": 1}
        assert DIGESTS[name] in FormerDigests(read(old(name)), read(old("codebook")))


def test_partitions_that_were_cut_before_are_not_taken_for_todays(folder):
    """Identifiers are read by another rule now, so the pieces are others: the ledger refuses them under the old name."""
    assert read_plan(folder / "every.toml").partition.piece.binds != DIGESTS["binds"]


def digest(columns=None, **changed) -> str:
    return make_plan([{"mean": "age", "centre": "20"}], book(columns), **changed).digest


def test_ways_of_writing_a_plan_have_one_digest():
    """Amounts by their value, defaults written out or not, the format said or not."""
    plain = digest()
    for same in (
        {"epsilon": "1.0"},
        {"format": 2},
        {"asks": {0: {"interval": {"level": "0.950"}}}},
        {
            "asks": {
                0: {"missing": "available", "size": None, "query": {"centre": Decimal("20.0"), "mean": "age"}}
            }
        },
        {"release": {"id": "r1", "title": ""}},
        {"survey": {"source": "other.csv", "codebook": "b.toml", "ledger": "l.db", "relation": "x"}},
    ):
        assert digest(**same) == plain, same


def test_plans_that_ask_otherwise_have_another_digest():
    found = [
        digest(),
        digest(epsilon="1.01"),
        digest(release_id="r2"),
        digest(asks={0: {"missing": "complete"}}),
        digest(asks={0: {"interval": {"level": "0.9"}}}),
        digest(survey={"source": "r", "codebook": "c", "ledger": "l", "imputed_before": {"reach": 2}}),
        digest(edit=[{"if": "age > 90", "then": {"sex": "f"}}]),
        digest(impute=[{"method": "donors", "column": "sex", "match": ["age"]}]),
        digest(impute=[{"method": "donors", "column": "sex", "match": [{"column": "age", "by": "2"}]}]),
        digest({"age": {"kind": "integer", "bounds": [0, 98]}}),
        digest({"age": {"kind": "integer", "bounds": [0, 99]}}),
        digest({"age": {"kind": "integer", "bounds": [0, 99], "missing_codes": ["-9"]}}),
        digest({"age": {"kind": "integer", "bounds": [0, 99], "missing_codes": ["-9.0"]}}),
    ]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("levels", [["1", "01"], ["1.0", "1"]])
def test_levels_that_read_as_one_number_are_told_apart(levels):
    """A naive digest that takes all text for decimals cannot tell these plans; a level is text."""
    columns = {
        "level": {"kind": "categorical", "levels": levels, "text": True},
        "age": {"kind": "integer", "bounds": [0, 99]},
    }
    made = [digest(columns, edit=[{"if": "age > 90", "then": {"level": each}}]) for each in levels]
    assert made[0] != made[1]
    assert Decimal(levels[0]) == Decimal(levels[1])


def test_a_number_is_not_taken_for_a_name():
    """Piece 1 of this partition is the people of level "2", and the piece called "1" is not."""
    columns = {
        "g": {"kind": "categorical", "levels": ["2", "1"]},
        "age": {"kind": "integer", "bounds": [0, 99]},
    }
    made = [digest(columns, partition={"name": "p", "by": "g", "piece": piece}) for piece in (1, "1")]
    assert made[0] != made[1]


# --- the ledger --------------------------------------------------------------------------------------------------------


def test_a_release_of_before_repeats_without_a_charge_and_byte_for_byte(folder, tmp_path):
    ledger = Ledger.open(folder / "ledger.db")
    spent, plan = ledger.spent, read_plan(folder / "released.toml")
    survey = Survey(folder / "rows.csv", codebook=folder / "codebook.toml")
    made = Curator(ledger, pages={".html": page}).release(plan, survey, tmp_path / "out")
    assert ledger.spent == spent
    assert (tmp_path / "out" / "pay-1.json").read_bytes() == (
        BEFORE / "published" / "pay-1.json"
    ).read_bytes()
    assert made["mean pay"][0]["privacy_low"] < made["mean pay"][0]["value"]


def test_a_release_that_was_cut_off_before_is_resumed(folder, tmp_path):
    ledger, plan = Ledger.open(folder / "ledger.db"), read_plan(folder / "cut.toml")
    spent, survey = ledger.spent, Survey(folder / "rows.csv", codebook=folder / "codebook.toml")
    made = Curator(ledger).resume(plan, survey, tmp_path / "out")
    assert (
        made.document["format"] == FORMAT and ledger.spent == spent and ledger.state("pay-2") == "published"
    )
    assert Curator(ledger).release(plan, survey, tmp_path / "out").to_bytes() == made.to_bytes()


def test_another_plan_under_an_old_id_is_refused(folder, tmp_path):
    ledger, text = Ledger.open(folder / "ledger.db"), (folder / "released.toml").read_text()
    (folder / "released.toml").write_text(text.replace('epsilon = "20.0"', 'epsilon = "19"'))
    survey = Survey(folder / "rows.csv", codebook=folder / "codebook.toml")
    with pytest.raises(PlanError, match="belongs to another plan"):
        Curator(ledger).release(read_plan(folder / "released.toml"), survey, tmp_path / "out")


def test_a_release_of_format_1_is_read_in_todays_words():
    data = (BEFORE / "published" / "pay-1.json").read_bytes()
    made = Release.from_bytes(data)
    assert made.to_bytes() == data
    text = json.dumps(made.document)
    assert not any(
        f'"{word}":' in text for word in ("answers", "error_bar", "low", "high", "repairs", "margin")
    )
    assert made.document["statistics"][0]["interval"]["covers"] == "privacy noise"
    assert b"Pay # not a comment" in page(made)
    with pytest.raises(ReticentError, match="is not a release"):
        Release.from_bytes(data.replace(b"reticent-release/1", b"reticent-release/0"))


# --- rewriting ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*PLANS, "codebook"])
def test_upgrade_keeps_comments_order_and_lines(name):
    """Only the words move: with both texts' words taken out, the same is left; a second time nothing changes."""
    before, after = old(name), upgrade(old(name))
    comments = [line.partition("#")[2] for line in before.splitlines() if "#" in line]
    assert all(each in after for each in comments)
    names = [line for line in before.splitlines() if line.startswith(("name", "[release", "[columns"))]
    assert [line for line in after.splitlines() if line in names] == names
    assert upgrade(after) == after and read(after)["format"] == 2


STYLES = {
    "dotted": ('ask = [{name = "n", query.margin = ["sex"]}]\n', "statistic"),
    "quoted keys": ('[["ask"]]\n"error_bar" = {level = 0.9}\nname = \'#\'\n', "interval"),
    "literal text": ("[[ask]]\nname = '''[[ask]]\nerror_bar = 1'''\n", "statistic"),
    "windows": ("[[ask]]\r\nname = 'x' # ask\r\n", "statistic"),
    "edits in a list": ('repair = [{kind = "edit", if = "a", then = {b = 1}}]\n', "edit"),
    "an old kind last": ('[[repair]]\nif = "a"\nthen.b = 1\nkind = "edit"', "edit"),
}


@pytest.mark.parametrize("name", STYLES)
def test_upgrade_reads_toml_however_it_is_written(name):
    text, new = STYLES[name]
    made = upgrade(f"protect = {{}}\n{text}")
    assert new in json.dumps(read(made), default=str)
    assert "#" not in text or "#" in made
    assert "[[ask]]\nerror_bar = 1" not in text or "[[ask]]\nerror_bar = 1" in made


def test_upgrade_refuses_what_it_would_lose():
    """Edits and donors in one list need two keys; two words for one thing; a newer file; something else."""
    mixed = 'repair = [{kind = "edit", if = "a", then = {b = 1}}, {kind = "donors", near = ["a"]}]'
    for text, words in (
        (f"protect = {{}}\n{mixed}", "without losing something"),
        ("[protect]\n[survey]\nschema = 'a'\ncodebook = 'b'", "keep one of the two"),
        ("format = 3\n[protect]", "newer"),
        ("[tool.ruff]", "neither a plan nor a codebook"),
        ('[protect]\n[[repair]]\nkind = "model"\ncolumn = "x"', "--codebook"),
    ):
        with pytest.raises(PlanError, match=words):
            upgrade(text)


@pytest.mark.parametrize(("kind", "method"), [("integer", "regression"), ("ordinal", "classes")])
def test_a_model_is_named_by_its_column(kind, method):
    text = '[protect]\n[[repair]]\nkind = "model"  # filled\ncolumn = "x"\nfrom = ["y"]\nepsilon = "1"'
    made = upgrade(text, {"columns": {"x": {"kind": kind}}})
    assert f'method = "{method}"  # filled' in made
    assert in_todays_words(read(text), [method]) == read(made)


# --- what we write ourselves -------------------------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]
SPEAKS_OF_BEFORE = ("docs/howto/upgrade.md", "docs/decisions/")


def written() -> list[tuple[str, dict]]:
    """Every TOML block of our pages, and every plan and codebook of the lab."""
    found = []
    for path in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.toml")]):
        name, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        if not name.startswith(SPEAKS_OF_BEFORE):
            blocks = [text] if path.suffix == ".toml" else re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
            found += [(f"{name}, block {i}", read(block)) for i, block in enumerate(blocks)]
    return found


def test_every_block_of_our_own_is_in_todays_words():
    made = written()
    for name, data in made:
        check_words(data)
        assert data.get("format", 2) == 2, name
    assert len(made) > 40


def test_the_demonstration_of_before_is_read_in_todays_words():
    """A long plan as people have it, comments and all; the naive way of printing TOML anew would lose them."""
    text = (BEFORE / "demo.toml").read_text()
    made = upgrade(text)
    data, codebook = read(made), read((ROOT / "src/reticent/lab/state.codebook.toml").read_text())
    assert plan_from(data, codebook).asks and text.count("#") == made.count("#")


def test_donors_of_before_keep_their_hubs_and_are_known_with_and_without_the_word():
    """What went without saying is said by `upgrade`; a plan that says it is known by the digests it had before."""
    silent = {"impute": [{"method": "donors", "column": "sex", "match": ["age"]}]}
    said = {"impute": [{**silent["impute"][0], "bound": "hubs"}]}
    plans = [make_plan([{"count": "*"}], book(), **each) for each in (silent, said)]
    assert plans[0].repair.capped and not plans[0].repair.donors
    assert plans[1].repair.donors and plans[0].digest in plans[1].former
    assert plans[1].digest not in plans[0].former and plans[0].digest != plans[1].digest
    for text in (
        '[protect]\n[[repair]]\nkind = "donors" # near\ncolumn = "a"\n',
        '[protect]\n[[repair]]\ncolumn = "a"\nkind = "donors"',
    ):
        assert read(upgrade(text))["impute"] == [{"method": "donors", "bound": "hubs", "column": "a"}]
    inline = "[protect]\n[x]\n"
    assert (
        read(upgrade('repair = [{ kind = "donors", column = "a" }]\n' + inline))["impute"][0]["bound"]
        == "hubs"
    )
