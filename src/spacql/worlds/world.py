"""What a world is, and `make`, which builds one by name."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from typing import Any, Literal, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from spacql.errors import InputError, suggestion
from spacql.policies import Flee, Policy
from spacql.spec import Spec
from spacql.worlds.chase import TAG, WORLD, Chase
from spacql.worlds.particle import State, joint_action
from spacql.worlds.spread import Spread

TASKS = ("spread", "tag", "world", "halfcheetah")


class World(Protocol):
    """Where agents act. In JAX worlds all three methods are pure, for `jit` and `vmap`.

    A host world (MuJoCo, PettingZoo) wraps a simulator that lives outside JAX: its state is a
    `HostState`, and only the newest state may be stepped, unless the world has a number `at_once`:
    then that many episodes are stepped in turn, or at once by its `step_all(states, actions)`,
    which is given a row of all agents' actions per state and returns what `step` does for each.
    """

    @property
    def spec(self) -> Spec: ...

    def reset(self, key: Array) -> Any: ...

    def step(self, state: Any, actions: Sequence[Any]) -> tuple[Any, Any]:
        """The next state, and the agents' rewards (agents,)."""
        ...

    def observe(self, state: Any) -> tuple[Any, ...]:
        """One array per agent."""
        ...


@dataclass(frozen=True)
class HostState:
    """What is known of a simulator outside JAX after a reset or a step."""

    observations: tuple[np.ndarray, ...]
    state: np.ndarray  # the global state, empty if there is none
    terminated: bool = False  # the task itself ended: no value beyond this point
    truncated: bool = False  # a time limit cut the episode


class Hunt(eqx.Module):
    """A chase as its predators see it: the prey is part of the world and follows its policy.

    A pytree, so that a compiled rollout takes the prey's weights as an argument.
    """

    chase: Chase = eqx.field(static=True)
    prey: Policy

    @property
    def spec(self) -> Spec:
        full = self.chase.spec
        return replace(
            full,
            agents=full.agents[:-1],
            observation_sizes=full.observation_sizes[:-1],
            action_low=full.action_low[:-1],
            action_high=full.action_high[:-1],
            prey=self.prey.name,
        )

    @property
    def looks(self) -> tuple[str, ...]:
        return self.chase.looks

    @property
    def extent(self) -> float:
        return self.chase.extent

    @property
    def bodies(self) -> Any:
        return self.chase.bodies

    def reset(self, key: Array) -> State:
        return self.chase.reset(key)

    def step(self, state: State, actions: Sequence[Any] | Array) -> tuple[State, Array]:
        hunters = joint_action(self.spec, state, actions)
        flight = self.flight(state)
        state, rewards = self.chase.step(state, jnp.concatenate([hunters, flight[None]]))
        return state, rewards[:-1]

    def flight(self, state: State) -> Array:
        """The prey's action. A prey that acts at random draws from the bits of the state."""

        def act(seen: Array, bits: Array) -> Array:
            return self.prey((seen,), jax.random.fold_in(jax.random.key(0), bits))[0]

        if state.position.ndim == 3:  # a batch of worlds along the last axis
            act = jax.vmap(act, in_axes=-1, out_axes=-1)
        bits = jax.lax.bitcast_convert_type(state.position[-1], jnp.uint32)  # (2, ...)
        return act(self.chase.observe(state)[-1], bits[0] ^ bits[1])

    def observe(self, state: State) -> tuple[Array, ...]:
        return self.chase.observe(state)[:-1]


def flee(chase: Chase) -> Policy:
    """The scripted prey for a chase."""
    size = chase.spec.observation_sizes[-1]
    actor = Flee(size, chase.prey_sees_predators_at, (-1.0, -1.0), (1.0, 1.0))
    return Policy((actor,), name="flee", agents=("prey",))


def default_prey(task: str) -> Policy:
    """The prey that ships with the package."""
    return Policy.load(str(files("spacql") / "assets" / f"{task}-prey.json"))


def make(
    task: str, *, n: int | None = None, prey: Policy | Literal["default", "flee"] | None = "default"
) -> Any:
    """Build a world: `spread` (with `n` agents, 3 if not said), `tag`, `world`, `halfcheetah`.

    In `tag` and `world`, `prey=None` gives the whole world with the prey as last agent, stepped
    like the others. Otherwise the world is the predators' view with a frozen prey inside: the
    one that ships with the package, the scripted one ("flee"), or any `Policy` of one agent.

    Other packages add worlds by the entry-point group `spacql.worlds`: the task's name, and a
    function without arguments (or a class) that makes the world.
    """
    if _sized(task):
        task, n = "spread", int(task[6:])
    if task not in TASKS:
        return _make_other(task)
    if n is not None and task != "spread":
        raise InputError(f"The number of agents can be chosen in spread alone, not in {task}.")
    if task == "spread":
        if n is not None and not 2 <= n <= 10:
            raise InputError(f"spread takes 2 to 10 agents, not {n}.")
        return Spread(3 if n is None else n)
    if task == "halfcheetah":
        from spacql.worlds.halfcheetah import HalfCheetah

        return HalfCheetah()
    chase = TAG if task == "tag" else WORLD
    if prey is None:
        return chase
    if isinstance(prey, str):
        if prey not in ("default", "flee"):
            raise InputError(f"There is no prey {prey!r}: use 'default', 'flee', None or a Policy.")
        prey = flee(chase) if prey == "flee" else default_prey(task)
    sizes = [actor.observation_size for actor in prey.actors]
    if sizes != [chase.spec.observation_sizes[-1]]:
        raise InputError(
            f"A prey of {task} is a policy of one agent that sees "
            f"{chase.spec.observation_sizes[-1]} numbers; "
            f"{prey.name!r} has agents that see {sizes}."
        )
    return Hunt(chase, prey)


def _sized(task: str) -> bool:
    """Whether a task is spread with a number of agents."""
    return re.fullmatch(r"spread\d{1,3}", task, re.ASCII) is not None


def is_known(task: str) -> bool:
    """Whether a task has a world here; a log's task is often just a name for it."""
    return task in TASKS or _sized(task) or task in others()


def others() -> dict[str, EntryPoint]:
    """The worlds of other packages, by task."""
    return {entry.name: entry for entry in entry_points(group="spacql.worlds")}


def _make_other(task: str) -> Any:
    known = others()
    if task not in known:
        names = [*TASKS, *known]
        raise InputError(
            f"There is no task {task!r}.{suggestion(task, names)} "
            f"Tasks: {', '.join(names)} (and spread2 to spread10)."
        )
    try:
        world = known[task].load()()
    except Exception as error:  # whatever the other package does
        raise InputError(
            f"The world {task!r} ({known[task].value}) cannot be made: {error!r}."
        ) from error
    missing = [name for name in ("spec", "reset", "step", "observe") if not hasattr(world, name)]
    if missing:
        raise InputError(
            f"The world {task!r} ({known[task].value}) is no World: it lacks {', '.join(missing)}."
        )
    if world.spec.task != task:
        raise InputError(
            f"The world {task!r} ({known[task].value}) says that its task is "
            f"{world.spec.task!r}. Both must be the same, so that logs find their world."
        )
    return world


def is_slow(task: str) -> bool:
    """Whether a task's world is known to be outside JAX, so that episodes are dear."""
    return task == "halfcheetah" or (task not in TASKS and task in others())


def is_jax(world: Any) -> bool:
    """Whether a world's methods are pure JAX, so that rollouts can be compiled."""
    return isinstance(world, Spread | Chase | Hunt)
