"""Lesson 10's live figure: what a step of generation computes, with a cache and without."""

from dataclasses import dataclass

import ipywidgets
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch, Rectangle

from course_lib.attention import causal_keep
from course_lib.live.figure import Explorer, Picture
from course_lib.plots import LIGHT, headline, new_figure, style

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
    pairs: np.ndarray
    totals: np.ndarray


def compute(step, cache):
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


def draw(state, theme=LIGHT):
    """Draw the pairs of queries and keys on the left, the work so far on the right."""
    figure = new_figure(9.4, 4.9, theme, layout=None)
    headline(figure, "With a cache, a step computes one row of scores instead of all", theme)
    updates = [_pairs(figure, theme), _work(figure, state, theme)]

    def update(state):
        for move in updates:
            move(state)

    update(state)
    return Picture(figure, update)


def _pairs(figure, theme):
    """Draw the square of queries and keys, and a frame around the rectangle [T, T_total]."""
    axes = figure.add_axes((0.1, 0.14, 0.43, 0.62), label="pairs")
    style(axes, theme)
    n = len(TOKENS)
    axes.spines["bottom"].set_visible(False)
    axes.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5), xlabel="key j", ylabel="query i")
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xticks(range(n), TOKENS, rotation=45, ha="left", parse_math=False)
    axes.set_yticks(range(n), TOKENS, parse_math=False)
    axes.tick_params(labelcolor=theme.ink)
    colors = [theme.paper, theme.accents[1], theme.accents[0], theme.forbidden]
    edges = np.arange(n + 1) - 0.5
    look = {"cmap": ListedColormap(colors), "vmin": -0.5, "vmax": 3.5, "edgecolors": theme.grid}
    mesh = axes.pcolormesh(edges, edges, np.zeros((n, n)), linewidth=1, animated=True, **look)
    look = {"facecolor": "none", "edgecolor": theme.ink, "linewidth": 2.5, "clip_on": False}
    frame = axes.add_patch(Rectangle((-0.5, -0.5), 1, 1, animated=True, zorder=4, **look))
    labels = ("computed now", "computed in an earlier step", "forbidden by the mask")
    swatches = zip(colors[2:0:-1] + colors[3:], labels, strict=True)
    figure.legend(
        handles=[Patch(facecolor=color, label=label) for color, label in swatches],
        **{"loc": "lower left", "bbox_to_anchor": (0.02, 0), "ncols": 3, "frameon": False},
        **{"labelcolor": theme.ink, "fontsize": 9, "columnspacing": 1.2, "handlelength": 1.2},
    )

    def update(state):
        mesh.set_array(state.pairs)
        frame.set_bounds(-0.5, state.base - 0.5, state.t_total, state.t)

    return update


def _work(figure, state, theme):
    """Draw the scores computed so far, with and without a cache, over the steps."""
    axes = figure.add_axes((0.66, 0.24, 0.3, 0.5), label="work")
    style(axes, theme, grid="y")
    steps = np.arange(state.totals.shape[1])
    axes.set(xlabel="step", xlim=(-0.2, steps[-1] + 0.2), ylim=(0, state.totals.max() * 1.08))
    axes.set_title("scores computed so far, one head", loc="left", fontsize=10, color=theme.ink)
    dots = []
    for totals, name, color in zip(
        state.totals, ("no cache", "cache"), (theme.accents[0], theme.accents[2]), strict=True
    ):
        axes.plot(steps, totals, color=color)
        above = {"xytext": (-8, 6), "textcoords": "offset points", "ha": "right"}
        axes.annotate(name, (steps[-2], totals[-2]), color=color, fontsize=10, **above)
        dots += axes.plot([], [], "o", color=color, markersize=8, clip_on=False, animated=True)

    def update(state):
        for dot, totals in zip(dots, state.totals, strict=True):
            dot.set_data([state.step], [totals[state.step]])

    return update


def says(state):
    """Return in one sentence what this step computes."""
    what = "reads the prompt" if state.step == 0 else f"adds “{TOKENS[state.t_total - 1]}”"
    without, with_cache = state.totals[:, state.step]
    return (
        f"Step {state.step} {what}: {state.t} new and {state.base} cached tokens, so the mask is "
        f"[{state.t}, {state.t_total}] and one head computes {state.t * state.t_total} scores; "
        f"up to here {with_cache} with a cache and {without} without."
    )


def explore():
    """Return the explorer: the step, and whether there is a cache."""
    last = len(TOKENS) - PROMPT
    controls = {
        "step": ipywidgets.IntSlider(3, 0, last, description="Step"),
        "cache": ipywidgets.Checkbox(True, description="Keep keys and values in a cache"),
    }

    def on_pointer(x, y, pointer):
        row = y - PROMPT + 1 if pointer.axes == "pairs" else x
        controls["step"].value = int(np.clip(round(row), 0, last))

    name = "What each step of generation computes"
    return Explorer(name, compute, draw, says, controls, on_pointer)
