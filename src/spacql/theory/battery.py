"""Every statement on many instances, and every failing reading on its witness.

Instance number i of seed s is `random_instance(np.random.default_rng([s, i]))`, so that a violation
can be looked at again; the named Dec-MDPs have the numbers after the random ones.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from spacql.errors import InputError
from spacql.theory import counterexamples as fails
from spacql.theory import shift, updates, values
from spacql.theory.check import Check
from spacql.theory.decmdp import product, replace, replace_k
from spacql.theory.generators import Instance, named_instance, random_instance
from spacql.theory.named import NAMED
from spacql.theory.operators import mixture


@dataclass(frozen=True)
class Statement:
    """Something that must hold on every instance."""

    name: str
    source: str  # where it stands: a number of the paper, or "ours"
    check: Callable[[Instance], Check]


@dataclass(frozen=True)
class Reading:
    """Something that the paper says or suggests, and that fails."""

    name: str
    source: str
    check: Callable[[Instance], Check] | None  # None: too slow for random instances
    witness: Callable[[], Check]


def _individual(x: Instance) -> Check:
    i = len(x.subset) % x.mdp.n
    policy = replace(x.mu_joint, x.pi, (i,), x.mdp.actions)
    return updates.contraction(x.mdp, policy, x.Q[0], x.Q_other[0])


def _partial(x: Instance) -> Check:
    k = max(1, len(x.subset))
    policy = replace_k(x.mu_joint, x.pi, k, x.mdp.actions)
    return updates.contraction(x.mdp, policy, x.Q[0], x.Q_other[0])


def _soft(x: Instance) -> Check:
    policy = mixture(x.mu_joint, x.pi, x.w, x.mdp.actions)
    return updates.contraction(x.mdp, policy, x.Q[0], x.Q_other[0])


def _ensemble(x: Instance, w: np.ndarray | None) -> Check:
    models = [x.mdp] * len(x.Q)
    return updates.ensemble_contraction(models, x.mu_joint, x.pi, x.Q, x.Q_other, w)


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        "shift of k agents, linear bound",
        "Lemma 1",
        lambda x: shift.linear_divergence(x.mdp, x.pi, x.mu, x.subset),
    ),
    Statement(
        "shift of k agents, joint TV",
        "known",
        lambda x: shift.joint_divergence(
            x.mdp, replace(product(x.mu), x.pi, x.subset, x.mdp.actions), product(x.mu)
        ),
    ),
    Statement(
        "shift of k agents, sharp bound",
        "ours",
        lambda x: shift.coupled_divergence(x.mdp, x.pi, x.mu, x.subset),
    ),
    Statement(
        "shift over states and actions",
        "ours",
        lambda x: shift.joint_occupancy_divergence(x.mdp, x.pi, x.mu, x.subset),
    ),
    Statement(
        "density ratio is a product",
        "ours",
        lambda x: shift.density_ratio_product(x.pi, _full_support(x.mu), x.subset),
    ),
    Statement(
        "kappa below one",
        "Definition 1",
        lambda x: shift.correlation_range(x.mu_joint, x.mdp.actions),
    ),
    Statement(
        "shift with correlations",
        "Lemma 2",
        lambda x: shift.correlated_divergence(x.mdp, x.pi, x.mu_joint, x.subset),
    ),
    Statement(
        "shift with correlations, as logged",
        "ours",
        lambda x: shift.logged_divergence(x.mdp, x.pi, x.mu_joint, x.subset),
    ),
    Statement(
        "broken correlation at most 2 kappa",
        "ours",
        lambda x: shift.broken_correlation_range(x.mu_joint, x.subset, x.mdp.actions),
    ),
    Statement(
        "shift of the mixture, sup k_eff",
        "ours",
        lambda x: shift.mixture_divergence(x.mdp, x.pi, x.mu, x.w),
    ),
    Statement(
        "shift of the mixture, mean k_eff",
        "ours",
        lambda x: shift.mean_mixture_divergence(x.mdp, x.pi, x.mu, x.w),
    ),
    Statement(
        "value error",
        "Theorem 1",
        lambda x: values.value_error(x.mdp, x.pi, product(x.mu), x.Q_hat),
    ),
    Statement(
        "value error without its last term",
        "ours",
        lambda x: values.value_error_two_terms(x.mdp, x.pi, x.Q_hat),
    ),
    Statement(
        "value error from error on the data",
        "ours",
        lambda x: values.value_error_from_data(x.mdp, x.pi, product(x.mu), x.Q_hat),
    ),
    Statement(
        "value error with correlations",
        "Theorem 2",
        lambda x: values.value_error(x.mdp, x.pi, x.mu_joint, x.Q_hat),
    ),
    Statement(
        "value error of SPaCQL",
        "Theorem 3",
        lambda x: values.spacql_value_error(x.mdp, x.pi, x.mu, x.w, x.Q_hat),
    ),
    Statement(
        "value error of the mixture, data",
        "ours",
        lambda x: values.spacql_value_error_from_data(x.mdp, x.pi, x.mu, x.w, x.Q_hat),
    ),
    Statement("Lipschitz constant of Q*", "Appendix", lambda x: values.lipschitz(x.mdp)),
    Statement("Lipschitz constant, mixing", "ours", lambda x: values.mixing_lipschitz(x.mdp)),
    Statement("T_i contracts", "Section 4", _individual),
    Statement("T^(k) contracts", "Section 4", _partial),
    Statement("T^SP contracts, fixed weights", "Section 4", _soft),
    Statement("T^SP with min_j contracts likewise", "ours", lambda x: _ensemble(x, x.w)),
    Statement(
        "gradient of ICQL-QS",
        "Proposition 1",
        lambda x: updates.gradient_equivalence(x.mdp, x.pi, x.mu, x.features, x.theta),
    ),
    Statement(
        "gradient of ICQL-QS on a batch",
        "Proposition 1",
        lambda x: updates.batch_gradient_equivalence(
            x.batch, x.mdp.gamma, x.mdp.actions, x.features, x.theta
        ),
    ),
)

READINGS: tuple[Reading, ...] = (
    Reading(
        "Lemma 1 over states and actions",
        "Theorem 1, proof",
        lambda x: fails.lemma1_over_actions(x.mdp, x.pi, x.mu, x.subset),
        fails.witness_lemma1_over_actions,
    ),
    Reading(
        "values move only as far as states do",
        "Theorem 1, proof",
        lambda x: fails.proof_step(x.mdp, x.pi, product(x.mu), x.Q_hat),
        fails.witness_proof_step,
    ),
    Reading(
        "error on the data, the paper's constant",
        "Theorem 1",
        lambda x: fails.value_error_paper_constant(x.mdp, x.pi, product(x.mu), x.Q_hat),
        fails.witness_value_error_paper_constant,
    ),
    Reading(
        "the sum of TVs improves on the joint TV",
        "Remark",
        lambda x: fails.linear_beats_joint(x.pi, x.mu, x.subset),
        fails.witness_linear_beats_joint,
    ),
    Reading(
        "Lemma 2 for actions as logged",
        "Lemma 2",
        lambda x: fails.lemma2_for_logged(x.mdp, x.pi, x.mu_joint, x.subset),
        fails.witness_lemma2_for_logged,
    ),
    Reading(
        "shift of the mixture, k_eff under d^pi",
        "Theorem 3",
        lambda x: fails.mixture_under_pi(x.mdp, x.pi, x.mu, x.w),
        fails.witness_mixture_under_pi,
    ),
    Reading(
        "k_eff with weights from drawn actions",
        "Algorithm 1",
        None,
        fails.witness_mixture_drawn,
    ),
    Reading(
        "k_eff bounds the error of pi itself",
        "Theorem 3",
        lambda x: fails.spacql_error_of_pi(x.mdp, x.pi, x.mu, x.w, x.Q_hat),
        fails.witness_spacql_error_of_pi,
    ),
    Reading(
        "T^SP contracts, weights from the ensemble",
        "Section 4",
        lambda x: _ensemble(x, None),
        fails.witness_ensemble_weights,
    ),
)


def _full_support(mu: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A ratio pi / mu needs mu > 0."""
    return [0.9 * m + 0.1 / m.shape[1] for m in mu]


