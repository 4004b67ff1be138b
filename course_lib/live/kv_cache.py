"""Lesson 10's live figure: what a step of generation computes, with a cache and without."""

from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets
import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from course_lib._arrays import Array
from course_lib.attention import causal_keep
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
    label_ticks,
    legend,
    new_figure,
    panel,
)

TOKENS = "the river was old and we saw the bank flooded".split()
PROMPT = 4  # tokens given; the others are generated one by one

LATER, BEFORE, NOW, FORBIDDEN = range(4)  # what a pair of query and key can be


@dataclass(frozen=True)
class State:
    """One step of generation.

    Attributes
    ----------
    step, cache
        As chosen; step 0 reads the prompt.
    base, t, t_total : int
        Cached tokens, new tokens, and both together.
    pairs : ndarray of int, [N, N]
        For query i and key j: LATER, BEFORE, NOW or FORBIDDEN.
    totals : ndarray of int, [2, steps]
        Scores computed up to each step in one head: without the cache, with it.
    """

    step: int
    cache: bool
    base: int
    t: int
    t_total: int
    pairs: Array
    totals: Array


def compute(step: int, cache: bool) -> State:
    """Return the state for one step, with or without a cache."""
    t_total = PROMPT + step
    base = t_total - 1 if cache and step > 0 else 0
    pairs = np.full((len(TOKENS), len(TOKENS)), LATER)
    pairs[:base, :base] = BEFORE
    pairs[base:t_total, :t_total] = NOW
    seen = pairs[:t_total, :t_total]
    seen[~causal_keep(t_total)] = FORBIDDEN
    sizes = np.arange(PROMPT, len(TOKENS) + 1)  # T_total of each step
    new = np.concatenate([[PROMPT], np.ones(len(sizes) - 1, int)])  # T of each step, cached
    totals = np.cumsum([sizes * sizes, new * sizes], axis=1)
    return State(step, cache, base, t_total - base, t_total, pairs, totals)


def draw(state: State, theme: Theme = LIGHT) -> Picture:
    """Draw the pairs of queries and keys on the left, the work so far on the right."""
    figure = new_figure(WIDEST, 4.6, theme, layout=None)
    headline(figure, "With a cache, a step computes one row of scores, not all", theme)
    updates = [_pairs(figure, theme), _work(figure, state, theme)]
    return picture(figure, state, updates)


def _pairs(figure: Figure, theme: Theme) -> Callable[[State], None]:
    """Draw the square of queries and keys, and a frame around the rectangle [T, T_total]."""
    axes = panel(figure, (0.95, 0.45, 2.9, 2.9), "pairs", "", theme)
    n = len(TOKENS)
    axes.spines["bottom"].set_visible(False)
    axes.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5), xlabel="key j", ylabel="query i")
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    label_ticks(axes.xaxis, TOKENS, 0.29)
    label_ticks(axes.yaxis, TOKENS, 0.29)
    axes.tick_params(labelcolor=theme.ink)
    colors = [theme.paper, theme.accents[1], theme.accents[0]]
    edges = np.arange(n + 1) - 0.5
    look: Look = {"cmap": ListedColormap(colors), "vmin": -0.5, "vmax": 2.5}
    look |= {"edgecolors": theme.grid, "linewidth": 1, "animated": True}
    mesh = axes.pcolormesh(edges, edges, np.zeros((n, n)), **look)
    look = forbidden_look(theme)
    hidden = PolyCollection([], animated=True, zorder=2, **look)
    axes.add_collection(hidden)
    computed = frame(axes, (-0.5, -0.5, 1, 1), theme)
    handles = [
        Patch(facecolor=colors[NOW], label="computed now"),
        Patch(facecolor=colors[BEFORE], label="computed in an earlier step"),
        Patch(label="forbidden by the mask", **look),
    ]
    legend(figure, handles, (0, 0), theme, ncols=3, columnspacing=1.2, handlelength=1.2)

    def update(state: State) -> None:
        mesh.set_array(np.ma.masked_equal(state.pairs, FORBIDDEN))
        hidden.set_verts(corners(state.pairs == FORBIDDEN, gap=0.02))
        computed.set_bounds(-0.5, state.base - 0.5, state.t_total, state.t)

    return update


def _work(figure: Figure, state: State, theme: Theme) -> Callable[[State], None]:
    """Draw the scores computed so far, with and without a cache, over the steps."""
    axes = panel(figure, (4.45, 0.95, 1.75, 2.4), "work", "Scores so far, one head", theme, "y")
    steps = np.arange(state.totals.shape[1])
    axes.set(xlabel="step", xlim=(-0.2, steps[-1] + 0.2), ylim=(0, state.totals.max() * 1.08))
    dots = []
    for totals, name, color in zip(
        state.totals, ("no cache", "cache"), (theme.accents[0], theme.accents[2]), strict=True
    ):
        axes.plot(steps, totals, color=color)
        above: Look = {"xytext": (-8, 6), "textcoords": "offset points", "ha": "right"}
        axes.annotate(name, (steps[-2], totals[-2]), color=color, fontsize=10, **above)
        dots += axes.plot([], [], "o", color=color, markersize=8, clip_on=False, animated=True)

    def update(state: State) -> None:
        for dot, totals in zip(dots, state.totals, strict=True):
            dot.set_data([state.step], [totals[state.step]])

    return update


def says(state: State) -> str:
    """Return in one sentence what this step computes."""
    what = "reads the prompt" if state.step == 0 else f"adds “{TOKENS[state.t_total - 1]}”"
    without, with_cache = state.totals[:, state.step]
    return (
        f"Step {state.step} {what}: {state.t} new and {state.base} cached tokens, so the mask is "
        f"[{state.t}, {state.t_total}] and one head computes {state.t * state.t_total} scores; "
        f"up to here {with_cache} with a cache and {without} without."
    )


def explore() -> Explorer:
    """Return the explorer: the step, and whether there is a cache."""
    last = len(TOKENS) - PROMPT
    controls = {
        "step": ipywidgets.IntSlider(3, 0, last, description="Step"),
        "cache": ipywidgets.Checkbox(True, description="Keep keys and values in a cache"),
    }

    def on_pointer(x: float, y: float, pointer: Pointer) -> None:
        row = y - PROMPT + 1 if pointer.axes == "pairs" else x
        controls["step"].value = int(np.clip(round(row), 0, last))

    name = "What each step of generation computes"
    return Explorer(name, compute, draw, says, controls, on_pointer)
