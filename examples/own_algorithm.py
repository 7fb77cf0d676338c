"""An algorithm of your own: SPaCQL that trusts the k whose value is highest in the worst case.

It is a module with a Config and four functions; all it changes is the target. To have it as
`spacql train optimist`, name it in the entry points of your package:

    [project.entry-points."spacql.algorithms"]
    optimist = "my_package.optimist"

python examples/own_algorithm.py --rounds 200
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import tyro

import spacql
from spacql.algorithms import actors, learner
from spacql.algorithms.config import Counterfactual
from spacql.algorithms.conservative import one_agent_at_a_time, train_round
from spacql.algorithms.ensemble import ensemble_q
from spacql.algorithms.replacement import random_sets, replace
from spacql.algorithms.transitions import bellman

NEEDS_NEXT_ACTION = True  # the agents that are not replaced do what the log says
SETTINGS_OF = "spacql"  # on the benchmark's data it has the settings that SPaCQL has there


@dataclass(frozen=True)
class Config(Counterfactual):
    sharpness: float = 10.0  # of the softmax over k; 0: all k count the same


init = learner.init


def update(state, batch, key, config):
    return train_round(target, one_agent_at_a_time, state, batch, key, config)


def policy(state):
    return actors.policy(state.actors, state.spec, "optimist")


def target(key, state, t, config):
    """Y = r + gamma sum_k w_k min_j Qtar_j(s', a'^(k)), w_k the softmax of these minima."""
    noise_key, set_key = jax.random.split(key)
    batch, n, _ = t.a.shape
    sets = random_sets(set_key, batch, n, range(1, n + 1))  # (B, K, n)
    a_pi = learner.next_actions(noise_key, state, t, config.target_noise)
    a_k = replace(sets, t.next_a, a_pi)  # (B, K, n, d)
    low_k = jnp.min(ensemble_q(state.critics.target, t.next_s, a_k), axis=0)  # (B, K)
    w_k = jax.nn.softmax(config.sharpness * low_k, axis=-1)
    y = bellman(t, state.scale, jnp.sum(w_k * low_k, axis=-1), config.discount)
    return state, y, {"w": jnp.mean(w_k, axis=0)}


def main(
    data: str = "spread-random",
    rounds: int = 3000,
    episodes: int = 500,
    out: Path = Path("runs/example-own-algorithm"),
) -> dict[str, float | None]:
    """Train it and SPaCQL with the same settings, and compare."""
    common = {"rounds": rounds, "critics": 2, "episodes": episodes}
    scores = {}
    for name, algorithm in (("spacql", "spacql"), ("optimist", sys.modules[__name__])):
        run = spacql.train(algorithm, data, out=out / name, resume=True, **common)
        scores[name] = run.score
        print(f"{name}: score {run.score:.1f}")
    return scores


if __name__ == "__main__":
    tyro.cli(main)
