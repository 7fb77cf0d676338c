"""HalfCheetah by two agents: one moves the back leg's three joints, one the front leg's."""

import contextlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jax import Array

from spacql.errors import MissingExtra
from spacql.spec import Spec, unit_box
from spacql.worlds.host import check_actions, seed_of
from spacql.worlds.particle import check_values
from spacql.worlds.world import HostState

# In the simulator's state: the time, nine positions, the first of which is X, and nine velocities.
X = 1
SEEN = slice(2, 19)


class HalfCheetah:
    """Gymnasium-Robotics' multi-agent HalfCheetah (2x3, each agent sees its own joints).

    The agents share the environment's reward. A state holds all that the simulator needs to go on
    from it, so any state may be stepped.
    """

    at_once = 25

    def __init__(self) -> None:
        agents = _build()
        import mujoco

        # Gymnasium-Robotics says who sees and moves what; the simulator below is stepped
        # directly, because its wrappers take as long as a third of the physics.
        self._simulator = agents.single_agent_env.unwrapped
        sees = (agents.observation_factorization[agent] for agent in agents.possible_agents)
        self._sees = tuple(map(np.array, sees))
        parts = agents.agent_action_partitions
        self._joints = np.array([node.act_ids for part in parts for node in part])
        self._mujoco = mujoco
        self._parts = int(mujoco.mjtState.mjSTATE_INTEGRATION)
        self._size = mujoco.mj_stateSize(self._simulator.model, self._parts)

    def __reduce__(self) -> tuple[Callable[[], "HalfCheetah"], tuple[()]]:
        return HalfCheetah, ()  # a simulator cannot be copied to another process, only rebuilt

    @cached_property
    def spec(self) -> Spec:
        return Spec(
            task="halfcheetah",
            agents=("agent_0", "agent_1"),
            observation_sizes=(11, 11),
            **unit_box((3, 3)),
            horizon=1000,
            state_size=17,
        )

    def reset(self, key: Array) -> "Moving":
        cheetah = self._simulator
        cheetah.reset(seed=seed_of(key))
        simulation = np.empty((1, self._size))
        self._mujoco.mj_getState(cheetah.model, cheetah.data, simulation[0], self._parts)
        return self._seen(simulation, [0])[0]

    def step(self, state: "Moving", actions: Sequence[Any]) -> tuple["Moving", np.ndarray]:
        joint = np.concatenate(check_actions(self.spec, actions))
        return self._moved([state], joint[None])[0]

    def step_all(
        self, states: Sequence["Moving"], actions: np.ndarray
    ) -> list[tuple["Moving", np.ndarray]]:
        """A step of several states, each with a row of the agents' actions, (states, 6)."""
        check_values(self.spec, np.split(actions.T, 2))
        return self._moved(states, actions)

    def _moved(
        self, states: Sequence["Moving"], actions: np.ndarray
    ) -> list[tuple["Moving", np.ndarray]]:
        """The simulator itself is stepped, and all states' rewards are computed at once:
        Gymnasium's own step, one by one, takes as long as the physics."""
        cheetah, mujoco = self._simulator, self._mujoco
        model, data = cheetah.model, cheetah.data
        control = np.empty(actions.shape)
        control[:, self._joints] = actions
        after = np.empty((len(states), self._size))
        for state, torques, place in zip(states, control, after, strict=True):
            mujoco.mj_setState(model, data, state.simulation, self._parts)
            data.ctrl[:] = torques
            mujoco.mj_step(model, data, nstep=cheetah.frame_skip)
            mujoco.mj_getState(model, data, place, self._parts)
        x = np.array([state.simulation[X] for state in states])
        effort = np.sum(np.square(control), axis=1)
        speed = (after[:, X] - x) / cheetah.dt
        reward = cheetah._forward_reward_weight * speed - cheetah._ctrl_cost_weight * effort
        rewards = np.repeat(reward.astype(np.float32)[:, None], 2, axis=1)
        moved = self._seen(after, [state.steps + 1 for state in states])
        return list(zip(moved, rewards, strict=True))

    def observe(self, state: "Moving") -> tuple[np.ndarray, ...]:
        return state.observations

    def _seen(self, simulations: np.ndarray, steps: Sequence[int]) -> list["Moving"]:
        """What agents see of the simulator's states, one per row."""
        states = simulations[:, SEEN].astype(np.float32)
        views = [states[:, columns] for columns in self._sees]
        return [
            Moving(
                observations=tuple(observations),
                state=state,
                truncated=count >= self.spec.horizon,
                simulation=simulation,
                steps=count,
            )
            for *observations, state, simulation, count in zip(
                *views, states, simulations, steps, strict=True
            )
        ]


@dataclass(frozen=True, kw_only=True)
class Moving(HostState):
    """The cheetah at one moment."""

    simulation: np.ndarray  # what MuJoCo integrates, with the guess its solver starts from
    steps: int  # since the reset


def _build() -> Any:
    """The PettingZoo world, without the notices its packages print when imported and built."""
    try:
        import mujoco

        with contextlib.redirect_stderr(io.StringIO()):
            from gymnasium_robotics import mamujoco_v1
    except ImportError as error:
        raise MissingExtra("halfcheetah", "mujoco") from error
    warn = mujoco.get_mju_user_warning()
    # By default MuJoCo also writes its warnings to a file in the user's folder.
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        return mamujoco_v1.parallel_env("HalfCheetah", "2x3", agent_obsk=0)
    finally:
        mujoco.set_mju_user_warning(warn)
