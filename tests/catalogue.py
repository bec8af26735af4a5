"""The threat catalogue against the tests: which identifiers have a test, and which are open.

A test says what it covers in a comment: `# covers T13 B001-B008`. Run this file for the report.
"""

import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parent

ATTACKS = {
    "T01": "holes in noise",
    "T02": "grid of the double",
    "T03": "order of a sum",
    "T04": "rounding in a sum",
    "T05": "overflow",
    "T06": "NaN, inf, None, -0, subnormal, only missing",
    "T07": "wrong scale",
    "T08": "imputation multiplies a person",
    "T09": "weights depend on everybody",
    "T10": "categories from the data",
    "T11": "bounds, bins, candidates from the data",
    "T12": "exact row count",
    "T13": "exception, status or text depends on a value",
    "T14": "values in messages, logs, temporary files, arguments, core dumps",
    "T15": "uncharged failure",
    "T16": "noise reuse",
    "T17": "float budget",
    "T18": "selection at the edges",
    "T19": "smooth sensitivity too small or rough",
    "T20": "anything that escapes the noise",
    "T21": "DP-SGD: clip, noise, sampling",
    "T22": "exact facts beside the noisy ones",
    "T23": "threshold off by one",
    "T24": "composition and conversion round the wrong way",
    "T25": "accountant wrong",
    "T26": "sampler wrong in form",
    "T27": "synthetic data leak",
    "T28": "CSV, HTML, terminal injection through category names",
    "T29": "time",
    "T30": "repeated query averaging",
    "T31": "one cell decides how a column is read",
    "T32": "identifiers by their spelling",
}

LEDGER = {
    "L01": "charge first",
    "L02": "publish last",
    "L03": "a crash at any point",
    "L04": "reserved but not committed stays spent",
    "L05": "committed but not published",
    "L06": "same id and plan: same bytes, no charge",
    "L07": "never over budget with many writers",
    "L08": "exact amounts",
    "L09": "tampering shows",
    "L10": "roll-back shows",
    "L11": "loss shows",
    "L12": "the budget cannot be raised quietly",
    "L13": "renaming does not refill",
    "L14": "the clock is only a remark",
    "L15": "readers and dead writers do not block",
    "L16": "the model holds",
    "L17": "the format lasts",
    "L18": "nothing confidential inside",
}

RULES = {
    "R01": "release is total",
    "R02": "domains and sizes come from the plan",
    "R03": "integers on a public grid",
    "R04": "exact sums",
    "R05": "exact samplers",
    "R06": "no seed",
    "R07": "amounts are decimal strings",
    "R08": "one person's influence is bounded through every step",
    "R09": "reserve, commit, publish; never refund",
    "R10": "texts carry names, never values",
    "R11": "no exact fact in published files",
    "R12": "engines are fenced",
    "R13": "names through one gate, values as parameters",
    "R14": "nothing is executed",
    "R15": "files whole or not at all, never replaced",
    "R16": "statuses and one line",
}

