"""What `dataset.json` holds, as records: a field of the wrong type is refused by its name."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import numpy as np

from spacql.data.dataset import Statistics
from spacql.errors import DataError
from spacql.spec import Spec

Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Columns = tuple[float, ...]
TINY = float(np.finfo(np.float32).tiny)


class StoredFile(msgspec.Struct, frozen=True):
    sha256: Digest
    bytes: Annotated[int, msgspec.Meta(ge=0)]


class StoredStatistics(msgspec.Struct, frozen=True):
    observation_mean: tuple[Columns, ...]
    observation_std: tuple[Columns, ...]
    state_mean: Columns | None
    state_std: Columns | None
    team_reward_mean: float
    team_reward_std: float

    def checked(self, spec: Spec) -> Statistics:
        """As arrays, if they fit the spec and a network can divide by the deviations."""
        state = (spec.state_size,) if spec.state_size else ()
        states = {
            name: _arrays(name, () if value is None else (value,), state, least)
            for name, value, least in (
                ("state_mean", self.state_mean, -np.inf),
                ("state_std", self.state_std, TINY),
            )
        }
        _arrays("team_reward_mean", ((self.team_reward_mean,),), (1,), -np.inf)
        _arrays("team_reward_std", ((self.team_reward_std,),), (1,), TINY)
        sizes = spec.observation_sizes
        return Statistics(
            observation_mean=_arrays("observation_mean", self.observation_mean, sizes, -np.inf),
            observation_std=_arrays("observation_std", self.observation_std, sizes, TINY),
            state_mean=states["state_mean"][0] if state else None,
            state_std=states["state_std"][0] if state else None,
            team_reward_mean=self.team_reward_mean,
            team_reward_std=self.team_reward_std,
        )


def _arrays(
    name: str, columns: Sequence[Columns], sizes: tuple[int, ...], least: float
) -> tuple[np.ndarray, ...]:
    with np.errstate(over="ignore"):
        arrays = tuple(np.array(column, np.float32) for column in columns)
    if tuple(map(len, arrays)) != sizes:
        raise DataError(f"statistics.{name} does not have the sizes of the spec, {sizes}.")
    if not all((np.isfinite(array) & (array >= least)).all() for array in arrays):
        raise DataError(f"statistics.{name} holds a number that is too large, or no deviation.")
    return arrays


class Described(msgspec.Struct, frozen=True):
    format: int
    spec: Spec
    agents: int
    episodes: int
    transitions: int
    info: dict[str, Any]
    statistics: StoredStatistics
    files: dict[str, StoredFile]
    identity: Digest
    seal: Digest
