"""What is in a log: sizes, returns, how the actions are spread, how correlated the agents are."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spacql.data.advice import advice, notices
from spacql.data.correlation import LEAST_ROWS, ExcessCorrelation, excess_correlation
from spacql.data.dataset import Dataset, row_chunks
from spacql.errors import InputError
from spacql.files import new_file
from spacql.reference import Reference

BINS = 20  # of a coordinate's range
INDEPENDENT, CORRELATED = 0.05, 0.25  # where the words for the excess correlation change


@dataclass(frozen=True)
class AgentUse:
    """How one agent's action space is used."""

    agent: str
    observation_size: int
    action_size: int
    used: float  # effective share of the range, exp(entropy) / bins, mean over coordinates
    at_bounds: float  # share of coordinates within 1 % of a bound
    histogram: tuple[tuple[float, ...], ...]  # per coordinate, shares of BINS bins
    explained: float | None  # share of the variance of its actions that the state explains


@dataclass(frozen=True)
class Inspection:
    name: str
    task: str
    episodes: int
    transitions: int
    targets: int  # transitions whose next joint action is known or not needed
    terminated: int  # episodes that the task ended
    lengths: tuple[int, int]  # shortest and longest episode
    state_size: int
    returns: dict[str, float]  # of the team: mean, std, min, median, max
    return_histogram: dict[str, list[float]]  # counts, edges
    score: float | None  # mean return on the scale of the reference scores
    agents: tuple[AgentUse, ...]
    correlation: ExcessCorrelation | None  # None: too few transitions
    meaning: str  # of the correlation, for partial replacement
    notices: tuple[str, ...]  # what is odd about the log
    advice: str  # what fits it, and what to run next

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def inspect(dataset: Dataset, *, seed: int = 0, place: str = "") -> Inspection:
    """Look at a dataset. The estimate of the correlation takes some seconds; see there how.

    `place` is what the commands of the advice call the dataset: its name if not given.
    """
    team = dataset.team_returns
    counts, edges = np.histogram(team, bins=min(30, max(5, int(np.sqrt(len(team))))))
    lengths = np.diff(dataset.starts) - 1
    correlation = excess_correlation(dataset, seed=seed)
    reference = dataset.info.get("reference")
    return Inspection(
        name=str(dataset.info.get("name", dataset.spec.task)),
        task=dataset.spec.task,
        episodes=dataset.n_episodes,
        transitions=dataset.n_transitions,
        targets=len(dataset.target_rows()),
        terminated=int(dataset.terminated.sum()),
        lengths=(int(lengths.min()), int(lengths.max())),
        state_size=dataset.spec.state_size,
        returns={
            "mean": float(team.mean()),
            "std": float(team.std()),
            "min": float(team.min()),
            "median": float(np.median(team)),
            "max": float(team.max()),
        },
        return_histogram={"counts": counts.tolist(), "edges": edges.tolist()},
        score=None if not reference else _score(float(team.mean()), reference),
        agents=_use(dataset, correlation),
        correlation=correlation,
        meaning=meaning(None if correlation is None else correlation.kappa),
        notices=tuple(notices(dataset)),
        advice=advice(
            dataset,
            [] if correlation is None else list(correlation.explained),
            None if correlation is None else correlation.kappa,
            (place or str(dataset.info.get("name", dataset.spec.task))).rstrip("/"),
        ),
    )


def meaning(kappa: float | None) -> str:
    """What an excess correlation means for replacing some agents' actions and keeping others'."""
    if kappa is None:
        return (
            f"Fewer than {LEAST_ROWS:,} transitions say nothing about how correlated the agents "
            "are, and so nothing about what partial replacement would break."
        )
    if kappa < INDEPENDENT:
        return (
            f"Given the state, the agents act independently (excess correlation {kappa:z.2f}): a "
            "joint action of which some parts are replaced is one the data could have held, and "
            "partial replacement loses nothing to broken coordination."
        )
    if kappa < CORRELATED:
        return (
            f"Given the state, the agents are somewhat correlated (excess correlation {kappa:z.2f}"
            "): replacing some of them breaks part of their coordination. In the bound of "
            f"Lemma 2 that adds about {kappa:z.2f} or more to the shift, whatever the number of "
            "agents."
        )
    return (
        f"Given the state, the agents are strongly correlated (excess correlation {kappa:z.2f}): "
        "a replaced action often meets partners that were answering another one, so the logged "
        "parts say less about the value. Compare with full replacement before trusting a mixture."
    )


def _score(value: float, reference: dict[str, Any]) -> float | None:
    try:
        return Reference.from_json(reference).score(value)
    except InputError:
        return None


