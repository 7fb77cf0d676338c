"""A PettingZoo world of your own: log a behaviour in it, learn from the log, score the team in it.

    pip install -e '.[pettingzoo]'
    python examples/own_world.py

A package can offer its world by name, so that `spacql train` and `evaluate` find it:

    [project.entry-points."spacql.worlds"]
    meeting = "my_package:make_meeting"     # returns from_pettingzoo(Meeting())
"""

from pathlib import Path

import jax
import numpy as np
import tyro
from gymnasium.spaces import Box
from pettingzoo import ParallelEnv

import spacql
from spacql.data import DatasetWriter
from spacql.policies import uniform
from spacql.reference import Reference
from spacql.worlds import rollout
from spacql.worlds.pettingzoo import from_pettingzoo


class Meeting(ParallelEnv):
    """Two agents on a line see both places, and are paid for being near each other."""

    metadata = {"name": "meeting"}  # noqa: RUF012
    max_cycles = 20

    def __init__(self) -> None:
        self.possible_agents = ["left", "right"]

    def observation_space(self, agent: str) -> Box:
        return Box(-9, 9, (2,))

    def action_space(self, agent: str) -> Box:
        return Box(-1, 1, (1,))

    def reset(self, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        self.agents, self.steps = self.possible_agents[:], 0
        self.at = np.random.default_rng(seed).uniform(-1, 1, 2).astype(np.float32)
        return dict.fromkeys(self.agents, self.at), {agent: {} for agent in self.agents}

    def step(self, actions: dict) -> tuple[dict, dict, dict, dict, dict]:
        self.at = self.at + 0.2 * np.concatenate([actions[a] for a in self.possible_agents])
        self.steps += 1
        agents, over = self.agents, self.steps == self.max_cycles
        self.agents = [] if over else agents
        reward = -abs(float(self.at[0] - self.at[1]))
        return (
            dict.fromkeys(agents, self.at),
            dict.fromkeys(agents, reward),
            dict.fromkeys(agents, False),
            dict.fromkeys(agents, over),
            {agent: {} for agent in agents},
        )


def main(
    algorithm: str = "spacql",
    episodes: int = 300,
    rounds: int = 100,
    out: Path = Path("runs/meeting"),
) -> float:
    """Returns the score between uniform actions (0) and the best possible return (100)."""
    world = from_pettingzoo(Meeting())

    # A log of 300 episodes. Yours comes from whatever has acted in your world so far.
    behaviour = uniform(world.spec)
    with DatasetWriter(out / "data", world.spec, {"name": "meeting-random"}) as writer:
        for chunk in rollout(world, behaviour, jax.random.key(0), episodes, trajectories=True):
            writer.add(chunk)

    run = spacql.train(algorithm, out / "data", rounds=rounds, out=out / "run")

    # What counts as 0 and as 100 is yours to say.
    random = spacql.evaluate(behaviour, world, episodes=50, key=jax.random.key(1)).summary.mean
    scale = Reference(random=random, expert=0.0, source="uniform actions, and the best possible")
    found = spacql.evaluate(run.policy, world, episodes=50, key=jax.random.key(1), reference=scale)
    print(f"return {found.summary.mean:.1f} (uniform: {random:.1f}), score {found.score:.1f}")
    return found.score


if __name__ == "__main__":
    tyro.cli(main)
