"""The errors that spacql raises. The command line prints their message and no traceback."""


class SpacqlError(Exception):
    """Base of all errors that a user can cause and mend."""


class InputError(SpacqlError, ValueError):
    """A name, number, shape or file that cannot be used; the message says which and why."""


class DataError(InputError):
    """A dataset that is wrong or damaged; the message names field, agent and row."""


class MissingExtra(SpacqlError, ImportError):
    """A feature whose optional packages are not installed; the message has the command."""

    def __init__(self, feature: str, extra: str):
        super().__init__(
            f"{feature} needs packages that are not installed. "
            f"Install them with: pip install 'spacql[{extra}]'"
        )


class TrainingError(SpacqlError, RuntimeError):
    """A run that cannot go on, for example because a loss is no longer finite."""
