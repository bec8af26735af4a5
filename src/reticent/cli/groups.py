"""How a group of commands lists them: each with the whole first sentence of its help."""

from typing import Any

from typer.core import TyperGroup


class WholeSentences(TyperGroup):
    """Typer cuts what a command does to one line and ends it in dots; here it runs on over the next lines."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, with the sentence that a list of commands tells; None where there is none."""
        found = super().get_command(ctx, cmd_name)
        if found is not None and found.help and not found.short_help:
            found.short_help = " ".join(found.help.split()).partition(". ")[0].removesuffix(".") + "."
        return found
