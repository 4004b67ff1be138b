"""Still figures: arrays in, a matplotlib `Figure` out.

No pyplot and no global state: a function draws on a figure of its own and hands it back. Every
label is shown literally, so a token like ``$`` starts no mathematics.
"""

import html
import io
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from IPython.display import display
from matplotlib import font_manager, ft2font
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import QuadMesh
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import AbstractPathEffect, withStroke
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import BboxBase
from matplotlib.typing import ColorType
from numpy.typing import ArrayLike

from course_lib._arrays import Array
from course_lib.tensor import Tensor

Box = tuple[float, float, float, float]  # left, bottom, width and height in inches
Grid = Literal["x", "y", "both"] | None  # the axes that have grid lines
Labels = Sequence[object] | None  # drawn as their text; None for the positions 0, 1, 2, …
Look = dict[str, Any]  # keyword arguments for matplotlib's artists

# ------------------------------------------------------------------------------------ themes


@dataclass(frozen=True)
class Theme:
    """The colors of every figure, for one background.

    Attributes
    ----------
    paper, ink, muted, grid : str
        Background, text, secondary text and grid lines, as hex colors. `ink`, `muted` and the
        accents have a contrast of at least 4.5 : 1 on `paper`.
    accents : tuple of str
        Colors for lines and bars, told apart with any common color blindness.
    sequential : Colormap
        For weights, 0 to 1.
    diverging : Colormap
        For scores: blue below 0, orange above.
    forbidden, hatch : str
        Face and stripes of a cell that may not be attended to; no colormap contains them.
    """

    paper: str
    ink: str
    muted: str
    grid: str
    accents: tuple[str, ...]
    sequential: Colormap
    diverging: Colormap
    forbidden: str
    hatch: str


LIGHT = Theme(
    paper="#ffffff",
    ink="#1b1f24",
    muted="#59626d",
    grid="#e3e6ea",
    accents=("#b84a00", "#0b6cb3", "#00553f"),
    sequential=LinearSegmentedColormap.from_list(
        "weights_light", ["#f4f8f6", "#b9dfd0", "#5fb39a", "#12795f", "#003f31"]
    ),
    diverging=LinearSegmentedColormap.from_list(
        "scores_light",
        ["#083f73", "#3d86c2", "#a9cdea", "#f7f7f5", "#f7c59a", "#d97a2b", "#873700"],
    ),
    forbidden="#cbcdd0",
    hatch="#90969d",
)
DARK = Theme(
    paper="#111111",
    ink="#eceff2",
    muted="#a9b1bb",
    grid="#33383e",
    accents=("#ff9a5c", "#62b5f0", "#8fe3b0"),
    sequential=LinearSegmentedColormap.from_list(
        "weights_dark", ["#16211e", "#11503f", "#1c8a6c", "#5ccfac", "#d6fbee"]
    ),
    diverging=LinearSegmentedColormap.from_list(
        "scores_dark", ["#a8d8ff", "#4b9fdd", "#1d4f78", "#1c1e20", "#7a3d10", "#e0833a", "#ffd3ae"]
    ),
    forbidden="#3d4146",
    hatch="#6d747c",
)

# ------------------------------------------------------------------------------------ show


# Without "Software" the file does not change with matplotlib's version number.
PNG_METADATA: dict[str, Any] = {"Software": None}


