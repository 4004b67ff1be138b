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
    accents=("#b84a00", "#0b6cb3", "#00785a"),
    sequential=LinearSegmentedColormap.from_list(
        "weights_light", ["#f4f8f6", "#b9dfd0", "#5fb39a", "#12795f", "#003f31"]
    ),
    diverging=LinearSegmentedColormap.from_list(
        "scores_light",
        ["#083f73", "#3d86c2", "#a9cdea", "#f7f7f5", "#f7c59a", "#d97a2b", "#873700"],
    ),
    forbidden="#d5d8dc",
    hatch="#9aa1a9",
)
DARK = Theme(
    paper="#111111",
    ink="#eceff2",
    muted="#a9b1bb",
    grid="#33383e",
    accents=("#ff9a5c", "#62b5f0", "#3fc9a0"),
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
    """Return a token's text as it can be drawn on one line.

    A line break becomes ↵, a tab ⇥, a lone space ␣; a character that matplotlib's own font does
    not have becomes □ (other fonts differ from machine to machine); a long label is cut with ….
    """
    text = str(label)
    if text.strip(" ") == "":
        text = "␣" * len(text)
    text = "".join(_VISIBLE.get(c, c) for c in unicodedata.normalize("NFC", text))
    text = "".join(c if ord(c) in _GLYPHS and c.isprintable() else "□" for c in text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def new_figure(width, height, theme):
    """Return an empty figure, `width` × `height` inches at 100 dpi, that lays itself out."""
    figure = Figure(figsize=(width, height), dpi=100, facecolor=theme.paper, layout="constrained")
    FigureCanvasAgg(figure)
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


def headline(figure, title, theme):
    """Write the finding above everything, left-aligned and wrapped to the figure's width."""
    lines = textwrap.fill(title, int(figure.get_size_inches()[0] * 11))
    figure.suptitle(
        lines, x=0.01, ha="left", color=theme.ink, fontsize=12, fontweight="bold", parse_math=False
    )


def values(array, what, ranks, entries):
    """Return `array` (list, NumPy array or Tensor) as float64, or say what is wrong with it."""
    array = np.asarray(array.numpy() if hasattr(array, "numpy") else array)
    if array.dtype == bool or not np.issubdtype(array.dtype, np.number):
        raise TypeError(f"{what}: expected numbers, got dtype {array.dtype}")
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


def labels_for(labels, count, what):
    """Return `count` labels ready to draw; without any, the positions 0, 1, 2, …"""
    if labels is None:
        return [str(n) for n in range(count)]
    labels = list(labels)
    if len(labels) != count:
        raise ValueError(f"{what}: {len(labels)} labels for {count} positions; one each is needed")
    return [literal(label) for label in labels]


# ------------------------------------------------------------------------------------ heatmaps


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
    weights = values(weights, "weights", (2, 3), "[T, T_total] or [N, T, T_total]")
    if weights.min() < -1e-6 or weights.max() > 1 + 1e-6:
        raise ValueError(
            f"weights: values run from {weights.min():.3g} to {weights.max():.3g}, but a weight "
            "lies between 0 and 1; are these scores, before softmax?"
        )
    forbidden = np.zeros(weights.shape, bool)
    if keep is not None:
        keep = np.asarray(keep)
        if keep.dtype != bool:
            raise TypeError(
                f"keep: expected booleans, True where a key may be attended to, got {keep.dtype}; "
                "from an additive mask, pass mask == 0"
            )
        forbidden = ~np.broadcast_to(keep, weights.shape)
    look = (theme.sequential, Normalize(0, 1), "weight", "forbidden: weight 0")
    return _heatmaps(weights, forbidden, look, queries, keys, names, title, theme)


def _heatmaps(panels, forbidden, look, queries, keys, names, title, theme):
    """Draw [N, T, T_total] as N panels in rows of up to four, with one color bar."""
    colormap, norm, unit, forbidden_means = look
    panels, forbidden = (a.reshape(-1, *a.shape[-2:]) for a in (panels, forbidden))
    count, t, t_total = panels.shape
    if keys is None and t == t_total:
        keys = queries
    queries = labels_for(queries, t, "queries")
    keys = labels_for(keys, t_total, "keys")
    names = labels_for(names, count, "names") if names is not None else None
    columns = min(count, 4)
    rows = -(-count // columns)
    side = min({1: 3.6, 2: 3.0, 3: 2.3, 4: 1.75}[columns] / max(t, t_total), 0.75)  # of a cell
    room = 0.075 * max(len(q) for q in queries) + 0.55
    figure = new_figure(
        min(columns * (side * t_total + 0.2) + room + 0.9, 9.5),
        rows * (side * t + 0.3) + 0.075 * max(len(k) for k in keys) + 0.9 + 0.3 * forbidden.any(),
        theme,
    )
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[count:]:
        axes.remove()
    for n, axes in enumerate(grid[:count]):
        mesh = _panel(axes, panels[n], forbidden[n], colormap, norm, side, theme)
        _tokens(axes, queries, keys, side, first=n % columns == 0, top=n < columns)
        if names:
            axes.set_title(names[n], fontsize=10, color=theme.ink, parse_math=False)
    bar = figure.colorbar(mesh, ax=grid[:count].tolist(), fraction=0.05, aspect=18, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=theme.muted, labelsize=9, length=0)
    bar.set_label(unit, color=theme.muted, fontsize=10)
    if forbidden.any():
        patch = Patch(
            facecolor=theme.forbidden, edgecolor=theme.hatch, hatch="////", label=forbidden_means
        )
        figure.legend(
            handles=[patch], loc="outside lower left", frameon=False, labelcolor=theme.ink
        )
    headline(figure, title, theme)
    return figure


def _panel(axes, matrix, forbidden, colormap, norm, side, theme):
    """Draw one matrix: colored cells, hatched forbidden ones, values where they fit."""
    t, t_total = matrix.shape
    x, y = np.arange(t_total + 1) - 0.5, np.arange(t + 1) - 0.5
    line = {"edgecolors": theme.paper, "linewidth": 1.5 if side > 0.2 else 0}
    cells = np.ma.masked_array(matrix, forbidden)
    mesh = axes.pcolormesh(x, y, cells, cmap=colormap, norm=norm, **line)
    if forbidden.any():
        hidden = np.ma.masked_array(np.zeros((t, t_total)), ~forbidden)
        gray = ListedColormap([theme.forbidden])
        axes.pcolor(x, y, hidden, cmap=gray, hatch="////", edgecolors=theme.hatch, linewidth=0)
    if side >= 0.42:
        for i, j in np.argwhere(~forbidden):
            value = f"{matrix[i, j]:.2f}".replace("-", "−")
            color = text_color(colormap(norm(matrix[i, j])))
            axes.text(j, i, value, ha="center", va="center", color=color, fontsize=10)
    axes.set(aspect="equal", xlim=(-0.5, t_total - 0.5), ylim=(t - 0.5, -0.5))
    style(axes, theme)
    axes.spines["bottom"].set_visible(False)
    return mesh


def _tokens(axes, queries, keys, side, first, top):
    """Label rows and columns at their own positions, thinned where they would overlap."""
    step = max(1, int(np.ceil(0.16 / side)))
    upright = max(len(key) for key in keys) * 0.08 > side
    axes.xaxis.tick_top()
    axes.set_xticks(
        range(0, len(keys), step), keys[::step], parse_math=False, rotation=90 if upright else 0
    )
    axes.set_yticks(range(0, len(queries), step), queries[::step], parse_math=False)
    axes.tick_params(labelleft=first, labeltop=top)
    axes.xaxis.set_label_position("top")
    axes.set(xlabel="key j" if top else "", ylabel="query i" if first else "")
