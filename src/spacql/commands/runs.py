"""`spacql runs`: what is in the folder of runs."""

from pathlib import Path
from typing import Any

import tyro

STATES = ("running", "finished", "diverged", "stopped")


def runs(folder: tyro.conf.Positional[Path] = Path("runs"), /, json: bool = False) -> None:
    """List the runs below a folder: how far each is, its score, and when it last did something.

    A run is running while a process holds its lock. One that is stopped goes on with the command
    that began it, and --resume, from its newest checkpoint, whose round is shown.

    Example: spacql runs runs --json

    Args:
        folder: Where to look.
        json: Print JSON instead of a table.
    """
    from datetime import datetime
    from json import dumps

    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from spacql.errors import InputError

    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}. `spacql train` makes one: runs.")
    found = [entry(path.parent) for path in sorted(folder.rglob("run.json"))]
    if json:
        print(dumps(found, indent=1))
        return
    table = Table("run", "state", "rounds", "score", "when", box=None, padding=(0, 1, 0, 0))
    for run in found:
        when = datetime.fromisoformat(run["when"]).strftime("%Y-%m-%d %H:%M")
        score = "" if run["score"] is None else f"{run['score']:z.1f}"
        name = str(Path(run["folder"]).relative_to(folder))
        table.add_row(escape(name), run["state"], f"{run['round']}/{run['rounds']}", score, when)
    if found:
        Console().print(table)
    counts = {state: sum(run["state"] == state for run in found) for state in STATES}
    text = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    many = "1 run" if len(found) == 1 else f"{len(found)} runs"
    print(f"{many} in {folder}{': ' + text if text else ''}")


def entry(folder: Path) -> dict[str, Any]:
    """What is known of a run folder. The score is the newest, of a finished run the final one."""
    from datetime import datetime

    from filelock import FileLock, Timeout

    from spacql import records
    from spacql.runs import finished, lock_file, newest_checkpoint
    from spacql.training.metrics import read_metrics

    described = records.run(folder)
    rows = read_metrics(folder / "metrics.jsonl")
    score = next((row["score"] for row in reversed(rows) if row.get("score") is not None), None)
    state = "diverged" if (folder / "diverged.json").exists() else "stopped"
    if finished(folder):
        state, final = "finished", records.result(folder)["evaluation"]
        score = None if final is None else final["score"]
    elif lock_file(folder).exists():
        try:
            with FileLock(lock_file(folder), timeout=0):
                pass
        except Timeout:
            state = "running"
    done = rows[-1]["round"] if rows else 0
    if state == "stopped":  # the rounds after it are done again
        done = min(done, newest_checkpoint(folder))
    files = [path for path in folder.iterdir() if path.is_file()]
    newest = max(path.stat().st_mtime for path in files)
    return {
        "folder": str(folder),
        "algorithm": described["algorithm"],
        "dataset": described["dataset"]["name"],
        "seed": described["seed"],
        "state": state,
        "round": done,
        "rounds": described["config"]["rounds"],
        "score": score,
        "when": datetime.fromtimestamp(newest).astimezone().isoformat(timespec="seconds"),
    }
