"""The prose of a page: the guarantee, the privacy budget, and how to use the numbers or synthetic rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from reticent.exact import show
from reticent.privacy.claim import DELTA, as_approximate
from reticent.report.numbers import certainty, factor

Document = Mapping[str, Any]

USE = (
    (
        "Each row is drawn from a model that was learned with noise. No row is anybody's; one that looks like somebody's is so by "
        "chance, and says nothing about them."
    ),
    (
        "Good for: writing and testing programs, teaching, looking at tables of one or two columns, finding out which question is "
        "worth asking of the real data."
    ),
    (
        "Not for: final numbers. Standard errors and tests computed from synthetic rows are too small, since they know neither of the "
        "noise, nor of the sampling, nor that the model is one. Ask the question in a plan instead, or of the noisy tables behind "
        "the rows (Release.query in Python), and get an interval where they were measured."
    ),
    (
        "The number of rows comes from the plan. More rows are no more information, and say nothing about how many "
        "respondents there were."
    ),
    "What the model does not hold is not in the rows: often relations of three or more columns, and inside a bin any.",
    "Files made from the rows, and models fitted to them, keep the guarantee above without a further charge.",
)


def promised(table: Document) -> str:
    """The claim, and how far it reaches."""
    return f"{table['guarantee']['words']}, for these rows and all that is made from them."


def ruled(table: Document) -> list[str]:
    """The rules that every row keeps, a sentence each."""
    never = [f"No row with {rule}." for rule in table.get("never") or []]
    settled = (table.get("determines") or {}).items()
    apart = [f"{words[:1].upper()}{words[1:]}." for words in table.get("denial") or []]
    return never + [f"{source} settles {target}." for source, target in settled] + apart


def point_mass_sentences(table: Document) -> list[str]:
    """The numbers that had a bin of their own, a sentence for each column."""
    masses = (table.get("point_masses") or {}).items()
    return [
        f"Point masses of {name}, each with a bin of its own: {', '.join(map(str, values))}."
        for name, values in masses
    ]


BANNER = "Rehearsal on simulated rows. Not a release."
NOTHING = (
    "This page promises nothing: its numbers come from rows made up from the codebook, which describe nobody."
)
UNPROVED = (
    "This release carries noise, but no formal guarantee.",
    "Nothing is promised about what a determined reader could learn from it about one respondent.",
)
NO_BAR = 'To publish an interval, give the statistic a budget for it: interval = { epsilon = "0.25" }.'
CARRIES = {"pure": ("epsilon",), "approximate": ("epsilon", "delta"), "zcdp": ("rho",)}


def is_promised(document: Document) -> bool:
    """Whether the page makes a promise: none of a rehearsal, and none where a table is observed and no more."""
    claim = document.get("guarantee") or {}
    carried = CARRIES.get(str(claim.get("measure")))
    is_whole = carried is not None and all(claim.get(name) is not None for name in carried)
    return document.get("published") is True and is_whole


def promise(document: Document) -> list[str]:
    """Two plain sentences, and a third only where the claim needs a caveat."""
    claim, protects = document.get("guarantee") or {}, document.get("protects") or {}
    if document.get("published") is not True:
        return [NOTHING]
    if not is_promised(document):
        return list(UNPROVED)
    change, delta = str(protects.get("change") or claim.get("change")), _delta(document)
    unit = str(protects.get("unit_name") or "respondent")
    first, second = _sentences(claim, someone(protects), unit, change, delta)
    return [first, second, *_caveats(claim)]


def someone(protects: Document) -> str:
    """The protected unit in words: a respondent, or everything recorded under an identifier."""
    unit, most = protects.get("privacy_unit") or "row", protects.get("at_most") or 1
    if unit == "row":
        return "respondent"
    return f"{protects.get('unit_name') or 'respondent'} (everything recorded under one {unit}, at most {most} {'row' if most == 1 else 'rows'})"


def _pair(rho: str, delta: str) -> str:
    """(epsilon, delta) that a sum of rho stands for, computed for the page and kept nowhere."""
    epsilon = as_approximate(Fraction(rho), Fraction(delta))
    return f"({show(epsilon)}, {delta})-differential privacy"


def _sentences(claim: Document, someone: str, unit: str, change: str, delta: str) -> tuple[str, str]:
    if "replaced" in change:
        start = f"Had any one {someone} given other answers,"
        guess = f"which of two sets of answers a {unit} gave"
    else:
        start = f"Had any one {someone} stayed out of the survey, or joined it,"
        guess = f"whether a {unit} took part"
    if claim["measure"] == "zcdp":
        first = f"{start} this release would have followed nearly the same law, within rho = {claim.get('rho')} of"
        second = f"Even to someone who knows everybody else's answers it says little about {guess}"
        return (
            f"{first} zero-concentrated differential privacy; that is {_pair(str(claim['rho']), delta)}.",
            f"{second}, and rho bounds how little.",
        )
    epsilon = Fraction(str(claim["epsilon"]))
    but, aside = "", ""
    if claim["measure"] == "approximate":
        but, aside = f", but for an event of probability at most {claim['delta']}", ", that event aside"
    first = (
        f"{start} this same result could still have come out, with a probability at most {factor(epsilon)}"
    )
    second = f"Someone who knows everybody else's answers, and could otherwise only toss a coin over {guess},"
    return (
        f"{first} times larger or smaller{but}.",
        f"{second} can be at most {certainty(epsilon)} percent sure after reading this release{aside}.",
    )


def _caveats(claim: Document) -> list[str]:
    found = []
    if claim.get("about") == "the complete truth behind it":
        found.append(
            "The guarantee is about the complete answers behind the missing values, not about which are missing."
        )
    if claim.get("about") == "the frame it was drawn from":
        found.append(
            "The guarantee is about everybody who could have been sampled, and holds while nobody knows who was."
        )
    if claim.get("secret"):
        found.append(f"The guarantee holds while {claim['secret']} stays secret.")
    if claim.get("arithmetic") == "ideal reals":
        found.append("The proof treats the computer's numbers as exact reals, which they are not.")
    return found


def _delta(document: Document) -> str:
    """The delta at which the plan wants a sum of rho to be shown."""
    return str((document.get("protects") or {}).get("shown_at_delta") or show(DELTA))


def budget(document: Document) -> dict[str, str] | None:
    """What was spent before, by this release, in all, and what is left; None without a receipt."""
    receipt = document.get("receipt") or {}
    if document.get("published") is not True or receipt.get("charged") is None:
        return None
    before, charged = receipt.get("spent_before"), receipt["charged"]
    beside, wave = document.get("beside_epsilon") or {}, str(receipt.get("wave") or "")
    total = _sum(before, receipt.get("counted") or charged)
    in_rho = receipt.get("unit") == "rho" and bool(total)
    return {
        "unit": str(receipt.get("unit") or "epsilon"),
        "before": str(before if before is not None else "not stated"),
        "charged": str(charged),
        "total": total or "not stated",
        "left": str(receipt["left_after"]) if receipt.get("left_after") is not None else "not stated",
        "factor": factor(Fraction(total)) if total and receipt.get("unit") == "epsilon" else "",
        "wave": f"This release is charged to wave {wave}." if wave else "",
        "shown": f"All releases charged to this ledger up to and including this one promise together rho = {total}, that is "
        f"{_pair(total, _delta(document))}."
        if in_rho
        else "",
        "delta": str(beside.get("delta") or ""),
        "observed": ", ".join(str(each) for each in beside.get("observed") or []),
    }


def _sum(before: Any, charged: Any) -> str:
    from_text = [Fraction(str(part)) for part in (before, charged) if part is not None]
    if len(from_text) < 2:
        return ""
    total = sum(from_text)
    text = f"{float(total):.12f}".rstrip("0").rstrip(".")
    return text if Fraction(text) == total else str(total)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handling:
    """One thing that was done to the rows before anything was asked of them.

    `what` names it in a table of facts, `heading` on a page; `notes` say how far one respondent's answers reach through it.
    """

    what: str
    heading: str
    sentences: list[str]
    notes: list[str]


def handled(document: Document) -> list[Handling]:
    """What was done about missing answers, with weights and by lot; of each thing that was not done nothing is said."""
    filled = [*(document.get("imputation") or []), *external_imputation(document)]
    kinds = [REACHED[kind] for kind in document.get("imputed_by") or [] if kind in REACHED]
    told: tuple[tuple[str, str, list[str], list[str]], ...] = (
        ("missing answers", ITEM_NONRESPONSE, filled, kinds),
        ("weights", KNOWN_TOTALS, _weighted(document), _weight_notes(document)),
        ("rows read", ROWS_READ, _drawn(document), []),
    )
    return [
        Handling(
            what=what,
            heading=heading,
            sentences=[f"{str(each)[:1].upper()}{str(each)[1:]}." for each in said],
            notes=[*notes, COVERED] if notes and is_promised(document) else notes,
        )
        for what, heading, said, notes in told
        if said or notes
    ]


def _weight_notes(document: Document) -> list[str]:
    weights = document.get("weights") or {}
    base = "its own base weight times " if weights.get("base") else ""
    return [f"Every record weighs {base}{FACTORED}" if weights.get("factors") else WEIGHED] * bool(weights)


def shown_bare(bare: Mapping[str, str]) -> dict[str, list[str]]:
    """Why statistics have no interval, with the names it is said of; `bare` tells what makes the noise of each confidential."""
    found: dict[str, list[str]] = {}
    for name, why in bare.items():
        said = (
            f"It is made of {why}, which has none."
            if why in bare
            else f"The size of its noise is {why}. {NO_BAR}"
        )
        found.setdefault(said, []).append(name)
    return found


ITEM_NONRESPONSE = "Missing values and imputation: what was done about item nonresponse"
KNOWN_TOTALS = "Weights: how the sample was made to agree with what is known of the population"
ROWS_READ = "Rows: which respondents were read"
REACHED = {
    "edits": "An edit deduces an answer from the same respondent's other answers, and reaches no other row.",
    "donors": (
        "A donor's answer may now stand in several rows, so the noise is scaled to the respondent's own row and to all rows "
        "their answer could reach."
    ),
    "models": (
        "A model was learned with noise of its own, at a price that is part of the budget. What it fills is computed from the "
        "released model and the respondent's own answers, so no answer reaches another respondent's row."
    ),
}
COVERED = "The guarantee above covers this."
WEIGHED = (
    "The weights depend on who is in the sample, so the noise is scaled to what one respondent can move through the weights of "
    "all who share their bin."
)
FACTORED = "a factor that was released with noise, at a price that is part of the budget."


def not_filled(document: Document) -> str:
    """What became of missing values where nothing filled them, for a table of facts."""
    if document.get("statistics") or document.get("cells") or document.get("regression"):
        return "none was filled; the description of each statistic says whose answers it is of"
    return "none was filled before anything was computed; see the description of each table"


def external_imputation(document: Document) -> list[str]:
    """What was done to the rows before they came, and what the guarantee is worth then."""
    told = document.get("imputed_before") or {}
    return [str(told.get("words"))] if told else []


def _weighted(document: Document) -> list[str]:
    told = document.get("weights") or {}
    if not told:
        return []
    by = " and ".join(str(each) for each in told.get("by") or [])
    bins = f"{told.get('bins')} bins ({told.get('strategy')})"
    raked = told.get("raked") or {}
    fit = [str(raked.get("words"))] if raked else []
    totals = "totals raked to known margins" if raked else "known totals"
    return [f"answers weighted to {totals} by {by} use {bins}: {told.get('how')}", *fit]


def _drawn(document: Document) -> list[str]:
    piece, frames = document.get("piece") or {}, document.get("frames") or []
    read = [f"only {piece.get('words')}"] if piece else []
    read += [f"of its guarantee: {piece['secret']}"] if piece.get("secret") else []
    return read + [f"{each.get('words')}; {each.get('secret')}" for each in frames]


def sampled(document: Document) -> list[str]:
    """Where the sampling error of a release comes from, and when it may be wrong, a sentence each."""
    told = document.get("sampling") or {}
    few = badly_known(told.get("own") or {})
    if not told.get("source"):
        return few
    if told["source"] == "declared":
        mean = told.get("mean_weight")
        also = (
            f" So was what a respondent weighs on average, {mean}: weighted estimates rest on both."
            if mean
            else ""
        )
        return [
            f"The design effect, {told.get('design_effect')}, was declared: it is right if the declaration is.{also}",
            *few,
        ]
    items = "; ".join(str(each) for each in told.get("items") or [])
    said = (
        f"The design effect, {told.get('design_effect')}, was estimated privately from {basis(told)}, over {items}, with "
        f"{told.get('degrees_of_freedom')} degrees of freedom. It is a mean over them: too small for what units differ in more "
        "than in these, and maybe for a domain of larger clusters or inside few units; too large for a domain that cuts across."
    )
    return [said, *(f"Note: {each}." for each in told.get("cautions") or []), *few]


def basis(told: Document) -> str:
    """What a bought design factor was made of; releases of before told the number of units alone."""
    return str(told.get("basis") or f"{told.get('units')} primary sampling units")


FEW_DEGREES = 10


def badly_known(own: Document) -> list[str]:
    """A sentence for each statistic with domains whose own sampling error has few released degrees of freedom."""
    found = []
    for name, each in own.items():
        few = [one for one in each.get("domains") or [] if one["degrees_of_freedom"] < FEW_DEGREES]
        if few:
            cells = "; ".join(", ".join(one["cell"].values()) for one in few)
            found.append(
                f"Note: {name}, in {cells}: the sampling error has fewer than {FEW_DEGREES} degrees of freedom, so it is itself "
                "known badly, and more so if such a domain lies in few primary sampling units."
            )
    return found
