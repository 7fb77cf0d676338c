"""Logs of two worlds that are not ours, from recording to a policy, and the truth at the end.

speaker: MPE2's simple_speaker_listener. One agent knows the goal and speaks, the other hears and
         walks. In the log the speaker stammers, and the listener often follows another landmark.
walker:  PettingZoo's multiwalker. Three robots carry a package and stagger.

    pip install 'pettingzoo>=1.27' 'mpe2>=1.1' box2d
    python examples/foreign_logs.py speaker --out speaker
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro

import spacql
from spacql.fitting import truth
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
    understood = random.random() < 0.6
    goal = int(np.argmax(seen[walks][8:11]) if understood else random.integers(3))
    x, y = np.clip(seen[walks][2 + 2 * goal : 4 + 2 * goal], -1, 1)
    push = np.array([0, max(-x, 0), max(x, 0), max(-y, 0), max(y, 0)])
    word = 0.6 * seen[speaks] / max(seen[speaks].max(), 1e-6) + random.normal(0, 0.3, 3)
    done = {speaks: word, walks: push + random.normal(0, 0.3, 5)}
    return {agent: np.clip(action, 0, 1).astype(np.float32) for agent, action in done.items()}


def staggering(seen: Actions, random: np.random.Generator) -> Actions:
    """Each robot's own whim at every step, sometimes faint and sometimes strong."""
    whims = random.normal(0, random.uniform(0.1, 1), (len(seen), 4))
    return dict(zip(seen, np.clip(whims, -1, 1).astype(np.float32), strict=True))


WORLDS = {"speaker": (speaker, half_understood, 1500), "walker": (walker, staggering, 800)}


def play(env: Any, act: Callable[[Actions], Actions], episodes: int, seed: int) -> np.ndarray:
    """The team's returns: an episode ends when the first agent leaves."""
    returns = []
    for episode in range(episodes):
        seen, _ = env.reset(seed=seed + episode)
        returns.append(0.0)
        while len(env.agents) == len(env.possible_agents):
            seen, rewards, *_ = env.step(act(seen))
            returns[-1] += float(np.mean(list(rewards.values())))
    return np.array(returns)


def main(
    world: tyro.conf.Positional[Literal["speaker", "walker"]],
    out: Path,
    episodes: int = 0,
    trials: int = 200,
    keep: Path | None = None,
) -> None:
    make, behave, usual = WORLDS[world]
    if not (logs := out.with_name(out.name + "-log")).exists():
        random, env = np.random.default_rng(0), Recorder(make(), logs)
        play(env, lambda seen: behave(seen, random), episodes or usual, seed=0)
        env.close()
    found = spacql.fit(logs, out, level="quick", quiet=False, tell=print)
    print(found.result["words"])

    def tried(team: spacql.Policy | None) -> np.ndarray:
        random = np.random.default_rng(1)

        def act(seen: Actions) -> Actions:
            if team is None:
                return behave(seen, random)
            return dict(zip(seen, team.act(list(seen.values())), strict=True))

        return play(make(), act, trials, seed=10**6)

    command = f"python examples/foreign_logs.py {world} --out {out.name}"
    truth.compare(found, tried, command, [truth.CLONE, found.chosen], keep)


if __name__ == "__main__":
    tyro.cli(main)
