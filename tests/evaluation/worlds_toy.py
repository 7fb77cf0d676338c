"""A linear world with known returns: two agents of unequal size push a point towards the origin."""

import jax
import jax.numpy as jnp
import numpy as np

import spacql
from spacql.policies import MLP, Policy

STEPS = 10


def play(act, episodes, seed=0, noise=0.6):
    random = np.random.default_rng(seed)
    x = random.uniform(-1, 1, (episodes, 2)).astype(np.float32)
    seen, first, second, paid = [x], [], [], []
    for _ in range(STEPS + 1):
        a, b = act(x)
        a = np.clip(a + noise * random.normal(size=a.shape), -1, 1).astype(np.float32)
        b = np.clip(b + noise * random.normal(size=b.shape), -2, 2).astype(np.float32)
        first.append(a)
        second.append(b)
        if len(first) > STEPS:
            break
        x = (x + 0.2 * a + np.concatenate([0.1 * b, 0 * b], axis=1)).astype(np.float32)
        seen.append(x)
        paid.append(-np.abs(x).sum(axis=1))
    return [np.stack(part, axis=1) for part in (seen, first, second, paid)]


def nothing(x):
    return np.zeros((len(x), 2)), np.zeros((len(x), 1))


def log(episodes=60, seed=0):
    """Nobody pushes on purpose: random actions. The second agent sees one coordinate alone."""
    seen, first, second, paid = play(nothing, episodes, seed)
    return spacql.Dataset.from_episodes(
        [
            {
                "observations": {"a": seen[e], "b": seen[e][:, :1]},
                "actions": {"a": first[e], "b": second[e]},
                "rewards": paid[e],
            }
            for e in range(episodes)
        ],
        action_low=[-1.0, -2.0],
        action_high=[1.0, 2.0],
        task="toy",
    )


def pushing(strength):
    """Both agents push towards the origin, or away from it with a negative strength."""

    def actor(size, acts, high):
        weight = np.zeros((size, acts), np.float32)
        weight[range(acts), range(acts)] = -strength
        return MLP(jnp.zeros(size), jnp.ones(size), (jnp.asarray(weight),), (jnp.zeros(acts),),
                   low=(-high,) * acts, high=(high,) * acts)  # fmt: skip

    return Policy((actor(2, 2, 1.0), actor(1, 1, 2.0)), name=f"push {strength}", agents=("a", "b"))


def true_return(policy, episodes=500):
    acts = lambda x: policy.act([x, x[:, :1]])  # noqa: E731
    return float(play(acts, episodes, seed=5, noise=0.0)[3].sum(axis=1).mean())


def key(seed=0):
    return jax.random.key(seed)
