"""A policy as ONNX, for machines that have neither JAX nor Python: one graph for the team, or one
for each agent. The batch is free; every file is compared with `Policy.act` before it is kept.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spacql.errors import InputError, MissingExtra
from spacql.files import new_file
from spacql.policies.actors import MLP
from spacql.policies.policy import Policy

OPSET = 17
TOLERANCE = 1e-5  # between ONNX Runtime and `Policy.act`, in units of half the action range


def export(policy: Policy, out: Path, per_agent: bool = False) -> dict[Path, float]:
    """Write OUT.onnx, or OUT/<agent>.onnx each; returns the largest deviation found in each file.

    Inputs are `observation.<agent>` (batch, size), outputs `action.<agent>`, in the policy's own
    units.
    """
    onnx, runtime = _packages()
    for agent, actor in zip(policy.agents, policy.actors, strict=True):
        if type(actor) is not MLP or actor.noise:
            raise InputError(
                f"The actor of {agent} is a {type(actor).__name__}"
                f"{' with noise' if type(actor) is MLP else ''}; only deterministic MLPs have an "
                "ONNX form."
            )
    if not per_agent and not out.name.strip("."):
        raise InputError(f"--out {out} names no file. For example: --out team.onnx")
    numbers = range(len(policy.agents))
    plain = out.with_suffix("") if out.suffix == ".onnx" else out
    files = (
        {plain / f"{name}.onnx": (i,) for i, name in enumerate(_file_names(policy.agents))}
        if per_agent
        else {plain.with_name(plain.name + ".onnx"): tuple(numbers)}
    )
    for path in files:
        if path.exists():
            raise InputError(f"{path} exists already. Choose another place or remove it first.")
    found = {}
    for path, chosen in files.items():
        data = graph(onnx, policy, chosen).SerializeToString()
        found[path] = deviation(runtime, data, policy, chosen)
        if not found[path] < TOLERANCE:
            raise InputError(
                f"ONNX Runtime deviates by {found[path]:.1e} from the policy; {path} is not kept."
            )
        with new_file(path) as temporary:
            temporary.write_bytes(data)
    return found


def graph(onnx: Any, policy: Policy, chosen: Sequence[int]) -> Any:
    """The model of some agents."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    nodes: list[Any] = []
    constants: list[Any] = []
    inputs, outputs = [], []
    kind = onnx.TensorProto.FLOAT

    def constant(name: str, value: Any) -> str:
        constants.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    for i in chosen:
        agent, actor = policy.agents[i], policy.actors[i]
        x = f"observation.{agent}"
        inputs.append(helper.make_tensor_value_info(x, kind, ["batch", actor.observation_size]))

        def then(op: str, *sources: str, to: str, agent: str = agent) -> str:
            nodes.append(helper.make_node(op, list(sources), [f"{agent}/{to}"]))
            return f"{agent}/{to}"

        x = then("Sub", x, constant(f"{agent}/mean", actor.mean), to="centred")
        x = then("Div", x, constant(f"{agent}/std", actor.std), to="standardised")
        for k, (weight, bias) in enumerate(zip(actor.weights, actor.biases, strict=True)):
            w, b = constant(f"{agent}/weight{k}", weight), constant(f"{agent}/bias{k}", bias)
            x = then("Gemm", x, w, b, to=f"layer{k}")
            x = then("Tanh" if k == len(actor.weights) - 1 else "Relu", x, to=f"out{k}")
        low, high = np.array(actor.low), np.array(actor.high)
        x = then("Mul", x, constant(f"{agent}/scale", (high - low) / 2), to="scaled")
        x = then("Add", x, constant(f"{agent}/middle", (low + high) / 2), to="moved")
        x = then("Max", x, constant(f"{agent}/low", low), to="above")  # rounding may lead beyond
        end = f"action.{agent}"
        nodes.append(helper.make_node("Min", [x, constant(f"{agent}/high", high)], [end]))
        outputs.append(helper.make_tensor_value_info(end, kind, ["batch", len(low)]))
    whole = helper.make_graph(nodes, policy.name or "policy", inputs, outputs, constants)
    model = helper.make_model(
        whole, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9, producer_name="spacql"
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def deviation(runtime: Any, data: bytes, policy: Policy, chosen: Sequence[int]) -> float:
    """The largest difference from `Policy.act`, in units of half the action range, on observations
    like those that the actors were trained on; for batches of 1 and of 257."""
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    random, worst = np.random.default_rng(0), 0.0
    for batch in (1, 257):
        seen = [
            (np.asarray(a.mean) + np.asarray(a.std) * random.normal(size=(batch, len(a.mean))))
            .astype(np.float32)
            for a in policy.actors
        ]  # fmt: skip
        expected = policy.act(seen)
        given = {f"observation.{policy.agents[i]}": seen[i] for i in chosen}
        for i, action in zip(chosen, session.run(None, given), strict=True):
            actor = policy.actors[i]
            half = (np.array(actor.high) - np.array(actor.low)) / 2
            worst = max(worst, float(np.abs((action - expected[i]) / half).max()))
    return worst


def _file_names(agents: Sequence[str]) -> list[str]:
    """Agents' names come from a file, and are only text. Each gets a name of its own."""
    names = [re.sub(r"[^\w-]+", "-", agent).strip("-") for agent in agents]
    return [
        name if name and names.count(name) == 1 else f"{name or 'agent'}-{i}"
        for i, name in enumerate(names)
    ]


def _packages() -> tuple[Any, Any]:
    try:
        import onnx
        import onnxruntime
    except ImportError as error:
        raise MissingExtra("ONNX export", "onnx") from error
    return onnx, onnxruntime
