"""What somebody is told who interrupts a command: the whole command that finishes it, once there is something to finish."""

INTERRUPTED = "interrupted: run the command again, or resume what was charged"
_finishing: list[str] = []


def finish_with(command: str) -> None:
    """From now on an interruption names this command."""
    _finishing[:] = [command]


def interrupted() -> str:
    """The sentence for somebody who interrupted."""
    if not _finishing:
        return INTERRUPTED
    return f"interrupted: run the command again, or finish what was charged with `{_finishing[0]}`"
