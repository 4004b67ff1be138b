"""nbval compares a cell's text and skips its pictures. This pytest plugin compares the pictures.

Pictures are compared by their pixels, not their bytes: another matplotlib or another FreeType draws
the same letter a little differently, and that is no fault of the notebook.
"""

import base64
import io

import numpy as np
import pytest
from nbval.plugin import IPyNbCell
from PIL import Image

SIZE_TOLERANCE = 4  # pixels by which width and height may differ
CLEARLY = 64  # a pixel whose channel differs by more than this (of 255) differs clearly
SHARE = 0.02  # at most this share of the pixels may differ clearly
MEAN = 2.5  # at most this may be the mean difference of all channels (of 255)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    result = yield
    if isinstance(item, IPyNbCell) and item.options["check"]:
        complaint = compare_all(pictures(item.cell.outputs), pictures(item.test_outputs))
        if complaint:
            item.raise_cell_error("Pictures differ", complaint)
    return result


def pictures(outputs):
    """Return the PNGs of a cell's outputs, as base64 text, in order."""
    found = [output.get("data", {}).get("image/png") for output in outputs]
    return [png for png in found if png is not None]


def compare_all(stored, drawn):
    """Return what is wrong with the pictures that were drawn, or None."""
    if len(stored) != len(drawn):
        return f"The notebook stores {len(stored)} pictures, the run drew {len(drawn)}."
    for number, (before, after) in enumerate(zip(stored, drawn, strict=True), start=1):
        if complaint := compare(pixels(before), pixels(after)):
            return f"Picture {number} of the cell: {complaint}"
    return None


def pixels(png):
    """Return the pixels of a base64 PNG on white paper, an int array [height, width, 3]."""
    image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGBA")
    paper = Image.new("RGBA", image.size, "white")
    return np.asarray(Image.alpha_composite(paper, image).convert("RGB")).astype(int)


def compare(stored, drawn):
    """Return how two pictures [height, width, 3] differ, or None where they are near enough."""
    sizes = np.array([stored.shape[:2], drawn.shape[:2]])
    if np.ptp(sizes, axis=0).max() > SIZE_TOLERANCE:
        return f"its size [height, width] was {sizes[0].tolist()} and is {sizes[1].tolist()}."
    height, width = sizes.min(axis=0)
    difference = np.abs(stored[:height, :width] - drawn[:height, :width])
    share, mean = (difference.max(axis=2) > CLEARLY).mean(), difference.mean()
    if share > SHARE or mean > MEAN:
        return (
            f"{share:.1%} of its pixels differ clearly (at most {SHARE:.1%} may), "
            f"and the mean difference is {mean:.2f} of 255 (at most {MEAN} may be)."
        )
    return None
