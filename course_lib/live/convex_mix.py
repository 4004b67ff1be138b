"""Lesson 07's first live figure: weights mix three values, and the mix stays between them."""

from dataclasses import dataclass

import ipywidgets
import numpy as np
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from matplotlib.text import Text

from course_lib._arrays import Array
from course_lib.live.figure import Explorer, Picture, Pointer
from course_lib.live.running_example import TOKENS
from course_lib.live.running_example import V as VALUES
from course_lib.plots import (
    LIGHT,
    WIDEST,
    Look,
    Theme,
    halo,
    headline,
    literal,
    new_figure,
    number,
    panel,
)
from course_lib.tensor import Tensor


@dataclass(frozen=True)
class State:
    """Three weights and the mix that they make.

    Attributes
    ----------
    weights : ndarray, [T]
        The sliders' amounts divided by their sum; all 0 where the sum is 0.
    output : ndarray, [d_v]
    """

    weights: Array
    output: Array


def compute(the: float, river: float, bank: float) -> State:
    """Return the mix of the three values for three amounts, each from 0 to 1."""
    amounts = Tensor([the, river, bank])
    total = amounts.sum().item()
    weights = amounts / total if total > 0 else amounts
    return State(weights.data, (weights @ Tensor(VALUES)).data)  # [T] @ [T, d_v] = [d_v]


def draw(state: State, theme: Theme = LIGHT) -> Picture:
    """Draw the values' triangle with the output in it, and the weights as bars."""
    figure = new_figure(WIDEST, 3.6, theme, layout=None)
    headline(figure, "The output never leaves the triangle of the values", theme)
    box = (0.6, 0.5, 3.3, 2.45)
    plane = panel(figure, box, "plane", "The values, and their mix: drag it", theme, "both")
    plane.set(xlim=(-0.35, 1.6), ylim=(-0.35, 2.35), xticks=(0, 0.5, 1, 1.5), yticks=(0, 1, 2))
    plane.set(xlabel="value, component 1: money", ylabel="value, component 2: water")
    plane.add_patch(Polygon(VALUES, facecolor=theme.grid, edgecolor=theme.muted, zorder=1))
    moves: Look = {"animated": True, "zorder": 3}
    pulls = [
        plane.plot([], [], color=theme.accents[1], solid_capstyle="butt", **moves)[0]
        for _ in TOKENS
    ]
    plane.plot(*VALUES.T, "o", color=theme.ink, markersize=7, zorder=4, animated=True)
    for token, (x, y), aside in zip(TOKENS, VALUES, (-0.07, -0.07, 0.07), strict=True):
        look: Look = {"ha": "left" if aside > 0 else "right", "va": "center", "color": theme.ink}
        look |= {"fontsize": 10, "parse_math": False, "path_effects": halo(theme)}
        plane.text(x + aside, y, literal(token), **look)
    (point,) = plane.plot([], [], "o", color=theme.accents[0], markersize=11, **moves)
    bars, texts = _bars(figure, theme)

    def update(state: State) -> None:
        point.set_data([state.output[0]], [state.output[1]])
        for pull, value, weight in zip(pulls, VALUES, state.weights, strict=True):
            pull.set_data(*np.stack([value, state.output]).T)
            pull.set_linewidth(8 * float(weight))
        for bar, text, weight in zip(bars, texts, state.weights, strict=True):
            bar.set_width(weight)
            text.set(text=number(weight), x=weight + 0.02)

    update(state)
    return Picture(figure, update)


def _bars(figure: Figure, theme: Theme) -> tuple[BarContainer, list[Text]]:
    """Draw one horizontal bar for each token's weight; return bars and their texts."""
    axes = panel(figure, (4.5, 1.0, 1.75, 1.95), "weights", "Their weights", theme, "x")
    axes.set(xlim=(0, 1.3), ylim=(2.6, -0.6), xticks=(0, 0.5, 1), xlabel="weight")
    axes.set_yticks(range(len(TOKENS)), TOKENS, parse_math=False)
    axes.tick_params(axis="y", labelcolor=theme.ink, labelsize=10)
    bars = axes.barh(range(len(TOKENS)), [0] * 3, 0.6, color=theme.accents[1], animated=True)
    look: Look = {"va": "center", "color": theme.ink, "fontsize": 9, "animated": True}
    return bars, [axes.text(0, n, "", **look) for n in range(len(TOKENS))]


def says(state: State) -> str:
    """Return in one sentence the weights and the mix."""
    parts = [f"{number(w)} · {t}" for w, t in zip(state.weights, TOKENS, strict=True)]
    mix = f"({number(state.output[0])}, {number(state.output[1])})"
    if state.weights.sum() == 0:
        return f"All weights are 0, as for a query that may see nothing: the output is {mix}."
    return f"The output is {' + '.join(parts)} = {mix}; the weights sum to 1."


def explore() -> Explorer:
    """Return the explorer: an amount for each token; the output can be dragged too."""
    start = {"the": 0.05, "river": 0.75, "bank": 0.2}
    controls = {
        token: ipywidgets.FloatSlider(
            amount, min=0, max=1, step=0.05, description=f"Amount of {token}"
        )
        for token, amount in start.items()
    }

    def on_pointer(x: float, y: float, pointer: Pointer) -> None:
        if pointer.axes == "plane":
            for control, amount in zip(controls.values(), amounts_at(x, y), strict=True):
                control.value = float(amount)

    name = "A weighted sum of three values in the plane"
    return Explorer(name, compute, draw, says, controls, on_pointer)


def amounts_at(x: float, y: float) -> Array:
    """Return the three weights whose mix is (x, y), or as near to it as weights ≥ 0 come."""
    corners = np.vstack([VALUES.T, np.ones(3)])  # Σ w v = (x, y) and Σ w = 1
    weights = np.clip(np.linalg.solve(corners, [x, y, 1.0]), 0, None)
    amounts: Array = np.round(weights / weights.sum(), 2)
    return amounts
