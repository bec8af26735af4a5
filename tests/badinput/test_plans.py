"""A plan or codebook that does not fit: status 2, one line naming the field, no file, ledger as it was."""

import os
import re
import time
from fractions import Fraction

import pytest

from reticent.plan.plan import read_plan
from tests.badinput.house import House, assert_refused, assert_untouched, run

# covers B082
EPSILONS = {
    "zero": '"0"',
    "negative": '"-1"',
    "minus zero": '"-0"',
    "nan": '"NaN"',
    "inf": '"inf"',
    "huge": '"1e400"',
    "tiny": '"1e-400"',
    "empty": '""',
    "word": '"much"',
    "comma": '"1,5"',
    "underscore": '"1_0"',
    "hex": '"0x10"',
    "full width": '"１"',
    "400 digits": f'"{"7" * 400}"',
    "null": "null",
    "true": "true",
    "list": '["1"]',
    "object": '{ value = "1" }',
}
MORE_EPSILONS = {
    "bare inf": "inf",
    "bare nan": "nan",
    "no leading digit": '".5"',
    "no digit after": '"1."',
    "plus": '"+1"',
    "space": '" 1"',
    "newline": '"1\\n"',
    "13 decimals": '"0.0000000000001"',
    "thirds": '"1/3"',
    "below the least": '"0.0000001"',
}


def refused(house: House, *words: str, status: int = 2) -> str:
    """Release refuses in time, in one line, and leaves everything as it was. The line comes back."""
    before, began = house.digests(), time.process_time()
    seen = house.release()
    assert time.process_time() - began < 5
    assert_refused(seen, *words, status=status)
    assert_untouched(house, before)
    return seen.err


# covers B082 R07
@pytest.mark.parametrize(
    "written", [*EPSILONS.values(), *MORE_EPSILONS.values()], ids=[*EPSILONS, *MORE_EPSILONS]
)
@pytest.mark.parametrize("place", ["protect", "statistic"])
def test_bad_epsilons(house, written, place):
    old = 'epsilon = "20"' if place == "protect" else 'epsilon = "4"'
    house.edit(old, f"epsilon = {written}")
    line = refused(house)
    assert "epsilon" in line or "plan.toml: is not valid TOML" in line


@pytest.mark.parametrize(("bare", "quoted"), [("20", '"20"'), ("20.10", '"20.1"'), ("2e1", '"20"')])
def test_a_bare_number_is_the_decimal_that_is_written(house, bare, quoted):  # covers R07
    """The same digest as in quotes: no double stands in between, of which 20.1 would be another."""
    house.edit('epsilon = "20"', f"epsilon = {bare}\naccept_large = true")
    found = read_plan(house.plan)
    house.edit(f"epsilon = {bare}", f"epsilon = {quoted}")
    assert read_plan(house.plan).digest == found.digest
    assert found.cap == Fraction(quoted.strip('"'))


def test_reading_epsilon_with_float_would_take_most_of_them():
    """The naive twin takes what stands above for a budget."""

    def taken(text: str) -> bool:
        try:
            return float(text) is not None
        except ValueError:
            return False

    assert sum(taken(written.strip('"')) for written in EPSILONS.values()) >= 9


# covers B083
@pytest.mark.parametrize("written", EPSILONS.values(), ids=EPSILONS)
def test_bad_budgets(tmp_path, written):
    seen = run(
        "ledger", "open", str(tmp_path / "x.db"), "--dataset", "d", f"--epsilon={written.strip(chr(34))}"
    )
    assert_refused(seen)
    assert list(tmp_path.iterdir()) == []


# covers B083 B084 B085
@pytest.mark.parametrize(
    "written", [*EPSILONS.values(), '"1"', '"1.5"', '"0.000001"'], ids=[*EPSILONS, "1", "1.5", "small"]
)
def test_every_delta_is_refused_while_all_noise_is_pure(house, written):
    house.edit('epsilon = "20"', f'epsilon = "20"\ndelta = {written}')
    line = refused(house)
    assert "protect.delta" in line or "plan.toml" in line


