"""Ctrl-C and a request to end (SIGINT, SIGTERM): at once, clean, with codes 130 and 143.

An exception in the main thread would do neither: compiled code does not look for signals while it
runs or is being compiled, and an exception that arrives inside an extension module, or at the
interpreter's end while threads of JAX still compute, can crash. So a thread of its own waits for
the signal, ends the processes that this one has started, removes what is half-made, and leaves.
"""

import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from spacql.errors import Interrupted
from spacql.files import remove, unfinished

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_farewells: list[Callable[[], Interrupted]] = []  # of what is under way


@contextmanager
def farewell(stopped: Callable[[], Interrupted]) -> Iterator[None]:
    """Within the block, an interrupt says what `stopped` says: what is kept, and how to go on."""
    _farewells.append(stopped)
    try:
        yield
    finally:
        _farewells.remove(stopped)


def last_words(stopped: Interrupted | None, words: Sequence[str]) -> str:
    """What is kept, and the command that goes on; `words` are those of the command."""
    if stopped is None:
        return ""
    if stopped.again is None:
        return f" {stopped}"
    again = [] if not stopped.again or stopped.again in words else [stopped.again]
    return f" {stopped} To go on: {shlex.join(['spacql', *words, *again])}"


@contextmanager
def ended_cleanly(
    words: Sequence[str] = (), signals: Sequence[signal.Signals] = SIGNALS
) -> Iterator[None]:
    """Within the block, an interrupt ends the process as said above. `words`: of its command."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    old_handlers = {number: signal.signal(number, lambda *_: None) for number in signals}
    old_descriptor = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(reader, words), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(old_descriptor)
        for number, handler in old_handlers.items():
            signal.signal(number, handler)
        os.write(writer, b"\0")
        watcher.join()
        os.close(reader)
        os.close(writer)


def _watch(reader: int, words: Sequence[str]) -> None:
    """The system writes a signal's number here as it comes, whatever the main thread does."""
    while number := os.read(reader, 1)[0]:
        if number in SIGNALS:
            _end(number, words)


def _end(number: int, words: Sequence[str]) -> NoReturn:
    for child in _children():
        with suppress(OSError):
            os.kill(child, signal.SIGTERM)
    for path in [*unfinished]:
        for _ in range(20):  # the main thread may still be writing into it
            with suppress(OSError):
                remove(path)
            if not path.exists():
                break
            time.sleep(0.01)
    with suppress(Exception):
        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h\n")  # a progress bar hides the cursor
        said = "interrupted" if number == signal.SIGINT else "ended by a signal"
        kept = last_words(_farewells[-1]() if _farewells else None, words)
        os.write(2, f"spacql: {said}.{kept}\n".encode())
    os._exit(128 + number)


def _children() -> list[int]:
    found = []
    with suppress(OSError):
        for task in Path("/proc/self/task").iterdir():
            found += [int(pid) for pid in (task / "children").read_text().split()]
    return found
