"""Where a command's runs are executed: options that all commands with runs share."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from spacql.algorithms.config import Training
    from spacql.experiments.executors import Local
    from spacql.experiments.ray_executor import Ray


@dataclass(frozen=True)
class Where:
    """On this machine, or on a Ray cluster."""

    executor: Literal["local", "ray"] = "local"  # processes here, or tasks of a Ray cluster
    ray_address: str | None = None  # of a cluster; $RAY_ADDRESS, or one started here if not given
    storage: str | None = None  # folder or URI for the checkpoints of Ray tasks, if a node dies

    def make(self, folder: Path, workers: int = 0) -> "Local | Ray":
        """The executor whose runs land in a folder; `workers` at a time, 0 one per core."""
        from spacql.errors import InputError
        from spacql.experiments.executors import Local

        if self.executor == "ray":
            from spacql.experiments.ray_executor import Ray

            return Ray(folder, workers, self.ray_address, self.storage)
        if self.ray_address or self.storage:
            raise InputError("--ray-address and --storage are for --executor ray.")
        return Local(folder, workers)

    def prepare(self, data: str, seed: int, config: "Training") -> None:
        """Refuse data that is none, or that the configuration does not fit. For processes here,
        make it now, where its progress is seen; the nodes of a cluster make their own."""
        from spacql.algorithms.settings import check_fits
        from spacql.data.cache import is_folder, resolve

        if self.executor == "local" or is_folder(data):
            check_fits(config, resolve(data, seed).spec)


HERE = Where()