def test_rho_and_weights_of_a_split_are_not_known_keys(house):  # covers B083
    house.edit('epsilon = "20"', 'rho = "0.5"')
    refused(house, "protect.")
    house.edit('rho = "0.5"', 'epsilon = "20"\nsplit = [1, 2]')
    refused(house, "protect.split", "known key")


@pytest.mark.parametrize("written", EPSILONS.values(), ids=EPSILONS)
def test_bad_budgets_of_an_error_bar(house, written):  # covers B082 B083
    house.edit('query = { count = "*" }', 'query = { median = "age", step = "1" }')
    house.edit('epsilon = "4"', 'epsilon = "3"\ninterval = { level = 0.9, epsilon = "1" }')
    assert run("preview", str(house.plan)).status == 0
    house.edit('epsilon = "1"', f"epsilon = {written}")
    line = refused(house)
    assert "statistic" in line or "plan.toml" in line


def test_an_epsilon_above_twenty_needs_a_word(house):  # covers B084
    house.edit('epsilon = "20"', 'epsilon = "25"')
    house.edit('epsilon = "4"', 'epsilon = "9"')
    refused(house, "protect.epsilon", "accept_large")
    house.edit('epsilon = "25"', 'epsilon = "25"\naccept_large = true')
    assert house.release().status == 0 and house.spent == 25


def test_more_than_is_left_is_status_3_and_says_what_is_left(house):  # covers B086 R16
    (house.ledger.unlink(), (house.folder / "town.ledger.db.head").unlink())
    house.open_ledger(budget="19.5")
    refused(house, "19.5", status=3)


@pytest.mark.parametrize("part", ["9", "0", "-4"])
def test_parts_that_do_not_add_up(house, part):  # covers B087
    house.edit('epsilon = "4"', f'epsilon = "{part}"')
    refused(house, "epsilon")


def test_an_ask_without_a_budget_and_a_derived_ask_with_one(house):  # covers B087
    house.edit('query = { count = "*" }\nepsilon = "4"', 'query = { count = "*" }')
    refused(house, "statistic 'everybody'.epsilon")
    house.edit('query = { count = "*" }', 'query = { count = "*" }\nepsilon = "4"')
    text = house.plan.read_text()
    house.plan.write_text(
        text
        + '\n[[statistic]]\nname = "d"\nquery = { difference = ["everybody", "weighted women"] }\nepsilon = "1"\n'
    )
    refused(house, "statistic 'd'.epsilon", "costs nothing")


