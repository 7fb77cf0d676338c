"""Short trainings of every algorithm: what moves, what is reported, and the recorded policies.

`python tests/algorithms/test_rounds.py CASE ...` records cases anew: only where numbers must
change, and the commit that does it says why.
"""

import platform
import sys
from dataclasses import fields
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jaxlib
import numpy as np
import pytest
from algorithms_toy import tiny_dataset

from spacql.algorithms.registry import MODULES, find
from spacql.data import Dataset
from spacql.policies import Policy
from spacql.training.checkpoints import Checkpoints

RECORDED = Path(__file__).parent.parent / "data" / "recorded-policies.npz"
SMALL = {"critics": 2, "hidden": (8, 6), "samples": 2, "updates": 2, "batch_size": 8}
ROUNDS = 4
CONSERVATIVE = {"td_error", "penalty", "q_data", "q_policy", "u", "w", "k_eff",
                "critic_gradient", "actor_gradient"}  # fmt: skip
METRICS = {
    "omar": {"td_error", "penalty", "q_data", "q_policy", "search_distance", "actor_gradient"},
    "iql": {"td_error", "q_data", "advantage", "weight", "clone_error", "actor_gradient"},
    "td3bc": {"td_error", "q_data", "q_policy", "clone_error", "actor_gradient"},
    "dof": {"td_error", "q_data", "q_policy", "denoising_error", "actor_gradient"},
    "bc": {"clone_error", "actor_gradient"},
    "aspac": CONSERVATIVE | {"anchor_distance", "behaviour_loss"},
}
# name of the record: algorithm, and what differs from SMALL
CASES = {
    "spacql": ("spacql", {"critics": 3, "tanh_cost": 0.01}),
    "spacql-uniform": ("spacql", {"mixing": "uniform", "replaced": (1, 2), "policy_samples": 1}),
    "icql-qs": ("icql-qs", {"penalty_agents": "all"}),
    "icql-qs-policy": ("icql-qs", {"penalty": "policy"}),
    "cfcql": ("cfcql", {"penalty_every": 2}),
    "macql": ("macql", {"policy_samples": 1}),
    "omar": ("omar", {"coefficient": 0.7}),
    "omar-elites": ("omar", {"coefficient": 0.7, "elites": 3}),
    "iql": ("iql", {}),
    "td3bc": ("td3bc", {}),
    "bc": ("bc", {}),
    "dof": ("dof", {"diffusion_steps": 3}),
    "dof-cloning": ("dof", {"diffusion_steps": 3, "detach_q": True, "weighted_noise": True}),
    "plcql": ("plcql", {"critics": 3, "bandit_steps": 2}),
    "aspac": ("aspac", {"penalty_every": 2}),
}
# Options with tests of their own.
VARIANTS = ("spacql-uniform", "icql-qs-policy", "omar-elites", "dof-cloning")


def processor() -> str:
    """What the bits of a compiled program depend on, beside the program."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if platform.system() == "Linux" else []
    flags = sorted(next((line for line in lines if line.startswith("flags")), "").split())
    wide = [flag for flag in flags if flag.startswith(("avx", "fma", "amx"))]
    return f"{jaxlib.__version__} {platform.machine()} {' '.join(wide)}"


class Played(NamedTuple):
    data: Dataset
    before: Any  # states before and after the first round
    after: Any
    metrics: dict[str, Any]  # of the first round
    policy: Policy  # after the last

    def arrays(self) -> list[np.ndarray]:
        actors = self.policy.actors
        return [np.asarray(x) for actor in actors for x in (*actor.weights, *actor.biases)]


@cache
def played(case: str) -> Played:
    name, values = CASES[case]
    module, data = find(name), tiny_dataset(states=name == "cfcql")
    known = {field.name for field in fields(module.Config)}
    config = module.Config(**{n: v for n, v in SMALL.items() if n in known} | values)
    init = partial(module.init, spec=data.spec, config=config, statistics=data.statistics())
    states = [jax.jit(init)(jax.random.key(5, impl="rbg"))]
    rows = np.random.default_rng(1).choice(data.target_rows(), (ROUNDS, 2, 8))
    update = jax.jit(partial(module.update, config=config))
    reported = []
    for round_ in range(ROUNDS):
        key = jax.random.key(round_, impl="rbg")
        state, metrics = update(states[-1], data.batch(rows[round_]), key=key)
        states.append(state)
        reported.append(metrics)
    return Played(data, states[0], states[1], reported[0], module.policy(states[-1]))


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.slow if case in VARIANTS else ()) for case in CASES],
)
def test_a_short_training_ends_with_the_recorded_policy(case) -> None:
    recorded = np.load(RECORDED)
    same_bits = str(recorded["processor"]) == processor()
    for number, array in enumerate(played(case).arrays()):
        expected = recorded[f"{case}-{number}"]
        if same_bits:
            np.testing.assert_array_equal(array, expected)
        else:  # other processors round differently
            np.testing.assert_allclose(array, expected, rtol=0, atol=1e-3)


def networks(state):
    """Everything that a round must move, by name: the state itself, or those it is made of."""
    found = {}
    for k, team in enumerate(getattr(state, "agents", (state,))):
        for part in ("critics", "actors"):
            for which in ("online", "target"):
                found[k, part, which] = getattr(getattr(team, part, None), which, None)
    return found | {(0, name, ""): getattr(state, name, None) for name in ("value", "bandit")}


@pytest.mark.parametrize("name", MODULES)
def test_a_round_moves_every_network_and_reports(name) -> None:
    data, before, after, metrics, policy = played(name)
    assert METRICS.get(name, CONSERVATIVE) <= set(metrics)
    assert all(np.isfinite(value).all() for value in metrics.values())
    for place, old in networks(before).items():
        if name in ("iql", "bc") and place[1:] == ("actors", "target"):
            continue  # their targets need no policy
        old, new = jax.tree.leaves(old), jax.tree.leaves(networks(after)[place])
        moved = [bool((x != y).any()) for x, y in zip(old, new, strict=True)]
        assert any(moved) or not moved, place
    np.testing.assert_array_equal(policy.actors[0].mean, data.statistics().observation_mean[0])
    left, right = policy.act([np.zeros(3), np.zeros(2)])
    assert left.shape == (1,)
    assert ((right >= 0) & (right <= 4)).all()


@pytest.mark.parametrize(
    "name", ["dof", pytest.param("dof-cloning", marks=pytest.mark.slow), "plcql"]
)
def test_a_checkpoint_gives_back_every_bit(name, tmp_path) -> None:
    """These two carry more than actors and critics: numbers that may be missing, and a bandit."""
    _, before, after, _, _ = played(name)
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, after)
    found = checkpoints.restore(1, before)
    checkpoints.close()
    assert jax.tree.structure(found) == jax.tree.structure(after)
    jax.tree.map(np.testing.assert_array_equal, found, after)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import conftest  # noqa: F401  compiles as the tests do; before anything is computed

    recorded = dict(np.load(RECORDED))
    if str(recorded["processor"]) != processor() and set(sys.argv[1:]) != set(CASES):
        sys.exit("The others were recorded on another processor: record all cases.")
    recorded["processor"] = np.array(processor())
    for case in sys.argv[1:]:
        recorded |= {f"{case}-{k}": x for k, x in enumerate(played(case).arrays())}
    np.savez_compressed(RECORDED, **recorded)
