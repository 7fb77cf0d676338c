"""`spacql data record`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
    env = Recorder(_function(environment)(), out, horizon)
    acting = _function(act, "observations") if act else None
    # An environment may make its spaces anew whenever it is asked: seed those that are sampled.
    spaces = {agent: env.action_space(agent) for agent in env.possible_agents}
    for i, space in enumerate(spaces.values()):
        space.seed(seed * 1000 + i)
    with _kept(env, episodes), progress("recording", episodes) as advance:
        for number in range(episodes):
            seen, _ = env.reset(seed=seed + number)
            steps = 0
            while env.agents and (horizon is None or steps < horizon):
                done = acting(seen) if acting else {a: spaces[a].sample() for a in env.agents}
                seen, *_ = env.step(done)
                steps += 1
                if env.episodes > number:
                    break
            advance()
    out = env.out
    dataset = load_dataset(out)
    print(f"{out}: {dataset.n_transitions:,} transitions in {dataset.n_episodes:,} episodes, "
          f"return {dataset.team_returns.mean():.4g} ± {dataset.team_returns.std():.3g}. "
          f"Next: spacql data inspect {out}")  # fmt: skip


@contextmanager
def _kept(env: Any, episodes: int) -> Iterator[None]:
    """Write what was recorded at the end of the block, even if an error or Ctrl-C ends it."""
    from spacql.errors import DataError, Interrupted, SpacqlError
    from spacql.interrupts import farewell

    def stopped() -> Interrupted:
        kept = env.episodes
        env.save()
        place = f"in {env.out}: " if kept else ""
        return Interrupted(f"Kept {place}{kept:,} of {episodes:,} episodes.", again=None)

    try:
        with farewell(stopped):
            yield
    except Exception as error:
        with suppress(SpacqlError):  # too little to be written: the first error says more
            env.close()
        if isinstance(error, SpacqlError) and env.out.exists():
            raise DataError(f"{error} What was recorded before is in {env.out}.") from error
        raise
    env.close()


def _function(name: str, *given: str) -> Callable[..., Any]:
    """The function that MODULE:NAME stands for, if it can be called with what it is given."""
    from importlib import import_module
    from inspect import signature

    from spacql.errors import InputError

    module, colon, attribute = name.partition(":")
    if not module or module.startswith(".") or not colon or not attribute:
        raise InputError(f"{name!r} should be MODULE:FUNCTION.")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"{name} cannot be used: {error}.") from error
    if not callable(found):
        raise InputError(f"{name} is a {type(found).__name__}; expected a function.")
    try:
        signature(found).bind(*given)
    except TypeError as error:
        arguments = ", ".join(given)
        raise InputError(
            f"{name} cannot be called as {attribute}({arguments}): {error}."
        ) from error
    except ValueError:
        pass  # compiled functions do not say what they take
    return found
