"""Lesson 06's second live figure: a mask whose cells are clicked, and what each query still sees.

The cells flipped by hand are themselves a control, so that they can be taken back.
"""

from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from course_lib._arrays import Array
from course_lib.attention import attention, causal_keep
from course_lib.live.figure import Explorer, Picture, Pointer, picture
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
    panel,
)

T_MAX, BASE_MAX = 5, 3
SEED = 6
GAP = 0.03  # between two cells
PRESETS = ("causal (j ≤ i + base)", "not itself (j < i + base)", "none", "padding", "window of 2")
Cells = tuple[tuple[int, int], ...]  # queries and keys
NO_FLIPS: Cells = ()
CHOSEN = "chosen"
MOVES = {"ArrowUp": (-1, 0), "ArrowDown": (1, 0), "ArrowLeft": (0, -1), "ArrowRight": (0, 1)}


@dataclass(frozen=True)
class State:
    """A mask, and the weights under it.

    Attributes
    ----------
    keep : ndarray of bool, [t, t_total]
        True where query i may attend to key j.
    weights : ndarray, [t, t_total]
    chosen : tuple of int
        Query and key of the chosen cell, inside the mask.
    flips : int
        How many cells were flipped by hand.
    preset : str
    """

    keep: Array
    weights: Array
    chosen: tuple[int, int]
    flips: int
    preset: str


# ------------------------------------------------------------------------------------ compute


def compute(preset: str, t: int, base: int, query: int, key: int, flipped: Cells | str) -> State:
    """Return the state for `t` queries after `base` cached keys.

    `flipped` holds the cells (i, j) that differ from the preset, or is CHOSEN: only the cell of
    `query` and `key`.
    """
    chosen = min(query, t - 1), min(key, t + base - 1)
    keep = preset_keep(preset, t, base)
    flips = (chosen,) if isinstance(flipped, str) else flipped
    cells = [(i, j) for i, j in flips if i < t and j < t + base]
    for i, j in cells:
        keep[i, j] = not keep[i, j]
    q, k, v = np.random.default_rng(SEED).normal(size=(3, T_MAX + BASE_MAX, 4))  # all tokens
    last = t + base
    _, steps = attention(q[base:last], k[:last], v[:last], keep, return_steps=True)
    return State(keep, steps.weights.data, chosen, len(cells), preset)


def preset_keep(preset: str, t: int, base: int) -> Array:
    """Return one of `PRESETS` as booleans [t, t_total]."""
    keep = causal_keep(t, t + base)
    if preset.startswith("not itself"):
        return np.tri(t, t + base, base - 1, dtype=bool)
    if preset == "none":
        return np.ones_like(keep)
    if preset == "padding":  # the last token is no word: nobody sees it, and it sees nobody
        keep[-1], keep[:, -1] = False, False
    if preset == "window of 2":
        keep &= ~np.tri(t, t + base, base - 2, dtype=bool)
    return keep


# ------------------------------------------------------------------------------------ draw


def draw(state: State, theme: Theme = LIGHT) -> Picture:
    """Draw the mask and the weights on one grid each, and beside them what each query sees."""
    figure = new_figure(WIDEST, 3.15, theme, layout=None)
    headline(figure, "A query mixes only keys that its row leaves open", theme)
    updates = [_mask(figure, theme), _weights(figure, theme), _seen(figure, theme)]
    return picture(figure, state, updates)


def _grid(
    figure: Figure, theme: Theme, left: float, title: str
) -> tuple[Axes, Callable[[State], None]]:
    """Return the Axes of one grid, and a function that moves its hatch and its frame."""
    axes = panel(figure, (left, 0.75, 2.24, 1.4), title, title, theme)
    axes.spines["bottom"].set_visible(False)
    axes.set(xlim=(-0.5, T_MAX + BASE_MAX - 0.5), ylim=(T_MAX - 0.5, -0.5))
    axes.set(xticks=range(T_MAX + BASE_MAX), yticks=range(T_MAX), xlabel="key j", ylabel="query i")
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    everywhere = corners(np.ones((T_MAX, T_MAX + BASE_MAX), bool), GAP)
    empty: Look = {"facecolor": "none", "edgecolor": theme.grid, "clip_on": False}
    axes.add_collection(PolyCollection(everywhere, **empty))
    look: Look = {"animated": True, "zorder": 2}
    forbidden = PolyCollection([], **forbidden_look(theme), **look)
    axes.add_collection(forbidden)
    around = frame(axes, (0, 0, 1, 1), theme)

    def update(state: State) -> None:
        forbidden.set_verts(corners(~state.keep, GAP))
        i, j = state.chosen
        around.set_xy((j - 0.5, i - 0.5))

    return axes, update


def _mask(figure: Figure, theme: Theme) -> Callable[[State], None]:
    """Draw which cells of the mask are open."""
    axes, move = _grid(figure, theme, 0.5, "Mask")
    color = theme.accents[1]
    open_cells = PolyCollection([], facecolor=color, alpha=0.4, animated=True)
    axes.add_collection(open_cells)
    handles = [
        Patch(facecolor=color, alpha=0.4, label="0: may attend"),
        Patch(label="−∞: forbidden", **forbidden_look(theme)),
    ]
    legend(figure, handles, (0.03, 0.03), theme, ncols=2, handlelength=1.3, columnspacing=1)

    def update(state: State) -> None:
        move(state)
        open_cells.set_verts(corners(state.keep, GAP))

    return update


