"""The still figures: what they show, that it can be read, and what bad input is told."""

import io
import itertools
import re
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgb, to_rgba
from readable import assert_in_contrast, assert_readable, drawn_texts

from course_lib import plots
from course_lib.plots import DARK, LIGHT
from course_lib.tensor import Tensor

pytestmark = pytest.mark.filterwarnings("error")  # a warning would be stderr in a notebook

THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
B20 = [[0.5, -np.inf, -np.inf], [1, 2, -np.inf], [0, 1, 3]]
ODD_TOKENS = [
    "$x_1$",
    "$",
    r"\frac{1}{2}",
    "<b>",
    "&amp;",
    "a\nb",
    "\t",
    " ",
    "",
    "银行",
    "🏦👩‍👩",
    "مصرف",
    "שלום",
]
ODD_TOKENS += ["é", "e\u0301", "\u202egnp", "\x00", "a" * 60, 7, "_", "^", "{", "100%"]


def panel(figure, n=0):
    return figure.axes[n]


def mesh(axes):
    return axes.collections[0]


def pixels(figure):
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())


def pixel_at(figure, axes, x, y):
    """Return the colors of the pixels around a point given in data coordinates."""
    image = pixels(figure)
    column, row = axes.transData.transform((x, y)).round().astype(int)
    row = image.shape[0] - row
    return image[row - 6 : row + 6, column - 6 : column + 6, :3].reshape(-1, 3) / 255


