"""A coefficient of variation is one of a value that a population can have."""

from math import inf

from reticent.refine.total import DesignFactor, total_interval


def made(value: float, limits: tuple[float | None, float | None]) -> tuple[float | None, str | None]:
    factor = DesignFactor(deft=1.0, df=inf)
    found = total_interval(
        value,
        privacy=(value - 2, value + 2),
        noise_sd=1.0,
        variance=4.0,
        factor=factor,
        level=0.95,
        limits=limits,
    )
    return found.cv, found.reliability


def test_a_negative_count_has_no_cv_and_is_unreliable() -> None:
    assert made(-30.0, (0.0, None)) == (None, "unreliable")


def test_a_negative_balance_has_one() -> None:
    """Where negative values are possible, their size is what counts."""
    cv, rating = made(-30.0, (None, None))
    assert cv is not None and rating == "reliable"
    assert made(30.0, (0.0, None)) == (cv, rating)
