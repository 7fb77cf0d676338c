"""Recording a PettingZoo environment while somebody else's code acts in it.

env = Recorder(my_env.parallel_env(), "logs")
...                       # anything that calls env.reset and env.step
env.close()               # writes the dataset
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spacql import arguments
from spacql.errors import DataError, InputError, MissingExtra
from spacql.files import decoding
from spacql.worlds.pettingzoo import PettingZooWorld

try:
    from pettingzoo.utils.wrappers import BaseParallelWrapper
except ImportError as error:
    raise MissingExtra("PettingZoo", "pettingzoo") from error


class Recorder(BaseParallelWrapper):
    """A `ParallelEnv` that keeps what happens, and writes it as a dataset when it is closed.

    An episode ends for the record when the first agent leaves: a team's policy needs all of them.
    One that is still under way when it is reset or closed is kept as cut by the clock. NaN and
    infinity are refused as they come: such an action is not carried out, and an episode in which
    the environment says such a number is dropped; those before it are kept.
    """

    def __init__(self, env: Any, out: Path | str, horizon: int | None = None):
        super().__init__(env)
        self.out = Path(out)
        arguments.place(self.out)
        arguments.whole("horizon", horizon)
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
        seen = self._vectors("observation", observations)
        self._now = {"observations": [seen], "actions": [], "rewards": []}
        return observations, infos

    def step(self, actions: Mapping[Any, Any]) -> Any:
        sizes = self._spec.action_sizes
        acted = self._vectors("action", actions, sizes) if self._now is not None else []
        found = super().step(dict(actions))
        observations, rewards, terminations, truncations, _ = found
        if self._now is None:
            return found
        now, self._now = self._now, None  # dropped, should anything in it be refused
        # An agent that has left keeps its former observation, and is paid nothing.
        before = zip(self._agents, now["observations"][-1], strict=True)
        seen = {**dict(before), **observations}
        paid = {agent: rewards.get(agent, 0.0) for agent in self._agents}
        now["actions"].append(acted)
        now["rewards"].append(np.concatenate(self._vectors("reward", paid, [1] * len(paid))))
        now["observations"].append(self._vectors("observation", seen))
        self._now = now
        terminated = any(terminations.values())
        gone = len(self.env.agents) < len(self._agents)
        over = len(now["actions"]) == self._horizon
        if terminated or gone or over or any(truncations.values()):
            self._finish(terminated)
        return found

    def close(self) -> None:
        """Write the dataset and close the environment."""
        self._finish(terminated=False)
        try:
            self.save()
        finally:
            super().close()

    def save(self) -> None:
        """Write the dataset of the episodes that have ended."""
        from spacql.data import Dataset, save_dataset

        if not self._episodes:
            return
        spec = self._spec
        dataset = Dataset.from_episodes(
            self._episodes, agents=spec.agents, action_low=spec.action_low,
            action_high=spec.action_high, bounds="clip", task=spec.task, horizon=self._horizon,
            info={"name": spec.task, "source": "recorded"},
        )  # fmt: skip
        out, number = self.out, 1
        while out.exists():  # something came there meanwhile: what was recorded is kept beside it
            number += 1
            out = self.out.with_name(f"{self.out.name}-{number}")
        save_dataset(dataset, out)
        self.out = out
        self._episodes = []  # a second call has nothing left to write

    def _vectors(
        self, what: str, parts: Any, sizes: Sequence[int] | None = None
    ) -> list[np.ndarray]:
        """One finite vector per agent."""
        task, vectors = self._spec.task, []
        if not isinstance(parts, Mapping):
            kind = type(parts).__name__
            raise InputError(f"{task}: {what}s came as {kind}; expected a mapping from agents.")
        for i, agent in enumerate(self._agents):
            if agent not in parts:
                raise InputError(f"{task}: there is no {what} of {agent}; every agent needs one.")
            with np.errstate(over="ignore"), decoding(f"{task}: the {what} of {agent}"):
                # A copy: environments may write the next observation into the same array.
                vector = np.array(parts[agent], np.float32).ravel()
            if sizes is not None and len(vector) != sizes[i]:
                raise InputError(f"{task}: the {what} of {agent} has {len(vector)} numbers; "
                                 f"expected {sizes[i]}.")  # fmt: skip
            if not np.isfinite(vector).all():
                raise DataError(f"{task}: the {what} of {agent} holds NaN or infinity in episode "
                                f"{self.episodes}. Mend what makes it; the episodes before it are "
                                "kept.")  # fmt: skip
            vectors.append(vector)
        return vectors

    def _finish(self, terminated: bool) -> None:
        now, self._now = self._now, None
        if now is None or not now["actions"]:
            return
        self._episodes.append(
            {
                "observations": [np.stack(x) for x in zip(*now["observations"], strict=True)],
                "actions": [np.stack(x) for x in zip(*now["actions"], strict=True)],
                "rewards": np.stack(now["rewards"]),
                "terminated": terminated,
            }
        )
