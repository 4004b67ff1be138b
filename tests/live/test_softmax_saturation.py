"""Lesson 04's live figure, against the numbers of the lesson and against plain NumPy."""

import numpy as np
import pytest

from course_lib.live import softmax_saturation as saturation
from course_lib.live.figure import Pointer
from course_lib.live.softmax_saturation import D_MAX, SCALES, TOKENS
from course_lib.plots import DARK, LIGHT

pytestmark = pytest.mark.filterwarnings("error")

RAW, SCALED, BY_D_K = SCALES
WIDTHS = np.array([4, 16, 64, 256, 1024])


def softmax(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def pool():
    return [vectors.astype(np.float64) for vectors in saturation.pool()]


# ------------------------------------------------------------------------------------ compute


@pytest.fixture(scope="module")
def many_draws():
    return np.random.default_rng(1).standard_normal((2, 200, TOKENS, 1024), dtype=np.float32)


def test_largest_weight_is_the_measured_one(many_draws):
    """The figures of the lesson, for ten keys."""
    largest = saturation.curves(*many_draws)[0][:, WIDTHS - 1]
    np.testing.assert_allclose(largest[0], [0.49, 0.73, 0.86, 0.93, 0.97], atol=0.02)
    np.testing.assert_allclose(largest[1], 0.32, atol=0.025)


def test_with_q_as_k_even_the_scaled_softmax_saturates(many_draws):
    queries, _ = many_draws
    largest = saturation.curves(queries, queries)[0][:, WIDTHS - 1]
    np.testing.assert_allclose(largest[1], [0.39, 0.74, 0.99, 1.0, 1.0], atol=0.02)


@pytest.mark.parametrize("q_is_k", [False, True])
@pytest.mark.parametrize("d_k", [1, 2, 17, 512])
def test_curves_are_what_each_d_k_gives_alone(d_k, q_is_k):
    q, k = (vectors[:, :, :d_k] for vectors in pool())
    scores = q @ (q if q_is_k else k).transpose(0, 2, 1)
    curves = saturation.pool_curves(q_is_k)
    for n, divisor in enumerate((1, np.sqrt(d_k), d_k)):
        s = softmax(scores / divisor)
        jacobian = s[..., None] * np.eye(TOKENS) - s[..., None] * s[..., None, :]
        entropy = -(s * np.log(np.maximum(s, 1e-300))).sum(axis=-1)
        expected = [s.max(axis=-1), entropy, np.linalg.norm(jacobian, axis=(-2, -1))]
        np.testing.assert_allclose(
            curves[:, n, d_k - 1], [m.mean() for m in expected], rtol=1e-3, atol=1e-4
        )


def test_measures_of_the_extremes():
    even, single = np.full(TOKENS, 1 / TOKENS), np.eye(TOKENS)[3]
    np.testing.assert_allclose(saturation.measure(even, 0), [0.1, np.log(10), 0.3])
    np.testing.assert_allclose(saturation.measure(single, 0), [1, 0, 0])


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("d_k", [1, 5, 64, 512])
def test_state_is_what_plain_numpy_gives(d_k, scale):
    state = saturation.compute(d_k, scale, False)
    q, k = (vectors[:, :, :d_k] for vectors in pool())
    raw = np.einsum("nid,njd->nij", q, k)
    divisors = {RAW: 1, SCALED: np.sqrt(d_k), BY_D_K: d_k}
    assert state.sigma == pytest.approx((raw / divisors[scale]).std(), rel=1e-4)
    assert state.theory == pytest.approx(np.sqrt(d_k) / divisors[scale])
    assert state.sigma == pytest.approx(state.theory, rel=0.05)
    expected = [softmax(raw[saturation.SHOWN] / divisor) for divisor in divisors.values()]
    np.testing.assert_allclose(state.weights, expected, atol=1e-5)


def test_a_larger_d_k_only_adds_components():
    """So the weights move in small steps: each adds one product to every score."""
    draw, query = saturation.SHOWN
    q, k = pool()
    for d_k in (1, 63, 511):
        before, after = (
            np.log(saturation.compute(d, SCALED, False).weights[1]) * np.sqrt(d)
            for d in (d_k, d_k + 1)
        )
        added = q[draw, query, d_k] * k[draw, :, d_k]
        moved = after - before  # up to a constant, which softmax takes away
        np.testing.assert_allclose(moved - moved.mean(), added - added.mean(), atol=2e-3)


def test_the_row_shown_is_the_most_typical():
    q, k = saturation.pool()
    scores = np.cumsum(q[:, :, None] * k[:, None], axis=-1).swapaxes(2, 3)  # [N, T, D, T]
    root = np.sqrt(np.arange(1, D_MAX + 1))[:, None]
    raw, scaled = (softmax(s).max(axis=-1) for s in (scores, scores / root))  # [N, T, D]
    fits = (raw[..., -1] > 0.9) & (scaled.max(axis=-1) < 0.5)
    far = sum(np.abs(m - m.mean(axis=(0, 1))).mean(axis=-1) for m in (raw, scaled))
    far[~fits] = np.inf
    assert np.unravel_index(far.argmin(), far.shape) == saturation.SHOWN


def test_the_row_shown_saturates_only_without_a_scale():
    scaled = [saturation.compute(d, SCALED, False).weights[1].max() for d in range(1, D_MAX + 1)]
    assert max(scaled) < 0.5
    assert saturation.compute(D_MAX, RAW, False).weights[0].max() > 0.9


@pytest.mark.parametrize("q_is_k", [False, True])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("d_k", [1, 2, 64, 512])
def test_histogram_holds_every_score_of_the_axis(d_k, scale, q_is_k):
    state = saturation.compute(d_k, scale, q_is_k)
    width = np.diff(state.edges)
    np.testing.assert_allclose(width, state.theory / 4)
    share = (state.heights * width).sum() / (state.theory * np.sqrt(2 * np.pi))
    q, k = (vectors[:, :, :d_k] for vectors in pool())
    scores = q @ (q if q_is_k else k).transpose(0, 2, 1)
    scores /= {RAW: 1, SCALED: np.sqrt(d_k), BY_D_K: d_k}[scale]
    assert state.edges[-1] >= min(np.abs(scores).max(), saturation.REACH)
    assert share == pytest.approx((np.abs(scores) <= state.edges[-1]).mean(), abs=3e-4)
    assert state.outside == pytest.approx((np.abs(scores) > saturation.REACH).mean(), abs=3e-4)


def test_histogram_is_as_high_as_theory():
    state = saturation.compute(256, SCALED, False)
    middle = np.abs(state.edges[:-1] + state.edges[1:]) / 2
    np.testing.assert_allclose(state.heights, np.exp(-(middle**2) / 2), atol=0.07)


def test_a_query_scores_itself_by_its_length():
    assert saturation.compute(64, RAW, True).own == pytest.approx(64, rel=0.02)
    assert saturation.compute(64, SCALED, True).own == pytest.approx(8, rel=0.02)
    assert saturation.compute(64, BY_D_K, True).own == pytest.approx(1, rel=0.02)
    assert saturation.compute(64, RAW, True).sigma == pytest.approx(8, rel=0.02)
    assert saturation.compute(64, RAW, False).own is None


# ------------------------------------------------------------------------------------ draw, says


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_axes_never_move(theme):
    picture = saturation.draw(saturation.compute(1, RAW, False), theme)

    def frame():
        return [(a.get_position().bounds, a.get_xlim(), a.get_ylim()) for a in picture.figure.axes]

    before = frame()
    for d_k, scale, q_is_k in [(512, RAW, False), (512, BY_D_K, True), (1, SCALED, False)]:
        picture.update(saturation.compute(d_k, scale, q_is_k))
        picture.figure.canvas.draw()
        assert frame() == before


def test_bars_and_dots_show_the_state():
    state = saturation.compute(64, SCALED, False)
    figure = saturation.draw(state).figure
    axes = {a.get_label(): a for a in figure.axes}
    for row, scale in enumerate(SCALES):
        bars = np.array(axes[scale].collections[0].get_segments())  # [T, 2, 2]
        np.testing.assert_allclose(bars[:, 1, 1], state.weights[row])
        np.testing.assert_array_equal(bars[:, :, 0], np.arange(TOKENS)[:, None] * [1, 1])
        np.testing.assert_array_equal(bars[:, 0, 1], 0)
    for n, measure in enumerate(saturation.MEASURES):
        dots = axes[measure].collections[0]
        np.testing.assert_allclose(dots.get_offsets()[:, 0], 64)
        np.testing.assert_allclose(dots.get_offsets()[:, 1], state.curves[n, :, 63])
        assert np.argmax(dots.get_sizes()) == 1


def test_sentences():
    says = saturation.says(saturation.compute(64, RAW, False))
    assert says.startswith("At d_k = 64, with no scale, the scores spread with σ = 7.9")
    assert "(theory 8.00); the largest of the 10 weights shown is 0.99, on average 0.86" in says
    says = saturation.says(saturation.compute(512, SCALED, False))
    assert "At d_k = 512, divided by √d_k, the scores spread with σ = 0.99 (theory 1.00)" in says
    says = saturation.says(saturation.compute(100, BY_D_K, False))
    assert "divided by d_k" in says and "(theory 0.10)" in says and says.endswith("most 2.30.")
    says = saturation.says(saturation.compute(64, SCALED, True))
    assert "with Q = K, each query scores 8.0 with itself, the others spread with σ = 0.99" in says


# ------------------------------------------------------------------------------------ explore


@pytest.fixture
def explorer():
    explorer = saturation.explore()
    yield explorer
    explorer.close()


def test_slider_runs_over_every_d_k(explorer):
    slider = explorer.controls["d_k"]
    assert (slider.min, slider.max, slider.step) == (1, D_MAX, 1)
    assert explorer.state.d_k == slider.value and explorer.state.scale == RAW


def test_a_press_on_a_curve_sets_d_k(explorer):
    for x, d_k in [(100.4, 100), (0.2, 1), (900.0, D_MAX)]:
        explorer._on_pointer(x, 0.5, Pointer("down", saturation.MEASURES[0]))
        assert explorer.state.d_k == d_k
    explorer._on_pointer(30.0, 0.5, Pointer("down", "scores"))
    assert explorer.state.d_k == D_MAX
