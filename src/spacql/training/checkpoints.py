"""Training state on disk, by Orbax: the newest few are kept, a half-written one is never seen."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

KEPT = 3


class Checkpoints:
    """The checkpoints in a folder, numbered by the round they were taken after."""

    def __init__(self, folder: Path):
        import orbax.checkpoint as ocp

        options = ocp.CheckpointManagerOptions(
            max_to_keep=KEPT, enable_async_checkpointing=False, cleanup_tmp_directories=True
        )
        self._manager = ocp.CheckpointManager(folder.resolve(), options=options)
        self._save, self._restore = ocp.args.StandardSave, ocp.args.StandardRestore

    def latest(self) -> int | None:
        return self._manager.latest_step()

    def save(self, round_: int, state: Any) -> None:
        arrays = [np.asarray(x) for x in jax.tree.leaves(eqx.filter(state, eqx.is_array))]
        self._manager.save(round_, args=self._save(arrays))

    def restore(self, round_: int, like: Any) -> Any:
        """The state after a round; `like` is a state of the same structure."""
        arrays, rest = eqx.partition(like, eqx.is_array)
        leaves, structure = jax.tree.flatten(arrays)
        template = [np.zeros(x.shape, x.dtype) for x in leaves]
        found = self._manager.restore(round_, args=self._restore(template))
        placed = jax.tree.map(jax.numpy.asarray, found)
        return eqx.combine(jax.tree.unflatten(structure, placed), rest)

    def close(self) -> None:
        self._manager.close()
