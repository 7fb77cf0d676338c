"""Particle physics: round bodies in the plane, soft contacts, damped motion. Pure JAX.

Worlds on it are frozen dataclasses whose methods are pure functions of one state, so that `jit`
and `vmap` apply as they are. A batch of worlds can also lie along a last axis of every array,
(agents, 2, batch): that runs an order of magnitude faster than `vmap` on a CPU, because the
innermost loop is then a long one. `...` in a comment on shapes stands for this axis, or none.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from spacql.errors import InputError
from spacql.spec import Spec

DT = 0.1
DAMPING = 0.25
CONTACT_FORCE = 100.0
CONTACT_MARGIN = 1e-3
HORIZON = 25


class State(eqx.Module):
    """Where everything is. Episodes end by a time limit, so time is no part of it."""

    position: Array  # (agents, 2, ...)
    velocity: Array  # (agents, 2, ...)
    landmarks: Array  # (landmarks, 2, ...)


@dataclass(frozen=True)
class Bodies:
    """The fixed properties of a world's agents and landmarks, in the order of the state."""

    size: tuple[float, ...]  # radius, per agent
    force: tuple[float, ...]  # force per unit of action, per agent
    max_speed: tuple[float, ...]  # per agent; infinity: no cap
    landmark_size: tuple[float, ...]
    solid: tuple[bool, ...]  # which landmarks push agents away


def separation(points: Array, others: Array) -> tuple[Array, Array]:
    """Differences (p, q, 2, ...) and distances (p, q, ...) from q `others` to p `points`."""
    difference = points[:, None] - others[None]
    # The root has no finite slope at zero, where a body is compared with itself.
    return difference, jnp.sqrt(difference[:, :, 0] ** 2 + difference[:, :, 1] ** 2 + 1e-30)


def over(constant: Any, array: Array) -> np.ndarray:
    """A constant with as many axes as `array`, so that it broadcasts over a batch of worlds."""
    constant = np.asarray(constant)
    return constant.reshape(constant.shape + (1,) * (array.ndim - constant.ndim))


def fold(operation: Callable[[Array, Array], Array], array: Array, axis: int = 0) -> Array:
    """Reduce a short axis by a chain of operations, which XLA vectorises over the batch.

    It does not vectorise its own reductions over any but the last axis.
    """
    return reduce(operation, jnp.unstack(array, axis=axis))


def contact(difference: Array, distance: Array, reach: np.ndarray, touching: np.ndarray) -> Array:
    """The sum (p, 2, ...) of the soft contact forces on p bodies from q others.

    The force grows smoothly from zero as bodies of joint radius `reach` (p, q) begin to overlap;
    `touching` (p, q) says which pairs can touch at all.
    """
    touching = over(touching, distance)
    depth = jax.nn.softplus((over(reach, distance) - distance) / CONTACT_MARGIN) * CONTACT_MARGIN
    # A body's distance to itself is zero: keep 0/0 out of the forward pass and the gradient.
    strength = jnp.where(touching, CONTACT_FORCE * depth / jnp.where(touching, distance, 1.0), 0.0)
    return fold(jnp.add, strength[:, :, None] * difference, axis=1)


def advance(bodies: Bodies, state: State, actions: Array) -> State:
    """One time step: forces, damping, speed caps, motion."""
    size = np.array(bodies.size)
    n = len(size)
    difference, distance = separation(state.position, state.position)
    force = over(np.array(bodies.force, np.float32), actions) * actions
    force += contact(difference, distance, size[:, None] + size, ~np.eye(n, dtype=bool))
    solid = [k for k, is_solid in enumerate(bodies.solid) if is_solid]
    if solid:
        reach = size[:, None] + np.array(bodies.landmark_size)[solid]
        difference, distance = separation(state.position, state.landmarks[np.array(solid)])
        force += contact(difference, distance, reach, np.ones(reach.shape, bool))
    velocity = state.velocity * (1 - DAMPING) + force * DT
    if np.isfinite(bodies.max_speed).any():
        cap = over(np.array(bodies.max_speed, np.float32), velocity)
        speed = jnp.sqrt(velocity[:, :1] ** 2 + velocity[:, 1:] ** 2)
        velocity = jnp.where(speed > cap, velocity / jnp.maximum(speed, 1e-12) * cap, velocity)
    return State(state.position + velocity * DT, velocity, state.landmarks)


def surroundings(state: State, agent: int) -> Array:
    """What every agent sees: own velocity and position, landmarks and others relative to it."""
    own = state.position[agent]
    others = jnp.concatenate([state.position[:agent], state.position[agent + 1 :]])
    relative = jnp.concatenate([state.landmarks, others]) - own
    rows = relative.reshape(-1, *own.shape[1:])
    return jnp.concatenate([state.velocity[agent], own, rows])


def uniform_box(key: Array, count: int, extent: float) -> Array:
    return jax.random.uniform(key, (count, 2), minval=-extent, maxval=extent)


def joint_action(spec: Spec, state: State, actions: Sequence[Any] | Array) -> Array:
    """The agents' actions as one array (agents, 2, ...), checked as far as they are known.

    Inside jit the values are not known yet; shapes always are.
    """
    count = actions.shape[0] if isinstance(actions, np.ndarray | Array) else len(actions)
    if count != spec.n_agents:
        raise InputError(
            f"{spec.task}: got actions for {count} agents; "
            f"this world has {spec.n_agents} ({', '.join(spec.agents)})."
        )
    for agent, size, action in zip(spec.agents, spec.action_sizes, actions, strict=True):
        expected = (size, *state.position.shape[2:])
        if np.shape(action) != expected:
            raise InputError(
                f"{spec.task}: the action of {agent} has shape {np.shape(action)}; "
                f"expected {expected}."
            )
    joint = actions if isinstance(actions, Array) else jnp.stack([jnp.asarray(a) for a in actions])
    if not isinstance(joint, jax.core.Tracer):
        check_values(spec, np.asarray(joint))
    return joint


def check_values(spec: Spec, actions: Sequence[np.ndarray] | np.ndarray) -> None:
    """Refuse actions that are not finite or leave their bounds, naming the agent."""
    for agent, action, low, high in zip(
        spec.agents, actions, spec.action_low, spec.action_high, strict=True
    ):
        columns = action.T  # a batch, if there is one, is the last axis
        room = 1e-6 * np.maximum(1, np.maximum(np.abs(low), np.abs(high)))  # float32's rounding
        if ((columns >= np.subtract(low, room)) & (columns <= np.add(high, room))).all():
            continue  # false for NaN, too
        values = np.asarray(action).tolist()
        if not np.isfinite(action).all():
            raise InputError(f"{spec.task}: the action of {agent} holds NaN or infinity: {values}.")
        raise InputError(
            f"{spec.task}: the action of {agent}, {values}, leaves its bounds "
            f"{list(low)} to {list(high)}."
        )