def png(figure: Figure) -> bytes:
    """Return `figure` as PNG bytes at twice its size in CSS pixels, the same on every call."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=2 * figure.dpi, metadata=PNG_METADATA)
    return buffer.getvalue()


def show(figure: Figure, says: str) -> None:
    """Display a figure, and below it the sentence that says what it shows.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    says : str
        One sentence computed from the figure's data: a screen reader, a static page and a
        notebook test all read it.

    Raises
    ------
    TypeError
        If `figure` is no matplotlib Figure.
    ValueError
        If `says` is empty.
    """
    if not isinstance(figure, Figure):
        raise TypeError(
            f"show: expected a matplotlib Figure, got {type(figure).__name__}; "
            "did you pass the array instead of the figure drawn from it?"
        )
    if not isinstance(says, str) or not says.strip():
        raise ValueError("show: `says` must be a sentence about the data, but it is empty")
    width, height = (figure.get_size_inches() * figure.dpi).round().astype(int).tolist()
    display(
        {"image/png": png(figure), "text/plain": says},
        metadata={"image/png": {"width": width, "height": height}},
        raw=True,
    )
    display({"text/html": f"<p>{html.escape(says)}</p>", "text/plain": says}, raw=True)


# ------------------------------------------------------------------------------------ parts

# At a window of 900 pixels a cell of JupyterLab is 468 wide: there a figure of this width shrinks
# to 0.73, and text of 9 points is still 9 pixels high.
WIDEST = 6.4  # inches
MARGIN = 0.1  # inches of bare paper around everything


def contrast(color: ColorType, other: ColorType) -> float:
    """Return the contrast ratio of two colors, 1 to 21 (WCAG 2.2, "contrast ratio")."""

    def luminance(c: ColorType) -> float:
        rgb = np.array(to_rgb(c))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    dark, light = sorted([luminance(color), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def text_color(background: ColorType) -> str:
    """Return black or white, whichever reads better: at least 4.58 : 1 on any background."""
    return max("#000000", "#ffffff", key=lambda text: contrast(text, background))


_GLYPHS = ft2font.FT2Font(font_manager.findfont("DejaVu Sans")).get_charmap()
_VISIBLE = {"\n": "↵", "\r": "↵", "\t": "⇥"}


def literal(label: object, longest: int = 14) -> str:
    """Return a text as it can be drawn on one line, with `parse_math=False`.

    A line break becomes ↵, a tab ⇥, a lone space ␣; a character that matplotlib's own font does
    not have becomes □ (other fonts differ from machine to machine); a long label is cut with ….
    """
    text = str(label)
    if text.strip(" ") == "":
        text = "␣" * len(text)
    text = "".join(_VISIBLE.get(c, c) for c in unicodedata.normalize("NFC", text))
    text = "".join(c if ord(c) in _GLYPHS and c.isprintable() else "□" for c in text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def new_figure(
    width: float, height: float, theme: Theme, layout: Literal["constrained"] | None = "constrained"
) -> Figure:
    """Return an empty figure, `width` × `height` inches at 100 dpi."""
    engine = ConstrainedLayoutEngine(w_pad=MARGIN, h_pad=MARGIN / 2) if layout else None
    figure = Figure(figsize=(width, height), dpi=100, facecolor=theme.paper, layout=engine)
    FigureCanvasAgg(figure)
    return figure


def panel(
    figure: Figure, box: Box, label: str, title: str, theme: Theme, grid: Grid = None
) -> Axes:
    """Return an Axes in the house style at `box`: left, bottom, width and height in inches."""
    width, height = figure.get_size_inches()
    left, bottom, wide, high = box
    place = (left / width, bottom / height, wide / width, high / height)
    axes = figure.add_axes(place, label=label)
    style(axes, theme, grid)
    axes.set_title(title, loc="left", fontsize=10, color=theme.ink)
    return axes


def settle(figure: Figure) -> Figure:
    """Lay a figure out once and for all, so that a second look shows the same; return it."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def style(axes: Axes, theme: Theme, grid: Grid = None) -> None:
    """Give an Axes the house style; `grid` is "x", "y", "both" or None."""
    axes.set_facecolor(theme.paper)
    axes.set_axisbelow(True)
    axes.tick_params(colors=theme.muted, labelsize=9, length=0)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(theme.muted)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set(color=theme.muted, fontsize=10)
    if grid:
        axes.grid(axis=grid, color=theme.grid, linewidth=1)


def forbidden_look(theme: Theme) -> Look:
    """Return the face and the stripes of what may not be attended to."""
    return {
        **{"facecolor": theme.forbidden, "edgecolor": theme.hatch},
        **{"hatch": "////", "linewidth": 0},
    }


def corners(where: Array, gap: float = 0.0) -> list[Array]:
    """Return the corners of each cell that is True in `where` [T, T_total], for a collection."""
    corner = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * (0.5 - gap)
    return [corner + cell[::-1] for cell in np.argwhere(where)]


def frame(axes: Axes, box: Box, theme: Theme, **look: Any) -> Rectangle:
    """Draw a frame that can move around what is chosen; it stands out on any color.

    `box` is left, bottom, width and height in the coordinates of the data.
    """
    left, bottom, width, height = box
    look |= {"edgecolor": theme.ink, "linewidth": 2.5, "path_effects": halo(theme, 5)}
    look |= {"fill": False, "clip_on": False, "zorder": 4, "animated": True}
    rectangle = Rectangle((left, bottom), width, height, **look)
    axes.add_patch(rectangle)
    return rectangle


