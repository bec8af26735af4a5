"""Files for other systems: CSV on the Web metadata beside the CSV, and SDMX for tables whose columns name a concept.

Everything is a function of a published document. Texts are escaped for the format they go into.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from reticent.errors import PlanError
from reticent.files import tidy_csv
from reticent.release.labels import Labels
from reticent.release.release import DECIMALS, Release, asked_keys

Document = Mapping[str, Any]
AGENCY, VERSION = "RETICENT", "1.0"
MEASURES = (
    "OBS_VALUE",
    "PRIVACY_LOW",
    "PRIVACY_HIGH",
    "TOTAL_LOW",
    "TOTAL_HIGH",
    "CONF_LEVEL",
    "UNIT_MEASURE",
    "OBS_STATUS",
)
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
    told: dict[str, Any] = {"name": re.sub(r"[^A-Za-z0-9_]", "_", name), "titles": name}
    told["datatype"] = "double" if name in DECIMALS else "string"
    said = MEANINGS.get(name) or (labels.column(name) if name in labels.told else "")
    told |= {"dc:description": said} if said else {}
    told |= {"rdfs:comment": "; ".join(f"{code}: {text}" for code, text in known.items())} if known else {}
    return told


def sdmx_tables(document: Document) -> list[tuple[Document, list[str]]]:
    """The tables of which every key has a concept, with their keys; refused where there is none."""
    concepts = {name: each.get("concept") for name, each in (document.get("labels") or {}).items()}
    found = []
    for answer in document.get("statistics") or []:
        cells = [each.get("cell") or {} for each in answer.get("estimates") or []]
        keys = asked_keys(answer)
        keys = [key for key in keys if any(key in cell for cell in cells)] or list(cells[0] if cells else ())
        if keys and all(concepts.get(key) for key in keys):
            found.append((answer, keys))
    if not found:
        raise PlanError(
            "needs a table whose columns name their concept in the codebook, such as concept = 'REF_AREA'",
            field="--as sdmx",
        )
    return found


def sdmx(release: Release) -> dict[str, bytes]:
    """For each table its SDMX-CSV 2.0, and one SDMX-ML structure message for all: code lists, concepts, definitions."""
    document = release.document
    tables, labels = sdmx_tables(document), Labels.of(document)
    made = {}
    for place, (answer, keys) in enumerate(tables, start=1):
        header = ["STRUCTURE", "STRUCTURE_ID", "ACTION", *(_concept(labels, key) for key in keys), *MEASURES]
        flow = f"{AGENCY}:{_flow(release, place)}({VERSION})"
        made[f"{release.id}.{place}.sdmx.csv"] = tidy_csv(header, _observations(answer, keys, labels, flow))
    made[f"{release.id}.sdmx.xml"] = _structure(release, tables, labels).encode()
    return made


def _flow(release: Release, place: int) -> str:
    return f"DF_{re.sub(r'[^A-Za-z0-9]', '_', release.id).upper()}_{place}"


def _concept(labels: Labels, key: str) -> str:
    return str((labels.told.get(key) or {}).get("concept"))


def code_of(level: Any) -> str:
    """A level as the id of a code: letters, digits and three marks; the grand total is _T, what is missing _Z."""
    known = {"(all)": "_T", "(missing)": "_Z"}
    return known.get(str(level)) or re.sub(r"[^A-Za-z0-9@$_-]", "_", str(level)) or "_X"


def _observations(answer: Document, keys: Sequence[str], labels: Labels, flow: str) -> Iterator[list[Any]]:
    level, unit = (answer.get("interval") or {}).get("level"), answer.get("unit")
    for each in answer["estimates"]:
        ends = [each.get(key) for key in ("privacy_low", "privacy_high", "total_low", "total_high")]
        status = "U" if each.get("reliability") == "unreliable" else "A"  # low reliability; normal
        codes = [code_of(each["cell"].get(key, "")) for key in keys]
        yield ["dataflow", flow, "I", *codes, each.get("value"), *ends, level, unit, status]


def _structure(release: Release, tables: Sequence[tuple[Document, list[str]]], labels: Labels) -> str:
    levels: dict[str, dict[str, str]] = {}
    for answer, keys in tables:
        for each in answer["estimates"]:
            for key in keys:
                level = each["cell"].get(key, "")
                levels.setdefault(key, {})[code_of(level)] = labels.level(key, level)
    lists = "".join(
        _codelist(_concept(labels, key), labels.column(key), codes) for key, codes in levels.items()
    )
    named = {_concept(labels, key): labels.column(key) for key in levels} | {name: name for name in MEASURES}
    concepts = "".join(_item("Concept", name, text) for name, text in named.items())
    flows = "".join(
        _definition(release, place, answer, keys, labels) for place, (answer, keys) in enumerate(tables, 1)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<mes:Structure xmlns:mes="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/message" '
        'xmlns:str="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/structure" '
        'xmlns:com="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/common">\n'
        f"<mes:Header><mes:ID>{escape(_flow(release, 0))}</mes:ID><mes:Test>false</mes:Test>"
        f'<mes:Prepared>2000-01-01T00:00:00</mes:Prepared><mes:Sender id="{AGENCY}"/></mes:Header>\n'
        f'<mes:Structures>\n<str:Codelists>{lists}</str:Codelists>\n<str:Concepts><str:ConceptScheme id="CS" agencyID="{AGENCY}" '
        f'version="{VERSION}"><com:Name>Concepts</com:Name>{concepts}</str:ConceptScheme></str:Concepts>\n'
        f"<str:DataStructures>{flows}</str:DataStructures>\n</mes:Structures>\n</mes:Structure>\n"
    )


def _item(kind: str, name: str, text: str) -> str:
    return f"<str:{kind} id={quoteattr(name)}><com:Name>{escape(text)}</com:Name></str:{kind}>"


def _codelist(concept: str, title: str, codes: Mapping[str, str]) -> str:
    items = "".join(_item("Code", code, text) for code, text in codes.items())
    about = f'id={quoteattr("CL_" + concept)} agencyID="{AGENCY}" version="{VERSION}"'
    return f"<str:Codelist {about}><com:Name>{escape(title)}</com:Name>{items}</str:Codelist>"


def _definition(release: Release, place: int, answer: Document, keys: Sequence[str], labels: Labels) -> str:
    dimensions = "".join(
        f'<str:Dimension id={quoteattr(_concept(labels, key))} position="{i}"><str:ConceptIdentity><Ref '
        f'id={quoteattr(_concept(labels, key))} maintainableParentID="CS" agencyID="{AGENCY}"/></str:ConceptIdentity>'
        f'<str:LocalRepresentation><str:Enumeration><Ref id={quoteattr("CL_" + _concept(labels, key))} agencyID="{AGENCY}" '
        f'version="{VERSION}"/></str:Enumeration></str:LocalRepresentation></str:Dimension>'
        for i, key in enumerate(keys, start=1)
    )
    attributes = "".join(
        f'<str:Attribute id="{name}" assignmentStatus="Conditional"/>' for name in MEASURES[1:]
    )
    return (
        f'<str:DataStructure id={quoteattr(_flow(release, place))} agencyID="{AGENCY}" version="{VERSION}">'
        f"<com:Name>{escape(str(answer.get('name')))}</com:Name><str:DataStructureComponents><str:DimensionList>{dimensions}"
        f'</str:DimensionList><str:AttributeList>{attributes}</str:AttributeList><str:MeasureList><str:PrimaryMeasure id="OBS_VALUE"/>'
        "</str:MeasureList></str:DataStructureComponents></str:DataStructure>"
    )
