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
from spacql.worlds.world import HostState


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
        self._sees = tuple(agents.observation_factorization[a] for a in agents.possible_agents)
        self._joints = [node.act_ids for part in agents.agent_action_partitions for node in part]
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
        state, _ = self._simulator.reset(seed=seed_of(key))
        return self._seen(state, steps=0)

    def step(self, state: "Moving", actions: Sequence[Any]) -> tuple["Moving", np.ndarray]:
        joint = np.empty(len(self._joints))
        joint[self._joints] = np.concatenate(check_actions(self.spec, actions))
        self._mujoco.mj_setState(
            self._simulator.model, self._simulator.data, state.simulation, self._parts
        )
        now, reward, *_ = self._simulator.step(joint)
        return self._seen(now, state.steps + 1), np.full(2, reward, np.float32)

    def observe(self, state: "Moving") -> tuple[np.ndarray, ...]:
        return state.observations

    def _seen(self, state: np.ndarray, steps: int) -> "Moving":
        simulation = np.empty(self._size)
        self._mujoco.mj_getState(
            self._simulator.model, self._simulator.data, simulation, self._parts
        )
        state = state.astype(np.float32)
        return Moving(
            observations=tuple(state[columns] for columns in self._sees),
            state=state,
            truncated=steps >= self.spec.horizon,
            simulation=simulation,
            steps=steps,
        )


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
