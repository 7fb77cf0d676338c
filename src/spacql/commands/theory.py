"""`spacql theory`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacql.theory.battery import Row


def theory(
    instances: int = 1000, seed: int = 0, figure: Path | None = None, json: bool = False
) -> int:
    """Check the paper's theory with numbers.

    Solves many small Dec-MDPs exactly and tries every lemma, theorem and proposition on each. Ends
    with code 1 if a statement that should hold is violated. It takes about
    twenty seconds.

        spacql theory --instances 1000 --figure figures

    Args:
        instances: Random instances per statement; the named Dec-MDPs come on top.
        seed: Seed of the instances.
        figure: Folder for the two pictures, each as PNG and SVG.
        json: Print everything as JSON.
    """
    from spacql import arguments
    from spacql.errors import InputError
    from spacql.progress import progress
    from spacql.theory import battery, curves

    arguments.whole("--instances", instances, 0)
    arguments.whole("--seed", seed, 0)
    if figure is not None and figure.exists() and not figure.is_dir():
        raise InputError(f"--figure takes a folder, and {figure} is a file.")
    with progress("instances", battery.total(max(instances, 0))) as advance:
        rows = battery.run(instances, seed, advance=advance)
    numbers = curves.numbers()
    pictures = []
    if figure is not None:
        from spacql.theory import figures

        pictures = figures.write(figure)
    ok = all(row.ok for row in rows)
    if json:
        _print_json(rows, numbers, pictures, ok)
    else:
        _print_tables(rows, numbers, pictures)
    return 0 if ok else 1


def _print_json(
    rows: "list[Row]", numbers: dict[str, float], pictures: list[Path], ok: bool
) -> None:
    from json import dumps

    report = {
        "ok": ok,
        "statements": [row.as_dict() for row in rows if row.should_hold],
        "failing_readings": [row.as_dict() for row in rows if not row.should_hold],
        "numbers": numbers,
        "figures": [str(path) for path in pictures],
    }
    print(dumps(report, indent=1))


def _print_tables(rows: "list[Row]", numbers: dict[str, float], pictures: list[Path]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    # A pipe has no width; 110 columns hold the widest table without breaking a line.
    console = Console() if sys.stdout.isatty() else Console(width=110)

    def table(title: str, words: tuple[str, ...], figures: tuple[str, ...]) -> Table:
        made = Table(title=title, box=box.SIMPLE, padding=(0, 1), title_justify="left")
        for word in words:
            made.add_column(word)
        for name in figures:
            made.add_column(name, justify="right")
        return made

    holds = table(
        "Statements: left <= right (max ratio: the largest left / right)",
        ("statement", "from"),
        ("tried", "violated", "median slack", "max ratio", "vacuous"),
    )
    fails = table(
        "Readings that fail, with a counterexample",
        ("reading", "from"),
        ("tried", "violated", "left", "right"),
    )
    for row in rows:
        # Plain numbers where all is well; a statement that is violated must be seen.
        mark = "" if row.ok else "bold red"
        counts = (str(row.tried), str(row.violations)) if row.tried else ("", "")
        if row.should_hold:
            share = "" if row.vacuous is None else f"{100 * row.vacuous:.0f} %"
            numbers_of_row = (_short(row.median_slack), _short(row.tightest), share)
            holds.add_row(row.name, row.source, *counts, *numbers_of_row, style=mark)
        else:
            sides = row.witness or (None, None)
            fails.add_row(row.name, row.source, *counts, *map(_short, sides), style=mark)
    single = table("Numbers", ("what",), ("value",))
    for name, value in numbers.items():
        single.add_row(name, _short(value))
    for made in (holds, fails, single):
        console.print(made)
    console.print(_verdict(rows), highlight=False, soft_wrap=True)
    for path in pictures:
        console.print(f"Wrote {path}", highlight=False, soft_wrap=True)


def _verdict(rows: "list[Row]") -> str:
    wrong = [row for row in rows if not row.ok]
    if not wrong:
        return "Every statement holds on every instance, and every counterexample stands."
    lines = []
    for row in wrong:
        where = f" (first on instance {row.first_violation})" if row.should_hold else ""
        what = "is violated" if row.should_hold else "is not refuted by its counterexample"
        lines.append(f"'{row.name}' {what}{where}.")
    return "\n".join(lines)


def _short(value: float | None) -> str:
    """Three digits; rounding errors around zero are zero."""
    if value is None:
        return ""
    return "0" if abs(value) < 1e-12 else f"{value:.3g}"
