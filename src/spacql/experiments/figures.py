"""The paper's figures, drawn for a two-column page: PNG and SVG, and the numbers behind them."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spacql.algorithms.config import Conservative
from spacql.errors import InputError
from spacql.evaluation import deviation
from spacql.experiments.dots import gaps, scores
from spacql.experiments.plans import Plan
from spacql.experiments.store import Store, StoredRun, mixed_data, rounded
from spacql.experiments.tables import rounds
from spacql.files import new_file

COLUMN = 3.4  # inches, of a panel
STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "svg.hashsalt": "spacql",  # the same figure gives the same bytes
}
# Okabe and Ito's colours, which everybody can tell apart; lines and markers differ too.
ORANGE, BLUE, GREEN, YELLOW = "#D55E00", "#0072B2", "#009E73", "#E69F00"
LINES = {
    "cfcql": (ORANGE, "--", "o"),
    "icql-qs": (BLUE, "-", "s"),
    "spacql": (GREEN, "-.", "^"),
}
BARS = ((BLUE, ""), (YELLOW, "////"), (ORANGE, "...."), (GREEN, "xxxx"))


def draw(plan: Plan, store: Store, out: Path | None) -> dict[str, Any]:
    """Write OUT.png and OUT.svg, if asked for. Returns the caption and the numbers."""
    with rc_context(STYLE):
        kinds = {"figure1": figure1, "figure2": figure2, "figure3": figure3, "figure4": figure4}
        kinds |= {"scores": scores, "gaps": gaps}
        figure, data = kinds[plan.name](plan, store)
        data = rounded(data)
        if out is not None:
            for suffix in (".png", ".svg"):
                with new_file(out.with_name(out.name + suffix)) as temporary:
                    metadata = {"Date": None, "Identifier": identifier(data)}
                    figure.savefig(temporary, dpi=200,
                                   metadata=metadata if suffix == ".svg" else {})  # fmt: skip
    return data


def identifier(data: Mapping[str, Any]) -> str:
    """Stands for the numbers of a figure. Its SVG holds it, so that an old one can be told."""
    return sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def stored_runs(plan: Plan, store: Store) -> list[StoredRun]:
    """All finished runs of a figure, of which there must be some."""
    runs = [run for _, m, c in plan.cells() for run in plan.stored(store, m, c)]
    if not any(run.score is not None for run in runs):
        raise InputError(
            f"No run of {plan.name} is finished in {store.results}. Without --stored they are run; "
            "--dry-run says how long that takes."
        )
    return runs


def seeds_text(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low} seed{'s' if low != 1 else ''}" if low == high else f"{low} to {high} seeds"


def ensemble_spread(run: StoredRun) -> tuple[list[int], list[float]]:
    """Rounds, and sum_k w_k u_k: the disagreement about the values that the target uses."""
    points = [point for point in run.curve if "u" in point]
    return [p["round"] for p in points], [float(np.dot(p["w"], p["u"])) for p in points]


def figure2(plan: Plan, store: Store) -> tuple[Figure, dict[str, Any]]:
    """Spread of the ensemble during training: all agents replaced against some."""
    runs = stored_runs(plan, store)
    [block] = plan.blocks
    figure = Figure(figsize=(COLUMN * len(block.columns), 2.4), layout="constrained")
    axes = figure.subplots(1, len(block.columns), squeeze=False)[0]
    series, counts = [], []
    for axis, column in zip(axes, block.columns, strict=True):
        for place, method in enumerate(block.methods):
            whole = [r for r in plan.stored(store, method, column) if r.score is not None]
            curves = [ensemble_spread(run) for run in whole]
            if not curves:
                continue
            at, values = curves[0][0], np.array([curve for _, curve in curves])
            mean, std = values.mean(axis=0), deviation(values, axis=0)
            colour, line, marker = LINES[method.algorithm]
            axis.fill_between(at, mean - std, mean + std, color=colour, alpha=0.2, linewidth=0)
            looks = {"color": colour, "linestyle": line, "marker": marker, "linewidth": 1.2}
            label = REPLACED[method.algorithm]
            axis.plot(at, mean, markersize=3, markevery=(place, 3), label=label, **looks)
            counts.append(len(curves))
            entry = {"dataset": column.dataset, "method": method.label, "seeds": len(curves)}
            numbers = {"rounds": at, "mean": mean.tolist(), "std": std.tolist()}
            series.append(entry | numbers)
        axis.set(title=column.dataset, xlabel="round", ylim=(0, None))
        if not axis.lines:
            _nothing(axis)
    axes[0].set_ylabel("std. of Q over the ensemble")
    handles = {line.get_label(): line for axis in axes for line in axis.lines}
    labels = [str(label) for label in handles]
    figure.legend(handles.values(), labels, loc="outside upper center", ncols=len(labels))
    caption = (
        "Spread of the ensemble at the actions of the target: standard deviation over ten critics, "
        "in the reward's units, weighted as the target weights them. SPaCQL's is that of the "
        "critics themselves, which decides its weights, the others' that of their slower target "
        f"networks, which disagree less. Mean over {seeds_text(counts)}; the band is one standard "
        f"deviation. {_training(plan)}"
    )
    return figure, {"caption": " ".join([caption, *mixed_data(runs)]), "series": series}


REPLACED = {
    "cfcql": "all agents replaced (CFCQL)",
    "icql-qs": "one agent replaced (ICQL-QS)",
    "spacql": "weighted mixture (SPaCQL)",
}


def final_weights(run: StoredRun) -> np.ndarray:
    """w_1 .. w_n, the mean over the last quarter of training."""
    last = run.curve[-1]["round"]
    kept = [point["w"] for point in run.curve if point["round"] > 0.75 * last]
    return np.mean(kept, axis=0)


def normalised(weights: np.ndarray) -> np.ndarray:
    """From 0, the smallest, to 1, the largest."""
    span = weights.max() - weights.min()
    return (weights - weights.min()) / span if span > 0 else np.zeros_like(weights)


def figure3(plan: Plan, store: Store) -> tuple[Figure, dict[str, Any]]:
    """Weights w_k by quality: normalised as the paper's, and as they are."""
    figure, weights = _weights(plan, store, ("w$_k$, min-max normalised", "w$_k$"))
    caption = (
        "Weights w_k of targets with k replaced agents in SPaCQL, mean over the last quarter of "
        f"training and {seeds_text([entry['seeds'] for entry in weights])}. Above: for each "
        "dataset the smallest is 0 and the largest 1. Below: as they are, with one standard "
        f"deviation over seeds; dotted: all equal. {_training(plan)}"
    )
    mixed = mixed_data(stored_runs(plan, store))
    return figure, {"caption": " ".join([caption, *mixed]), "weights": weights}


