"""A small dataset of an unknown task, and settings that compile fast."""

import numpy as np

from spacql.data import Dataset

TINY = {"rounds": 20, "batch_size": 16, "hidden": (8, 8), "critics": 2, "updates": 2, "samples": 3}


def toy_dataset(seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    episodes = [
        {
            "observations": [rng.normal(size=(6, 3)), rng.normal(size=(6, 2))],
            "actions": [rng.uniform(-1, 1, (6, 1)), rng.uniform(-1, 1, (6, 2))],
            "rewards": rng.normal(size=(5, 2)),
        }
        for _ in range(20)
    ]
    return Dataset.from_episodes(episodes, task="toy")
