"""Train a team on a log, load its policy, act with it, and score it.

python examples/train_and_act.py --rounds 100
"""

from pathlib import Path

import jax
import tyro

import spacql
from spacql.worlds import make


def main(
    algorithm: str = "spacql",
    data: str = "spread-random",
    rounds: int = 500,
    episodes: int = 500,
    out: Path = Path("runs/example"),
) -> float:
    """Returns the score: 0 is uniform actions, 100 the expert."""
    # The log is all that the training sees. Hyperparameters are keywords, as `rounds` here.
    run = spacql.train(algorithm, data, rounds=rounds, episodes=episodes, out=out, resume=True)

    # A policy is two small files, and needs neither the log nor a simulator.
    policy = spacql.Policy.load(run.folder)

    # One observation per agent in, one action per agent out.
    world = make("spread")
    observations = world.observe(world.reset(jax.random.key(0)))
    for agent, action in zip(world.spec.agents, policy.act(observations), strict=True):
        print(f"{agent}: {action}")

    # Many episodes at once, and what they are worth.
    found = spacql.evaluate(policy, world, episodes=episodes, key=jax.random.key(1))
    low, high = found.score_interval
    print(f"score {found.score:.1f} (95 % interval {low:.1f} to {high:.1f})")
    return found.score


if __name__ == "__main__":
    tyro.cli(main)
