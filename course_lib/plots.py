"""Still figures: arrays in, a matplotlib `Figure` out.

No pyplot and no global state: a function draws on a figure of its own and hands it back. Every
label is shown literally, so a token like ``$`` starts no mathematics.
"""

import html
import io
import textwrap
import unicodedata
from dataclasses import dataclass

import numpy as np
from IPython.display import display
from matplotlib import font_manager, ft2font
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from course_lib.tensor import Tensor

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


def png(figure):
    """Return `figure` as PNG bytes at twice its size in CSS pixels, the same on every call."""
    buffer = io.BytesIO()
    # Without "Software" the file does not change with matplotlib's version number.
    figure.savefig(buffer, format="png", dpi=2 * figure.dpi, metadata={"Software": None})
    return buffer.getvalue()


def show(figure, says):
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


def contrast(color, other):
    """Return the contrast ratio of two colors, 1 to 21 (WCAG 2.2, "contrast ratio")."""

    def luminance(c):
        c = np.array(to_rgb(c))
        linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    dark, light = sorted([luminance(color), luminance(other)])
    return float((light + 0.05) / (dark + 0.05))


def text_color(background):
    """Return black or white, whichever reads better: at least 4.58 : 1 on any background."""
    return max("#000000", "#ffffff", key=lambda text: contrast(text, background))


_GLYPHS = ft2font.FT2Font(font_manager.findfont("DejaVu Sans")).get_charmap()
_VISIBLE = {"\n": "↵", "\r": "↵", "\t": "⇥"}


def literal(label, longest=14):
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


def new_figure(width, height, theme, layout="constrained"):
    """Return an empty figure, `width` × `height` inches at 100 dpi."""
    figure = Figure(figsize=(width, height), dpi=100, facecolor=theme.paper, layout=layout)
    FigureCanvasAgg(figure)
    return figure


def settle(figure):
    """Lay a figure out once and for all, so that a second look shows the same; return it."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def style(axes, theme, grid=None):
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


def label_ticks(axis, labels, room):
    """Label positions 0, 1, 2, …, each `room` inches wide; thin them and turn them to fit."""
    step = next(n for n in (1, 2, 5, 10, 20, 50, 100, len(labels)) if n * room >= 0.17)
    upright = axis.axis_name == "x" and max(map(len, labels)) * 0.085 > step * room
    at = range(0, len(labels), step)
    axis.set_ticks(at, labels[::step], parse_math=False, rotation=90 if upright else 0)


def headline(figure, title, theme, width=None):
    """Write the finding above everything, left-aligned and wrapped; return its height in inches."""
    width = width or figure.get_size_inches()[0]
    lines = textwrap.wrap(literal(title, 400), int(width * 9.5))
    look = {"color": theme.ink, "fontsize": 12, "fontweight": "bold", "parse_math": False}
    figure.suptitle("\n".join(lines), x=0.1 / width, ha="left", **look)
    return 0.21 * len(lines) + 0.15


def values(array, what, ranks, entries):
    """Return `array` (list, NumPy array or Tensor) as float64, or say what is wrong with it."""
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


def _finite(array, what, ranks, entries):
    """Return `array` as float64 if all of it can be drawn on an axis."""
    array = values(array, what, ranks, entries)
    if np.isinf(array).any():
        raise ValueError(f"{what}: infinity at {np.argwhere(np.isinf(array))[0].tolist()}")
    return array


def _weights(array, ranks, entries):
    """Return `array` as float64 if all of it lies between 0 and 1."""
    array = values(array, "weights", ranks, entries)
    if array.min() < -1e-6 or array.max() > 1 + 1e-6:
        raise ValueError(
            f"weights: values run from {array.min():.3g} to {array.max():.3g}, but a weight "
            "lies between 0 and 1; are these scores, before softmax?"
        )
    return array


def _keep(keep, shape):
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


def number(value):
    """Return a value with two decimals and a true minus sign; what rounds to 0 has none."""
    return f"{value:z.2f}".replace("-", "−")


def labels_for(labels, count, what, longest=14):
    """Return `count` labels ready to draw; without any, the positions 0, 1, 2, …"""
    if labels is None:
        return [str(n) for n in range(count)]
    labels = list(labels)
    if len(labels) != count:
        raise ValueError(f"{what}: {len(labels)} labels for {count} positions; one each is needed")
    return [literal(label, longest) for label in labels]


# ------------------------------------------------------------------------------------ heatmaps

SHORTEST_BAR = 0.9  # inches


def scores_heatmap(scores, queries=None, keys=None, names=None, title="", theme=LIGHT):
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


def weights_heatmap(weights, keep=None, queries=None, keys=None, names=None, title="", theme=LIGHT):
    """Draw attention weights on the fixed scale 0 to 1.

    Parameters
    ----------
    weights : array or Tensor, [T, T_total] or [N, T, T_total]
        N matrices make N panels.
    keep : boolean array, [T, T_total] or [N, T, T_total], optional
        True where a key may be attended to; the other cells are hatched gray.
    queries, keys, names, title
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


