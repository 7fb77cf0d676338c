"""One planned run, from its data to its last event: what every executor does in the end.

`python -m spacql.experiments.worker FOLDER RUN` is a process for it: RUN is a planned run as JSON,
and events are lines of JSON on standard output.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from spacql.errors import DataError, Diverged, SpacqlError
from spacql.experiments.executors import Event, PlannedRun
from spacql.experiments.store import summary
from spacql.interrupts import ended_cleanly


def work(
    run: PlannedRun,
    folder: Path,
    report: Callable[[Event], None],
    data: Path | None = None,
) -> None:
    """Make or find the data, begin or continue the folder, train. The last report says how it
    ended. `data` is where the run's dataset is on this machine, if another planned the run."""
    from spacql.data.cache import resolve
    from spacql.runs import describe, lengthens, locked, open_folder, run_folder

    try:
        with locked(folder):
            dataset = resolve(data or run.dataset, run.seed)
            if run.data_identity not in ("", dataset.identity):
                raise DataError(
                    f"This machine makes other data of {run.dataset} with seed {run.seed} than the "
                    "stored runs saw, so that a score could not be compared with theirs. Choose "
                    "another folder with --results and run them all, or copy that dataset here."
                )
            described = describe(
                run.algorithm,
                run.config,
                dataset,
                run.seed,
                data=run.dataset,
                episodes=run.episodes,
                loggers=run.loggers,
            )
            open_folder(folder, described, True, lengthens(run.config))
            report(Event("progress", rounds=run.config.rounds))  # begun
            run_folder(
                folder,
                dataset,
                lambda now: report(Event("progress", **now._asdict())),
                say=lambda sentence: report(Event("note", note=sentence)),
            )
            event = Event("done", record=summary(folder))
    except Diverged:
        event = Event("diverged", record=summary(folder))
    except SpacqlError as error:
        event = Event("failed", error=str(error))
    report(event)


def main(folder: str, text: str) -> None:
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which ends us
    keep_compiled()
    run = PlannedRun.from_json(json.loads(text))
    with ended_cleanly(signals=(signal.SIGTERM,)):
        work(run, Path(folder), lambda event: print(json.dumps(asdict(event)), flush=True))


def keep_compiled() -> None:
    """The second seed, and a resumed run, need not compile again."""
    import jax

    from spacql.data.cache import folder

    jax.config.update("jax_compilation_cache_dir", str(folder() / "compiled"))


def end_with_parent() -> None:
    """A worker whose parent was killed does not go on unseen; its checkpoints stay. That may have
    happened before we could look: the parent says who it is."""
    parent = int(os.environ.pop("SPACQL_PARENT", os.getppid()))

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
