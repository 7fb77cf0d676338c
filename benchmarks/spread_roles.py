"""Do the agents of a team in spread share the landmarks out among themselves?

    python benchmarks/spread_roles.py RUN...      e.g. runs/reproduce/spread-random
    python benchmarks/spread_roles.py experts     the behaviours of the expert data

For every finished run below the folders: its score; the share of 500 episodes at whose end the
agents' nearest landmarks are one, two or three different ones; and for every agent how often it
ends at its favourite landmark. Last, how scores and three landmarks go together.
"""

import sys
from pathlib import Path

import jax
import numpy as np

from spacql.data.behaviours import SEEDS, behaviour
from spacql.files import read_json
from spacql.policies import Policy
from spacql.worlds import make, rollout

EPISODES = 500
LANDMARKS = slice(4, 10)  # of an observation: the three landmarks, relative to the agent


def roles(policy: Policy) -> tuple[np.ndarray, np.ndarray]:
    """Shares of episodes that end with one, two and three landmarks taken; and with each agent at
    the landmark where it ends most often."""
    parts = rollout(make("spread"), policy, jax.random.key(0), EPISODES, trajectories=True)
    ends = np.concatenate(
        [np.stack([o[:, -1, LANDMARKS] for o in part.observations], axis=1) for part in parts]
    )  # (episodes, agents, 6)
    nearest = np.linalg.norm(ends.reshape(*ends.shape[:2], 3, 2), axis=-1).argmin(axis=-1)
    taken = np.array([len(set(row)) for row in nearest])
    favourite = [np.bincount(column).max() / len(column) for column in nearest.T]
    return np.bincount(taken, minlength=4)[1:] / len(taken), np.array(favourite)


def line(name: str, score: float | None, policy: Policy) -> np.ndarray:
    taken, favourite = roles(policy)
    shares = ["  ".join(f"{100 * share:3.0f} %" for share in part) for part in (taken, favourite)]
    print(f"{'' if score is None else f'{score:.1f}':>6}   {shares[0]}   {shares[1]}   {name}")
    return taken


def main(folders: list[str]) -> None:
    print(" score   1, 2, 3 landmarks     favourites           ")
    if folders == ["experts"]:
        for seed in SEEDS:
            line(f"spread-expert, seed {seed}", None, behaviour("spread", "expert", seed))
        return
    found = sorted({p.parent for folder in folders for p in Path(folder).rglob("result.json")})
    if not found:
        sys.exit(f"No finished run below: {', '.join(folders) or '(no folder given)'}")
    scores = [read_json(run / "result.json")["evaluation"]["score"] for run in found]
    three = [
        line(str(run), score, Policy.load(run))[2] for run, score in zip(found, scores, strict=True)
    ]
    if len(found) > 2:
        print(f"correlation of score and three landmarks: {np.corrcoef(scores, three)[0, 1]:.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
