"""What the terminal says of weights: in a preview how they will be made, after a release which bins were used."""

from typing import Any

import typer

from reticent.decimals import show
from reticent.release.drawn_told import drawn_section
from reticent.release.plan import Plan
from reticent.release.release import Release
from reticent.release.weights_told import weight_words


def show_weights(plan: Plan) -> None:
    """One line, with the price of finding the bins."""
    if plan.weight is not None:
        price = f", for {show(plan.weight.price)}" if plan.weight.price else ", which costs nothing"
        typer.echo(f"{weight_words(plan.weight)}{price}")


def weights_dict(plan: Plan) -> dict[str, Any]:
    """The same for JSON; nothing where a plan has no weights."""
    if plan.weight is None:
        return {}
    return {"weights": {"words": weight_words(plan.weight), "epsilon": show(plan.weight.price)}}


def show_drawn(plan: Plan) -> None:
    """The piece that is read, and what the promise is worth to those it was drawn from."""
    told = drawn_section(plan)
    if "piece" in told:
        typer.echo(f"reads {told['piece']['words']}")
        if "secret" in told["piece"]:
            typer.echo(f"its promise: {told['piece']['secret']}")
    for each in told.get("frames", []):
        typer.echo(f"{each['words']}; {each['secret']}")


def show_bins(release: Release) -> None:
    """The strategy and how it was found."""
    told = release.document.get("weights")
    if told:
        typer.echo(f"weights {told['name']}: {told['bins']} bins ({told['strategy']}), {told['how']}")
        if "raked" in told:
            typer.echo(told["raked"]["words"])