AGE = "bounds = [0, 99]"
RENT = 'bounds = ["-100", "1000"]\ngrid = "0.5"'


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [  # covers B088
        (AGE, "bounds = [99, 0]", "age"),
        (AGE, "bounds = [5, 5]", "age"),
        (AGE, "bounds = [0, nan]", "columns.age.bounds"),
        (AGE, "bounds = [0, inf]", "columns.age.bounds"),
        (AGE, 'bounds = [0, "NaN"]', "columns.age.bounds"),
        (AGE, 'bounds = [0, "1e3"]', "columns.age.bounds"),
        (AGE, f"bounds = [0, {2**53 + 1}]", "age"),
        (AGE, f"bounds = [-{2**53 + 1}, 0]", "age"),
        (AGE, "bounds = [0]", "columns.age.bounds"),
        (AGE, "bounds = []", "columns.age.bounds"),
        (AGE, "bounds = [0, 1, 2]", "columns.age.bounds"),
        (AGE, "bounds = [0, true]", "columns.age.bounds"),
        (AGE, "bounds = 99", "columns.age.bounds"),
        (AGE, "", "columns.age.bounds"),
        (AGE, 'bounds = [0, 99]\ngrid = "0.5"', "columns.age.grid"),
        (RENT, 'bounds = ["-100", "1000"]', "columns.rent.grid"),
        (RENT, 'bounds = ["-100", "1000"]\ngrid = "0"', "rent"),
        (RENT, 'bounds = ["-100", "1000"]\ngrid = "-0.5"', "rent"),
        (RENT, 'bounds = ["-100", "1000"]\ngrid = "0.0000000000001"', "rent"),
        (RENT, 'bounds = ["-100", "1000"]\ngrid = "NaN"', "columns.rent.grid"),
        (RENT, 'bounds = ["-100", "1000"]\ngrid = "0.3"', "rent"),
        (RENT, 'bounds = ["-100.25", "1000"]\ngrid = "0.5"', "rent"),
        (RENT, 'bounds = ["-100", "9007199254740992"]\ngrid = "0.5"', "rent"),
        # covers B089
        ('levels = ["f", "m"]', "levels = []", "sex"),
        ('levels = ["f", "m"]', "", "sex"),
        ('levels = ["f", "m"]', 'levels = ["f", "f"]', "sex"),
        ('levels = ["f", "m"]', 'levels = ["f", " f"]', "sex"),
        ('levels = ["f", "m"]', 'levels = ["f", 1, "1"]', "sex"),
        ('levels = ["f", "m"]', 'levels = ["f", "m"]\nmissing_codes = ["m"]', "sex"),
        ('levels = ["f", "m"]', 'levels = ["f", "m\\n"]', "columns.sex"),
        ('levels = ["f", "m"]', 'levels = ["f", "m\\u202e"]', "columns.sex"),
        ('levels = ["f", "m"]', f"levels = {list(range(10_001))}", "sex"),
        ('levels = ["f", "m"]', f"levels = {list(range(1_000_000))}", "town.codebook.toml"),
        ('levels = ["f", "m"]', 'levels = ["f", "m"]\nbounds = [0, 1]', "columns.sex.bounds"),
        ('levels = ["f", "m"]', 'levels = ["f", true]', "columns.sex.levels"),
        # covers B090
        ('kind = "integer"', 'kind = "integr"', "did you mean 'integer'"),
        ('kind = "integer"', 'knd = "integer"', "columns.age"),
        ('kind = "integer"', 'kind = "integer"\nbuonds = [0, 1]', "did you mean 'bounds'"),
        ('kind = "integer"', 'kind = "integer"\nkind = "decimal"', "not valid TOML"),
        ('kind = "integer"', "kind = 3", "columns.age.kind"),
        ('unit = "row"', 'unit = "household"', "survey.unit"),
        ('unit = "row"', "unit = 1", "survey.unit"),
        ('unit = "row"', 'unit = "row"\nat_most = 3', "survey.at_most"),
        ('unit = "row"', 'unit = "row"\nsample_size = 0', "survey.sample_size"),
        ('[survey]', "format = 3\n[survey]", "format"),
        ('[survey]', 'format = "one"\n[survey]', "format"),
        # covers B095
        ('role = "weight"\nbounds = ["0", "10"]', 'role = "weight"', "columns.weight.bounds"),
        ('role = "weight"\nbounds = ["0", "10"]', 'role = "weight"\nbounds = ["-1", "10"]', "columns.weight"),
        ('role = "weight"', 'role = "importance"', "columns.weight.role"),
        # covers B097
        ('unit = "row"', "", "survey.unit"),
        ('[columns.sex]', '[columns.person]\nkind = "identifier"\n[columns.sex]', "survey.unit"),
        # covers B102
        ("[columns.sex]", '[columns."sex; DROP TABLE x"]', "columns"),
        ("[columns.sex]", "[columns.\"sex'\"]", "columns"),
        ("[columns.sex]", "[columns.'sex\"']", "columns"),
        ("[columns.sex]", '[columns."sex--"]', "columns"),
        ("[columns.sex]", '[columns."sex/*"]', "columns"),
        ("[columns.sex]", '[columns."between"]', "columns"),
        ("[columns.sex]", '[columns."IN"]', "columns"),
        ("[columns.sex]", f"[columns.{'s' * 64}]", "columns"),
        ("[columns.sex]", '[columns."ѕex"]', "columns"),
        ("[columns.sex]", '[columns."1sex"]', "columns"),
        ("[columns.sex]", '[columns.""]', "columns"),
        ("[columns.sex]", '[columns."sex\\u0000"]', "columns"),
        ("[columns.sex]", '[columns."sex\\n"]', "columns"),
        # a universe that is none
        (AGE, AGE + '\nuniverse = "age >= 18"', "columns"),
        (AGE, AGE + '\nuniverse = "nobody = 1"', "columns.age.universe"),
        (AGE, AGE + '\nuniverse = "sex = "', "columns.age.universe"),
        ('unit = "row"', 'unit = "row"\nunfinished = true', "survey.codebook"),
    ],
)  # fmt: skip
def test_bad_codebooks(house, old, new, field):
    house.edit_codebook(old, new)
    refused(house, field)


