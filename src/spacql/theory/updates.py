"""The operators as updates: contraction, and what gradient ICQL-QS follows."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from spacql.theory.check import Check
from spacql.theory.decmdp import (
    Array,
    DecMDP,
    Policies,
    backup,
    joint_occupancy,
    product,
    replace,
)
from spacql.theory.operators import soft_partial


def contraction(mdp: DecMDP, policy: Array, Q: Array, Q_other: Array) -> Check:
    """|T Q - T Q'|_inf <= gamma |Q - Q'|_inf for a backup that looks at next actions of `policy`:
    T_i, T^(k), or T^SP with weights that depend on the next state and not on Q."""
    left = np.abs(backup(mdp, policy, Q) - backup(mdp, policy, Q_other)).max()
    return Check(float(left), mdp.gamma * float(np.abs(Q - Q_other).max()))


def ensemble_contraction(
    models: Sequence[DecMDP], mu: Array, pi: Policies, Q: Array, Q_other: Array, w: Array | None
) -> Check:
    """The same for T^SP on an ensemble (J, S, A) with the minimum over members in the target.

    It holds for fixed w. With `w=None` the weights follow from the ensemble, and it fails.
    """
    T_Q, T_other = (soft_partial(models, mu, pi, q, w) for q in (Q, Q_other))
    right = models[0].gamma * float(np.abs(Q - Q_other).max())
    return Check(float(np.abs(T_Q - T_other).max()), right)


def gradient(loss: Callable[[np.ndarray], complex], theta: Array) -> Array:
    """Exact to rounding, by the complex step: no formula of ours is in it."""
    step = 1e-30
    return np.array(
        [np.imag(loss(theta + 1j * step * e)) / step for e in np.eye(len(theta))], dtype=float
    )


def gradient_equivalence(
    mdp: DecMDP, pi: Policies, mu: Policies, features: Array, theta: Array
) -> Check:
    """Proposition 1: the mean over agents of the gradients of 1/2 E_D[(Q - T_i Q)^2] is the
    gradient of 1/2 E_D[(Q - T^ai Q)^2], with targets held fixed. Features are (S, A, p)."""
    behaviour = product(mu)
    Q = np.tanh(features @ theta)
    T = np.stack(
        [backup(mdp, replace(behaviour, pi, (i,), mdp.actions), Q) for i in range(mdp.n)]
    )  # (n, S, A)
    weight = joint_occupancy(mdp, behaviour)  # what D holds
    return _same_gradient(features, theta, T, weight)


class Batch(NamedTuple):
    """B logged transitions, and the agents' policies' own draws at s'."""

    s: np.ndarray  # (B,)
    a: np.ndarray  # (B,) joint
    r: Array  # (B,)
    s_next: np.ndarray  # (B,)
    a_next: np.ndarray  # (B, n) logged
    a_pi: np.ndarray  # (B, n) drawn from pi_i(. | s')


def batch_gradient_equivalence(
    batch: Batch, gamma: float, actions: tuple[int, ...], features: Array, theta: Array
) -> Check:
    """Proposition 1 on one batch: exact as well, if all agents share the batch and their draws."""
    n = len(actions)
    targets = []
    for i in range(n):
        a = batch.a_next.copy()
        a[:, i] = batch.a_pi[:, i]
        joint = np.ravel_multi_index(tuple(a.T), actions)
        targets.append(batch.r + gamma * np.tanh(features[batch.s_next, joint] @ theta))
    weight = np.full(len(batch.s), 1.0 / len(batch.s))
    return _same_gradient(features[batch.s, batch.a], theta, np.stack(targets), weight)


def individual_loss(Q: np.ndarray, T: Array, weight: Array) -> complex:
    """The mean over agents of 1/2 E_D[(Q - T_i)^2]; T has the agents in front."""
    return complex(0.5 * (weight * (Q - T) ** 2).sum() / len(T))


def centralised_loss(Q: np.ndarray, T: Array, weight: Array) -> complex:
    """1/2 E_D[(Q - T^ai)^2], T^ai the mean of the agents' targets."""
    return complex(0.5 * (weight * (Q - T.mean(0)) ** 2).sum())


def _same_gradient(features: Array, theta: Array, T: Array, weight: Array) -> Check:
    def of(loss: Callable[[np.ndarray, Array, Array], complex]) -> Array:
        return gradient(lambda th: loss(np.tanh(features @ th), T, weight), theta)

    return Check(float(np.abs(of(individual_loss) - of(centralised_loss)).max()), 0.0)