def legend(
    figure: Figure, handles: list[Patch], corner: tuple[float, float], theme: Theme, **look: Any
) -> None:
    """Draw a legend with its lower left corner at `corner`, in fractions of the figure."""
    look = {"fontsize": 9, "frameon": False, "labelcolor": theme.ink} | look
    figure.legend(handles=handles, loc="lower left", bbox_to_anchor=corner, **look)


def halo(theme: Theme, width: float = 3) -> list[AbstractPathEffect]:
    """Return path effects that keep lines, and the edges of cells, off a text or a frame."""
    return [withStroke(linewidth=width, foreground=theme.paper)]


def label_ticks(axis: Axis, labels: list[str], room: float) -> None:
    """Label positions 0, 1, 2, …, each `room` inches wide; thin them and turn them to fit."""
    width = max(map(len, labels)) * 0.085 + 0.08 if isinstance(axis, XAxis) else 0
    upright = width > max(room, 0.4)  # words are turned before any is left out
    needed = 0.15 if upright else max(width, 0.15)
    step = next(n for n in (1, 2, 5, 10, 20, 50, 100, len(labels)) if n * room >= needed)
    at = range(0, len(labels), step)
    axis.set_ticks(at, labels[::step], parse_math=False, rotation=90 if upright else 0)


def headline(figure: Figure, title: str, theme: Theme) -> None:
    """Write the finding above everything, left-aligned and wrapped."""
    width, height = figure.get_size_inches()
    look = {"color": theme.ink, "fontsize": 12, "fontweight": "bold", "parse_math": False}
    if figure.get_layout_engine() is None:  # it makes room only for a title that it may place
        look |= {"y": 1 - MARGIN / height, "va": "top"}
    text = "\n".join(_title_lines(title, width))
    figure.suptitle(text, x=MARGIN / width, ha="left", **look)


def _title_lines(title: str, width: float) -> list[str]:
    return textwrap.wrap(literal(title, 400), int(width * 9.5))


def values(array: ArrayLike, what: str, ranks: tuple[int, ...], entries: str) -> Array:
    """Return `array` (list, NumPy array or Tensor) as float64, or say what is wrong with it.

    Parameters
    ----------
    array : array-like
    what : str
        Its name, for errors.
    ranks : tuple of int
        The numbers of axes that it may have.
    entries : str
        The shapes that these are, in letters.

    Raises
    ------
    TypeError
        For entries that are no real numbers.
    ValueError
        For another rank, rows of several lengths, no values at all, or NaN.
    """
    try:
        array = np.asarray(array.data if isinstance(array, Tensor) else array)
    except ValueError as error:
        raise ValueError(
            f"{what}: expected shape {entries}, got rows of several lengths"
        ) from error
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{what}: expected real numbers, got dtype {array.dtype}")
    if array.ndim not in ranks:
        raise ValueError(f"{what}: expected shape {entries}, got {list(array.shape)}")
    if array.size == 0:
        raise ValueError(f"{what}: shape {list(array.shape)} holds no values, nothing to draw")
    if np.isnan(array).any():
        where = np.argwhere(np.isnan(array))[0].tolist()
        raise ValueError(
            f"{what}: NaN at {where}; a likely cause is a softmax over a row that sees nothing, "
            "or exp of a large number"
        )
    return array.astype(np.float64)


def _finite(array: ArrayLike, what: str, ranks: tuple[int, ...], entries: str) -> Array:
    """Return `array` as float64 if all of it can be drawn on an axis."""
    array = values(array, what, ranks, entries)
    if np.isinf(array).any():
        where = np.argwhere(np.isinf(array))[0].tolist()
        raise ValueError(f"{what}: infinity at {where} has no place on an axis")
    return array


