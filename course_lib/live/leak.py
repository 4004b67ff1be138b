"""Lesson 06's first live figure: change one token, and see whose output moves."""

from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets
import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from course_lib._arrays import Array
from course_lib.attention import attention, causal_keep
from course_lib.live.figure import Explorer, Picture, Pointer, picture
from course_lib.live.running_example import TOKENS, W_K, W_Q, W_V, X
from course_lib.plots import (
    LIGHT,
    WIDEST,
    Look,
    Theme,
    corners,
    forbidden_look,
    frame,
    headline,
    legend,
    new_figure,
    number,
    panel,
    text_color,
)
from course_lib.tensor import Tensor

TOWARDS = np.array([0, 0.5, 0.5, 0])  # the direction in which a token is changed, [D]

MASKS = ("no mask", "causal mask", "zeroed after softmax")
HOW = dict(zip(MASKS, ("no mask", "the causal mask", "weights zeroed after softmax"), strict=True))


@dataclass(frozen=True)
class State:
    """What changing one token does to every output.

    Attributes
    ----------
    changed : int
        The position of the token that is changed.
    amount : float
        How far, along `TOWARDS`.
    mask : str
        One of `MASKS`.
    weights : ndarray, [T, T]
        After the change.
    moves : ndarray, [T]
        The largest change of a component of each output; 0 means the same to the last bit.
    """

    changed: int
    amount: float
    mask: str
    weights: Array
    moves: Array


# ------------------------------------------------------------------------------------ compute


def compute(changed: str, amount: float, mask: str) -> State:
    """Return the state for the token named `changed`, moved by `amount`, under one of `MASKS`."""
    position = TOKENS.index(changed)
    x = X.copy()
    x[position] += amount * TOWARDS
    before, _ = outputs(X, mask)
    after, weights = outputs(x, mask)
    moves = np.abs(after.data - before.data).max(axis=-1)
    return State(position, amount, mask, weights.data, moves)


def outputs(x: Array, mask: str) -> tuple[Tensor, Tensor]:
    """Return outputs [T, d_v] and weights [T, T] of the tokens `x` [T, D]."""
    q, k, v = (Tensor(x) @ w for w in (W_Q, W_K, W_V))
    keep = causal_keep(len(x))
    output, steps = attention(q, k, v, keep if mask == "causal mask" else None, return_steps=True)
    if mask == "zeroed after softmax":
        weights = steps.weights * keep
        return weights @ v, weights
    return output, steps.weights


# ------------------------------------------------------------------------------------ draw


def draw(state: State, theme: Theme = LIGHT) -> Picture:
    """Draw the weights, and how far each output moved."""
    figure = new_figure(WIDEST, 3.2, theme, layout=None)
    headline(figure, "Only a mask before softmax keeps later tokens out", theme)
    updates = [_weights(figure, theme), _moves(figure, theme)]
    return picture(figure, state, updates)


def _weights(figure: Figure, theme: Theme) -> Callable[[State], None]:
    """Draw the weights, with a frame around the changed token's column."""
    axes = panel(figure, (0.8, 0.4, 2.0, 2.0), "weights", "", theme)
    axes.spines["bottom"].set_visible(False)
    axes.set(xlim=(-0.5, 2.5), ylim=(2.5, -0.5), xlabel="key j (framed: changed)", ylabel="query i")
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xticks(range(3), TOKENS)
    axes.set_yticks(range(3), TOKENS)
    axes.tick_params(labelcolor=theme.ink)
    edges = np.arange(4) - 0.5
    look: Look = {"cmap": theme.sequential, "vmin": 0, "vmax": 1, "edgecolors": theme.paper}
    mesh = axes.pcolormesh(edges, edges, np.zeros((3, 3)), linewidth=1.5, animated=True, **look)
    look = forbidden_look(theme)
    hatched = Patch(label="forbidden: weight 0", **look)
    legend(figure, [hatched], (0.115, 0), theme, borderaxespad=0.3)
    forbidden = PolyCollection([], animated=True, zorder=2, **look)
    axes.add_collection(forbidden)
    column = frame(axes, (-0.5, -0.5, 1, 3), theme)
    center: Look = {"ha": "center", "va": "center", "fontsize": 10, "animated": True, "zorder": 3}
    texts = [axes.text(j, i, "", **center) for i in range(3) for j in range(3)]

    def update(state: State) -> None:
        hidden = np.triu(np.ones((3, 3), bool), 1) & (state.mask != "no mask")
        mesh.set_array(state.weights)
        forbidden.set_verts(corners(hidden))
        column.set_x(state.changed - 0.5)
        for text, weight, off in zip(texts, state.weights.flat, hidden.flat, strict=True):
            color = text_color(theme.sequential(float(weight)))
            text.set(text="" if off else number(weight), color=color)

    return update


