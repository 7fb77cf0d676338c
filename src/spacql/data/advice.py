"""What is odd about a log, and what to do with it next, in sentences."""

import numpy as np

from spacql.data.dataset import Dataset

ROWS = 20_000  # that are looked at
FEW, LEAST = 50, 10  # episodes
RANDOM = 0.1  # share of the actions' variance that the state explains, below which they are noise


def notices(dataset: Dataset) -> list[str]:
    """One-hot actions, whole numbers, constant rewards and columns: what is no mistake of the
    format, but seldom meant."""
    transitions = dataset.transition_rows()
    some = transitions[:: max(1, len(transitions) // ROWS)]
    found = []
    for agent, actions, seen in zip(
        dataset.spec.agents, dataset.actions, dataset.observations, strict=True
    ):
        a = actions[some]
        if a.shape[1] > 1 and np.isin(a, (0, 1)).all() and (a.sum(axis=1) == 1).all():
            found.append(
                f"The actions of {agent} are one-hot: choices, not quantities. Everything here "
                "learns quantities; policies would do mixtures of the choices."
            )
        elif (a == np.round(a)).all() and len(np.unique(a)) <= 20 and np.ptp(a) > 0:
            found.append(
                f"The actions of {agent} are whole numbers ({len(np.unique(a))} different): if "
                "they name choices, policies would do what lies between them."
            )
        if (np.ptp(a, axis=0) == 0).any():
            found.append(f"{agent} never changes {_columns(np.ptp(a, axis=0) == 0)} of its action.")
        still = np.ptp(seen[some], axis=0) == 0
        if still.all():
            found.append(f"{agent} always sees the same: it can only learn one action.")
    reward = dataset.team_reward[transitions]
    if np.ptp(reward) == 0:
        found.append(
            f"Every reward is {float(reward[0]):g}: there is nothing to improve but the length of "
            "episodes. Only cloning (bc) makes sense."
        )
    elif (reward != 0).mean() < 0.01:
        found.append(
            f"Rewards are rare: {100 * (reward != 0).mean():.2g} % of the steps have one. Expect "
            "wide intervals."
        )
    if cut := left_out(dataset):
        found.append(cut)
    return found


def left_out(dataset: Dataset) -> str:
    """What the log's rows held and the dataset does not; empty if nothing."""
    count = dataset.info.get("last_steps_left_out", 0)
    if not count:
        return ""
    episodes, it = ("1 episode", "it") if count == 1 else (f"{count:,} episodes", "them")
    return (
        f"The last step of {episodes} was left out: no observation follows it. To keep {it} and "
        "the reward, bring the final observation as one more row, or mark the step as terminal if "
        "the task itself ended there."
    )


def advice(dataset: Dataset, explained: list[float], kappa: float | None, place: str) -> str:
    """One line: what fits this log, and what to run next."""
    episodes = dataset.n_episodes
    fit = f"spacql fit --data {place} --out {place}-fit"
    if episodes < LEAST:
        return (
            f"{episodes} episodes are too few to hold some out: spacql train bc --data {place} "
            "clones them; nothing better can be checked."
        )
    if np.ptp(dataset.team_reward[dataset.transition_rows()]) == 0:
        return f"Rewards never change, so cloning is all there is: spacql train bc --data {place}"
    returns = dataset.team_returns
    spread = float(returns.std()) / max(1e-9, abs(float(returns.mean())))
    broad = not explained or float(np.mean(explained)) < RANDOM
    kind = (
        "acts broadly, so that much can be learnt beyond it"
        if broad
        else "acts narrowly, so that policies must stay near it"
    )
    quality = "of mixed quality" if spread > 0.25 else "of even quality"
    together = "" if kappa is None or kappa < 0.25 else "; its agents act in concert"
    few = " (few: intervals will be wide)" if episodes < FEW else ""
    return f"{episodes:,} episodes{few} {quality}; the log {kind}{together}. Next: {fit}"


def _columns(which: np.ndarray) -> str:
    numbers = np.flatnonzero(which).tolist()
    many = "columns" if len(numbers) > 1 else "column"
    return f"{many} {', '.join(map(str, numbers))}"
