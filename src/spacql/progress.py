"""Progress of long work: bars on a terminal, plain lines now and then elsewhere.

Everything goes to standard error.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

Advance = Callable[..., None]
QUIET_SECONDS = 10  # between two plain lines


def duration(seconds: float) -> str:
    """In the unit that a reader would choose."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


@contextmanager
def progress(title: str, total: float) -> Iterator[Advance]:
    """Yields `advance(amount=1, text="")`."""
    if sys.stderr.isatty():
        from rich.progress import TimeRemainingColumn

        with _bars(TimeRemainingColumn()) as bars:
            task = bars.add_task(title, total=total, text="")

            def draw(amount: float = 1, text: str = "") -> None:
                bars.update(task, advance=amount, text=text)

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


class Board(Protocol):
    """A line for each of several pieces of work, those that are under way."""

    def show(self, name: str, share: float, text: str) -> None:
        """How far it is, from 0 to 1, and what there is to say."""

    def end(self, name: str, text: str) -> None:
        """Its line goes; what came of it stays to be read."""

    def say(self, name: str, text: str) -> None:
        """A sentence that nobody should miss, quiet or not; its line stays."""


@contextmanager
def board(quiet: bool = False) -> Iterator[Board]:
    """Lines of several pieces of work; none of them if `quiet`."""
    if quiet or not sys.stderr.isatty():
        yield _Plain(quiet)
        return
    with _bars() as bars:
        yield _Bars(bars)


def _bars(*more: Any) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.percentage:3.0f} %", markup=False),
        *more,
        TextColumn("{task.fields[text]}", markup=False),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)


class _Bars:
    def __init__(self, bars: Any):
        self._bars = bars
        self._tasks: dict[str, Any] = {}

    def show(self, name: str, share: float, text: str) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=1.0, text="")
        self._bars.update(self._tasks[name], completed=share, text=text)

    def end(self, name: str, text: str) -> None:
        if name in self._tasks:
            self._bars.remove_task(self._tasks.pop(name))
        if text:
            self.say(name, text)

    def say(self, name: str, text: str) -> None:
        self._bars.console.print(f"{name}: {text}", markup=False, highlight=False)


class _Plain:
    def __init__(self, quiet: bool):
        self._quiet = quiet
        self._said: dict[str, float] = {}

    def show(self, name: str, share: float, text: str) -> None:
        now = time.monotonic()
        if not self._quiet and now - self._said.setdefault(name, now) > QUIET_SECONDS:
            self._said[name] = now
            print(f"{name}: {100 * share:.0f} % {text}".rstrip(), file=sys.stderr)

    def end(self, name: str, text: str) -> None:
        if text and not self._quiet:
            self.say(name, text)

    def say(self, name: str, text: str) -> None:
        print(f"{name}: {text}", file=sys.stderr)
