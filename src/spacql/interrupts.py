"""Ctrl-C and a request to end (SIGINT, SIGTERM): at once, clean, with codes 130 and 143.

An exception in the main thread would do neither: compiled code does not look for signals while it
runs or is being compiled, and an exception that arrives inside an extension module, or at the
interpreter's end while threads of JAX still compute, can crash. So a thread of its own waits for
the signal, ends the processes that this one has started, removes what is half-made, and leaves.

Where the main thread does nothing but wait for others, it may say what it wants to say before it
ends: within `raised`, the signal is a KeyboardInterrupt.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from spacql.files import remove, unfinished

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_first = 0  # the number of the first signal that came
_raising = False


def code() -> int:
    """The exit code of a process that was interrupted."""
    return 128 + (_first or signal.SIGINT)


@contextmanager
def raised() -> Iterator[None]:
    """Within the block, the first signal is a KeyboardInterrupt, after which the command may say
    what it likes; a second one ends it at once. Also where `ended_cleanly` is not in force."""
    global _raising
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    before, _raising = _raising, True
    handler = signal.signal(signal.SIGTERM, _handle)
    try:
        yield
    finally:
        _raising = before or bool(_first)
        signal.signal(signal.SIGTERM, handler)


def _handle(number: int, frame: Any) -> None:
    global _first
    again, _first = bool(_first), _first or number
    if _raising and not again:
        raise KeyboardInterrupt


@contextmanager
def ended_cleanly(signals: tuple[signal.Signals, ...] = SIGNALS) -> Iterator[None]:
    """Within the block, a signal ends the process as said above."""
    global _first, _raising
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _first, _raising = 0, False
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    old_handlers = {number: signal.signal(number, _handle) for number in signals}
    old_descriptor = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(reader,), daemon=True)
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


def _watch(reader: int) -> None:
    """The system writes a signal's number here as it comes, whatever the main thread does."""
    came = 0
    while number := os.read(reader, 1)[0]:
        if number in SIGNALS:
            came += 1
            if not _raising or came > 1:
                _end(number)


def _end(number: int) -> NoReturn:
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
        os.write(2, f"spacql: {said}.\n".encode())
    os._exit(128 + number)


def _children() -> list[int]:
    found = []
    with suppress(OSError):
        for task in Path("/proc/self/task").iterdir():
            found += [int(pid) for pid in (task / "children").read_text().split()]
    return found
