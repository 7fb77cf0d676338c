"""From transitions as they were brought to episodes as they are stored, each with its final row."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spacql.data import checks
from spacql.data.checks import OutOfBounds, Rows
from spacql.errors import DataError
from spacql.spec import Spec

if TYPE_CHECKING:
    from spacql.data.dataset import Dataset


class Logged(NamedTuple):
    """What was brought, a row a transition."""

    observations: list[np.ndarray]  # per agent (rows, size)
    actions: list[np.ndarray]
    rewards: np.ndarray  # (rows, agents)
    team_reward: np.ndarray  # (rows,)
    states: np.ndarray | None  # (rows, size)


class Options(NamedTuple):
    """The arguments that `from_arrays`, which explains them, and `from_episodes` share."""

    action_low: Any
    action_high: Any
    bounds: OutOfBounds
    task: str
    horizon: int | None
    info: Mapping[str, Any] | None


def build(
    logged: Logged,
    final_observations: list[np.ndarray] | None,  # per agent (episodes, size)
    final_actions: list[np.ndarray] | None,
    final_states: list[np.ndarray] | None,
    names: tuple[str, ...],
    where: Rows,
    terminated: np.ndarray,
    options: Options,
) -> "Dataset":
    """Check the values and give every episode its final row."""
    from spacql.data.dataset import Dataset  # which offers this as its front door

    if not isinstance(options.task, str) or not options.task:
        raise DataError("task must be the name of a world, or a word such as 'custom'.")
    if not isinstance(options.info, Mapping | None):
        raise DataError("info must be a mapping.")

    def checked(field: str, parts: Sequence[np.ndarray], final: Any) -> list[np.ndarray]:
        """Final rows stand behind all others here."""
        whole = (
            parts if final is None else list(map(np.concatenate, zip(parts, final, strict=True)))
        )
        agents = names if len(parts) == len(names) and field != "states" else (None,)
        return [
            checks.finite(field, x, where, agent) for x, agent in zip(whole, agents, strict=True)
        ]

    observations = checked("observations", logged.observations, final_observations)
    actions = checked("actions", logged.actions, final_actions)
    rewards = checked("rewards", list(logged.rewards.T), None)
    team = checks.finite("team_reward", logged.team_reward, where)
    states = None if logged.states is None else checked("states", [logged.states], final_states)[0]
    sizes = [x.shape[1] for x in actions]
    low = checks.action_bounds("action_low", options.action_low, names, sizes)
    high = checks.action_bounds("action_high", options.action_high, names, sizes)
    actions, low, high, record = checks.within_bounds(
        actions, low, high, names, where, options.bounds
    )

    source, starts, kept = _layout(where.last, terminated, final_observations is not None)
    if not kept.any():
        raise DataError(
            "There is no complete episode: each has one row, and no next observation is given."
        )
    final = starts[1:] - 1
    cut = 0 if final_observations is not None else int((~terminated).sum())
    terminated = terminated[kept]
    # Without next observations the last row of an episode that time ended became its final row.
    known = (
        ~terminated
        if final_observations is None
        else np.full(len(final), final_actions is not None)
    )

    def laid(array: np.ndarray) -> np.ndarray:
        return array[np.minimum(source, len(array) - 1)]

    joint_actions, joint_rewards, team = (
        laid(np.concatenate(actions, axis=1)),
        laid(np.stack(rewards, axis=1)),
        laid(team),
    )
    joint_actions[final[~known]] = 0
    joint_rewards[final] = 0
    team[final] = 0
    longest = int((np.diff(starts) - 1).max())
    horizon = (
        longest if options.horizon is None else checks.whole_number("horizon", options.horizon)
    )
    if horizon < longest:
        raise DataError(f"horizon is {horizon}, and an episode has {longest} steps.")
    dataset = Dataset(
        spec=Spec(
            task=options.task,
            agents=names,
            observation_sizes=tuple(x.shape[1] for x in observations),
            action_low=low,
            action_high=high,
            horizon=horizon,
            state_size=0 if states is None else states.shape[1],
        ),
        joint_observations=laid(np.concatenate(observations, axis=1)),
        joint_actions=joint_actions,
        rewards=joint_rewards,
        team_reward=team,
        states=None if states is None else laid(states),
        starts=starts,
        terminated=terminated,
        final_action_known=known,
        info={
            "name": options.task,
            **({"actions": record} if record else {}),
            **({"last_steps_left_out": cut} if cut else {}),
            **(options.info or {}),
        },
    )
    if len(dataset.target_rows()) == 0:
        raise DataError(
            "Next actions are missing everywhere: no row's next joint action is known, and every "
            "target needs one. Bring what was done next (next_actions of from_arrays, or one more "
            "row of actions in from_episodes), or episodes of more than one step."
        )
    return dataset


def _layout(
    last: np.ndarray, terminated: np.ndarray, has_final: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which brought row goes to which stored row; offsets; which episodes were kept.

    Final rows are numbered after all others. An episode that the task ended, and whose final
    observation is not known, repeats its last one: no target ever looks at it.
    """
    rows = int(last[-1]) + 1
    lengths = np.diff(last, prepend=-1)
    added = np.full(len(last), True) if has_final else terminated
    counts = lengths + added
    kept = counts > 1
    ends = np.cumsum(counts)
    source = np.empty(ends[-1], np.int64)
    source[np.arange(rows) + np.repeat(np.cumsum(added) - added, lengths)] = np.arange(rows)
    final = rows + np.arange(len(last)) if has_final else last
    source[ends[added] - 1] = final[added]
    starts = np.concatenate([[0], np.cumsum(counts[kept])]).astype(np.int64)
    return source[np.repeat(kept, counts)], starts, kept
