"""Lesson 02's live figure: drag a query among five keys, and turn a choice into an average."""

from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from course_lib._arrays import Array
from course_lib.live.figure import Explorer, Picture, Pointer, picture
from course_lib.plots import LIGHT, WIDEST, Look, Theme, halo, headline, new_figure, number, panel
from course_lib.tensor import Tensor

WORDS = ("river", "boat", "the", "loan", "money")
KEYS = np.array([[0.3, 2.0], [-1.2, 1.3], [-1.5, -1.4], [1.3, -1.2], [2.0, 0.3]])  # [5, 2]
VALUES = np.array([2.0, 1.0, 0.0, -1.0, -2.0])  # [5], from −2 for money to 2 for water
REACH, STEP = 2.4, 0.1  # the query's components run to ± REACH in steps of STEP
ARROWS = {"ArrowLeft": (-1, 0), "ArrowRight": (1, 0), "ArrowDown": (0, -1), "ArrowUp": (0, 1)}


@dataclass(frozen=True)
class State:
    """What the figure shows for one query and one temperature.

    Attributes
    ----------
    query : ndarray, [2]
    temperature : float
    scores, weights : ndarray, [5]
        Of each key; the weights sum to 1.
    output : float
        The weighted sum of the values.
    """

    query: Array
    temperature: float
    scores: Array
    weights: Array
    output: float


# ------------------------------------------------------------------------------------ compute


def compute(query_1: float, query_2: float, temperature: float) -> State:
    """Return the state for the query (query_1, query_2): compare, weigh, mix."""
    query = np.array([query_1, query_2])
    scores = Tensor(KEYS) @ query  # [5, 2] @ [2] = [5]
    weights = (scores / temperature).softmax(dim=-1)  # [5]
    output = weights @ VALUES  # [5] @ [5], one number
    return State(query, temperature, scores.data, weights.data, output.item())


# ------------------------------------------------------------------------------------ draw


def draw(state: State, theme: Theme = LIGHT) -> Picture:
    """Draw the plane of keys with the query, the weights, and the output among the values."""
    figure = new_figure(WIDEST, 4.3, theme, layout=None)
    headline(figure, "Keys that lie farther along the query get more weight", theme)
    updates = [_keys(figure, theme), _weights(figure, theme), _values(figure, theme)]
    return picture(figure, state, updates)


def _keys(figure: Figure, theme: Theme) -> Callable[[State], None]:
    """Draw keys and query; a dotted line leads from each key to its place along the query."""
    box = (0.6, 0.55, 3.1, 3.1)
    axes = panel(figure, box, "keys", "Keys, and the query: drag its round end", theme, "both")
    axes.set(xlim=(-2.8, 2.8), ylim=(-2.8, 2.8), xticks=range(-2, 3), yticks=range(-2, 3))
    axes.set(xlabel="component 1: money", ylabel="component 2: water")
    moves: Look = {"animated": True, "zorder": 3}
    across, up = KEYS.T
    circles = axes.scatter(across, up, s=1, color=theme.accents[1], alpha=0.4, animated=True)
    (line,) = axes.plot([], [], color=theme.muted, linewidth=1, animated=True)
    feet = LineCollection([], colors=theme.muted, linewidths=1, linestyles=":", animated=True)
    axes.add_collection(feet)
    axes.plot(*KEYS.T, "o", color=theme.accents[1], markersize=5, **moves)
    (arrow,) = axes.plot([], [], color=theme.accents[0], linewidth=3, **moves)
    (end,) = axes.plot([], [], "o", color=theme.accents[0], markersize=12, **moves)
    for word, (x, y) in zip(WORDS, KEYS, strict=True):
        look: Look = {"ha": "center", "color": theme.ink, "path_effects": halo(theme)}
        axes.text(x, y + 0.36, word, **look, **moves)

    def update(state: State) -> None:
        circles.set_sizes(1000 * state.weights)
        arrow.set_data(*np.stack([np.zeros(2), state.query]).T)
        end.set_data(*state.query[:, None])
        length = max(np.hypot(*state.query), 1e-9)
        unit = state.query / length
        line.set_data(*np.stack([-4 * unit, 4 * unit]).T)
        feet.set_segments([(key, unit * (key @ unit)) for key in KEYS])

    return update