def _named(given: object, what: str) -> None:
    """Check that what is to be drawn comes with its names."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{what}: expected a dict of names and arrays, got {type(given).__name__}")
    if not given:
        raise ValueError(f"{what}: none given, nothing to draw")


def _weights(array: ArrayLike, ranks: tuple[int, ...], entries: str) -> Array:
    """Return `array` as float64 if all of it lies between 0 and 1."""
    array = values(array, "weights", ranks, entries)
    if array.min() < -1e-6 or array.max() > 1 + 1e-6:
        raise ValueError(
            f"weights: values run from {array.min():.3g} to {array.max():.3g}, but a weight "
            "lies between 0 and 1; are these scores, before softmax?"
        )
    return array


def _keep(keep: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return a boolean mask that fits `shape`."""
    keep = np.asarray(keep)
    if keep.dtype != bool:
        raise TypeError(
            f"keep: expected booleans, True where a key may be attended to, got {keep.dtype}; "
            "from an additive mask, pass mask == 0"
        )
    if keep.shape not in (shape, shape[-2:]):
        raise ValueError(f"keep: shape {list(keep.shape)} does not fit weights {list(shape)}")
    return np.broadcast_to(keep, shape)


def number(value: float) -> str:
    """Return a value with two decimals and a true minus sign; what rounds to 0 has none."""
    return f"{value:z.2f}".replace("-", "−")


def labels_for(labels: Labels, count: int, what: str, longest: int = 14) -> list[str]:
    """Return `count` labels ready to draw, each at most `longest` characters; see `literal`.

    Without any, the positions 0, 1, 2, …. Raises ValueError, naming `what`, for another number.
    """
    if labels is None:
        return [str(n) for n in range(count)]
    labels = list(labels)
    if len(labels) != count:
        raise ValueError(f"{what}: {len(labels)} labels for {count} positions; one each is needed")
    return [literal(label, longest) for label in labels]


# ------------------------------------------------------------------------------------ heatmaps

SHORTEST_BAR, BAR_ROOM, GAP = 0.9, 0.75, 0.2  # inches: the color bar, and between two panels


def scores_heatmap(
    scores: ArrayLike,
    queries: Labels = None,
    keys: Labels = None,
    names: Labels = None,
    title: str = "",
    theme: Theme = LIGHT,
) -> Figure:
    """Draw attention scores: blue below 0, white at 0, orange above.

    The color limits are ± the largest finite magnitude, over all panels.

    Parameters
    ----------
    scores : array or Tensor, [T, T_total] or [N, T, T_total]
        N matrices make N panels on one scale. −inf marks a forbidden key: hatched gray.
    queries, keys : list of str, optional
        The tokens of rows and columns. A square matrix without `keys` uses `queries` for both.
    names : list of str, optional
        One name per panel.
    title : str
        What the picture shows, as a sentence.
    theme : Theme

    Raises
    ------
    ValueError
        For NaN or +inf, a wrong rank, or labels that do not match the shape.
    """
    scores = values(scores, "scores", (2, 3), "[T, T_total] or [N, T, T_total]")
    if np.isposinf(scores).any():
        raise ValueError("scores: +inf found; a mask adds −inf, and finite scores stay finite")
    forbidden = np.isneginf(scores)
    limit = np.abs(scores[~forbidden]).max(initial=0) or 1.0
    look = (theme.diverging, Normalize(-limit, limit), "score", "forbidden: score −∞")
    return _heatmaps(scores, forbidden, look, queries, keys, names, title, theme)


def weights_heatmap(
    weights: ArrayLike,
    keep: ArrayLike | None = None,
    queries: Labels = None,
    keys: Labels = None,
    names: Labels = None,
    title: str = "",
    theme: Theme = LIGHT,
) -> Figure:
    """Draw attention weights on the fixed scale 0 to 1.

    Parameters
    ----------
    weights : array or Tensor, [T, T_total] or [N, T, T_total]
        N matrices make N panels.
    keep : boolean array, [T, T_total] or [N, T, T_total], optional
        True where a key may be attended to; the other cells are hatched gray.
    queries, keys, names, title, theme
        As in `scores_heatmap`.

    Raises
    ------
    ValueError
        For a weight outside 0 to 1, NaN, a wrong rank, or labels that do not match the shape.
    TypeError
        If `keep` is not boolean.
    """
    weights = _weights(weights, (2, 3), "[T, T_total] or [N, T, T_total]")
    forbidden = np.zeros(weights.shape, bool) if keep is None else ~_keep(keep, weights.shape)
    look = (theme.sequential, Normalize(0, 1), "weight", "forbidden: weight 0")
    return _heatmaps(weights, forbidden, look, queries, keys, names, title, theme)


