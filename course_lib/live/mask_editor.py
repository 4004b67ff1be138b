"""Lesson 06's second live figure: a mask whose cells are clicked, and what each query still sees.

The cells flipped by hand are themselves a control, so that they can be taken back.
"""

from dataclasses import dataclass

import ipywidgets
import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.patches import Patch, Rectangle

from course_lib.attention import attention, causal_keep
from course_lib.live.figure import Explorer, Picture
from course_lib.plots import LIGHT, headline, new_figure, style

T_MAX, BASE_MAX = 5, 3
SEED = 6
PRESETS = ("causal (j ≤ i + base)", "not itself (j < i + base)", "none", "padding", "window of 2")
NO_FLIPS, CHOSEN = (), "chosen"
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

    keep: np.ndarray
    weights: np.ndarray
    chosen: tuple[int, int]
    flips: int
    preset: str


# ------------------------------------------------------------------------------------ compute


def compute(preset, t, base, query, key, flipped):
    """Return the state for `t` queries after `base` cached keys.

    `flipped` holds the cells (i, j) that differ from the preset, or is CHOSEN: only the cell of
    `query` and `key`.
    """
    chosen = min(query, t - 1), min(key, t + base - 1)
    keep = preset_keep(preset, t, base)
    cells = [chosen] if flipped == CHOSEN else list(flipped)
    cells = [(i, j) for i, j in cells if i < t and j < t + base]
    for i, j in cells:
        keep[i, j] = not keep[i, j]
    q, k, v = np.random.default_rng(SEED).normal(size=(3, T_MAX + BASE_MAX, 4))  # all tokens
    last = t + base
    _, steps = attention(q[base:last], k[:last], v[:last], keep, return_steps=True)
    return State(keep, steps.weights.data, chosen, len(cells), preset)


def preset_keep(preset, t, base):
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


def draw(state, theme=LIGHT):
    """Draw the mask and the weights on one grid each, and beside them what each query sees."""
    figure = new_figure(9.2, 3.7, theme, layout=None)
    headline(figure, "A query mixes only the keys that its row of the mask leaves open", theme)
    updates = [_mask(figure, theme), _weights(figure, theme), _seen(figure, theme)]

    def update(state):
        for move in updates:
            move(state)

    update(state)
    return Picture(figure, update)


def _grid(figure, theme, left, title):
    """Return the Axes of one grid, and a function that moves its hatch and its frame."""
    axes = figure.add_axes((left, 0.19, 0.33, 0.513), label=title)
    style(axes, theme)
    axes.spines["bottom"].set_visible(False)
    axes.set(xlim=(-0.5, T_MAX + BASE_MAX - 0.5), ylim=(T_MAX - 0.5, -0.5))
    axes.set(xticks=range(T_MAX + BASE_MAX), yticks=range(T_MAX), xlabel="key j", ylabel="query i")
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_title(title, loc="left", fontsize=10, color=theme.ink, pad=8)
    look = {"animated": True, "linewidth": 0, "zorder": 2}
    look |= {"facecolor": theme.forbidden, "edgecolor": theme.hatch, "hatch": "////"}
    forbidden = axes.add_collection(PolyCollection([], **look))
    look = {"facecolor": "none", "edgecolor": theme.ink, "linewidth": 2, "clip_on": False}
    frame = axes.add_patch(Rectangle((0, 0), 1, 1, animated=True, zorder=4, **look))

    def update(state):
        forbidden.set_verts(_cells(~state.keep))
        i, j = state.chosen
        frame.set_xy((j - 0.5, i - 0.5))

    return axes, update


def _cells(where):
    """Return the corners of each cell where `where` [t, t_total] is True, with a gap around it."""
    corner = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * 0.47
    return [corner + cell[::-1] for cell in np.argwhere(where)]


def _mask(figure, theme):
    """Draw which cells of the mask are open."""
    axes, move = _grid(figure, theme, 0.06, "Mask")
    color = theme.accents[1]
    open_cells = axes.add_collection(PolyCollection([], facecolor=color, alpha=0.4, animated=True))
    hatched = {"facecolor": theme.forbidden, "edgecolor": theme.hatch, "hatch": "////"}
    figure.legend(
        handles=[
            Patch(facecolor=color, alpha=0.4, label="0: may attend"),
            Patch(linewidth=0, label="−∞: forbidden", **hatched),
        ],
        **{"loc": "lower left", "bbox_to_anchor": (0.053, 0.03), "ncols": 2, "frameon": False},
        **{"labelcolor": theme.ink, "fontsize": 9, "borderaxespad": 0.3},
    )

    def update(state):
        move(state)
        open_cells.set_verts(_cells(state.keep))

    return update


def _weights(figure, theme):
    """Draw the weights under the mask."""
    axes, move = _grid(figure, theme, 0.46, "Weights")
    look = {"cmap": theme.sequential, "norm": Normalize(0, 1), "animated": True}
    cells = axes.add_collection(PolyCollection([], **look))
    scale = figure.add_axes((0.46, 0.1, 0.33, 0.035), label="scale")
    figure.colorbar(cells, cax=scale, orientation="horizontal", ticks=[0, 0.5, 1])
    scale.tick_params(colors=theme.muted, labelsize=9, length=0)
    for edge in scale.spines.values():
        edge.set_visible(False)

    def update(state):
        move(state)
        cells.set_verts(_cells(state.keep))
        cells.set_array(state.weights[state.keep])

    return update


def _seen(figure, theme):
    """Write beside each row how many keys its query sees."""
    axes = figure.add_axes((0.81, 0.19, 0.18, 0.513), label="seen")
    axes.set(xlim=(0, 1), ylim=(T_MAX - 0.5, -0.5))
    axes.set_axis_off()
    look = {"va": "center", "fontsize": 10, "color": theme.ink, "animated": True}
    texts = [axes.text(0, i, "", **look) for i in range(T_MAX)]

    def update(state):
        counts = state.keep.sum(axis=1)
        for i, text in enumerate(texts):
            text.set_text(_in_words(counts[i]) if i < len(counts) else "")

    return update


def _in_words(count):
    if count == 0:
        return "sees nothing: zeros"
    return f"sees {count} key{'s' if count > 1 else ''}"


# ------------------------------------------------------------------------------------ explore


def says(state):
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


def explore():
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

    def inside(i, j):
        t, base = controls["t"].value, controls["base"].value
        return int(np.clip(i, 0, t - 1)), int(np.clip(j, 0, t + base - 1))

    def chosen():
        return inside(controls["query"].value, controls["key"].value)

    def flip(cell):
        flipped = controls["flipped"].value
        cells = {chosen()} if flipped == CHOSEN else set(flipped)
        cells = tuple(sorted(cells ^ {cell}))
        presets = list(controls["flipped"].options)[:2]
        controls["flipped"].options = [*presets, ("by hand", cells)] if cells else presets
        controls["flipped"].value = cells

    def choose(cell):
        controls["query"].value, controls["key"].value = cell

    def on_pointer(x, y, pointer):
        cell = round(y), round(x)
        pressed = pointer.kind == "down" and pointer.axes in ("Mask", "Weights")
        if pressed and cell == inside(*cell):
            if pointer.axes == "Mask":
                flip(cell)
            choose(cell)

    def on_key(key):
        if key in (" ", "Enter"):
            flip(chosen())
        i, j = chosen()
        down, right = MOVES.get(key, (0, 0))
        choose(inside(i + down, j + right))

    name = "A mask, the weights under it, and what each query sees; space flips the chosen cell"
    return Explorer(name, compute, draw, says, controls, on_pointer, on_key)
