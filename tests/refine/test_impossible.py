"""A coefficient of variation is one of a value that a population can have."""

from math import inf

from reticent.refine.total import DesignFactor, TotalError, total_interval

Limits = tuple[float | None, float | None]


def made(value: float, limits: Limits) -> tuple[float | None, str | None]:
    found = whole(value, limits)
    return found.cv, found.reliability


def whole(value: float, limits: Limits) -> TotalError:
    factor = DesignFactor(deft=1.0, df=inf)
    return total_interval(
        value,
        privacy=(value - 2, value + 2),
        noise_sd=1.0,
        variance=4.0,
        factor=factor,
        level=0.95,
        limits=limits,
    )


def test_a_negative_count_has_no_cv_and_is_unreliable() -> None:
    assert made(-30.0, (0.0, None)) == (None, "unreliable")


def test_a_negative_balance_has_one() -> None:
    """Where negative values are possible, their size is what counts."""
    cv, rating = made(-30.0, (None, None))
    assert cv is not None and rating == "reliable"
    assert made(30.0, (0.0, None)) == (cv, rating)


def test_an_interval_that_lies_wholly_below_zero_is_told_around_it() -> None:
    """Cut at 0 alone, -30 with a margin of 4 would read "0 to 0", as if it were certain."""
    found, half = whole(-30.0, (0.0, None)), whole(30.0, (None, None)).margin
    assert (found.low, found.high) == (0.0, half) and half > 4
    assert (whole(-1.0, (0.0, None)).low, whole(-1.0, (0.0, None)).high) == (0.0, half - 1)
    assert (whole(9.0, (0.0, 1.0)).low, whole(9.0, (0.0, 1.0)).high) == (0.0, 1.0)