def _moves(figure: Figure, theme: Theme) -> Callable[[State], None]:
    """Draw how far each output moved; the changed token's own may."""
    axes = panel(figure, (3.4, 0.5, 2.85, 2.05), "moves", "How far the outputs moved", theme, "y")
    axes.set(xlim=(-0.6, 2.6), ylim=(0, 2.3), xlabel="output of")
    axes.set_xticks(range(3), TOKENS)
    axes.tick_params(axis="x", labelcolor=theme.ink)
    bars = axes.vlines(range(3), 0, 0, theme.accents[1], linewidth=40, animated=True)
    look: Look = {"ha": "center", "color": theme.ink, "fontsize": 10, "animated": True}
    texts = [axes.text(i, 0, "", **look) for i in range(3)]

    def update(state: State) -> None:
        past = np.arange(3) < state.changed
        bars.set_segments([[(i, 0), (i, move)] for i, move in enumerate(state.moves)])
        bars.set_color([theme.accents[0] if one else theme.accents[1] for one in past])
        for i, (text, move) in enumerate(zip(texts, state.moves, strict=True)):
            leaks = move > 0 and past[i]
            text.set_text(f"{_size(move)}\nleak" if leaks else _size(move))
            text.set_y(move + 0.06)

    return update


def _size(move: float) -> str:
    """Return a change as text; one that rounds to 0.00 is not the same as none."""
    if move == 0:
        return "exactly 0"
    return number(move) if move >= 0.005 else "under 0.01"


# ------------------------------------------------------------------------------------ explore


def says(state: State) -> str:
    """Return in one sentence which outputs moved, and whether that is a leak."""
    moves = ", ".join(
        f"“{token}” by {_size(move)}" for token, move in zip(TOKENS, state.moves, strict=True)
    )
    leaks = [f"“{TOKENS[i]}”" for i in range(state.changed) if state.moves[i] > 0]
    if leaks:
        outcome = f"{' and '.join(leaks)} saw a later token: a leak"
    elif state.moves.any():
        outcome = "no earlier output moved"
    else:
        outcome = "nothing moved at all"
    what = f"changing “{TOKENS[state.changed]}” by {number(state.amount)}"
    return f"With {HOW[state.mask]}, {what} moves the outputs of {moves}; {outcome}."


def explore() -> Explorer:
    """Return the explorer: which token is changed, how far, and the mask."""
    controls = {
        "mask": ipywidgets.ToggleButtons(options=MASKS, description="Mask"),
        "changed": ipywidgets.ToggleButtons(options=TOKENS, value="bank", description="Change"),
        "amount": ipywidgets.FloatSlider(1, min=-2, max=2, step=0.1, description="By how much"),
    }

    def on_pointer(x: float, _y: float, _pointer: Pointer) -> None:
        controls["changed"].value = TOKENS[int(np.clip(round(x), 0, 2))]

    name = "Three tokens, one of them changed, and how far each output moved"
    return Explorer(name, compute, draw, says, controls, on_pointer)