def _heatmaps(
    panels: Array,
    forbidden: Array,
    look: tuple[Colormap, Normalize, str, str],
    queries: Labels,
    keys: Labels,
    names: Labels,
    title: str,
    theme: Theme,
) -> Figure:
    """Draw [N, T, T_total] as N panels in rows of up to four, beside one color bar."""
    colormap, norm, unit, forbidden_means = look
    panels, forbidden = (a.reshape(-1, *a.shape[-2:]) for a in (panels, forbidden))
    count, t, t_total = panels.shape
    if keys is None and t == t_total:
        keys = queries
    queries = labels_for(queries, t, "queries")
    keys = labels_for(keys, t_total, "keys")
    columns = min(count, 4)
    left = 0.085 * max(map(len, queries)) + 0.6  # inches, for labels and the axis' name
    room = min((WIDEST - left - BAR_ROOM) / columns - GAP, 3.6)
    cell = min(room / max(t, t_total), 0.75)
    longest = max(int((cell * t_total + GAP) / 0.085), 3)
    names = [""] * count if names is None else labels_for(names, count, "names", longest)
    figure = new_figure(5, 5, theme, layout=None)
    grid = [figure.add_axes((0, 0, 1, 1), label=f"panel {n}") for n in range(count)]
    for n, axes in enumerate(grid):
        mesh = _cells(axes, panels[n], forbidden[n], colormap, norm, cell, theme)
        _tokens(axes, queries, keys, cell, theme, left=n % columns == 0, top=n < columns)
        axes.set_title(names[n], fontsize=10, color=theme.ink, parse_math=False)
    below = (0.4 if forbidden.any() else 0.15) + max(0, SHORTEST_BAR - cell * t)
    _place(figure, grid, columns, cell * t_total, cell * t, below, title, theme)
    _color_bar(figure, grid[columns - 1], mesh, unit, theme)
    if forbidden.any():
        hatched = Patch(label=forbidden_means, **forbidden_look(theme))
        corner = (grid[0].get_position().x0, 0)
        legend(figure, [hatched], corner, theme, fontsize=10, borderaxespad=0.3)
    return figure


def _cells(
    axes: Axes,
    matrix: Array,
    forbidden: Array,
    colormap: Colormap,
    norm: Normalize,
    cell: float,
    theme: Theme,
) -> QuadMesh:
    """Draw one matrix: colored cells, hatched forbidden ones, values where they fit."""
    t, t_total = matrix.shape
    x, y = np.arange(t_total + 1) - 0.5, np.arange(t + 1) - 0.5
    allowed = np.ma.masked_array(matrix, forbidden)
    gaps: Look = {"edgecolors": theme.paper, "linewidth": 1.5} if cell > 0.15 else {}
    mesh = axes.pcolormesh(x, y, allowed, cmap=colormap, norm=norm, **gaps)
    if forbidden.any():
        hidden = np.ma.masked_array(np.zeros((t, t_total)), ~forbidden)
        gray = ListedColormap([theme.forbidden])
        axes.pcolor(x, y, hidden, cmap=gray, hatch="////", edgecolors=theme.hatch, linewidth=0)
    numbers = {(i, j): number(matrix[i, j]) for i, j in np.argwhere(~forbidden)}
    if max(map(len, numbers.values()), default=0) * 0.085 + 0.05 < cell:
        for (i, j), text in numbers.items():
            color = text_color(colormap(norm(matrix[i, j])))
            axes.text(j, i, text, ha="center", va="center", color=color, fontsize=9)
    axes.set(xlim=(-0.5, t_total - 0.5), ylim=(t - 0.5, -0.5))
    style(axes, theme)
    axes.spines["bottom"].set_visible(False)
    return mesh


def _tokens(
    axes: Axes,
    queries: list[str],
    keys: list[str],
    cell: float,
    theme: Theme,
    left: bool,
    top: bool,
) -> None:
    """Label rows and columns at their own positions."""
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    label_ticks(axes.xaxis, keys, cell)
    label_ticks(axes.yaxis, queries, cell)
    axes.tick_params(labelleft=left, labeltop=top, labelcolor=theme.ink)
    axes.set(xlabel="key j" if top else "", ylabel="query i" if left else "")


