"""Lesson 09's live figure: the loss while a model learns."""

from dataclasses import dataclass
from functools import partial

import ipywidgets
import numpy as np

from course_lib._arrays import Array
from course_lib.live.figure import Explorer, Picture
from course_lib.plots import LIGHT, WIDEST, Look, Theme, halo, headline, new_figure, number, panel
from course_lib.train import History

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

    losses: Array
    smooth: Array
    steps: int
    chance: float


def compute(history: History, steps: int, chance: float, step: int) -> State:
    """Return the state for the first `step` losses of a `History`."""
    losses = np.array(history.loss[:step])
    sums = np.concatenate([[0.0], losses.cumsum()])
    ends = np.arange(1, len(losses) + 1)
    starts = np.maximum(0, ends - SMOOTH)
    return State(losses, (sums[ends] - sums[starts]) / (ends - starts), steps, chance)


def draw(state: State, theme: Theme = LIGHT) -> Picture:
    """Draw every loss faintly and the running mean over it."""
    figure = new_figure(WIDEST, 3.2, theme, layout=None)
    headline(figure, "Below the dashed line, the model beats a blind guess", theme)
    axes = panel(figure, (0.6, 0.5, 5.6, 2.2), "loss", "", theme, "y")
    axes.set(xlim=(0, state.steps), ylim=(0, state.chance * 1.3))
    axes.set(xlabel="training step", ylabel="loss in nats")
    axes.axhline(state.chance, color=theme.ink, linestyle=(0, (4, 3)), linewidth=1.5)
    look: Look = {"ha": "right", "va": "top", "color": theme.ink, "path_effects": halo(theme)}
    axes.text(state.steps, state.chance * 0.97, "a guess: log V", fontsize=10, **look)
    (faint,) = axes.plot([], [], color=theme.accents[1], alpha=0.35, linewidth=1, animated=True)
    (mean,) = axes.plot([], [], color=theme.accents[1], linewidth=2, animated=True)
    (dot,) = axes.plot(
        [], [], "o", color=theme.accents[0], markersize=8, clip_on=False, animated=True
    )

    def update(state: State) -> None:
        x = np.arange(1, len(state.losses) + 1)
        faint.set_data(x, state.losses)
        mean.set_data(x, state.smooth)
        dot.set_data(x[-1:], state.smooth[-1:])

    update(state)
    return Picture(figure, update)


def says(state: State) -> str:
    """Return in one sentence how far the loss has come."""
    if not len(state.losses):
        return f"No step yet; a guess has a loss of {number(state.chance)}."
    return (
        f"After {len(state.losses)} of {state.steps} steps the loss is "
        f"{number(state.smooth[-1])}; a guess has {number(state.chance)}."
    )


def explore(history: History, steps: int, chance: float) -> Explorer:
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
