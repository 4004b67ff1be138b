"""The layers' operations: values against plain NumPy, gradients against finite differences."""

import math

import numpy as np
import pytest

from course_lib.functional import cross_entropy, embedding, layer_norm, linear, mlp
from course_lib.gradcheck import check_gradients
from course_lib.tensor import Tensor


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def leaf(values, dtype=np.float64):
    return Tensor(values, requires_grad=True, dtype=dtype)


# -- embedding -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ids", [[[1, 3, 1], [1, 0, 3]], [], 2, [[[0]]], Tensor([3, 3]), [np.int8(1)]]
)
def test_embedding_looks_rows_up(ids):
    table = normal(4, 3)
    rows = np.array(ids.data if isinstance(ids, Tensor) else ids, dtype=int)
    out = embedding(ids, Tensor(table))
    assert out.shape == (*rows.shape, 3) and np.array_equal(out.data, table[rows])
    assert check_gradients(lambda table: embedding(ids, table), table)


def test_a_row_that_is_looked_up_twice_gets_both_gradients():
    table = leaf(np.zeros((3, 2)))
    embedding([2, 0, 2], table).backward([[1.0, 2], [3, 4], [5, 6]])
    assert table.grad.tolist() == [[3, 4], [0, 0], [6, 8]]


# -- linear ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (0, 4)])
def test_linear_is_xw_plus_b(shape):
    x, w, b = normal(*shape), normal(4, 5, seed=1), normal(5, seed=2)
    out = linear(Tensor(x), Tensor(w), Tensor(b))
    assert out.shape == (*shape[:-1], 5) and np.allclose(out.data, x @ w + b, rtol=0, atol=1e-14)
    assert np.array_equal(linear(Tensor(x), Tensor(w)).data, x @ w)
    assert check_gradients(linear, x, w, b)
    if shape[0]:
        assert check_gradients(lambda w: linear(x, w, Tensor(b)), w)  # x is a constant


def test_linear_takes_lists_and_mixed_dtypes():
    out = linear([1.0, 2], Tensor([[1.0], [10]]), Tensor([0.5]))
    assert out.dtype == np.float32 and out.data.tolist() == [21.5]
    assert linear([1.0, 2], Tensor(np.ones((2, 1))), Tensor([0.5])).dtype == np.float64


# -- mlp -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4,), (2, 3, 4), (0, 4)])
def test_mlp_is_two_linears_with_a_gelu_between(shape):
    operands = normal(*shape), normal(4, 5), normal(5), normal(5, 3), normal(3)
    x, *weights = map(Tensor, operands)
    expected = linear(linear(x, *weights[:2]).gelu(), *weights[2:])
    assert np.array_equal(mlp(x, *weights).data, expected.data)
    assert check_gradients(mlp, *operands)


# -- layer norm ------------------------------------------------------------------------------------


@pytest.mark.parametrize("eps", [None, 0.3])
def test_layer_norm_gives_mean_0_and_variance_1_then_scale_and_shift(eps):
    x, w, b = 2 * normal(2, 3, 4) + 1, normal(4, seed=1), normal(4, seed=2)
    options = {} if eps is None else {"eps": eps}
    centered = x - x.mean(axis=-1, keepdims=True)
    variance = (centered**2).mean(axis=-1, keepdims=True)
    expected = centered / np.sqrt(variance + (eps or 1e-5)) * w + b
    out = layer_norm(Tensor(x), Tensor(w), Tensor(b), **options)
    assert np.allclose(out.data, expected, rtol=0, atol=1e-14)
    assert check_gradients(lambda x, w, b: layer_norm(x, w, b, **options), x, w, b)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_layer_norm_keeps_the_dtype(dtype):
    x = leaf((300 * normal(2, 8)).astype(dtype), dtype)  # squares that float16 can't hold
    w, b = leaf(np.ones(8), dtype), leaf(np.zeros(8), dtype)
    out = layer_norm(x, w, b)
    out.backward(np.arange(16).reshape(2, 8))
    assert out.dtype == x.grad.dtype == w.grad.dtype == dtype
    values = x.data.astype(float)
    expected = (values - values.mean(-1, keepdims=True)) / values.std(-1, keepdims=True)
    assert np.allclose(out.data, expected, atol=2e-3)


def test_layer_norm_of_whole_numbers_is_of_fractions():
    out = layer_norm([1, 3], [1, 1], [0, 0])
    assert out.dtype == np.float32 and np.allclose(out.data, [-1, 1], atol=1e-4)


# -- cross-entropy ---------------------------------------------------------------------------------


def mean_surprise(logits, targets, ignored=-100):
    """One position at a time, in plain Python."""
    costs = []
    for row, target in zip(logits.reshape(-1, logits.shape[-1]), np.ravel(targets), strict=True):
        if target != ignored:
            costs.append(math.log(sum(math.exp(z) for z in row)) - row[target])
    return sum(costs) / len(costs)


@pytest.mark.parametrize(
    ("shape", "targets"),
    [
        ((3,), 1),
        ((2, 3), [0, 2]),
        ((2, 3), [-100, 1]),
        ((2, 3, 4), [[0, 1, 3], [2, -100, 0]]),
        ((2, 1), [0, 0]),
    ],
)
def test_cross_entropy_is_the_mean_surprise(shape, targets):
    logits = 2 * normal(*shape)
    out = cross_entropy(Tensor(logits), targets)
    assert out.shape == () and out.item() == pytest.approx(mean_surprise(logits, targets))
    assert check_gradients(lambda x: cross_entropy(x, targets), logits)