def _heatmaps(panels, forbidden, look, queries, keys, names, title, theme):
    """Draw [N, T, T_total] as N panels in rows of up to four, beside one color bar."""
    colormap, norm, unit, forbidden_means = look
    panels, forbidden = (a.reshape(-1, *a.shape[-2:]) for a in (panels, forbidden))
    count, t, t_total = panels.shape
    if keys is None and t == t_total:
        keys = queries
    queries = labels_for(queries, t, "queries")
    keys = labels_for(keys, t_total, "keys")
    names = [""] * count if names is None else labels_for(names, count, "names", longest=40)
    columns = min(count, 4)
    cell = min((3.6, 3.1, 2.3, 1.75)[columns - 1] / max(t, t_total), 0.75)  # inches
    figure = new_figure(5, 5, theme, layout=None)
    grid = [figure.add_axes((0, 0, 1, 1), label=f"panel {n}") for n in range(count)]
    for n, axes in enumerate(grid):
        mesh = _cells(axes, panels[n], forbidden[n], colormap, norm, cell, theme)
        _tokens(axes, queries, keys, cell, theme, left=n % columns == 0, top=n < columns)
        axes.set_title(names[n], fontsize=10, color=theme.ink, parse_math=False)
    legend = 0.4 if forbidden.any() else 0.15
    below = legend + max(0, SHORTEST_BAR - cell * t)
    _place(figure, grid, columns, cell * t_total, cell * t, below, title, theme)
    _color_bar(figure, grid[columns - 1], mesh, unit, theme)
    if forbidden.any():
        look = {"facecolor": theme.forbidden, "edgecolor": theme.hatch, "hatch": "////"}
        figure.legend(
            handles=[Patch(label=forbidden_means, linewidth=0, **look)],
            loc="lower left",
            bbox_to_anchor=(grid[0].get_position().x0, 0),
            borderaxespad=0.3,
            frameon=False,
            labelcolor=theme.ink,
        )
    return figure


def _cells(axes, matrix, forbidden, colormap, norm, cell, theme):
    """Draw one matrix: colored cells, hatched forbidden ones, values where they fit."""
    t, t_total = matrix.shape
    x, y = np.arange(t_total + 1) - 0.5, np.arange(t + 1) - 0.5
    allowed = np.ma.masked_array(matrix, forbidden)
    gaps = {"edgecolors": theme.paper, "linewidth": 1.5} if cell > 0.15 else {}
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


def _tokens(axes, queries, keys, cell, theme, left, top):
    """Label rows and columns at their own positions."""
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    label_ticks(axes.xaxis, keys, cell)
    label_ticks(axes.yaxis, queries, cell)
    axes.tick_params(labelleft=left, labeltop=top, labelcolor=theme.ink)
    axes.set(xlabel="key j" if top else "", ylabel="query i" if left else "")


