"""A dataset on disk: a folder of `.npy` files, and `dataset.json` that describes and seals them.

The folder appears by a rename when everything is written, so a kill leaves nothing half-made.
Loading maps the files into memory; nothing is read before it is used.
"""

import hashlib
import json
import platform
from contextlib import ExitStack
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from spacql.data.arrays import read_npy
from spacql.data.dataset import Dataset, Info, Statistics, identity, row_chunks
from spacql.data.dataset_file import Described
from spacql.errors import DataError, InputError, SpacqlError
from spacql.files import as_json, as_record, new_folder, of_format, read_json, sha256, write_json
from spacql.spec import Spec

if TYPE_CHECKING:
    from spacql.policies import Policy
    from spacql.worlds.rollout import Trajectories

FORMAT = 1
PREY = ("prey.json", "prey.safetensors")  # the prey that the data was made against, if any


class DatasetWriter:
    """Writes a dataset episode by episode, holding no more than a chunk in memory.

    ```python
    with DatasetWriter("logs", world.spec, {"name": "mine"}) as writer:
        for trajectories in episode_chunks(world, policy, key, 1000):
            writer.add(trajectories)
    ```
    """

    def __init__(
        self,
        path: Path | str,
        spec: Spec,
        info: dict[str, Any] | None = None,
        prey: "Policy | None" = None,
    ):
        self.path, self.spec, self.prey = Path(path), spec, prey
        self.info = as_json({"versions": versions(), **(info or {})}, "info", DataError)
        as_record(self.info, Info, "info", DataError)
        self.transitions = 0
        self._stack = ExitStack()
        self._columns: dict[str, _Column] = {}
        self._lengths: list[np.ndarray] = []
        self._terminated: list[np.ndarray] = []
        self._known: list[np.ndarray] = []

    def __enter__(self) -> "DatasetWriter":
        self._folder = self._stack.enter_context(new_folder(self.path))
        widths: dict[str, tuple[int, ...]] = {
            "observations": (sum(self.spec.observation_sizes),),
            "actions": (sum(self.spec.action_sizes),),
            "rewards": (self.spec.n_agents,),
            "team_reward": (),
        }
        if self.spec.state_size:
            widths["states"] = (self.spec.state_size,)
        for name, width in widths.items():
            file = self._stack.enter_context(open(self._folder / f"{name}.npy", "wb"))
            self._columns[name] = _Column(file, width)
        return self

    def add(self, trajectories: "Trajectories", team_reward: np.ndarray | None = None) -> None:
        """Append episodes. The team reward (episodes, T) is the agents' mean if not given."""
        rewards = np.asarray(trajectories.rewards)
        episodes, steps, _ = rewards.shape
        if team_reward is None:
            team_reward = rewards.mean(axis=-1)
        rows = {
            "observations": np.concatenate(trajectories.observations, axis=-1),
            "actions": np.concatenate(trajectories.actions, axis=-1),
            "rewards": np.pad(rewards, ((0, 0), (0, 1), (0, 0))),
            "team_reward": np.pad(team_reward, ((0, 0), (0, 1))),
            "states": np.asarray(trajectories.states),
        }
        for name, column in self._columns.items():
            shape = (episodes, steps + 1, *column.width)
            if rows[name].shape != shape:
                raise DataError(f"{name} have shape {rows[name].shape}; the spec says {shape}.")
            if not np.isfinite(rows[name]).all():
                raise DataError(f"The {name} of a new episode hold NaN or infinity.")
        for name, column in self._columns.items():
            column.append(rows[name].reshape(episodes * (steps + 1), *column.width))
        self._ended(
            np.full(episodes, steps + 1),
            np.asarray(trajectories.terminated, bool),
            np.ones(episodes, bool),
        )

    def extend(self, dataset: Dataset) -> None:
        """Append all episodes of another dataset."""
        for name, array in dataset.arrays():
            if name in self._columns:
                for chunk in row_chunks(dataset.n_rows):
                    self._columns[name].append(array[chunk])
        self._ended(np.diff(dataset.starts), dataset.terminated, dataset.final_action_known)

    def _ended(self, lengths: np.ndarray, terminated: np.ndarray, known: np.ndarray) -> None:
        self.transitions += int(lengths.sum()) - len(lengths)
        self._lengths.append(lengths)
        self._terminated.append(terminated)
        self._known.append(known)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._stack:  # closes the files, then renames the folder, or removes it on an error
            if error is not None:
                raise error
            self._finish()

    def _finish(self) -> None:
        if not self._lengths:
            raise DataError(f"No episode was added to {self.path}. Nothing was written.")
        lengths = np.concatenate(self._lengths)
        for name, array in {
            "starts": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            "terminated": np.concatenate(self._terminated),
            "final_action_known": np.concatenate(self._known),
        }.items():
            np.save(self._folder / f"{name}.npy", array)
        for column in self._columns.values():
            column.finish()
        # Read back what was written: statistics and hashes are those of the files.
        dataset = _dataset(self._folder, self.spec, self.info)
        files = {f"{name}.npy": self._folder / f"{name}.npy" for name, _ in dataset.arrays()}
        hashes = {name: sha256(path) for name, path in files.items()}
        sealed = {name: (files[name], digest) for name, digest in hashes.items()}
        if self.prey is not None:
            self.prey.save(self._folder / "prey")
            sealed |= {name: (self._folder / name, sha256(self._folder / name)) for name in PREY}
        described = {
            "format": FORMAT,
            "spec": self.spec.to_json(),
            "agents": self.spec.n_agents,
            "episodes": dataset.n_episodes,
            "transitions": dataset.n_transitions,
            "info": self.info,
            "statistics": _statistics_to_json(dataset.statistics()),
            "files": {
                name: {"sha256": digest, "bytes": path.stat().st_size}
                for name, (path, digest) in sealed.items()
            },
            "identity": identity(hashes),
        }
        write_json(self._folder / "dataset.json", {**described, "seal": _seal(described)})


