"""Predator-Prey and World: three predators hunt a faster prey among obstacles.

Both are one chase with other landmarks, rewards and flags, so they are one dataclass and two
constants. The last agent is the prey.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

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
    fold,
    joint_action,
    over,
    separation,
    surroundings,
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

    extent: ClassVar[float] = 1.0  # agents start within this distance of the middle

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
        position = uniform_box(agents, N, self.extent)
        return State(
            position, jnp.zeros_like(position), uniform_box(landmarks, len(self.looks), 0.9)
        )

    def step(self, state: State, actions: Array) -> tuple[State, Array]:
        state = advance(self.bodies, state, joint_action(self.spec, state, actions))
        return state, self.reward(state)

    def reward(self, state: State) -> Array:
        """Predators share one reward; the prey's mirrors it, and it must stay inside."""
        prey = state.position[-1:]
        distance = separation(state.position[:-1], prey)[1][:, 0]  # (predators, ...)
        size = np.array(self.bodies.size)
        touches = fold(
            jnp.add, jnp.where(distance < over(size[:-1] + size[-1], distance), 1.0, 0.0)
        )
        near = 0.1 * fold(jnp.add, distance)
        hunt = self.touch * touches - near
        flight = -hunt - self.boundary * fold(jnp.add, boundary_cost(jnp.abs(prey[0])))
        if self.food:
            food = separation(prey, jnp.stack([state.landmarks[k] for k in self.food]))[1][0]
            reach = [self.prey_size + self.bodies.landmark_size[k] for k in self.food]
            flight += 2.0 * fold(jnp.add, jnp.where(food < over(reach, food), 1.0, 0.0))
            flight += 0.05 * fold(jnp.minimum, food)
        return jnp.stack([hunt] * PREDATORS + [flight])

    def observe(self, state: State) -> tuple[Array, ...]:
        """Own velocity and position, landmarks and others relative, the prey's velocity (for
        predators), and whether one stands in each forest (1 or -1)."""
        seen = []
        for agent in range(N):
            parts = [surroundings(state, agent)]
            if agent < PREDATORS:
                parts.append(state.velocity[-1])
            if self.forests:
                forests = jnp.stack([state.landmarks[k] for k in self.forests])
                distance = separation(state.position[agent][None], forests)[1][0]
                reach = [
                    self.bodies.size[agent] + self.bodies.landmark_size[k] for k in self.forests
                ]
                parts.append(jnp.where(distance < over(reach, distance), 1.0, -1.0))
            seen.append(jnp.concatenate(parts))
        return tuple(seen)


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
