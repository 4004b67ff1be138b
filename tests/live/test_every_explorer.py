"""Every explorer of course_lib.live, at every position of every control.

A new module with `explore` is found here by itself; if `explore` takes arguments, put an example in
`EXAMPLES`. Each is run layer by layer, and through its real widgets: what a callback raises fails
the test.
"""

import dataclasses
import importlib
import itertools
import pkgutil

import ipywidgets
import numpy as np
import pytest

from course_lib import live
from course_lib.attention import attention, causal_mask
from course_lib.live.figure import Explorer, Screen
from course_lib.plots import DARK, LIGHT
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
    return steps.weights, list("abcd")


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


def set_values(explorer, values):
    for name, value in values.items():
        explorer.controls[name].value = value


@pytest.fixture(params=MODULES, ids=name_of)
def explorer(request):
    example = EXAMPLES.get(name_of(request.param), tuple)
    explorer = request.param.explore(*example())
    yield explorer
    explorer.close()


def test_explorers_are_found():
    assert "one_number" in map(name_of, MODULES)


def test_layers_hold_at_every_position(explorer):
    picture = explorer._draw(explorer._compute(**explorer.values))
    for values in all_positions(explorer.controls):
        state = explorer._compute(**values)
        assert dataclasses.is_dataclass(state) and state.__dataclass_params__.frozen
        picture.update(state)
        sentence = explorer._says(state)
        assert sentence.endswith(".") and "\n" not in sentence, sentence
        assert "nan" not in sentence.lower().split(), sentence


def test_widgets_move_the_picture_at_every_position(explorer):
    for values in all_positions(explorer.controls):
        set_values(explorer, values)
        assert explorer.values == values  # the control took the value as it is
        assert explorer.error is None
        assert explorer.figure.says == explorer._says(explorer._compute(**values))


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_a_moved_picture_is_the_one_drawn_anew(explorer, theme):
    """What `update` leaves behind, or never moves, is seen here, down to the pixel."""
    positions = list(all_positions(explorer.controls))
    moved = Screen(explorer._draw(explorer._compute(**positions[0]), theme))
    for values in positions[:: max(1, len(positions) // 12)] + positions[-4:]:
        state = explorer._compute(**values)
        moved.picture.update(state)
        anew = Screen(explorer._draw(state, theme))
        moved.frame()
        anew.frame()
        same = np.array_equal(moved.canvas.buffer_rgba(), anew.canvas.buffer_rgba())
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


def test_it_fits_beside_jupyterlabs_file_browser(explorer):
    width, _ = explorer.figure.base["css_size"]
    assert width <= 960  # a cell is 848 CSS pixels wide at 1280 × 800, and text may shrink little
