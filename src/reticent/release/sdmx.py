"""SDMX for tables whose columns name a concept: SDMX-CSV 2.0 of each, and one SDMX-ML 2.1 structure message for all.

A table is a dataflow. Its dimensions are the statistic, the concepts of its keys, and the period last; its observations carry
the ends of their intervals as attributes. Everything is a function of a published document; texts are escaped.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from reticent.answer.add_up import ALL
from reticent.errors import PlanError
from reticent.files import tidy_csv
from reticent.query.sides import MISSING, NOT_ASKED
from reticent.release.labels import Labels
from reticent.release.release import Release, asked_keys

Document = Mapping[str, Any]
AGENCY, VERSION = "RETICENT", "1.0"
STATISTIC, PERIOD, VALUE = "STATISTIC", "TIME_PERIOD", "OBS_VALUE"
ATTRIBUTES = {
    "PRIVACY_LOW": "lower end of the interval for privacy noise",
    "PRIVACY_HIGH": "upper end of the interval for privacy noise",
    "TOTAL_LOW": "lower end of the total interval: sampling and noise",
    "TOTAL_HIGH": "upper end of the total interval: sampling and noise",
    "CONF_LEVEL": "level of the intervals",
    "UNIT_MEASURE": "what it is counted in",
    "OBS_STATUS": "A: normal value; U: low reliability",
}
SPECIAL = {ALL: "_T", MISSING: "_U", NOT_ASKED: "_Z"}  # total, unknown, not applicable
PERIODS = re.compile(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2})?|-(A1|S[12]|T[1-3]|Q[1-4]|M[0-9]{2}|W[0-9]{2}))?")
SPACES = {
    name: f"http://www.sdmx.org/resources/sdmxml/schemas/v2_1/{word}"
    for name, word in (("mes", "message"), ("str", "structure"), ("com", "common"))
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataflow:
    """One table: its place among the tables, the statistic, and the concept of each key, the period last."""

    place: int
    answer: Document
    concepts: Mapping[str, str]

    @property
    def cells(self) -> list[Document]:
        """The estimates that have a period, where there is a dimension of periods: it has no code for what is missing."""
        periods = [key for key, concept in self.concepts.items() if concept == PERIOD]
        return [
            each for each in self.answer["estimates"] if all(each["cell"][k] not in SPECIAL for k in periods)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Codelists:
    """Codes for the levels of each concept. Levels that would be spelled alike get a number."""

    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def code(self, concept: str, level: str) -> str:
        """The code of a level: letters, digits and four marks; a period is its own."""
        if concept == PERIOD:
            return level
        known = self.codes.setdefault(concept, {})
        if level not in known:
            plain = SPECIAL.get(level) or re.sub(r"[^A-Za-z0-9@$_-]", "_", level) or "_X"
            code, number = plain, 2
            while code in known.values():
                code, number = f"{plain}_{number}", number + 1
            known[level] = code
        return known[level]


def sdmx(release: Release) -> dict[str, bytes]:
    """The files by their names; refused where no table can be told in SDMX."""
    flows, labels, codes = dataflows(release.document), Labels.of(release.document), Codelists()
    made = {}
    for flow in flows:
        header = [
            "STRUCTURE",
            "STRUCTURE_ID",
            "ACTION",
            STATISTIC,
            *flow.concepts.values(),
            VALUE,
            *ATTRIBUTES,
        ]
        named = f"{AGENCY}:{_name(release, 'DF', flow)}({VERSION})"
        made[f"{release.id}.{flow.place}.sdmx.csv"] = tidy_csv(header, _observations(flow, codes, named))
    made[f"{release.id}.sdmx.xml"] = _message(release, flows, labels, codes).encode()
    return made


def dataflows(document: Document) -> list[Dataflow]:
    """The tables of which every key has a concept."""
    concepts = {name: each.get("concept") for name, each in (document.get("labels") or {}).items()}
    found: list[Dataflow] = []
    for answer in [*(document.get("statistics") or []), *_margins(document)]:
        cells = [each.get("cell") or {} for each in answer.get("estimates") or []]
        asked = [key for key in asked_keys(answer) if any(key in cell for cell in cells)]
        keys = asked or list(cells[0] if cells else ())
        if keys and all(concepts.get(key) for key in keys):
            keys.sort(key=lambda key: concepts[key] == PERIOD)
            flow = Dataflow(
                place=len(found) + 1, answer=answer, concepts={key: str(concepts[key]) for key in keys}
            )
            _check(flow)
            found.append(flow)
    if not found:
        raise PlanError(
            "needs a table whose columns name their concept in the codebook, such as concept = 'REF_AREA'",
            field="--as sdmx",
        )
    return found


def _margins(document: Document) -> Iterator[Document]:
    """Every margin of tables that add up, told as a statistic is."""
    for table in document.get("tables") or []:
        for margin in table["margins"]:
            yield {
                "name": f"{table['name']}: {' by '.join(margin['columns'])}",
                "query": {"table": list(margin["columns"])},
                "estimates": margin["lines"],
                "interval": {"level": table["level"]},
                "unit": table["unit"],
            }


def _check(flow: Dataflow) -> None:
    """Refuse a table whose concepts are no dimensions."""
    concepts = [STATISTIC, *flow.concepts.values()]
    if len(set(concepts)) < len(concepts):
        raise PlanError(
            f"{flow.answer.get('name')}: its columns need concepts of their own, other than {STATISTIC}",
            field="--as sdmx",
        )
    for key, concept in flow.concepts.items():
        if concept == PERIOD and not all(PERIODS.fullmatch(str(each["cell"][key])) for each in flow.cells):
            raise PlanError(
                f"the levels of {key} are no periods such as 2024 or 2024-Q1, and {PERIOD} takes no others; give it "
                "another concept",
                field="--as sdmx",
            )


def _name(release: Release, kind: str, flow: Dataflow) -> str:
    return f"{kind}_{re.sub(r'[^A-Za-z0-9]', '_', release.id).upper()}_{flow.place}"


def _observations(flow: Dataflow, codes: Codelists, named: str) -> Iterator[list[Any]]:
    level, unit = (flow.answer.get("interval") or {}).get("level"), flow.answer.get("unit")
    statistic = codes.code(STATISTIC, str(flow.answer.get("name")))
    for each in flow.cells:
        ends = [each.get(key) for key in ("privacy_low", "privacy_high", "total_low", "total_high")]
        status = "U" if each.get("reliability") == "unreliable" else "A"
        place = [
            codes.code(concept, str(each["cell"].get(key, ""))) for key, concept in flow.concepts.items()
        ]
        yield ["dataflow", named, "I", statistic, *place, each.get("value"), *ends, level, unit, status]


def _message(release: Release, flows: Sequence[Dataflow], labels: Labels, codes: Codelists) -> str:
    """Dataflows, code lists, concepts and definitions, in the order of the schema."""
    spaces = " ".join(f'xmlns:{name}="{address}"' for name, address in SPACES.items())
    told = {concept: labels.column(key) for flow in flows for key, concept in flow.concepts.items()}
    keys = {concept: key for flow in flows for key, concept in flow.concepts.items()}
    named = {STATISTIC: "Statistic", **told, VALUE: "Estimate, with privacy noise", **ATTRIBUTES}
    lists = "".join(
        _maintained("Codelist", f"CL_{concept}", named[concept], _codes(known, keys.get(concept), labels))
        for concept, known in codes.codes.items()
    )
    concepts = _maintained(
        "ConceptScheme",
        "CS",
        "Concepts",
        "".join(_item("Concept", name, text) for name, text in named.items()),
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<mes:Structure {spaces}>\n'
        f"<mes:Header><mes:ID>{escape(_name(release, 'ST', flows[0]))}</mes:ID><mes:Test>false</mes:Test>"
        f'<mes:Prepared>2000-01-01T00:00:00</mes:Prepared><mes:Sender id="{AGENCY}"/></mes:Header>\n<mes:Structures>\n'
        f"<str:Dataflows>{''.join(_flow(release, flow) for flow in flows)}</str:Dataflows>\n"
        f"<str:Codelists>{lists}</str:Codelists>\n<str:Concepts>{concepts}</str:Concepts>\n"
        f"<str:DataStructures>{''.join(_definition(release, flow) for flow in flows)}</str:DataStructures>\n"
        "</mes:Structures>\n</mes:Structure>\n"
    )


def _codes(known: Mapping[str, str], key: str | None, labels: Labels) -> str:
    return "".join(
        _item("Code", code, labels.level(key, level) if key else level) for level, code in known.items()
    )


def _item(kind: str, name: str, text: str) -> str:
    return f"<str:{kind} id={quoteattr(name)}><com:Name>{escape(text)}</com:Name></str:{kind}>"


def _maintained(kind: str, name: str, title: str, inside: str) -> str:
    about = f'id={quoteattr(name)} agencyID="{AGENCY}" version="{VERSION}"'
    return f"<str:{kind} {about}><com:Name>{escape(title)}</com:Name>{inside}</str:{kind}>"


def _flow(release: Release, flow: Dataflow) -> str:
    reference = f'<Ref id={quoteattr(_name(release, "DSD", flow))} version="{VERSION}" agencyID="{AGENCY}" class="DataStructure"/>'
    title = str(flow.answer.get("name"))
    return _maintained(
        "Dataflow", _name(release, "DF", flow), title, f"<str:Structure>{reference}</str:Structure>"
    )


def _definition(release: Release, flow: Dataflow) -> str:
    """What an observation of the table is made of."""
    concepts = [STATISTIC, *flow.concepts.values()]
    dimensions = "".join(_dimension(concept, place) for place, concept in enumerate(concepts, start=1))
    attributes = "".join(
        f'<str:Attribute id="{name}" assignmentStatus="Conditional">{_identity(name)}<str:AttributeRelationship>'
        f'<str:PrimaryMeasure><Ref id="{VALUE}"/></str:PrimaryMeasure></str:AttributeRelationship></str:Attribute>'
        for name in ATTRIBUTES
    )
    inside = (
        f'<str:DataStructureComponents><str:DimensionList id="DimensionDescriptor">{dimensions}</str:DimensionList>'
        f'<str:AttributeList id="AttributeDescriptor">{attributes}</str:AttributeList>'
        f'<str:MeasureList id="MeasureDescriptor"><str:PrimaryMeasure id="{VALUE}">{_identity(VALUE)}</str:PrimaryMeasure>'
        "</str:MeasureList></str:DataStructureComponents>"
    )
    return _maintained("DataStructure", _name(release, "DSD", flow), str(flow.answer.get("name")), inside)


def _identity(concept: str) -> str:
    parent = f'maintainableParentID="CS" maintainableParentVersion="{VERSION}" agencyID="{AGENCY}"'
    return (
        f'<str:ConceptIdentity><Ref id={quoteattr(concept)} {parent} class="Concept"/></str:ConceptIdentity>'
    )


def _dimension(concept: str, place: int) -> str:
    if concept == PERIOD:
        held, kind = '<str:TextFormat textType="ObservationalTimePeriod"/>', "TimeDimension"
    else:
        reference = (
            f'<Ref id={quoteattr("CL_" + concept)} version="{VERSION}" agencyID="{AGENCY}" class="Codelist"/>'
        )
        held, kind = f"<str:Enumeration>{reference}</str:Enumeration>", "Dimension"
    return (
        f'<str:{kind} id={quoteattr(concept)} position="{place}">{_identity(concept)}'
        f"<str:LocalRepresentation>{held}</str:LocalRepresentation></str:{kind}>"
    )
