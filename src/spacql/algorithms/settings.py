"""The benchmark's settings: what an algorithm is run with on a dataset, where that differs from its
defaults; and `configure`, which makes every Config.

Networks, batches and lengths are the same for all (docs/algorithms.md says what the reference code
has, and why these are shorter and faster). The penalty's weight alpha is for
standardised rewards and critics without batch normalisation; `spacql tune` finds it for other data.
A dataset with any other name, such as a user's own, gets the defaults.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from math import isfinite
from types import ModuleType
from typing import Any

from spacql.algorithms.config import Training
from spacql.algorithms.registry import find, name_of
from spacql.data.arrays import free_memory
from spacql.data.collect import QUALITIES
from spacql.errors import InputError, suggestion
from spacql.files import as_json, as_record
from spacql.spec import LARGEST, Spec
from spacql.worlds import TASKS

WIDEST = 1 << 16  # units of a layer

Values = dict[str, Any]

# Hyperparameters that stored runs have and algorithms no longer do, at the value of all those runs.
REMOVED: Values = {"penalty_weights": "uniform", "tau": 1.0}
MIXTURE = ("spacql", "plcql", "icql-qs", "cfcql")
PENALISED = (*MIXTURE, "macql")

# The same for all: 15,000 steps of the critics on batches of 256, two layers of 128 units.
_COMMON: Values = {"batch_size": 256, "hidden": (128, 128)}
# One step of the actors per step of the critics. The penalty must see what the policy would do, and
# some actors would end with an action that is the same at all times but for the tanh's cost.
_PENALISED: Values = _COMMON | {
    "rounds": 15_000, "updates": 1, "learning_rate": 0.003, "actor_learning_rate": 0.003,
    "target_rate": 0.01, "tanh_cost": 0.01, "samples": 4, "policy_samples": 3, "penalty_every": 4,
}  # fmt: skip
# Every agent has critics and a penalty of its own, so that each may look at fewer transitions.
_SEARCHED: Values = _PENALISED | {"search_every": 4, "penalty_every": 8}
# A delayed policy (td3bc) has half as many steps as its critics.
_HELD: Values = _COMMON | {"rounds": 3000, "learning_rate": 0.001}
_DELAYED: Values = _COMMON | {"rounds": 7500, "learning_rate": 0.001}
# A sample is ten passes of the network, and the published schedule leaves most of an action after
# so few.
_SAMPLED: Values = _COMMON | {"rounds": 15_000, "q_every": 4, "schedule": "vp"}

# Tasks, algorithms, and what they have on data of any quality.
PARTICLES = tuple(task for task in TASKS if task != "halfcheetah")
BY_TASK: tuple[tuple[tuple[str, ...], tuple[str, ...], Values], ...] = (
    (TASKS, PENALISED, _PENALISED),
    (PARTICLES, ("omar",), _SEARCHED),
    (("halfcheetah",), ("omar",), _SEARCHED | {"iterations": 2, "candidates": 20, "elites": 5}),
    (TASKS, ("iql",), _HELD),
    (TASKS, ("td3bc",), _DELAYED),
    (TASKS, ("bc",), _COMMON | {"rounds": 3000}),
    (TASKS, ("dof",), _SAMPLED),
)

# Task, algorithms, hyperparameter, and its value on random, medium-replay, medium, expert data.
#
# MA-TD3+BC's weight, IQL's pair, the alphas of MACQL, of OMAR in the particle tasks, and of CFCQL,
# which the mixtures share, are the best of their sweeps (`spacql results sweeps`), or an alpha
# close to it. OMAR's in HalfCheetah are from shorter trainings. Its coefficients, of the search in
# the actors' loss, are published. On halfcheetah-medium all these critics diverge in the second
# half of a training with the rates that they have elsewhere.
BY_QUALITY: tuple[tuple[str, tuple[str, ...], str, tuple[float, ...]], ...] = (
    ("spread", MIXTURE, "alpha", (0.5, 0.1, 0.5, 0.5)),
    ("spread", ("macql",), "alpha", (0.1, 0.02, 0.1, 0.5)),
    ("spread", ("omar",), "alpha", (0.02, 0.5, 0.1, 0.5)),
    ("spread", ("td3bc",), "q_weight", (12.5, 62.5, 12.5, 2.5)),
    ("spread", ("iql",), "temperature", (1.0, 3.0, 3.0, 10.0)),
    ("spread", ("iql",), "expectile", (0.7, 0.8, 0.8, 0.7)),
    ("tag", MIXTURE, "alpha", (0.5, 0.02, 0.1, 0.5)),
    ("tag", ("macql",), "alpha", (0.1, 2.5, 0.1, 0.1)),
    ("tag", ("omar",), "alpha", (0.1, 0.02, 0.02, 0.1)),
    ("tag", ("omar",), "coefficient", (0.9, 0.9, 0.7, 0.9)),
    ("tag", ("td3bc",), "q_weight", (12.5, 62.5, 2.5, 2.5)),
    ("tag", ("iql",), "temperature", (3.0, 3.0, 10.0, 10.0)),
    ("tag", ("iql",), "expectile", (0.7, 0.9, 0.7, 0.7)),
    ("world", MIXTURE, "alpha", (0.1, 0.1, 0.5, 0.5)),
    ("world", ("macql",), "alpha", (0.02, 2.5, 0.1, 0.5)),
    ("world", ("omar",), "alpha", (0.1, 0.1, 0.1, 0.1)),
    ("world", ("omar",), "coefficient", (1.0, 0.7, 0.1, 0.9)),
    ("world", ("td3bc",), "q_weight", (12.5, 12.5, 2.5, 2.5)),
    ("world", ("iql",), "temperature", (3.0, 3.0, 10.0, 10.0)),
    ("world", ("iql",), "expectile", (0.8, 0.7, 0.7, 0.7)),
    ("halfcheetah", (*PENALISED, "omar"), "learning_rate", (0.003, 0.003, 0.001, 0.003)),
    ("halfcheetah", (*PENALISED, "omar"), "actor_learning_rate", (0.003, 0.003, 0.001, 0.003)),
    ("halfcheetah", MIXTURE, "alpha", (0.1, 0.1, 0.5, 2.5)),
    ("halfcheetah", ("macql",), "alpha", (0.1, 0.5, 0.1, 0.5)),
    ("halfcheetah", ("omar",), "alpha", (1.0, 5.0, 0.2, 5.0)),
    ("halfcheetah", ("omar",), "coefficient", (1.0, 0.9, 0.7, 0.5)),
    ("halfcheetah", ("td3bc",), "q_weight", (2.5, 12.5, 0.5, 0.5)),
    ("halfcheetah", ("iql",), "temperature", (10.0, 10.0, 3.0, 3.0)),
    ("halfcheetah", ("iql",), "expectile", (0.7, 0.7, 0.8, 0.7)),
)

# What the policy penalty has instead.
POLICY_PENALTY: dict[tuple[str, str], Values] = {
    ("spread-random", name): {"alpha": 0.1} for name in PENALISED
}


def _resolved() -> dict[tuple[str, str], Values]:
    """The rows: (dataset, algorithm) to values."""
    rows: dict[tuple[str, str], Values] = {}
    for tasks, algorithms, values in BY_TASK:
        for task in tasks:
            for quality in QUALITIES:
                rows |= {(f"{task}-{quality}", name): dict(values) for name in algorithms}
    for task, algorithms, hyperparameter, by_quality in BY_QUALITY:
        for quality, value in zip(QUALITIES, by_quality, strict=True):
            for name in algorithms:
                rows[f"{task}-{quality}", name][hyperparameter] = value
    return rows


SETTINGS = _resolved()


def configure(
    algorithm: str | ModuleType, dataset: str = "", overrides: Mapping[str, Any] | None = None
) -> Training:
    """An algorithm's Config: given values over the dataset's settings over the defaults.

    `dataset` is a name; only the benchmark's own, exactly spelt, have settings. An algorithm that
    is not in the table gets those of the one that its module names as `SETTINGS_OF`, if it does.
    """
    module = find(algorithm)
    given = dict(overrides or {})
    defaults = module.Config()
    known = [field.name for field in fields(defaults)]
    name = name_of(algorithm)
    for hyperparameter in given:
        if hyperparameter not in known:
            raise InputError(
                f"{name} has no hyperparameter {hyperparameter!r}."
                f"{suggestion(hyperparameter, known)} It has: {', '.join(sorted(known))}."
            )
    row = (dataset, getattr(module, "SETTINGS_OF", name))
    values = SETTINGS.get(row, {})
    if given.get("penalty", getattr(defaults, "penalty", "")) == "policy":
        values = values | POLICY_PENALTY.get(row, {})
    if unknown := values.keys() - set(known):
        raise InputError(
            f"The settings of {name} on {dataset} name {sorted(unknown)[0]!r}, which it lacks."
        )
    return check(replace(defaults, **(values | given)), name)


def config_from(algorithm: str | ModuleType, stored: Mapping[str, Any]) -> Training:
    """The Config that JSON holds. What was removed since is left out where it did nothing."""
    config = find(algorithm).Config
    known = {field.name for field in fields(config)}
    values = {n: v for n, v in stored.items() if n in known or (n, v) not in REMOVED.items()}
    if unknown := values.keys() - known:
        raise InputError(f"{name_of(algorithm)} has no hyperparameter {sorted(unknown)[0]!r}.")
    return check(as_record(values, config, f"The configuration of {name_of(algorithm)}"))


def check(config: Training, name: str = "The configuration") -> Training:
    """The same with every value in its field's type; refuse what cannot work."""
    for field, value in asdict(config).items():
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, float) and not isfinite(number):
                raise InputError(f"{field} is {number}; it must be a finite number.")
            if isinstance(number, int) and abs(number) > LARGEST:
                raise InputError(f"{field} is {number}; it must be at most {LARGEST:,}.")
    config = as_record(as_json(asdict(config), name), type(config), name)
    hidden = getattr(config, "hidden", (1,))
    if not hidden or not all(1 <= units <= WIDEST for units in hidden):
        raise InputError(
            f"hidden is {hidden}; there is at least one layer, and each has 1 to {WIDEST:,} units."
        )
    for field in ("rounds", "updates", "batch_size", "critics", "samples", "penalty_every"):
        if getattr(config, field, 1) < 1:
            raise InputError(f"{field} is {getattr(config, field)}; it must be at least 1.")
    every = getattr(config, "penalty_every", 1)
    if config.batch_size % every:
        raise InputError(
            f"The penalty cannot look at one in {every} transitions of a batch of "
            f"{config.batch_size}: choose a penalty_every that divides batch_size."
        )
    for field in ("learning_rate", "actor_learning_rate", "gradient_clip"):
        if not getattr(config, field, 1.0) > 0:
            raise InputError(f"{field} is {getattr(config, field)}; it must be above 0.")
    discount, target_rate = (getattr(config, f, 0.5) for f in ("discount", "target_rate"))
    if not 0 < discount < 1:
        raise InputError(f"discount is {discount}; it must be above 0 and below 1.")
    if not 0 < target_rate <= 1:
        raise InputError(f"target_rate is {target_rate}; it must be above 0 and at most 1.")
    for field in ("alpha", "policy_samples", "target_noise", "sample_noise", "action_cost",
                  "tanh_cost"):  # fmt: skip
        value = getattr(config, field, 0)
        if isinstance(value, int | float) and value < 0:
            raise InputError(f"{field} is {value}; it must be 0 or more.")
    return config


def check_fits(config: Training, spec: Spec) -> None:
    """Refuse what cannot be trained on this data, before anything is written."""
    n = spec.n_agents
    if any(not 1 <= k <= n for k in getattr(config, "replaced", ())):
        raise InputError(
            f"replaced is {' '.join(map(str, getattr(config, 'replaced', ())))}; of {n} agents, "
            f"1 to {n} can be replaced."
        )
    row = 2 * (sum(spec.observation_sizes) + sum(spec.action_sizes) + spec.state_size) + n
    needed = 4 * row * config.batch_size * config.updates  # of one round
    if needed > (free := free_memory()):
        raise InputError(
            f"The batches of one round take {needed:,} bytes, and {free:,} of memory are free: "
            "choose a smaller batch_size or fewer updates."
        )


def usual_rounds(task: str) -> int | None:
    """The length of a training in a task; the baselines' are multiples of it."""
    return SETTINGS.get((f"{task}-random", "spacql"), {}).get("rounds")