def _place(figure, grid, columns, width, height, below, title, theme):
    """Measure the labels, then give the figure its size and every panel its place, in inches."""
    renderer = figure.canvas.get_renderer()
    left = grid[0].yaxis.get_tightbbox(renderer).width / figure.dpi + 0.15
    top = grid[0].xaxis.get_tightbbox(renderer).height / figure.dpi
    name = 0.3 if grid[0].get_title() else 0.05
    rows = -(-len(grid) // columns)
    total_width = max(left + columns * (width + 0.2) + 0.7, 5)
    highest = below + rows * height + (rows - 1) * (name + 0.1)
    total_height = highest + top + name + headline(figure, title, theme, total_width)
    figure.set_size_inches(total_width, total_height)
    for n, axes in enumerate(grid):
        row, column = divmod(n, columns)
        x = left + column * (width + 0.2)
        y = highest - height - row * (height + name + 0.1)
        box = [x / total_width, y / total_height, width / total_width, height / total_height]
        axes.set_position(box)


def _color_bar(figure, beside, mesh, unit, theme):
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


def weight_bars(weights, keys=None, names=None, title="", theme=LIGHT):
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

    Raises
    ------
    ValueError
        For a weight outside 0 to 1, NaN, a wrong rank, or labels that do not match the shape.
    """
    weights = _weights(weights, (1, 2), "[T] or [N, T]")
    weights = weights.reshape(-1, weights.shape[-1])
    count, t = weights.shape
    keys = labels_for(keys, t, "keys")
    names = [""] * count if names is None else labels_for(names, count, "names", longest=60)
    width = min(2.5 + 0.5 * t, 9)
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
    label_ticks(rows[-1].xaxis, keys, (width - 0.7) / t)
    rows[-1].tick_params(axis="x", labelcolor=theme.ink)
    rows[-1].set_xlabel("key j")
    headline(figure, title, theme)
    return settle(figure)


def line_chart(x, lines, theory=None, xlabel="", ylabel="", log_x=False, title="", theme=LIGHT):
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

    Raises
    ------
    ValueError
        For NaN or infinities, lengths that differ from that of `x`, or more than three lines.
    """
    x = _finite(x, "x", (1,), "[n]")
    if log_x and x.min() <= 0:
        raise ValueError(f"x: a logarithmic axis needs values above 0, but the least is {x.min()}")
    if not lines:
        raise ValueError("lines: none given, nothing to draw")
    if len(lines) > len(theme.accents):
        raise ValueError(f"lines: {len(lines)} of them; more than three are hard to tell apart")
    figure = new_figure(7.5, 3.8, theme)
    axes = figure.add_subplot(label="lines")
    style(axes, theme, grid="y")
    if log_x:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
    marks = {"marker": "o", "markersize": 5} if len(x) <= 20 else {}
    dashes = {"linestyle": (0, (4, 3)), "linewidth": 1.5, "zorder": 3}
    drawn = [(n, y, c, marks) for (n, y), c in zip(lines.items(), theme.accents, strict=False)]
    drawn += [(name, y, theme.ink, dashes) for name, y in (theory or {}).items()]
    for name, y, color, look in drawn:
        y = _finite(y, name, (1,), "[n]")
        if len(y) != len(x):
            raise ValueError(f"{name}: {len(y)} values for {len(x)} values of x")
        axes.plot(x, y, color=color, **look)
    axes.set_xlabel(literal(xlabel, 60), parse_math=False)
    axes.set_ylabel(literal(ylabel, 40), parse_math=False)
    _name_lines(axes, [(name, y, color) for name, y, color, _ in drawn])
    headline(figure, title, theme)
    return settle(figure)


def _name_lines(axes, drawn):
    """Write each line's name at its right end, pushed up where two names would touch."""
    low, high = axes.get_ylim()
    apart = (high - low) * 0.07
    last = -np.inf
    for name, y, color in sorted(drawn, key=lambda line: line[1][-1]):
        last = max(float(y[-1]), last + apart)
        axes.annotate(
            literal(name, 40),
            (1.01, last),
            xycoords=("axes fraction", "data"),
            va="center",
            color=color,
            parse_math=False,
        )


def histograms(samples, sigmas, xlabel="score", title="", theme=LIGHT):
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

    Raises
    ------
    ValueError
        For NaN or infinities, no samples, or a σ that is not positive.
    """
    if not samples:
        raise ValueError("samples: none given, nothing to draw")
    if len(samples) != len(sigmas):
        raise ValueError(f"sigmas: {len(sigmas)} of them for {len(samples)} sets of samples")
    if min(sigmas) <= 0:
        raise ValueError(f"sigmas: a standard deviation is above 0, but one is {min(sigmas)}")
    figure = new_figure(7.5, 1.3 + 1.5 * len(samples), theme)
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
        measured = f"{literal(name, 40)}: σ = {number(sample.std())}, theory {number(sigma)}"
        axes.set_title(measured, loc="left", fontsize=10, color=color, parse_math=False)
        axes.set(ylim=(0, 1.15 * bell.max()), yticks=(), xlim=(-reach, reach))
    rows[0].set_title("dashed: normal density", loc="right", fontsize=10, color=theme.ink)
    rows[-1].set_xlabel(literal(xlabel, 60), parse_math=False)
    headline(figure, title, theme)
    return settle(figure)


# ------------------------------------------------------------------------------------ points


def point_clouds(clouds, groups, names=None, title="", theme=LIGHT):
    """Draw the same points in several panels, two or three groups told apart by color and shape.

    Parameters
    ----------
    clouds : list of array, [n, 2] each
        One panel per entry; row i is the same thing in each.
    groups : list of str, [n]
        What each point belongs to; at most three different.
    names : list of str, optional
        One name per panel.
    title : str
        What the picture shows, as a sentence.

    Raises
    ------
    ValueError
        For NaN or infinities, a wrong shape, a wrong number of groups or names.
    """
    clouds = [_finite(cloud, "points", (2,), "[n, 2]") for cloud in clouds]
    groups = np.array([str(group) for group in groups])
    kinds = sorted(set(groups.tolist()))
    if len(kinds) > len(theme.accents):
        raise ValueError(f"groups: {len(kinds)} different; more than three are hard to tell apart")
    for cloud in clouds:
        if cloud.shape != (len(groups), 2):
            raise ValueError(f"points: {list(cloud.shape)} for {len(groups)} groups; not [n, 2]")
    names = labels_for(names or [""] * len(clouds), len(clouds), "panels", longest=40)
    figure = new_figure(min(3.1 * len(clouds), 9.4), 3.8, theme)
    panels = figure.subplots(1, len(clouds), squeeze=False).ravel()
    for axes, cloud, name in zip(panels, clouds, names, strict=True):
        style(axes, theme)
        axes.set(xticks=(), yticks=())
        axes.margins(0.15)
        for kind, color, marker in zip(kinds, theme.accents, "osD", strict=False):
            points = cloud[groups == kind]
            look = {"color": color, "marker": marker, "s": 18, "alpha": 0.6, "linewidth": 0}
            axes.scatter(*points.T, label=literal(kind), **look)
        axes.set_title(name, fontsize=10, color=theme.ink, parse_math=False)
    look = {"frameon": False, "labelcolor": theme.ink, "fontsize": 10, "ncols": len(kinds)}
    handles = panels[0].get_legend_handles_labels()
    legend = figure.legend(*handles, loc="outside lower left", **look)
    for text in legend.get_texts():
        text.set_parse_math(False)
    headline(figure, title, theme)
    return settle(figure)
