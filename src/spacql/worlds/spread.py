"""Cooperative Navigation: n agents cover n landmarks and keep out of each other's way."""

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

SIZE = 0.15


@dataclass(frozen=True)
class Spread:
    n: int = 3

    looks: ClassVar[tuple[str, ...]] = ("landmark",)  # of the landmarks, repeated as needed

    @cached_property
    def spec(self) -> Spec:
        n = self.n
        return Spec(
            task="spread" if n == 3 else f"spread{n}",
            agents=tuple(f"agent_{i}" for i in range(n)),
            observation_sizes=(4 + 2 * n + 2 * (n - 1) + 2 * (n - 1),) * n,
            **unit_box((2,) * n),
            horizon=HORIZON,
        )

    @cached_property
    def bodies(self) -> Bodies:
        n = self.n
        return Bodies((SIZE,) * n, (5.0,) * n, (np.inf,) * n, (0.05,) * n, (False,) * n)

    @property
    def extent(self) -> float:
        """Everything starts within this distance of the middle, in each coordinate."""
        return 1.0 if self.n <= 3 else 2.0

    def reset(self, key: Array) -> State:
        agents, landmarks = jax.random.split(key)
        position = uniform_box(agents, self.n, self.extent)
        return State(
            position, jnp.zeros_like(position), uniform_box(landmarks, self.n, self.extent)
        )

    def step(self, state: State, actions: Array) -> tuple[State, Array]:
        state = advance(self.bodies, state, joint_action(self.spec, state, actions))
        return state, self.reward(state)

    def reward(self, state: State) -> Array:
        """Shared: how near the nearest agent is to each landmark. Own: minus 5 an overlap."""
        _, to_landmarks = separation(state.position, state.landmarks)  # (agents, landmarks, ...)
        shared = fold(jnp.add, jnp.minimum(1 / fold(jnp.minimum, to_landmarks), 10.0))
        _, apart = separation(state.position, state.position)
        overlap = (apart < 2 * SIZE) & over(~np.eye(self.n, dtype=bool), apart)
        overlaps = fold(jnp.add, jnp.where(overlap, 1.0, 0.0), axis=1)
        return shared - 5.0 * overlaps

    def observe(self, state: State) -> tuple[Array, ...]:
        """Own velocity and position, landmarks and other agents relative, empty messages."""
        messages = jnp.zeros((2 * (self.n - 1), *state.position.shape[2:]))
        return tuple(
            jnp.concatenate([surroundings(state, agent), messages]) for agent in range(self.n)
        )
