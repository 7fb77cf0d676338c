"""Datasets from people's own logs: flat arrays or a list of episodes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spacql.data import checks
from spacql.data.checks import OutOfBounds, Rows
from spacql.data.layout import Logged, Options, build
from spacql.errors import DataError

if TYPE_CHECKING:
    from spacql.data.dataset import Dataset

EPISODE_KEYS = ("observations", "actions", "rewards", "terminated", "states", "team_reward")


def from_arrays(
    observations: Any,
    actions: Any,
    rewards: Any,
    *,
    terminals: Any = None,
    timeouts: Any = None,
    next_observations: Any = None,
    next_actions: Any = None,
    states: Any = None,
    next_states: Any = None,
    team_reward: Any = None,
    agents: Sequence[str] | None = None,
    action_low: Any = -1.0,
    action_high: Any = 1.0,
    bounds: OutOfBounds = "refuse",
    task: str = "custom",
    horizon: int | None = None,
    info: Mapping[str, Any] | None = None,
) -> "Dataset":
    """A dataset from logs in which row after row is one transition.

    **Arguments:**

    - `observations`, `actions`: a mapping from agent names or a list, with one array
      (rows, size) an agent; or one array (rows, agents, size).
    - `rewards`: the same with (rows,) an agent; or (rows, agents); or (rows,) if shared.
    - `terminals`: (rows,) true where the task itself ended after the row.
    - `timeouts`: (rows,) true where something else ended the episode: a time limit, the log.
      Together they must mark the last row of every episode.
    - `next_observations`, `next_actions`, `next_states`: what followed each row. Only the last
      row of an episode needs them; elsewhere they must agree with the next row.
    - `states`: (rows, size) a global state, if there is one.
    - `team_reward`: (rows,) what the team is paid; the mean over the agents if not given.
    - `action_low`, `action_high`: a number, or one entry (number or vector) an agent.
    - `bounds`: what to do with actions outside: "refuse"; "clip"; or "rescale", which takes the
      range found in the data, per coordinate, for the bounds. Policies act in the log's own units
      all the same.
    - `horizon`: steps of an episode, the longest one if not given.

    Where a time limit ends an episode and no next observation is given, its last row serves as
    the final observation and its reward is left out, since nothing is known of what followed.
    Rows after the last mark are kept as an episode that a time limit ended.
    """
    names = checks.agent_names(observations, agents)
    logged = _read(names, observations, actions, rewards, team_reward, states)
    rows = len(logged.observations[0])
    terminal = checks.flags("terminals", terminals, rows)
    end = terminal | checks.flags("timeouts", timeouts, rows)
    if not end.any():
        raise DataError(
            "There is no complete episode: neither terminals nor timeouts is true in any row. "
            "Mark the last row of every episode."
        )
    end[-1] = True
    if next_states is None and states is not None and next_observations is not None:
        raise DataError("next_observations are given, and states, but no next_states.")
    if next_observations is None:
        next_actions = next_states = None  # an episode then ends with its last logged row

    def final(field: str, now: Sequence[np.ndarray], following: Any) -> list[np.ndarray] | None:
        if following is None:
            return None
        return _final_rows(field, names, now, following, end)

    return build(
        logged,
        final("next_observations", logged.observations, next_observations),
        final("next_actions", logged.actions, next_actions),
        None if logged.states is None else final("next_states", [logged.states], next_states),
        names,
        Rows(np.flatnonzero(end), episodes=False),
        terminal[end],
        Options(action_low, action_high, bounds, task, horizon, info),
    )


def from_episodes(
    episodes: Sequence[Mapping[str, Any]],
    *,
    agents: Sequence[str] | None = None,
    action_low: Any = -1.0,
    action_high: Any = 1.0,
    bounds: OutOfBounds = "refuse",
    task: str = "custom",
    horizon: int | None = None,
    info: Mapping[str, Any] | None = None,
) -> "Dataset":
    """A dataset from a list of episodes, each a mapping.

    - `"observations"`: as in `from_arrays`, T + 1 rows for T steps; or T rows if no episode's
      final observation was logged.
    - `"actions"`: T rows; or T + 1 if it is known what the behaviour would have done at the
      final observation of every episode.
    - `"rewards"`: T rows. `"team_reward"`: T rows, optional.
    - `"terminated"`: whether the task itself ended the episode; false if not given.
    - `"states"`: rows like the observations, optional.

    The other arguments are those of `from_arrays`.
    """
    episodes = checks.sequence("episodes", episodes)
    if not episodes:
        raise DataError("There is no complete episode: the list is empty.")
    names: tuple[str, ...] = ()
    logs: list[Logged] = []
    finals: list[Logged] = []
    ended: list[bool] = []
    for number, episode in enumerate(episodes):
        try:
            _check_keys(episode)
            names = names or checks.agent_names(episode["observations"], agents)
            log, final = _read_episode(episode, names)
            flag = checks.array_of("terminated", episode.get("terminated", False))
            if flag.size != 1:
                raise DataError(
                    f"terminated has shape {flag.shape}; expected one True or False an episode: "
                    "whether the task itself ended it."
                )
            ended.append(bool(checks.flags("terminated", flag.reshape(-1), 1)[0]))
        except DataError as error:
            raise DataError(f"Episode {number}: {error}") from error
        logs.append(log)
        finals.append(final)
    logged, final = _join(logs), _join(finals)
    last = np.cumsum([len(log.team_reward) for log in logs]) - 1
    return build(
        logged,
        final.observations or None,
        (final.actions or None) if final.observations else None,
        None if final.states is None else [final.states],
        names,
        Rows(last, episodes=True),
        np.array(ended),
        Options(action_low, action_high, bounds, task, horizon, info),
    )


def _read(
    names: Sequence[str],
    observations: Any,
    actions: Any,
    rewards: Any,
    team_reward: Any,
    states: Any,
) -> Logged:
    """Everything in one shape, with equal numbers of rows."""
    seen = checks.per_agent("observations", observations, names)
    acted = checks.per_agent("actions", actions, names)
    checks.continuous(acted, names)
    paid = checks.reward_parts(rewards, names)
    state = [] if states is None else [checks.as_array("states", states, 2)]
    team = [] if team_reward is None else [checks.as_array("team_reward", team_reward, 1)]
    fields = {
        "observations": seen,
        "actions": acted,
        "rewards": paid,
        "states": state,
        "team_reward": team,
    }
    checks.equal_rows(len(seen[0]), fields, names)
    if len(seen[0]) == 0:
        raise DataError("There is no complete episode: the arrays are empty.")
    joint = np.stack(paid, axis=1)
    return Logged(
        seen, acted, joint, team[0] if team else joint.mean(axis=1), state[0] if state else None
    )


def _read_episode(episode: Mapping[str, Any], names: Sequence[str]) -> tuple[Logged, Logged]:
    """One episode's transitions, and apart from them its final row, as far as it was logged."""
    steps = len(checks.reward_parts(episode["rewards"], names)[0])

    for field in ("observations", "actions"):
        parts = checks.per_agent(field, episode[field], names)
        for name, part in zip(names, parts, strict=True):
            if len(part) not in (steps, steps + 1):
                raise DataError(
                    f"rewards has {steps} rows and {field} of {name!r} has {len(part)}: an episode "
                    "of T steps has T rewards, T or T + 1 actions, and T + 1 or T observations."
                )

    def cut(parts: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        if any(len(part) != steps + 1 for part in parts):
            return parts, []
        return [part[:-1] for part in parts], [part[-1:] for part in parts]

    seen, final_seen = cut(checks.per_agent("observations", episode["observations"], names))
    acted, final_acted = cut(checks.per_agent("actions", episode["actions"], names))
    state, final_state = None, None
    if episode.get("states") is not None:
        whole, ends = cut([checks.as_array("states", episode["states"], 2)])
        if bool(ends) != bool(final_seen):
            raise DataError("states and observations must have the same number of rows.")
        state, final_state = whole[0], ends[0] if ends else None
    log = _read(names, seen, acted, episode["rewards"], episode.get("team_reward"), state)
    none = np.zeros((0,))
    return log, Logged(final_seen, final_acted, none[:, None], none, final_state)


def _check_keys(episode: Any) -> None:
    if not isinstance(episode, Mapping):
        raise DataError(f"expected a mapping, found a {type(episode).__name__}.")
    unknown = [str(key) for key in episode if key not in EPISODE_KEYS]
    missing = [key for key in ("observations", "actions", "rewards") if key not in episode]
    if unknown or missing:
        what = f"no {missing[0]!r}" if missing else f"unknown key {unknown[0]!r}"
        raise DataError(f"{what}; an episode has the keys {', '.join(EPISODE_KEYS)}.")


def _join(logs: Sequence[Logged]) -> Logged:
    """One after the other. All must have the same fields in the same sizes."""

    def shapes(log: Logged) -> list[list[tuple[int, ...]]]:
        parts = (log.observations, log.actions, [] if log.states is None else [log.states])
        return [[array.shape[1:] for array in part] for part in parts]

    for number, log in enumerate(logs):
        fields = zip(
            ("observations", "actions", "states"), shapes(logs[0]), shapes(log), strict=True
        )
        for field, first, here in fields:
            if first != here:
                raise DataError(
                    f"Episode {number}: its {field} differ in shape from those of episode 0, or "
                    "one of the two has a final row and the other has not."
                )
    return Logged(
        [np.concatenate(parts) for parts in zip(*(log.observations for log in logs), strict=True)],
        [np.concatenate(parts) for parts in zip(*(log.actions for log in logs), strict=True)],
        np.concatenate([log.rewards for log in logs]),
        np.concatenate([log.team_reward for log in logs]),
        None
        if logs[0].states is None
        else np.concatenate([log.states for log in logs if log.states is not None]),
    )


def _final_rows(
    field: str, names: Sequence[str], now: Sequence[np.ndarray], following: Any, end: np.ndarray
) -> list[np.ndarray]:
    """What followed each episode's last row. Elsewhere it must agree with the next row."""
    shared = field == "next_states"
    parts = (
        [checks.as_array(field, following, 2)]
        if shared
        else checks.per_agent(field, following, names)
    )
    inside = np.flatnonzero(~end)
    for number, (part, current) in enumerate(zip(parts, now, strict=True)):
        whose = field if shared else f"{field} of {names[number]!r}"
        if part.shape != current.shape:
            raise DataError(f"{whose} has shape {part.shape}; expected {current.shape}.")
        agree = np.isclose(part[inside], current[inside + 1], rtol=1e-4, atol=1e-5, equal_nan=True)
        broken = inside[~agree.all(axis=1)]
        if len(broken):
            raise DataError(
                f"{whose} at row {broken[0]} is not what row {broken[0] + 1} holds "
                f"({len(broken)} such rows). If an episode ends there, mark it in timeouts or "
                "terminals."
            )
    return [part[end] for part in parts]
