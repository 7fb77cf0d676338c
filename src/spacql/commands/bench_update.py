"""`spacql bench update`: the critic update's speed, beside the machine's and a naive version's."""

from typing import Any


def bench_update(repeats: int = 5, json: bool = False) -> None:
    """Measure one critic update of several algorithms on one core.

    Batch 1024, networks of 2 x 64 units, inputs of the size of spread. GFLOP/s count the products
    that the split first layer needs, so the naive version is not credited for doing more. Times
    are the processor's, the best of several, without compiling.

    Example: spacql bench update

    Args:
        repeats: Measurements a case; the best one counts.
        json: Print JSON instead of a table.
    """
    import os
    import subprocess
    import sys
    from json import dumps, loads

    from spacql import arguments
    from spacql.threads import one_thread

    arguments.whole("--repeats", repeats)
    # A fresh process, bound to one core before JAX starts its threads.
    core = str(min(os.sched_getaffinity(0)))
    command = [sys.executable, "-m", "spacql.commands.bench_update", str(repeats), core]
    done = subprocess.run(
        command, env=one_thread(os.environ), stdout=subprocess.PIPE, text=True, check=True
    )
    result = loads(done.stdout.splitlines()[-1])
    if json:
        print(dumps(result, indent=1))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(f"one core, peak {result['peak']:.0f} GFLOP/s", box=None)
    for title in ("ms", "GFLOP/s", "of peak", "compiling, s"):
        table.add_column(title, justify="right")
    for case in result["cases"]:
        table.add_row(
            case["case"],
            f"{case['ms']:.1f}",
            f"{case['gflops']:.0f}",
            f"{100 * case['share']:.0f} %",
            f"{case['compile_s']:.1f}",
        )
    Console().print(table)


def _cases() -> list[tuple[str, str, int, dict[str, Any]]]:
    """(label, algorithm, agents, hyperparameters)."""
    full = {"penalty_agents": "all"}
    lse, policy = "log-sum-exp over 10", "policy penalty"
    return [
        (f"(a) CFCQL, 2 critics, {lse}, all agents", "cfcql", 3, full),
        (f"(b) SPaCQL, 10 critics, {policy}, all agents", "spacql", 3,
         {**full, "penalty": "policy"}),
        (f"(c) SPaCQL, 10 critics, {lse}, all agents", "spacql", 3, full),
        (f"(c') SPaCQL, 10 critics, {lse}, one agent a transition", "spacql", 3, {}),
        ("(c'') as (c'), of one transition in four", "spacql", 3, {"penalty_every": 4}),
        *((f"(d) as (c'), {n} agents", "spacql", n, {}) for n in (6, 12, 24)),
        *((f"(e) PLCQL, as (c'), {n} agents", "plcql", n, {}) for n in (3, 24)),
        ("(c) written naively: mapped critics, concatenated inputs", "naive", 3, full),
    ]  # fmt: skip


def _measure(repeats: int) -> dict[str, Any]:
    import jax
    import jax.numpy as jnp

    size = 2048
    square = jnp.ones((size, size))
    peak = 2 * size**3 / _best(jax.jit(jnp.matmul), (square, square), 3 * repeats)[0] / 1e9
    cases = []
    for label, algorithm, n, values in _cases():
        update, arguments, flop = _setting(algorithm, n, values)
        seconds, compiling = _best(jax.jit(update), arguments, repeats)
        rate = flop / seconds / 1e9
        cases.append(
            {
                "case": label,
                "agents": n,
                "ms": 1e3 * seconds,
                "gflop": flop / 1e9,
                "gflops": rate,
                "share": rate / peak,
                "compile_s": compiling,
            }
        )
    return {"peak": peak, "cases": cases}


def _best(function: Any, arguments: Any, repeats: int) -> tuple[float, float]:
    """Least processor seconds of a call, and those of the first call, which compiles."""
    import time

    import jax

    times = []
    for _ in range(repeats + 1):
        begun = time.process_time()
        jax.block_until_ready(function(*arguments))
        times.append(time.process_time() - begun)
    return min(times[1:]), times[0]


def _setting(algorithm: str, n: int, values: dict[str, Any]) -> tuple[Any, Any, float]:
    """A function of (key, state, transitions), its arguments, and its floating-point operations."""
    from functools import partial

    import jax
    import numpy as np

    from spacql.algorithms.conservative import critic_update, one_agent_at_a_time
    from spacql.algorithms.registry import find
    from spacql.algorithms.transitions import Transitions
    from spacql.data.dataset import Statistics
    from spacql.spec import Spec, unit_box

    module = find("spacql" if algorithm == "naive" else algorithm)
    config = module.Config(**values)
    size = 6 * n  # of an observation in spread
    spec = Spec("bench", tuple(map(str, range(n))), (size,) * n, **unit_box([2] * n), horizon=25)
    mean, std = (np.zeros(size, np.float32),) * n, (np.ones(size, np.float32),) * n
    state = jax.jit(
        lambda key: module.init(key, spec, config, Statistics(mean, std, None, None, 0, 1))
    )(jax.random.key(0))
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return rng.normal(size=(config.batch_size, *shape)).astype(np.float32)

    observations, following = normal(n, size), normal(n, size)
    t = Transitions(
        observations=tuple(observations[:, i] for i in range(n)),
        s=observations.reshape(config.batch_size, -1),
        a=np.tanh(normal(n, 2)),
        r=normal(),
        next_observations=tuple(following[:, i] for i in range(n)),
        next_s=following.reshape(config.batch_size, -1),
        next_a=np.tanh(normal(n, 2)),
        terminal=0 * normal(),
    )
    update = naive_update if algorithm == "naive" else partial(
        critic_update, module.target, one_agent_at_a_time
    )  # fmt: skip
    mixes = module is find("spacql")
    flop = _flop(config, n, size, sets=n if mixes else 1, ensembles=2 if mixes else 1)
    arguments = (jax.random.key(1, impl="rbg"), state, t)
    return partial(_call, update, config), arguments, flop


