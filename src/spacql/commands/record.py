"""`spacql data record`."""

from pathlib import Path
from typing import Any

import tyro


def data_record(
    environment: tyro.conf.Positional[str],
    /,
    out: Path,
    act: str | None = None,
    episodes: int = 100,
    horizon: int | None = None,
    seed: int = 0,
) -> None:
    """Record a PettingZoo environment as a dataset while your own code acts in it.

    ENVIRONMENT is MODULE:FUNCTION, a function without arguments that makes a ParallelEnv; ACT
    likewise, a function from {agent: observation} to {agent: action}. Modules are looked for here
    and among what is installed. In Python, `spacql.worlds.recording.Recorder` wraps any.

    Example: spacql data record pettingzoo.sisl.multiwalker_v9:parallel_env --out walker

    Args:
        environment: What makes the environment.
        out: New folder for the dataset.
        act: What acts; uniform actions if not given.
        episodes: How many.
        horizon: Steps after which an episode is cut, if the environment does not do it.
        seed: Of the first episode; the next one has the next.
    """
    import sys

    from spacql import arguments
    from spacql.data import load_dataset
    from spacql.progress import progress
    from spacql.worlds.recording import Recorder

    arguments.whole("--episodes", episodes)
    arguments.whole("--horizon", horizon)
    arguments.whole("--seed", seed, 0)
    sys.path.insert(0, str(Path.cwd()))
    env = Recorder(_found(environment)(), out, horizon)
    acting = _found(act) if act else None
    for i, agent in enumerate(env.possible_agents):
        env.action_space(agent).seed(seed * 1000 + i)
    with progress("recording", episodes) as advance:
        for number in range(episodes):
            seen, _ = env.reset(seed=seed + number)
            steps = 0
            while env.agents and (horizon is None or steps < horizon):
                sampled = {a: env.action_space(a).sample() for a in env.agents}
                seen, *_ = env.step(acting(seen) if acting else sampled)
                steps += 1
                if env.episodes > number:
                    break
            advance()
    env.close()
    out = env.out
    dataset = load_dataset(out)
    print(f"{out}: {dataset.n_transitions:,} transitions in {dataset.n_episodes:,} episodes, "
          f"return {dataset.team_returns.mean():.4g} ± {dataset.team_returns.std():.3g}. "
          f"Next: spacql data inspect {out}")  # fmt: skip


def _found(name: str) -> Any:
    """What MODULE:NAME stands for."""
    from importlib import import_module

    from spacql.errors import InputError

    module, colon, attribute = name.partition(":")
    if not colon or not attribute:
        raise InputError(f"{name!r} should be MODULE:FUNCTION.")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"{name} cannot be used: {error}.") from error
