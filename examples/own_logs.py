"""From your own logs to decentralised policies, with no simulator at all.

    python examples/own_logs.py

Two agents of different sizes stand for yours: a heater that sees the temperature and the price of
power, and a fan that sees the temperature and whether a window is open.
"""

from pathlib import Path

import numpy as np
import tyro

import spacql


def logged_episode(rng: np.random.Generator, steps: int = 24) -> dict[str, np.ndarray | list]:
    """What somebody recorded: one array per agent of what it saw and did, and the rewards."""
    heater_saw, fan_saw, heater_did, fan_did, rewards = [], [], [], [], []
    temperature, window = rng.normal(18, 3), float(rng.random() < 0.3)
    for hour in range(steps):
        price = 1 + 0.5 * np.sin(hour / 24 * 2 * np.pi)
        heater_saw.append([temperature / 10 - 2, price])
        fan_saw.append([temperature / 10 - 2, window])
        # The behaviour in the log: sensible, with much noise.
        heat, air = np.clip((20 - temperature) / 4 * np.array([1, -1]) + rng.normal(size=2), -1, 1)
        heater_did.append([heat])
        fan_did.append([air])
        temperature += 1.5 * heat - air - window + rng.normal(0, 0.3)
        rewards.append(-abs(temperature - 20) - 0.3 * price * max(heat, 0))
    return {
        "observations": [np.array(heater_saw), np.array(fan_saw)],
        "actions": [np.array(heater_did), np.array(fan_did)],
        "rewards": np.array(rewards),  # shared; one column per agent where they differ
    }


def main(
    algorithm: str = "spacql",
    episodes: int = 500,
    rounds: int = 200,
    alpha: float = 1.0,
    out: Path = Path("runs/house"),
) -> spacql.Policy:
    rng = np.random.default_rng(0)
    log = [logged_episode(rng) for _ in range(episodes)]

    # Everything is checked here: shapes, bounds, episodes that are cut short.
    dataset = spacql.Dataset.from_episodes(log, agents=["heater", "fan"], task="house")
    spacql.save_dataset(dataset, out / "data")
    print(f"{dataset.n_transitions} transitions. Look at them: spacql data inspect {out / 'data'}")

    # alpha is how strongly values outside the log are pushed down: `spacql train --help`.
    penalty = {"alpha": alpha} if algorithm != "bc" else {}
    run = spacql.train(algorithm, out / "data", rounds=rounds, out=out / "run", **penalty)
    print(run.result["note"])

    # Each agent acts on what it sees alone.
    cold = [np.array([-0.5, 1.2]), np.array([-0.5, 0.0])]  # 15 degrees, dear power, window shut
    heat, air = run.policy.act(cold)
    print(f"At 15 degrees: heater {heat[0]:+.2f}, fan {air[0]:+.2f}")
    return run.policy


if __name__ == "__main__":
    tyro.cli(main)
