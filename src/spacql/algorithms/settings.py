"""Settings that fit a task and a data quality, where they differ from an algorithm's defaults.

Networks and batches are those of the reference code. In the particle tasks trainings are shorter
and target networks faster (docs/algorithms.md says why). The penalty's weight alpha is for
standardised rewards and critics without batch normalisation; `spacql tune` finds it for other data.
A dataset with another name, or a user's own, gets the defaults.
"""

from dataclasses import fields, replace
from typing import Any

PARTICLE: dict[str, Any] = {
    "rounds": 500,
    "batch_size": 1024,
    "penalty_every": 4,
    "actor_learning_rate": 0.003,
    "target_rate": 0.03,
}

# Where the others' part in a catch is subtle, the penalty must see what the policy would do, and
# some actors would end with an action that is the same at all times but for the cost.
CHASE = PARTICLE | {"learning_rate": 0.003, "samples": 4, "policy_samples": 3, "tanh_cost": 0.01}

# task: values for any quality
TASKS: dict[str, dict[str, Any]] = {
    "spread": PARTICLE | {"learning_rate": 0.01},
    "tag": CHASE,
    "world": CHASE,
    # Published: 100,000 rounds of five updates, 256 units, rates of 0.0003 and 0.005, ten samples
    # of each kind. In a short training the actors need as many steps as the critics.
    "halfcheetah": {
        "rounds": 7500,
        "updates": 1,
        "batch_size": 256,
        "hidden": (128, 128),
        "learning_rate": 0.003,
        "actor_learning_rate": 0.003,
        "target_rate": 0.01,
        "tanh_cost": 0.01,
        "penalty_every": 4,
        "samples": 4,
        "policy_samples": 3,
    },
}

# task: alpha by quality, for all conservative algorithms but where TUNED has another. The best of
# CFCQL's sweeps, or close to it: `spacql results sweeps`; docs/results.md says how they were made.
ALPHA: dict[str, dict[str, float]] = {
    "spread": {"random": 2.5, "medium-replay": 0.1, "medium": 0.5, "expert": 0.5},
    "tag": {"random": 0.5, "medium-replay": 0.1, "medium": 0.1, "expert": 12.5},
    "world": {"random": 2.5, "medium-replay": 0.5, "medium": 0.5, "expert": 12.5},
    "halfcheetah": {"random": 0.5, "medium-replay": 0.5, "medium": 0.1, "expert": 12.5},
}

# The same for the policy penalty, where it differs.
POLICY_ALPHA: dict[str, dict[str, float]] = {"spread": {"random": 0.1}}

# The baselines have smaller batches and more updates. A delayed policy (td3bc) has more rounds of
# fewer critic updates. Target rates are the published ones.
BASELINE: dict[str, Any] = {
    "rounds": 1000,
    "batch_size": 256,
    "penalty_every": 1,
    "actor_learning_rate": 0.001,
}
BASELINES: dict[str, dict[str, Any]] = {
    "omar": BASELINE | {"target_rate": 0.01, "samples": 10, "policy_samples": 0},
    "iql": BASELINE | {"target_rate": 0.005},
    "td3bc": BASELINE | {"rounds": 2500, "target_rate": 0.005},
    "bc": BASELINE,
}

CHEETAH_BASELINE: dict[str, Any] = {
    "rounds": 4000,
    "updates": 5,
    "penalty_every": 1,
    "learning_rate": 0.001,
    "actor_learning_rate": 0.001,
    "target_rate": 0.005,
}

# The same for one algorithm.
ALGORITHMS: dict[tuple[str, str], dict[str, Any]] = {
    **{(name, "spread"): values for name, values in BASELINES.items()},
    **{
        (name, task): values | {"learning_rate": 0.001}
        for name, values in BASELINES.items()
        for task in ("tag", "world")
    },
    **{(name, "halfcheetah"): CHEETAH_BASELINE for name in ("iql", "bc")},
    ("td3bc", "halfcheetah"): CHEETAH_BASELINE | {"rounds": 10_000, "updates": 2},
    ("omar", "halfcheetah"): {"iterations": 2, "candidates": 20, "elites": 5},
}

# OMAR's weights by quality: of the penalty, and of the search in the actors' loss. In the particle
# tasks alpha is the published one over the reward's deviation (spread 3.3 / 4 / 5.2 / 8.7, tag
# 1 / 3 / 4.7 / 5, world 0.7 / 3 / 3.6 / 3.8; those of medium-replay are guesses), which is what it
# is on standardised rewards. The coefficients are not tuned.
OMAR: dict[str, dict[str, dict[str, float]]] = {
    "spread": {
        "random": {"alpha": 0.15, "coefficient": 1.0},
        "medium-replay": {"alpha": 0.25, "coefficient": 1.0},
        "medium": {"alpha": 1.0, "coefficient": 1.0},
        "expert": {"alpha": 0.6, "coefficient": 1.0},
    },
    "tag": {
        "random": {"alpha": 0.5, "coefficient": 0.9},
        "medium-replay": {"alpha": 0.2, "coefficient": 0.9},
        "medium": {"alpha": 1.0, "coefficient": 0.7},
        "expert": {"alpha": 1.0, "coefficient": 0.9},
    },
    "world": {
        "random": {"alpha": 0.7, "coefficient": 1.0},
        "medium-replay": {"alpha": 0.3, "coefficient": 0.7},
        "medium": {"alpha": 0.15, "coefficient": 0.1},
        "expert": {"alpha": 1.3, "coefficient": 0.9},
    },
    "halfcheetah": {
        "random": {"alpha": 1.0, "coefficient": 1.0},
        "medium-replay": {"alpha": 5.0, "coefficient": 0.9},
        "medium": {"alpha": 1.0, "coefficient": 0.7},
        "expert": {"alpha": 5.0, "coefficient": 0.5},
    },
}

# (algorithm, task, quality): its own alpha, where in its own sweep that was clearly better than the
# one that it would have otherwise; docs/results.md says what is clear, and a test checks it.
TUNED: dict[tuple[str, str, str], dict[str, Any]] = {
    ("macql", "spread", "medium-replay"): {"alpha": 0.02},
    ("macql", "spread", "medium"): {"alpha": 0.1},
    ("macql", "spread", "expert"): {"alpha": 0.1},
    ("macql", "halfcheetah", "random"): {"alpha": 0.1},
    ("macql", "halfcheetah", "medium"): {"alpha": 0.5},
    ("omar", "spread", "medium-replay"): {"alpha": 0.05},
    ("omar", "spread", "medium"): {"alpha": 0.2},
    ("omar", "halfcheetah", "medium"): {"alpha": 0.2},
}


def settings(algorithm: str, config: Any, dataset_name: str) -> Any:
    """`config` with the values of the table for a dataset named `<task>-<quality>`.

    What fits may depend on the penalty, which is taken from `config`.
    """
    task, _, quality = dataset_name.partition("-")
    values = TASKS.get(task, {}) | ALGORITHMS.get((algorithm, task), {})
    if quality in ALPHA.get(task, {}):
        values["alpha"] = ALPHA[task][quality]
        if getattr(config, "penalty", "") == "policy":
            values["alpha"] = POLICY_ALPHA.get(task, {}).get(quality, values["alpha"])
        if algorithm == "omar":
            values |= OMAR[task][quality]
    values |= TUNED.get((algorithm, task, quality), {})
    known = {field.name for field in fields(config)}
    return replace(config, **{name: value for name, value in values.items() if name in known})
