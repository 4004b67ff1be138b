"""Live figure of lessons 08 and 09: the weights of all heads on one scale, one of them large."""

from dataclasses import dataclass
from functools import partial

import ipywidgets
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch, Rectangle

from course_lib.attention import causal_keep
from course_lib.live.figure import Explorer, Picture
from course_lib.plots import LIGHT, headline, labels_for, new_figure, number, style, text_color
from course_lib.tensor import Tensor


@dataclass(frozen=True)
class State:
    """All heads' weights, and the head and the query that are looked at.

    Attributes
    ----------
    weights : ndarray, [H, T, T]
    tokens : list of str
    head, query : int
    when : int or None
        The training step that the weights are from.
    """

    weights: np.ndarray
    tokens: list
    head: int
    query: int
    when: int | None


def compute(film, tokens, head, query, when=None):
    """Return the state for one head and one query, given as positions, at one training step.

    `film` is {training step: weights [H, T, T]}, or has the one entry None.
    """
    return State(film[when], tokens, head, query, when)


def draw(state, theme=LIGHT):
    """Draw the chosen head large, with its numbers, and all heads small beside it."""
    figure = new_figure(9.2, 4.4, theme, layout=None)
    headline(figure, "Each head shares out its own attention; all on one scale", theme)
    look = {"facecolor": theme.forbidden, "edgecolor": theme.hatch, "hatch": "////", "linewidth": 0}
    figure.legend(
        handles=[Patch(label="forbidden: weight 0", **look)],
        **{"loc": "upper right", "bbox_to_anchor": (0.99, 0.93), "frameon": False},
        **{"labelcolor": theme.ink, "fontsize": 9},
    )
    updates = [_large(figure, state, theme), _small(figure, state, theme)]

    def update(state):
        for move in updates:
            move(state)

    update(state)
    return Picture(figure, update)


def _grid(axes, state, theme):
    """Prepare axes for one [T, T] matrix; return its mesh of cells."""
    t = len(state.tokens)
    style(axes, theme)
    axes.spines["bottom"].set_visible(False)
    axes.set(xlim=(-0.5, t - 0.5), ylim=(t - 0.5, -0.5))
    edges = np.arange(t + 1) - 0.5
    hidden = np.ma.masked_array(np.zeros((t, t)), causal_keep(t))
    gray = ListedColormap([theme.forbidden])
    axes.pcolor(edges, edges, hidden, cmap=gray, hatch="////", edgecolors=theme.hatch, linewidth=0)
    look = {"cmap": theme.sequential, "vmin": 0, "vmax": 1, "edgecolors": theme.paper}
    return axes.pcolormesh(edges, edges, np.zeros((t, t)), linewidth=1, animated=True, **look)


def _allowed(weights):
    return np.ma.masked_array(weights, ~causal_keep(len(weights)))


def _large(figure, state, theme):
    """Draw the chosen head with a number in each cell and a frame around the query's row."""
    axes = figure.add_axes((0.1, 0.05, 0.38, 0.68), label="chosen head")
    mesh = _grid(axes, state, theme)
    t = len(state.tokens)
    names = labels_for(state.tokens, t, "tokens", longest=8)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xticks(range(t), names, parse_math=False)
    axes.set_yticks(range(t), names, parse_math=False)
    axes.tick_params(labelcolor=theme.ink)
    axes.set(xlabel="key j", ylabel="query i")
    moves = {"animated": True, "zorder": 4}
    look = {"facecolor": "none", "edgecolor": theme.accents[0], "linewidth": 2.5}
    frame = axes.add_patch(Rectangle((-0.5, -0.5), t, 1, clip_on=False, **look, **moves))
    texts = [
        [axes.text(j, i, "", ha="center", va="center", fontsize=9, **moves) for j in range(t)]
        for i in range(t)
    ]

    def update(state):
        weights = state.weights[state.head]
        mesh.set_array(_allowed(weights))
        frame.set_y(state.query - 0.5)
        for (i, j), weight in np.ndenumerate(weights):
            shown = number(weight) if j <= i else ""
            color = text_color(theme.sequential(float(weight)))
            texts[i][j].set(text=shown, color=color)

    return update


