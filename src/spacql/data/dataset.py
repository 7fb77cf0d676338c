"""A dataset: logged episodes of a team, stored once, with the behaviour's next joint action.

An episode of T transitions takes T + 1 consecutive rows. Row t holds what was seen and done at
step t and the reward it brought; the last row holds the final observation. So the transition of
row t needs rows t and t + 1, and observations are not stored a second time as next observations.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

import msgspec
import numpy as np

from spacql.data import build
from spacql.errors import DataError
from spacql.files import as_json, as_record
from spacql.reference import Reference
from spacql.spec import Spec

if TYPE_CHECKING:
    from spacql.policies import Policy

CHUNK = 1 << 13  # rows at a time wherever a whole dataset is read: small enough for the cache

# What a row is, as bits, for one lookup per batch.
_FINAL, _TERMINAL, _NO_NEXT_ACTION = 1, 2, 4


class Batch(NamedTuple):
    """B transitions."""

    observations: tuple[np.ndarray, ...]  # per agent (B, size)
    actions: tuple[np.ndarray, ...]  # per agent (B, size)
    rewards: np.ndarray  # (B, agents)
    team_reward: np.ndarray  # (B,)
    next_observations: tuple[np.ndarray, ...]
    next_actions: tuple[np.ndarray, ...]  # what the behaviour did next
    state: np.ndarray | None  # (B, state size)
    next_state: np.ndarray | None
    terminal: np.ndarray  # (B,) 1.0 where the task ended, so that nothing is bootstrapped


class Statistics(NamedTuple):
    """Means and deviations. A constant column has deviation 1, so that dividing is safe."""

    observation_mean: tuple[np.ndarray, ...]  # per agent (size,), over all rows
    observation_std: tuple[np.ndarray, ...]
    state_mean: np.ndarray | None  # (state size,)
    state_std: np.ndarray | None
    team_reward_mean: float  # over transitions
    team_reward_std: float


class Info(msgspec.Struct, frozen=True):
    """What is relied on of a dataset's `info`; the rest is free."""

    name: str = ""
    seed: int | None = None
    reference: Reference | None = None
    last_steps_left_out: int = 0  # of episodes whose log ends before what followed was seen


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Logged episodes of n agents. Arrays may be memory maps of files larger than memory.

    Agents stand side by side in `joint_observations` and `joint_actions`, so that one gather
    serves a batch; `observations` and `actions` are views of them, one per agent.

    Build one with `Dataset.from_arrays`, `Dataset.from_episodes` or `load_dataset`.
    """

    spec: Spec
    joint_observations: np.ndarray  # (rows, sum of observation sizes) float32
    joint_actions: np.ndarray  # (rows, sum of action sizes) float32; zeros where not known
    rewards: np.ndarray  # (rows, agents) float32, 0 in final rows
    team_reward: np.ndarray  # (rows,) float32, 0 in final rows
    states: np.ndarray | None  # (rows, state size) float32
    starts: np.ndarray  # (episodes + 1,) int64 first row of each episode, then the row count
    terminated: np.ndarray  # (episodes,) bool: the task ended, not the time
    final_action_known: np.ndarray  # (episodes,) bool: the final row's action is the behaviour's
    info: dict[str, Any] = field(default_factory=dict)  # name, seed, provenance, scores, ...
    prey: "Policy | None" = None  # the one inside the world that the data is from, if any
    # What the dataset's folder says of it, so that it need not be computed again.
    stored_statistics: Statistics | None = None
    stored_identity: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "info", as_json(self.info, "info", DataError))
        as_record(self.info, Info, "info", DataError)
        rows, n, spec = self.n_rows, self.spec.n_agents, self.spec
        expected: dict[str, tuple[int, ...]] = {
            "joint_observations": (rows, sum(spec.observation_sizes)),
            "joint_actions": (rows, sum(spec.action_sizes)),
            "rewards": (rows, n),
            "team_reward": (rows,),
            "starts": (self.n_episodes + 1,),
            "terminated": (self.n_episodes,),
            "final_action_known": (self.n_episodes,),
        }
        if self.states is not None or spec.state_size:
            expected["states"] = (rows, spec.state_size)
        for name, shape in expected.items():
            found = np.shape(getattr(self, name))
            if found != shape:
                raise DataError(f"{name} has shape {found}; expected {shape}.")
        if len(self.starts) < 2:
            raise DataError("The dataset has no complete episode.")
        outside = self.starts.min() < 0 or self.starts.max() > rows  # else differences overflow
        first, last = self.starts[0], self.starts[-1]
        if outside or first != 0 or last != rows or np.diff(self.starts).min() < 2:
            raise DataError(
                "starts must begin with 0, end with the number of rows, and leave at least one "
                "transition and a final row to every episode."
            )

    def __repr__(self) -> str:
        name, agents = self.info.get("name", self.spec.task), self.spec.n_agents
        return (
            f"Dataset({name!r}, {agents} agents, {self.n_episodes:,} episodes, "
            f"{self.n_transitions:,} transitions)"
        )

    # The front doors, with their own signatures and documentation in `spacql.data.build`.
    from_arrays = staticmethod(build.from_arrays)
    from_episodes = staticmethod(build.from_episodes)

    def check_finite(self) -> None:
        """Refuse NaN and infinity, wherever they are. Reads everything."""
        for name, array in self.arrays():
            for chunk in row_chunks(len(array)):
                if not (finite := np.isfinite(array[chunk])).all():
                    row = chunk.start + int(np.argwhere(~finite)[0][0])
                    raise DataError(f"{name} hold NaN or infinity at row {row}.")

    @property
    def n_rows(self) -> int:
        return int(self.joint_observations.shape[0])

    @property
    def n_episodes(self) -> int:
        return len(self.starts) - 1

    @property
    def n_transitions(self) -> int:
        return self.n_rows - self.n_episodes

    @property
    def observations(self) -> tuple[np.ndarray, ...]:
        """Per agent (rows, size)."""
        return _split(self.joint_observations, self.spec.observation_sizes)

    @property
    def actions(self) -> tuple[np.ndarray, ...]:
        """Per agent (rows, size), within the spec's bounds."""
        return _split(self.joint_actions, self.spec.action_sizes)

    @cached_property
    def _kinds(self) -> np.ndarray:
        kinds = np.zeros(self.n_rows, np.uint8)
        final = self.starts[1:] - 1
        kinds[final] = _FINAL
        kinds[final - 1] = _TERMINAL * self.terminated + _NO_NEXT_ACTION * ~self.final_action_known
        return kinds

    def transition_rows(self) -> np.ndarray:
        """All rows that begin a transition, which is all but the final rows."""
        return np.flatnonzero(self._kinds != _FINAL)

    def target_rows(self) -> np.ndarray:
        """The transitions a bootstrapped target can be computed for.

        Their next joint action is known, or the task ended and none is needed.
        """
        return np.flatnonzero((self._kinds != _FINAL) & (self._kinds != _NO_NEXT_ACTION))

    def is_terminal(self, rows: np.ndarray) -> np.ndarray:
        return (self._kinds[rows] & _TERMINAL) > 0

    @cached_property
    def returns(self) -> np.ndarray:
        """Sum of rewards, (episodes, agents)."""
        return np.add.reduceat(self.rewards, self.starts[:-1], axis=0, dtype=np.float64)

    @cached_property
    def team_returns(self) -> np.ndarray:
        """Sum of the team reward, (episodes,)."""
        return np.add.reduceat(self.team_reward, self.starts[:-1], dtype=np.float64)

    def batch(self, rows: np.ndarray) -> Batch:
        """The transitions that begin at `rows`."""
        kinds = self._kinds[rows]
        if (kinds == _FINAL).any():
            row = int(np.asarray(rows)[kinds == _FINAL][0])
            raise DataError(f"Row {row} ends an episode and begins no transition.")
        spec, following = self.spec, np.asarray(rows) + 1

        def at(array: np.ndarray, rows: np.ndarray) -> np.ndarray:
            return array.take(rows, axis=0)  # twice as fast as array[rows]

        return Batch(
            observations=_split(at(self.joint_observations, rows), spec.observation_sizes),
            actions=_split(at(self.joint_actions, rows), spec.action_sizes),
            rewards=at(self.rewards, rows),
            team_reward=at(self.team_reward, rows),
            next_observations=_split(
                at(self.joint_observations, following), spec.observation_sizes
            ),
            next_actions=_split(at(self.joint_actions, following), spec.action_sizes),
            state=None if self.states is None else at(self.states, rows),
            next_state=None if self.states is None else at(self.states, following),
            terminal=((kinds & _TERMINAL) > 0).astype(np.float32),
        )

    def statistics(self) -> Statistics:
        """Means and deviations of inputs and team reward. Loaded datasets know them already."""
        return self.stored_statistics or self._statistics

    @cached_property
    def _statistics(self) -> Statistics:
        mean, std = _moments(self.joint_observations, self.n_rows)
        # Final rows hold zeros, so the sums over all rows are those over transitions.
        reward_mean, reward_std = _moments(self.team_reward[:, None], self.n_transitions)
        state_mean, state_std = (
            (None, None) if self.states is None else _moments(self.states, self.n_rows)
        )
        sizes = self.spec.observation_sizes
        return Statistics(
            observation_mean=_split(mean, sizes),
            observation_std=_split(std, sizes),
            state_mean=state_mean,
            state_std=state_std,
            team_reward_mean=float(reward_mean[0]),
            team_reward_std=float(reward_std[0]),
        )

    def arrays(self) -> Iterator[tuple[str, np.ndarray]]:
        """Everything that is stored, by the name of its file."""
        yield "observations", self.joint_observations
        yield "actions", self.joint_actions
        yield "rewards", self.rewards
        yield "team_reward", self.team_reward
        if self.states is not None:
            yield "states", self.states
        yield "starts", self.starts
        yield "terminated", self.terminated
        yield "final_action_known", self.final_action_known

    @cached_property
    def identity(self) -> str:
        """SHA-256 over the hashes of the stored files: two datasets with equal arrays share it."""
        if self.stored_identity is not None:
            return self.stored_identity
        return identity({f"{name}.npy": _npy_sha256(array) for name, array in self.arrays()})


