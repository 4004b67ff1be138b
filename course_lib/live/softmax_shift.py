"""Lesson 05's first live figure: one constant added to all scores moves no weight.

It does move the exponentials, so that the plain formula exp(x) / Σ exp(x) overflows or underflows.
"""

from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets
import numpy as np
from matplotlib.figure import Figure

from course_lib._arrays import Array
from course_lib.live.figure import Explorer, Picture, Pointer, picture
from course_lib.plots import LIGHT, WIDEST, Look, Theme, headline, new_figure, number, panel
from course_lib.tensor import Tensor

FORMULAS = ("max subtracted, float32", "plain formula, float32", "plain formula, float64")
DTYPES = (np.float32, np.float32, np.float64)
REACH, STEP = 800, 10  # the constant runs to ± REACH in steps of STEP
START = (0.0, 2.8, 1.4, -1.0)


@dataclass(frozen=True)
class State:
    """What becomes of four scores when a constant is added to all of them.

    Attributes
    ----------
    constant : int
    scores : ndarray, [4]
        With the constant.
    weights : ndarray, [3, 4]
        By each of `FORMULAS`; NaN where the formula gives no number.
    sums : ndarray, [3]
        Of the exponentials, in each formula.
    """

    constant: int
    scores: Array
    weights: Array
    sums: Array


# ------------------------------------------------------------------------------------ compute


def compute(score_1: float, score_2: float, score_3: float, score_4: float, constant: int) -> State:
    """Return the state for four scores, and one constant added to each."""
    scores = np.array([score_1, score_2, score_3, score_4]) + constant
    rows = [scores.astype(dtype) for dtype in DTYPES]
    with np.errstate(all="ignore"):
        sums = [np.exp(rows[0] - rows[0].max()).sum(), *(np.exp(row).sum() for row in rows[1:])]
        plain = [np.exp(row) / np.exp(row).sum() for row in rows[1:]]
    weights = [Tensor(rows[0]).softmax(dim=-1).data, *plain]
    return State(constant, scores, np.array(weights), np.array(sums, dtype=np.float64))


# ------------------------------------------------------------------------------------ draw


def draw(state: State, theme: Theme = LIGHT) -> Picture:
    """Draw where the scores lie on the range of exp, and the weights by each formula."""
    figure = new_figure(WIDEST, 3.95, theme, layout=None)
    headline(figure, "Adding a constant changes no weight, yet can break exp", theme)
    updates = [_range(figure, theme)]
    updates += [_weights(figure, theme, n) for n in range(len(FORMULAS))]
    return picture(figure, state, updates)


def _range(figure: Figure, theme: Theme) -> Callable[[State], None]:
    """Draw the scores over the range in which exp is neither 0 nor infinite, in both dtypes."""
    axes = panel(figure, (0.75, 2.5, 5.5, 0.9), "range", "Where exp is a number", theme)
    axes.set(xlim=(-REACH * 1.14, REACH * 1.14), ylim=(-0.4, 1.75))
    axes.set_xlabel("the four scores, with the constant")
    axes.set_yticks([0, 1], ["float32", "float64"])
    axes.tick_params(axis="y", labelcolor=theme.ink)
    for row, dtype in enumerate(("float32", "float64")):
        info = np.finfo(dtype)
        low, high = np.log([float(info.smallest_subnormal), float(info.max)])
        axes.barh(row, high - low, 0.4, left=low, color=theme.grid)
        look: Look = {"va": "center", "color": theme.muted, "fontsize": 9}  # above what moves
        axes.text(low, row + 0.5, "exp = 0", ha="right", **look)
        axes.text(high, row + 0.5, "exp = ∞", ha="left", **look)
    here = axes.vlines([0] * 8, 0, 0, theme.ink, linewidth=1.5, animated=True)

    def update(state: State) -> None:
        rows = [(row - 0.28, row + 0.28) for row in (0, 1)]
        here.set_segments([[(score, y) for y in row] for score in state.scores for row in rows])

    return update


