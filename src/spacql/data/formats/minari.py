"""Multi-agent datasets of Minari: those whose spaces are dictionaries, one entry per agent."""

from pathlib import Path
from typing import Any

import numpy as np

from spacql.data.build import from_episodes
from spacql.data.checks import OutOfBounds
from spacql.data.dataset import Dataset
from spacql.errors import DataError, InputError, MissingExtra


def import_minari(source: Path | str, bounds: OutOfBounds = "refuse") -> Dataset:
    """Read a dataset by its Minari name, from its local store."""
    try:
        import minari
    except ImportError as error:
        raise MissingExtra("Reading Minari datasets", "minari") from error
    try:
        dataset = minari.load_dataset(str(source))
    except Exception as error:  # Minari raises what its storage raises
        raise InputError(
            f"Minari has no dataset {str(source)!r} on this machine: {error}. Fetch it with "
            f"`minari download {source}`, and see `minari list local`."
        ) from error
    low, high = _bounds(str(source), dataset.action_space)
    episodes = [_episode(number, episode) for number, episode in enumerate(dataset)]
    return from_episodes(
        episodes, agents=tuple(low), action_low=list(low.values()),
        action_high=list(high.values()), bounds=bounds, task=str(source),
        info={"name": str(source)},
    )  # fmt: skip


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
