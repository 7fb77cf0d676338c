"""The two pictures of the theory, as PNG and SVG."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from spacql.files import new_file
from spacql.theory.curves import correlated_curves, ensemble_curves, factorised_curves

# Okabe and Ito's colours, told apart by colour-blind readers; markers and dashes say the same.
BLACK, BLUE, ORANGE, GREEN, RED, GREY = (
    "#000000",
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#808080",
)
STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 6.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "legend.frameon": False,
    "svg.hashsalt": "spacql",  # the same picture gives the same file
}


def write(folder: Path) -> list[Path]:
    """Draw both pictures into `folder`; returns the four files."""
    import matplotlib
    from matplotlib.figure import Figure  # no pyplot: no window, no global state

    paths = []
    with matplotlib.rc_context(STYLE):
        for name, draw in PICTURES.items():
            figure = Figure(figsize=(7.0, 2.9), layout="constrained")
            draw(figure)
            for suffix in ("png", "svg"):
                path = Path(folder) / f"{name}.{suffix}"
                with new_file(path) as temporary:
                    metadata = {"Date": None} if suffix == "svg" else None
                    figure.savefig(temporary, dpi=160, metadata=metadata)
                paths.append(path)
    return paths


def draw_shift(figure: Any) -> None:
    """Occupancy shift and its bounds against k, factorised and correlated."""
    left, right = figure.subplots(1, 2, sharey=True)
    gamma, n = 0.8, 8
    k = np.arange(n + 1)

    curves = factorised_curves(n, gamma)
    left.plot(k, curves.linear, color=RED, ls="--", label="linear bound (Lemma 1)")
    left.plot(k, curves.joint, color=ORANGE, ls="-.", label="joint-action bound (joint TV)")
    left.plot(k, curves.sharp, color=BLUE, label="sharp bound (coupling)")
    left.plot(k, curves.worst, "o", color=BLACK, label="exact, worst case (departure)")
    median = np.median(curves.generic, axis=0)
    left.plot(k, median, "s-", color=GREEN, label="exact, random Dec-MDPs (median)")
    left.set_title(f"(a) factorised behaviour, TV = 0.03 each, γ = {gamma}")
    left.set_ylabel("occupancy shift $W_1$")

    curves_c = correlated_curves(n, gamma)
    right.plot(k, curves_c.lemma, color=RED, ls="--", label="Lemma 2, with κ")
    right.plot(k, curves_c.logged_bound, color=BLUE, label="as logged, with $κ_S$")
    right.plot(k, curves_c.joint, color=ORANGE, ls="-.", label="joint-action bound (joint TV)")
    right.plot(
        k,
        curves_c.product_exact,
        "^",
        color=GREY,
        ms=5.5,
        mfc="none",
        label="exact, product of marginals",
    )
    right.plot(k, curves_c.logged_exact, "o", color=BLACK, label="exact, others as logged")
    right.set_title(f"(b) agents act as one, TV = 0.02 each, κ = {curves_c.kappa:.2f}")

    for axis in (left, right):
        axis.axhline(1.0, color=GREY, lw=0.8, ls=":")
        axis.set_xlabel("replaced agents k, of 8")
        axis.set_xticks(k)
        axis.set_ylim(-0.02, 1.75)
        axis.legend(loc="upper left")
    left.annotate("above this line a bound says nothing", (8, 1.01), ha="right", fontsize=6.5)


def draw_ensemble(figure: Any) -> None:
    """Error of the target and the ensemble's spread against k, and how much of it is unseen."""
    left, middle, right = figure.subplots(1, 3)
    pairs = (
        (left, 0.0, "(a) independent behaviour"),
        (middle, 0.9, "(b) correlated behaviour"),
    )
    for axis, dial, title in pairs:
        curves = ensemble_curves(dial)
        k = np.arange(1, curves.u.shape[1] + 1)
        _band(axis, k, curves.error, BLACK, "o-", "error of the target")
        _band(axis, k, curves.u, BLUE, "s--", "ensemble spread $u_k$")
        axis.set_title(title)
        axis.set_ylim(0.0, 2.4)
        axis.set_ylabel("root mean square")
        axis.legend(loc="upper left")
        colour, style = (GREEN, "o-") if dial == 0.0 else (RED, "^--")
        label = "independent" if dial == 0.0 else "correlated"
        _band(right, k, curves.unseen, colour, style, label)
    right.set_title("(c) target actions not in data")
    right.set_ylabel("share")
    right.set_ylim(0.0, 1.05)
    right.legend(loc="lower center")
    for axis in (left, middle, right):
        axis.set_xlabel("replaced agents k, of 6")
        axis.set_xticks(k)


def _band(
    axis: Any, k: np.ndarray, values: np.ndarray, colour: str, style: str, label: str
) -> None:
    """Mean over datasets, with the middle 80 % of them behind it."""
    low, high = np.quantile(values, [0.1, 0.9], axis=0)
    axis.fill_between(k, low, high, color=colour, alpha=0.15, lw=0)
    axis.plot(k, values.mean(0), style, color=colour, label=label)


PICTURES: dict[str, Callable[[Any], None]] = {
    "theory-shift": draw_shift,
    "theory-ensemble": draw_ensemble,
}
