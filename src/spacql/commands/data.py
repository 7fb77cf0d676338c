"""`spacql data import`, `export`, `inspect` and `fetch`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

if TYPE_CHECKING:
    from spacql.data import Dataset
    from spacql.data.inspect import Inspection

Format = Literal["omar", "vault", "npz", "csv", "parquet", "minari"]
Written = Literal["omar", "vault", "npz"]
SHOWN = 20  # names of columns in a summary


def data_import(
    format: tyro.conf.Positional[Format],
    source: tyro.conf.Positional[Path],
    /,
    out: Path,
    bounds: Literal["refuse", "clip", "rescale"] = "refuse",
    mapping: Path | None = None,
    prey: Path | None = None,
    json: bool = False,
) -> None:
    """Turn logs in another format into a dataset folder.

    Formats: omar, one seed_<k>_data folder of the published .npy files; vault, a Flashbax Vault
    <scenario>.vlt/<uid>; npz, one file with the arguments of Dataset.from_arrays by name; csv and
    parquet, tables of one row per step and agent, or one per step; minari, the name of a dataset.

    Example: spacql data import omar simple_spread/random/seed_0_data --out spread-random-0

    Args:
        format: What the source is.
        source: The folder or file to read.
        out: New folder for the dataset.
        bounds: What to do with actions outside their bounds: refuse them, clip them, or rescale,
            which takes the range found in the data for the bounds.
        mapping: For csv and parquet: a JSON file that names the columns and the bounds per agent,
            where they do not speak for themselves; docs/logs.md has one.
        prey: In tag and world, the policy file of the prey that the data was made against;
            without it, policies trained on the data cannot be evaluated.
        json: Print the summary as JSON.
    """
    from spacql.data import load_dataset, save_dataset
    from spacql.data.formats import TABLES, read
    from spacql.errors import InputError

    if out.exists():
        raise InputError(f"{out} exists already. Choose another place or remove it first.")
    dataset = read(format, source, bounds, mapping)
    if prey is not None:
        dataset = _with_prey(dataset, prey)
    save_dataset(dataset, out)
    unused = dataset.info.get("columns_not_used", ()) if format in TABLES else ()
    _summary({out: load_dataset(out)}, json, unused)


def data_export(
    format: tyro.conf.Positional[Written],
    source: tyro.conf.Positional[str],
    /,
    out: Path,
    json: bool = False,
) -> None:
    """Write a dataset in another format.

    No other format holds everything: omar and vault lose what the behaviour would have done at
    the end of an episode, vault also the final observations, omar the agents' names.

    Example: spacql data export npz spread-random --out spread-random.npz

    Args:
        format: What to write.
        source: Name or folder of a dataset.
        out: New folder (omar, vault) or file (npz).
        json: Print the summary as JSON.
    """
    from spacql.data.cache import resolve
    from spacql.data.formats import write

    dataset = resolve(source)
    write(format, dataset, out)
    _summary({out: dataset}, json)


def data_fetch(
    name: tyro.conf.Positional[str],
    /,
    out: Path | None = None,
    url: str | None = None,
    sha256: str | None = None,
    json: bool = False,
) -> None:
    """Download published datasets and import them.

    The vaults of InstaDeepAI/og-marl on Hugging Face: omar/spread, omar/tag, omar/world and
    omar/halfcheetah. A broken transfer goes on where it stopped when the command is given again.
    The checksum is the one that the server sends, unless you bring one.

    Example: spacql data fetch omar/spread --out omar-spread

    Args:
        name: Which one.
        out: New folder for the datasets, one for each quality; omar-<task> if not given.
        url: Another place to download the archive from.
        sha256: The archive's checksum, if you know it.
        json: Print the summary as JSON.
    """
    from spacql.data import load_dataset
    from spacql.data.fetch import fetch

    folders = fetch(name, out or Path(name.replace("/", "-")), url=url, sha256=sha256)
    _summary({folder: load_dataset(folder) for folder in folders}, json)


def data_inspect(
    data: tyro.conf.Positional[str],
    /,
    figure: Path | None = None,
    json: bool = False,
    seed: int = 0,
) -> None:
    """Show what is in a dataset.

    Sizes, returns, how much of its action space each agent uses, and how correlated the agents
    are once the state is known: an estimate of the paper's excess correlation, which says how
    much partial replacement can break. It takes about fifteen seconds.

    Example: spacql data inspect spread-random --figure spread-random.png

    Args:
        data: Name or folder of a dataset.
        figure: File for the picture, FILE.png.
        json: Print everything as JSON.
        seed: Seed of the estimate.
    """
    from spacql import arguments
    from spacql.data.cache import resolve
    from spacql.data.inspect import figure as draw
    from spacql.data.inspect import inspect
    from spacql.errors import InputError

    arguments.whole("--seed", seed, 0)
    if figure is not None and figure.suffix != ".png":
        raise InputError(f"--figure writes a PNG file: {figure} should end in .png.")
    inspection = inspect(resolve(data), seed=seed, place=data)
    if figure is not None:
        draw(inspection, figure)
    if json:
        _print_json(inspection.to_json())
    else:
        _print_inspection(inspection)
        if figure is not None:
            print(f"Wrote {figure}")


def _summary(datasets: "dict[Path, Dataset]", json: bool, unused: Sequence[str] = ()) -> None:
    from spacql.data.advice import left_out

    rows = [
        {
            "path": str(path),
            "task": dataset.spec.task,
            "agents": dataset.spec.n_agents,
            "episodes": dataset.n_episodes,
            "terminated": int(dataset.terminated.sum()),
            "transitions": dataset.n_transitions,
            "without_next_action": dataset.n_transitions - len(dataset.target_rows()),
            "return_mean": float(dataset.team_returns.mean()),
            "return_std": float(dataset.team_returns.std()),
            **({"columns_not_used": [*unused]} if unused else {}),
            **({"left_out": cut} if (cut := left_out(dataset)) else {}),
        }
        for path, dataset in datasets.items()
    ]
    if json:
        _print_json(rows)
        return
    for row in rows:
        ended, marked = row["terminated"], row["without_next_action"]
        more = [f"the task ended {f'{ended:,}' if ended else 'none'} of the episodes"]
        if marked:
            more.append(f"{marked:,} transitions have no next action and serve no target")
        if unused:
            names = ", ".join(f"{name!r:.60}" for name in unused[:SHOWN])
            rest = f" and {len(unused) - SHOWN:,} more" if len(unused) > SHOWN else ""
            more.append(f"columns not used: {names}{rest}")
        print(
            f"{row['path']}: {row['transitions']:,} transitions in {row['episodes']:,} episodes of "
            f"{row['agents']} agents, return {row['return_mean']:z.1f} ± {row['return_std']:z.1f}; "
            + "; ".join(more)
        )
        if "left_out" in row:
            print(row["left_out"])


def _print_json(value: Any) -> None:
    from json import dumps

    print(dumps(value, indent=1))


def _print_inspection(inspection: "Inspection") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    facts = Table(title=escape(inspection.name), show_header=False, title_justify="left")
    returns, correlation = inspection.returns, inspection.correlation
    shortest, longest = inspection.lengths
    steps = f"{longest}" if shortest == longest else f"{shortest} to {longest}"
    score = "" if inspection.score is None else f" (score {inspection.score:z.1f})"
    for label, text in {
        "task": escape(inspection.task),
        "episodes": f"{inspection.episodes:,} of {steps} steps; "
        f"{inspection.terminated:,} ended by the task",
        "transitions": f"{inspection.transitions:,}; {inspection.targets:,} can serve a target",
        "global state": f"{inspection.state_size} numbers" if inspection.state_size else "none",
        "team return": f"{returns['mean']:z.1f} ± {returns['std']:z.1f}{score}",
        "return range": f"{returns['min']:z.1f} to {returns['max']:z.1f}, "
        f"median {returns['median']:z.1f}",
        "returns": _bars(inspection.return_histogram["counts"]),
        "excess correlation": "not known"
        if correlation is None
        else f"{correlation.kappa:z.2f} ± {1.96 * correlation.standard_error:z.2f} "
        f"(mean over states; at least {correlation.largest:z.2f} in some group of states)",
    }.items():
        facts.add_row(label, text)
    console.print(facts)
    agents = Table("agent", "sees", "acts", "range used", "at bounds", "due to the state")
    for use in inspection.agents:
        agents.add_row(
            escape(use.agent),
            str(use.observation_size),
            str(use.action_size),
            f"{100 * use.used:z.0f} %",
            f"{100 * use.at_bounds:z.0f} %",
            "" if use.explained is None else f"{100 * use.explained:z.0f} %",
        )
    console.print(agents)
    console.print(inspection.meaning, highlight=False)
    for text in (*inspection.notices, inspection.advice):
        console.print(text, highlight=False, markup=False)


def _bars(counts: list[float]) -> str:
    """A histogram in one line."""
    steps = " ▁▂▃▄▅▆▇█"
    top = max(max(counts), 1)
    return "".join(steps[-(-int(8 * count) // int(top))] for count in counts)


def _with_prey(dataset: "Dataset", file: Path) -> "Dataset":
    """The same data, with the prey that it was made against."""
    from dataclasses import replace

    from spacql.errors import InputError
    from spacql.policies import Policy
    from spacql.worlds import make

    if dataset.spec.task not in ("tag", "world"):
        raise InputError(f"There is no prey in {dataset.spec.task}.")
    prey = Policy.load(file)
    world = make(dataset.spec.task, prey=prey)  # refuses a prey that does not fit
    info = dict(dataset.info)
    if info.get("reference"):
        info["reference"] = {**info["reference"], "prey": prey.name}
    return replace(dataset, spec=replace(dataset.spec, prey=world.spec.prey), info=info, prey=prey)


def data_prey(source: tyro.conf.Positional[Path], /, out: Path, name: str = "published") -> None:
    """Turn the published prey, a PyTorch file, into a policy file (needs torch).

    Example: spacql data prey pretrained_adv_model.pt --out published-prey

    Args:
        source: The PyTorch file.
        out: Where to write the policy: OUT.safetensors and OUT.json.
        name: Name of the prey, which worlds and scores show.
    """
    from spacql.data.torch_prey import import_prey
    from spacql.policies.policy import files_of

    import_prey(source, name).save(out)
    print(f"Wrote {files_of(out)[1]}")
