import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spacql.errors import InputError
from spacql.evaluation import Reference, evaluate, reference
from spacql.policies import Policy, init_mlp, uniform
from spacql.worlds import make, rollout

KEY = jax.random.key(0)
EPISODES = 64
spread = make("spread")


def test_the_return_is_the_mean_over_agents_and_the_score_is_linear_in_it():
    policy = uniform(spread.spec)
    result = evaluate(policy, spread, episodes=EPISODES, key=KEY)
    returns = rollout(spread, policy, KEY, EPISODES)
    np.testing.assert_allclose(result.returns, returns.mean(axis=1), rtol=1e-6)
    known = reference(spread.spec)
    wanted = 100 * (returns.mean() - known.random) / (known.expert - known.random)
    assert result.score == pytest.approx(wanted)
    low, high = result.score_interval
    assert low < result.score < high


def test_a_given_reference_replaces_the_stored_one():
    policy = uniform(spread.spec)
    mean = evaluate(policy, spread, episodes=EPISODES, key=KEY).summary.mean
    mine = Reference(random=mean - 1, expert=mean + 1, source="mine")
    result = evaluate(policy, spread, episodes=EPISODES, key=KEY, reference=mine)
    assert result.score == pytest.approx(50)
    assert result.reference.source == "mine"


def test_a_random_policy_scores_0_and_an_expert_100():
    known = Reference(random=-4.0, expert=180.0, source="mine")
    assert known.score(-4.0) == 0
    assert known.score(180.0) == 100


def test_another_prey_than_the_references_gives_no_score_and_says_why():
    world = make("tag", prey="flee")
    other = Reference(random=0, expert=1, source="mine", prey="somebody")
    result = evaluate(uniform(world.spec), world, episodes=EPISODES, key=KEY, reference=other)
    assert result.score is None
    assert result.score_interval is None
    assert "'flee'" in result.note
    assert "'somebody'" in result.note


def test_a_task_without_reference_gives_no_score_and_says_why():
    assert reference(make("spread", n=4).spec) is None
    unknown = replace(spread.spec, task="my-own-task")
    assert reference(unknown) is None


@pytest.mark.parametrize("task", ["spread", "halfcheetah"])
def test_stored_references_have_the_expert_above_random(task):
    known = reference(replace(spread.spec, task=task))
    assert known.expert > known.random
    assert known.source


def test_an_evaluation_is_plain_json_with_its_raw_returns():
    result = evaluate(uniform(spread.spec), spread, episodes=EPISODES, key=KEY)
    text = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert text["episodes"] == EPISODES == len(text["returns"])
    assert text["score"] == result.score
    assert text["reference"]["source"]


def test_a_policy_that_acts_with_nan_is_refused():
    actor = init_mlp(KEY, 18, (-1.0, -1.0), (1.0, 1.0), mean=jnp.full(18, jnp.nan))
    policy = Policy((actor,) * 3, name="broken", agents=spread.spec.agents)
    with pytest.raises(InputError, match="NaN or infinite: either the policy 'broken'"):
        evaluate(policy, spread, episodes=EPISODES, key=KEY)
