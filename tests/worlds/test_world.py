import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spacql.errors import InputError, MissingExtra
from spacql.policies import Policy, Uniform, init_mlp, uniform
from spacql.worlds import make, rollout

KEY = jax.random.key(0)


@pytest.mark.parametrize("task", ["sprad", "", "spread1x", "Spread", "spread_3"])
def test_an_unknown_task_is_refused_and_the_known_ones_are_named(task):
    with pytest.raises(
        InputError, match=r"There is no task .*Tasks: spread, tag, world, halfcheetah"
    ):
        make(task)


def test_a_number_of_agents_is_refused_outside_spread():
    with pytest.raises(InputError, match="in spread alone, not in tag"):
        make("tag", n=4)


def test_an_unknown_prey_or_one_made_for_another_world_is_refused():
    with pytest.raises(InputError, match="There is no prey 'rabbit'"):
        make("tag", prey="rabbit")
    stranger = Policy((Uniform(22, (-1.0, -1.0), (1.0, 1.0)),), agents=("prey",))
    with pytest.raises(InputError, match="sees 14 numbers"):
        make("tag", prey=stranger)


def prey_of_tag(seed, name="mine"):
    actor = init_mlp(jax.random.key(seed), 14, (-1.0, -1.0), (1.0, 1.0), hidden=(8,))
    return Policy((actor,), name=name, agents=("prey",))


@pytest.mark.parametrize("task", ["tag", "world"])
def test_the_hunters_view_is_the_whole_world_with_the_prey_moved_by_its_policy(task):
    whole, hunt = make(task, prey=None), make(task, prey="flee")
    assert hunt.spec.prey == "flee"
    assert hunt.spec.agents == whole.spec.agents[:-1]
    state = hunt.reset(KEY)
    actions = jnp.full((3, 2), 0.5)
    flight = hunt.prey.act([whole.observe(state)[-1]])[0]
    ours, rewards = jax.jit(hunt.step)(state, actions)
    theirs, all_rewards = jax.jit(whole.step)(state, jnp.concatenate([actions, flight[None]]))
    np.testing.assert_allclose(ours.position, theirs.position, rtol=1e-6)
    np.testing.assert_allclose(rewards, all_rewards[:-1], rtol=1e-6)
    for mine, full in zip(hunt.observe(ours), whole.observe(theirs)[:-1], strict=True):
        np.testing.assert_allclose(mine, full, rtol=1e-5, atol=1e-6)


def test_two_preys_of_one_name_are_not_mixed_up_by_compiled_rollouts():
    first, second = (make("tag", prey=prey_of_tag(seed)) for seed in (0, 1))
    policy = uniform(first.spec)
    assert (rollout(first, policy, KEY, 64) != rollout(second, policy, KEY, 64)).any()


def test_a_random_prey_moves_differently_in_every_episode():
    actor = Uniform(14, (-1.0, -1.0), (1.0, 1.0))
    hunt = make("tag", prey=Policy((actor,), name="drunk", agents=("prey",)))
    states = jax.jit(jax.vmap(hunt.reset, out_axes=-1))(jax.random.split(KEY, 50))
    flights = np.asarray(jax.jit(hunt.flight)(states))  # (2, 50)
    assert len(np.unique(flights[0])) == 50
    assert abs(flights.mean()) < 0.3
    assert flights.std() == pytest.approx(3**-0.5, abs=0.15)


def test_halfcheetah_without_its_extra_names_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gymnasium_robotics", None)
    with pytest.raises(MissingExtra, match=r"pip install 'spacql\[mujoco\]'"):
        make("halfcheetah")


def test_a_task_of_a_thousand_digits_is_no_task():
    with pytest.raises(InputError, match="There is no task"):
        make("spread" + "9" * 5000)


def test_actions_on_a_bound_are_taken_however_far_out_it_lies():
    from spacql.spec import Spec
    from spacql.worlds.particle import check_values

    for bound in (0.3, 1.0, 16.1, 100.3, 12345.6):
        spec = Spec("far", ("a",), (1,), ((-bound,),), ((bound,),), 5)
        check_values(spec, [np.array([bound], np.float32)])
        check_values(spec, [np.array([-bound], np.float32)])
        with pytest.raises(InputError, match="leaves its bounds"):
            check_values(spec, [np.array([bound * 1.001], np.float32)])


def test_agents_in_another_order_are_refused():
    world = make("spread")
    policy = uniform(world.spec)
    turned = Policy(policy.actors, agents=policy.agents[::-1])
    with pytest.raises(InputError, match="in this order"):
        rollout(world, turned, KEY, 4)