def identity(hashes: dict[str, str]) -> str:
    lines = (f"{name} {digest}\n" for name, digest in sorted(hashes.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def row_chunks(rows: int) -> Iterator[slice]:
    for start in range(0, rows, CHUNK):
        yield slice(start, min(start + CHUNK, rows))


def _split(joint: np.ndarray, sizes: Sequence[int]) -> tuple[np.ndarray, ...]:
    ends = np.cumsum(sizes)
    return tuple(joint[..., end - size : end] for size, end in zip(sizes, ends, strict=True))


def _moments(array: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of the columns, float32. `count` may leave out rows of zeros."""
    total = np.zeros(array.shape[1])
    square = np.zeros(array.shape[1])
    for chunk in row_chunks(len(array)):
        x = array[chunk].astype(np.float64)
        total += x.sum(axis=0)
        square += np.einsum("ij,ij->j", x, x)
    mean = total / count
    std = np.sqrt(np.maximum(square / count - mean**2, 0.0))
    std[std <= 1e-6 * (1 + np.abs(mean))] = 1.0
    return mean.astype(np.float32), std.astype(np.float32)


class _Hasher:
    """A file that keeps nothing but its hash."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return len(data)


def _npy_sha256(array: np.ndarray) -> str:
    hasher = _Hasher()
    np.lib.format.write_array(cast(BinaryIO, hasher), np.ascontiguousarray(array))
    return hasher.digest.hexdigest()
