"""Lesson 00's live figure: a slider that turns one number, to see that the kernel answers."""

from dataclasses import dataclass

import ipywidgets

from course_lib.live.figure import Explorer, Picture
from course_lib.plots import LIGHT, WIDEST, Theme, headline, new_figure, panel


@dataclass(frozen=True)
class State:
    """The number that the slider holds."""

    number: int


def compute(number: int) -> State:
    """Return the number as a state."""
    return State(number)


def draw(state: State, theme: Theme = LIGHT) -> Picture:
    """Draw the number as a bar from 0."""
    figure = new_figure(WIDEST, 1.5, theme, layout=None)
    headline(figure, "The bar is as long as the number", theme)
    axes = panel(figure, (0.25, 0.5, 5.9, 0.6), "bar", "", theme)
    axes.set(xlim=(0, 100), ylim=(-0.6, 0.6), yticks=[], xlabel="the number")
    (bar,) = axes.barh([0], [state.number], color=theme.accents[0], animated=True)

    def update(state: State) -> None:
        bar.set_width(state.number)

    return Picture(figure, update)


def says(state: State) -> str:
    """Return the number as a sentence."""
    return f"The number is {state.number}."


def explore() -> Explorer:
    """Return the explorer: one slider, from 0 to 100."""
    number = ipywidgets.IntSlider(40, 0, 100, description="Number")
    return Explorer("A bar as long as one number", compute, draw, says, {"number": number})
