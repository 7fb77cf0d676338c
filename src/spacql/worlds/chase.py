"""Predator-Prey and World: three predators hunt a faster prey among obstacles.

Both are one chase with other landmarks, rewards and flags, so they are one dataclass and two
constants. The last agent is the prey.
"""

from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from spacql.spec import Spec, unit_box
from spacql.worlds.particle import (
    HORIZON,
    Bodies,
    State,
    advance,
    joint_action,
    others,
    separation,
    uniform_box,
)

PREDATORS = 3
N = PREDATORS + 1


@dataclass(frozen=True)
class Chase:
    task: str
    prey_size: float
    touch: float  # reward of a predator's touch, and the prey's loss
    boundary: float  # how many times the boundary cost counts for the prey
    looks: tuple[str, ...]  # of the landmarks: obstacle, food or forest

    @cached_property
    def spec(self) -> Spec:
        seen = 4 + 2 * len(self.looks) + 2 * PREDATORS + len(self.forests)
        return Spec(
            task=self.task,
            agents=(*(f"predator_{i}" for i in range(PREDATORS)), "prey"),
            observation_sizes=(seen + 2,) * PREDATORS + (seen,),
            **unit_box((2,) * N),
            horizon=HORIZON,
        )

    @cached_property
    def bodies(self) -> Bodies:
        radius = {"obstacle": 0.2, "food": 0.03, "forest": 0.3}
        return Bodies(
            size=(0.075,) * PREDATORS + (self.prey_size,),
            force=(9.0,) * PREDATORS + (16.0,),
            max_speed=(1.0,) * PREDATORS + (1.3,),
            landmark_size=tuple(radius[look] for look in self.looks),
            solid=tuple(look == "obstacle" for look in self.looks),
        )

    @cached_property
    def food(self) -> tuple[int, ...]:
        return tuple(k for k, look in enumerate(self.looks) if look == "food")

    @cached_property
    def forests(self) -> tuple[int, ...]:
        return tuple(k for k, look in enumerate(self.looks) if look == "forest")

    @cached_property
    def prey_sees_predators_at(self) -> tuple[int, int]:
        """The columns of the prey's observation with the predators' relative positions."""
        start = 4 + 2 * len(self.looks)
        return start, start + 2 * PREDATORS

    def reset(self, key: Array) -> State:
        agents, landmarks = jax.random.split(key)
        position = uniform_box(agents, N, 1.0)
        return State(
            position, jnp.zeros_like(position), uniform_box(landmarks, len(self.looks), 0.9)
        )

    def step(self, state: State, actions: Array) -> tuple[State, Array]:
        state = advance(self.bodies, state, joint_action(self.spec, actions))
        return state, self.reward(state)

    def reward(self, state: State) -> Array:
        """Predators share one reward; the prey's mirrors it, and it must stay inside."""
        prey = state.position[-1:]
        distance = separation(state.position[:-1], prey)[1][:, 0]  # (predators,)
        size = np.array(self.bodies.size)
        touches = jnp.sum(distance < size[:-1] + size[-1])
        near = 0.1 * jnp.sum(distance)
        hunt = self.touch * touches - near
        flight = -hunt - self.boundary * jnp.sum(boundary_cost(jnp.abs(prey)))
        if self.food:
            food = separation(prey, state.landmarks[np.array(self.food)])[1][0]
            reach = size[-1] + np.array(self.bodies.landmark_size)[list(self.food)]
            flight += 2.0 * jnp.sum(food < reach) + 0.05 * jnp.min(food)
        return jnp.append(jnp.broadcast_to(hunt, (PREDATORS,)), flight)

    def observe(self, state: State) -> tuple[Array, ...]:
        """Own velocity and position, landmarks and others relative, the prey's velocity (for
        predators), and whether one stands in each forest (1 or -1)."""
        landmarks = (state.landmarks[None] - state.position[:, None]).reshape(N, -1)
        relative = (state.position[others(N)] - state.position[:, None]).reshape(N, -1)
        common = jnp.concatenate([state.velocity, state.position, landmarks, relative], axis=1)
        flags = jnp.zeros((N, 0))
        if self.forests:
            index = np.array(self.forests)
            distance = separation(state.position, state.landmarks[index])[1]
            reach = np.add.outer(self.bodies.size, np.array(self.bodies.landmark_size)[index])
            flags = jnp.where(distance < reach, 1.0, -1.0)
        prey_velocity = jnp.broadcast_to(state.velocity[-1], (PREDATORS, 2))
        hunters = jnp.concatenate([common[:-1], prey_velocity, flags[:-1]], axis=1)
        return (*hunters, jnp.concatenate([common[-1], flags[-1]]))


def boundary_cost(x: Array) -> Array:
    """What a coordinate of magnitude x costs the prey: nothing inside 0.9, then ever more."""
    return jnp.where(
        x < 0.9, 0.0, jnp.where(x < 1.0, 10 * (x - 0.9), jnp.minimum(jnp.exp(2 * x - 2), 10.0))
    )


TAG = Chase("tag", prey_size=0.05, touch=10.0, boundary=1.0, looks=("obstacle",) * 2)
WORLD = Chase(
    "world",
    prey_size=0.045,
    touch=5.0,
    boundary=2.0,
    looks=("obstacle", "food", "food", "forest", "forest"),
)