def _weights(figure: Figure, theme: Theme) -> Callable[[State], None]:
    """Draw each key's weight as a bar."""
    box = (4.45, 2.15, 1.8, 1.5)
    axes = panel(figure, box, "weights", "Weights of the keys", theme, "x")
    axes.set(xlim=(0, 1.3), ylim=(4.6, -0.6), xticks=(0, 0.5, 1), xlabel="weight")
    axes.set_yticks(range(5), WORDS)
    axes.tick_params(axis="y", labelcolor=theme.ink, labelsize=10)
    bars = axes.barh(range(5), [0] * 5, 0.6, color=theme.accents[1], animated=True)
    look: Look = {"va": "center", "color": theme.ink, "fontsize": 9, "animated": True}
    texts = [axes.text(0, n, "", **look) for n in range(5)]

    def update(state: State) -> None:
        for bar, text, weight in zip(bars, texts, state.weights, strict=True):
            bar.set_width(weight)
            text.set(text=number(weight), x=weight + 0.02)

    return update


def _values(figure: Figure, theme: Theme) -> Callable[[State], None]:
    """Draw the values on a line from money to water, and the output among them."""
    box = (4.05, 0.55, 2.25, 0.6)
    axes = panel(figure, box, "values", "Values, and their weighted sum", theme)
    axes.set(xlim=(-2.4, 2.4), ylim=(0, 1), yticks=())
    ticks = [f"{number(v)[:-3]}\n{word}" for v, word in zip(VALUES, WORDS, strict=True)]
    axes.set_xticks(VALUES, ticks)
    axes.tick_params(axis="x", labelcolor=theme.ink)
    axes.plot(VALUES, np.zeros(5), "o", color=theme.accents[1], clip_on=False)
    moves: Look = {"color": theme.accents[2], "animated": True}
    (mark,) = axes.plot([], [], "v", markersize=11, **moves)
    text = axes.text(0, 0.58, "", ha="center", **moves)

    def update(state: State) -> None:
        mark.set_data([state.output], [0.27])
        text.set(text=number(state.output), x=state.output)

    return update


# ------------------------------------------------------------------------------------ explore


def says(state: State) -> str:
    """Return in one sentence the weights and the output."""
    weights = ", ".join(f"{w} {number(s)}" for w, s in zip(WORDS, state.weights, strict=True))
    query = ", ".join(number(component) for component in state.query)
    return (
        f"With the query ({query}) at temperature {state.temperature:.2f} the weights are "
        f"{weights}, and the output is {number(state.output)}."
    )


def explore() -> Explorer:
    """Return the explorer: the query's two components and the temperature; drag the query."""
    controls = {
        "query_1": ipywidgets.FloatSlider(
            0.5, min=-REACH, max=REACH, step=STEP, description="Query: money"
        ),
        "query_2": ipywidgets.FloatSlider(
            1.0, min=-REACH, max=REACH, step=STEP, description="Query: water"
        ),
        "temperature": ipywidgets.FloatLogSlider(
            1.0, min=-2, max=3, step=0.1, readout_format=".2f", description="Temperature"
        ),
    }

    def move_to(x: float, y: float) -> None:
        controls["query_1"].value, controls["query_2"].value = (
            min(max(round(component, 1), -REACH), REACH) for component in (x, y)
        )

    def on_pointer(x: float, y: float, pointer: Pointer) -> None:
        if pointer.axes == "keys":
            move_to(x, y)

    def on_key(key: str) -> None:
        if key in ARROWS:
            x, y = ARROWS[key]
            move_to(controls["query_1"].value + x * STEP, controls["query_2"].value + y * STEP)

    name = "A query that shares its weight among five keys in the plane"
    return Explorer(name, compute, draw, says, controls, on_pointer, on_key)