COUNT = 'query = { count = "*" }'
MARGIN = 'query = { table = ["sex", "age"], bins = { age = [0, 18, 65, 99] } }'


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        # covers B090
        (COUNT, 'query = { mean = "rant" }', ("statistic 'everybody'.query.mean", "did you mean 'rent'")),
        (COUNT, 'query = { meen = "rent" }', ("statistic 'everybody'.query", "did you mean 'mean'")),
        (COUNT, 'query = { count = "*", were = "age > 3" }', ("statistic 'everybody'.query", "did you mean 'where'")),
        (COUNT, 'query = { count = "*", where = "agee > 3" }', ("statistic 'everybody'.query.where", 'did you mean "age"')),
        (COUNT, 'query = { count = "*", mean = "rent" }', ("statistic 'everybody'.query",)),
        (COUNT, "query = {}", ("statistic 'everybody'.query",)),
        (COUNT, 'query = "count"', ("statistic", "query")),
        (COUNT, 'query = { count = "age" }', ("statistic 'everybody'.query.count",)),
        (COUNT, "query = { mean = 7 }", ("statistic 'everybody'.query.mean",)),
        (COUNT, COUNT + '\nmising = "complete"', ("did you mean 'missing'",)),
        (COUNT, COUNT + '\nmissing = "ignore"', ("missing",)),
        (COUNT, COUNT + "\nsize = 5", ("size",)),
        (COUNT, COUNT + '\nsize = "5"', ("size",)),
        ('[protect]', '[protekt]', ("protekt",)),
        ('id = "town-1"', 'id = "town-1"\nid = "town-2"', ("not valid TOML",)),
        ('id = "town-1"', "id = 7", ("release.id",)),
        ('id = "town-1"', 'id = "town-1"\ntitel = "x"', ("did you mean 'title'",)),
        ('id = "town-1"', 'id = "town-1"\ntitle = "a\\u001b[2Jb"', ("release.title",)),
        ("rows = 80", "rows = -1", ("expect.rows",)),
        ("rows = 80", 'rows = "many"', ("expect.rows",)),
        ("rows = 80", 'rows = 80\ndesign_effect = "big"', ("expect.design_effect",)),
        ("rows = 80", 'rows = 80\ndesign_effect = "0"', ("expect.design_effect",)),
        (COUNT, COUNT + "\ninterval = { level = 1.5 }", ("interval.level",)),
        (COUNT, COUNT + "\ninterval = { level = nan }", ("interval.level",)),
        (COUNT, COUNT + '\nvariance = "nobody"', ("variance",)),
        ('name = "everybody"', 'name = "age by sex"', ("two statistics",)),
        ('name = "everybody"', 'name = ""', ("name",)),
        ('name = "everybody"', 'name = "a\\u0007"', ("statistic[0].name",)),
        # covers B091
        (MARGIN, 'query = { table = ["age"] }', ("bins",)),
        (MARGIN, MARGIN.replace("[0, 18, 65, 99]", "[0, 18, 65, 60]"), ("bins.age",)),
        (MARGIN, MARGIN.replace("[0, 18, 65, 99]", "[0, 18, 18, 99]"), ("bins.age",)),
        (MARGIN, MARGIN.replace("[0, 18, 65, 99]", "[5, 18, 99]"), ("bins.age",)),
        (MARGIN, MARGIN.replace("[0, 18, 65, 99]", "[0, 18, 65]"), ("bins.age",)),
        (MARGIN, MARGIN.replace("[0, 18, 65, 99]", "[-10, 18, 99]"), ("bins.age",)),
        (MARGIN, MARGIN.replace("[0, 18, 65, 99]", "[0, 120, 150]"), ("bins.age",)),
        (MARGIN, MARGIN.replace("[0, 18, 65, 99]", "[0, 17.5, 99]"), ("bins.age",)),
        (MARGIN, MARGIN.replace("[0, 18, 65, 99]", "[0, nan, 99]"), ("bins.age",)),
        (MARGIN, MARGIN.replace("[0, 18, 65, 99]", "[]"), ("bins.age",)),
        (MARGIN, MARGIN.replace("[0, 18, 65, 99]", '"all"'), ("bins.age",)),
        (MARGIN, MARGIN.replace('["sex", "age"]', '["sex"]'), ("bins",)),
        (MARGIN, MARGIN.replace('["sex", "age"]', '["age", "age"]'), ("table",)),
        (MARGIN, MARGIN.replace('["sex", "age"]', "[]"), ("table",)),
        (MARGIN, MARGIN.replace('["sex", "age"]', '"sex"'), ("table",)),
        (COUNT, 'query = { quantile = "rent", at = "0", step = "1" }', ("quantile",)),
        (COUNT, 'query = { quantile = "rent", at = "1.5", step = "1" }', ("quantile",)),
        (COUNT, 'query = { quantile = "rent", at = "1", step = "1" }', ("quantile",)),
        (COUNT, 'query = { quantile = "rent", step = "1" }', ("quantile",)),
        (COUNT, 'query = { median = "rent" }', ("step",)),
        (COUNT, 'query = { median = "rent", step = "0" }', ("step",)),
        (COUNT, 'query = { median = "rent", step = "-1" }', ("step",)),
        (COUNT, 'query = { median = "rent", step = "0.3" }', ("step",)),
        (COUNT, 'query = { median = "sex", step = "1" }', ("sex",)),
        (COUNT, 'query = { mean = "weight", weight = "weight" }', ("weight",)),
        (COUNT, 'query = { mean = "weight" }', ("base weight",)),
        (COUNT, 'query = { count = "*", weight = "rent" }', ("weight",)),
        (COUNT, 'query = { count = "*", weight = "nobody" }', ("weight",)),
        (COUNT, 'query = { mean = "rent", centre = "5000" }', ("centre",)),
        (COUNT, 'query = { mean = "rent", centre = "0.1" }', ("centre",)),
        (COUNT, 'query = { proportion = "sex" }', ("proportion",)),
        (COUNT, 'query = { proportion = "sex = \'x\'" }', ("'x' is not a level",)),
        (COUNT, 'query = { difference = ["a"] }', ("difference",)),
        # covers B097
        ('change = "one respondent added or removed"', "", ("protect.change",)),
        ('change = "one respondent added or removed"', 'change = "a row"', ("protect.change",)),
        ('change = "one respondent added or removed"', 'change = ""', ("protect.change",)),
        # covers B103 R06
        ("[protect]", "seed = 1\n[protect]", ("seed",)),
        ("[protect]", "[noise]\noff = true\n[protect]", ("noise",)),
        ('epsilon = "20"', 'epsilon = "20"\nseed = 7', ("protect.seed",)),
        ('epsilon = "20"', 'epsilon = "20"\nnoise = false', ("protect.noise",)),
        ('epsilon = "20"', 'epsilon = "inf"', ("protect.epsilon",)),
        (COUNT, COUNT + "\nnoise = 0", ("statistic", "noise")),
        # covers B104
        ("[survey]", "format = 3\n[survey]", ("format", "format 2")),
        ("[survey]", 'format = "1"\n[survey]', ("format",)),
        ("[survey]", "format = true\n[survey]", ("format",)),
        ("[survey]", '[later]\nfield = "from the future"\n[survey]', ("later",)),
        ("[survey]", '[[impute]]\nmethod = "donors"\n[survey]', ('impute',)),
        ("[survey]", 'include = "plan.toml"\n[survey]', ("include",)),  # covers B105
        ("[[statistic]]", "[statistic]", ("not valid TOML", "in two brackets, [[statistic]]")),
    ],
)  # fmt: skip
def test_bad_plans(house, old, new, words):
    house.edit(old, new)
    refused(house, *words)


