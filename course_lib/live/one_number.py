"""Lesson 00's live figure: a slider that turns one number, to see that the kernel answers."""

from dataclasses import dataclass

import ipywidgets

from course_lib.live.figure import Explorer, Picture
from course_lib.plots import LIGHT, new_figure, style


@dataclass(frozen=True)
class State:
    """The number that the slider holds."""

    number: int


def compute(number):
    """Return the number as a state."""
    return State(number)


def draw(state, theme=LIGHT):
    """Draw the number as a bar from 0."""
    figure = new_figure(8, 1.6, theme)
    axes = figure.subplots()
    style(axes, theme)
    axes.set(xlim=(0, 100), ylim=(-0.6, 0.6), yticks=[], xlabel="the number")
    (bar,) = axes.barh([0], [state.number], color=theme.accents[0], animated=True)

    def update(state):
        bar.set_width(state.number)

    return Picture(figure, update)


def says(state):
    """Return the number as a sentence."""
    return f"The number is {state.number}."


def explore():
    """Return the explorer: one slider, from 0 to 100."""
    number = ipywidgets.IntSlider(40, 0, 100, description="Number")
    return Explorer("A bar as long as one number", compute, draw, says, {"number": number})
