"""Which actors have an action that is always the same?

    python benchmarks/saturation.py RUN...   e.g. runs/reproduce/tag-expert

One line a policy, at observations of its own dataset: the share of the logged actions and of its
own that are at a bound; and how many coordinates of its actions are the same at all of them,
because their tanh has saturated and has no slope left that could bring them back.
"""

import sys
from pathlib import Path

import numpy as np

from spacql import Policy
from spacql.data import cache
from spacql.files import read_json

ROWS = 200
AT_BOUND = 0.95
SAME = 0.01


def line(folder: Path) -> None:
    run = read_json(folder / "run.json")
    data = cache.resolve(run["dataset"]["name"], run["dataset"]["seed"])
    rows = np.linspace(0, data.n_transitions - 1, ROWS).astype(int)
    logged = np.concatenate([np.asarray(x[rows]) for x in data.actions], axis=1)
    policy = Policy.load(folder)
    acted = np.concatenate(policy.act([np.asarray(x[rows]) for x in data.observations]), axis=1)
    shares = [np.mean(np.abs(actions) > AT_BOUND) for actions in (logged, acted)]
    same = np.sum(acted.std(axis=0) < SAME)
    print(f"{shares[0]:6.2f} {shares[1]:6.2f}   {same} of {acted.shape[1]}   {folder}")


def main(places: list[str]) -> None:
    folders = [path.parent for place in places for path in sorted(Path(place).rglob("policy.json"))]
    if not folders:
        sys.exit(__doc__)
    print("  data policy   same     run")
    for folder in folders:
        line(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