def softmax(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


RNG = np.random.default_rng(0)
WEIGHTS = softmax(RNG.standard_normal((8, 6, 6)))
SCORES = RNG.standard_normal((40, 40))
DOTS = RNG.standard_normal(500)
CAUSAL = np.tril(np.ones((6, 6), bool))
X = 2.0 ** np.arange(10)
LONG = "A long title that says in so many words what is to be seen in the figure below it, twice"

# Every kind of figure, with ordinary and with extreme contents: theme in, figure out.
FIGURES = {
    "scores": lambda theme: plots.scores_heatmap(B20, list("abc"), title="B20", theme=theme),
    "odd tokens": lambda theme: plots.scores_heatmap(
        SCORES[: len(ODD_TOKENS), : len(ODD_TOKENS)], ODD_TOKENS, title=LONG, theme=theme
    ),
    "one cell": lambda theme: plots.weights_heatmap([[1.0]], title=LONG, theme=theme),
    "one query": lambda theme: plots.weights_heatmap(
        WEIGHTS[:1, :1], keys=["key"] * 6, theme=theme
    ),
    "two panels": lambda theme: plots.scores_heatmap(
        SCORES[:20, :10].reshape(2, 10, 10), names=["raw", "scaled"], title="Two", theme=theme
    ),
    "eight heads": lambda theme: plots.weights_heatmap(
        WEIGHTS,
        CAUSAL,
        ["river", "bank"] * 3,
        names=[f"head {n}" for n in range(8)],
        title="Eight heads",
        theme=theme,
    ),
    "64 tokens": lambda theme: plots.weights_heatmap(np.eye(64), title="64", theme=theme),
    "flat": lambda theme: plots.scores_heatmap(SCORES[:1, :11], title="Flat", theme=theme),
    "flattest": lambda theme: plots.scores_heatmap(SCORES[:1], title="Flat", theme=theme),
    "tall": lambda theme: plots.scores_heatmap(SCORES[:, :2], title="Tall", theme=theme),
    "bars": lambda theme: plots.weight_bars(
        WEIGHTS[0, :3], names=list("xyz"), title="Bars", theme=theme
    ),
    "one bar": lambda theme: plots.weight_bars([1.0], title="Bar", theme=theme),
    "60 bars": lambda theme: plots.weight_bars(np.full(60, 1 / 60), title="60", theme=theme),
    "long bars": lambda theme: plots.weight_bars(
        np.full(9, 1 / 9), ["a token or so"] * 9, title="Nine", theme=theme
    ),
    "lines": lambda theme: plots.line_chart(
        X,
        {"measured": np.sqrt(X), "scaled": X / X},
        {"theory": np.sqrt(X)},
        xlabel="d_k",
        ylabel="σ",
        log_x=True,
        title=LONG,
        theme=theme,
    ),
    "equal lines": lambda theme: plots.line_chart(
        range(50), {name: np.ones(50) for name in "abc"}, theme=theme
    ),
    "points": lambda theme: plots.point_clouds(
        [SCORES[:, :2], SCORES[:, 2:4] * 9, SCORES[:, 4:6]],
        ["river", "lender", "$x_1$", "river"] * 10,
        names=["before", "in between", "after"],
        xlabel="money → river",
        ylabel="another direction",
        title="Points",
        theme=theme,
    ),
    "one cloud": lambda theme: plots.point_clouds([[[0, 0], [1, 1]]], "ab", theme=theme),
    "histograms": lambda theme: plots.histograms(
        {"d_k = 2": DOTS * 1.4, "d_k = 64": DOTS * 8}, [2**0.5, 8], title="Wider", theme=theme
    ),
}
KINDS = pytest.mark.parametrize("kind", FIGURES)


# ------------------------------------------------------------------------------------ all figures


@THEMES
@KINDS
def test_every_figure_can_be_read(kind, theme):
    figure = FIGURES[kind](theme)
    assert_readable(figure)
    assert_in_contrast(figure)
    corner = pixels(figure)[2, -3, :3] / 255
    np.testing.assert_allclose(corner, to_rgb(theme.paper), atol=0.01)


@KINDS
def test_the_same_data_gives_the_same_bytes(kind):
    figure = FIGURES[kind](LIGHT)
    first = plots.png(figure)
    assert first == plots.png(figure), "the second look differs from the first"
    assert first == plots.png(FIGURES[kind](LIGHT)), "drawn twice, it differs"


def test_no_pyplot_and_no_global_state():
    code = """
import sys, matplotlib
before = matplotlib.rcParams.copy()
import numpy as np
from course_lib import plots
plots.png(plots.scores_heatmap(np.eye(3), list("abc"), title="t"))
plots.png(plots.line_chart([1, 2], {"a": [1, 2]}))
assert "matplotlib.pyplot" not in sys.modules
assert matplotlib.rcParams.copy() == before
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


# ------------------------------------------------------------------------------------ colors


def test_contrast_is_that_of_wcag():
    assert plots.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert plots.contrast("#ffffff", "#777777") == pytest.approx(4.478, abs=0.001)
    assert plots.contrast("#ff0000", "#ffffff") == pytest.approx(3.998, abs=0.001)
    assert plots.contrast("#123456", "#123456") == 1


@given(st.tuples(*[st.floats(0, 1)] * 3))
def test_text_reads_on_any_color(color):
    assert plots.contrast(plots.text_color(color), color) >= 4.5


@THEMES
def test_words_of_a_theme_read_on_its_paper(theme):
    for color in (theme.ink, theme.muted, *theme.accents):
        assert plots.contrast(color, theme.paper) >= 4.5, color


@THEMES
@pytest.mark.parametrize("kind", ["scores", "one cell", "eight heads"])
def test_numbers_read_on_their_cells(kind, theme):
    figure = FIGURES[kind](theme)
    for axes in figure.axes:
        for text in axes.texts:
            j, i = text.get_position()
            cells = pixel_at(figure, axes, j + 0.35, i + 0.35)  # beside the number
            assert plots.contrast(text.get_color(), np.median(cells, axis=0)) >= 4.5


@THEMES
def test_more_weight_is_always_more_contrast_with_the_paper(theme):
    """So the scale is read in gray, too, and by the color-blind."""
    steps = [plots.contrast(theme.sequential(v), theme.paper) for v in np.linspace(0, 1, 50)]
    assert (np.diff(steps) > 0).all()
    halves = np.linspace(0, 0.5, 25)
    for sign in (1, -1):
        steps = [plots.contrast(theme.diverging(0.5 + sign * v), theme.paper) for v in halves]
        assert (np.diff(steps) > 0).all()


@THEMES
def test_forbidden_gray_is_no_color_of_a_scale(theme):
    for scale in (theme.sequential, theme.diverging):
        colors = scale(np.linspace(0, 1, 200))[:, :3]
        assert np.abs(colors - to_rgb(theme.forbidden)).max(axis=1).min() > 0.06


# The matrices of Machado, Oliveira and Fernandes (2009) for full color blindness, on linear RGB.
BLIND = {
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


@THEMES
@pytest.mark.parametrize("kind", BLIND)
def test_accents_differ_for_the_color_blind(kind, theme):
    def seen(color):
        c = np.array(to_rgb(color))
        linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        linear = np.clip(BLIND[kind] @ linear, 0, 1)
        return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)

    for a, b in itertools.combinations(map(seen, theme.accents), 2):
        assert np.linalg.norm(a - b) > 0.2


# ------------------------------------------------------------------------------------ B20: −inf


@THEMES
def test_b20_minus_infinity_does_not_touch_the_scale(theme):
    figure = plots.scores_heatmap(B20, list("abc"), title="Masked scores", theme=theme)
    cells = mesh(panel(figure))
    assert cells.get_clim() == (-3, 3)
    half, three = (cells.to_rgba(v)[:3] for v in (0.5, 3))
    assert plots.contrast(half, three) > 3
    for i, j in np.ndindex(3, 3):
        seen = pixel_at(figure, panel(figure), j + 0.3, i + 0.3)
        gray = (np.abs(seen - to_rgb(theme.forbidden)).max(axis=1) < 0.01).any()
        assert gray == np.isneginf(B20[i][j]), (i, j)
    hatched = pixel_at(figure, panel(figure), 2, 0)
    assert len(np.unique(hatched.round(2), axis=0)) > 3  # stripes, no plain gray
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["forbidden: score −∞"]
    assert not any("inf" in text.get_text() for text in drawn_texts(figure))


@pytest.mark.parametrize(
    ("scores", "limit"),
    [
        (np.full((2, 2), -np.inf), 1),
        ([[-np.inf, -7.0]], 7),
        ([[0.0, -np.inf]], 1),
        ([[1e30, -np.inf], [-2e30, 0]], 2e30),
        ([[[1.0, -np.inf]], [[-4.0, 0.0]]], 4),
        (np.array([[60000, -np.inf]], np.float16), 60000),
        ([[2, -5]], 5),
    ],
)
def test_scale_is_symmetric_around_zero_and_finite(scores, limit):
    figure = plots.scores_heatmap(scores)
    for n in range(1 if np.ndim(scores) == 2 else len(scores)):
        low, high = mesh(panel(figure, n)).get_clim()
        assert -low == high == pytest.approx(limit, rel=1e-3)
    assert bool(figure.legends) == bool(np.isneginf(scores).any())
    assert_readable(figure)


def test_weights_share_one_scale_whatever_they_are():
    figure = plots.weights_heatmap([[[0.1, 0.2]], [[0.0, 0.05]]])
    assert [mesh(panel(figure, n)).get_clim() for n in (0, 1)] == [(0, 1), (0, 1)]


def test_keep_hatches_weights_of_every_panel():
    keep = np.tril(np.ones((3, 3), bool))
    weights = np.stack([keep / keep.sum(axis=1, keepdims=True)] * 2)
    figure = plots.weights_heatmap(weights, keep)
    for n in (0, 1):
        np.testing.assert_array_equal(mesh(panel(figure, n)).get_array().mask, ~keep)
        numbers = [text.get_position() for text in panel(figure, n).texts]
        assert sorted(numbers) == sorted((j, i) for i, j in np.argwhere(keep))
    assert figure.legends[0].get_texts()[0].get_text() == "forbidden: weight 0"


# ------------------------------------------------------------------------------------ B21: labels


def ticks(axis):
    """Return the labels that an axis shows, by position."""
    axis.axes.figure.canvas.draw()
    return {
        position: label.get_text()
        for position, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
    }


def test_b21_labels_stand_at_their_own_cells():
    figure = plots.scores_heatmap(np.eye(3), ["a", "b", "c"])
    for axis in (panel(figure).xaxis, panel(figure).yaxis):
        assert ticks(axis) == {0: "a", 1: "b", 2: "c"}
    centers = [panel(figure).transData.transform((n, n)) for n in range(3)]
    for n, label in enumerate(panel(figure).get_yticklabels()):
        box = label.get_window_extent()
        assert (box.y0 + box.y1) / 2 == pytest.approx(centers[n][1], abs=3)


@settings(max_examples=8, deadline=None)
@given(t=st.integers(1, 70), t_total=st.integers(1, 70))
def test_labels_stand_at_their_own_cells_for_every_shape(t, t_total):
    queries, keys = [f"q{i}" for i in range(t)], [f"k{j}" for j in range(t_total)]
    figure = plots.scores_heatmap(np.zeros((t, t_total)), queries, keys)
    for axis, names in ((panel(figure).xaxis, keys), (panel(figure).yaxis, queries)):
        shown = ticks(axis)
        assert shown[0] == names[0]
        assert all(names[int(position)] == name for position, name in shown.items())
    assert_readable(figure)


def test_bars_have_their_keys_below_them():
    figure = plots.weight_bars([[0.2, 0.8], [0.5, 0.5]], ["a", "b"], ["one", "two"])
    assert ticks(figure.axes[1].xaxis) == {0: "a", 1: "b"}
    assert [bar.get_height() for bar in figure.axes[0].patches] == [0.2, 0.8]
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["one", "two"]
    assert all(axes.get_ylim()[0] == 0 and axes.get_ylim()[1] >= 1 for axes in figure.axes)


def test_rows_are_queries_and_columns_are_keys():
    figure = plots.weights_heatmap([[0.1, 0.9]], keys=["a", "b"])
    assert panel(figure).get_xlabel() == "key j" and panel(figure).get_ylabel() == "query i"
    assert [text.get_text() for text in panel(figure).texts] == ["0.10", "0.90"]
    assert [text.get_position() for text in panel(figure).texts] == [(0, 0), (1, 0)]
    top, bottom = panel(figure).get_ylim()[::-1]
    assert top < bottom  # row 0 is the uppermost


# ------------------------------------------------------------------------------------ literal text


@pytest.mark.parametrize(
    ("token", "drawn"),
    [
        ("$x_1$", "$x_1$"),
        ("<b>&amp;", "<b>&amp;"),
        ("a\nb", "a↵b"),
        ("\t", "⇥"),
        (" ", "␣"),
        ("a b", "a b"),
        ("", ""),
        ("银行", "□□"),
        ("🏦", "□"),
        ("\u202eabc", "□abc"),
        ("\x00", "□"),
        ("שלום", "שלום"),
        ("مصرف", "مصرف"),
        ("e\u0301", "é"),
        (7, "7"),
        ("a" * 60, "a" * 13 + "…"),
    ],
)
def test_labels_are_literal(token, drawn):
    assert plots.literal(token) == drawn


@pytest.mark.parametrize("token", ODD_TOKENS, ids=ascii)
def test_any_text_can_stand_anywhere(token, capfd):
    """No mathematics, no warning about a missing glyph, nothing on stderr."""
    text = str(token)
    figures = [
        plots.scores_heatmap([[1.0]], [token], names=[token], title=text),
        plots.weight_bars([1.0], [token], [token], title=text),
        plots.line_chart([1, 2], {text: [1, 2]}, {text: [2, 1]}, text, text, title=text),
        plots.histograms({text: [0.0, 1.0]}, [1], text, title=text),
        plots.point_clouds([[[0.0, 1.0]]], [token], [token], token, token, title=text),
    ]
    for figure in figures:
        words = [t for t in drawn_texts(figure) if "$" in t.get_text()]
        assert not any(t.get_parse_math() for t in words)
    assert capfd.readouterr().err == ""


def test_a_number_has_a_true_minus_sign_and_no_minus_zero():
    assert [plots.number(v) for v in (-0.5, 0, 12.345, -0.001)] == [
        "−0.50",
        "0.00",
        "12.35",
        "0.00",
    ]


# ------------------------------------------------------------------------------------ charts


def test_lines_are_named_at_their_ends_in_their_color():
    x = np.array([1.0, 2, 4])
    figure = plots.line_chart(x, {"measured": x, "scaled": x / x}, {"theory": x * 2}, log_x=True)
    (axes,) = figure.axes
    names = {text.get_text(): text for text in axes.texts}
    assert list(names) == ["scaled", "measured", "theory"]  # from the lowest to the highest
    for line, (name, y) in zip(axes.lines, [("measured", x), ("scaled", x / x)], strict=False):
        np.testing.assert_array_equal(line.get_ydata(), y)
        assert to_rgba(line.get_color()) == to_rgba(names[name].get_color())
    assert axes.lines[2].is_dashed() and not axes.lines[0].is_dashed()


def test_histogram_is_a_density_beside_the_normal_one():
    sample = np.random.default_rng(0).standard_normal(20_000) * 3
    (axes,) = plots.histograms({"d_k = 9": sample}, [3]).axes
    heights, edges, _ = axes.patches[0].get_data()
    assert (heights * np.diff(edges)).sum() == pytest.approx(1, abs=0.001)
    x, bell = axes.lines[0].get_data()
    assert np.trapezoid(bell, x) == pytest.approx(1, abs=0.001)
    assert bell.max() == pytest.approx(0.133, abs=0.001)  # 1 / (3 √(2π))
    assert np.abs(np.interp((edges[1:] + edges[:-1]) / 2, x, bell) - heights).max() < 0.01
    assert axes.get_title(loc="left") == f"d_k = 9: σ = {sample.std():.2f}, theory 3.00"


def test_arrays_lists_and_tensors_are_all_drawn_alike():
    rows = [[0.25, 0.75], [0.5, 0.5]]
    for rows_too in (np.array(rows, np.float32), Tensor(rows), Tensor(rows, requires_grad=True)):
        assert plots.png(plots.weights_heatmap(rows_too)) == plots.png(plots.weights_heatmap(rows))


def test_drawing_leaves_the_data_alone():
    scores = np.array(B20)
    before = scores.copy()
    plots.png(plots.scores_heatmap(scores))
    np.testing.assert_array_equal(scores, before)


# ------------------------------------------------------------------------------------ bad input

NAN = float("nan")
BAD = {
    "scores rank 1": (lambda: plots.scores_heatmap([1, 2]), "expected shape [T, T_total] or"),
    "scores rank 4": (lambda: plots.scores_heatmap(np.zeros((1, 1, 2, 2))), "got [1, 1, 2, 2]"),
    "scores NaN": (lambda: plots.scores_heatmap([[1, NAN]]), "scores: NaN at [0, 1]"),
    "scores +inf": (lambda: plots.scores_heatmap([[1, np.inf]]), "scores: +inf"),
    "scores empty": (lambda: plots.scores_heatmap(np.zeros((0, 3))), "holds no values"),
    "scores ragged": (lambda: plots.scores_heatmap([[1, 2], [3]]), "rows of several lengths"),
    "scores text": (lambda: plots.scores_heatmap([["a"]]), "expected real numbers"),
    "scores complex": (lambda: plots.scores_heatmap([[1j]]), "expected real numbers"),
    "scores boolean": (lambda: plots.scores_heatmap([[True]]), "got dtype bool"),
    "queries": (lambda: plots.scores_heatmap(np.eye(3), ["a", "b"]), "queries: 2 labels for 3"),
    "keys": (lambda: plots.scores_heatmap(np.ones((2, 3)), keys=["a"]), "keys: 1 labels for 3"),
    "names": (lambda: plots.scores_heatmap(np.eye(2), names=["a", "b"]), "names: 2 labels for 1"),
    "weights above": (lambda: plots.weights_heatmap([[0.5, 1.5]]), "run from 0.5 to 1.5"),
    "weights below": (lambda: plots.weights_heatmap([[-0.1, 0.5]]), "before softmax?"),
    "weights NaN": (lambda: plots.weights_heatmap([[NAN, 1]]), "a row that sees nothing"),
    "weights −inf": (lambda: plots.weights_heatmap([[-np.inf, 1]]), "run from -inf to 1"),
    "keep additive": (lambda: plots.weights_heatmap(np.eye(2), np.eye(2)), "pass mask == 0"),
    "keep shape": (lambda: plots.weights_heatmap(np.eye(2), np.ones(3) > 0), "keep: shape [3]"),
    "bars rank": (lambda: plots.weight_bars(np.zeros((1, 1, 1))), "expected shape [T] or [N, T]"),
    "bars range": (lambda: plots.weight_bars([2.0]), "run from 2 to 2"),
    "bars empty": (lambda: plots.weight_bars([]), "holds no values"),
    "bars keys": (lambda: plots.weight_bars([1.0], ["a", "b"]), "keys: 2 labels for 1"),
    "lines length": (lambda: plots.line_chart([1, 2], {"a": [1]}), "a: 1 values for 2"),
    "lines NaN": (lambda: plots.line_chart([1, 2], {"a": [1, NAN]}), "a: NaN at [1]"),
    "lines inf": (lambda: plots.line_chart([1, 2], {"a": [1, np.inf]}), "a: infinity at [1]"),
    "lines log": (lambda: plots.line_chart([0, 2], {"a": [1, 1]}, log_x=True), "above 0"),
    "lines none": (lambda: plots.line_chart([1, 2], {}), "lines: none"),
    "lines many": (lambda: plots.line_chart([1], {c: [1] for c in "abcd"}), "more than three"),
    "sigmas": (lambda: plots.histograms({"a": [1.0]}, [1, 2]), "sigmas: 2 of them for 1"),
    "sigma 0": (lambda: plots.histograms({"a": [1.0]}, [0]), "a standard deviation is above 0"),
    "samples none": (lambda: plots.histograms({}, []), "samples: none"),
    "samples empty": (lambda: plots.histograms({"a": []}, [1]), "a: shape [0] holds no values"),
    "show array": (lambda: plots.show(np.eye(2), "An array."), "got ndarray"),
    "show silent": (lambda: plots.show(plots.weight_bars([1.0]), " "), "`says` must be a sentence"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_told_what_is_wrong(case):
    draw, words = BAD[case]
    with pytest.raises((ValueError, TypeError), match=re.escape(words)):
        draw()


# ------------------------------------------------------------------------------------ show


def test_show_displays_the_picture_and_then_the_sentence(monkeypatch):
    shown = []
    monkeypatch.setattr(plots, "display", lambda data, **options: shown.append((data, options)))
    figure = plots.weight_bars([0.25, 0.75], title="Two weights")
    assert plots.show(figure, says="The larger of a < b & c is 0.75.") is None
    (picture, options), (caption, _) = shown
    assert picture["text/plain"] == caption["text/plain"] == "The larger of a < b & c is 0.75."
    assert caption["text/html"] == "<p>The larger of a &lt; b &amp; c is 0.75.</p>"
    assert picture["image/png"] == plots.png(figure)
    # Twice the pixels, at the size that the figure was made for: sharp on any screen.
    width, height = (figure.get_size_inches() * 100).round()
    assert options["metadata"] == {"image/png": {"width": width, "height": height}}
    image = matplotlib.image.imread(io.BytesIO(picture["image/png"]))
    assert image.shape[:2] == (2 * height, 2 * width)


def test_point_clouds_put_each_group_where_its_points_are():
    clouds = [np.array([[0.0, 0], [1, 1], [5, 5]]), np.array([[2.0, 0], [3, 1], [9, 5]])]
    named = {"names": ["one", "two"], "xlabel": "$x$", "ylabel": "up"}
    figure = plots.point_clouds(clouds, ["b", "b", "a"], **named, title="t")
    assert [axes.get_xlabel() for axes in figure.axes] == ["$x$", "$x$"]
    assert figure.axes[0].get_ylabel() == "up"
    for axes, cloud in zip(figure.axes, clouds, strict=True):
        found = {s.get_label(): s.get_offsets().tolist() for s in axes.collections}
        assert found == {"a": cloud[2:].tolist(), "b": cloud[:2].tolist()}


@pytest.mark.parametrize(
    ("cloud", "groups", "message"),
    [
        (np.zeros((2, 2)), ["a"], "for 1 groups"),
        (np.zeros((4, 2)), list("abcd"), "hard to tell apart"),
        (np.full((1, 2), np.nan), ["a"], "NaN"),
    ],
)
def test_point_clouds_refuse_what_does_not_fit(cloud, groups, message):
    with pytest.raises(ValueError, match=message):
        plots.point_clouds([cloud], groups)
