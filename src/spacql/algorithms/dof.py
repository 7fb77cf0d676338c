"""DoF, diffusion factorisation, in its policy form: every agent's actor is a diffusion model.

The team's noise is the agents' noises side by side, so its denoising error is a sum over agents,
and every agent is a learner of its own: an actor that denoises its action, twin critics
Q_i(o_i, a_i) on its own reward, next actions from the average of its actor over training. The
actor's loss is the denoising error and, through all steps of a sample, the gradient of Q.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from spacql.algorithms import actors as actor_part
from spacql.algorithms import critics as critic_part
from spacql.algorithms import independent, learner
from spacql.algorithms.actors import Networks
from spacql.algorithms.config import ActorCritic
from spacql.algorithms.critics import Metrics
from spacql.algorithms.ensemble import Critic, uniform_arrays
from spacql.algorithms.independent import State, play_rounds
from spacql.algorithms.learner import joint_target, own_values, td_step, with_actors
from spacql.algorithms.transitions import Scale, Transitions, raw_q, scale_of
from spacql.data import Batch
from spacql.data.dataset import Statistics
from spacql.errors import InputError
from spacql.policies import MLP, Diffusion, Policy
from spacql.policies.diffusion import TIME, Kind, denoising_error
from spacql.spec import Spec

NEEDS_NEXT_ACTION = False  # the agent's own next action is sampled


@dataclass(frozen=True)
class Config(ActorCritic):
    updates: int = 1  # steps per round, each on a batch of its own
    hidden: tuple[int, ...] = (256, 256, 256)  # units of the hidden layers, of all networks
    learning_rate: float = 0.001  # Adam, critics
    target_rate: float = 0.005  # how far targets move towards their networks, per round
    eta: float = 0.5  # of -Q over its mean magnitude, beside the denoising error
    q_every: int = 1  # Q is asked for the sample at one transition in this many
    detach_q: bool = False  # no gradient of Q, as in the published code: cloning
    diffusion_steps: int = 10  # K
    schedule: Kind = "linear"  # of the noise; or vp, at whose end little of the action is left
    weighted_noise: bool = False  # every agent's noise times a learnt number
    temperature: float = 1.0  # factor of the noise when acting; 0: the likeliest action, or nearly
    candidates: int = 1  # actions sampled when acting, of which the critic chooses one

    def __post_init__(self) -> None:
        if self.diffusion_steps < 1 or self.candidates < 1 or self.temperature < 0:
            raise InputError(
                f"{self.diffusion_steps} diffusion steps, {self.candidates} candidates and a "
                f"temperature of {self.temperature} are impossible: steps and candidates must be "
                "at least 1, the temperature at least 0."
            )
        if self.q_every < 1 or self.batch_size % self.q_every:
            raise InputError(
                f"Q cannot be asked at one in {self.q_every} transitions of a batch of "
                f"{self.batch_size}: choose a q_every that divides batch_size."
            )


def init(key: Array, spec: Spec, config: Config, statistics: Statistics) -> State:
    return independent.init(init_alone, key, spec, config, statistics)


def update(state: State, batch: Batch, key: Array, config: Config) -> tuple[State, Metrics]:
    def critic_step(key: Array, agent: learner.State, t: Transitions) -> Any:
        return td_step(agent, t, target(key, agent, t, config), config)

    def actor_step(key: Array, agent: learner.State, t: Transitions) -> Any:
        return improve_actor(key, agent, t, config)

    return play_rounds(critic_step, actor_step, state, batch, key, config)


def policy(state: State) -> Policy:
    """The averaged actors; with candidates, each with its critic."""
    actors = [best_of(agent) for agent in state.agents]
    return Policy(tuple(actors), name="dof", agents=state.spec.agents)


def init_alone(key: Array, spec: Spec, config: Config, statistics: Statistics) -> learner.State:
    scale = scale_of(spec, statistics)
    actor_key, critic_key = jax.random.split(key)
    network = init_diffusion(actor_key, spec, config, statistics)
    critics = critic_part.init(critic_key, spec, len(scale.state_mean), config)
    return learner.State(actor_part.init((network,), config), critics, scale, spec)


def init_diffusion(key: Array, spec: Spec, config: Config, statistics: Statistics) -> Diffusion:
    """A fresh noise network of the one agent in `spec`."""
    [observation], [action] = spec.observation_sizes, spec.action_sizes
    layers = list(pairwise((action + TIME + observation, *config.hidden, action)))
    arrays = uniform_arrays(key, [(s, i) for i, o in layers for s in ((i, o), (o,))])
    return Diffusion(
        mean=jnp.asarray(statistics.observation_mean[0]),
        std=jnp.asarray(statistics.observation_std[0]),
        weights=tuple(arrays[::2]),
        biases=tuple(arrays[1::2]),
        share=jnp.ones(()) if config.weighted_noise else None,
        low=spec.action_low[0],
        high=spec.action_high[0],
        steps=config.diffusion_steps,
        schedule=config.schedule,
        temperature=config.temperature,
        candidates=config.candidates,
    )


def target(key: Array, agent: learner.State, t: Transitions, config: Config) -> Array:
    """Y_i = r_i + gamma min_j Qtar_ij(o_i', a_i'), a_i' sampled by the averaged actor."""
    [actor], [next_observation] = agent.actors.target, t.next_observations
    return joint_target(agent, t, actor.sample(next_observation, key)[:, None], config)


def improve_actor(
    key: Array, agent: learner.State, t: Transitions, config: Config
) -> tuple[learner.State, Metrics]:
    """One step on the denoising error - eta Q_i(o_i, x) / mean |Q_i|, x a sample of the actor.

    Q is that of the first critic; its magnitude is a constant to the gradient. It is asked at the
    first of so many transitions, since a sample is K passes of the network.
    """
    [observation] = t.observations
    error_key, sample_key = jax.random.split(key)
    some = len(t.s) // config.q_every
    values_of = own_values(agent, t.s[:some], t.a[:some])

    def loss(networks: Networks) -> Any:
        [actor] = networks
        error = denoising_error(actor, observation, t.a[:, 0], error_key)
        if config.detach_q:  # a constant then, so that it need not be computed
            return error, {"denoising_error": error}
        [q] = values_of(actor.sample(observation[:some], sample_key)[:, None])
        size = jax.lax.stop_gradient(jnp.mean(jnp.abs(q)))
        raw = raw_q(agent.scale, jnp.mean(q), config.discount)
        value = error - config.eta * jnp.mean(q) / size
        return value, {"denoising_error": error, "q_policy": raw}

    actors, found, metrics = actor_part.step(agent.actors, loss, config)
    return with_actors(agent, actors), found | metrics


def best_of(agent: learner.State) -> Diffusion:
    """The agent's averaged actor, with the first critic if that is to choose."""
    actor: Diffusion = agent.actors.target[0]
    if actor.candidates == 1:
        return actor
    first = jax.tree.map(lambda x: x[0], agent.critics.online)
    return replace(actor, critic=as_network(first, agent.scale, len(actor.low)))


def as_network(critic: Critic, scale: Scale, action: int) -> MLP:
    """Q_i(o_i, a_i) as a plain network on both, so that a policy acts without the training code."""
    first = jnp.concatenate([critic.state_weight, critic.action_weight[0]])
    return MLP(
        mean=jnp.pad(scale.state_mean, (0, action)),
        std=jnp.pad(scale.state_std, (0, action), constant_values=1.0),
        weights=(first, *critic.weights, critic.last_weight[:, None]),
        biases=(*critic.biases, critic.last_bias[None]),
        low=(-1.0,),
        high=(1.0,),
    )
