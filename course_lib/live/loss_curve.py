"""Lesson 09's live figure: the loss while a model learns."""

from dataclasses import dataclass
from functools import partial

import ipywidgets
import numpy as np

from course_lib.live.figure import Explorer, Picture
from course_lib.plots import LIGHT, headline, new_figure, number, style

SMOOTH = 20  # steps that the running mean takes in


@dataclass(frozen=True)
class State:
    """The losses up to a step.

    Attributes
    ----------
    losses, smooth : ndarray, [n]
        One per step, in nats, and the mean of the last `SMOOTH` of them.
    steps : int
        How many there will be.
    chance : float
        The loss of a model that knows nothing.
    """

    losses: np.ndarray
    smooth: np.ndarray
    steps: int
    chance: float


def compute(history, steps, chance, step):
    """Return the state for the first `step` losses of a `History`."""
    losses = np.array(history.loss[:step])
    sums = np.concatenate([[0.0], losses.cumsum()])
    ends = np.arange(1, len(losses) + 1)
    starts = np.maximum(0, ends - SMOOTH)
    return State(losses, (sums[ends] - sums[starts]) / (ends - starts), steps, chance)


def draw(state, theme=LIGHT):
    """Draw every loss faintly and the running mean over it."""
    figure = new_figure(8.5, 3.6, theme, layout=None)
    headline(figure, "The loss falls from that of a guess towards what can be known", theme)
    axes = figure.add_axes((0.08, 0.16, 0.88, 0.66), label="loss")
    style(axes, theme, grid="y")
    axes.set(xlim=(0, state.steps), ylim=(0, state.chance * 1.12))
    axes.set(xlabel="training step", ylabel="loss in nats")
    axes.axhline(state.chance, color=theme.ink, linestyle=(0, (4, 3)), linewidth=1.5)
    look = {"ha": "right", "va": "bottom", "color": theme.ink, "fontsize": 10}
    axes.text(state.steps, state.chance, "a guess: log V", **look)
    (faint,) = axes.plot([], [], color=theme.accents[1], alpha=0.35, linewidth=1, animated=True)
    (mean,) = axes.plot([], [], color=theme.accents[1], linewidth=2, animated=True)
    (dot,) = axes.plot([], [], "o", color=theme.accents[0], markersize=8, animated=True)

    def update(state):
        x = np.arange(1, len(state.losses) + 1)
        faint.set_data(x, state.losses)
        mean.set_data(x, state.smooth)
        dot.set_data(x[-1:], state.smooth[-1:])

    update(state)
    return Picture(figure, update)


def says(state):
    """Return in one sentence how far the loss has come."""
    if not len(state.losses):
        return f"No step yet; a guess has a loss of {number(state.chance)}."
    return (
        f"After {len(state.losses)} of {state.steps} steps the loss is "
        f"{number(state.smooth[-1])}; a guess has {number(state.chance)}."
    )


def explore(history, steps, chance):
    """Return the explorer: a slider over the steps that `history` holds.

    While a model learns, set ``controls["step"].value`` from the training's callback.

    Parameters
    ----------
    history : History
    steps : int
        How many there will be.
    chance : float
        The loss of a model that knows nothing, log V.
    """
    step = ipywidgets.IntSlider(len(history.loss), 0, steps, description="Step")
    name = "The training loss, step by step"
    return Explorer(name, partial(compute, history, steps, chance), draw, says, {"step": step})
