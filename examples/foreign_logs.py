"""Logs of two worlds that are not ours, from recording to a policy, and the truth at the end.

speaker: MPE2's simple_speaker_listener. One agent knows the goal and speaks, the other hears and
         walks. In the log the speaker stammers, and the listener often follows another landmark.
walker:  PettingZoo's multiwalker. Three robots carry a package; in the log they stagger at random.

python examples/foreign_logs.py speaker --out speaker
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro

import spacql
from spacql.worlds.recording import Recorder

Actions = dict[str, np.ndarray]


def speaker() -> Any:
    from mpe2 import simple_speaker_listener_v4

    return simple_speaker_listener_v4.parallel_env(continuous_actions=True, max_cycles=25)


def walker() -> Any:
    from pettingzoo.sisl import multiwalker_v9

    return multiwalker_v9.parallel_env(n_walkers=3, max_cycles=200)


def half_understood(seen: Actions, random: np.random.Generator) -> Actions:
    """The speaker names the goal and stammers; the listener goes where it heard, mostly."""
    speaks, walks = seen
    heard = seen[walks][8:11]
    goal = int(np.argmax(heard)) if random.random() < 0.6 else int(random.integers(3))
    x, y = np.clip(seen[walks][2 + 2 * goal : 4 + 2 * goal], -1, 1)
    push = np.array([0, max(-x, 0), max(x, 0), max(-y, 0), max(y, 0)])
    word = 0.6 * seen[speaks] / max(seen[speaks].max(), 1e-6) + random.normal(0, 0.3, 3)
    done = {speaks: word, walks: push + random.normal(0, 0.3, 5)}
    return {agent: np.clip(action, 0, 1).astype(np.float32) for agent, action in done.items()}


def staggering(seen: Actions, random: np.random.Generator) -> Actions:
    """Each robot's own whim at every step, sometimes faint and sometimes strong."""
    size = random.uniform(0.1, 1)
    return {a: np.clip(random.normal(0, size, 4), -1, 1).astype(np.float32) for a in seen}


WORLDS = {"speaker": (speaker, half_understood, 1500), "walker": (walker, staggering, 800)}


def play(env: Any, act: Callable[[Actions], Actions], episodes: int, seed: int) -> np.ndarray:
    """The team's returns: an episode ends when the first agent leaves."""
    returns = []
    for episode in range(episodes):
        seen, _ = env.reset(seed=seed + episode)
        returned, everyone = 0.0, len(env.possible_agents)
        while len(env.agents) == everyone:
            seen, rewards, *_ = env.step(act(seen))
            returned += float(np.mean(list(rewards.values())))
        returns.append(returned)
    return np.array(returns)


def main(
    world: tyro.conf.Positional[Literal["speaker", "walker"]],
    out: Path,
    episodes: int = 0,
    trials: int = 300,
    level: Literal["quick", "normal", "thorough"] = "quick",
) -> None:
    make, behave, usual = WORLDS[world]
    logs = out.with_name(out.name + "-log")
    if not logs.exists():
        random = np.random.default_rng(0)
        env = Recorder(make(), logs)
        play(env, lambda seen: behave(seen, random), episodes or usual, seed=0)
        env.close()
    found = spacql.fit(logs, out, level=level, quiet=False, tell=print)
    print(found.result["words"])

    random = np.random.default_rng(1)
    truth = {"the log": play(make(), lambda seen: behave(seen, random), trials, 10**6)}
    for label in dict.fromkeys(["bc", found.chosen]):
        act = spacql.Policy.load(out / "runs" / label).act
        team = lambda seen, act=act: dict(zip(seen, act(list(seen.values())), strict=True))  # noqa: E731
        truth[label] = play(make(), team, trials, 10**6)
    print("\nIn truth:")
    for label, returns in truth.items():
        mark = "  <- chosen" if label == found.chosen else ""
        print(f"  {label:<12} {returns.mean():8.2f} ± {returns.std() / trials**0.5:.2f}{mark}")


if __name__ == "__main__":
    tyro.cli(main)
