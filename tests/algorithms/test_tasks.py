"""PLCQL and DoF on the shapes of the tasks, without running them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spacql.algorithms.registry import find
from spacql.algorithms.settings import configure
from spacql.data import Batch
from spacql.data.dataset import Statistics
from spacql.spec import Spec, unit_box

# name of a dataset: observation and action sizes, state size
TASKS = {
    "spread-random": ((18,) * 3, (2,) * 3, 0),  # tag and world are the same in other sizes
    "halfcheetah-random": ((11,) * 2, (3,) * 2, 17),
    "unequal": ((3, 11, 5, 4), (1, 3, 2, 2), 0),
}


def shapes(sizes, actions, state, lead):
    def array(*size):
        return jax.ShapeDtypeStruct((*lead, *size), jnp.float32)

    seen, done = tuple(map(array, sizes)), tuple(map(array, actions))
    here = array(state) if state else None
    return Batch(
        observations=seen, actions=done, rewards=array(len(sizes)), team_reward=array(),
        next_observations=seen, next_actions=done, terminal=array(), state=here, next_state=here,
    )  # fmt: skip


SLOW = pytest.param("unequal", marks=pytest.mark.slow)  # the teams of other tests are unequal, too


@pytest.mark.parametrize("task", ["spread-random", "halfcheetah-random", SLOW])
@pytest.mark.parametrize("name", ["plcql", "dof"])
def test_a_round_keeps_the_shapes_of_its_state(name, task) -> None:
    sizes, actions, state = TASKS[task]
    agents = tuple(map(str, range(len(sizes))))
    spec = Spec(task, agents, sizes, **unit_box(actions), horizon=25, state_size=state)
    zeros = tuple(np.zeros(size, np.float32) for size in sizes)
    of_state = (np.zeros(state, np.float32),) * 2 if state else (None, None)
    statistics = Statistics(zeros, tuple(x + 1 for x in zeros), *of_state, 0.0, 1.0)
    module, config = find(name), configure(name, task, {"updates": 2, "batch_size": 16})
    init = partial(module.init, spec=spec, config=config, statistics=statistics)
    key = jax.random.key(0)
    before = jax.eval_shape(init, key)
    batch = shapes(sizes, actions, state, (2, 16))
    after, metrics = jax.eval_shape(partial(module.update, config=config), before, batch, key)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), before) == jax.tree.map(
        lambda x: (x.shape, x.dtype), after
    )
    assert metrics
    policy = module.policy(after)
    seen = tuple(jax.ShapeDtypeStruct((7, size), jnp.float32) for size in sizes)
    found = jax.eval_shape(lambda policy, seen, key: policy(seen, key), policy, seen, key)
    assert [x.shape for x in found] == [(7, size) for size in actions]
