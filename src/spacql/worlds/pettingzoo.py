"""PettingZoo in both directions: its `ParallelEnv`s as worlds, our particle worlds as such.

world = from_pettingzoo(simple_spread_v3.parallel_env(continuous_actions=True))
env = to_pettingzoo(spacql.worlds.make("tag", prey=None), render_mode="rgb_array")
"""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from spacql.errors import InputError, MissingExtra
from spacql.spec import Spec
from spacql.worlds.host import check_actions, seed_of
from spacql.worlds.world import HostState, is_jax

try:
    from gymnasium import Space
    from gymnasium.spaces import Box
    from pettingzoo import AECEnv, ParallelEnv
except ImportError as error:
    raise MissingExtra("PettingZoo", "pettingzoo") from error


def from_pettingzoo(env: ParallelEnv, horizon: int | None = None) -> "PettingZooWorld":
    """A world around `env`, for rollouts, evaluation and collection.

    Agents are `env.possible_agents` in that order; their observation and action sizes may differ.
    Actions must be boxes with finite bounds. An episode is `horizon` steps long unless the
    environment ends it first; without `horizon` the environment's own `max_cycles` is taken.

    A joint policy needs all its agents, so the episode ends when the first agent leaves:
    terminated if any agent terminated at that step, else truncated.
    """
    return PettingZooWorld(env, horizon)


class PettingZooWorld:
    """What `from_pettingzoo` returns. Only the newest state may be stepped."""

    def __init__(self, env: ParallelEnv, horizon: int | None):
        self._env = env
        bare = getattr(env, "unwrapped", env)
        about = getattr(env, "metadata", None)
        known = about.get("name") if isinstance(about, Mapping) else None
        name = str(known or type(bare).__name__)
        _check_parallel(name, env)
        agents = list(getattr(env, "possible_agents", ()))
        if not agents:
            raise InputError(f"{name} does not list its possible_agents, so it cannot be used.")
        self._agents = agents
        self._spaces = [_box(name, agent, env.action_space(agent), "action") for agent in agents]
        for agent, space in zip(agents, self._spaces, strict=True):
            if not np.issubdtype(space.dtype, np.floating):
                raise InputError(f"{name}: the actions of {agent} are whole numbers ({space}). "
                                 "Only continuous actions can be used.")  # fmt: skip
        seen = [_box(name, agent, env.observation_space(agent), "observation") for agent in agents]
        for agent, space in zip(agents, self._spaces, strict=True):
            if not space.is_bounded():
                raise InputError(f"{name}: the actions of {agent} have no finite bounds ({space}).")
        if horizon is None:
            horizon = getattr(bare, "max_cycles", None)
        if horizon is None or horizon < 1:
            raise InputError(f"{name} does not say how long its episodes are: give `horizon`, a "
                             "number of steps of at least 1.")  # fmt: skip
        try:
            observations, _ = env.reset(seed=0)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name} cannot be reset as a ParallelEnv is, by reset(seed=0), which "
                             f"returns observations and infos: {error}.") from error  # fmt: skip
        missing = [str(agent) for agent in agents if agent not in observations]
        if missing:
            raise InputError(f"{name}: {', '.join(missing)} not there when an episode starts; "
                             "a joint policy needs all agents.")  # fmt: skip
        self.spec = Spec(
            task=name,
            agents=tuple(map(str, agents)),
            observation_sizes=tuple(int(np.prod(space.shape)) for space in seen),
            action_low=tuple(tuple(s.low.ravel().tolist()) for s in self._spaces),
            action_high=tuple(tuple(s.high.ravel().tolist()) for s in self._spaces),
            horizon=int(horizon),
            state_size=len(self._state()),
        )

    def reset(self, key: Array) -> HostState:
        observations, _ = self._env.reset(seed=seed_of(key))
        return HostState(tuple(_flat(observations[agent]) for agent in self._agents), self._state())

    def step(self, state: HostState, actions: Sequence[Any]) -> tuple[HostState, np.ndarray]:
        arrays = check_actions(self.spec, actions)
        joint = {
            agent: array.astype(space.dtype).reshape(space.shape)
            for agent, array, space in zip(self._agents, arrays, self._spaces, strict=True)
        }
        observations, rewards, terminations, truncations, _ = self._env.step(joint)
        now = HostState(
            # Some environments give no last observation of an agent that leaves: keep its former.
            observations=tuple(
                _flat(observations[agent]) if agent in observations else before
                for agent, before in zip(self._agents, state.observations, strict=True)
            ),
            state=self._state(),
            terminated=any(terminations.values()),
            truncated=any(truncations.values()) or len(self._env.agents) < len(self._agents),
        )
        return now, np.array([rewards.get(agent, 0.0) for agent in self._agents], np.float32)

    def observe(self, state: HostState) -> tuple[np.ndarray, ...]:
        return state.observations

    def _state(self) -> np.ndarray:
        try:
            return _flat(self._env.state())
        except (NotImplementedError, AttributeError):
            return np.zeros(0, np.float32)