def _small(figure, state, theme):
    """Draw every head without numbers and a frame around the chosen one."""
    count = len(state.weights)
    columns = 2 if count <= 4 else 4
    height = 0.62 / 2 - 0.08
    frames, meshes = [], []
    for n in range(count):
        row, column = divmod(n, columns)
        side = 0.44 / columns
        box = (0.54 + column * side, 0.5 - row * (height + 0.12), side * 0.86, height)
        axes = figure.add_axes(box, label=f"head {n}")
        meshes.append(_grid(axes, state, theme))
        axes.set(xticks=(), yticks=())
        axes.set_title(f"head {n}", fontsize=10, color=theme.ink)
        place = {"xy": (0, 0), "width": 1, "height": 1, "transform": axes.transAxes}
        look = {"facecolor": "none", "edgecolor": theme.accents[0], "linewidth": 2.5}
        frame = Rectangle(**place, **look, clip_on=False, animated=True, zorder=4)
        frames.append(axes.add_patch(frame))

    def update(state):
        for n, (frame, mesh) in enumerate(zip(frames, meshes, strict=True)):
            frame.set_visible(n == state.head)
            mesh.set_array(_allowed(state.weights[n]))

    return update


def says(state):
    """Return in one sentence where the chosen query looks with the chosen head."""
    row = state.weights[state.head, state.query]
    order = np.argsort(-row, kind="stable")[:2]
    parts = [f"{state.tokens[j]} (position {j}) with {number(row[j])}" for j in order if row[j] > 0]
    after = "" if state.when is None else f"After {state.when} training steps, w"
    return (
        f"{after or 'W'}ith head {state.head}, {state.tokens[state.query]} (position "
        f"{state.query}) looks most at {', then at '.join(parts)}."
    )


def explore(weights, tokens):
    """Return the explorer for the weights of several heads, or for a film of them.

    Parameters
    ----------
    weights : array or Tensor, [H, T, T], or dict of int to such arrays
        Causal: row i sums to 1 over j ≤ i; H from 1 to 8. A dict holds the weights after so many
        training steps, and gets a slider of its own.
    tokens : list of str, T of them

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    film = weights if isinstance(weights, dict) else {None: weights}
    film = {when: _checked(matrices, len(tokens)) for when, matrices in film.items()}
    last = film[max(film)] if None not in film else film[None]
    options = [(f"head {n}", n) for n in range(len(last))]
    hardest = last[:, -1, :-1].max(axis=-1, initial=0).argmax()  # the last query at an earlier key
    queries = [(f"{n} {token}", n) for n, token in enumerate(tokens)]
    controls = {
        "head": ipywidgets.ToggleButtons(options=options, value=int(hardest), description="Head"),
        "query": ipywidgets.SelectionSlider(
            options=queries, value=len(tokens) - 1, description="Query"
        ),
    }
    if None not in film:
        steps = ipywidgets.SelectionSlider(
            options=list(film), value=max(film), description="Training step"
        )
        controls = {"when": steps} | controls

    def on_pointer(_x, y, pointer):
        if pointer.axes.startswith("head "):
            controls["head"].value = int(pointer.axes.removeprefix("head "))
        elif pointer.axes == "chosen head":
            controls["query"].value = int(np.clip(round(y), 0, len(tokens) - 1))

    name = "The attention weights of several heads"
    return Explorer(name, partial(compute, film, tokens), draw, says, controls, on_pointer)


def _checked(weights, t):
    weights = np.asarray(weights.data if isinstance(weights, Tensor) else weights, dtype=float)
    if weights.ndim != 3 or weights.shape[1:] != (t, t) or not 1 <= len(weights) <= 8:
        raise ValueError(
            f"heads: weights {list(weights.shape)} for {t} tokens; expected [H, {t}, {t}] "
            "with 1 to 8 heads"
        )
    return weights
