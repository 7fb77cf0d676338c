"""Short trainings of every algorithm end with the recorded policies.

`python tests/algorithms/test_recorded.py` records them anew: only where numbers must change, and
the commit that does it says why.
"""

import platform
from dataclasses import fields
from functools import partial
from pathlib import Path

import jax
import jaxlib
import numpy as np
import pytest
from algorithms_toy import tiny_dataset

from spacql.algorithms.registry import find

RECORDED = Path(__file__).parent.parent / "data" / "recorded-policies.npz"
SMALL = {"critics": 2, "hidden": (8, 6), "samples": 2, "updates": 2, "batch_size": 8}
ROUNDS = 4
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
}


def processor() -> str:
    """What the bits of a compiled program depend on, beside the program."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if platform.system() == "Linux" else []
    flags = sorted(next((line for line in lines if line.startswith("flags")), "").split())
    wide = [flag for flag in flags if flag.startswith(("avx", "fma", "amx"))]
    return f"{jaxlib.__version__} {platform.machine()} {' '.join(wide)}"


def trained(case: str) -> list[np.ndarray]:
    """The arrays of the policy after a few rounds, agent by agent."""
    name, values = CASES[case]
    module, data = find(name), tiny_dataset(states=name == "cfcql")
    known = {field.name for field in fields(module.Config)}
    given = {n: value for n, value in SMALL.items() if n in known} | values
    config = module.Config(**given)
    init = partial(module.init, spec=data.spec, config=config, statistics=data.statistics())
    state = jax.jit(init)(jax.random.key(5, impl="rbg"))
    rows = np.random.default_rng(1).choice(data.target_rows(), (ROUNDS, 2, 8))
    update = jax.jit(partial(module.update, config=config))
    for round_ in range(ROUNDS):
        key = jax.random.key(round_, impl="rbg")
        state, _ = update(state, data.batch(rows[round_]), key=key)
    actors = module.policy(state).actors
    return [np.asarray(x) for actor in actors for x in (*actor.weights, *actor.biases)]


@pytest.mark.parametrize("case", CASES)
def test_a_short_training_ends_with_the_recorded_policy(case) -> None:
    recorded = np.load(RECORDED)
    same_bits = str(recorded["processor"]) == processor()
    for number, array in enumerate(trained(case)):
        expected = recorded[f"{case}-{number}"]
        if same_bits:
            np.testing.assert_array_equal(array, expected)
        else:  # other processors round differently
            np.testing.assert_allclose(array, expected, rtol=0, atol=1e-3)


if __name__ == "__main__":
    jax.config.update("jax_disable_most_optimizations", True)  # as in these tests
    found = {f"{case}-{k}": x for case in CASES for k, x in enumerate(trained(case))}
    np.savez_compressed(RECORDED, processor=processor(), **found)
