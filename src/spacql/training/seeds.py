"""Several runs at once: one single-threaded process a core. One that dies stops no other."""

import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spacql.threads import one_thread


@dataclass
class Job:
    """A process to run. Its standard output is one JSON object a line."""

    name: str
    command: Sequence[str]
    events: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""  # why it failed, when it did


def run_jobs(
    jobs: Sequence[Job],
    workers: int,
    on_event: Callable[[Job, Mapping[str, Any]], None] = lambda job, event: None,
    on_failure: Callable[[Job], None] = lambda job: None,
) -> None:
    """Run all jobs, `workers` at a time, each on a core of its own. Failures are in `job.error`."""
    waiting, lock = deque(jobs), threading.Lock()
    cores = sorted(os.sched_getaffinity(0))
    running: set[subprocess.Popen[str]] = set()

    def worker(number: int) -> None:
        core = cores[number % len(cores)]
        while True:
            with lock:
                if not waiting:
                    return
                job = waiting.popleft()
            _run(job, core)
            if job.error:
                with lock:
                    on_failure(job)

    def _run(job: Job, core: int) -> None:
        process = subprocess.Popen(
            job.command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**one_thread(os.environ), "SPACQL_CORE": str(core)},
        )
        with lock:
            running.add(process)
        complaints: deque[str] = deque(maxlen=20)
        reader = threading.Thread(
            target=lambda: complaints.extend(line for line in process.stderr or ()), daemon=True
        )
        reader.start()
        for line in process.stdout or ():
            try:
                event = json.loads(line)
            except json.JSONDecodeError:
                continue
            with lock:
                job.events.append(event)
                on_event(job, event)
        code = process.wait()
        reader.join(timeout=5)
        with lock:
            running.discard(process)
        if code:
            said = [event["error"] for event in job.events if "error" in event]
            last = complaints[-1].strip() if complaints else ""
            died = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            job.error = said[-1] if said else f"The process {died}. {last}".strip()

    threads = [threading.Thread(target=worker, args=(k,), daemon=True) for k in range(workers)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(timeout=0.2)
    finally:  # an interrupt ends the workers too, and begins no other; their checkpoints stay
        with lock:
            waiting.clear()
        for process in list(running):
            process.terminate()


def this_python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]
