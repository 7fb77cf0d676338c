"""The conservative penalty: push Q down at actions outside the data, and up at the logged ones.

    xi_c = alpha * (1/n) sum_i (soft_i(s) - Q(s, a))

where soft_i is one number for the actions that agent i might take instead, the others acting as
logged. Two forms of it:

    "log-sum-exp"   log E_x [exp Q(s, x, a_-i) / p(x)] over sampled actions x, whose density p is
                    relative to the uniform one: the log of the mean of exp Q over all actions, but
                    that noisy policy actions beyond the bounds count at the bound
    "policy"        Q(s, pi_i(o_i), a_-i), the paper's expectation over the policy's own action

The mean over agents is computed in full, or for one agent per transition: agents take turns over
the groups of a batch from a random start. And it is computed for all transitions of a batch, or for
one in so many. Rows of a batch are independent draws, so both have the same expectation as the full
mean, at a fraction of its cost: ten sampled actions cost ten times what the TD error does, and it
is the TD error that needs many transitions.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from spacql.algorithms.config import Conservative, Counterfactual, Form
from spacql.algorithms.ensemble import (
    Critic,
    group_size,
    in_groups,
    later_layers,
    q_of_agent,
)
from spacql.algorithms.transitions import action_mask
from spacql.spec import Spec


class Alternatives(NamedTuple):
    """N actions that might be taken instead of the logged one, for the first p transitions of each
    of G groups."""

    agents: Array  # (G, m) whose action is replaced: all n, or one
    a: Array  # (G, p, n, d) the logged joint action
    x: Array  # (G, p, m, N, d)
    log_density: Array  # (G, p, m, N) log p(x), relative to uniform actions


def soft(form: Form, q: Array, log_density: Array) -> Array:
    """One number for the alternatives' values q (..., N)."""
    if form == "policy":
        return jnp.mean(q, axis=-1)
    return jax.nn.logsumexp(q - log_density, axis=-1) - jnp.log(q.shape[-1])


def conservative_loss(critic: Critic, z: Array, group: Any, alpha: float, form: Form) -> Any:
    """Mean of (Q - Y)^2 + xi_c over one group of g transitions, for one critic.

    z (g, H) is the critic's first layer at (s, a); the group is Y (g,) and `Alternatives` for the
    first p transitions. There the logged action is evaluated as one more alternative.
    """
    y, (agents, a, x, log_density) = group
    p, m = x.shape[:2]
    first = jnp.concatenate([a[:, agents[0]][:, None], x[:, 0]], axis=1)  # (p, 1 + N, d)
    q_first = q_of_agent(critic, z[:p], a, agents[0], first)
    others = [q_of_agent(critic, z[:p], a, agents[j], x[:, j]) for j in range(1, m)]
    q, q_x = q_first[:, 0], jnp.stack([q_first[:, 1:], *others], axis=1)  # (p,), (p, m, N)
    gap = jnp.sum((soft(form, q_x, log_density) - q[:, None]) / m, axis=1)
    if p < len(y):
        q = jnp.concatenate([q, later_layers(critic, z[p:])])  # (g,)
    td, penalty = jnp.mean((q - y) ** 2), jnp.mean(gap)
    return td + alpha * penalty, {"td": td, "penalty": penalty, "q_data": jnp.mean(q)}


def individual(
    key: Array, spec: Spec, a: Array, pi: Array, next_pi: Array, config: Counterfactual
) -> Alternatives:
    """One agent at a time, the others as logged in a.

    a, and the policies' actions pi at s and next_pi at s', are (B, n, d).
    """
    batch, n, _ = pi.shape
    one = config.penalty_agents == "one"
    # With turns, groups are small enough for every agent to get one, if the batch allows it.
    kept = penalised(batch, config, most=max(1, batch // n) if one else batch)
    turn_key, sample_key = jax.random.split(key)
    count = len(kept(a))
    if one:
        start = jax.random.randint(turn_key, (), 0, n)
        agents = ((start + jnp.arange(count)) % n)[:, None]  # (G, 1)
    else:
        agents = jnp.broadcast_to(jnp.arange(n), (count, n))
    # One-hot products instead of gathers: (G, m, n) with (G, p, n, ...).
    chosen = jax.nn.one_hot(agents, n)
    pick = lambda x: jnp.einsum("Gmn,Gpn...->Gpm...", chosen, kept(x))  # noqa: E731
    x, log_density = sample(sample_key, pick(pi), pick(next_pi), chosen @ action_mask(spec), config)
    return Alternatives(agents, kept(a), x, log_density)


def joint(
    key: Array, spec: Spec, a: Array, pi: Array, next_pi: Array, config: Conservative
) -> Alternatives:
    """All agents at once: the penalty of a team that counts as one agent with all actions."""
    batch, n, d = pi.shape
    kept = penalised(batch, config, most=batch)
    team = lambda x: kept(x.reshape(batch, 1, n * d))  # noqa: E731
    count = len(team(a))
    mask = jnp.broadcast_to(action_mask(spec).reshape(1, n * d), (count, 1, n * d))
    x, log_density = sample(key, team(pi), team(next_pi), mask, config)
    agents = jnp.zeros((count, 1), int)
    return Alternatives(agents, team(a), x, log_density)


def penalised(batch: int, config: Conservative, most: int) -> Callable[[Array], Array]:
    """From a batch (B, ...) to the transitions that the penalty looks at, (G, p, ...): the first
    p of each of the G groups that the batch is cut into, one in `penalty_every`."""
    every = config.penalty_every
    p = group_size(batch // every, every + choices(config), most=max(1, most // every))
    return lambda x: in_groups(x, p * every)[:, :p]


def choices(config: Conservative) -> int:
    """N, the number of alternatives."""
    return 1 if config.penalty == "policy" else config.samples + 2 * config.policy_samples


def sample(
    key: Array, pi: Array, next_pi: Array, mask: Array, config: Conservative
) -> tuple[Array, Array]:
    """Alternatives x (G, p, m, N, d) and log p(x) (G, p, m, N).

    pi, next_pi (G, p, m, d) are the policies' actions at s and s', mask (G, m, d) says which
    coordinates are real. Uniform actions, and if `policy_samples` is set as many around the
    policy's action at s and at s', with noise of deviation `sample_noise`, clipped.
    """
    if config.penalty == "policy":
        return pi[..., None, :], jnp.zeros((*pi.shape[:-1], 1))
    real = mask[:, None, :, None, :]  # (G, 1, m, 1, d)
    uniform_key, noise_key, next_key = jax.random.split(key, 3)
    shape = (*pi.shape[:-1], config.samples, pi.shape[-1])
    x = [jax.random.uniform(uniform_key, shape, minval=-1, maxval=1) * real]
    density = [jnp.zeros(shape[:-1])]
    if config.policy_samples:
        shape = (*pi.shape[:-1], config.policy_samples, pi.shape[-1])
        for centre, noise_key_ in ((pi, noise_key), (next_pi, next_key)):
            noise = jax.random.normal(noise_key_, shape) * real
            x.append(jnp.clip(centre[..., None, :] + config.sample_noise * noise, -1, 1))
            log_p = -(noise**2) / 2 - jnp.log(config.sample_noise * jnp.sqrt(2 * jnp.pi) / 2)
            density.append(jnp.sum(log_p * real, axis=-1))
    return jnp.concatenate(x, axis=-2), jnp.concatenate(density, axis=-1)
