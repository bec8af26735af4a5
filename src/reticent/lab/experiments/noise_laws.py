"""The constants of the noises, computed beside the vectors of THEORY 2.5 and 9. Nothing is drawn."""

from collections.abc import Callable, Iterator
from fractions import Fraction

from flint import arb

from reticent.lab.run.experiment import Experiment, Outcome
from reticent.noise import calibrate
from reticent.noise.families import Cauchy, Heavy, Lomax, Student, cdf
from reticent.refine.quantiles import quantile

FOUR = Fraction(4)
GAMMAS = ("1.5", "2", "2.5", "3", "3.5", "4", "5", "6")
KAPPA = "0.793700526 1 1.275424501 1.587401052 1.924167449 2.279507057 3.031433133 3.823622457"
CONSTANT = "0.206748336 0.318309886 0.378413364 0.413496672 0.435513208 0.450158158 0.467744642 0.477464829"
MEAN_SIZE = "1.618033989 1 0.801937736 0.707106781 0.618033989 0.577350269"  # gamma from 2.5
VARIANCE = "1.801937736 1 0.618033989 0.5"  # gamma from 3.5
LEVELS = ("0.75", "0.95", "0.975", "0.995")
QUANTILES: dict[Heavy, str] = {
    Cauchy(Fraction(2)): "1 6.313752 12.706205 63.656741",
    Cauchy(Fraction(3)): "0.641542 1.984659 2.851489 6.425533",
    Cauchy(Fraction(4)): "0.566396 1.393951 1.793362 3.102832",
    Cauchy(Fraction(5)): "0.538444 1.187816 1.446596 2.194340",
    Student(): "0.441610792 1.358715013 1.837386231 3.372250562",
    Lomax(8): "0.090507733 0.333521432 0.454215433 0.778279410",
}
POINTS = ("0.1", "0.5", "1", "3")
CDF: dict[Heavy, str] = {
    Cauchy(): "0.545014916 0.722359246 0.890274963 0.994471668",
    Student(): "0.563241348 0.774907572 0.909154943 0.993076584",
    Lomax(8): "0.766746310 0.980490779 0.998046875",
}
# epsilon, epsilon/beta: a of Lomax, of Student 4, of Cauchy 4 in closed form and exactly
SCALES = """
1 6    0.149351785 0.418557264 0.259126290 0.299075289
1 8    0.115700416 0.450160937 0.310689007 0.342969740
1 10   0.094225184 0.465336813 0.339380236 0.366609584
0.5 8  0.053024610 0.216752469 0.145932656 0.164427250
2 8    0.248848869 0.983238021 0.704113535 0.761261416
4 6    0.770794952 2.350402387 1.708908104 1.866460078
"""
# epsilon, epsilon/beta: epsilon sd/S in the same order
SPREADS = """
0.1 6  2.596889 2.596666 4.483660 3.657567
0.5 6  2.371912 2.506487 4.194495 3.524941
1 6    2.117335 2.389159 3.859122 3.343640
1 8    1.886060 2.221428 3.218653 2.915709
1 10   1.768812 2.148981 2.946548 2.727697
2 8    1.753819 2.034095 2.840451 2.627218
4 6    1.641047 1.701836 2.340676 2.143094
8 6    1.184532 1.102882 2.279507 1.142864
"""
CALIBRATIONS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "Lomax": lambda e, b: calibrate.lomax(epsilon=e, beta=b),
    "Student 4": lambda e, b: calibrate.student4(epsilon=e, beta=b),
    "Cauchy 4, closed form": lambda e, b: calibrate.cauchy_closed(epsilon=e, beta=b, gamma=FOUR),
    "Cauchy 4, exact": lambda e, b: calibrate.cauchy(epsilon=e, beta=b, gamma=FOUR),
}


def run(index: int, seed: int) -> list[Outcome]:
    """All items; neither argument matters."""
    lines = [*_constants(), *_quantiles(), *_cdf(), *_scales(), *_spreads()]
    return [Outcome(item=item, value=float(value), vector=float(text)) for item, value, text in lines]


Line = tuple[str, arb | Fraction, str]


def _constants() -> Iterator[Line]:
    families = {gamma: Cauchy(Fraction(gamma)) for gamma in GAMMAS}
    for what, values, of in (
        ("steepest slope", KAPPA, Cauchy.steepest),
        ("constant", CONSTANT, Cauchy.constant),
        ("mean size", MEAN_SIZE, Cauchy.mean_size),
        ("variance", VARIANCE, Cauchy.variance),
    ):
        texts = values.split()  # the moments begin where they are finite
        for gamma, text in zip(GAMMAS[-len(texts) :], texts, strict=True):
            yield f"{what} of Cauchy {gamma}", of(families[gamma]), text


def _quantiles() -> Iterator[Line]:
    for family, texts in QUANTILES.items():
        for level, text in zip(LEVELS, texts.split(), strict=True):
            yield f"quantile {level} of {_name(family)}", quantile(family, level=Fraction(level)), text


def _cdf() -> Iterator[Line]:
    for family, texts in CDF.items():
        for point, text in zip(POINTS, texts.split(), strict=False):
            at = Fraction(point)
            yield f"P(X <= {point}) of {_name(family)}", cdf(family, arb(at.numerator) / at.denominator), text


def _scales() -> Iterator[Line]:
    for epsilon, m, texts in _table(SCALES):
        for (name, scale), text in zip(CALIBRATIONS.items(), texts, strict=True):
            yield f"a of {name}, epsilon {epsilon}, beta epsilon/{m}", scale(*_at(epsilon, m)), text


def _spreads() -> Iterator[Line]:
    for epsilon, m, texts in _table(SPREADS):
        for (name, scale), text in zip(CALIBRATIONS.items(), texts, strict=True):
            family: Heavy = Lomax(int(m)) if name == "Lomax" else Student() if "Student" in name else Cauchy()
            a, (e, _) = scale(*_at(epsilon, m)), _at(epsilon, m)
            sd = family.variance().sqrt() * e.numerator * a.denominator / (e.denominator * a.numerator)
            yield f"epsilon sd/S of {name}, epsilon {epsilon}, beta epsilon/{m}", sd, text


def _table(text: str) -> Iterator[tuple[str, str, list[str]]]:
    for line in text.strip().splitlines():
        epsilon, m, *texts = line.split()
        yield epsilon, m, texts


def _at(epsilon: str, m: str) -> tuple[Fraction, Fraction]:
    return Fraction(epsilon), Fraction(epsilon) / int(m)


def _name(family: Heavy) -> str:
    parameter = family.m if isinstance(family, Lomax) else family.exponent
    return f"{type(family).__name__} {parameter}"


def experiment() -> Experiment:
    """The calibration constants of every noise, beside those of our statements."""
    return Experiment(
        name="noise-laws",
        title="Constants of the noises, beside the vectors of our statements",
        source="THEORY 2.5 and 9",
        run=run,
        exact=True,
    )