def figure4(plan: Plan, store: Store) -> tuple[Figure, dict[str, Any]]:
    """How often a bandit replaces k agents, by quality."""
    figure, weights = _weights(plan, store, ("probability of $k$",))
    caption = (
        "How often PLCQL's bandit replaces k agents in the target, mean over the last quarter of "
        f"training and {seeds_text([entry['seeds'] for entry in weights])}, with one standard "
        f"deviation over seeds where there are several; dotted: all equal. {_training(plan)}"
    )
    mixed = mixed_data(stored_runs(plan, store))
    return figure, {"caption": " ".join([caption, *mixed]), "weights": weights}


def _weights(
    plan: Plan, store: Store, labels: Sequence[str]
) -> tuple[Figure, list[dict[str, Any]]]:
    """Bars of w_k by dataset, and the numbers. With two labels, above them normalised ones."""
    stored_runs(plan, store)  # of which there must be some
    figure = Figure(figsize=(COLUMN * len(plan.blocks), 1.9 * len(labels)), layout="constrained")
    axes = figure.subplots(len(labels), len(plan.blocks), squeeze=False, sharey="row")
    weights = []
    for k, block in enumerate(plan.blocks):
        [method] = block.methods
        for place, column in enumerate(block.columns):
            whole = [r for r in plan.stored(store, method, column) if r.score is not None]
            found = [final_weights(run) for run in whole]
            if not found:
                continue
            mean, std = np.mean(found, axis=0), deviation(np.array(found), axis=0)
            entry = {"dataset": column.dataset, "seeds": len(found), "mean": mean.tolist()}
            more = {"std": std.tolist(), "normalised": normalised(mean).tolist()}
            weights.append(entry | more)
            if len(labels) > 1:
                _bars(axes[0, k], place, normalised(mean), None)
            _bars(axes[-1, k], place, mean, std)
        for axis in axes[:, k]:
            axis.set_xticks(range(len(block.columns)), [c.label for c in block.columns])
            axis.set_xlim(-0.6, len(block.columns) - 0.4)
            if not axis.patches:
                _nothing(axis)
        axes[0, k].set_title(block.title)
    for axis, label in zip(axes[:, 0], labels, strict=True):
        axis.set_ylabel(label)
    size = max(len(entry["mean"]) for entry in weights)
    for axis in axes[-1]:
        axis.axhline(1 / size, color="0.4", linewidth=0.6, linestyle=":", zorder=0)
    handles, names = next(a for a in axes.flat if a.patches).get_legend_handles_labels()
    figure.legend(handles[:size], names[:size], loc="outside upper center", ncols=size)
    return figure, weights


