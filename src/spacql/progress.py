"""Progress of long work: a bar on a terminal, a plain line now and then elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[..., None]
QUIET_SECONDS = 10  # between two plain lines


@contextmanager
def progress(title: str, total: float) -> Iterator[Advance]:
    """Yields `advance(amount=1, text="")`. Everything goes to standard error."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:3.0f} %"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[text]}"),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(title, total=total, text="")

            def draw(amount: float = 1, text: str = "") -> None:
                bar.update(task, advance=amount, text=text)

            yield draw
        return
    done, said = 0.0, time.monotonic()

    def say(amount: float = 1, text: str = "") -> None:
        nonlocal done, said
        done += amount
        if time.monotonic() - said > QUIET_SECONDS:
            said = time.monotonic()
            print(f"{title}: {100 * done / total:.0f} % {text}".rstrip(), file=sys.stderr)

    yield say
