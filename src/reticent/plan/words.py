"""Repairs in words: for a preview, a release and its report. Everything said is public."""

from collections.abc import Sequence
from fractions import Fraction

from reticent.answer.parts import Answer, HiddenScale
from reticent.exact import show
from reticent.plan.capped import USUAL_SHARE, caps_for, ladder_of, unserved
from reticent.plan.models import AnyModel
from reticent.prepare.repair import CappedDonors, Default, Donors, Match, Metric, Repair, Scheme
from reticent.query.base import Query, listed
from reticent.query.filled import roles
from reticent.schema import Schema


def donors_words(donors: Donors, schema: Schema) -> str:
    """`missing wage was taken from the nearest donor ...`, and who stands in where there is none."""
    column = schema.coded[donors.column]
    who = {
        Scheme.NEAREST: "taken from the nearest donor",
        Scheme.MEAN: f"filled with the mean of the {donors.k} nearest donors",
        Scheme.MAJORITY: f"filled with the majority of the {donors.k} nearest donors",
    }[donors.scheme]
    near = listed([_near(match) for match in donors.near])
    how = ", by one-hot Euclidean distance" if donors.metric is Metric.ONE_HOT else ""
    last = listed(list(dict.fromkeys(column.text(code) for code in donors.defaults)))
    return f"missing {donors.column} was {who} in {near}{how}; where donors were lacking, {last} stood in"


ALIKE = "likewise, from donors of its own, at the same levels and with the same caps as"


def capped_words(
    group: CappedDonors,
    schema: Schema,
    rings: int,
    rows: int | None = None,
    earlier: Sequence[CappedDonors] = (),
) -> str:
    """`missing wage was taken from a donor ...`, level by level, how many each serves, and who stands in.

    How many recipients are left to the default is what 11.4 expects: nothing is read. Levels that were told of an
    `earlier` group are not told again.
    """
    alike = next((each for each in earlier if each.levels == group.levels), None)
    who = _who(group, rings) if alike is None else f"{ALIKE} {listed(list(alike.columns))}"
    last = listed(
        [_default(name, default, schema) for name, default in zip(group.columns, group.defaults, strict=True)]
    )
    even = (
        f", {100 * unserved(group, schema, rows):.2g} % with {rows:,} respondents spread evenly over all cells"
        if rows
        else ""
    )
    expected = "expected" if group.expected is not None else "taken as usual"
    return (
        f"missing {listed(list(group.columns))} was taken {who}; so one respondent changes at most {group.serve} filled rows of "
        f"others; where no donor had room, {last} stood in (about {100 * unserved(group):.2g} % of missing values in large cells"
        f"{even}, if {show(100 * (group.expected or USUAL_SHARE))} % are missing, as {expected}{_rule(group) if alike is None else ''})"
    )


def _who(group: CappedDonors, rings: int) -> str:
    """From whom it is taken, level by level."""
    levels = "; else ".join(
        f"from one who agrees in {listed([_near(match) for match in level.on])} (serving at most {level.serve})"
        if level.on
        else f"from anybody (serving at most {level.serve})"
        for level in group.levels
    )
    who = "a donor" if rings == 1 else f"{rings} donors, each for a fraction of the record"
    return f"from {who}: {levels}"


def _rule(group: CappedDonors) -> str:
    """Why these levels and caps, where a plan leaves them to the rule of thumb (THEORY 11.4), or says the same."""
    on, caps = [level.on for level in group.levels], [level.serve for level in group.levels]
    said = ["levels give up the last attribute first"] if len(on) > 1 and on == list(ladder_of(on[0])) else []
    if caps == list(caps_for(group.expected, len(caps))):
        who = "caps are made for the first two levels" if len(caps) > 1 else "the cap is made"
        said.append(f"{who} to leave about one missing value in a hundred")
    return f"; {listed(said)}" if said else ""


def _default(name: str, default: Default, schema: Schema) -> str:
    column = schema.coded[name]
    if default.looks:
        return f"what a released model makes of {listed(list(default.looks))}"
    if default.by is None:
        return column.text(default.code)
    return f"a value for each {default.by}, {column.text(default.code)} where that is missing,"


def ask_words(query: Query, schema: Schema, repair: Repair, models: Sequence[AnyModel] = ()) -> str:
    """The ask in words, with the columns whose missing values were filled."""
    said = filled_words(query.words(schema), [role.column for role in roles(query, schema, repair)], "donors")
    return filled_words(said, predicted(query, schema, models), "a private line")


FILLED = "; missing values of "


def filled_words(said: str, filled: Sequence[str], source: str) -> str:
    """What is asked, and that those who did not answer these columns are in it too, by what they were filled from."""
    told = f"{FILLED}{listed(list(filled))} were filled from {source} and count as answers"
    return f"{said}{told}" if filled else said


def bar_words(query: Query, schema: Schema, models: Sequence[AnyModel]) -> str:
    """What an interval for privacy noise leaves out where lines have filled missing values; nothing is said where none has."""
    lined = predicted(query, schema, models)
    if not lined:
        return ""
    return f"; missing values of {listed(lined)} stand as the released line fills them, and its own error is not covered"


def line_total_words(query: Query, schema: Schema, models: Sequence[AnyModel]) -> str:
    """What a total interval leaves out where lines have filled missing values once: a filled answer is taken for one that was
    given."""
    lined = predicted(query, schema, models)
    if not lined:
        return ""
    return (
        f"; missing values of {listed(lined)} stand as the released line fills them, as if they had been given: neither the error "
        "of the line nor how far filled answers are from true ones is covered"
    )


def lent_words(answer: Answer, bar: Fraction) -> str:
    """That a bar rests on a scale which another ask has bought: it has noise of confidential scale, and paid for no bar."""
    is_hidden = any(isinstance(part, HiddenScale) for part in answer.parts)
    if bar or not is_hidden or not answer.estimates[0].has_interval:
        return ""
    return (
        "; this statistic bought no interval: the scale was published for an earlier one over the same recipients, and "
        "bounds it, so that the interval may be wider than one of its own"
    )


def predicted(query: Query, schema: Schema, models: Sequence[AnyModel]) -> list[str]:
    """The columns filled from lines that an ask rests on: those it would rest on if donors filled them."""
    return [role.column for role in roles(query, schema, stand_in(models))]


def stand_in(models: Sequence[AnyModel]) -> Repair:
    """Donors in place of models, to see what an ask rests on; never run."""
    return Repair(
        donors=tuple(
            Donors(column=model.column, near=(), defaults=(0,)) for model in models if not model.stands_in
        )
    )


def copied_stand_in(models: Sequence[AnyModel]) -> Repair:
    """The same for the models that fill a column several times."""
    return stand_in([model for model in models if model.copies > 1])


def _near(match: Match) -> str:
    said = [f"{len(match.starts)} groups"] if match.starts else []
    said += [f"weight {show(match.weight)}"] if match.weight != 1 else []
    return f"{match.column} ({', '.join(said)})" if said else match.column