def _call(update: Any, config: Any, key: Any, state: Any, t: Any) -> Any:
    return update(key, state, t, config)


def _flop(config: Any, n: int, observation: int, sets: int, ensembles: int = 2) -> float:
    """Multiplications and additions in matrix products, with the first layer split.

    The target looks at `sets` joint actions with `ensembles`: SPaCQL's with both, others with one.
    """
    batch, d = config.batch_size, 2
    h1, h2 = config.hidden
    s = n * observation
    later = 2 * h1 * h2 + 2 * h2  # a row, forward
    m = 1 if config.penalty_agents == "one" else n
    alternatives = 1 if config.penalty == "policy" else config.samples
    rows = 1 + m * alternatives / config.penalty_every  # a transition
    first = 2 * (s + n * d) * h1 + rows * 2 * d * h1
    learning = 2 * first + 3 * rows * later  # backward costs as much as forward, twice for later
    target = ensembles * (2 * s * h1 + sets * (2 * n * d * h1 + later))
    acting = 3 * n * 2 * (observation * h1 + h1 * h2 + h2 * d)
    steps = getattr(config, "bandit_steps", 0)  # a choice, PPO's steps, and one of the baseline
    choosing = 2 * (s * h1 + h1 * h2) * (1 + 3 * steps + 1 + 3) if steps else 0
    return float(batch * (config.critics * (learning + target) + acting + choosing))


def naive_update(key: Any, state: Any, t: Any, config: Any) -> Any:
    """The same update as usually written: every critic mapped, every input concatenated."""
    import jax
    import jax.numpy as jnp
    import optax

    from spacql.algorithms.learner import next_actions
    from spacql.algorithms.optimisation import optimiser
    from spacql.algorithms.replacement import mixture, random_sets, replace, uncertainty, weights

    batch, n, d = t.a.shape
    noise_key, set_key, sample_key = jax.random.split(key, 3)

    def q(critic: Any, s: Any, a: Any) -> Any:
        s = jnp.broadcast_to(
            s.reshape(batch, *(1,) * (a.ndim - 3), -1), (*a.shape[:-2], s.shape[-1])
        )
        h = jnp.concatenate([s, a.reshape(*a.shape[:-2], n * d)], axis=-1)
        first = critic.action_weight.reshape(n * d, -1)
        h = jax.nn.relu(h @ jnp.concatenate([critic.state_weight, first]) + critic.biases[0])
        h = jax.nn.relu(h @ critic.weights[0] + critic.biases[1])
        return h @ critic.last_weight + critic.last_bias

    every = jax.vmap(q, in_axes=(0, None, None))
    sets = random_sets(set_key, batch, n, range(1, n + 1))
    a_k = replace(sets, t.next_a, next_actions(noise_key, state, t, config.target_noise))
    w_k = weights(uncertainty(every(state.critics.online, t.next_s, a_k)))
    y = t.r + config.discount * mixture(w_k, every(state.critics.target, t.next_s, a_k))
    x = jax.random.uniform(sample_key, (batch, n, config.samples, d), minval=-1, maxval=1)
    instead = jnp.broadcast_to(t.a[:, None, None], (batch, n, config.samples, n, d))
    instead = jnp.where(jnp.eye(n, dtype=bool)[:, None, :, None], x[:, :, :, None], instead)

    def loss(critics: Any) -> Any:
        q_data = every(critics, t.s, t.a)
        q_x = every(critics, t.s, instead)
        penalty = jnp.mean(jax.nn.logsumexp(q_x, axis=-1), axis=-1) - q_data
        return jnp.sum(jnp.mean((q_data - y) ** 2 + config.alpha * penalty, axis=-1))

    gradients = jax.grad(loss)(state.critics.online)
    update = jax.vmap(optimiser(config, config.learning_rate).update)
    steps, optimiser_state = update(gradients, state.critics.optimiser_state)
    return optax.apply_updates(state.critics.online, steps), optimiser_state


if __name__ == "__main__":
    import os
    import sys
    from json import dumps

    os.sched_setaffinity(0, {int(sys.argv[2])})
    print(dumps(_measure(int(sys.argv[1]))))
