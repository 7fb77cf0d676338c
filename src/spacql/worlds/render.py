"""Pictures of the particle worlds: one moment as PNG, an episode as GIF."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jax import Array
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Rectangle

from spacql.errors import InputError
from spacql.files import new_file
from spacql.policies import Policy
from spacql.worlds.particle import State
from spacql.worlds.rollout import Trajectories, rollout
from spacql.worlds.world import is_jax

# Okabe and Ito's palette, which colour-blind readers can tell apart; agents are numbered besides.
AGENTS = ("#0072B2", "#E69F00", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
WHITE_ON = ("#0072B2", "#D55E00")  # the colours that are too dark for black numbers
PREY = "#009E73"
DARK = "#333333"
FRAME_MILLISECONDS = 120


def frame(world: Any, states: Sequence[State] | State, returns: Any = None) -> np.ndarray:
    """The last of `states` as picture (height, width, 3), the ones before it as trails.

    `returns` are the agents' rewards so far, to be written above the picture.
    """
    history = [states] if isinstance(states, State) else list(states)
    return _draw(world, history, returns, _extent(world, history))


def save_png(
    world: Any, states: Sequence[State] | State, path: Path | str, returns: Any = None
) -> None:
    """Write `frame` to a file."""
    from PIL import Image

    picture = Image.fromarray(frame(world, states, returns))
    with new_file(path) as temporary:
        picture.save(temporary, format="PNG")


def save_gif(world: Any, policy: Policy, key: Array, path: Path | str) -> None:
    """Write the first episode of `rollout(world, policy, key, ...)` as a moving picture."""
    (episode,) = rollout(world, policy, key, 1, trajectories=True)
    save_episode(world, episode, path)


def save_episode(
    world: Any, trajectories: Trajectories, path: Path | str, *, number: int = 0
) -> None:
    """Write one of the episodes in `trajectories` as a moving picture."""
    from PIL import Image

    states = states_of(world, [o[number] for o in trajectories.observations])
    rewards = trajectories.rewards[number]
    so_far = np.concatenate([np.zeros_like(rewards[:1]), np.cumsum(rewards, axis=0)])
    extent = _extent(world, states)
    pictures = [
        Image.fromarray(_draw(world, states[: t + 1], so_far[t], extent))
        for t in range(len(states))
    ]
    # One palette for all frames, from the richest one: otherwise colours flicker.
    palette = pictures[-1].quantize(256, method=Image.Quantize.MAXCOVERAGE)
    pictures = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    pause = [FRAME_MILLISECONDS] * (len(pictures) - 1) + [12 * FRAME_MILLISECONDS]
    with new_file(path) as temporary:
        pictures[0].save(
            temporary,
            format="GIF",
            save_all=True,
            append_images=pictures[1:],
            duration=pause,
            loop=0,
        )


def states_of(world: Any, observations: Sequence[np.ndarray]) -> list[State]:
    """The states of an episode, from all agents' observations (steps, size) of it.

    Agents see themselves absolutely and everything else relative to themselves, so nothing but a
    frozen prey has to be looked up in another agent's observation.
    """
    _check(world)
    velocity = [o[:, 0:2] for o in observations]
    position = [o[:, 2:4] for o in observations]
    first, own = observations[0], position[0]
    marks = len(world.bodies.landmark_size)
    landmarks = first[:, 4 : 4 + 2 * marks].reshape(-1, marks, 2) + own[:, None]
    if world.spec.prey:
        seen = 4 + 2 * marks + 2 * (len(observations) - 1)  # the prey comes last of the others
        position.append(first[:, seen : seen + 2] + own)
        velocity.append(first[:, seen + 2 : seen + 4])
    columns = np.stack(position, 1), np.stack(velocity, 1), landmarks
    return [State(*row) for row in zip(*columns, strict=True)]


def _check(world: Any) -> None:
    if not is_jax(world):
        raise InputError(f"Only the particle worlds can be drawn, not {world.spec.task!r}.")


def _extent(world: Any, states: Sequence[State]) -> float:
    """Half the width of a square that holds everything that happens."""
    furthest = max(float(np.abs(state.position).max()) for state in states)
    return max(1.2 * world.extent, furthest + 0.2)


def _draw(world: Any, history: Sequence[State], returns: Any, extent: float) -> np.ndarray:
    _check(world)
    figure = Figure(figsize=(4.8, 5.4), dpi=100)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0.02, 0.115, 0.96, 0.8233))
    axes.set(xlim=(-extent, extent), ylim=(-extent, extent), aspect="equal", xticks=(), yticks=())
    for spine in axes.spines.values():
        spine.set_color("#BBBBBB")
    start = world.extent
    axes.add_patch(
        Rectangle(
            (-start, -start), 2 * start, 2 * start, fill=False, color="#CCCCCC", linestyle="--"
        )
    )
    axes.text(-start, start, "start area", color="#999999", fontsize=7, va="bottom")
    state = history[-1]
    kinds: dict[str, list[str]] = {}
    for place, size, look in zip(
        np.asarray(state.landmarks), world.bodies.landmark_size, _looks(world), strict=True
    ):
        _landmark(axes, look, place, size)
    path = np.stack([np.asarray(past.position) for past in history])  # (steps, agents, 2)
    chased = world.spec.task in ("tag", "world")
    for agent, size in enumerate(world.bodies.size):
        is_prey = chased and agent == len(world.bodies.size) - 1
        color = PREY if is_prey else AGENTS[agent % len(AGENTS)]
        _trail(axes, path[:, agent], color)
        _agent(axes, path[-1, agent], size, color, "" if is_prey else str(agent + 1), extent)
        kinds.setdefault("prey" if is_prey else "predators" if chased else "agents", []).append(
            color
        )
    _words(figure, world, len(history) - 1, returns)
    _legend(figure, kinds, dict.fromkeys(_looks(world)))
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _looks(world: Any) -> tuple[str, ...]:
    count = len(world.bodies.landmark_size)
    return (world.looks * count)[:count]


LOOKS: dict[str, dict[str, Any]] = {
    "landmark": {"marker": "X", "color": DARK, "markersize": 11, "markeredgecolor": "white"},
    "obstacle": {"marker": "o", "color": "#777777", "markersize": 11},
    "forest": {"marker": "o", "color": "#B7DDB0", "markersize": 11, "markeredgecolor": "#5A9A50"},
    "food": {"marker": "D", "color": "#F0E442", "markersize": 7, "markeredgecolor": DARK},
}


def _landmark(axes: Any, look: str, place: Any, size: float) -> None:
    if look == "obstacle":
        axes.add_patch(Circle(place, size, facecolor="#777777", edgecolor=DARK, zorder=2))
    elif look == "forest":
        axes.add_patch(
            Circle(place, size, facecolor="#B7DDB0", edgecolor="#5A9A50", hatch="..", zorder=1)
        )
    else:
        # Above the agents: a landmark that is covered must still be seen.
        axes.plot(*place, linestyle="none", zorder=6, **LOOKS[look])


def _agent(axes: Any, place: Any, size: float, color: str, name: str, extent: float) -> None:
    axes.add_patch(Circle(place, size, facecolor=color, edgecolor=DARK, alpha=0.85, zorder=5))
    if name:
        x, y = place
        if size > 0.08 * extent:
            y += 0.55 * size  # leaves the middle of a large disc to a landmark
        ink = "white" if color in WHITE_ON else "black"
        axes.text(
            x, y, name, ha="center", va="center", fontsize=8, weight="bold", color=ink, zorder=7
        )
    else:  # the prey is small: a star makes it seen
        axes.plot(*place, marker="*", color=color, markeredgecolor="black", markersize=15, zorder=6)


def _trail(axes: Any, path: np.ndarray, color: str) -> None:
    """A line that fades with age."""
    if len(path) > 1:
        segments = np.stack([path[:-1], path[1:]], axis=1)
        alpha = np.linspace(0.1, 0.9, len(segments)).tolist()
        axes.add_collection(
            LineCollection(
                list(segments), colors=[(color, a) for a in alpha], linewidths=2, zorder=4
            )
        )


def _words(figure: Figure, world: Any, step: int, returns: Any) -> None:
    spec = world.spec
    figure.text(0.03, 0.96, f"{spec.task}   step {step} of {spec.horizon}", fontsize=11)
    if returns is None:
        return
    returns = np.asarray(returns)
    if spec.agents[-1] == "prey":
        words = f"predators {returns[0]:.1f}, prey {returns[-1]:.1f}"
    else:
        words = f"reward so far {returns.mean():.1f}"
    figure.text(0.97, 0.96, words, fontsize=11, ha="right")


def _legend(figure: Figure, kinds: dict[str, list[str]], looks: dict[str, None]) -> None:
    entries: dict[str, Any] = {
        kind: tuple(_dot("*" if kind == "prey" else "o", color) for color in colors[:3])
        for kind, colors in kinds.items()
    }
    entries |= {look: Line2D([], [], linestyle="none", **LOOKS[look]) for look in looks}
    figure.legend(
        entries.values(),
        entries.keys(),
        loc="lower center",
        ncols=len(entries),
        frameon=False,
        fontsize=9,
        handlelength=2.4,
        handletextpad=0.5,
        columnspacing=1.0,
        bbox_to_anchor=(0.5, 0.01),
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0.1)},
    )


def _dot(marker: str, color: str) -> Line2D:
    size = 13 if marker == "*" else 8
    return Line2D(
        [], [], linestyle="none", marker=marker, color=color, markersize=size, markeredgecolor=DARK
    )
