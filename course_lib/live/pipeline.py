"""Lesson 07's second live figure: every number of one attention over three tokens."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import ipywidgets
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle
from matplotlib.typing import ColorType

from course_lib._arrays import Array
from course_lib.attention import AttentionSteps, attention, causal_keep
from course_lib.live.figure import Explorer, Picture, Pointer
from course_lib.live.running_example import TOKENS, K, Q, V
from course_lib.plots import (
    LIGHT,
    WIDEST,
    Box,
    Look,
    Theme,
    forbidden_look,
    frame,
    headline,
    new_figure,
    number,
    text_color,
)
from course_lib.tensor import Tensor

CELL = 0.42  # inches
NAMES = ("Q", "Kᵀ", "QKᵀ", "÷ √2, + mask", "softmax", "V", "output")
# The upper left corner of each matrix, in inches from the figure's lower left one.
UPPER = ((0.75, 4.35), (1.85, 4.35), (3.38, 4.35), (4.92, 4.35))
LOWER = ((0.75, 2.6), (2.6, 2.6), (4.1, 2.6))
PLACES = dict(zip(NAMES, UPPER + LOWER, strict=True))


@dataclass(frozen=True)
class State:
    """All steps, and the pair whose numbers are spelled out.

    Attributes
    ----------
    steps : AttentionSteps
        Each [T, T] or [T, d_v], of the running example.
    i, j : int
        The query and the key.
    """

    steps: AttentionSteps
    i: int
    j: int


def compute(query: int, key: str, causal: bool) -> State:
    """Return the state for two tokens, with or without the causal mask."""
    mask = causal_keep(len(TOKENS)) if causal else None
    _, steps = attention(Tensor(Q), Tensor(K), Tensor(V), mask, return_steps=True)
    return State(steps, TOKENS.index(query), TOKENS.index(key))


def matrices(state: State) -> tuple[Array, ...]:
    """Return the seven matrices from left to right, as `NAMES` calls them."""
    s = state.steps
    return Q, K.T, s.raw.data, s.masked.data, s.weights.data, V, s.output.data


def draw(state: State, theme: Theme = LIGHT) -> Picture:
    """Draw the matrices in a row, frames around what makes pair (i, j), and the sums in words."""
    figure = new_figure(WIDEST, 5.05, theme, layout=None)
    headline(figure, "Each row of softmax(QKᵀ/√d_k + M) mixes the rows of V", theme)
    page = figure.add_axes((0, 0, 1, 1), label="page")
    page.set(xlim=(0, WIDEST), ylim=(0, 5.05))
    page.set_axis_off()
    look: Look = {"ha": "right", "va": "center", "color": theme.ink, "fontsize": 10}
    for name in ("Q", "softmax", "V", "output"):  # a row of each is a token's
        left, top = PLACES[name]
        for n, token in enumerate(TOKENS):
            page.text(left - 0.1, top - (n + 0.5) * CELL, token, **look)
    shapes = {name: matrix.shape for name, matrix in zip(NAMES, matrices(state), strict=True)}
    boards = [_board(page, name, shape, theme) for name, shape in shapes.items()]
    frames = [frame(page, (0, 0, 1, 1), theme) for _ in NAMES]
    look = {"color": theme.ink, "fontsize": 10, "va": "top", "linespacing": 1.6}
    words = page.text(0.25, 1.08, "", parse_math=False, animated=True, **look)

    def update(state: State) -> None:
        for board, matrix in zip(boards, matrices(state), strict=True):
            board(matrix)
        for around, (x, y, width, height) in zip(frames, _marked(state), strict=True):
            around.set_bounds(x, y, width, height)
        words.set_text(_spelled_out(state))

    update(state)
    return Picture(figure, update)


def _board(page: Axes, name: str, shape: tuple[int, ...], theme: Theme) -> Callable[[Array], None]:
    """Draw the cells of one matrix; return the function that gives them numbers."""
    rows, columns = shape
    left, top = PLACES[name]
    center = left + columns * CELL / 2
    page.text(center, top + 0.1, name, ha="center", color=theme.muted, fontsize=10)
    cells = {}
    for r, c in np.ndindex(rows, columns):
        corner = (left + c * CELL, top - (r + 1) * CELL)
        face = Rectangle(corner, CELL, CELL, edgecolor=theme.paper, animated=True)
        middle: Look = {"x": corner[0] + CELL / 2, "y": corner[1] + CELL / 2}
        look: Look = {"ha": "center", "va": "center", "fontsize": 9, "animated": True, "zorder": 3}
        page.add_patch(face)
        cells[r, c] = face, page.text(s="", **middle, **look)

    def fill(matrix: Array) -> None:
        for at, (face, text) in cells.items():
            value = float(matrix[at])
            look = _look(name, value, theme)
            face.set(**look)
            text.set(text=_short(value), color=text_color(look["facecolor"]))

    return fill


def _look(name: str, value: float, theme: Theme) -> Look:
    """Return a cell's look: scores diverging, weights from 0 to 1, others plain."""
    if np.isneginf(value):
        return forbidden_look(theme)
    color: ColorType = theme.grid
    if name in ("QKᵀ", "÷ √2, + mask"):
        color = theme.diverging(float(Normalize(-4, 4)(value)))
    elif name == "softmax":
        color = theme.sequential(float(value))
    return {"facecolor": color, "edgecolor": theme.paper, "hatch": None, "linewidth": 1}


