"""Lesson 01's live figure: the graph of L = (a · b + a) · c, its values and its gradients."""

from dataclasses import dataclass

import ipywidgets
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text

from course_lib.live.figure import Explorer, Picture
from course_lib.plots import LIGHT, WIDEST, Look, Theme, headline, new_figure, number
from course_lib.tensor import Tensor

# where each node stands, in columns from left to right; `a` is used twice
PLACES = {"a": (0, 2), "b": (0, 1), "c": (0, 0), "d": (1, 1.5), "e": (2, 2), "L": (3, 1)}
MADE_BY = {"a": "a", "b": "b", "c": "c", "d": "d = a · b", "e": "e = d + a", "L": "L = e · c"}
EDGES = (("a", "d"), ("b", "d"), ("d", "e"), ("a", "e"), ("e", "L"), ("c", "L"))
WIDTH, HEIGHT = 0.54, 0.62  # of a node's box, in columns and rows


@dataclass(frozen=True)
class State:
    """The numbers at every node and edge of the graph.

    Attributes
    ----------
    values, gradients : dict of str to float
        For each node: its value, and ∂L/∂node.
    slopes : dict of (str, str) to float
        For each edge (x, y): ∂y/∂x with everything else held fixed.
    """

    values: dict[str, float]
    gradients: dict[str, float]
    slopes: dict[tuple[str, str], float]


def compute(a: float, b: float, c: float) -> State:
    """Return the state for three numbers, by the tape."""
    nodes = {name: Tensor(x, requires_grad=True) for name, x in (("a", a), ("b", b), ("c", c))}
    nodes["d"] = nodes["a"] * nodes["b"]
    nodes["e"] = nodes["d"] + nodes["a"]
    nodes["L"] = nodes["e"] * nodes["c"]
    for node in nodes.values():
        node.retain_grad()
    nodes["L"].backward()
    values = {name: node.item() for name, node in nodes.items()}
    slopes = {edge: 1.0 for edge in EDGES}
    slopes |= {("a", "d"): values["b"], ("b", "d"): values["a"]}
    slopes |= {("e", "L"): values["c"], ("c", "L"): values["e"]}
    gradients = {name: float(np.asarray(node.grad)) for name, node in nodes.items()}
    return State(values, gradients, slopes)


def draw(state: State, theme: Theme = LIGHT) -> Picture:
    """Draw the graph from left to right, values and gradients in the nodes, slopes on the edges."""
    figure = new_figure(WIDEST, 3.8, theme, layout=None)
    headline(figure, "Values flow to the right, gradients flow back to the left", theme)
    axes = figure.add_axes((0, 0, 1, 0.9), label="graph")
    axes.set(xlim=(-0.34, 3.34), ylim=(-0.42, 2.42))
    axes.set_axis_off()
    slopes = {edge: _edge(axes, *edge, theme) for edge in EDGES}
    nodes = {name: _node(axes, name, theme) for name in PLACES}

    def update(state: State) -> None:
        for edge, text in slopes.items():
            text.set_text(f"× {number(state.slopes[edge])}")
        for name, (value, gradient) in nodes.items():
            value.set_text(f"value {number(state.values[name])}")
            gradient.set_text(f"∂L/∂{name} {number(state.gradients[name])}")

    update(state)
    return Picture(figure, update)


def _node(axes: Axes, name: str, theme: Theme) -> tuple[Text, Text]:
    """Draw one node; return the texts of its value and its gradient."""
    x, y = PLACES[name]
    corner = (x - WIDTH / 2, y - HEIGHT / 2)
    look: Look = {"facecolor": theme.paper, "edgecolor": theme.muted, "linewidth": 1.2}
    style = "round,pad=0,rounding_size=0.06"
    axes.add_patch(FancyBboxPatch(corner, WIDTH, HEIGHT, boxstyle=style, zorder=2, **look))
    text: Look = {"ha": "center", "va": "center", "zorder": 4, "fontsize": 9}
    axes.text(x, y + 0.19, MADE_BY[name], color=theme.ink, fontweight="bold", **text)
    value = axes.text(x, y, "", color=theme.accents[1], animated=True, **text)
    gradient = axes.text(x, y - 0.19, "", color=theme.accents[0], animated=True, **text)
    return value, gradient


def _edge(axes: Axes, start: str, end: str, theme: Theme) -> Text:
    """Draw an arrow between two nodes; return the text of the slope beside it."""
    (x0, y0), (x1, y1) = PLACES[start], PLACES[end]
    arrow = {"arrowstyle": "-|>", "color": theme.muted, "linewidth": 1.2, "shrinkA": 0}
    axes.annotate("", (x1 - WIDTH / 2, y1), (x0 + WIDTH / 2, y0), arrowprops=arrow)
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    behind = {"facecolor": theme.paper, "edgecolor": "none", "pad": 1.5}
    look: Look = {"color": theme.muted, "fontsize": 9, "animated": True, "zorder": 3}
    return axes.text(x, y, "", ha="center", va="center", bbox=behind, **look)


def says(state: State) -> str:
    """Return in one sentence what comes back to the inputs, and that a's two paths add up."""
    v, g = state.values, state.gradients
    return (
        f"L = ({number(v['a'])} · {number(v['b'])} + {number(v['a'])}) · {number(v['c'])} = "
        f"{number(v['L'])}; a gets {number(g['d'] * state.slopes['a', 'd'])} by way of d and "
        f"{number(g['e'])} by way of e, together ∂L/∂a = {number(g['a'])}; "
        f"∂L/∂b = {number(g['b'])} and ∂L/∂c = {number(g['c'])}."
    )


def explore() -> Explorer:
    """Return the explorer: a slider for each of a, b and c."""
    start = {"a": 2.0, "b": 3.0, "c": -1.0}
    controls = {
        name: ipywidgets.FloatSlider(value, min=-4, max=4, step=0.5, description=name)
        for name, value in start.items()
    }
    name = "The graph of L = (a · b + a) · c with values and gradients"
    return Explorer(name, compute, draw, says, controls)
