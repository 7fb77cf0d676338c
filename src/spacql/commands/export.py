"""`spacql export RUN`."""

from pathlib import Path
from typing import Literal

import tyro


def export(
    run: tyro.conf.Positional[Path],
    /,
    out: Path,
    format: Literal["onnx"] = "onnx",
    per_agent: bool = False,
    json: bool = False,
) -> None:
    """Write a trained policy as ONNX, for use without Python and JAX; the file is checked first.

    Inputs are `observation.<agent>`, outputs `action.<agent>`, with any batch size and in the
    units of the log.

    Example: spacql export runs/spacql-spread-random/seed-0 --out team.onnx

    Args:
        run: Folder that holds a policy (a seed of a run, or what `spacql fit` made), or its file.
        out: New file for the team; or new folder, with --per-agent.
        format: What to write.
        per_agent: One file per agent instead of one for the team.
        json: Print JSON.
    """
    from json import dumps

    from spacql.errors import InputError
    from spacql.policies import Policy
    from spacql.policies.onnx import export as write
    from spacql.policies.policy import files_of

    if run.is_dir() and not (run / "policy.json").exists():
        seeds = sorted(path.name for path in run.glob("seed-*") if (path / "policy.json").exists())
        hint = f" Choose one of its seeds: {', '.join(seeds)}." if seeds else ""
        raise InputError(f"There is no policy.json in {run}.{hint}")
    if not run.is_dir() and not any(file.exists() for file in files_of(run)):
        raise InputError(
            f"There is no run and no policy {run}. `spacql runs` lists the runs that there are."
        )
    policy = Policy.load(run)
    files = write(policy, out, per_agent)
    if json:
        print(dumps([{"file": str(f), "deviation": d} for f, d in files.items()], indent=1))
        return
    for file, deviation in files.items():
        print(f"Wrote {file}; ONNX Runtime deviates by at most {deviation:.1e}.")