# One line for each line of the catalogue; a range stands for as many entries as it has numbers.
INPUTS_BY_RANGE = {
    "B001-B008": "a number column holds a word, nothing, NA, NaN, nan, None, null, a dot",
    "B009-B012": "inf, -Infinity, 1e308, 1e400",
    "B013-B017": "2^53+1, 2^63, 2^64, 40 digits, 5,000 digits in an integer column",
    "B018-B020": "negative, far above the bound, a fraction in an integer column",
    "B021-B025": "decimal comma, thousands comma, underscore, hex, exponent",
    "B026-B031": "spaces, padded, Arabic digits, full-width digits, U+2212, zero-width space",
    "B032-B038": "30 February, True, =1+1, 50%, SQL text, -0, 5e-324",
    "B039-B043": "category outside the domain, empty, NA, other case, padded",
    "B044-B050": "accent, right-to-left mark, NUL, 100 kB, quote, newline, JSON",
    "B051-B055": "HTML, formula, path, number in a category, emoji",
    "B056-B057": "duplicate id, empty id",
    "B058-B063": "field too few, too many, empty line, separators, open quote, semicolons",
    "B064-B065": "not UTF-8, stray carriage returns",
    "B066": "data missing, a folder, a pipe, a device, a socket",
    "B067": "empty file",
    "B068": "header only",
    "B069": "all missing, one answer, all equal",
    "B070": "column missing, extra, twice, other name, other case, no header",
    "B071": "other order, CRLF, BOM, no last newline, quoted header",
    "B072": "UTF-16, a picture, a pickle, a PDF as .csv",
    "B073": "gzip, zip, bombs",
    "B074": "sparse file, endless line, 200,000 columns",
    "B075": "a very large table",
    "B076": "Parquet: other types, nested, lying statistics, truncated, footer bomb",
    "B077": "Parquet zones, int96, mixed objects, unused levels, NA and NaN mixed",
    "B078": "frames with duplicate names, a MultiIndex, an index like a column, no columns",
    "B079": "Spark tables that disagree or change",
    "B080": "file changes, disappears, permission denied, stalls",
    "B081": "symbolic link as data, as output",
    "B082": "eighteen bad epsilons",
    "B083": "the same for budget, delta, rho, weights of the split",
    "B084": "delta too large; epsilon above 20",
    "B085": "delta with pure noise; no delta with Gaussian noise",
    "B086": "epsilon above what is left",
    "B087": "parts that do not add up; negative or zero part",
    "B088": "bad bounds and grids",
    "B089": "bad domains",
    "B090": "unknown column, kind, key, version; key twice; wrong type",
    "B091": "contradictions",
    "B092": "margins for raking that do not fit",
    "B093": "raking that does not converge",
    "B094": "negative, zero, NaN, infinite, huge weights in the data",
    "B095": "population total zero; weight maximum not given",
    "B096": "one donor, no donor, reuse bound 0",
    "B097": "neighbours not said; row-level where ids repeat",
    "B098": "twenty bad release ids",
    "B099": "plan empty, a number, a list, cut, garbage, brackets, huge, UTF-16, NUL, BOM",
    "B100": "YAML or JSON as TOML, duplicate keys, deep nesting, 50 MB",
    "B101": "path traversal",
    "B102": "column names that are no names",
    "B103": "a seed, a noise switch, epsilon inf",
    "B104": "plan of another version",
    "B105": "include loop; plan is a folder, pipe, device, missing",
    "B106": "output exists, is a folder, a link; its folder missing or not writable",
    "B107": "ledger is no ledger",
    "B108": "ledger locked",
    "B109": "disk full",
    "B110": "quota, RLIMIT_FSIZE, EIO, EROFS, EDQUOT",
    "B111": "out of memory",
    "B112": "signals, closed streams",
    "B113": "prompts without a terminal",
    "B114": "clock, zone, locale, HOME, TMPDIR, umask",
    "B115": "two releases into one output; check during release",
    "B116": "bad model files",
    "B117": "GPU missing, out of memory, non-finite loss",
    "B118": "Spark executors lost, retried, recomputed",
    "B119": "-O, hash seed, threads, fork, subinterpreter",
    "B120": "bad command lines",
    "B121": "environment variables of DuckDB, Spark, Python",
    "B122": "interrupted upgrade",
}

_IDENTIFIER = r"[TLBRWS][0-9]{2,3}"
_COMMENT = re.compile(rf"#.*?\bcovers:?\s+({_IDENTIFIER}(?:\s*[-, ]\s*{_IDENTIFIER})*)")
_RANGE = re.compile(rf"({_IDENTIFIER})(?:-({_IDENTIFIER}))?")


def expand(text: str) -> list[str]:
    """`B001-B003 T05` as its identifiers, in order."""
    found: list[str] = []
    for first, last in _RANGE.findall(text):
        end, width = int((last or first)[1:]), len(first) - 1
        found += [f"{first[0]}{number:0{width}d}" for number in range(int(first[1:]), end + 1)]
    return found


INPUTS = {entry: text for span, text in INPUTS_BY_RANGE.items() for entry in expand(span)}
LISTED: Mapping[str, str] = {**ATTACKS, **LEDGER, **INPUTS, **RULES}


@dataclass(frozen=True)
class Covered:
    """One comment's word on one identifier."""

    entry: str
    place: str


def covered(folder: Path = TESTS) -> list[Covered]:
    """Every identifier named by a `covers` comment of a test file, with where it stands."""
    return [found for path in sorted(folder.rglob("*.py")) for found in _in_file(path, folder)]


def _in_file(path: Path, folder: Path) -> Iterator[Covered]:
    if path == Path(__file__):
        return
    with path.open("rb") as file:
        comments = [token for token in tokenize.tokenize(file.readline) if token.type == tokenize.COMMENT]
    for token in comments:
        for match in _COMMENT.finditer(token.string):
            for entry in expand(match[1]):
                yield Covered(entry, f"{path.relative_to(folder)}:{token.start[0]}")


def report(found: Iterable[Covered]) -> str:
    """How many of each list have a test, and the open ones by name."""
    places: dict[str, list[str]] = {}
    for each in found:
        places.setdefault(each.entry, []).append(each.place)
    lines = []
    for title, entries in (
        ("attacks", ATTACKS),
        ("ledger promises", LEDGER),
        ("bad inputs", INPUTS),
        ("rules", RULES),
    ):
        done = [entry for entry in entries if entry in places]
        lines.append(f"{title}: {len(done)} of {len(entries)} have a test")
        lines += [f"  open  {entry}  {text}" for entry, text in entries.items() if entry not in places]
    unknown = sorted(entry for entry in places if entry not in LISTED and entry[0] not in "WS")
    lines += [f"  not listed: {entry} ({places[entry][0]})" for entry in unknown]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(report(covered()) + "\n")