class _Column:
    """An `.npy` file that grows. NumPy leaves room in the header for the number of rows."""

    def __init__(self, file: BinaryIO, width: tuple[int, ...]):
        self.file, self.width, self.rows = file, width, 0
        self._header()

    def append(self, values: np.ndarray) -> None:
        if values.shape[1:] != self.width:
            raise DataError(f"Episodes of width {values.shape[1:]} do not fit {self.width}.")
        self.file.write(np.ascontiguousarray(values, np.float32).data)
        self.rows += len(values)

    def finish(self) -> None:
        self.file.seek(0)
        self._header()
        self.file.flush()

    def _header(self) -> None:
        header = {"descr": "<f4", "fortran_order": False, "shape": (self.rows, *self.width)}
        np.lib.format.write_array_header_1_0(self.file, header)


def save_dataset(dataset: Dataset, path: Path | str) -> None:
    """Write a dataset to a new folder. Equal datasets give equal bytes."""
    if not isinstance(dataset, Dataset) or not isinstance(path, Path | str):
        found = f"{type(dataset).__name__} and {type(path).__name__}"
        raise InputError(f"save_dataset takes a Dataset and then a folder, not {found}.")
    with DatasetWriter(path, dataset.spec, dataset.info, dataset.prey) as writer:
        writer.extend(dataset)


def load_dataset(path: Path | str, verify: bool = False) -> Dataset:
    """Map a dataset folder into memory.

    `verify` also compares every byte with its checksum and every number with infinity.
    """
    path = Path(path)
    described = path / "dataset.json"
    if not described.is_file():
        raise InputError(f"{path} is no dataset: there is no {described}.")
    raw = of_format(read_json(described, DataError), FORMAT, described, DataError)
    record = as_record(raw, Described, described, DataError)
    if verify and record.seal != _seal({k: v for k, v in raw.items() if k != "seal"}):
        raise DataError(f"{described} is damaged or was edited: its seal is broken.")
    # The names of the files are known: those in dataset.json are only compared with them.
    arrays = {f"{name}.npy" for name in _dtypes(record.spec)}
    if set(record.files) not in (arrays, arrays | set(PREY)):
        raise DataError(f"{described} is damaged: its files must be {', '.join(sorted(arrays))}.")
    if record.identity != identity({name: record.files[name].sha256 for name in arrays}):
        raise DataError(f"{described} is damaged: the identity is not that of its files.")
    for name, expected in record.files.items():
        file = path / name
        if not file.is_file():
            raise DataError(f"The dataset is incomplete: there is no {file}.")
        if file.stat().st_size != expected.bytes:
            raise DataError(
                f"{file} is damaged: {file.stat().st_size} bytes instead of {expected.bytes}."
            )
        if verify and sha256(file) != expected.sha256:
            raise DataError(f"{file} is damaged: its SHA-256 is not the one in dataset.json.")
    try:
        dataset = replace(
            _dataset(path, record.spec, record.info),
            prey=_prey(path) if PREY[0] in record.files else None,
            stored_statistics=record.statistics.checked(record.spec),
            stored_identity=record.identity,
        )
        if verify:
            dataset.check_finite()
    except SpacqlError as error:
        raise DataError(f"{path} is damaged: {error}") from error
    return dataset


def versions() -> dict[str, str]:
    """What made a dataset."""
    packages = {name: version(name) for name in ("spacql", "numpy", "jax")}
    return {"python": platform.python_version(), **packages}


def _dtypes(spec: Spec) -> dict[str, str]:
    """The arrays that a dataset of this spec stores, and their types."""
    numbers = ("observations", "actions", "rewards", "team_reward")
    return {
        **dict.fromkeys((*numbers, "states") if spec.state_size else numbers, "<f4"),
        "starts": "<i8",
        "terminated": "|b1",
        "final_action_known": "|b1",
    }


def _dataset(folder: Path, spec: Spec, info: dict[str, Any]) -> Dataset:
    arrays = {}
    for name, dtype in _dtypes(spec).items():
        array = read_npy(folder / f"{name}.npy")
        if array.dtype.str != dtype or not array.flags.c_contiguous:
            raise DataError(f"{name}.npy holds {array.dtype.str}, not rows of {dtype}.")
        arrays[name] = array if dtype == "<f4" else array.copy()  # the small ones are not mapped
    if not all(array.ndim for array in arrays.values()):
        raise DataError("an array has no rows")
    for name in ("terminated", "final_action_known"):
        if (arrays[name].view(np.uint8) > 1).any():
            raise DataError(f"{name}.npy holds bytes that are neither true nor false.")
    return Dataset(
        spec=spec,
        joint_observations=arrays["observations"],
        joint_actions=arrays["actions"],
        rewards=arrays["rewards"],
        team_reward=arrays["team_reward"],
        starts=arrays["starts"],
        terminated=arrays["terminated"],
        final_action_known=arrays["final_action_known"],
        states=arrays.get("states"),
        info=info,
    )


def _prey(folder: Path) -> "Policy":
    from spacql.policies import Policy  # imports JAX, which a dataset without prey does not need

    return Policy.load(folder / "prey")


def _seal(described: dict[str, Any]) -> str:
    """A checksum for the description itself."""
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def _statistics_to_json(statistics: Statistics) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, tuple):
            return [plain(x) for x in value]
        return value.tolist() if isinstance(value, np.ndarray) else value

    return {name: plain(value) for name, value in statistics._asdict().items()}
