"""CSV on the Web: metadata beside each CSV of estimates, after the W3C's model for tabular data."""

import csv
import io
import json
import re
from typing import Any

from reticent.release.labels import Labels
from reticent.release.release import CSV, Release, files_of

MEANINGS = {
    "release": "the id of the release",
    "statistic": "the statistic, by its name in the plan",
    "cell": "the cell of a table, all keys together",
    "value": "the estimate, with privacy noise",
    "unit": "what it is counted in",
    "level": "the level of the intervals",
    "privacy_low": "lower end of the interval for privacy noise",
    "privacy_high": "upper end of the interval for privacy noise",
    "total_low": "lower end of the total interval: sampling and noise",
    "total_high": "upper end of the total interval",
    "total_margin": "the longer side of the total interval",
    "cv": "coefficient of variation, sampling and noise together",
    "reliability": "reliable, use with caution, or unreliable",
    "guarantee": "the privacy guarantee of the statistic",
    "meaning": "what the interval for privacy noise means",
    "total_meaning": "what the total interval means, or why it is empty",
    "table": "the table, by its name in the plan",
    "margin": "the columns of the margin",
    "noise_sd": "standard deviation of the privacy noise",
    "estimate": "the estimate, with privacy noise",
    "noise_variance": "variance of the privacy noise",
    "standard_error": "of the noise, or of sampling and noise where that was bought",
    "low": "lower end of the interval",
    "high": "upper end of the interval",
    "count": "noisy count of the cell",
    "method": "how the table was made",
    "regression": "the regression, by its name in the plan",
    "response": "what is regressed",
    "term": "the predictor, or a level of one",
    "term_label": "the predictor or level as a reader sees it",
    "against": "the level that it is compared with",
    "against_label": "that level as a reader sees it",
}


def csvw(release: Release) -> dict[str, bytes]:
    """Metadata for every CSV of estimates after the W3C's model for tabular data: each column with its type and meaning.

    Synthetic rows are left out: their columns are those of the codebook.
    """
    synthetic = release.document.get("synth") or []
    rows = {f"{file}{CSV}" for table in synthetic for file in table.get("files") or []}
    found = {
        f"{release.id}{ending}": make for ending, make in files_of(release).items() if ending.endswith(CSV)
    }
    return {
        f"{name}-metadata.json": _described(
            release, name, next(csv.reader(io.StringIO(make(release).decode())))
        )
        for name, make in found.items()
        if name not in rows
    }


def _described(release: Release, name: str, header: list[str]) -> bytes:
    labels, document = Labels.of(release.document), release.document
    tidy = (release.tidy(part) for part in release.parts)
    numbers = next((each.numbers for each in tidy if list(each.header) == header), frozenset[str]())
    told = {
        "@context": ["http://www.w3.org/ns/csvw", {"@language": "en"}],
        "url": name,
        "dc:title": str(document.get("title") or release.id),
        "dc:description": str((document.get("guarantee") or {}).get("words") or ""),
        "dialect": {"delimiter": ",", "encoding": "utf-8", "header": True},
        "tableSchema": {"columns": [_csvw_column(column, labels, column in numbers) for column in header]},
    }
    return (json.dumps(told, ensure_ascii=False, indent=1) + "\n").encode()


def _csvw_column(name: str, labels: Labels, is_number: bool) -> dict[str, Any]:
    known, of = labels.levels(name), name.removesuffix("_label")
    # A name begins with no underscore: those are the model's own.
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name).lstrip("_") or "column"
    told: dict[str, Any] = {"name": plain, "titles": name}
    told["datatype"] = "double" if is_number else "string"
    said = MEANINGS.get(name) or (labels.column(name) if name in labels.told else "")
    said = said or (f"the label of {of}" if of in labels.told else "")
    told |= {"dc:description": said} if said else {}
    told |= {"rdfs:comment": "; ".join(f"{code}: {text}" for code, text in known.items())} if known else {}
    return told
