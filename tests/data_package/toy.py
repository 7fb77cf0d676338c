"""Small datasets whose every number says where it stands."""

import numpy as np

from spacql.data import Dataset
from spacql.spec import Spec, unit_box


def build(
    lengths: tuple[int, ...] = (3, 5, 2),
    *,
    terminated: tuple[bool, ...] | None = None,
    known: tuple[bool, ...] | None = None,
    state_size: int = 0,
    observation_sizes: tuple[int, ...] = (4, 3),
    action_sizes: tuple[int, ...] = (2, 1),
    seed: int = 0,
) -> Dataset:
    n, rng = len(observation_sizes), np.random.default_rng(seed)
    rows = sum(lengths) + len(lengths)
    starts = np.concatenate([[0], np.cumsum(np.array(lengths) + 1)]).astype(np.int64)
    final = np.zeros(rows, bool)
    final[starts[1:] - 1] = True
    actions = rng.uniform(-1, 1, (rows, sum(action_sizes))).astype(np.float32)
    known_array = np.array(known if known is not None else (True,) * len(lengths))
    actions[starts[1:][~known_array] - 1] = 0
    rewards = np.where(final[:, None], 0, rng.normal(2, 3, (rows, n))).astype(np.float32)
    spec = Spec(
        task="toy",
        agents=tuple(f"agent{i}" for i in range(n)),
        observation_sizes=observation_sizes,
        horizon=max(lengths),
        state_size=state_size,
        **unit_box(action_sizes),
    )
    return Dataset(
        spec=spec,
        joint_observations=rng.normal(1, 2, (rows, sum(observation_sizes))).astype(np.float32),
        joint_actions=actions,
        rewards=rewards,
        team_reward=rewards.mean(axis=1),
        states=rng.normal(size=(rows, state_size)).astype(np.float32) if state_size else None,
        starts=starts,
        terminated=np.array(terminated if terminated is not None else (False,) * len(lengths)),
        final_action_known=known_array,
        info={"name": "toy", "seed": seed},
    )