def _weights(figure: Figure, theme: Theme) -> Callable[[State], None]:
    """Draw the weights under the mask."""
    axes, move = _grid(figure, theme, 3.15, "Weights")
    look: Look = {"cmap": theme.sequential, "norm": Normalize(0, 1), "animated": True}
    cells = PolyCollection([], **look)
    axes.add_collection(cells)
    scale = figure.add_axes((3.15 / WIDEST, 0.13, 2.24 / WIDEST, 0.035), label="scale")
    figure.colorbar(cells, cax=scale, orientation="horizontal", ticks=[0, 0.5, 1])
    scale.tick_params(colors=theme.muted, labelsize=9, length=0)
    for edge in scale.spines.values():
        edge.set_visible(False)

    def update(state: State) -> None:
        move(state)
        cells.set_verts(corners(state.keep, GAP))
        cells.set_array(state.weights[state.keep])

    return update


def _seen(figure: Figure, theme: Theme) -> Callable[[State], None]:
    """Write beside each row how many keys its query sees."""
    axes = panel(figure, (5.5, 0.75, 0.9, 1.4), "seen", "Keys seen", theme)
    axes.set(xlim=(0, 1), ylim=(T_MAX - 0.5, -0.5))
    axes.set_axis_off()
    look: Look = {"va": "center", "fontsize": 9, "color": theme.ink, "animated": True}
    texts = [axes.text(0, i, "", **look) for i in range(T_MAX)]

    def update(state: State) -> None:
        counts = state.keep.sum(axis=1)
        for i, text in enumerate(texts):
            text.set_text(str(counts[i] or "none: zeros") if i < len(counts) else "")

    return update


# ------------------------------------------------------------------------------------ explore


def says(state: State) -> str:
    """Return in one sentence what each query sees, and the weight in the chosen cell."""
    t, t_total = state.keep.shape
    counts = state.keep.sum(axis=1)
    flips = "" if state.flips == 0 else f" with {state.flips} flipped by hand"
    seen = ", ".join(map(str, counts))
    empty = [f"query {i} gets only zeros" for i in np.flatnonzero(counts == 0)]
    i, j = state.chosen
    found = f"the weight {state.weights[i, j]:.2f}"
    weight = found if state.keep[i, j] else "no weight, as it is forbidden"
    return (
        f"The mask [{t}, {t_total}], “{state.preset}”{flips}: the queries see {seen} of "
        f"{t_total} keys; {'; '.join([*empty, f'query {i} gives key {j} {weight}'])}."
    )


def explore() -> Explorer:
    """Return the explorer: a preset, the sizes, a chosen cell, and the cells flipped by hand."""
    controls = {
        "preset": ipywidgets.Dropdown(options=PRESETS, description="Mask"),
        "t": ipywidgets.IntSlider(4, 1, T_MAX, description="T (queries)"),
        "base": ipywidgets.IntSlider(2, 0, BASE_MAX, description="base (cached keys)"),
        "query": ipywidgets.IntSlider(0, 0, T_MAX - 1, description="Query i"),
        "key": ipywidgets.IntSlider(4, 0, T_MAX + BASE_MAX - 1, description="Key j"),
        "flipped": ipywidgets.Dropdown(
            options=[("none", NO_FLIPS), ("the chosen cell", CHOSEN)], description="Flipped cells"
        ),
    }

    def inside(i: int, j: int) -> tuple[int, int]:
        t, base = controls["t"].value, controls["base"].value
        return int(np.clip(i, 0, t - 1)), int(np.clip(j, 0, t + base - 1))

    def chosen() -> tuple[int, int]:
        return inside(controls["query"].value, controls["key"].value)

    def flip(cell: tuple[int, int]) -> None:
        flipped = controls["flipped"].value
        before = {chosen()} if flipped == CHOSEN else set(flipped)
        cells = tuple(sorted(before ^ {cell}))
        presets = list(controls["flipped"].options)[:2]
        controls["flipped"].options = [*presets, ("by hand", cells)] if cells else presets
        controls["flipped"].value = cells

    def choose(cell: tuple[int, int]) -> None:
        controls["query"].value, controls["key"].value = cell

    def on_pointer(x: float, y: float, pointer: Pointer) -> None:
        cell = round(y), round(x)
        pressed = pointer.kind == "down" and pointer.axes in ("Mask", "Weights")
        if pressed and cell == inside(*cell):
            if pointer.axes == "Mask":
                flip(cell)
            choose(cell)

    def on_key(key: str) -> None:
        if key in (" ", "Enter"):
            flip(chosen())
        i, j = chosen()
        down, right = MOVES.get(key, (0, 0))
        choose(inside(i + down, j + right))

    name = "A mask, the weights under it, and what each query sees; space flips the chosen cell"
    return Explorer(name, compute, draw, says, controls, on_pointer, on_key)
