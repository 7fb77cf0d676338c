"""OMAR: offline multi-agent RL with actor rectification.

Every agent is a learner of its own: critics Q_i(o_i, a_i) on its own observation and reward, with
the conservative penalty over its own actions. To such an agent the team is itself, so the shared
code runs once per agent, on a team of one. The actor's gradient may be stuck on a poor hill of Q_i;
it is therefore also pulled towards the best action that a search without gradients finds.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from spacql.algorithms import actors as actor_part
from spacql.algorithms import independent, learner
from spacql.algorithms.actors import Networks, act, act_and_saturation, squared_distance
from spacql.algorithms.config import Conservative
from spacql.algorithms.conservative import all_agents_at_once, critic_update
from spacql.algorithms.critics import Metrics
from spacql.algorithms.ensemble import ensemble_q
from spacql.algorithms.independent import State, play_rounds
from spacql.algorithms.learner import (
    joint_target,
    next_actions,
    own_values,
    with_actors,
)
from spacql.algorithms.transitions import Transitions, raw_q
from spacql.data import Batch
from spacql.data.dataset import Statistics
from spacql.errors import InputError
from spacql.policies import Policy
from spacql.spec import Spec

NEEDS_NEXT_ACTION = False  # the agent's own next action is replaced


@dataclass(frozen=True)
class Config(Conservative):
    coefficient: float = 1.0  # c: of the distance to the best action; 1 - c: of the gradient of Q
    iterations: int = 3  # of the search
    candidates: int = 10  # actions per iteration
    elites: int = 0  # how many of them move the search; 0: all, by the softmax of their values
    search_std: float = 2.0  # deviation of the first candidates
    search_every: int = 1  # the search looks at one transition in this many

    def __post_init__(self) -> None:
        if not 0 <= self.coefficient <= 1:
            raise InputError(f"coefficient is {self.coefficient}; it must be from 0 to 1.")
        if self.iterations < 1 or not 0 <= self.elites <= self.candidates or self.candidates < 1:
            raise InputError(
                f"A search of {self.iterations} iterations, {self.candidates} candidates and "
                f"{self.elites} elites is impossible: iterations and candidates must be at least "
                "1, elites at most the candidates."
            )
        if self.search_every < 1 or self.batch_size % self.search_every:
            raise InputError(
                f"The search cannot look at one in {self.search_every} transitions of a batch of "
                f"{self.batch_size}: choose a search_every that divides batch_size."
            )


def init(key: Array, spec: Spec, config: Config, statistics: Statistics) -> State:
    return independent.init(learner.init, key, spec, config, statistics)


def update(state: State, batch: Batch, key: Array, config: Config) -> tuple[State, Metrics]:
    def critic_step(key: Array, agent: learner.State, t: Transitions) -> Any:
        return critic_update(target, all_agents_at_once, key, agent, t, config)

    def actor_step(key: Array, agent: learner.State, t: Transitions) -> Any:
        return improve_actor(key, agent, t, config)

    return play_rounds(critic_step, actor_step, state, batch, key, config)


def policy(state: State) -> Policy:
    actors = tuple(actor for agent in state.agents for actor in agent.actors.online)
    return Policy(actors, name="omar", agents=state.spec.agents)


def target(
    key: Array, agent: learner.State, t: Transitions, config: Config
) -> tuple[learner.State, Array, Metrics]:
    """Y_i = r_i + gamma min_j Qtar_ij(o_i', pi_i(o_i'))."""
    a_pi = next_actions(key, agent, t, config.target_noise)
    return agent, joint_target(agent, t, a_pi, config), {}


def search(key: Array, values: Any, sharpness: Array, pi: Array, config: Config) -> Array:
    """The best action found by an iterated search, (B, d); never worse than pi (B, d).

    `values` maps actions (B, N, d) to (B, N). Candidates come from a Gaussian, clipped to [-1, 1].
    Its next mean is that of the elites, which stay candidates, or of all candidates weighted with
    the softmax of `sharpness` times their values; its deviation is that around this mean.
    """
    mean, std = jnp.zeros_like(pi), jnp.full_like(pi, config.search_std)
    best_x, best_q = pi[:, None], values(pi[:, None])  # (B, 1, d), (B, 1)
    kept_x, kept_q = best_x[:, :0], best_q[:, :0]
    for key_ in jax.random.split(key, config.iterations):
        noise = jax.random.normal(key_, (len(pi), config.candidates, pi.shape[1]))
        x = jnp.clip(mean[:, None] + std[:, None] * noise, -1, 1)  # (B, N, d)
        x, q = jnp.concatenate([kept_x, x], axis=1), jnp.concatenate([kept_q, values(x)], axis=1)
        best_x, best_q = top(1, jnp.concatenate([best_x, x], 1), jnp.concatenate([best_q, q], 1))
        if config.elites:
            x, q = kept_x, kept_q = top(config.elites, x, q)
            mean = jnp.mean(x, axis=1)
        else:
            weight = jax.nn.softmax(sharpness * q, axis=1)  # (B, N)
            mean = jnp.sum(weight[..., None] * x, axis=1)
        std = jnp.sqrt(jnp.mean((x - mean[:, None]) ** 2, axis=1))
    return best_x[:, 0]


def top(count: int, x: Array, q: Array) -> tuple[Array, Array]:
    """The `count` actions of x (B, N, d) with the highest q (B, N), and their values."""
    best, where = jax.lax.top_k(q, count)
    return jnp.take_along_axis(x, where[..., None], axis=1), best


def improve_actor(
    key: Array, agent: learner.State, t: Transitions, config: Config
) -> tuple[learner.State, Metrics]:
    """One step on c (pi_i(o_i) - best)^2 - (1 - c) Q_i(o_i, pi_i(o_i)), of one agent.

    Q is that of the first critic, in the reward's own units: c then weighs the same two things
    as with rewards that are not standardised. The best action is searched for, and the distance to
    it is taken, at the first of so many transitions: rows of a batch are independent draws.
    """
    unit = agent.scale.reward_std
    first = jax.tree.map(lambda x: x[:1], agent.critics.online)
    count = len(t.s) // config.search_every
    s, observations = t.s[:count], [o[:count] for o in t.observations]
    pi = act(agent.spec, agent.actors.online, observations)  # (B / search_every, 1, d)
    values = lambda x: ensemble_q(first, s, x[:, :, None])[0]  # noqa: E731
    best = search(key, values, unit, pi[:, 0], config)[:, None]
    values_of = own_values(agent, t.s, t.a)

    def loss(networks: Networks) -> Any:
        pi, saturation = act_and_saturation(agent.spec, networks, t.observations)
        q = jnp.mean(values_of(pi)[0])
        distance = jnp.mean(squared_distance(agent.spec, pi[:count], best))
        value = config.coefficient * distance - (1 - config.coefficient) * unit * q
        cost = config.action_cost * jnp.mean(pi**2) + config.tanh_cost * saturation
        return value + cost, (q, distance)

    actors, (q, distance), metrics = actor_part.step(agent.actors, loss, config)
    found = {"q_policy": raw_q(agent.scale, q, config.discount), "search_distance": distance}
    return with_actors(agent, actors), found | metrics
