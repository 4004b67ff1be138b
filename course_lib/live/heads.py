"""Live figure of lessons 08 and 09: the weights of all heads on one scale, one of them large."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import ipywidgets
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import ArrayLike

from course_lib._arrays import Array
from course_lib.attention import causal_keep
from course_lib.live.figure import Explorer, Picture, Pointer, picture
from course_lib.plots import (
    LIGHT,
    WIDEST,
    Look,
    Theme,
    forbidden_look,
    frame,
    headline,
    label_ticks,
    labels_for,
    legend,
    new_figure,
    number,
    panel,
    text_color,
)
from course_lib.tensor import Tensor

Film = Mapping[int | None, Array]  # training step, or None: weights [H, T, T]


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

    weights: Array
    tokens: Sequence[str]
    head: int
    query: int
    when: int | None


def compute(
    film: Film, tokens: Sequence[str], head: int, query: int, when: int | None = None
) -> State:
    """Return the state for one head and one query, given as positions, at one training step.

    `film` is {training step: weights [H, T, T]}, or has the one entry None.
    """
    return State(film[when], tokens, head, query, when)


def draw(state: State, theme: Theme = LIGHT) -> Picture:
    """Draw the chosen head large, with its numbers, and all heads small beside it."""
    figure = new_figure(WIDEST, 4.55, theme, layout=None)
    headline(figure, "Each head shares out its own attention", theme)
    mesh, move_large = _large(figure, state, theme)
    _scale(figure, mesh, theme)
    updates = [move_large, _small(figure, state, theme)]
    return picture(figure, state, updates)


def _grid(axes: Axes, state: State, side: float, theme: Theme) -> QuadMesh:
    """Prepare axes for one [T, T] matrix, `side` inches wide; return its mesh of cells."""
    t = len(state.tokens)
    axes.spines["bottom"].set_visible(False)
    axes.set(xlim=(-0.5, t - 0.5), ylim=(t - 0.5, -0.5))
    edges = np.arange(t + 1) - 0.5
    hidden = np.ma.masked_array(np.zeros((t, t)), causal_keep(t))
    axes.pcolor(edges, edges, hidden, cmap=ListedColormap([theme.forbidden]), **_stripes(theme))
    look: Look = {"cmap": theme.sequential, "vmin": 0, "vmax": 1, "edgecolors": theme.paper}
    gap = min(1, 3 * side / t)  # points between two cells
    return axes.pcolormesh(edges, edges, np.zeros((t, t)), linewidth=gap, animated=True, **look)


def _stripes(theme: Theme) -> Look:
    look = forbidden_look(theme)
    return {"edgecolors": look["edgecolor"], "hatch": look["hatch"], "linewidth": 0}


def _allowed(weights: Array) -> Array:
    return np.ma.masked_array(weights, ~causal_keep(len(weights)))


def _large(figure: Figure, state: State, theme: Theme) -> tuple[QuadMesh, Callable[[State], None]]:
    """Draw the chosen head, numbers where they fit, and a frame around the query's row."""
    side, t = 3.1, len(state.tokens)
    axes = panel(figure, (0.95, 0.6, side, side), "chosen head", "", theme)
    mesh = _grid(axes, state, side, theme)
    names = labels_for(state.tokens, t, "tokens", longest=8)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    label_ticks(axes.xaxis, names, side / t)
    label_ticks(axes.yaxis, names, side / t)
    axes.tick_params(labelcolor=theme.ink)
    axes.set(xlabel="key j", ylabel="query i")
    moves: Look = {"animated": True, "zorder": 3}
    row = frame(axes, (-0.5, -0.5, t, 1), theme)
    cells = list(np.argwhere(causal_keep(t))) if side / t > 0.33 else []
    look: Look = {"ha": "center", "va": "center", "fontsize": 9}
    texts = [axes.text(j, i, "", **look, **moves) for i, j in cells]

    def update(state: State) -> None:
        weights = state.weights[state.head]
        mesh.set_array(_allowed(weights))
        row.set_y(state.query - 0.5)
        for text, (i, j) in zip(texts, cells, strict=True):
            color = text_color(theme.sequential(float(weights[i, j])))
            text.set(text=number(weights[i, j]), color=color)

    return mesh, update