def test_the_identifier_cannot_be_asked_about(tmp_path):  # covers B091
    from tests.badinput.test_rows import PEOPLE

    house = House(tmp_path, codebook=PEOPLE)
    house.fill(["1,1,f,1,a"], header="age,rent,sex,weight,person")
    house.edit(MARGIN, 'query = { table = ["person"] }')
    refused(house, "person identifies respondents")
    house.edit('query = { table = ["person"] }', 'query = { count = "*", where = "person = \'a\'" }')
    refused(house, "person")


# covers B098
IDS = {
    "empty": "",
    "dot dot": "..",
    "dots inside": "a..b",
    "slash": "a/b",
    "backslash": "a\\\\b",
    "absolute": "/etc/passwd",
    "traversal": "../x",
    "300 characters": "a" * 300,
    "NUL": "a\\u0000b",
    "newline": "a\\nb",
    "trailing newline": "a\\n",
    "leading dash": "-rf",
    "leading dot": ".hidden",
    "shell": "a; rm -rf .",
    "substitution": "$(id)",
    "SQL": "a'; DROP TABLE entry; --",
    "right to left": "a\\u202eb",
    "space": "a b",
    "full width": "ａ",
    "tilde": "~root",
    "glob": "*",
    "accent": "é",
}


@pytest.mark.parametrize("written", IDS.values(), ids=IDS)
def test_bad_release_ids(house, written):
    house.edit('id = "town-1"', f'id = "{written}"')
    line = refused(house, "release.id")
    assert "etc" not in line and "rm -rf" not in line


