"""`spacql report RUNS`."""

from pathlib import Path

import tyro


def report(
    runs: tyro.conf.Positional[tuple[Path, ...]],
    /,
    out: Path = Path("report.html"),
    title: str = "",
) -> None:
    """Write a page about runs: scores, differences, curves, an episode that plays, commands.

    RUNS are folders of runs, of single seeds, of a fit, or a folder of results. Several algorithms
    stand side by side. The page is one HTML file that needs no network.

    Example: spacql report runs/spacql-spread-random runs/cfcql-spread-random --out report.html

    Args:
        runs: Folders to report on.
        out: The page; an older one there is replaced.
        title: Its title; made from the runs if not given.
    """
    from spacql.report import report as write

    path = write(runs, out, title)
    print(f"Wrote {path} ({path.stat().st_size / 1000:,.0f} kB)")
