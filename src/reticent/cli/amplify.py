"""`reticent amplify`: what a promise is worth to everybody a secret sample was drawn from, or to the truth behind holes."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fractions import Fraction

    from reticent.errors import PlanError
    from reticent.privacy.claim import Change, Claim
    from reticent.privacy.sampling import SamplingDesign

Row = tuple[str, str, str]
DRAWN = {"simple": "without replacement", "poisson": "each on their own"}


def add_to(app: typer.Typer) -> None:
    """Hang the command on the root."""
    app.command(
        epilog="Examples: reticent amplify --rate 0.1 --epsilon 1; "
        "reticent amplify --rate 1000/40000 --epsilon 0.5 --inverse --rows 40000 --bounds 0,100; "
        "reticent amplify --missing 'age=1,income=0.75' --mechanism 'age:0.5' --mechanism 'age,income:0.5'"
    )(amplify)


def amplify(
    rate: Annotated[
        str, typer.Option("--rate", help="Share of the frame that is drawn: 0.1, or 1000/40000.")
    ] = "",
    epsilon: Annotated[
        list[str] | None,
        typer.Option("--epsilon", help="What is spent on the sample; several are composed first."),
    ] = None,
    inverse: Annotated[
        bool,
        typer.Option("--inverse", help="Take epsilon as guaranteed to the frame; print what may be spent."),
    ] = False,
    change: Annotated[str, typer.Option("--change", help="The change to hide; both where left out.")] = "",
    design: Annotated[str, typer.Option("--design", help="simple or poisson; both where left out.")] = "",
    missing: Annotated[
        str,
        typer.Option(
            "--missing",
            help="How often each answer is there at most, such as 'age=1,income=0.75'; or a TOML file with mechanisms.",
        ),
    ] = "",
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            "--mechanism",
            help="What must be answered, and epsilon: 'age,income:0.5'; '*' for every row, '|' between candidates, a "
            "delta after a second colon.",
        ),
    ] = None,
    masks: Annotated[
        str, typer.Option("--masks", help="secret, which is assumed; others are refused with the reason.")
    ] = "secret",
    as_json: Annotated[bool, typer.Option("--json", help="With --missing: print one JSON object.")] = False,
    people: Annotated[
        int, typer.Option("--rows", help="People in the frame: print the error of a mean, too.", min=0)
    ] = 0,
    bounds: Annotated[str, typer.Option("--bounds", help="With --rows: bounds of what is averaged.")] = "0,1",
    sd: Annotated[str, typer.Option("--sd", help="With --rows: its spread; the most there can be.")] = "",
) -> None:
    """Say what a promise about a secret sample is worth to everybody who could have been drawn. Reads no row.

    With --missing: what promises about an incomplete table are worth to the complete truth behind it.
    """
    from reticent.errors import PlanError
    from reticent.exact import show

    if missing or mechanism or as_json or masks != "secret":
        from reticent.cli.amplify_missing import say

        if rate or epsilon or inverse or change or design or people:
            raise PlanError("--missing goes with --mechanism, --masks and --json only", field="call")
        say(missing, mechanism or [], masks=masks, as_json=as_json)
        return
    if not rate or not epsilon:
        raise PlanError("say --rate and --epsilon, such as --rate 0.1 --epsilon 1", field="call")
    share, total = _share(rate), _total(epsilon)
    pairs = [(d, c) for d in _designs(design) for c in _changes(change)]
    places = ("frame", "sample") if inverse else ("sample", "frame")
    rows, without = _rows(share, total, pairs, inverse=inverse)
    if not rows:
        raise without[0][1]
    errors: list[str] = []
    if people:
        from reticent.cli.pieces import error_lines

        errors = error_lines(rate=share, epsilon=total, inverse=inverse, rows=people, bounds=bounds, sd=sd)
    typer.echo(f"rate {rate}; epsilon {show(total)} for the {places[0]}")
    _print([("drawn", "hidden in the frame", f"epsilon for the {places[1]}"), *rows])
    for name, problem in without:
        typer.echo(f"No theorem for {name}: {problem.args[0]}")
    if not inverse:
        _print_thesis(share, total)
    for line in errors:
        typer.echo(line)
    typer.echo("It holds while nobody knows who was drawn, and if the draw did not look at the rows.")


def _rows(
    rate: "Fraction", epsilon: "Fraction", pairs: "list[tuple[SamplingDesign, Change]]", *, inverse: bool
) -> "tuple[list[Row], list[tuple[str, PlanError]]]":
    """The lines of the table, and what has no theorem with the refusal."""
    from reticent.errors import PlanError

    rows, without = [], []
    for design, change in pairs:
        try:
            found = (_spendable if inverse else _promised)(rate, epsilon, design, change)
            rows.append((DRAWN[design], change.value, found))
        except PlanError as problem:
            without.append((f"{design.value}, {change.value}", problem))
    return rows, without


def _promised(rate: "Fraction", epsilon: "Fraction", design: "SamplingDesign", change: "Change") -> str:
    """The mechanisms keep their promise against the change that their sample undergoes."""
    from reticent.exact import show
    from reticent.privacy.sampling import amplify as amplify_claims

    return show(amplify_claims([_claim(epsilon, design)], rate=rate, design=design, change=change).epsilon)


def _spendable(rate: "Fraction", epsilon: "Fraction", design: "SamplingDesign", change: "Change") -> str:
    from reticent.exact import show
    from reticent.privacy.claim import Change
    from reticent.privacy.sampling import SamplingDesign, allowed, allowed_both_ways

    _promised(rate, epsilon, design, change)  # refuses what has no theorem
    both = design is SamplingDesign.POISSON and change is Change.REPLACE
    return show((allowed_both_ways if both else allowed)(epsilon=epsilon, rate=rate))


def _claim(epsilon: "Fraction", design: "SamplingDesign") -> "Claim":
    from reticent.privacy.claim import Change, Claim
    from reticent.privacy.sampling import SamplingDesign

    change = Change.REPLACE if design is SamplingDesign.SIMPLE else Change.ADD_REMOVE
    return Claim(measure="pure", epsilon=epsilon, change=change)


def _print_thesis(rate: "Fraction", epsilon: "Fraction") -> None:
    from reticent.exact import show
    from reticent.privacy.sampling import thesis_bound, thesis_largest_rate

    largest = thesis_largest_rate(epsilon=epsilon)
    if rate < largest:
        bound = f"gives {show(thesis_bound(epsilon=epsilon, rate=rate))}"
    else:
        bound = f"is no gain from rate {show(largest)} on"
    typer.echo(f"For comparison: theorem 5.5.1 of Merrill 2021 {bound}.")


def _designs(name: str) -> "list[SamplingDesign]":
    from reticent.privacy.sampling import SamplingDesign, design_of

    return [design_of(name)] if name else list(SamplingDesign)


def _changes(name: str) -> "list[Change]":
    from reticent.errors import PlanError
    from reticent.privacy.claim import Change

    if name and name not in tuple(Change):
        raise PlanError(f"is one of: {'; '.join(Change)}", field="--change")
    return [Change(name)] if name else list(Change)


def _share(text: str) -> "Fraction":
    import re
    from fractions import Fraction

    from reticent.errors import PlanError
    from reticent.privacy.claim import amount

    if re.fullmatch(r"[0-9]{1,12}/[0-9]{1,12}", text, re.ASCII) and int(text.split("/")[1]):
        found = Fraction(text)
    else:
        found = amount(text, field="--rate")
    if not 0 < found <= 1:
        raise PlanError("is a share of the frame: above 0 and at most 1", field="--rate")
    return found


def _total(texts: list[str]) -> "Fraction":
    from fractions import Fraction

    from reticent.privacy.claim import amount

    return sum((amount(text, field="--epsilon") for text in texts), Fraction(0))


def _print(rows: list[Row]) -> None:
    widths = [max(len(row[place]) for row in rows) for place in (0, 1)]
    for row in rows:
        typer.echo(f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}")
