"""Lesson 03's live figure: scores of x itself, of one projection, and of two."""

from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets
import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_lib._arrays import Array
from course_lib.live.figure import Explorer, Picture, Pointer, picture
from course_lib.live.running_example import TOKENS, W_K, W_Q, X
from course_lib.plots import (
    LIGHT,
    WIDEST,
    Look,
    Theme,
    halo,
    headline,
    new_figure,
    panel,
    text_color,
)
from course_lib.tensor import Tensor

WAYS = ("x itself", "one W for both", "Q and K")
LIMIT = 4  # the color scale runs to ± this score, the largest of all
ARROWS = {"ArrowLeft": (0, -1), "ArrowRight": (0, 1), "ArrowUp": (-1, 0), "ArrowDown": (1, 0)}


@dataclass(frozen=True)
class State:
    """The scores made in one way, and the cell that is looked at.

    Attributes
    ----------
    way : str
        One of `WAYS`.
    i, j : int
        The query and the key of the cell.
    asks, found : ndarray, [T, d]
        The vectors that are compared: rows of the left and of the right matrix.
    scores : ndarray, [T, T]
    """

    way: str
    i: int
    j: int
    asks: Array
    found: Array
    scores: Array


# ------------------------------------------------------------------------------------ compute


def compute(way: str, i: int, j: int) -> State:
    """Return the state: asks @ foundᵀ for one of `WAYS`."""
    x = Tensor(X)
    w_q, w_k = {
        "x itself": (np.eye(4), np.eye(4)),
        "one W for both": (W_Q, W_Q),
        "Q and K": (W_Q, W_K),
    }[way]
    asks, found = x @ w_q, x @ w_k  # [T, D] @ [D, d] = [T, d]
    return State(way, i, j, asks.data, found.data, (asks @ found.mT).data)


# ------------------------------------------------------------------------------------ draw


def draw(state: State, theme: Theme = LIGHT) -> Picture:
    """Draw the score matrix, the vectors behind it, and a cell beside its mirror image."""
    figure = new_figure(WIDEST, 3.2, theme, layout=None)
    headline(figure, "With two projections, i can look at j without j looking back", theme)
    updates = [_matrix(figure, theme), _vectors(figure, theme), _pair(figure, theme)]
    return picture(figure, state, updates)


