"""CSV on the Web: metadata beside a release's CSV, after the W3C's model for tabular data."""

import json
import re
from typing import Any

from reticent.release.labels import Labels
from reticent.release.release import DECIMALS, Release

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
}


def csvw(release: Release) -> bytes:
    """Metadata for the release's CSV after the W3C's model for tabular data: every column with its type and meaning."""
    labels, document = Labels.of(release.document), release.document
    columns = [_csvw_column(name, labels) for name in release.header]
    told = {
        "@context": ["http://www.w3.org/ns/csvw", {"@language": "en"}],
        "url": f"{release.id}.csv",
        "dc:title": str(document.get("title") or release.id),
        "dc:description": str((document.get("guarantee") or {}).get("words") or ""),
        "dialect": {"delimiter": ",", "encoding": "utf-8", "header": True},
        "tableSchema": {"columns": columns},
    }
    return (json.dumps(told, ensure_ascii=False, indent=1) + "\n").encode()


def _csvw_column(name: str, labels: Labels) -> dict[str, Any]:
    known = labels.levels(name)
    # A name begins with no underscore: those are the model's own.
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name).lstrip("_") or "column"
    told: dict[str, Any] = {"name": plain, "titles": name}
    told["datatype"] = "double" if name in DECIMALS else "string"
    said = MEANINGS.get(name) or (labels.column(name) if name in labels.told else "")
    told |= {"dc:description": said} if said else {}
    told |= {"rdfs:comment": "; ".join(f"{code}: {text}" for code, text in known.items())} if known else {}
    return told
