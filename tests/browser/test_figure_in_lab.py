"""The live figure in a real JupyterLab, with explorers made for the test."""

import nbformat
import pytest

pytestmark = pytest.mark.browser

SETUP = """
import time
from dataclasses import dataclass

import ipywidgets

from course_lib.live.figure import Explorer, Picture
from course_lib.plots import LIGHT, new_figure


@dataclass(frozen=True)
class State:
    x: int
    y: int


computed = []


def compute(x, y=0, slow=False):
    computed.append(x)
    if slow:
        time.sleep(0.15)
    if x == 13:
        raise ValueError("13 is <b>not</b> allowed")
    return State(x, y)


def draw(state, theme=LIGHT):
    figure = new_figure(5, 1.6, theme, layout=None)
    axes = figure.add_axes((0.1, 0.2, 0.8, 0.7), label="plane")
    axes.set(xlim=(0, 20), ylim=(-10, 10))
    (dot,) = axes.plot([state.x], [state.y], "o", color=theme.accents[0], animated=True)

    def update(state):
        dot.set_data([state.x], [state.y])

    return Picture(figure, update)


def says(state):
    return f"The dot is at ({state.x}, {state.y})."


def slider(name, value, low, high):
    return ipywidgets.IntSlider(value, low, high, description=name)
"""

PLANE = """
controls = {"x": slider("x", 5, 0, 20), "y": slider("y", 0, -10, 10)}


def on_pointer(x, y, pointer):
    controls["x"].value, controls["y"].value = round(x), round(y)


def on_key(key):
    step = {"ArrowLeft": -1, "ArrowRight": 1}
    controls["x"].value += step.get(key, 0)


plane = Explorer("A dot in a plane", compute, draw, says, controls, on_pointer, on_key)
plane
"""

SLOW = """
slow_controls = {"x": slider("x", 1, 0, 400), "slow": ipywidgets.Checkbox(True, description="Slow")}
slow = Explorer("A slow dot", compute, draw, says, slow_controls)
slow
"""

REPORT = """
print("computed", len(computed), "moved", slow.has_moved())
computed.clear()
"""


def write(folder, name, *sources):
    """Write a notebook of code cells into the served folder."""
    cells = [nbformat.v4.new_code_cell(source.strip()) for source in sources]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(notebook, folder / name)


@pytest.fixture(scope="module")
def notebook(lab, open_notebook):
    write(lab.folder, "figure.ipynb", SETUP, PLANE, SLOW, REPORT)
    notebook = open_notebook("figure.ipynb", height=1400)
    notebook.run_all()
    return notebook


@pytest.fixture
def plane(notebook):
    plane, *_ = notebook.explorers()
    return plane


@pytest.fixture
def slow(notebook):
    _, slow, *_ = notebook.explorers()
    return slow


def at(explorer, x, y):
    """Return the page's coordinates of the data coordinates (x, y)."""
    box = explorer.canvas.bounding_box()
    across, up = 0.1 + 0.8 * x / 20, 0.2 + 0.7 * (y + 10) / 20
    return box["x"] + across * box["width"], box["y"] + (1 - up) * box["height"]


def test_the_pointer_drags(notebook, plane):
    mouse = notebook.page.mouse
    mouse.move(*at(plane, 4, 4))
    mouse.down()
    plane.wait_for_sentence("(4, 4)")
    mouse.move(*at(plane, 16, -6), steps=15)
    mouse.up()
    plane.wait_for_sentence("(16, -6)")
    mouse.move(*at(plane, 2, 2))  # no button is held
    notebook.page.wait_for_timeout(300)
    assert plane.sentence() == "The dot is at (16, -6)."


def test_the_keys_move_it_and_none_is_lost(notebook, plane):
    plane.handle("x").press("Home")
    plane.wait_for_sentence("(0, ")
    plane.canvas.focus()
    for _ in range(12):
        notebook.page.keyboard.press("ArrowRight")
    plane.wait_for_sentence("(12, ")


def test_role_name_and_live_line(plane):
    assert plane.root.get_by_role("application", name="A dot in a plane").count() == 1
    assert plane.says.get_attribute("aria-live") == "polite"


def test_a_figure_without_keys_is_an_image(slow):
    assert slow.root.get_by_role("img", name="A slow dot").count() == 1


def test_quick_slides_skip_values_and_show_the_last(notebook, slow):
    """Each value takes the kernel 150 ms; forty of them would take six seconds."""
    report(notebook)
    slow.handle("x").focus()
    for _ in range(40):
        notebook.page.keyboard.press("ArrowRight")
    slow.wait_for_sentence("(41, ")
    words = report(notebook)
    assert 1 < int(words[1]) < 20
    assert words[3] == "True"  # moved: the view showed it


def report(notebook):
    """Run the last cell; return the words it printed."""
    notebook.page.evaluate("jupyterapp.shell.currentWidget.content.activeCellIndex = 3")
    notebook.command("notebook:run-cell")
    return notebook.page.locator(".jp-Cell").nth(3).locator(".jp-OutputArea").inner_text().split()


def test_an_error_is_said_in_words_and_the_picture_stays(notebook, plane):
    plane.handle("x").press("Home")
    plane.wait_for_sentence("(0, ")
    plane.handle("x").focus()
    for _ in range(12):
        notebook.page.keyboard.press("ArrowRight")
    plane.wait_for_sentence("(12, ")
    before = plane.pixels()
    notebook.page.keyboard.press("ArrowRight")
    plane.wait_for_sentence("This figure stopped: ValueError: 13 is <b>not</b> allowed")
    assert plane.pixels() == before
    notebook.page.keyboard.press("ArrowRight")
    plane.wait_for_sentence("(14, ")


def test_a_second_view_follows(notebook, plane):
    notebook.page.evaluate("jupyterapp.shell.currentWidget.content.activeCellIndex = 1")
    notebook.command("notebook:create-output-view")
    first, second = (
        view for view in notebook.explorers() if view.canvas.get_attribute("role") == "application"
    )
    first.handle("x").press("Home")
    for view in (first, second):
        view.wait_for_sentence("(0, ")
    before = first.pixels(), second.pixels()
    second.handle("x").press("End")
    for view, pixels in zip((first, second), before, strict=True):
        view.wait_for_sentence("(20, ")
        view.wait_for_other_pixels(pixels)


def test_no_complaint_and_no_request_leaves(notebook):
    assert notebook.complaints == []
    assert notebook.foreign_requests() == []
