"""The errors that spacql raises. The command line prints their message and no traceback."""

from collections.abc import Iterable
from difflib import get_close_matches


class SpacqlError(Exception):
    """Base of all errors that a user can cause and mend."""


class InputError(SpacqlError, ValueError):
    """A name, number, shape or file that cannot be used; the message says which and why."""


class DataError(InputError):
    """A dataset that is wrong or damaged; the message names field, agent and row."""


class NoRoom(DataError):
    """Data may be sound, and there is not enough memory or disk for it."""


class MissingExtra(SpacqlError, ImportError):
    """A feature whose optional packages are not installed; the message has the command."""

    def __init__(self, feature: str, extra: str):
        super().__init__(
            f"{feature} needs packages that are not installed. "
            f"Install them with: pip install 'spacql[{extra}]'"
        )


class TrainingError(SpacqlError, RuntimeError):
    """A run that cannot go on."""


class Diverged(TrainingError):
    """A training whose numbers are no longer finite. It would diverge again: it is a result."""


class Interrupted(KeyboardInterrupt):
    """Long work that the user stopped. The message says what is kept; `again` is what the same
    command needs to go on, None if it cannot."""

    def __init__(self, kept: str, again: str | None = ""):
        super().__init__(kept)
        self.again = again


def suggestion(word: str, known: Iterable[str]) -> str:
    """A question to end a sentence with; empty where no known name is near."""
    near = get_close_matches(word, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