def _scale(figure: Figure, mesh: QuadMesh, theme: Theme) -> None:
    """Draw the one scale of all heads, and what the stripes mean."""
    axes = panel(figure, (0.95, 0.33, 1.3, 0.1), "scale", "", theme)
    figure.colorbar(mesh, cax=axes, orientation="horizontal", ticks=[0, 0.5, 1])
    axes.spines[:].set_visible(False)
    axes.tick_params(colors=theme.muted, labelsize=9, length=0)
    axes.set_xlabel("")
    hatched = Patch(label="forbidden: weight 0", **forbidden_look(theme))
    legend(figure, [hatched], (0.375, 0.04), theme)


def _small(figure: Figure, state: State, theme: Theme) -> Callable[[State], None]:
    """Draw every head without numbers and a frame around the chosen one."""
    count = len(state.weights)
    rows = -(-count // 2)
    side = min(0.95, 3.85 / rows - 0.27)
    frames, meshes = [], []
    for n in range(count):
        row, column = divmod(n, 2)
        box = (4.32 + 1.05 * column, 3.7 - side - row * (side + 0.27), side, side)
        axes = panel(figure, box, f"head {n}", f"head {n}", theme)
        meshes.append(_grid(axes, state, side, theme))
        axes.set(xticks=(), yticks=())
        frames.append(frame(axes, (-0.04, -0.04, 1.08, 1.08), theme, transform=axes.transAxes))

    def update(state: State) -> None:
        for n, (mesh, around) in enumerate(zip(meshes, frames, strict=True)):
            mesh.set_array(_allowed(state.weights[n]))
            around.set_visible(n == state.head)

    return update


def says(state: State) -> str:
    """Return in one sentence where the chosen query looks with the chosen head."""
    seen = state.weights[state.head, state.query, : state.query + 1]
    shown = [number(weight) for weight in seen]  # two weights that look equal are called equal
    parts: list[str] = []
    for level in sorted(set(shown) - {"0.00"}, reverse=True)[:2]:
        names = [f"{state.tokens[j]} (position {j})" for j, s in enumerate(shown) if s == level]
        if not parts or len(names) == 1:
            parts.append(f"{' and '.join(names)} with {level}{' each' * (len(names) > 1)}")
    after = "" if state.when is None else f"After {state.when} training steps, w"
    return (
        f"{after or 'W'}ith head {state.head}, {state.tokens[state.query]} (position "
        f"{state.query}) looks most at {', then at '.join(parts)}."
    )


def explore(weights: ArrayLike | Mapping[int, ArrayLike], tokens: Sequence[str]) -> Explorer:
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
    given: Mapping[Any, ArrayLike] = weights if isinstance(weights, Mapping) else {None: weights}
    film = {when: _checked(matrices, len(tokens)) for when, matrices in given.items()}
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

    def on_pointer(_x: float, y: float, pointer: Pointer) -> None:
        if pointer.axes.startswith("head "):
            controls["head"].value = int(pointer.axes.removeprefix("head "))
        elif pointer.axes == "chosen head":
            controls["query"].value = int(np.clip(round(y), 0, len(tokens) - 1))

    name = "The attention weights of several heads"
    return Explorer(name, partial(compute, film, tokens), draw, says, controls, on_pointer)


def _checked(weights: ArrayLike, t: int) -> Array:
    weights = np.asarray(weights.data if isinstance(weights, Tensor) else weights, dtype=float)
    if weights.ndim != 3 or weights.shape[1:] != (t, t) or not 1 <= len(weights) <= 8:
        raise ValueError(
            f"heads: weights {list(weights.shape)} for {t} tokens; expected [H, {t}, {t}] "
            "with 1 to 8 heads"
        )
    return weights
