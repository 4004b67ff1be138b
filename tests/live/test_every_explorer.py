"""Every explorer of course_lib.live, at every position of every control.

A new module with `explore` is found here by itself; if `explore` takes arguments, put an example in
`EXAMPLES`. Each is run through its real widgets: what a callback raises fails the test.
"""

import contextlib
import dataclasses
import importlib
import itertools
import pkgutil
import re

import ipywidgets
import numpy as np
import pytest
from readable import assert_in_contrast, assert_readable

from course_lib import live
from course_lib.attention import attention, causal_mask
from course_lib.live.figure import THEMES, Explorer, Screen
from course_lib.tensor import Tensor
from course_lib.train import History

MODULES = [
    module
    for found in pkgutil.iter_modules(live.__path__, "course_lib.live.")
    if hasattr(module := importlib.import_module(found.name), "explore")
]


def name_of(module):
    return module.__name__.rpartition(".")[2]


def three_heads():
    """Return causal weights [3, 4, 4], and four tokens."""
    x = Tensor(np.random.default_rng(0).standard_normal((3, 4, 2)))
    _, steps = attention(x, x, x, causal_mask(4), return_steps=True)
    return steps.weights, ["the", "riverbank", "$x_1$", "financially"]


def a_falling_loss():
    """Return a history of 30 losses, how many there will be, and the loss of a guess."""
    return History(loss=[3.5 / (n + 1) for n in range(30)]), 30, 3.66


EXAMPLES = {"heads": three_heads, "loss_curve": a_falling_loss}


def positions(control):
    """Return every value that a control can be given by hand."""
    if hasattr(control, "options"):  # ToggleButtons, Dropdown, SelectionSlider
        return [value for _, value in control._options_full]
    if isinstance(control, (ipywidgets.Checkbox, ipywidgets.ToggleButton)):
        return [False, True]
    count = round((control.max - control.min) / control.step) + 1
    values = control.min + np.arange(count) * control.step
    if isinstance(control, ipywidgets.FloatLogSlider):
        values = control.base**values
    return [type(control.value)(round(value, 12)) for value in values.tolist()]


def spread_over(values, count):
    """Return `count` of the values, or all where there are fewer, from the first to the last."""
    return [values[round(n)] for n in np.linspace(0, len(values) - 1, min(count, len(values)))]


def all_positions(controls):
    """Yield values by name: every position of each control, and all the corners together."""
    first = {name: control.value for name, control in controls.items()}
    every = {name: positions(control) for name, control in controls.items()}
    for name, values in every.items():
        for value in values:
            yield first | {name: value}
    ends = [[values[0], values[-1]] for values in every.values()]
    for corner in itertools.product(*ends):
        yield dict(zip(every, corner, strict=True))


def mixed_positions(controls, count):
    """Return `count` positions: those spread over each control, in an order of its own."""
    rng = np.random.default_rng(0)
    columns = []
    for control in controls.values():
        values = spread_over(positions(control), count)
        columns.append([values[n % len(values)] for n in rng.permutation(count)])
    return [dict(zip(controls, row, strict=True)) for row in zip(*columns, strict=True)]


def set_values(explorer, values):
    for name, value in values.items():
        explorer.controls[name].value = value


@contextlib.contextmanager
def told(values):
    """Say in the message of a failed assertion at which position it was."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"at {values}: {error}") from error


@pytest.fixture(scope="module", params=MODULES, ids=name_of)
def explorer(request):
    """One for all tests of a module: each test sets the values that it starts from."""
    example = EXAMPLES.get(name_of(request.param), tuple)
    explorer = request.param.explore(*example())
    yield explorer
    explorer.close()


@pytest.fixture(scope="module")
def anew(explorer):
    """Positions, and the picture of each drawn for it alone: five in light, two in dark.

    By theme, a list of pairs (values by name, Screen).
    """
    screens = {theme: [] for theme in THEMES}
    for theme, count in (("light", 5), ("dark", 2)):
        for values in mixed_positions(explorer.controls, 5)[:count]:
            picture = explorer._draw(explorer._compute(**values), THEMES[theme])
            screens[theme].append((values, Screen(picture)))
    return screens


def test_explorers_are_found():
    assert "one_number" in map(name_of, MODULES)


def test_every_position_of_every_control(explorer):
    for values in all_positions(explorer.controls):
        set_values(explorer, values)
        assert explorer.values == values  # the control took the value as it is
        assert explorer.error is None
        state, sentence = explorer.state, explorer.figure.says
        assert dataclasses.is_dataclass(state) and state.__dataclass_params__.frozen
        assert sentence == explorer._says(explorer._compute(**values))
        assert sentence.endswith(".") and "\n" not in sentence, sentence
        assert "nan" not in sentence.lower().split(), sentence
        assert not re.search(r"-\d", sentence), f"a hyphen for a minus sign: {sentence}"


@pytest.mark.parametrize("theme", THEMES)
def test_a_moved_picture_is_the_one_drawn_anew(explorer, anew, theme):
    """What `update` leaves behind, or never moves, is seen here, down to the pixel."""
    set_values(explorer, anew[theme][-1][0])
    explorer.figure.screen = (theme, None)
    for values, screen in anew[theme]:
        set_values(explorer, values)
        screen.frame()
        moved = explorer._screen.canvas.buffer_rgba()
        same = np.array_equal(moved, screen.canvas.buffer_rgba())
        assert same, f"update and draw differ at {values}"


def test_every_control_moves_something(explorer):
    ends = {name: positions(control) for name, control in explorer.controls.items()}
    for name, values in ends.items():
        set_values(explorer, {other: last for other, (*_, last) in ends.items()})
        before = explorer.figure.frame["pixels"]
        explorer.controls[name].value = values[0]
        assert explorer.figure.frame["pixels"] != before, f"{name} moves nothing"


def test_it_has_a_name_and_so_has_every_control(explorer):
    assert isinstance(explorer, Explorer)
    assert explorer.figure.name
    assert all(control.description for control in explorer.controls.values())


def test_every_text_can_be_read(explorer):
    positions = list(all_positions(explorer.controls))
    for values in positions[:: max(1, len(positions) // 16)] + positions[-4:]:
        set_values(explorer, values)
        picture = explorer._screen.picture
        picture.figure.stale = False  # the axes, which did not move, need not be placed again
        with told(values):
            assert_readable(picture.figure)


@pytest.mark.parametrize("theme", THEMES)
def test_every_text_stands_out_from_what_lies_behind_it(anew, theme):
    for values, screen in anew[theme][:2]:
        with told(values):
            assert_in_contrast(screen.picture.figure)


def test_no_dot_is_cut_at_the_edge_of_its_axes(explorer):
    """A dot whose center is inside is drawn whole."""
    positions = list(all_positions(explorer.controls))
    for values in positions[:: max(1, len(positions) // 16)] + positions[-4:]:
        set_values(explorer, values)
        for axes in explorer._screen.picture.figure.axes:
            for line in axes.lines:
                if line.get_marker() in ("None", "") or not line.get_clip_on():
                    continue
                half = line.get_markersize() * axes.figure.dpi / 72 / 2
                for center in axes.transData.transform(line.get_xydata()):
                    inside = axes.bbox.contains(*center)
                    whole = axes.bbox.padded(-half).contains(*center)
                    assert whole or not inside, f"at {values}: {axes.get_label()}, {center}"
