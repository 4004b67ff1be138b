"""Lesson 04's live figure, the course's signature: slide d_k, and softmax saturates.

COURSE_PICTURE=<file> keeps a screenshot of it there; the README's picture is made so.
"""

import os
import re

import pytest

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def notebook(open_notebook):
    notebook = open_notebook("04_scores.ipynb", sharpness=2)
    notebook.run_all()
    return notebook


@pytest.fixture
def explorer(notebook):
    (explorer,) = notebook.explorers()
    yield explorer
    explorer.root.get_by_role("button", name="no scale").click()


def largest_weight(explorer):
    """Return the largest weight shown, as the sentence names it."""
    (number,) = re.findall(r"largest of the \d+ weights shown is (\d\.\d+)", explorer.sentence())
    return float(number)


def choose(explorer, scale):
    explorer.root.get_by_role("button", name=scale, exact=True).click()


def drag(notebook, explorer, to):
    """Drag the slider's handle to its left end, or beyond its right end."""
    handle = explorer.handle("d_k")
    track = handle.locator("xpath=ancestor::*[contains(@class, 'noUi-target')]").bounding_box()
    handle.hover()
    notebook.page.mouse.down()
    y = track["y"] + track["height"] / 2
    notebook.page.mouse.move(track["x"] + to * track["width"], y, steps=30)
    notebook.page.mouse.up()


@pytest.mark.parametrize("by", ["keyboard", "mouse"])
@pytest.mark.parametrize("scale", ["no scale", "÷ √d_k"])
def test_sliding_d_k_saturates_softmax_unless_it_is_scaled(notebook, explorer, scale, by):
    choose(explorer, scale)
    seen = []
    for d_k, key, end in ((1, "Home", 0), (512, "End", 1)):
        if by == "keyboard":
            explorer.handle("d_k").press(key)
        else:
            drag(notebook, explorer, to=end)
        explorer.wait_for_sentence(f"At d_k = {d_k},")
        notebook.settle()
        seen.append((explorer.sentence(), explorer.pixels()))
    (sentence_1, pixels_1), (sentence_512, pixels_512) = seen
    assert sentence_1 != sentence_512 and pixels_1 != pixels_512
    if scale == "no scale":
        assert largest_weight(explorer) > 0.9
    else:
        assert largest_weight(explorer) < 0.5


def test_the_arrow_keys_go_one_step_at_a_time(notebook, explorer):
    explorer.handle("d_k").press("Home")
    for d_k in range(2, 8):
        explorer.handle("d_k").press("ArrowRight")
        explorer.wait_for_sentence(f"At d_k = {d_k},")


def test_a_screenshot_is_kept(notebook, explorer, tmp_path):
    explorer.handle("d_k").press("End")
    explorer.wait_for_sentence("At d_k = 512,")
    notebook.page.mouse.move(0, 0)
    path = os.environ.get("COURSE_PICTURE", tmp_path / "live.png")
    assert explorer.root.screenshot(path=path)[:4] == b"\x89PNG"