def test_the_same_release_twice_in_one_plan(house):  # covers B098
    house.edit("[expect]", '[release]\nid = "town-2"\n[expect]')
    refused(house, "plan.toml: is not valid TOML")


# covers B099 B100 R14
FILES = {
    "empty": b"",
    "a number": b"7",
    "a list": b"[1, 2]",
    "white space": b" \n\n",
    "cut": None,
    "garbage after the end": None,
    "100,000 brackets": b"x = " + b"[" * 100_000,
    "100,000 tables": b"[" + b".".join([b"a"] * 100_000) + b"]",
    "a 1 MB number": b"x = " + b"7" * 1_000_000,
    "a 900 kB number": b"x = " + b"7" * 900_000,
    "a number of 5,000 digits": b"format = " + b"7" * 5_000,
    "a float of 5,000 digits": b"format = 0." + b"7" * 5_000,
    "a float with a vast exponent": b"format = 1e999999999999999999999",
    "64 MB": b"# " + b"x" * (64 * 2**20),
    "UTF-16": None,
    "NUL bytes": b"\0" * 1000,
    "NUL inside": None,
    "not UTF-8": b"\xff\xfe\xfd",
    "lone carriage returns": b"[survey]\rsource = 1\r",
    "JSON": b'{"survey": {"source": "rows.csv"}}',
    "YAML": b"survey:\n  source: rows.csv\n",
    "XML": b"<plan/>",
    "pickle": b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94.",
    "1,000 deep": b"x = " + b"[" * 1000 + b"]" * 1000,
    "1,000 deep tables": b"x = " + b"{a=" * 1000 + b"1" + b"}" * 1000,
    "90 deep": b"x = " + b"[" * 90 + b"]" * 90,
    "dotted deep": b"x." + b"a." * 5_000 + b"b = 1",
    "dates": b"survey = 2026-02-30",
    "20,000 tables": b"\n".join(b"[t%d]" % i for i in range(20_000)),
    "20,000 asks": b"[[ask]]\n" * 20_000,
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("which", ["plan", "codebook"])
def test_bad_plan_files(house, name, which):
    path = getattr(house, which)
    good = path.read_bytes()
    made = {
        "cut": good[: len(good) // 2 + 3],
        "garbage after the end": good + b"\n}}} what",
        "UTF-16": good.decode().encode("utf-16"),
        "NUL inside": good.replace(b"[survey]", b"[survey]\0", 1),
    }
    path.write_bytes(made.get(name) or FILES[name] or b"")
    refused(house)


def test_a_byte_order_mark_and_crlf_do_no_harm(house):  # covers B099
    for path in (house.plan, house.codebook):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert house.release().status == 0


# covers B101
PATHS = [
    "../rows.csv", "a/../../rows.csv", "/etc/passwd", "//server/share/x.csv", "\\\\\\\\server\\\\share", "~/rows.csv",
    "a/~/x.csv", "$HOME/rows.csv", "${HOME}/x.csv", "%USERPROFILE%/x.csv", "C:/rows.csv", "C:\\\\rows.csv",
    "file:///etc/passwd", "http://x/rows.csv", "s3://bucket/x.csv", "", "a\\u0000b.csv", "a\\nb.csv", "..",
    "a/..", "x" * 501,
]  # fmt: skip


@pytest.mark.parametrize("written", PATHS)
@pytest.mark.parametrize("key", ["source", "codebook", "ledger"])
def test_a_plan_names_files_inside_its_folder_only(house, written, key):
    text = house.plan.read_text(encoding="utf-8")
    house.plan.write_text(
        re.sub(rf'{key} = "[^"]+"', lambda _: f'{key} = "{written}"', text), encoding="utf-8"
    )
    line = refused(house, f"survey.{key}")
    assert "passwd" not in line


def test_a_link_or_glob_in_the_folder_cannot_lead_the_plan_out_of_it(house, tmp_path_factory):  # covers B101
    """A plan's author can write names, not links; a `..` hidden behind a glob is still refused."""
    house.edit('source = "rows.csv"', 'source = "*/../../*/rows.csv"')
    refused(house, "survey.source")


@pytest.mark.parametrize("where", ["../elsewhere/rows.csv", "absolute"])
def test_paths_on_the_command_line_may_be_anywhere(
    house, where, tmp_path_factory, monkeypatch
):  # covers B101
    far = tmp_path_factory.mktemp("far") / "rows.csv"
    far.write_bytes(house.rows.read_bytes())
    path = str(far) if where == "absolute" else os.path.relpath(far, house.folder)
    monkeypatch.chdir(house.folder)
    assert house.release("--data", path).status == 0


@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "missing", "socket", "link to nothing", "loop"])
@pytest.mark.parametrize("which", ["plan", "codebook"])
def test_a_plan_that_is_no_file_is_refused_at_once(house, kind, which):  # covers B105
    path = getattr(house, which)
    path.unlink()
    make_odd(path, kind)
    refused(house, path.name)


def make_odd(path, kind: str) -> None:
    """Something at `path` that is not a file to read."""
    import socket

    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            here = os.getcwd()
            try:
                os.chdir(path.parent)  # the name of a socket is short
                server.bind(path.name)
            finally:
                os.chdir(here)
    elif kind == "link to nothing":
        path.symlink_to("nowhere")
    elif kind == "loop":
        path.symlink_to(path.name)


@pytest.mark.parametrize("command", ["preview", "rehearse", "check"])
@pytest.mark.parametrize("written", ['"0"', '"inf"', "null", "1"])
def test_the_other_doors_refuse_alike(house, command, written):  # covers B082
    house.edit('epsilon = "20"', f"epsilon = {written}")
    before = house.digests()
    assert_refused(run(command, str(house.plan)))
    assert_untouched(house, before)