def _place(
    figure: Figure,
    grid: list[Axes],
    columns: int,
    width: float,
    height: float,
    below: float,
    title: str,
    theme: Theme,
) -> None:
    """Measure the labels, then give the figure its size and every panel its place, in inches."""
    left = _extent(grid[0].yaxis).width / figure.dpi + 0.15
    top = _extent(grid[0].xaxis).height / figure.dpi
    name = 0.3 if grid[0].get_title() else 0.05
    rows = -(-len(grid) // columns)
    total_width = max(left + columns * (width + GAP) + BAR_ROOM - 0.05, 5)
    highest = below + rows * height + (rows - 1) * (name + 0.1)
    above = 0.21 * len(_title_lines(title, total_width)) + 0.15
    total_height = highest + top + name + above
    figure.set_size_inches(total_width, total_height)
    headline(figure, title, theme)
    for n, axes in enumerate(grid):
        row, column = divmod(n, columns)
        x = left + column * (width + GAP)
        y = highest - height - row * (height + name + 0.1)
        box = (x / total_width, y / total_height, width / total_width, height / total_height)
        axes.set_position(box)


def _extent(axis: Axis) -> BboxBase:
    """Return the box around an axis' labels and name, in pixels."""
    box = axis.get_tightbbox(None)
    assert box is not None  # only an invisible axis has none
    return box


def _color_bar(figure: Figure, beside: Axes, mesh: QuadMesh, unit: str, theme: Theme) -> None:
    """Draw the scale to the right of a panel and as high, but never too short for its numbers."""
    width, height = figure.get_size_inches()
    box = beside.get_position()
    high = max(box.height * height, SHORTEST_BAR)
    place = (box.x1 + 0.2 / width, box.y1 - high / height, 0.13 / width, high / height)
    axes = figure.add_axes(place, label="scale")
    bar = figure.colorbar(mesh, cax=axes)
    bar.outline.set_visible(False)
    bar.locator = MaxNLocator(min(int(high / 0.35), 5), steps=[1, 2, 5, 10])
    axes.tick_params(colors=theme.muted, labelsize=9, length=0)
    axes.set_title(unit, fontsize=10, color=theme.muted, loc="left", pad=9)


# ------------------------------------------------------------------------------------ charts


def weight_bars(
    weights: ArrayLike,
    keys: Labels = None,
    names: Labels = None,
    title: str = "",
    theme: Theme = LIGHT,
) -> Figure:
    """Draw rows of weights as bars, one row above the other, each on the scale 0 to 1.

    Parameters
    ----------
    weights : array or Tensor, [T] or [N, T]
        N rows of weights over the same T keys.
    keys : list of str, optional
        The tokens under the bars.
    names : list of str, optional
        One name per row.
    title : str
        What the picture shows, as a sentence.
    theme : Theme

    Raises
    ------
    ValueError
        For a weight outside 0 to 1, NaN, a wrong rank, or labels that do not match the shape.
    """
    weights = _weights(weights, (1, 2), "[T] or [N, T]")
    weights = weights.reshape(-1, weights.shape[-1])
    count, t = weights.shape
    keys = labels_for(keys, t, "keys")
    width = min(2.5 + 0.5 * t, WIDEST)
    longest = int((width - 0.8) / 0.085)
    names = [""] * count if names is None else labels_for(names, count, "names", longest)
    figure = new_figure(width, 1.5 + 1.2 * count, theme)
    rows = figure.subplots(count, 1, sharex=True, squeeze=False).ravel()
    for n, axes in enumerate(rows):
        color = theme.accents[n % len(theme.accents)]
        style(axes, theme, grid="y")
        axes.bar(range(t), weights[n], width=0.7, color=color)
        axes.set(ylim=(0, 1.2), yticks=(0, 0.5, 1), ylabel="weight")
        axes.set_title(names[n], loc="left", fontsize=10, color=color, parse_math=False)
        for j, weight in enumerate(weights[n] if t <= 16 else ()):
            axes.text(j, weight + 0.04, number(weight), ha="center", color=theme.ink, fontsize=9)
    label_ticks(rows[-1].xaxis, keys, (width - 0.9) / t)
    rows[-1].tick_params(axis="x", labelcolor=theme.ink)
    rows[-1].set_xlabel("key j")
    headline(figure, title, theme)
    return settle(figure)


def line_chart(
    x: ArrayLike,
    lines: Mapping[str, ArrayLike],
    theory: Mapping[str, ArrayLike] | None = None,
    xlabel: str = "",
    ylabel: str = "",
    log_x: bool = False,
    title: str = "",
    theme: Theme = LIGHT,
) -> Figure:
    """Draw up to three measured lines, each named at its end, and theory as dashes.

    Parameters
    ----------
    x : array, [n]
    lines : dict of str to array, [n]
        What was measured; up to 20 points are marked one by one.
    theory : dict of str to array, [n], optional
        What was predicted.
    xlabel, ylabel : str
        The axes' names, with units.
    log_x : bool
        Powers of two at equal distances; `x` must then be positive.
    title : str
        What the picture shows, as a sentence.
    theme : Theme

    Raises
    ------
    ValueError
        For NaN or infinities, lengths that differ from that of `x`, or more than three lines.
    """
    x = _finite(x, "x", (1,), "[n]")
    if log_x and x.min() <= 0:
        raise ValueError(f"x: a logarithmic axis needs values above 0, but the least is {x.min()}")
    _named(lines, "lines")
    if theory is not None:
        _named(theory, "theory")
    if len(lines) > len(theme.accents):
        raise ValueError(f"lines: {len(lines)} of them; more than three are hard to tell apart")
    figure = new_figure(WIDEST, 3.5, theme)
    axes = figure.add_subplot(label="lines")
    style(axes, theme, grid="y")
    if log_x:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
    marks: Look = {"marker": "o", "markersize": 5} if len(x) <= 20 else {}
    dashes: Look = {"linestyle": (0, (4, 3)), "linewidth": 1.5, "zorder": 3}
    theory = theory or {}
    looks = [marks | {"color": color} for color in theme.accents[: len(lines)]]
    looks += [dashes | {"color": theme.ink}] * len(theory)
    drawn = []
    for (name, given), look in zip([*lines.items(), *theory.items()], looks, strict=True):
        y = _finite(given, name, (1,), "[n]")
        if len(y) != len(x):
            raise ValueError(f"{name}: {len(y)} values for {len(x)} values of x")
        axes.plot(x, y, **look)
        drawn.append((name, y, look["color"]))
    if min(y.min() for _, y, _ in drawn) >= 0:
        axes.set_ylim(bottom=0)  # so that twice as much is twice as high
    axes.set_xlabel(literal(xlabel, 50), parse_math=False)
    axes.set_ylabel(literal(ylabel, 35), parse_math=False)
    _name_lines(axes, drawn)
    headline(figure, title, theme)
    return settle(figure)


def _name_lines(axes: Axes, drawn: list[tuple[str, Array, str]]) -> None:
    """Write each line's name at its right end, pushed up where two names would touch."""
    low, high = axes.get_ylim()
    apart = (high - low) * 0.07
    last = -np.inf
    for name, y, color in sorted(drawn, key=lambda line: line[1][-1]):
        last = max(float(y[-1]), last + apart)
        axes.annotate(
            literal(name, 24),
            (1.01, last),
            xycoords=("axes fraction", "data"),
            va="center",
            color=color,
            parse_math=False,
        )


def histograms(
    samples: Mapping[str, ArrayLike],
    sigmas: Sequence[float],
    xlabel: str = "score",
    title: str = "",
    theme: Theme = LIGHT,
) -> Figure:
    """Draw histograms against the normal density with mean 0, on one horizontal axis.

    Parameters
    ----------
    samples : dict of str to array of any shape
        One histogram for each name; all entries of an array count.
    sigmas : list of float
        The standard deviation that theory predicts for each.
    xlabel : str
        What the samples are.
    title : str
        What the picture shows, as a sentence.
    theme : Theme

    Raises
    ------
    ValueError
        For NaN or infinities, no samples, or a σ that is not positive.
    """
    _named(samples, "samples")
    sigmas = _finite(sigmas, "sigmas", (1,), "[n]").tolist()
    if len(samples) != len(sigmas):
        raise ValueError(f"sigmas: {len(sigmas)} of them for {len(samples)} sets of samples")
    if min(sigmas) <= 0:
        raise ValueError(f"sigmas: a standard deviation is above 0, but one is {min(sigmas)}")
    figure = new_figure(WIDEST, 1.3 + 1.2 * len(samples), theme)
    rows = figure.subplots(len(samples), 1, sharex=True, squeeze=False).ravel()
    reach = 4 * max(sigmas)
    x = np.linspace(-reach, reach, 801)
    for n, (name, sample) in enumerate(samples.items()):
        sample = _finite(np.ravel(sample), name, (1,), "[n]")
        sigma, axes, color = sigmas[n], rows[n], theme.accents[n % len(theme.accents)]
        style(axes, theme)
        bins = np.arange(-4 * sigma, 4.1 * sigma, sigma / 4)
        height = np.histogram(sample, bins)[0] / len(sample) / (sigma / 4)
        axes.stairs(height, bins, fill=True, color=color, alpha=0.6)
        bell = np.exp(-((x / sigma) ** 2) / 2) / (sigma * np.sqrt(2 * np.pi))
        axes.plot(x, bell, color=theme.ink, linestyle=(0, (4, 3)), linewidth=1.5)
        measured = f"{literal(name, 20)}: σ = {number(sample.std())}, theory {number(sigma)}"
        axes.set_title(measured, loc="left", fontsize=10, color=color, parse_math=False)
        axes.set(ylim=(0, 1.1 * max(bell.max(), height.max())), yticks=(), xlim=(-reach, reach))
    rows[0].set_title("dashed: normal density", loc="right", fontsize=10, color=theme.ink)
    rows[-1].set_xlabel(literal(xlabel, 50), parse_math=False)
    headline(figure, title, theme)
    return settle(figure)


# ------------------------------------------------------------------------------------ points


def point_clouds(
    clouds: Sequence[ArrayLike],
    groups: Sequence[object],
    names: Labels = None,
    xlabel: str = "",
    ylabel: str = "",
    title: str = "",
    theme: Theme = LIGHT,
) -> Figure:
    """Draw the same points in several panels on one scale, groups told apart by color and shape.

    Parameters
    ----------
    clouds : list of array, [n, 2] each
        One panel per entry; row i is the same thing in each.
    groups : list of str, [n]
        What each point belongs to; at most three different.
    names : list of str, optional
        One name per panel.
    xlabel, ylabel : str
        What the two components are.
    title : str
        What the picture shows, as a sentence.
    theme : Theme

    Raises
    ------
    ValueError
        For NaN or infinities, a wrong shape, a wrong number of groups or names.
    """
    points = [_finite(cloud, "points", (2,), "[n, 2]") for cloud in clouds]
    if not points:
        raise ValueError("points: none given, nothing to draw")
    member = np.array([str(group) for group in groups])
    kinds = sorted(set(member.tolist()))
    if len(kinds) > len(theme.accents):
        raise ValueError(f"groups: {len(kinds)} different; more than three are hard to tell apart")
    for cloud in points:
        if cloud.shape != (len(member), 2):
            raise ValueError(f"points: {list(cloud.shape)} for {len(member)} groups; not [n, 2]")
    names = [""] * len(points) if names is None else names
    names = labels_for(names, len(points), "panels", longest=20)
    figure = new_figure(WIDEST, 1.1 + 5.9 / max(len(points), 2), theme)
    panels = figure.subplots(1, len(points), squeeze=False).ravel()
    center, reach = _common_square(np.concatenate(points))
    for axes, cloud, name in zip(panels, points, names, strict=True):
        style(axes, theme)
        axes.spines[:].set(visible=True, color=theme.grid)
        (x, y), ends = center, np.array([-reach, reach])
        axes.set(xticks=(), yticks=(), xlim=x + ends, ylim=y + ends)
        axes.set_xlabel(literal(xlabel, 20), parse_math=False)
        axes.set_box_aspect(1)
        # A cross over a disk shows both, where two groups lie on one another.
        for kind, color, marker in zip(kinds, theme.accents, "ox+", strict=False):
            x_kind, y_kind = cloud[member == kind].T
            look: Look = {"color": color, "marker": marker, "s": 26, "linewidth": 1.2, "alpha": 0.7}
            axes.scatter(x_kind, y_kind, label=literal(kind), **look)
        axes.set_title(name, fontsize=10, color=theme.ink, parse_math=False)
    panels[0].set_ylabel(literal(ylabel, 20), parse_math=False)
    look = {"frameon": False, "labelcolor": theme.ink, "fontsize": 10, "ncols": len(kinds)}
    handles = panels[0].get_legend_handles_labels()
    drawn = figure.legend(*handles, loc="outside lower left", **look)
    for text in drawn.get_texts():
        text.set_parse_math(False)
    headline(figure, title, theme)
    return settle(figure)


def _common_square(points: Array) -> tuple[Array, float]:
    """Return center and half side of the square around all `points` [n, 2], with a margin."""
    low, high = points.min(axis=0), points.max(axis=0)
    return (low + high) / 2, 0.58 * float((high - low).max()) or 1.0