def _matrix(figure: Figure, theme: Theme) -> Callable[[State], None]:
    """Draw the scores; a frame marks the cell (i, j), a dashed one its mirror image (j, i)."""
    axes = panel(figure, (0.8, 0.15, 2.25, 2.25), "scores", "", theme)
    axes.spines["bottom"].set_visible(False)
    axes.set(xlim=(-0.5, 2.5), ylim=(2.5, -0.5), xlabel="key j", ylabel="query i")
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xticks(range(3), TOKENS)
    axes.set_yticks(range(3), TOKENS)
    axes.tick_params(labelcolor=theme.ink, labelsize=10)
    norm = Normalize(-LIMIT, LIMIT)
    edges = np.arange(4) - 0.5
    look: Look = {"edgecolors": theme.paper, "linewidth": 1.5, "animated": True}
    mesh = axes.pcolormesh(edges, edges, np.zeros((3, 3)), cmap=theme.diverging, norm=norm, **look)
    look = {"ha": "center", "va": "center", "fontsize": 12, "animated": True, "zorder": 3}
    texts = [axes.text(n % 3, n // 3, "", **look) for n in range(9)]
    look = {"width": 0.86, "height": 0.86, "fill": False, "linewidth": 2.5, "animated": True}
    look["path_effects"] = halo(theme, 5)
    mirror = Rectangle((0, 0), edgecolor=theme.accents[1], linestyle="--", **look)
    cell = Rectangle((0, 0), edgecolor=theme.accents[0], **look)
    for rectangle in (mirror, cell):
        axes.add_patch(rectangle)

    def update(state: State) -> None:
        mesh.set_array(state.scores)
        for text, score in zip(texts, state.scores.ravel(), strict=True):
            text.set(text=f"{score:.0f}", color=text_color(theme.diverging(norm(score))))
        cell.set_xy((state.j - 0.43, state.i - 0.43))
        mirror.set_xy((state.i - 0.43, state.j - 0.43))
        mirror.set_visible(state.i != state.j)

    return update


def _vectors(figure: Figure, theme: Theme) -> Callable[[State], None]:
    """Write the vectors that are compared, a row for each token."""
    box = (3.35, 1.32, 2.95, 1.23)
    axes = panel(figure, box, "vectors", "The vectors that are compared", theme)
    axes.set(xlim=(0, 1), ylim=(3.5, -0.5))
    axes.set_axis_off()
    for x, name in ((0.2, "asks with"), (0.6, "is found under")):
        axes.text(x, 0, name, color=theme.muted)
    rows = []
    for n, token in enumerate(TOKENS, start=1):
        axes.text(0, n, token, color=theme.ink)
        rows.append([axes.text(x, n, "", animated=True) for x in (0.2, 0.6)])

    def update(state: State) -> None:
        for n, (asks, found) in enumerate(rows):
            asks.set(text=vector(state.asks[n]), color=theme.ink)
            found.set(text=vector(state.found[n]), color=theme.ink)
        rows[state.i][0].set_color(theme.accents[0])
        rows[state.j][1].set_color(theme.accents[0])
        if state.i != state.j:
            rows[state.j][0].set_color(theme.accents[1])
            rows[state.i][1].set_color(theme.accents[1])

    return update


def _pair(figure: Figure, theme: Theme) -> Callable[[State], None]:
    """Write out the two dot products of the marked cells."""
    box = (3.35, 0.1, 2.95, 0.8)
    axes = panel(figure, box, "pair", "A cell and its mirror image", theme)
    axes.set(xlim=(0, 1), ylim=(2.5, -0.5))
    axes.set_axis_off()
    look: Look = {"fontsize": 9, "animated": True}
    lines = [axes.text(0, n, "", color=theme.accents[n], **look) for n in range(2)]
    verdict = axes.text(0, 2, "", color=theme.ink, fontweight="bold", animated=True)

    def update(state: State) -> None:
        lines[0].set_text(product(state, state.i, state.j))
        lines[1].set_text(product(state, state.j, state.i) if state.i != state.j else "")
        verdict.set_text(compared(state))

    return update


def vector(row: Array) -> str:
    """Return a vector as text: (0, 2)."""
    return "(" + ", ".join(f"{component:z.0f}" for component in row).replace("-", "−") + ")"


def product(state: State, i: int, j: int) -> str:
    """Return one score written out."""
    left, right = vector(state.asks[i]), vector(state.found[j])
    return f"S[{TOKENS[i]}, {TOKENS[j]}] = {left} · {right} = {state.scores[i, j]:.0f}"


def compared(state: State) -> str:
    """Return what the marked cell and its mirror image have to do with each other."""
    if state.i == state.j:
        return "A token scored with itself"
    equal = state.scores[state.i, state.j] == state.scores[state.j, state.i]
    return "The same number both ways" if equal else "Two different numbers"


# ------------------------------------------------------------------------------------ explore


def says(state: State) -> str:
    """Return in one sentence the marked scores and whether the matrix is symmetric."""
    pair = product(state, state.i, state.j)
    if state.i != state.j:
        pair += f", and {product(state, state.j, state.i)}"
    symmetric = "symmetric" if np.array_equal(state.scores, state.scores.T) else "not symmetric"
    higher = state.scores.max(axis=1) > np.diag(state.scores)
    astray = [token for token, yes in zip(TOKENS, higher, strict=True) if yes] or ["no token"]
    return (
        f"Scored with {state.way}: {pair}; the matrix is {symmetric}, and "
        f"{' and '.join(astray)} scores another token higher than itself."
    )


def explore() -> Explorer:
    """Return the explorer: the way of scoring, and the cell, which can be clicked."""
    tokens = [(token, n) for n, token in enumerate(TOKENS)]
    controls = {
        "way": ipywidgets.ToggleButtons(options=WAYS, description="Score with"),
        "i": ipywidgets.ToggleButtons(options=tokens, value=2, description="Query i"),
        "j": ipywidgets.ToggleButtons(options=tokens, value=1, description="Key j"),
    }

    def select(i: int, j: int) -> None:
        controls["i"].value, controls["j"].value = (min(max(n, 0), 2) for n in (i, j))

    def on_pointer(x: float, y: float, pointer: Pointer) -> None:
        if pointer.axes == "scores":
            select(round(y), round(x))

    def on_key(key: str) -> None:
        if key in ARROWS:
            down, right = ARROWS[key]
            select(controls["i"].value + down, controls["j"].value + right)

    name = "The scores of three tokens, from one vector each or from two"
    return Explorer(name, compute, draw, says, controls, on_pointer, on_key)
