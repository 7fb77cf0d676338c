"""Episodes held out: what judges learns from the others, and what is said of a policy is said here.

Whether the policy itself saw them is another matter: those of `spacql fit` did not, and a training
on the whole log did.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from spacql.data import Dataset
from spacql.errors import InputError

SHARE = 0.2
MOST = 2000  # held-out episodes that an estimate starts from
LEAST = 10  # episodes of a log that can be divided at all


class Split(NamedTuple):
    training: np.ndarray  # numbers of episodes
    heldout: np.ndarray


def split(dataset: Dataset, share: float = SHARE, seed: int = 0) -> Split:
    """Which episodes are held out: a share of them, at random. A function of seed and log."""
    episodes = dataset.n_episodes
    if episodes < LEAST:
        raise InputError(
            f"The log has {episodes} episodes; at least {LEAST} are needed to hold some of them "
            "out. Bring more of them, or cut long ones where the task starts anew."
        )
    if not 0 < share < 1:
        raise InputError(f"The share of episodes held out must lie between 0 and 1, not {share:g}.")
    order = np.random.default_rng(seed).permutation(episodes)
    count = min(max(2, round(share * episodes)), episodes - 2)
    return Split(np.sort(order[count:]), np.sort(order[:count]))


def some(episodes: np.ndarray, most: int, seed: int = 0) -> np.ndarray:
    """At most so many of them, drawn from all: behaviour may drift over a log."""
    if len(episodes) <= most:
        return episodes
    return np.sort(np.random.default_rng(seed).choice(episodes, most, replace=False))


def of_episodes(dataset: Dataset, episodes: np.ndarray) -> Dataset:
    """The dataset of some episodes."""
    rows = rows_of(dataset, episodes)
    lengths = np.diff(dataset.starts)[episodes]
    return replace(
        dataset,
        joint_observations=dataset.joint_observations[rows],
        joint_actions=dataset.joint_actions[rows],
        rewards=dataset.rewards[rows],
        team_reward=dataset.team_reward[rows],
        states=None if dataset.states is None else dataset.states[rows],
        starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        terminated=dataset.terminated[episodes],
        final_action_known=dataset.final_action_known[episodes],
        stored_statistics=None,  # those are of the whole
        stored_identity=None,
    )


def rows_of(dataset: Dataset, episodes: np.ndarray) -> np.ndarray:
    """All rows of some episodes, final ones among them."""
    starts, lengths = dataset.starts[:-1][episodes], np.diff(dataset.starts)[episodes]
    offsets = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return offsets + np.arange(lengths.sum())


def transition_rows(dataset: Dataset, episodes: np.ndarray) -> np.ndarray:
    """The rows of some episodes that begin a transition."""
    rows = rows_of(dataset, episodes)
    final = np.zeros(dataset.n_rows, bool)
    final[dataset.starts[1:] - 1] = True
    return rows[~final[rows]]
