"""Synthesizers by name."""

from reticent.errors import PlanError, nearest
from reticent.synth.base import MissingMethod, SynthesisMethod
from reticent.synth.learned.autogan import AutoGan
from reticent.synth.learned.chain import AutoregressiveChain
from reticent.synth.learned.ctgan import CtGan
from reticent.synth.learned.kamino import KAMINO_I, Kamino
from reticent.synth.learned.misgan import MisGan
from reticent.synth.marginals.aim import AIM
from reticent.synth.marginals.independent import Independent
from reticent.synth.marginals.mst import MST
from reticent.synth.marginals.pairs import AllPairs
from reticent.synth.marginals.privbayes import PrivBayes
from reticent.synth.marginals.privbayes_printed import PrivBayesPrinted

_ALL: tuple[SynthesisMethod, ...] = (
    Independent(),
    PrivBayes(),
    PrivBayesPrinted(),
    MST(),
    AllPairs(residuals=False),  # with_intervals has the one that measures them
    AIM(),
    AIM(per_column=16, grow=4, merge=0, most_cells=10_000_000, name="aim-printed"),
    AutoregressiveChain(),
    Kamino(),
    Kamino(fills=True, name=KAMINO_I),
    MisGan(),
    CtGan(),
    AutoGan(),
)
KNOWN = {each.name: each for each in _ALL}


def find(name: str) -> SynthesisMethod:
    """The synthesizer of that name."""
    if name not in KNOWN:
        raise PlanError(f"is one of {', '.join(KNOWN)}{nearest(name[:80], KNOWN)}", field="method")
    return KNOWN[name]


INFERRING = ("mst", "aim", "pairs")


def usual_missing(method: SynthesisMethod) -> MissingMethod:
    """What is done about missing values where nothing is said: cells are weighted by who answers, if the method can."""
    return MissingMethod.WEIGHTED if isinstance(method, AIM | MST | AllPairs) else MissingMethod.AVAILABLE


def with_intervals(name: str | None, pairs: str | None) -> SynthesisMethod:
    """The synthesizer that measures for intervals: every pair, or those that the method of that name chooses."""
    if name is not None and find(name).name not in INFERRING:
        raise PlanError(
            f"{name} keeps no noisy tables, so it has no intervals; use one of {', '.join(INFERRING)}",
            field="method",
        )
    if pairs != "chosen":
        return AllPairs()
    if name == "mst":
        return MST(residuals=True)
    if name == "aim":
        return AIM(residuals=True)
    raise PlanError("'chosen' pairs are those of mst or aim; name one of them", field="pairs")
