"""Lesson 05's second live figure: how each score moves each weight, and how that fades.

The scores are those of the course's three tokens, made sharper by a factor.
"""

from dataclasses import dataclass

import ipywidgets
import numpy as np
from matplotlib.patches import Rectangle

from course_lib.live.figure import Explorer, Picture
from course_lib.plots import LIGHT, headline, new_figure, number, style, text_color
from course_lib.tensor import Tensor

TOKENS = ("the", "river", "bank")
SCORES = np.array([0.0, 4.0, 2.0]) / np.sqrt(2)  # of the query "bank"
FACTORS = np.arange(0, 4.01, 0.05)
LARGEST = 0.25  # s (1 − s) is at most ¼, and s_i s_j too
RAISES = tuple(f"score of “{token}”" for token in TOKENS)


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
    weights: np.ndarray
    jacobian: np.ndarray
    size: float


# ------------------------------------------------------------------------------------ compute


def compute(factor, raised):
    """Return the state for scores times `factor`, with the score named `raised` to be moved."""
    weights = Tensor(SCORES * factor).softmax(dim=-1).data
    matrix = jacobian(weights)
    return State(factor, RAISES.index(raised), weights, matrix, float(np.linalg.norm(matrix)))


def jacobian(s):
    """Return diag(s) − s sᵀ: entry [i, j] is ∂s_i/∂x_j where s [T] is the softmax of x."""
    return np.diag(s) - np.outer(s, s)


# ------------------------------------------------------------------------------------ draw


def draw(state, theme=LIGHT):
    """Draw the weights, the Jacobian, and its size over all factors."""
    figure = new_figure(9.2, 3.4, theme, layout=None)
    headline(figure, "The sharper the weights, the less a score moves them", theme)
    updates = [_weights(figure, theme), _matrix(figure, theme), _size(figure, theme)]

    def update(state):
        for move in updates:
            move(state)

    update(state)
    return Picture(figure, update)


def _titled(figure, theme, box, title, grid=None):
    axes = figure.add_axes(box, label=title)
    style(axes, theme, grid)
    axes.set_title(title, loc="left", fontsize=10, color=theme.ink, pad=8)
    return axes


def _weights(figure, theme):
    """Draw the weights as bars, and as arrows how fast the raised score moves them."""
    axes = _titled(figure, theme, (0.06, 0.21, 0.24, 0.577), "Weights; arrows: their rates", "y")
    axes.set(xlim=(-0.6, 2.6), ylim=(0, 1.15), yticks=(0, 0.5, 1), xlabel="key i")
    axes.set_xticks(range(3), TOKENS)
    axes.tick_params(axis="x", labelcolor=theme.ink)
    bars = axes.vlines(range(3), 0, 0, theme.accents[2], linewidth=30, alpha=0.5, animated=True)
    look = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.02, "zorder": 3}
    arrows = axes.quiver(
        range(3), [0] * 3, 0, 1, color=theme.ink, animated=True, clip_on=False, **look
    )

    def update(state):
        bars.set_segments([[(i, 0), (i, w)] for i, w in enumerate(state.weights)])
        arrows.set_offsets(np.column_stack([range(3), state.weights]))
        arrows.set_UVC(np.zeros(3), state.jacobian[:, state.raised])

    return update


def _matrix(figure, theme):
    """Draw the Jacobian on a fixed scale, with a frame around the raised score's column."""
    axes = _titled(figure, theme, (0.4, 0.21, 0.213, 0.577), "∂ weight i / ∂ score j")
    axes.spines["bottom"].set_visible(False)
    axes.set(xlim=(-0.5, 2.5), ylim=(2.5, -0.5), xlabel="score j", ylabel="weight i")
    axes.set_xticks(range(3), TOKENS)
    axes.set_yticks(range(3), TOKENS)
    axes.tick_params(labelcolor=theme.ink)
    edges = np.arange(4) - 0.5
    look = {"cmap": theme.diverging, "vmin": -LARGEST, "vmax": LARGEST, "edgecolors": theme.paper}
    mesh = axes.pcolormesh(edges, edges, np.zeros((3, 3)), linewidth=1.5, animated=True, **look)
    look = {"facecolor": "none", "edgecolor": theme.ink, "linewidth": 2, "clip_on": False}
    frame = axes.add_patch(Rectangle((-0.5, -0.5), 1, 3, animated=True, zorder=4, **look))
    center = {"ha": "center", "va": "center", "fontsize": 10, "animated": True, "zorder": 3}
    texts = [axes.text(j, i, "", **center) for i in range(3) for j in range(3)]

    def update(state):
        mesh.set_array(state.jacobian)
        frame.set_x(state.raised - 0.5)
        for text, value in zip(texts, state.jacobian.flat, strict=True):
            color = text_color(theme.diverging(mesh.norm(value)))
            text.set(text=number(value), color=color)

    return update


def _size(figure, theme):
    """Draw the Jacobian's size over all factors, with a dot at the slider's."""
    axes = _titled(figure, theme, (0.71, 0.21, 0.26, 0.577), "Size of this matrix (its norm)", "y")
    sizes = [compute(factor, RAISES[0]).size for factor in FACTORS]
    axes.plot(FACTORS, sizes, color=theme.accents[1])
    axes.set(xlim=(-0.1, 4.1), ylim=(0, 0.55), xlabel="scores times", yticks=(0, 0.25, 0.5))
    (dot,) = axes.plot([], [], "o", color=theme.accents[1], markersize=9, animated=True)

    def update(state):
        dot.set_data([state.factor], [state.size])

    return update


# ------------------------------------------------------------------------------------ explore


def says(state):
    """Return in one sentence what the weights are, and what raising one score does."""
    weights = ", ".join(f"{weight:.2f}" for weight in state.weights)
    moves = ", ".join(number(move) for move in state.jacobian[:, state.raised])
    return (
        f"With the scores times {state.factor:.2f} the weights are {weights}; raising the "
        f"{RAISES[state.raised]} moves them at the rates {moves}, and the whole Jacobian has "
        f"size {state.size:.3f}."
    )


def explore():
    """Return the explorer: the factor, and the score that is raised."""
    controls = {
        "factor": ipywidgets.FloatSlider(1, min=0, max=4, step=0.05, description="Scores times"),
        "raised": ipywidgets.ToggleButtons(options=RAISES, value=RAISES[1], description="Raise"),
    }

    def on_pointer(x, _y, pointer):
        if pointer.axes.startswith("Size"):
            controls["factor"].value = float(np.clip(round(x / 0.05) * 0.05, 0, 4))
        else:
            controls["raised"].value = RAISES[int(np.clip(round(x), 0, 2))]

    name = "Three weights, and how each of three scores moves them"
    return Explorer(name, compute, draw, says, controls, on_pointer)