def _weights(figure: Figure, theme: Theme, n: int) -> Callable[[State], None]:
    """Draw the weights by one formula, and what its sum of exponentials came to."""
    axes = panel(figure, (0.65 + 1.98 * n, 0.5, 1.6, 1.0), FORMULAS[n], "", theme, "y")
    axes.set(xlim=(-0.6, 3.6), ylim=(0, 1.25), yticks=(0, 0.5, 1), xlabel="key j")
    axes.set_ylabel("weight" if n == 0 else "")
    axes.set_xticks(range(4), ["1", "2", "3", "4"])
    axes.set_title(FORMULAS[n], loc="left", fontsize=10, color=theme.accents[n], pad=20)
    bars = axes.vlines(range(4), 0, 0, theme.accents[n], linewidth=17, animated=True)
    look: Look = {"ha": "center", "color": theme.ink, "fontsize": 9, "animated": True}
    texts = [axes.text(j, 0, "", **look) for j in range(4)]
    label: Look = {"transform": axes.transAxes, "color": theme.ink, "fontsize": 9}
    axes.text(0, 1.06, "sum of exp:", **label)
    total = axes.text(0.51, 1.06, "", animated=True, **label)

    def update(state: State) -> None:
        weights = state.weights[n]
        bars.set_segments([[(j, 0), (j, w)] for j, w in enumerate(np.nan_to_num(weights))])
        for text, weight in zip(texts, weights, strict=True):
            text.set_text("NaN" if np.isnan(weight) else number(weight))
            text.set_y(np.nan_to_num(weight) + 0.04)
        total.set_text(_in_short(state.sums[n]))

    return update


def _in_short(value: float) -> str:
    """Return a positive number in a few characters."""
    if np.isinf(value):
        return "∞"
    return number(value) if 0.01 <= value < 1000 or value == 0 else f"{value:.1e}".replace("-", "−")


# ------------------------------------------------------------------------------------ explore


def says(state: State) -> str:
    """Return in one sentence where the scores lie, and what each formula makes of them."""
    added, largest = (
        text.replace("-", "−") for text in (f"{state.constant}", f"{state.scores.max():.1f}")
    )
    good = ", ".join(f"{weight:.2f}" for weight in state.weights[0])
    plain = " and ".join(
        f"{outcome(state, n)} in {DTYPES[n].__name__}" for n in range(1, len(FORMULAS))
    )
    return (
        f"With {added} added, the largest score is {largest}; with the "
        f"maximum subtracted the weights are {good}, and the plain formula {plain}."
    )


def outcome(state: State, n: int) -> str:
    """Return what formula `n` does, in a few words."""
    weights, total = state.weights[n], state.sums[n]
    if total == 0:
        return "divides 0 by 0"
    if np.isnan(weights).any():
        return "divides ∞ by ∞"
    if np.isinf(total):
        return "divides by a sum of ∞"
    off = np.abs(weights - state.weights[0]).max()
    return "gives the same weights" if off < 0.005 else f"is off by {off:.2f}"


def explore() -> Explorer:
    """Return the explorer: four scores, and the constant."""
    controls = {
        f"score_{n}": ipywidgets.FloatSlider(
            value, min=-2, max=10, step=0.2, description=f"Score {n}"
        )
        for n, value in enumerate(START, start=1)
    }
    controls["constant"] = ipywidgets.IntSlider(
        100, -REACH, REACH, step=STEP, description="Added to all"
    )

    def on_pointer(x: float, _y: float, pointer: Pointer) -> None:
        if pointer.axes == "range":
            steps = round(np.clip(x, -REACH, REACH) / STEP)
            controls["constant"].value = steps * STEP

    name = "Four scores with a constant added, and their weights by three formulas"
    return Explorer(name, compute, draw, says, controls, on_pointer)
