"""A log of two heated rooms, from nothing to a better controller, and the truth at the end.

Two agents each heat one room of a house. Each sees its own room's temperature, the temperature
outside, the price of energy now and the hour; the second also opens a window. They share the bill
and the comfort. The log was made by ordinary thermostats that know nothing of prices.

    python examples/thermostat.py --out thermostat

`spacql.fit` sees the log alone. The simulator below is asked only afterwards, to show whether what
was promised is true.
"""

import argparse
from pathlib import Path

import numpy as np

import spacql

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
        hour = 2 * np.pi * t / STEPS
        shared = [outside[:, t], price[:, t], np.full(episodes, np.sin(hour)),
                  np.full(episodes, np.cos(hour))]  # fmt: skip
        now = [np.stack([rooms[:, i], *shared], axis=1).astype(np.float32) for i in range(2)]
        actions = [np.asarray(a, np.float32) for a in act(now, random)]
        for i in range(2):
            seen[i].append(now[i])
        if t == STEPS:
            break
        for i in range(2):
            done[i].append(actions[i])
        heat = np.stack([actions[0][:, 0], actions[1][:, 0]], axis=1)
        window = actions[1][:, 1]
        loss = 0.05 * (rooms - outside[:, t, None])
        loss[:, 1] += 0.2 * window * (rooms[:, 1] - outside[:, t])
        between = 0.08 * (rooms[:, ::-1] - rooms)
        rooms = rooms + 0.35 * heat - loss + between + random.normal(0, 0.05, rooms.shape)
        cold = np.maximum(20 - rooms, 0) + np.maximum(rooms - 23, 0)
        bill = price[:, t] * heat.sum(axis=1)
        stuffy = 0.3 * (1 - window)
        paid.append(-(cold**2).sum(axis=1) - bill - stuffy)
    stack = lambda parts: np.stack(parts, axis=1)  # noqa: E731
    return [stack(x) for x in seen], [stack(x) for x in done], stack(paid)


def thermostats(now, random):
    """More heat the colder the room, and a window that is opened at whim."""
    wish = [0.9 * (20.5 - room[:, :1]) + 1.0 for room in now]
    heat = [
        np.clip(w + random.normal(0, 0.6, w.shape), 0, most)
        for w, most in zip(wish, HEAT, strict=True)
    ]
    window = np.clip(random.normal(0.2, 0.3, heat[1].shape), 0, 1)
    return heat[0], np.concatenate([heat[1], window], axis=1)


def log(episodes, seed=0):
    seen, done, paid = play(thermostats, episodes, seed)
    return spacql.Dataset.from_episodes(
        [
            {
                "observations": {a: seen[i][e] for i, a in enumerate(AGENTS)},
                "actions": {a: done[i][e] for i, a in enumerate(AGENTS)},
                "rewards": paid[e],
            }
            for e in range(episodes)
        ],
        # Bounds per agent, in the log's own units: kW, and how wide the window is open.
        action_low=[0.0, (0.0, 0.0)],
        action_high=[HEAT[0], (HEAT[1], 1.0)],
        task="thermostat",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("thermostat"))
    parser.add_argument("--episodes", type=int, default=400)
    parser.add_argument("--level", default="quick", choices=["quick", "normal", "thorough"])
    options = parser.parse_args()
    found = spacql.fit(log(options.episodes), options.out, level=options.level, quiet=False,
                       tell=print)  # fmt: skip
    print(found.result["words"])

    true_log = play(thermostats, 2000, seed=1)[2].sum(axis=1).mean()
    print(f"\nIn truth: the thermostats {true_log:.1f}")
    for row in found.table:
        policy = spacql.Policy.load(options.out / "runs" / row["label"])
        true = play(lambda now, _, p=policy: p.act(now), 2000, seed=1)[2].sum(axis=1).mean()
        mark = "  <- chosen" if row["label"] == found.chosen else ""
        print(f"  {row['label']:<12} {true:8.1f}   (expected {row['mean']:.1f}, "
              f"{row['low']:.1f} to {row['high']:.1f}){mark}")  # fmt: skip


if __name__ == "__main__":
    main()
