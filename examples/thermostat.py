"""A log of two heated rooms, from nothing to a better controller, and the truth at the end.

Two agents heat a room each and see its temperature, the weather, the price and the hour; the second
also opens a window. They share bill and comfort. The log is that of thermostats without prices.
`spacql.fit` sees the log alone; the simulator is asked afterwards whether what it promised is true.

python examples/thermostat.py --out thermostat
"""

from pathlib import Path
from typing import Literal

import numpy as np
import tyro

import spacql
from spacql.fitting import truth

STEPS = 48  # half hours: a day
HEAT = (3.0, 4.0)  # kW at most, per agent
AGENTS = ("living", "kitchen")


def weather(random, episodes):
    """Outside temperature and price of every half hour, (episodes, STEPS + 1)."""
    hour = np.arange(STEPS + 1) / 2
    mean, swing = random.uniform(-5, 10, (episodes, 1)), random.uniform(2, 6, (episodes, 1))
    outside = mean + swing * np.sin((hour - 9) / 24 * 2 * np.pi)
    price = 0.2 + 0.25 * ((hour > 6.5) & (hour < 9) | (hour > 17) & (hour < 20.5))
    return outside, np.broadcast_to(price, outside.shape)


def play(act, episodes, seed):
    """Episodes of a controller `act(observations, random)`, all at once."""
    random = np.random.default_rng(seed)
    outside, price = weather(random, episodes)
    rooms = random.uniform(16, 22, (episodes, 2))
    seen, done, paid = [[], []], [[], []], []
    for t in range(STEPS + 1):
        clock = np.exp(2j * np.pi * t / STEPS) * np.ones(episodes)
        shared = [outside[:, t], price[:, t], clock.imag, clock.real]
        now = [np.stack([rooms[:, i], *shared], axis=1).astype(np.float32) for i in range(2)]
        actions = [np.asarray(a, np.float32) for a in act(now, random)]
        for i in range(2):
            seen[i].append(now[i])
            done[i].append(actions[i])
        if t == STEPS:
            break
        heat, window = np.stack([a[:, 0] for a in actions], axis=1), actions[1][:, 1]
        loss = 0.05 * (rooms - outside[:, t, None])
        loss[:, 1] += 0.2 * window * (rooms[:, 1] - outside[:, t])
        loss -= 0.08 * (rooms[:, ::-1] - rooms)  # what the other room gives
        rooms = rooms + 0.35 * heat - loss + random.normal(0, 0.05, rooms.shape)
        cold = np.maximum(20 - rooms, 0) + np.maximum(rooms - 23, 0)
        bill, stuffy = price[:, t] * heat.sum(axis=1), 0.3 * (1 - window)
        paid.append(-(cold**2).sum(axis=1) - bill - stuffy)
    return *([np.stack(x, axis=1) for x in part] for part in (seen, done)), np.stack(paid, axis=1)


def thermostats(now, random):
    """More heat the colder the room, and a window that is opened at whim."""
    wish = [0.9 * (20.5 - x[:, :1]) + 1 + random.normal(0, 0.6, (len(x), 1)) for x in now]
    heat = [np.clip(w, 0, most) for w, most in zip(wish, HEAT, strict=True)]
    window = np.clip(random.normal(0.2, 0.3, heat[1].shape), 0, 1)
    return heat[0], np.concatenate([heat[1], window], axis=1)


def log(episodes, seed=0):
    seen, done, paid = play(thermostats, episodes, seed)
    named = lambda parts, e: {a: x[e] for a, x in zip(AGENTS, parts, strict=True)}  # noqa: E731
    return spacql.Dataset.from_episodes(
        [{"observations": named(seen, e), "actions": named(done, e), "rewards": paid[e]}
         for e in range(episodes)],
        # Bounds per agent, in the log's own units: kW, and how wide the window is open.
        action_low=[0.0, (0.0, 0.0)],
        action_high=[HEAT[0], (HEAT[1], 1.0)],
        task="thermostat",
    )  # fmt: skip


def main(
    out: Path = Path("thermostat"),
    episodes: int = 400,
    level: Literal["quick", "normal", "thorough"] = "quick",
    keep: Path | None = None,
) -> None:
    found = spacql.fit(log(episodes), out, level=level, quiet=False, tell=print)
    print(found.result["words"])

    def tried(team):
        act = thermostats if team is None else lambda now, _: team.act(now)
        return play(act, 2000, seed=1)[2].sum(axis=1)

    command = f"python examples/thermostat.py --out {out.name}"
    truth.compare(found, tried, command, keep=keep)


if __name__ == "__main__":
    tyro.cli(main)