def _check_parallel(name: str, env: Any) -> None:
    if isinstance(env, AECEnv):
        raise InputError(f"The agents of {name} act in turn (AECEnv). Give its "
                         "parallel_env(), or what aec_to_parallel makes of it.")  # fmt: skip
    needed = ("reset", "step", "action_space", "observation_space")
    missing = [part for part in needed if not callable(getattr(env, part, None))]
    if missing:
        raise InputError(f"{name} is no PettingZoo ParallelEnv: it has no method "
                         f"{', '.join(missing)}.")  # fmt: skip


def _box(name: str, agent: Any, space: Space, kind: str) -> Box:
    if not isinstance(space, Box):
        raise InputError(f"{name}: the {kind} space of {agent} is {space}, not a Box. Only "
                         "continuous spaces can be used.")  # fmt: skip
    return space


def _flat(x: Any) -> np.ndarray:
    return np.asarray(x, np.float32).ravel()


def to_pettingzoo(world: Any, render_mode: str | None = None) -> "ParticleEnv":
    """A particle world as PettingZoo environment; `render_mode` is None or "rgb_array"."""
    if not is_jax(world):
        raise InputError(f"Only the particle worlds can be offered to PettingZoo, not "
                         f"{world.spec.task!r}.")  # fmt: skip
    return ParticleEnv(world, render_mode)


class ParticleEnv(ParallelEnv):
    """What `to_pettingzoo` returns. All agents are truncated together at the horizon."""

    def __init__(self, world: Any, render_mode: str | None):
        self.metadata = {
            "name": f"spacql_{world.spec.task}",
            "render_modes": ["rgb_array"],
            "render_fps": 10,
            "is_parallelizable": True,
        }
        if render_mode not in (None, "rgb_array"):
            raise InputError(f"There is no render mode {render_mode!r}; use 'rgb_array' or None.")
        spec = world.spec
        self.render_mode = render_mode
        self.possible_agents = list(spec.agents)
        self.agents: list[str] = []
        self.observation_spaces = {
            agent: Box(-np.inf, np.inf, (size,), np.float32)
            for agent, size in zip(spec.agents, spec.observation_sizes, strict=True)
        }
        self.action_spaces = {
            agent: Box(np.array(low, np.float32), np.array(high, np.float32))
            for agent, low, high in zip(spec.agents, spec.action_low, spec.action_high, strict=True)
        }
        self.state_space = Box(-np.inf, np.inf, (sum(spec.observation_sizes),), np.float32)
        self._world = world
        self._key = jax.random.key(np.random.SeedSequence().generate_state(1)[0])
        self._history: list[Any] = []  # states of the episode, for trails
        self._returns = np.zeros(spec.n_agents)

    def observation_space(self, agent: str) -> Space:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Space:
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, dict]]:
        if seed is not None:
            self._key = jax.random.key(seed)
        self._key, start = jax.random.split(self._key)
        state, observations = _reset(self._world, start)
        self._history = [state]
        self._returns = np.zeros(len(self.possible_agents))
        self.agents = list(self.possible_agents)
        return self._named(observations), {agent: {} for agent in self.agents}

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[
        dict[str, np.ndarray],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict],
    ]:
        spec = self._world.spec
        if not self.agents:
            raise InputError(f"{spec.task}: no episode is running; call reset first.")
        missing = [agent for agent in self.agents if agent not in actions]
        if missing:
            raise InputError(f"{spec.task}: no action for {', '.join(missing)}.")
        joint = np.stack(check_actions(spec, [actions[agent] for agent in self.agents]))
        state, observations, rewards = _step(
            self._world, self._history[-1], jnp.asarray(joint, jnp.float32)
        )
        self._history.append(state)
        self._returns += np.asarray(rewards)
        over = len(self._history) > spec.horizon
        agents = self.agents
        if over:
            self.agents = []
        return (
            self._named(observations),
            dict(zip(agents, np.asarray(rewards).tolist(), strict=True)),
            dict.fromkeys(agents, False),
            dict.fromkeys(agents, over),
            {agent: {} for agent in agents},
        )

    def state(self) -> np.ndarray:
        """All agents' observations, one after another."""
        if not self._history:
            raise InputError(f"{self._world.spec.task}: there is no state yet; call reset first.")
        return np.concatenate([np.asarray(o) for o in self._world.observe(self._history[-1])])

    def render(self) -> np.ndarray | None:
        from spacql.worlds.render import frame

        if self.render_mode is None:
            return None
        if not self._history:
            raise InputError("There is nothing to draw yet; call reset first.")
        return frame(self._world, self._history, self._returns)

    def _named(self, observations: Sequence[Any]) -> dict[str, np.ndarray]:
        named = zip(self.possible_agents, observations, strict=True)
        return {agent: np.asarray(observation) for agent, observation in named}


@eqx.filter_jit
def _reset(world: Any, key: Array) -> tuple[Any, tuple[Array, ...]]:
    state = world.reset(key)
    return state, world.observe(state)


@eqx.filter_jit
def _step(world: Any, state: Any, actions: Array) -> tuple[Any, tuple[Array, ...], Array]:
    state, rewards = world.step(state, actions)
    return state, world.observe(state), rewards
