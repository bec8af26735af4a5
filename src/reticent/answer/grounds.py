"""What claims of statistics rest on: a theorem's name, and the page that proves it."""

from reticent.sensitivity.donors import CAPPED_PAGES

Ground = tuple[str, str]

LAPLACE = ("discrete Laplace mechanism", "proofs/noise/laplace.md")
GAUSS = ("discrete Gaussian mechanism", "proofs/noise/gaussian.md")
CHOICE = ("exponential mechanism in zCDP", "proofs/noise/selection.md")
FLIP = ("permute-and-flip", "proofs/noise/selection.md")
LINEAR = ("linear sensitivity", "proofs/sensitivity/linear.md")
DOMAINS = ("domains under one epsilon", "proofs/sensitivity/domains.md")
DONORS = (
    ("answer: imputed", "proofs/answer/imputed.md"),
    ("what a donor moves", "proofs/sensitivity/constants.md"),
    ("hub ladder", "proofs/sensitivity/hubs.md"),
    ("smooth bound of a ladder", "proofs/sensitivity/ladder.md"),
)
HEAVY = {
    "double Lomax": ("double Lomax mechanism", "proofs/noise/lomax.md"),
    "generalised Cauchy": ("generalised Cauchy mechanism", "proofs/noise/cauchy.md"),
    "Student": ("Student mechanism", "proofs/noise/student.md"),
}
PIVOT = ("error bar for a confidential scale", "proofs/refine/pivot.md")
WEIGHTS = (
    ("answer: weighted", "proofs/answer/weighted.md"),
    ("post-stratified answers", "proofs/answer/poststrata.md"),
    ("the largest weight within k steps", "proofs/sensitivity/poststrata.md"),
    ("smooth bound of a ladder", "proofs/sensitivity/ladder.md"),
)
CAPPED = (("answer: capped donors", "proofs/answer/capped.md"), *CAPPED_PAGES)
COPIED = ("answer: copied", "proofs/answer/copied.md")


def answered(page: str) -> Ground:
    """The page of an answer."""
    return f"answer: {page}", f"proofs/answer/{page}.md"