def _use(dataset: Dataset, correlation: ExcessCorrelation | None) -> tuple[AgentUse, ...]:
    spec = dataset.spec
    low = np.concatenate(spec.action_low).astype(np.float32)
    high = np.concatenate(spec.action_high).astype(np.float32)
    transition = np.ones(dataset.n_rows, bool)
    transition[dataset.starts[1:] - 1] = False
    counts = np.zeros((len(low), BINS))
    near = np.zeros(len(low))
    for chunk in row_chunks(dataset.n_rows):
        unit = (dataset.joint_actions[chunk][transition[chunk]] - low) / (high - low)  # in [0, 1]
        bins = np.clip((unit * BINS).astype(int), 0, BINS - 1)
        near += ((unit < 0.005) | (unit > 0.995)).sum(axis=0)
        for column in range(len(low)):
            counts[column] += np.bincount(bins[:, column], minlength=BINS)
    shares = counts / dataset.n_transitions
    entropy = -np.sum(shares * np.log(np.where(shares > 0, shares, 1)), axis=1)
    near /= dataset.n_transitions
    uses, end = [], 0
    for i, (agent, size) in enumerate(zip(spec.agents, spec.action_sizes, strict=True)):
        columns = slice(end, end + size)
        end += size
        uses.append(
            AgentUse(
                agent=agent,
                observation_size=spec.observation_sizes[i],
                action_size=size,
                used=float(np.exp(entropy[columns]).mean() / BINS),
                at_bounds=float(near[columns].mean()),
                histogram=tuple(tuple(map(float, row)) for row in shares[columns]),
                explained=None if correlation is None else correlation.explained[i],
            )
        )
    return tuple(uses)


def figure(inspection: Inspection, file: Path | str) -> None:
    """Returns, the agents' use of their actions, and their pairwise correlation, as a picture."""
    from matplotlib.figure import Figure

    plot = Figure(figsize=(11, 3.6), layout="constrained")
    returns, actions, pairs = plot.subplots(1, 3, width_ratios=[1.2, 1.3, 1])
    counts, edges = (np.array(inspection.return_histogram[k]) for k in ("counts", "edges"))
    returns.stairs(counts, edges, fill=True, color="#4c78a8")
    mean = inspection.returns["mean"]
    returns.axvline(mean, color="black", linewidth=1)
    returns.set_title(
        f"Returns: mean {mean:z.1f}, std {inspection.returns['std']:z.1f}", fontsize=10
    )
    returns.set_xlabel("team return")
    returns.set_ylabel("episodes")

    rows, labels = [], []
    for use in inspection.agents:
        for coordinate, shares in enumerate(use.histogram):
            rows.append(shares)
            labels.append(f"{use.agent} [{coordinate}]")
    # Even use is a pale picture; a dark spot is where an agent stays.
    darkest = max(4 / BINS, np.max(rows))
    image = actions.imshow(
        rows, aspect="auto", cmap="Blues", vmin=0, vmax=darkest, extent=(0, 1, len(rows), 0)
    )
    actions.set_yticks(np.arange(len(rows)) + 0.5, labels, fontsize=8 if len(rows) < 13 else 5)
    actions.set_xticks([0, 0.5, 1], ["low", "middle", "high"])
    actions.set_title("Where each action coordinate lies", fontsize=10)
    plot.colorbar(image, ax=actions, label="share of rows", shrink=0.9)

    if inspection.correlation is None:
        pairs.axis("off")
        pairs.set_title("Too few transitions\nfor the correlation", fontsize=10)
    else:
        _draw_pairs(plot, pairs, inspection.correlation, [use.agent for use in inspection.agents])
    plot.suptitle(
        f"{inspection.name}: {inspection.transitions:,} transitions, "
        f"{inspection.episodes:,} episodes",
        fontsize=11,
    )
    with new_file(file) as temporary:
        plot.savefig(temporary, format="png", dpi=130)


def _draw_pairs(plot: Any, pairs: Any, correlation: ExcessCorrelation, names: list[str]) -> None:
    pairwise = np.array(correlation.pairwise)
    np.fill_diagonal(pairwise, np.nan)  # an agent with itself says nothing
    shown = pairs.imshow(pairwise, cmap="Oranges", vmin=0, vmax=1)
    pairs.set_xticks(range(len(names)), names, fontsize=8, rotation=30, ha="right")
    pairs.set_yticks(range(len(names)), names, fontsize=8)
    if len(names) <= 6:
        for (i, j), value in np.ndenumerate(pairwise):
            if i != j:
                color = "white" if value > 0.6 else "black"
                pairs.text(j, i, f"{value:z.2f}", ha="center", va="center", fontsize=8, color=color)
    pairs.set_title(
        f"Correlation given the state\nexcess {correlation.kappa:z.2f} "
        f"± {1.96 * correlation.standard_error:z.2f}",
        fontsize=10,
    )
    plot.colorbar(shown, ax=pairs, label="largest |correlation|", shrink=0.8)
