"""Lesson 05's second live figure: how each score moves each weight, and how that fades.

The scores are those of the course's three tokens, made sharper by a factor.
"""

from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets
import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from course_lib._arrays import Array
from course_lib.live.figure import Explorer, Picture, Pointer, picture
from course_lib.live.running_example import TOKENS, K, Q
from course_lib.plots import (
    LIGHT,
    WIDEST,
    Look,
    Theme,
    frame,
    headline,
    new_figure,
    number,
    panel,
    text_color,
)
from course_lib.tensor import Tensor

SCORES = Q[2] @ K.T / np.sqrt(2)  # of the query "bank", [T]
FACTORS = np.arange(0, 4.01, 0.05)
LARGEST = 0.25  # s (1 − s) is at most ¼, and s_i s_j too


@dataclass(frozen=True)
class State:
    """Weights, and how they answer to their scores.

    Attributes
    ----------
    factor : float
        What the scores are multiplied by.
    raised : int
        The key whose score is raised.
    weights : ndarray, [3]
    jacobian : ndarray, [3, 3]
        ∂ weight i / ∂ score j.
    size : float
        The Jacobian's Frobenius norm: the root of the sum of its squares.
    """

    factor: float
    raised: int
    weights: Array
    jacobian: Array
    size: float


# ------------------------------------------------------------------------------------ compute


def compute(factor: float, raised: str) -> State:
    """Return the state for scores times `factor`, where the score of the token `raised` moves."""
    weights = Tensor(SCORES * factor).softmax(dim=-1).data
    matrix = jacobian(weights)
    return State(factor, TOKENS.index(raised), weights, matrix, float(np.linalg.norm(matrix)))


def jacobian(s: Array) -> Array:
    """Return diag(s) − s sᵀ: entry [i, j] is ∂s_i/∂x_j where s [T] is the softmax of x."""
    matrix: Array = np.diag(s) - np.outer(s, s)
    return matrix


# ------------------------------------------------------------------------------------ draw


def draw(state: State, theme: Theme = LIGHT) -> Picture:
    """Draw the weights, the Jacobian, and its size over all factors."""
    figure = new_figure(WIDEST, 2.85, theme, layout=None)
    headline(figure, "The sharper the weights, the less a score moves them", theme)
    updates = [_weights(figure, theme), _matrix(figure, theme), _size(figure, theme)]
    return picture(figure, state, updates)


def _weights(figure: Figure, theme: Theme) -> Callable[[State], None]:
    """Draw the weights as bars, and as arrows how fast the raised score moves them."""
    box = (0.4, 0.55, 1.6, 1.6)
    axes = panel(figure, box, "weights", "Weights; arrows: rates", theme, "y")
    axes.set(xlim=(-0.6, 2.6), ylim=(0, 1.15), yticks=(0, 0.5, 1), xlabel="key i")
    axes.set_xticks(range(3), TOKENS)
    axes.tick_params(axis="x", labelcolor=theme.ink)
    bars = axes.vlines(range(3), 0, 0, theme.accents[2], linewidth=22, alpha=0.5, animated=True)
    look: Look = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.02, "zorder": 3}
    arrows = axes.quiver(
        range(3), [0] * 3, 0, 1, color=theme.ink, animated=True, clip_on=False, **look
    )

    def update(state: State) -> None:
        bars.set_segments([[(i, 0), (i, w)] for i, w in enumerate(state.weights)])
        arrows.set_offsets(np.column_stack([range(3), state.weights]))
        arrows.set_UVC(np.zeros(3), state.jacobian[:, state.raised])

    return update


def _matrix(figure: Figure, theme: Theme) -> Callable[[State], None]:
    """Draw the Jacobian on a fixed scale, with a frame around the raised score's column."""
    box = (2.7, 0.55, 1.6, 1.6)
    axes = panel(figure, box, "jacobian", "∂ weight i / ∂ score j", theme)
    axes.spines["bottom"].set_visible(False)
    axes.set(xlim=(-0.5, 2.5), ylim=(2.5, -0.5), xlabel="score j", ylabel="weight i")
    axes.set_xticks(range(3), TOKENS)
    axes.set_yticks(range(3), TOKENS)
    axes.tick_params(labelcolor=theme.ink)
    edges = np.arange(4) - 0.5
    norm = Normalize(-LARGEST, LARGEST)
    look: Look = {"cmap": theme.diverging, "norm": norm, "edgecolors": theme.paper}
    mesh = axes.pcolormesh(edges, edges, np.zeros((3, 3)), linewidth=1.5, animated=True, **look)
    column = frame(axes, (-0.5, -0.5, 1, 3), theme)
    center: Look = {"ha": "center", "va": "center", "fontsize": 9, "animated": True, "zorder": 3}
    texts = [axes.text(j, i, "", **center) for i in range(3) for j in range(3)]

    def update(state: State) -> None:
        mesh.set_array(state.jacobian)
        column.set_x(state.raised - 0.5)
        for text, value in zip(texts, state.jacobian.flat, strict=True):
            color = text_color(theme.diverging(norm(value)))
            text.set(text=number(value), color=color)

    return update


def _size(figure: Figure, theme: Theme) -> Callable[[State], None]:
    """Draw the Jacobian's size over all factors, with a dot at the slider's."""
    axes = panel(figure, (4.85, 0.55, 1.4, 1.6), "size", "Its size: the norm", theme, "y")
    sizes = [compute(factor, TOKENS[0]).size for factor in FACTORS]
    axes.plot(FACTORS, sizes, color=theme.accents[1])
    axes.set(xlim=(-0.3, 4.3), ylim=(-0.04, 0.55))  # room for the whole dot
    axes.set(xlabel="scores times", yticks=(0, 0.25, 0.5))
    (dot,) = axes.plot([], [], "o", color=theme.accents[1], markersize=9, animated=True)

    def update(state: State) -> None:
        dot.set_data([state.factor], [state.size])

    return update


# ------------------------------------------------------------------------------------ explore


def says(state: State) -> str:
    """Return in one sentence what the weights are, and what raising one score does."""
    weights = ", ".join(f"{weight:.2f}" for weight in state.weights)
    moves = ", ".join(number(move) for move in state.jacobian[:, state.raised])
    return (
        f"With the scores times {state.factor:.2f} the weights are {weights}; raising the "
        f"score of “{TOKENS[state.raised]}” moves them at the rates {moves}, and the "
        f"whole Jacobian has size {state.size:.3f}."
    )


def explore() -> Explorer:
    """Return the explorer: the factor, and the score that is raised."""
    controls = {
        "factor": ipywidgets.FloatSlider(1, min=0, max=4, step=0.05, description="Scores times"),
        "raised": ipywidgets.ToggleButtons(
            options=TOKENS, value="river", description="Raise score of"
        ),
    }

    def on_pointer(x: float, _y: float, pointer: Pointer) -> None:
        if pointer.axes == "size":
            controls["factor"].value = float(np.clip(round(x / 0.05) * 0.05, 0, 4))
        else:
            controls["raised"].value = TOKENS[int(np.clip(round(x), 0, 2))]

    name = "Three weights, and how each of three scores moves them"
    return Explorer(name, compute, draw, says, controls, on_pointer)