@dataclass(frozen=True)
class Row:
    """What came of one statement or reading."""

    name: str
    source: str
    should_hold: bool
    tried: int
    violations: int
    median_slack: float | None
    median_left: float | None
    median_right: float | None
    tightest: float | None  # largest left / right
    vacuous: float | None  # share of instances on which the right side is above a trivial bound
    first_violation: int | None  # number of the instance
    witness: tuple[float, float] | None = None  # a reading's two sides on its witness

    @property
    def ok(self) -> bool:
        """A statement has no violation; a reading's witness violates it."""
        if self.should_hold:
            return self.violations == 0
        return self.witness is not None and not Check(*self.witness).holds

    def as_dict(self) -> dict[str, object]:
        return {**asdict(self), "ok": self.ok}


def run(
    instances: int = 1000,
    seed: int = 0,
    *,
    statements: Sequence[Statement] = STATEMENTS,
    readings: Sequence[Reading] = READINGS,
    advance: Callable[[], None] = lambda: None,
) -> list[Row]:
    """Try everything on `instances` random instances and on one of every named Dec-MDP.

    `advance` is called after each instance, for a progress bar.
    """
    if instances < 1:
        raise InputError(f"The battery needs at least one instance, not {instances}.")
    if seed < 0:
        raise InputError(f"A seed is zero or a positive number, not {seed}.")
    entries: list[Statement | Reading] = [*statements, *readings]
    results: dict[str, list[Check]] = {entry.name: [] for entry in entries}
    for x in draw(instances, seed):
        for entry in entries:
            if entry.check is not None:
                results[entry.name].append(entry.check(x))
        advance()
    rows = [_row(s.name, s.source, results[s.name], None) for s in statements]
    rows += [_row(r.name, r.source, results[r.name], r.witness()) for r in readings]
    return rows


def total(instances: int) -> int:
    """How many instances a run tries, the named ones included."""
    return instances + len(NAMED)


def draw(instances: int, seed: int) -> Iterator[Instance]:
    for i in range(instances):
        yield random_instance(np.random.default_rng([seed, i]))
    for i, name in enumerate(NAMED):
        yield named_instance(np.random.default_rng([seed, instances + i]), name)


def _row(name: str, source: str, checks: list[Check], witness: Check | None) -> Row:
    if not checks:
        nothing = (None,) * 6
        assert witness is not None
        return Row(name, source, False, 0, 0, *nothing, (witness.left, witness.right))
    left, right, trivial = np.array(checks).T
    bad = np.array([not c.holds for c in checks])
    proper = right > 1e-6  # below it, a ratio is rounding
    return Row(
        name,
        source,
        should_hold=witness is None,
        tried=len(checks),
        violations=int(bad.sum()),
        median_slack=float(np.median(right - left)),
        median_left=float(np.median(left)),
        median_right=float(np.median(right)),
        tightest=float((left[proper] / right[proper]).max()) if proper.any() else None,
        vacuous=float((right >= trivial).mean()) if np.isfinite(trivial).all() else None,
        first_violation=int(bad.argmax()) if bad.any() else None,
        witness=None if witness is None else (witness.left, witness.right),
    )
