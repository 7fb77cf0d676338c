"""`spacql data table`."""

from pathlib import Path
from typing import Any


def data_table(
    tasks: tuple[str, ...] = ("spread", "tag", "world", "halfcheetah"),
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4),
    transitions: int | None = None,
    results: Path = Path("results/data.json"),
    json: bool = False,
) -> None:
    """Make every dataset in a temporary folder, measure it, and print the table of them all.

    What was measured before is read from the results file and not made again.

    Example: spacql data table --tasks spread tag

    Args:
        tasks: Which tasks.
        seeds: Which dataset seeds.
        transitions: Fewer than published, for a quick look (not for medium-replay).
        results: Where measurements are kept.
        json: Print JSON instead of Markdown.
    """
    import tempfile
    from json import dumps

    from spacql.data import collect, load_dataset
    from spacql.files import read_json, write_json
    from spacql.threads import cores

    kept: dict[str, Any] = read_json(results) if results.exists() else {}
    chosen = [name for name in collect.NAMES if collect.parse(name)[0] in tasks]
    for name in chosen:
        for seed in seeds:
            size = None if name.endswith("replay") else transitions
            label = f"{name}/{seed}" + (f"/{size}" if size else "")
            if label in kept:
                continue
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "dataset"
                workers = len(cores())
                collect.make_dataset(name, path, seed=seed, transitions=size, workers=workers)
                kept[label] = _measure(load_dataset(path))
            write_json(results, kept)
    if json:
        print(dumps({k: v for k, v in kept.items() if k.split("/")[0] in chosen}, indent=1))
    else:
        print(_markdown(chosen, seeds, kept))
        print("\n" + _references(tasks))


def _measure(dataset: Any) -> dict[str, Any]:
    from spacql.reference import Reference

    returns = dataset.returns.mean(axis=1)
    reference = Reference.from_json(dataset.info["reference"])
    return {
        "transitions": dataset.n_transitions,
        "return": float(returns.mean()),
        "std": float(returns.std()),
        "score": float(reference.score(returns.mean())),
        "identity": dataset.identity,
    }


def _markdown(chosen: list[str], seeds: tuple[int, ...], kept: dict[str, Any]) -> str:
    from importlib.resources import files

    import numpy as np

    from spacql.files import read_json

    published = read_json(str(files("spacql") / "assets" / "published-data.json"))
    lines = [
        "| dataset | seeds | transitions | return | score (range) | published return |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in chosen:
        rows = [
            v for k, v in kept.items() if k.split("/")[0] == name and int(k.split("/")[1]) in seeds
        ]
        if not rows:
            continue
        column = {
            field: np.array([row[field] for row in rows])
            for field in rows[0]
            if field != "identity"
        }
        task, _, quality = name.partition("-")
        mean, std, size = published[task][quality]
        sizes = sorted({int(x) for x in column["transitions"]})
        span = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
        lines.append(
            f"| {name} | {len(rows)} | {span} | {column['return'].mean():z.1f} ± "
            f"{np.sqrt((column['std'] ** 2).mean()):.1f} | {column['score'].mean():z.1f} "
            f"({column['score'].min():z.1f} to {column['score'].max():z.1f}) | "
            f"{mean} ± {std} ({size:,}) |"
        )
    return "\n".join(lines)


def _references(tasks: tuple[str, ...]) -> str:
    """The shipped behaviours' levels, and the returns that count as scores of 0 and 100."""
    from spacql.data import behaviours

    lines = [
        "| task | score 0 | score 100 | episodes | medium's score | experts' returns | steps to medium, to expert |",  # noqa: E501
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for task in tasks:
        record = behaviours.record(task)

        def span(level: str, field: str, record: Any = record) -> str:
            values = [entry[level][field] for entry in record["seeds"]]
            if field == "steps":
                return f"{min(values) // 1000:,} to {max(values) // 1000:,} thousand"
            return f"{min(values):z.1f} to {max(values):z.1f}"

        lines.append(
            f"| {task} | {record['random']['return']:z.1f} | {record['expert']:.1f} | "
            f"{record['episodes']:,} | {span('medium', 'score')} | {span('expert', 'return')} | "
            f"{span('replay', 'steps')}; {span('expert', 'steps')} |"
        )
    return "\n".join(lines)


def data_curves(out: Path = Path("behaviours.png")) -> None:
    """Draw how the shipped behaviours were trained, and which snapshots were chosen.

    Example: spacql data curves --out behaviours.png

    Args:
        out: The picture, PNG or SVG.
    """
    from matplotlib.figure import Figure

    from spacql.data import behaviours
    from spacql.files import new_file

    figure = Figure(figsize=(9, 5.6), layout="constrained")
    axes = figure.subplots(2, 2).ravel()
    for axis, task in zip(axes, behaviours.RECIPES, strict=True):
        record = behaviours.record(task)
        axis.axhline(record["random"]["return"], color="0.5", linestyle=":", linewidth=1)
        axis.axhline(record["expert"], color="0.5", linestyle="--", linewidth=1)
        for entry in record["seeds"]:
            steps, returns = zip(*entry["curve"], strict=True)
            axis.plot([s / 1000 for s in steps], returns, color="#0072B2", alpha=0.45)
            for level, colour, marker in (("replay", "#E69F00", "o"), ("expert", "#009E73", "s")):
                at = entry[level]
                axis.plot(at["steps"] / 1000, at["return"], marker, color=colour, zorder=3)
        axis.set(title=task, xlabel="thousand steps", ylabel="return of the behaviour")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].plot([], [], "o", color="#E69F00", label="medium")
    axes[0].plot([], [], "s", color="#009E73", label="expert")
    axes[0].plot([], [], color="#0072B2", alpha=0.45, label="one training")
    axes[0].plot([], [], "--", color="0.5", label="score 100")
    axes[0].plot([], [], ":", color="0.5", label="score 0")
    axes[0].legend(frameon=False, fontsize=8)
    with new_file(out) as temporary:
        figure.savefig(temporary, dpi=150)
    print(f"Wrote {out}")
