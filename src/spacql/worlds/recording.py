"""Recording a PettingZoo environment while somebody else's code acts in it.

env = Recorder(my_env.parallel_env(), "logs")
...                       # anything that calls env.reset and env.step
env.close()               # writes the dataset
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spacql import arguments
from spacql.errors import InputError, MissingExtra
from spacql.worlds.pettingzoo import PettingZooWorld

try:
    from pettingzoo.utils.wrappers import BaseParallelWrapper
except ImportError as error:
    raise MissingExtra("PettingZoo", "pettingzoo") from error


class Recorder(BaseParallelWrapper):
    """A `ParallelEnv` that keeps what happens, and writes it as a dataset when it is closed.

    An episode ends for the record when the first agent leaves: a team's policy needs all of them.
    One that is still under way when it is reset or closed is kept as cut by the clock.
    """

    def __init__(self, env: Any, out: Path | str, horizon: int | None = None):
        super().__init__(env)
        self.out = Path(out)
        arguments.place(self.out)
        if self.out.exists():
            raise InputError(f"{out} exists already. Choose another place or remove it first.")
        self._spec = PettingZooWorld(env, horizon or 10**6).spec  # refuses what cannot be used
        self._horizon = horizon
        self._agents = list(env.possible_agents)
        self._episodes: list[dict[str, Any]] = []
        self._now: dict[str, Any] | None = None

    @property
    def episodes(self) -> int:
        """Kept so far."""
        return len(self._episodes)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self._finish(terminated=False)
        observations, infos = super().reset(seed=seed, options=options)
        self._now = {"observations": [self._flat(observations)], "actions": [], "rewards": []}
        return observations, infos

    def step(self, actions: Mapping[Any, Any]) -> Any:
        found = super().step(dict(actions))
        observations, rewards, terminations, truncations, _ = found
        if self._now is None:
            return found
        before = self._now["observations"][-1]
        self._now["actions"].append(self._flat(actions))
        self._now["rewards"].append([float(rewards.get(agent, 0.0)) for agent in self._agents])
        self._now["observations"].append(self._flat(observations, before))
        terminated = any(terminations.values())
        gone = len(self.env.agents) < len(self._agents)
        over = len(self._now["actions"]) == self._horizon
        if terminated or gone or over or any(truncations.values()):
            self._finish(terminated)
        return found

    def close(self) -> None:
        """Write the dataset and close the environment."""
        from spacql.data import Dataset, save_dataset

        self._finish(terminated=False)
        super().close()
        episodes, self._episodes = self._episodes, []  # a second call has nothing left to write
        if not episodes:
            return
        spec = self._spec
        dataset = Dataset.from_episodes(
            episodes, agents=spec.agents, action_low=spec.action_low,
            action_high=spec.action_high, bounds="clip", task=spec.task, horizon=self._horizon,
            info={"name": spec.task, "source": "recorded"},
        )  # fmt: skip
        out, number = self.out, 1
        while out.exists():  # something came there meanwhile: what was recorded is kept beside it
            number += 1
            out = self.out.with_name(f"{self.out.name}-{number}")
        self.out = out
        save_dataset(dataset, out)

    def _flat(self, parts: Mapping[Any, Any], before: Any = None) -> list[np.ndarray]:
        """One vector per agent; an agent that has left keeps its former observation."""
        return [
            np.asarray(parts[agent], np.float32).ravel() if agent in parts else before[i]
            for i, agent in enumerate(self._agents)
        ]

    def _finish(self, terminated: bool) -> None:
        now, self._now = self._now, None
        if now is None or not now["actions"]:
            return
        self._episodes.append(
            {
                "observations": [np.stack(x) for x in zip(*now["observations"], strict=True)],
                "actions": [np.stack(x) for x in zip(*now["actions"], strict=True)],
                "rewards": np.array(now["rewards"], np.float32),
                "terminated": terminated,
            }
        )
