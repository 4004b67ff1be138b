"""Every notebook with a live figure, as a learner sees it: a new one is tested here by itself."""

from functools import partial

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from real_lab import NOTEBOOKS

pytestmark = pytest.mark.browser


def has_live_figure(path):
    cells = nbformat.read(path, as_version=4).cells
    return any(cell.cell_type == "code" and "explore(" in cell.source for cell in cells)


LESSONS = [path.name for path in sorted(NOTEBOOKS.glob("*.ipynb")) if has_live_figure(path)]
# Everything in an explorer that can take the focus.
FOCUSABLE = "[tabindex], button, input, select, [contenteditable=true]"


@pytest.fixture(scope="module", params=LESSONS)
def notebook(request, open_notebook):
    notebook = open_notebook(request.param)
    notebook.run_all()
    return notebook


def sliders(explorer):
    return explorer.root.get_by_role("slider").all()


def test_the_keyboard_moves_every_slider(notebook):
    for explorer in notebook.explorers():
        for slider in sliders(explorer):
            slider.press("Home")
            notebook.settle()
            before = explorer.pixels()
            slider.press("End")
            explorer.wait_for_other_pixels(before)


def test_the_mouse_moves_every_slider(notebook):
    for explorer in notebook.explorers():
        for slider in sliders(explorer):
            slider.press("Home")
            notebook.settle()
            before = explorer.pixels()
            track = slider.locator("xpath=ancestor::*[contains(@class, 'noUi-target')]")
            box = track.bounding_box()
            slider.hover()
            notebook.page.mouse.down()
            notebook.page.mouse.move(box["x"] + 0.8 * box["width"], box["y"], steps=8)
            notebook.page.mouse.up()
            explorer.wait_for_other_pixels(before)


def test_every_other_control_answers(notebook):
    for explorer in notebook.explorers():
        for button in explorer.root.locator("button, input[type=checkbox]").all():
            button.click()
            notebook.settle()
        for choice in explorer.root.locator("select").all():
            choice.select_option(index=choice.locator("option").count() - 1)
            notebook.settle()
        assert explorer.root.locator("[data-failed]").count() == 0


def test_typing_deletes_no_cell(notebook):
    cells = notebook.cell_count()
    for explorer in notebook.explorers():
        for element in explorer.root.locator(FOCUSABLE).all():
            element.focus()
            notebook.page.keyboard.type("dd")
        explorer.says.click()
        notebook.page.keyboard.type("dd")
    assert notebook.cell_count() == cells


def moves(explorer):
    """Functions that move each slider, press each button and make each choice."""
    for slider in sliders(explorer):
        yield from (partial(slider.press, key) for key in ("Home", "End", "PageDown"))
    for button in explorer.root.locator("button, input[type=checkbox]").all():
        yield button.click
    for choice in explorer.root.locator("select").all():
        count = choice.locator("option").count()
        yield from (partial(choice.select_option, index=i) for i in range(count))


def test_nothing_is_cut_off_and_nothing_jumps(notebook):
    for width in (1280, 900):
        notebook.page.set_viewport_size({"width": width, "height": 800})
        notebook.settle()
        for explorer in notebook.explorers():
            assert explorer.root.evaluate("root => root.scrollWidth <= root.clientWidth")
            for label in explorer.root.locator(".widget-label").all():
                assert label.evaluate("label => label.scrollWidth <= label.clientWidth")
            heights = set()  # of the whole explorer: controls, picture and sentence
            for move in moves(explorer):
                move()
                notebook.settle()
                heights.add(explorer.root.bounding_box()["height"])
            assert len(heights) <= 1


def test_the_dark_theme_is_followed(notebook):
    for theme in ("JupyterLab Light", "JupyterLab Dark", "JupyterLab Light"):
        notebook.set_theme(theme)
        for explorer in notebook.explorers():
            explorer.wait_for_paper(dark=theme == "JupyterLab Dark")


@pytest.mark.parametrize("width", [1280, 900])
@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_axe_finds_no_serious_fault_in_the_outputs(notebook, theme, width):
    notebook.page.set_viewport_size({"width": width, "height": 800})
    notebook.set_theme(theme)
    notebook.settle()
    # JupyterLab can give no alt text to an image/png; the sentence below each still says it.
    where = {"include": [".jp-OutputArea-output"], "exclude": [".jp-RenderedImage img"]}
    found = Axe().run(notebook.page, context=where)
    serious = [
        (fault["id"], node["html"], node["failureSummary"])
        for fault in found.response["violations"]
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]
    assert serious == []


def test_no_complaint_and_no_request_leaves(notebook):
    assert notebook.complaints == []
    assert notebook.foreign_requests() == []
