"""Multi-agent datasets of Minari: those whose spaces are dictionaries, one entry per agent."""

from pathlib import Path
from typing import Any

import numpy as np

from spacql.data.arrays import free_memory, refuse_larger
from spacql.data.build import from_episodes
from spacql.data.checks import OutOfBounds
from spacql.data.dataset import Dataset
from spacql.errors import DataError, InputError, MissingExtra
from spacql.files import decoding, read_record

MOST_PACKED = 2000  # bytes from one: more than the compressions of HDF5 reach


def import_minari(source: Path | str, bounds: OutOfBounds = "refuse") -> Dataset:
    """Read a dataset by its Minari name, from its local store."""
    try:
        import minari
        from minari.storage.datasets_root_dir import get_dataset_path
    except ImportError as error:
        raise MissingExtra("Reading Minari datasets", "minari") from error
    _bounded(get_dataset_path(str(source)) / "data")
    try:
        dataset = minari.load_dataset(str(source))
    except Exception as error:  # Minari raises what its storage raises
        raise InputError(
            f"Minari has no dataset {str(source)!r} on this machine: {error}. Fetch it with "
            f"`minari download {source}`, and see `minari list local`."
        ) from error
    low, high = _bounds(str(source), dataset.action_space)
    with decoding(f"The Minari dataset {source}", DataError):
        episodes = [_episode(number, episode) for number, episode in enumerate(dataset)]
    return from_episodes(
        episodes, agents=tuple(low), action_low=list(low.values()),
        action_high=list(high.values()), bounds=bounds, task=str(source),
        info={"name": str(source)},
    )  # fmt: skip


def _bounded(data: Path) -> None:
    """Refuse what claims to be more than its files can hold, or lies in other files."""
    described = data / "metadata.json"
    if not described.is_file():
        return  # Minari says what is missing
    size = sum(path.stat().st_size for path in data.rglob("*") if path.is_file())
    episodes = read_record(described, dict[str, Any]).get("total_episodes")
    if not isinstance(episodes, int) or not 0 <= episodes <= size:
        raise DataError(f"{described}: {str(episodes)[:30]} is no number of episodes.")
    main = data / "main_data.hdf5"
    if not main.is_file():
        return
    import h5py

    links: dict[str, Any] = {}
    claimed, seen = 0, set()
    with decoding(main, DataError), h5py.File(main) as file:
        file.visititems_links(links.__setitem__)
        for name, link in links.items():
            if not isinstance(link, h5py.HardLink):
                raise DataError(f"{main}: {name} lies elsewhere.")
            found = file[name]
            address = h5py.h5o.get_info(found.id).addr
            if address in seen:
                raise DataError(f"{main}: {name} has another name, too.")
            seen.add(address)
            if isinstance(found, h5py.Dataset):
                if found.external or found.is_virtual:
                    raise DataError(f"{main}: {name} lies elsewhere.")
                claimed += found.nbytes
    if claimed > MOST_PACKED * size:
        raise DataError(f"{main} claims {claimed:,} bytes, and the files have {size:,}.")
    refuse_larger(main, claimed, free_memory(), "memory")


def _bounds(name: str, space: Any) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    parts = getattr(space, "spaces", None)
    if not isinstance(parts, dict) or len(parts) < 2:
        raise DataError(
            f"{name} has the action space {space}: a team's is a dictionary with one entry per "
            "agent. A log of one agent is no log of a team."
        )
    for agent, part in parts.items():
        if not hasattr(part, "low"):
            raise DataError(f"{name}: the actions of {agent} are {part}; only boxes can be used.")
        if not part.is_bounded():
            raise DataError(f"{name}: the actions of {agent} have no finite bounds ({part}).")
    return (
        {agent: part.low.ravel().tolist() for agent, part in parts.items()},
        {agent: part.high.ravel().tolist() for agent, part in parts.items()},
    )


def _episode(number: int, episode: Any) -> dict[str, Any]:
    observations, actions = episode.observations, episode.actions
    if not isinstance(observations, dict) or not isinstance(actions, dict):
        raise DataError(f"Episode {number} is not divided into agents.")

    def flat(parts: dict[str, Any]) -> dict[str, np.ndarray]:
        return {agent: np.asarray(x).reshape(len(x), -1) for agent, x in parts.items()}

    return {
        "observations": flat(observations),
        "actions": flat(actions),
        "rewards": np.asarray(episode.rewards, np.float32),
        "terminated": bool(np.asarray(episode.terminations)[-1]),
    }
