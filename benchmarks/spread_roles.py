"""Do the agents of a team in spread share the landmarks out among themselves?

    python benchmarks/spread_roles.py RUN...      e.g. runs/reproduce/spread-random

For every finished run below the folders: its score, and the share of 500 episodes at whose end the
agents' nearest landmarks are one, two or three different ones. Last, how the two go together.
"""

import sys
from pathlib import Path

import jax
import numpy as np

from spacql.files import read_json
from spacql.policies import Policy
from spacql.worlds import make, rollout

EPISODES = 500
LANDMARKS = slice(4, 10)  # of an observation: the three landmarks, relative to the agent


def roles(policy: Policy) -> np.ndarray:
    """Shares of episodes that end with one, two and three landmarks taken."""
    parts = rollout(make("spread"), policy, jax.random.key(0), EPISODES, trajectories=True)
    ends = np.concatenate(
        [np.stack([o[:, -1, LANDMARKS] for o in part.observations], axis=1) for part in parts]
    )  # (episodes, agents, 6)
    nearest = np.linalg.norm(ends.reshape(*ends.shape[:2], 3, 2), axis=-1).argmin(axis=-1)
    taken = np.array([len(set(row)) for row in nearest])
    return np.bincount(taken, minlength=4)[1:] / len(taken)


def main(folders: list[str]) -> None:
    found = sorted({p.parent for folder in folders for p in Path(folder).rglob("result.json")})
    if not found:
        sys.exit(f"No finished run below: {', '.join(folders) or '(no folder given)'}")
    scores, three = [], []
    print("score   1 landmark   2   3")
    for run in found:
        evaluation = read_json(run / "result.json")["evaluation"]
        shares = roles(Policy.load(run))
        scores.append(evaluation["score"])
        three.append(shares[2])
        print(f"{scores[-1]:6.1f}  " + "  ".join(f"{100 * s:3.0f} %" for s in shares), f" {run}")
    if len(found) > 2:
        print(f"correlation of score and three landmarks: {np.corrcoef(scores, three)[0, 1]:.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