def _short(value: float) -> str:
    if np.isneginf(value):
        return "−∞"
    return f"{value:.0f}" if value == round(value) else number(value)


def _marked(state: State) -> Iterator[Box]:
    """Return the rectangle around what takes part in pair (i, j), for each matrix."""
    rows = {"Q": state.i, "V": state.j, "output": state.i}
    for name, (left, top) in PLACES.items():
        if name in rows:
            yield left, top - (rows[name] + 1) * CELL, 2 * CELL, CELL
        elif name == "Kᵀ":
            yield left + state.j * CELL, top - 2 * CELL, CELL, 2 * CELL
        else:
            yield left + state.j * CELL, top - (state.i + 1) * CELL, CELL, CELL


def _spelled_out(state: State) -> str:
    """Return the four sums that lead from q_i and k_j to the output of token i."""
    i, j, s = state.i, state.j, state.steps
    products = " + ".join(f"{_short(x)}·{_short(y)}" for x, y in zip(Q[i], K[j], strict=True))
    score, masked = s.scaled.data[i, j], s.masked.data[i]
    exps = np.exp(masked - masked.max())  # [T]
    weights, output = s.weights.data[i], s.output.data[i]
    mix = " + ".join(
        f"{number(w)}·({_short(v[0])}, {_short(v[1])})" for w, v in zip(weights, V, strict=True)
    )
    note = ", then forbidden by the mask" if np.isneginf(masked[j]) else ""
    return (
        f"score:  q({TOKENS[i]})·k({TOKENS[j]}) = {products} = {_short(s.raw.data[i, j])}\n"
        f"scaled:  {_short(s.raw.data[i, j])} ÷ √2 = {number(score)}{note}\n"
        f"weight:  exp({_short(masked[j])} − {number(masked.max())}) ÷ "
        f"({' + '.join(number(e) for e in exps)}) = {number(weights[j])}\n"
        f"output of {TOKENS[i]}:  {mix} = ({number(output[0])}, {number(output[1])})"
    )


def says(state: State) -> str:
    """Return in one sentence how the pair's score became a weight and a part of the output."""
    i, j, s = state.i, state.j, state.steps
    how = "forbidden by the mask" if np.isneginf(s.masked.data[i, j]) else "allowed"
    output = f"({number(s.output.data[i][0])}, {number(s.output.data[i][1])})"
    return (
        f"{TOKENS[i]} looks at {TOKENS[j]}: score {_short(s.raw.data[i, j])}, scaled "
        f"{number(s.scaled.data[i, j])}, {how}, weight {number(s.weights.data[i, j])}; "
        f"the output of {TOKENS[i]} is {output}."
    )


def explore() -> Explorer:
    """Return the explorer: choose the query, the key, and whether the causal mask is on."""
    controls = {
        "query": ipywidgets.ToggleButtons(options=TOKENS, value="bank", description="Query i"),
        "key": ipywidgets.ToggleButtons(options=TOKENS, value="river", description="Key j"),
        "causal": ipywidgets.Checkbox(False, description="Causal mask"),
    }

    def on_pointer(x: float, y: float, _pointer: Pointer) -> None:
        for name in ("QKᵀ", "÷ √2, + mask", "softmax"):
            left, top = PLACES[name]
            row, column = int((top - y) // CELL), int((x - left) // CELL)
            if {row, column} <= {0, 1, 2}:
                controls["query"].value, controls["key"].value = TOKENS[row], TOKENS[column]

    name = "All steps of attention for the tokens the, river, bank"
    return Explorer(name, compute, draw, says, controls, on_pointer)
