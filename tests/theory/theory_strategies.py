"""Strategies for Dec-MDPs and policies: sizes and dials shrink, contents follow a seed."""

import numpy as np
from hypothesis import strategies as st

from spacql.theory.generators import correlated, random_decmdp, random_policies


@st.composite
def decmdps(draw, max_agents=3):
    actions = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=max_agents)))
    return random_decmdp(
        np.random.default_rng(draw(st.integers(0, 2**16))),
        states=draw(st.integers(1, 5)),
        actions=actions,
        gamma=draw(st.floats(0.0, 0.99)),
        sparsity=draw(st.floats(0.0, 1.0)),
    )


@st.composite
def problems(draw, max_agents=3):
    """A Dec-MDP, learned policies at any distance from behaviour, factorised behaviour, and a
    subset of the agents."""
    mdp = draw(decmdps(max_agents))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    mu = random_policies(rng, mdp, draw(st.sampled_from([0.05, 1.0])))
    other = random_policies(rng, mdp, draw(st.sampled_from([0.05, 1.0])))
    dial = draw(st.floats(0.0, 1.0))
    pi = tuple((1 - dial) * m + dial * o for m, o in zip(mu, other, strict=True))
    subset = tuple(sorted(draw(st.sets(st.integers(0, mdp.n - 1)))))
    return mdp, pi, mu, subset


@st.composite
def correlated_problems(draw):
    """The same with correlated behaviour: on the dial, or any joint distribution."""
    mdp, pi, mu, subset = draw(problems())
    if draw(st.booleans()):
        return mdp, pi, correlated(mu, draw(st.floats(0.0, 1.0))), subset
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    states, joint = mdp.R.shape
    return mdp, pi, rng.dirichlet(np.full(joint, 0.5), size=states), subset


@st.composite
def weights(draw, states, n):
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    return rng.dirichlet(np.full(n, draw(st.sampled_from([0.05, 1.0]))), size=states)
