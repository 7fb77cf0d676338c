"""Processes that play episodes. They need nothing of the script that started them.

`multiprocessing` would import that script again in every process, which fails or never ends when
it has no main guard or came from standard input. These processes are told where to import from,
and what to run, over a pipe; they end when it closes, so none outlives its parent.
"""

import json
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from spacql.errors import InputError, SpacqlError

START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from spacql.worlds.workers import main; main(int(sys.argv[2]))"
)
AHEAD = 2  # tasks that wait at each process: a slow reader must not make results pile up


def in_processes(
    prepare: Callable[..., Callable[[Any], Any]],
    arguments: tuple[Any, ...],
    tasks: Sequence[Any],
    workers: int,
) -> Iterator[Any]:
    """What `prepare(*arguments)` makes of each task, in their order, however many processes."""
    try:
        payload = pickle.dumps((prepare, arguments))
    except Exception as error:  # whatever an object says that cannot be copied
        raise InputError(_cannot_copy(error)) from error
    with _processes(workers) as pipes:
        for pipe in pipes:
            _send(pipe, payload)
        for number, task in enumerate(tasks[: AHEAD * workers]):
            _send(pipes[number % workers], pickle.dumps(task))
        for number in range(len(tasks)):
            pipe = pipes[number % workers]
            answer = _receive(pipe)
            if (later := number + AHEAD * workers) < len(tasks):
                _send(pipe, pickle.dumps(tasks[later]))
            yield answer


@contextmanager
def _processes(count: int) -> Iterator[list[Connection]]:
    pipes: list[Connection] = []
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count):
            ours, theirs = Pipe()
            path = json.dumps([place for place in sys.path if isinstance(place, str)])
            processes.append(
                subprocess.Popen(
                    [sys.executable, "-c", START, path, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,  # it may be the script that is being read
                    pass_fds=(theirs.fileno(),),
                )
            )
            theirs.close()
            pipes.append(ours)
        yield pipes
    finally:
        for pipe in pipes:
            pipe.close()
        for process in processes:
            process.kill()
            process.wait()


def _send(pipe: Connection, payload: bytes) -> None:
    try:
        pipe.send_bytes(payload)
    except OSError:
        _receive(pipe)  # it may have said why
        raise SpacqlError(DIED) from None


def _receive(pipe: Connection) -> Any:
    try:
        kind, value = pickle.loads(pipe.recv_bytes())
    except (EOFError, OSError) as error:
        raise SpacqlError(DIED) from error
    if kind == "cannot copy":
        raise InputError(_cannot_copy(value))
    if kind == "failed":
        raise value
    return value


DIED = "A process that ran episodes died, perhaps for want of memory. Use fewer workers."


def _cannot_copy(why: Any) -> str:
    return (
        f"The world cannot be copied to other processes ({why}). Use one worker, or define the "
        "world in a module that can be imported."
    )


def main(descriptor: int) -> None:
    """What each process does: one preparation, then task after task until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    pipe = Connection(descriptor)
    try:
        try:
            payload = pipe.recv_bytes()
            prepare, arguments = pickle.loads(payload)
        except EOFError:
            return
        except Exception as error:
            pipe.send_bytes(pickle.dumps(("cannot copy", str(error))))
            return
        try:
            run = prepare(*arguments)
            while True:
                task = pickle.loads(pipe.recv_bytes())
                pipe.send_bytes(pickle.dumps(("done", run(task))))
        except (EOFError, BrokenPipeError):
            return
        except Exception as error:
            pipe.send_bytes(pickle.dumps(("failed", _portable(error))))
    except OSError:
        return  # the parent has gone


def _portable(error: Exception) -> Exception:
    """The error itself, or one that says the same, if it does not survive being copied."""
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:
        copy = None
    return error if type(copy) is type(error) else SpacqlError(f"{type(error).__name__}: {error}")
