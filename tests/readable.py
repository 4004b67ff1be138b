"""What the text of every figure is held to, still or live: whole, apart, large and in contrast."""

import io
import itertools

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from course_lib import plots

SMALLEST = 9  # points
CONTRAST = 4.5


def drawn_texts(figure):
    """Return the texts that are really drawn, those of live figures too."""
    ticks = [
        (label, label.get_visible() and tick in shown)
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for shown in [axis._update_ticks() if axes.axison and axis.get_visible() else []]
        for tick in [*axis.majorTicks, *axis.minorTicks]
        for label in (tick.label1, tick.label2)
    ]
    hidden = {id(label) for label, visible in ticks if not visible}
    off = {
        id(text)
        for axes in figure.axes
        if not axes.axison
        for text in (axes.xaxis.label, axes.yaxis.label)
    }
    return [
        text
        for text in figure.findobj(Text)
        if text.get_text().strip() and text.get_visible() and id(text) not in hidden | off
    ]


def assert_readable(figure):
    """Nothing is cut off, nothing is written over another text, nothing is too small or wide."""
    if figure.stale:
        figure.draw_without_rendering()  # an axis places its labels when it is drawn
    width, height = figure.get_size_inches() * figure.dpi
    assert width <= 100 * plots.WIDEST
    renderer = figure.canvas.get_renderer()
    texts = drawn_texts(figure)
    assert texts
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts]
    for text in texts:
        assert text.get_fontsize() >= SMALLEST, text.get_text()
    for text, box in boxes:
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
        assert inside, f"{text!r} is cut off"
    for (a, box_a), (b, box_b) in itertools.combinations(boxes, 2):
        overlap_x = min(box_a.x1, box_b.x1) - max(box_a.x0, box_b.x0)
        overlap_y = min(box_a.y1, box_b.y1) - max(box_a.y0, box_b.y0)
        over = overlap_x > 2 and overlap_y > 4  # boxes hold room for ascents that no letter takes
        assert not over, f"{a!r} over {b!r}"


def assert_in_contrast(figure):
    """Each letter stands out from all that lies behind it, or across it: bars, lines and cells."""
    texts = drawn_texts(figure)
    with_texts = _pixels(figure)
    for text in texts:
        text.set_visible(False)
    without = _pixels(figure)
    for text in texts:
        text.set_visible(True)
    inked = (with_texts != without).any(axis=-1)  # [height, width]
    for text in texts:
        if text.get_path_effects() or text.get_bbox_patch():  # paper keeps all else off
            behind = np.array([to_rgb(figure.get_facecolor())])
        else:
            behind = _inside(without, text)[_inside(inked, text)] / 255  # [n, 3]
        colors, counts = np.unique(behind, axis=0, return_counts=True)
        weak = [plots.contrast(color, text.get_color()) < CONTRAST for color in colors]
        share = counts[weak].sum() / max(counts.sum(), 1)
        assert share < 0.03, f"{share:.0%} of {text.get_text()!r} is hard to tell from its ground"


def _pixels(figure):
    """Return the figure as it is saved, with all that moves: [height, width, 3]."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="rgba", dpi=figure.dpi)
    width, height = figure.canvas.get_width_height()
    return np.frombuffer(buffer.getvalue(), np.uint8).reshape(height, width, 4)[..., :3]


def _inside(pixels, text):
    box = text.get_window_extent()
    rows = slice(max(len(pixels) - int(box.y1), 0), max(len(pixels) - int(box.y0), 0))
    return pixels[rows, max(int(box.x0), 0) : int(box.x1) + 1]
