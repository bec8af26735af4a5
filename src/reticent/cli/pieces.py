"""`reticent amplify --rows`: how far a mean of a piece is off, by sampling and by noise, beside a mean of everybody."""

from fractions import Fraction

from reticent.errors import PlanError
from reticent.exact import read_decimal, show
from reticent.privacy.sampling import PieceError, allowed, amplified, piece_error

Row = tuple[str, str, str, str, str]
HEAD: Row = ("a mean of", "epsilon", "sampling sd", "noise sd", "together")


def error_lines(
    *, rate: Fraction, epsilon: Fraction, inverse: bool, rows: int, bounds: str, sd: str
) -> list[str]:
    """A piece, everybody at the same guarantee to all, and everybody with the budget shared out over as many asks."""
    low, high = _bounds(bounds)
    width, spread = high - low, _spread(sd, high - low)
    size = round(rows * rate)
    if size < 1:
        raise PlanError("leaves nobody in the piece; ask more people, or draw more of them", field="--rows")
    spent = allowed(epsilon=epsilon, rate=rate) if inverse else epsilon
    promised = epsilon if inverse else amplified(epsilon=epsilon, rate=rate)
    lines = [
        (f"a piece of {size} of {rows}", spent, size),
        ("everybody, at the same guarantee to all", promised, rows),
        (f"everybody, one of {show(1 / rate, digits=6)} equal shares", spent * rate, rows),
    ]
    table = [HEAD]
    for name, each, asked in lines:
        error = piece_error(size=asked, of=rows, sd=float(spread), width=float(width), epsilon=each)
        table.append(_row(name, each, error))
    said = f"A mean between {show(low)} and {show(high)}, spread {show(spread)}, answers replaced:"
    widths = [max(len(row[place]) for row in table) for place in range(len(HEAD))]
    padded = [[cell.ljust(w) for cell, w in zip(row, widths, strict=True)] for row in table]
    return [said, *("  ".join(cells).rstrip() for cells in padded)]


def _row(name: str, epsilon: Fraction, error: PieceError) -> Row:
    parts = (error.sampling**0.5, error.noise**0.5, error.sd)
    sampling, noise, both = (f"{part:.4g}" for part in parts)
    return name, show(epsilon, digits=6), sampling, noise, both


def _bounds(text: str) -> tuple[Fraction, Fraction]:
    found = [read_decimal(part.strip()) for part in text.split(",")]
    if len(found) != 2 or found[0] is None or found[1] is None or not found[0] < found[1]:
        raise PlanError("are two decimals, such as 0,100", field="--bounds")
    return found[0], found[1]


def _spread(text: str, width: Fraction) -> Fraction:
    """As said, or the most there can be: half of the people at either bound."""
    if not text:
        return width / 2
    sd = read_decimal(text)
    if sd is None or not 0 <= sd <= width:
        raise PlanError("is a decimal, 0 or more, and not above the width of the bounds", field="--sd")
    return sd