def _bars(axis: Axes, place: int, values: np.ndarray, errors: np.ndarray | None) -> None:
    width = 0.8 / len(values)
    for k, value in enumerate(values):
        colour, hatch = BARS[k % len(BARS)]
        axis.bar(
            place + (k - (len(values) - 1) / 2) * width,
            value,
            width,
            yerr=None if errors is None else errors[k],
            error_kw={"linewidth": 0.8},
            color=colour,
            hatch=hatch,
            edgecolor="white",
            linewidth=0,
            label=f"$k$ = {k + 1}",
        )


def _nothing(axis: Axes) -> None:
    axis.text(0.5, 0.5, "no finished run", ha="center", va="center", transform=axis.transAxes)


def _training(plan: Plan) -> str:
    configs = [plan.cell(method, column)[0].config for _, method, column in plan.cells()]
    penalties = ", ".join(sorted({c.penalty for c in configs if isinstance(c, Conservative)}))
    return f"{rounds(plan)} Penalty: {penalties}."


def figure1(plan: Plan, store: Store) -> tuple[Figure, dict[str, Any]]:
    """Two agents' actions: independent, tightly and loosely correlated."""
    from spacql.data.cache import resolve
    from spacql.experiments.slices import CENTRES, SIZE, about, slices, tightest

    random, expert = "spread-random", "spread-expert"
    of_expert = slices(resolve(expert))
    panels = {
        f"(a) {random}": slices(resolve(random), centres=1)[0],
        f"(b) {expert}, tight": tightest(of_expert),
        f"(c) {expert}, loose": about(of_expert, 0.5),
    }
    figure = Figure(figsize=(2 * COLUMN, 2.6), layout="constrained")
    axes = figure.subplots(1, 3, sharex=True, sharey=True)
    numbers = []
    for axis, (title, found) in zip(axes, panels.items(), strict=True):
        logged = float(np.median(found.actions[:, 0]))  # a_1^tau
        (low, high), (least, most) = found.beside(logged), found.range
        axis.plot(*found.actions.T, ".", color=BLUE, markersize=3.5, alpha=0.6, markeredgewidth=0)
        axis.axvline(logged, color="0.3", linewidth=0.8, linestyle=":", zorder=0)
        axis.plot([-1.35] * 2, [least, most], color=YELLOW, linewidth=4, solid_capstyle="butt",
                  label="all of agent 2's actions")  # fmt: skip
        axis.plot([logged] * 2, [low, high], color=ORANGE, linewidth=1.6, marker="_", markersize=8,
                  label=r"those beside $a_1^\tau$")  # fmt: skip
        axis.text(logged, 1.42, r"$a_1^\tau$", ha="center", va="bottom")
        axis.set_title(f"{title}\ncorrelation {found.correlation:.2f}", pad=14)
        axis.set(xlim=(-1.45, 1.4), ylim=(-1.4, 1.4), xticks=(-1, 0, 1), yticks=(-1, 0, 1))
        axis.set_xlabel("action of agent 1")
        numbers.append({"panel": title, "agents": found.agents, "correlation": found.correlation,
                        "logged": logged, "beside": [low, high], "all": [least, most]})  # fmt: skip
    axes[0].set_ylabel("action of agent 2")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    caption = (
        f"Actions of two agents at the {SIZE} logged states nearest to one logged state, each "
        "agent's along the direction in its plane of actions in which the two are most "
        f"correlated. (a) {random}, any state. (b) Of {CENTRES} random states of {expert} and all "
        "pairs of agents, the one with the strongest correlation. (c) The one whose correlation "
        "is nearest to one half. Bars hold 90 % of agent 2's actions: of all in the slice, and of "
        "those where agent 1 acts as at the dotted line, within 0.1. The agents' noise is "
        "independent: they agree because both see states that still differ within a slice."
    )
    return figure, {"caption": caption, "panels": numbers}
