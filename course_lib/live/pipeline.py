"""Lesson 07's second live figure: every number of one attention over three tokens."""

from dataclasses import dataclass

import ipywidgets
import numpy as np
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle

from course_lib.attention import AttentionSteps, attention, causal_keep
from course_lib.live.figure import Explorer, Picture
from course_lib.plots import LIGHT, headline, new_figure, number, text_color
from course_lib.tensor import Tensor

# the course's running example
TOKENS = ("the", "river", "bank")
Q = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]])  # [T, d_k]
K = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])  # [T, d_k]
V = np.array([[0.0, 0.0], [0.0, 2.0], [1.0, 1.0]])  # [T, d_v]

CELL = 0.4  # inches
TOP = 2.95  # of the matrices, in inches from the bottom
NAMES = ("Q", "Kᵀ", "QKᵀ", "÷ √2, + mask", "softmax", "V", "output")
LEFTS = (0.75, 1.8, 3.2, 4.6, 6.0, 7.4, 8.4)  # of the matrices, in inches


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


def compute(query, key, causal):
    """Return the state for two tokens, with or without the causal mask."""
    mask = causal_keep(len(TOKENS)) if causal else None
    _, steps = attention(Tensor(Q), Tensor(K), Tensor(V), mask, return_steps=True)
    return State(steps, TOKENS.index(query), TOKENS.index(key))


def matrices(state):
    """Return the seven matrices from left to right, as `NAMES` calls them."""
    s = state.steps
    return Q, K.T, s.raw.data, s.masked.data, s.weights.data, V, s.output.data


def draw(state, theme=LIGHT):
    """Draw the matrices in a row, frames around what makes pair (i, j), and the sums in words."""
    figure = new_figure(9.4, 4.0, theme, layout=None)
    headline(figure, "Every number of softmax(QKᵀ/√d_k + M)·V for three tokens", theme)
    page = figure.add_axes((0, 0, 1, 1), label="page")
    page.set(xlim=(0, 9.4), ylim=(0, 4.0))
    page.set_axis_off()
    for n, token in enumerate(TOKENS):
        y = TOP - (n + 0.5) * CELL
        page.text(LEFTS[0] - 0.1, y, token, ha="right", va="center", color=theme.ink, fontsize=10)
    boards = [_board(page, n, matrix.shape, theme) for n, matrix in enumerate(matrices(state))]
    look = {"facecolor": "none", "edgecolor": theme.accents[0], "linewidth": 2.5, "zorder": 5}
    frames = [page.add_patch(Rectangle((0, 0), 1, 1, animated=True, **look)) for _ in NAMES]
    say = {"color": theme.ink, "fontsize": 11, "va": "top", "animated": True, "linespacing": 1.7}
    words = page.text(LEFTS[0] - 0.4, 1.42, "", parse_math=False, **say)

    def update(state):
        for board, matrix in zip(boards, matrices(state), strict=True):
            board(matrix)
        for frame, (x, y, width, height) in zip(frames, _marked(state), strict=True):
            frame.set_bounds(x, y, width, height)
        words.set_text(_spelled_out(state))

    update(state)
    return Picture(figure, update)


def _board(page, n, shape, theme):
    """Draw the cells of matrix `n`; return the function that gives them numbers."""
    rows, columns = shape
    center = LEFTS[n] + columns * CELL / 2
    page.text(center, TOP + 0.12, NAMES[n], ha="center", color=theme.muted, fontsize=10)
    cells = {}
    for r, c in np.ndindex(rows, columns):
        corner = (LEFTS[n] + c * CELL, TOP - (r + 1) * CELL)
        face = Rectangle(corner, CELL, CELL, edgecolor=theme.paper, animated=True)
        middle = {"x": corner[0] + CELL / 2, "y": corner[1] + CELL / 2}
        look = {"ha": "center", "va": "center", "fontsize": 8.5, "animated": True, "zorder": 4}
        cells[r, c] = (page.add_patch(face), page.text(s="", **middle, **look))

    def fill(matrix):
        for at, (face, text) in cells.items():
            color, hatch = _color(n, matrix[at], theme)
            face.set(facecolor=color, hatch=hatch)
            face.set_edgecolor(theme.hatch if hatch else theme.paper)
            text.set(text=_short(matrix[at]), color=text_color(color))

    return fill


def _color(n, value, theme):
    """Return a cell's color and hatch: scores diverging, weights from 0 to 1, others plain."""
    if np.isneginf(value):
        return theme.forbidden, "////"
    if NAMES[n] in ("QKᵀ", "÷ √2, + mask"):
        return theme.diverging(Normalize(-4, 4)(value)), None
    if NAMES[n] == "softmax":
        return theme.sequential(Normalize(0, 1)(value)), None
    return theme.grid, None


def _short(value):
    if np.isneginf(value):
        return "−∞"
    return f"{value:.0f}" if value == round(value) else number(value)


def _marked(state):
    """Return the rectangle around what takes part in pair (i, j), for each matrix."""
    rows = {"Q": state.i, "V": state.j, "output": state.i}
    for name, left in zip(NAMES, LEFTS, strict=True):
        if name in rows:
            yield left, TOP - (rows[name] + 1) * CELL, 2 * CELL, CELL
        elif name == "Kᵀ":
            yield left + state.j * CELL, TOP - 2 * CELL, CELL, 2 * CELL
        else:
            yield left + state.j * CELL, TOP - (state.i + 1) * CELL, CELL, CELL


def _spelled_out(state):
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


def says(state):
    """Return in one sentence how the pair's score became a weight and a part of the output."""
    i, j, s = state.i, state.j, state.steps
    how = "forbidden by the mask" if np.isneginf(s.masked.data[i, j]) else "allowed"
    output = f"({number(s.output.data[i][0])}, {number(s.output.data[i][1])})"
    return (
        f"{TOKENS[i]} looks at {TOKENS[j]}: score {_short(s.raw.data[i, j])}, scaled "
        f"{number(s.scaled.data[i, j])}, {how}, weight {number(s.weights.data[i, j])}; "
        f"the output of {TOKENS[i]} is {output}."
    )


def explore():
    """Return the explorer: choose the query, the key, and whether the causal mask is on."""
    controls = {
        "query": ipywidgets.ToggleButtons(options=TOKENS, value="bank", description="Query i"),
        "key": ipywidgets.ToggleButtons(options=TOKENS, value="river", description="Key j"),
        "causal": ipywidgets.Checkbox(False, description="Causal mask"),
    }

    def on_pointer(x, y, _pointer):
        row = int((TOP - y) // CELL)
        for name, left in zip(NAMES, LEFTS, strict=True):
            column = int((x - left) // CELL)
            if name in ("QKᵀ", "÷ √2, + mask", "softmax") and {row, column} <= {0, 1, 2}:
                controls["query"].value, controls["key"].value = TOKENS[row], TOKENS[column]

    name = "All steps of attention for the tokens the, river, bank"
    return Explorer(name, compute, draw, says, controls, on_pointer)
