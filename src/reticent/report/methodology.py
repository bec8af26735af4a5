"""What a reader of a release takes away: a paragraph for a methodology section, and how to cite it.

Each sentence comes from the products that a release has: what drew the noise, and what the intervals of each cover.
"""

from collections.abc import Iterator

from reticent.release.product import Document
from reticent.report.cells import cell_intervals
from reticent.report.words import basis, external_imputation, handled, point_mass_sentences, someone

MECHANISM = " mechanism"
NOISE_ONLY = ("statistics", "tables", "regression")
"""Sections whose intervals for privacy noise cover nothing else; tables of small cells say it themselves."""


def methodology(document: Document) -> str:
    """A paragraph to paste."""
    claim = document.get("guarantee") or {}
    if claim.get("measure") == "observed":
        return _observed(document)
    synthetic = _synthetic(document)
    if synthetic and not any(document.get(key) for key in ("cells", *NOISE_ONLY)):
        opening = f"The synthetic rows of “{document.get('title')}” were made from the data set {document.get('dataset')}"
        return f"{opening} under {_protected(document)} {synthetic} {_charged(document)}"
    opening = f"The estimates in “{document.get('title')}” were computed from the data set {document.get('dataset')}"
    said = [
        f"{opening} under {_protected(document)}",
        _noise(document),
        _covered(document),
        synthetic,
        _charged(document),
    ]
    return " ".join(each for each in said if each)


def _protected(document: Document) -> str:
    claim = document.get("guarantee") or {}
    unit = f"The protected unit is one {someone(document.get('protects') or {})}."
    return f"differential privacy ({claim.get('words')}). {unit}{_repaired(document)}"


def _charged(document: Document) -> str:
    return f"The cost was recorded in a ledger before any row was read. {_software(document)}"


def _software(document: Document) -> str:
    software = document.get("software") or {}
    return f"Software: reticent {software.get('reticent')}, {software.get('engine')}."


def _noise(document: Document) -> str:
    """What drew the noise. Of hubs and small cells the bound is a smooth one, so it is not said to be the most."""
    drawn = " and ".join(dict.fromkeys(_mechanisms(document)))
    unit = (document.get("protects") or {}).get("unit_name") or "respondent"
    return (
        f"Noise was drawn by {drawn}, scaled to a bound on what one {unit} can move; bounds and categories were declared "
        "beforehand and not read from the data."
    )


def _mechanisms(document: Document) -> Iterator[str]:
    """The mechanisms of statistics and of tables that add up, the methods of small cells, the estimators of regressions."""
    for answer in document.get("statistics") or []:
        yield from (str(part.get("mechanism")) for part in answer.get("parts") or [])
    for table in document.get("tables") or []:
        grounds = [str(each["theorem"]) for each in table["guarantee"].get("rests_on") or []]
        yield from (each.removesuffix(MECHANISM) for each in grounds if each.endswith(MECHANISM))
    yield from (f"the method {table['method']!r}" for table in document.get("cells") or [])
    yield from (f"the estimator {line['estimator']!r}" for line in document.get("regression") or [])


def _covered(document: Document) -> str:
    """What the intervals cover, product by product."""
    plain = (
        "Intervals for privacy noise cover it at their stated level; sampling error is covered only where a total interval is given."
        if any(document.get(key) for key in NOISE_ONLY)
        else ""
    )
    cells = [
        f"The intervals of “{each['name']}” cover {each['covers']}." for each in cell_intervals(document)
    ]
    return " ".join(
        [*([plain] if plain else []), *cells, f"Nonresponse bias is not covered.{_sampling_method(document)}"]
    )


def _sampling_method(document: Document) -> str:
    """How sampling errors were had, for those who print them."""
    told = document.get("sampling") or {}
    if told.get("source") == "declared":
        return f" Sampling variances are those of simple random sampling times a declared design effect of {told['design_effect']}."
    if not told.get("source"):
        return " Sampling errors were estimated privately, for each statistic by itself." * bool(
            told.get("own")
        )
    own = "; some statistics have an estimate of their own" if told.get("own") else ""
    return (
        f" Sampling variances are those of simple random sampling times a design effect of {told.get('design_effect')}, which was "
        f"estimated privately from {basis(told)}, with {told.get('degrees_of_freedom')} degrees of freedom{own}."
    )


def _synthetic(document: Document) -> str:
    """On the synthetic tables of a release; nothing where it has none."""
    said = [
        f"“{table['name']}” holds {table['rows']:,} rows of {len(table['columns'])} columns, drawn from a model that was "
        f"learned by the method {table['method']!r} ({table['guarantee']['words']}). Of missing answers: {table['missing_words']}."
        + "".join(f" {each}" for each in point_mass_sentences(table))
        for table in document.get("synth") or []
    ]
    if not said:
        return ""
    return (
        f"{' '.join(said)} Numbers were put into bins that were declared beforehand, and drawn evenly inside them. The rows "
        "understate uncertainty: no sampling error, noise or error of the model can be read off them."
    )


def _observed(document: Document) -> str:
    """The same paragraph where a table is observed: it must not sound like a promise."""
    tables = document.get("cells") or []
    named = "; ".join(f"“{table['name']}”" for table in tables if table.get("label"))
    return (
        f"The estimates in “{document.get('title')}” were computed from the data set {document.get('dataset')}. "
        f"The tables {named} carry noise scaled to the largest sensitivity seen in the data (Chetty and Friedman): "
        f"{tables[0].get('label') if len(tables) == 1 else 'observed, not differentially private'}. "
        "The release as a whole has no formal guarantee. What was set aside for it was recorded in a ledger before "
        f"any row was read. {_software(document)}"
    )


def _repaired(document: Document) -> str:
    """What was done about missing answers, with weights and by lot, before anything was computed."""
    said = "; ".join(str(each) for each in document.get("imputation") or [])
    own = f" Before anything was computed, {said}; the guarantee covers this repair." if said else ""
    others = [
        each for done in handled(document) if done.what in ("weights", "rows read") for each in done.sentences
    ]
    return " ".join(
        [own, *(f"{each[:1].upper()}{each[1:]}." for each in external_imputation(document)), *others]
    ).rstrip()


def citation(document: Document) -> str:
    """How to cite. Publisher and year are the publisher's to fill in: a release carries no date."""
    claim, receipt = document.get("guarantee") or {}, document.get("receipt") or {}
    mark = f" Receipt {str(receipt['hash'])[:16]}." if receipt.get("hash") else ""
    return (
        f"[Publisher] ([year]). {document.get('title')}. Release {document.get('id')} of "
        f"{document.get('dataset')}; {claim.get('words')}.{mark}"
    )