def test_another_number_may_mean_ignored():
    logits = normal(3, 4)
    out = cross_entropy(Tensor(logits), [1, 0, 2], ignore_index=0)
    assert out.item() == pytest.approx(mean_surprise(logits, [1, 0, 2], ignored=0))


def test_cross_entropy_does_not_overflow_and_keeps_the_dtype():
    for dtype in (np.float16, np.float32, np.float64):
        logits = leaf([[1000.0, 0], [0, -1000]], dtype)
        loss = cross_entropy(logits, [1, 0])
        loss.backward()
        assert loss.dtype == logits.grad.dtype == dtype and loss.item() == 500
        assert logits.grad.tolist() == [[0.5, -0.5], [0, 0]]
    assert cross_entropy([[0, 0]], [0]).item() == pytest.approx(math.log(2))


# -- errors ----------------------------------------------------------------------------------------

W, B, HUGE = Tensor(np.ones((4, 5))), Tensor(np.ones(5)), np.array([1e200, -1e200])


@pytest.mark.parametrize(
    ("act", "kind", "words"),
    [
        (lambda: embedding([4], W), IndexError, r"^embedding: there is no id 4 among 4 \(0 … 3\)"),
        (lambda: embedding([0, -1], W), IndexError, "^embedding: there is no id -1 among 4"),
        (lambda: embedding([1.0], W), TypeError, "^embedding: ids must be whole .* got float64"),
        (lambda: embedding([True], W), TypeError, "^embedding: ids must be whole .* got bool"),
        (
            lambda: embedding([0], B),
            ValueError,
            r"^embedding: the table must be .* got shape \[5\]",
        ),
        (
            lambda: linear(np.ones((2, 3)), W, B),
            ValueError,
            r"^linear: x \[2, 3\], weight \[4, 5\], bias \[5\] must be \[..., in\]",
        ),
        (lambda: linear(np.ones(4), W, Tensor(np.ones(4))), ValueError, r"bias \[4\] must be"),
        (lambda: linear(np.ones(4), Tensor(np.ones(4)), B), ValueError, r"weight \[4\]"),
        (lambda: linear(1.0, W, B), ValueError, r"^linear: x \[\]"),
        (
            lambda: linear([math.inf, 0, 0, 0], Tensor(np.zeros((4, 5))), B),
            ValueError,
            "^linear: this makes NaN",
        ),
        (lambda: mlp(np.ones(3), W, B, W, B), ValueError, r"^mlp: x \[3\], weight \[4, 5\]"),
        (lambda: mlp(np.ones(4), W, B, W, B), ValueError, "^mlp, the second layer: .*4, 5"),
        (
            lambda: mlp([math.inf, 0, 0, 0], Tensor(np.zeros((4, 5))), B, W.T, B[:4]),
            ValueError,
            "^mlp: this makes NaN",
        ),
        (
            lambda: layer_norm(np.ones((2, 3)), np.ones(4), np.ones(4)),
            ValueError,
            r"^layer_norm: x \[2, 3\], weight \[4\], bias \[4\]: the last axis",
        ),
        (lambda: layer_norm(np.ones(3), np.ones(3), np.ones(2)), ValueError, r"bias \[2\]"),
        (lambda: layer_norm(1.0, np.ones(()), np.ones(())), ValueError, r"^layer_norm: x \[\]"),
        (lambda: layer_norm(HUGE, np.ones(2), np.ones(2)), ValueError, "^layer_norm: .* overflow"),
        (
            lambda: cross_entropy(np.zeros((2, 3)), [[0, 1]]),
            ValueError,
            r"^cross_entropy: logits \[2, 3\] need targets \[2\], got \[1, 2\]",
        ),
        (lambda: cross_entropy(1.0, 0), ValueError, r"^cross_entropy: logits \[\]"),
        (lambda: cross_entropy(np.zeros((2, 3)), [0, 3]), IndexError, "^cross_entropy: .* no id 3"),
        (lambda: cross_entropy(np.zeros((2, 3)), [0, -1]), IndexError, "no id -1 among 3"),
        (lambda: cross_entropy(np.zeros(3), 1.0), TypeError, "^cross_entropy: ids .* float64"),
        (
            lambda: cross_entropy(np.zeros((2, 3)), [-100, -100]),
            ValueError,
            r"^cross_entropy: all 2 targets are ignored \(ignore_index=-100\)",
        ),
        (lambda: cross_entropy([math.inf, 0], 0), ValueError, r"^cross_entropy: found \+inf"),
    ],
)
def test_errors_name_the_trouble(act, kind, words):
    with pytest.raises(kind, match=words):
        act()


def test_a_nan_that_was_put_in_passes_through():
    x = np.array([[math.nan, 1], [1, 2]])
    assert np.isnan(linear(x, np.eye(2), np.zeros(2)).data[0]).all()
    assert np.isnan(mlp(x, *2 * [Tensor(np.eye(2)), Tensor(np.zeros(2))]).data[0]).all()
    assert np.isnan(layer_norm(x, np.ones(2), np.zeros(2)).data[0]).all()
    assert np.isnan(cross_entropy(x, [0, 1]).item())
