"""Whether a codebook is complete and consistent, as the command line and the desk say it."""

from reticent.errors import SchemaError
from reticent.files import parse_toml
from reticent.schema.codebook import schema_from


def codebook_state(text: str, name: str) -> tuple[str, bool]:
    """What a codebook holds, in words, and whether it is finished: nothing is, while a TODO is left in it.

    **Parameters**

    - `text`: the codebook.
    - `name`: of its file.
    """
    left = _left(text)
    try:
        schema = schema_from(parse_toml(text, name, error=SchemaError))
    except SchemaError as refused:  # a draft is refused for what its TODOs ask; say how many there are
        if not left:
            raise
        raise SchemaError(f"{refused.args[0]} ({name}: {left})", field=refused.field) from None
    state = left or ("finished" if schema.finished else "still marked unfinished")
    is_finished = schema.finished and not left
    return f"{schema.name}: {len(schema.columns)} columns, unit {schema.unit}; {state}", is_finished


def _left(text: str) -> str:
    """How many TODOs are left and where the first of them stand; nothing where there are none."""
    numbered = enumerate(text.splitlines(), start=1)
    # The drafted head speaks of every TODO; that sentence is none.
    lines = [number for number, line in numbered if "TODO" in line and "Every TODO" not in line]
    shown = ", ".join(map(str, lines[:10])) + (", ..." if len(lines) > 10 else "")
    return f"not finished: {len(lines)} TODO left, in lines {shown}" if lines else ""
