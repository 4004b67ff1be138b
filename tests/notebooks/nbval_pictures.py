"""nbval compares a cell's text and skips its pictures. This pytest plugin compares the pictures.

They are compared by pixels: two machines need not draw quite the same. With the matplotlib that
requirements.txt pins almost no pixel may differ; another version has other letters, so that there
only a picture whose lines or colors moved is noticed.
"""

import base64
import functools
import io
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib import ft2font
from nbval.plugin import IPyNbCell
from PIL import Image, ImageChops, ImageFilter

LOCK = Path(__file__).resolve().parents[2] / "requirements.txt"
RESIZED = 6  # pixels by which the width or the height may differ: letters decide over the margins
SHIFTED = 2  # pixels by which anything in the picture may be shifted
DIFFERS = 48  # of 255: a pixel whose color differs by more counts as different
SHARE = {"same letters": 0.00002, "other letters": 0.02}  # of all pixels, that may be different


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
    return [png.strip() for png in found if png is not None]


def compare_all(stored, drawn):
    """Return what is wrong with the pictures that were drawn, or None."""
    if len(stored) != len(drawn):
        return f"The notebook stores {len(stored)} pictures, the run drew {len(drawn)}."
    for number, (before, after) in enumerate(zip(stored, drawn, strict=True), start=1):
        if before != after and (complaint := compare(decode(before), decode(after))):
            return f"Picture {number} of the cell: {complaint}"
    return None


def decode(png):
    """Return a base64 PNG as an RGB image, on white paper where it is transparent."""
    image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGBA")
    paper = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(paper, image).convert("RGB")


def compare(stored, drawn):
    """Return how two pictures differ, or None where they are near enough."""
    if max(abs(np.subtract(stored.size, drawn.size))) > RESIZED:
        return f"its width and height were {stored.size} and are {drawn.size} pixels."
    allowed = SHARE["same letters" if same_letters() else "other letters"]
    share = (np.asarray(difference(stored, drawn)).max(axis=2) > DIFFERS).mean()
    return f"{share:.3%} of its pixels differ; {allowed:.3%} may." if share > allowed else None


def same_letters():
    """Return whether matplotlib is the pinned one, with its own FreeType (conda's has another)."""
    pinned = f"\nmatplotlib=={matplotlib.__version__} " in LOCK.read_text(encoding="utf-8")
    return pinned and ft2font.__freetype_build_type__ == "local"


def difference(stored, drawn):
    """Return how far each pixel is from any that is near it in the other picture, both blurred."""
    size = np.minimum(stored.size, drawn.size).tolist()
    stored, drawn = (
        image.crop((0, 0, *size)).filter(ImageFilter.BoxBlur(2)) for image in (stored, drawn)
    )
    return ImageChops.lighter(from_nearby(stored, drawn), from_nearby(drawn, stored))


def from_nearby(picture, other):
    shifts = range(-SHIFTED, SHIFTED + 1)
    shifted = [ImageChops.offset(other, x, y) for x in shifts for y in shifts]
    return functools.reduce(
        ImageChops.darker, (ImageChops.difference(picture, one) for one in shifted)
    )
