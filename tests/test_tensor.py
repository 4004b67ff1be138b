"""The tensor: values against NumPy, gradients against finite differences, errors in words."""

import math
import operator
import re
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from course_lib.gradcheck import check_gradients
from course_lib.tensor import Tensor, cat, no_grad, stack, unbroadcast, where

X = np.random.default_rng(0).normal(size=(2, 3, 4))
Y = np.random.default_rng(1).normal(size=(3, 1)) + 3
POSITIVE = np.abs(X) + 0.1
INF = math.inf


def leaf(values, dtype=np.float64):
    return Tensor(values, requires_grad=True, dtype=dtype)


def weights(x, axes):
    e = np.exp(x - x.max(axis=axes, keepdims=True))
    return e / e.sum(axis=axes, keepdims=True)


def gelu(x):
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


# -- operations: (ours, in NumPy, input) -----------------------------------------------------------

UNARY = {
    "exp": (lambda x: x.exp(), np.exp, X),
    "log": (lambda x: x.log(), np.log, POSITIVE),
    "sqrt": (lambda x: x.sqrt(), np.sqrt, POSITIVE),
    "tanh": (lambda x: x.tanh(), np.tanh, X),
    "relu": (lambda x: x.relu(), lambda x: np.where(x > 0, x, 0), X),
    "gelu": (lambda x: x.gelu(), gelu, 3 * X),
    "negative": (lambda x: -x, np.negative, X),
    "power": (lambda x: x**3, lambda x: x**3, X),
    "inverse": (lambda x: x**-1, lambda x: 1 / x, X),
    "root": (lambda x: x**0.5, np.sqrt, POSITIVE),
    "power 0": (lambda x: x**0, np.ones_like, X),
    "of a number": (lambda x: 2**x, lambda x: 2**x, X),
    "sum": (lambda x: x.sum(), np.sum, X),
    "sum over one": (lambda x: x.sum(1), lambda x: x.sum(1), X),
    "sum over two": (lambda x: x.sum((0, 2), True), lambda x: x.sum((0, 2), keepdims=True), X),
    "mean": (lambda x: x.mean(), np.mean, X),
    "mean over one": (lambda x: x.mean(-1), lambda x: x.mean(-1), X),
    "mean over two": (lambda x: x.mean([0, 1], True), lambda x: x.mean((0, 1), keepdims=True), X),
    "var": (lambda x: x.var(), lambda x: x.var(ddof=1), X),
    "var over one": (lambda x: x.var(1), lambda x: x.var(1, ddof=1), X),
    "var divided by n": (lambda x: x.var(2, correction=0), lambda x: x.var(2), X),
    "var over two": (
        lambda x: x.var((0, 2), keepdim=True, correction=2),
        lambda x: x.var((0, 2), ddof=2, keepdims=True),
        X,
    ),
    "max": (lambda x: x.max(), np.max, X),
    "max over one": (lambda x: x.max(-1), lambda x: x.max(-1), X),
    "max over two": (lambda x: x.max((0, 1), True), lambda x: x.max((0, 1), keepdims=True), X),
    "softmax": (lambda x: x.softmax(dim=-1), lambda x: weights(x, -1), X),
    "softmax over two": (lambda x: x.softmax((0, 1)), lambda x: weights(x, (0, 1)), X),
    "log_softmax": (lambda x: x.log_softmax(dim=1), lambda x: np.log(weights(x, 1)), X),
    "logsumexp": (lambda x: x.logsumexp(dim=1), lambda x: np.log(np.exp(x).sum(1)), X),
    "logsumexp, kept": (
        lambda x: x.logsumexp((0, -1), keepdim=True),
        lambda x: np.log(np.exp(x).sum((0, -1), keepdims=True)),
        X,
    ),
    "reshape": (lambda x: x.reshape(4, 6), lambda x: x.reshape(4, 6), X),
    "reshape by a tuple": (lambda x: x.reshape((4, -1)), lambda x: x.reshape(4, 6), X),
    "permute": (lambda x: x.permute(2, 0, 1), lambda x: x.transpose(2, 0, 1), X),
    "permute by a list": (lambda x: x.permute([-1, 1, 0]), lambda x: x.transpose(2, 1, 0), X),
    "transpose": (lambda x: x.transpose(0, -1), lambda x: x.swapaxes(0, 2), X),
    "mT": (lambda x: x.mT, lambda x: x.swapaxes(1, 2), X),
    "T": (lambda x: x.T, np.transpose, X[0]),
    "one entry": (lambda x: x[1, 2, 3], lambda x: x[1, 2, 3], X),
    "slices": (lambda x: x[:, ::2, 1:], lambda x: x[:, ::2, 1:], X),
    "new axis": (lambda x: x[..., None, 0], lambda x: x[..., None, 0], X),
    "a list of rows": (lambda x: x[:, [0, 0, 2], 1:], lambda x: x[:, [0, 0, 2], 1:], X),
    "no rows": (lambda x: x[[]], lambda x: x[:0], X),
    "a tensor of rows": (lambda x: x[Tensor([1, 1])], lambda x: x[[1, 1]], X),
    "where true": (lambda x: x[X > 0], lambda x: x[X > 0], X),
    "masked_fill": (lambda x: x.masked_fill(X > 0, 5.0), lambda x: np.where(X > 0, 5, x), X),
    "detach": (lambda x: x * x.detach().data, lambda x: x * X, X),
    "iterate": (lambda x: sum(row * i for i, row in enumerate(x)), lambda x: x[1], X),
    "cat": (lambda x: cat([x, x * 2], dim=1), lambda x: np.concatenate([x, x * 2], 1), X),
    "cat by default": (lambda x: cat((x, x)), lambda x: np.concatenate([x, x]), X),
    "stack": (lambda x: stack([x, x * 2], dim=-1), lambda x: np.stack([x, x * 2], -1), X),
    "stack by default": (lambda x: stack([x, x]), lambda x: np.stack([x, x]), X),
    "used twice": (lambda x: x * x + x, lambda x: x * x + x, X),
}
BINARY = {
    "add": (operator.add, np.add),
    "sub": (operator.sub, np.subtract),
    "mul": (operator.mul, np.multiply),
    "div": (operator.truediv, np.divide),
    "pow": (lambda x, y: (x * x + 1) ** y, lambda x, y: (x * x + 1) ** y),
    "where": (lambda x, y: where(X > 0, x, y), lambda x, y: np.where(X > 0, x, y)),
    "cat": (lambda x, y: cat([x[0], y], dim=-1), lambda x, y: np.concatenate([x[0], y], 1)),
}


@pytest.mark.parametrize("name", UNARY)
def test_one_input(name):
    ours, in_numpy, x = UNARY[name]
    assert np.allclose(ours(Tensor(x)).data, in_numpy(x), rtol=0, atol=1e-13)
    assert ours(Tensor(x)).shape == in_numpy(x).shape
    if name != "detach":  # the factor is a constant for one of the two, and moves for the other
        assert check_gradients(ours, x)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_one_input_keeps_its_dtype(name, dtype):
    ours, in_numpy, x = UNARY[name]
    x = leaf(x.astype(dtype), dtype)
    out = ours(x)
    expected = in_numpy(x.data.astype(float))
    tolerance = 1e-2 if dtype == np.float16 else 1e-5
    assert out.dtype == dtype and np.allclose(out.data, expected, rtol=tolerance, atol=tolerance)
    out.backward(np.ones(out.shape))
    assert x.grad.dtype == dtype and x.grad.shape == x.shape


@pytest.mark.parametrize("name", BINARY)
def test_two_broadcast_inputs(name):
    ours, in_numpy = BINARY[name]
    assert np.allclose(ours(Tensor(X), Tensor(Y)).data, in_numpy(X, Y), rtol=0, atol=1e-12)
    assert check_gradients(ours, X, Y)
    for x, y in ((leaf(X), Tensor(Y)), (Tensor(X), leaf(Y))):  # one side is a constant
        ours(x, y).sum().backward()
        both = [leaf(X), leaf(Y)]
        ours(*both).sum().backward()
        for one, pair in zip((x, y), both, strict=True):
            assert one.grad is None or np.allclose(one.grad, pair.grad)


@pytest.mark.parametrize("symbol", ["add", "sub", "mul", "truediv", "pow"])
@pytest.mark.parametrize("other", [Y, 3, 2.5, [3.0, 1, 2, 4]])
def test_numbers_lists_and_arrays_on_the_left(symbol, other):
    operation = getattr(operator, symbol)
    x = POSITIVE
    expected = operation(np.asarray(other), x)
    assert np.allclose(operation(other, Tensor(x)).data, expected)
    assert np.allclose(operation(Tensor(other), Tensor(x)).data, expected)
    assert check_gradients(lambda x: operation(other, x), x)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (2, 3, 4)),
        ((5, 2, 3), (3, 4)),
        ((2, 3), (5, 3, 4)),
        ((5, 1, 2, 3), (6, 3, 4)),
    ],
)
def test_matmul_of_all_ranks(a, b):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=a), rng.normal(size=b)
    assert np.allclose((Tensor(x) @ Tensor(y)).data, x @ y)
    assert np.allclose((x @ Tensor(y)).data, x @ y)
    assert check_gradients(lambda x, y: x @ y, x, y)
    for u, v in ((leaf(x), Tensor(y)), (Tensor(x), leaf(y))):
        (u @ v).sum().backward()
        both = [leaf(x), leaf(y)]
        (both[0] @ both[1]).sum().backward()
        for one, pair in zip((u, v), both, strict=True):
            assert one.grad is None or np.allclose(one.grad, pair.grad)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3),
    st.sampled_from([operator.add, operator.sub, operator.mul]),
    st.sampled_from([np.float32, np.float64]),
)
def test_broadcast_values_and_gradient_shapes(shapes, operation, dtype):
    rng = np.random.default_rng(4)
    a, b = (rng.normal(size=shape).astype(dtype) for shape in shapes.input_shapes)
    x, y = Tensor(a, requires_grad=True), Tensor(b, requires_grad=True)
    out = operation(x, y)
    assert np.array_equal(out.data, operation(a, b)) and out.dtype == dtype
    out.backward(np.ones(out.shape))
    assert (x.grad.shape, y.grad.shape) == (a.shape, b.shape)
    assert x.grad.dtype == dtype


@pytest.mark.parametrize("symbol", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons_are_booleans_without_a_gradient(symbol):
    compare = getattr(operator, symbol)
    x = leaf([1.0, 2, 3])
    for other in (2, 2.0, [1, 2, 4], np.array([3.0, 2, 1]), Tensor([2.0])):
        found = compare(x, other)
        assert found.dtype == bool and not found.requires_grad
        expected = compare(x.data, other.data if isinstance(other, Tensor) else np.array(other))
        assert found.data.tolist() == expected.tolist()
        assert compare(Tensor([True, False]), True).data.tolist() == [
            compare(v, True) for v in (True, False)
        ]


def test_what_is_no_number_is_not_equal_and_has_no_order():
    assert (Tensor([1.0]) == "a") is False and (Tensor([1.0]) != "a") is True
    with pytest.raises(TypeError, match="not supported"):
        _ = Tensor([1.0]) < "a"
    assert len({Tensor([1.0]), Tensor([1.0])}) == 2  # hashed by identity


# -- values at the edge ----------------------------------------------------------------------------


@pytest.mark.parametrize("x", [[1000.0, 999], [-1000.0, -1001], [0.0, -INF], [3e38, -3e38]])
def test_softmax_and_its_logs_do_not_overflow(x):
    gap = x[1] - x[0]
    small = math.exp(gap)
    x = leaf(x)
    assert x.softmax(dim=0).data == pytest.approx([1 / (1 + small), small / (1 + small)])
    assert x.logsumexp(dim=0).data == pytest.approx(x.data[0] + math.log1p(small))
    logs = x.log_softmax(dim=0)
    assert logs.data == pytest.approx([-math.log1p(small), gap - math.log1p(small)])
    for out in (x.softmax(0), logs, x.logsumexp(0)):
        out.backward(np.ones(out.shape))
    assert np.isfinite(x.grad).all()


def test_where_every_score_is_minus_inf_no_weight_is_left():
    x = np.array([[-INF, -INF], [0, 0]])
    for name, expected in (
        ("softmax", [[0, 0], [0.5, 0.5]]),
        ("log_softmax", [[-INF, -INF], [-math.log(2), -math.log(2)]]),
        ("logsumexp", [-INF, math.log(2)]),
    ):
        tensor = leaf(x)
        out = getattr(tensor, name)(dim=1)
        assert np.allclose(out.data, expected)
        out.backward(np.arange(1.0, out.data.size + 1).reshape(out.shape))
        assert tensor.grad[0].tolist() == [0, 0] and np.isfinite(tensor.grad).all()


def test_the_largest_values_share_the_gradient():
    x = leaf([[1.0, 3, 3], [2, 2, 2]])
    x.max(1).backward([6.0, 6])
    assert x.grad.tolist() == [[0, 3, 3], [2, 2, 2]]


def test_relu_has_no_slope_at_0():
    x = leaf([-1.0, 0, 1])
    x.relu().sum().backward()
    assert x.grad.tolist() == [0, 0, 1]


def test_gelu_far_out_is_the_line_or_0():
    x = leaf([-1e6, -30, 30, 1e6])
    y = x.gelu()
    assert y.data.tolist() == [0, 0, 30, 1e6]
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 1, 1]


def test_powers_of_0():
    x, n = leaf([0.0, 0, 0]), Tensor([0.0, 1, 2])
    (x**n).sum().backward()
    assert x.grad.tolist() == [0, 1, 0]
    n = leaf([2.0])
    (Tensor([0.0]) ** n).backward()
    assert n.grad.tolist() == [0]


def test_repeated_positions_of_an_index_add_up():
    x = leaf(np.zeros((2, 3)))
    x[[0, 1, 0], [2, 0, 2]].backward([1.0, 2, 4])
    assert x.grad.tolist() == [[0, 0, 5], [2, 0, 0]]


def test_an_index_is_the_learners_own_until_it_is_used():
    rows, x = np.array([0, 1]), leaf(np.eye(2))
    picked = x[rows]
    rows[:] = 0
    picked.sum().backward()
    assert x.grad.tolist() == [[1, 1], [1, 1]]


# -- making a tensor -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1.5, np.float32), (1, np.int64), (True, bool), ([1, 2], np.int64), ([1, 2.5], np.float32),
        ([True], bool), ([], np.float32), (np.ones(2), np.float64), (np.float64(2), np.float64),
        (np.ones(2, np.float16), np.float16), (np.int8(3), np.int64), (np.uint64(3), np.int64),
        (Tensor(np.ones(2)), np.float64),
    ],
)  # fmt: skip
def test_dtypes(data, dtype):
    assert Tensor(data).dtype == dtype
    assert np.array_equal(Tensor(data).data, data.data if isinstance(data, Tensor) else data)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_numbers_and_lists_take_the_dtype_of_the_tensor_beside(dtype):
    x = Tensor(np.ones(2, dtype))
    for out in (x * np.sqrt(2.0), 2 / x, x**2, np.float64(3) - x, [2, 3] * x, x - [1, 2.5], x - 1):
        assert out.dtype == dtype
    assert (x + np.ones(2, np.int64)).dtype == dtype
    assert (x * Tensor([1, 2])).dtype == dtype


@pytest.mark.parametrize(
    ("out", "dtype"),
    [
        (Tensor([1, 2]) + 1, np.int64),
        (Tensor([1, 2]) * 1.5, np.float32),
        (Tensor([1, 2]) / 2, np.float32),
        (Tensor([True, False]) * True, np.int64),
        (Tensor([True, False]) * 2, np.int64),
        (Tensor([[True]]) @ Tensor([[True]]), np.int64),
        (Tensor([1.0]) * np.array([1.5]), np.float64),
        (Tensor(np.ones(1, np.float16)) + Tensor([1.0]), np.float32),
        (Tensor([1, 2]) ** 2, np.int64),
        (Tensor([1, 2]).exp(), np.float32),
        (Tensor([1, 2]).mean(), np.float32),
        (Tensor([1, 2]).softmax(0), np.float32),
        (Tensor([1, 2]).sum(), np.int64),
        (Tensor([True, True]).sum(), np.int64),
        (Tensor([3, 2]).max(), np.int64),
        (cat([Tensor([1]), [2.5]]), np.float32),
        (where(np.array([True]), 1, Tensor(np.ones(1))), np.float64),
        (Tensor([1.0]) + 70000, np.float32),
        (Tensor([1, 2], dtype=np.float64), np.float64),
    ],
)
def test_the_dtype_of_results(out, dtype):
    assert out.dtype == dtype


def test_gradients_come_back_in_each_sides_own_dtype():
    x, y = leaf([1.0], np.float32), leaf([2.0], np.float64)
    (x * y).backward()
    assert (x.grad.dtype, y.grad.dtype) == (np.float32, np.float64)
    assert (x.grad, y.grad) == ([2.0], [1.0])


def test_values_are_copied():
    values = np.ones(2)
    x = Tensor(values)
    y = Tensor(x)
    values[0] = 5
    assert x.data.tolist() == [1, 1] and not np.shares_memory(x.data, y.data)


def test_new_values_are_copied_and_take_the_dtype():
    x, values = Tensor([1.0, 2.0]), np.array([3, 4])
    x.data = values
    values[0] = 9
    assert x.data.tolist() == [3, 4] and x.dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        x.data[0] = 5


def test_what_a_tensor_tells_of_itself():
    x = leaf(X)
    assert (x.shape, x.ndim, x.dtype, len(x)) == ((2, 3, 4), 3, np.float64, 2)
    assert [row.shape for row in x] == [(3, 4)] * 2
    assert (Tensor([[2.5]]).item(), float(Tensor(2.5)), bool(Tensor([0.0]))) == (2.5, 2.5, False)
    assert bool(Tensor(3)) is True
    assert x.grad is None and Tensor([1.0]).requires_grad is False


def test_numpy_gets_a_copy_of_a_constant():
    x = Tensor([1.0, 2.0])
    for copy in (x.numpy(), np.array(x), np.asarray(x, dtype=np.float64)):
        copy[0] = 5
        assert copy.tolist() == [5, 2]
    assert x.data.tolist() == [1, 2]
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    assert np.shares_memory(np.array(x, copy=False), x.data)


def test_requires_grad_can_be_switched():
    x = Tensor([1.0])
    x.requires_grad = True
    assert (x * 2).requires_grad is True
    x.requires_grad = False
    assert (x * 2).requires_grad is False


# -- backward --------------------------------------------------------------------------------------


def test_backward_twice_is_an_error_and_gradients_accumulate():
    x = Tensor(2.0, requires_grad=True)
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match=r"walked before and has been freed"):
        y.backward()
    with pytest.raises(RuntimeError, match="freed"):
        (y + x).backward()
    assert x.grad == 4
    (x * x).backward()
    assert x.grad == 8 and x.grad.dtype == np.float32


def test_the_gradient_that_arrives_may_be_given():
    x = leaf([1.0, 2])
    (x * 3).backward([1, 10])
    assert x.grad.tolist() == [3, 30]
    seed = np.array([1.0, 1])
    x.grad = None
    (x + 0).backward(seed)
    seed[0] = 7
    assert x.grad.tolist() == [1, 1]  # a copy
    y = leaf([[5.0]])
    y.backward()
    assert y.grad.tolist() == [[1]]


def test_a_gradient_is_kept_in_between_where_asked():
    x = leaf(3.0)
    y = x * 2
    z = y * y
    y.retain_grad()
    z.backward()
    assert (y.grad, x.grad, z.grad) == (12, 24, None)


def test_two_leaves_never_share_one_gradient():
    x, y = leaf([1.0]), leaf([2.0])
    (x + y).backward()
    x.grad += 5
    assert y.grad.tolist() == [1]


def test_a_constant_branch_sends_no_gradient_back():
    x = leaf([2.0])
    (x * x.detach() + Tensor([1.0])).backward()
    assert x.grad.tolist() == [2]
    with no_grad():
        y = x * 3
    assert not y.requires_grad
    (x * y).backward()
    assert x.grad.tolist() == [8]


def test_no_gradient_is_changed_when_an_operation_fails():
    x, y = leaf(0.0), leaf(1.0)
    with pytest.raises(ValueError, match="the backward of sqrt makes NaN"):
        (x.sqrt() * 0 + y).backward()
    assert x.grad is None and y.grad is None


def test_a_nan_that_was_put_in_passes_through():
    x = leaf([math.nan, 1.0])
    y = (x * 2 + 1).exp() / 3
    y.sum().backward()
    assert np.isnan(y.data).tolist() == [True, False]
    assert np.isnan(x.grad).tolist() == [True, False]


def test_an_infinite_slope_is_no_nan():
    x = leaf([0.0, 1])
    x.sqrt().sum().backward()
    assert x.grad.tolist() == [INF, 0.5]


def test_no_grad_records_nothing_and_ends_after_an_error():
    x = Tensor(2.0, requires_grad=True)
    with pytest.raises(KeyError), no_grad():
        assert not (x * x).requires_grad
        raise KeyError
    assert (x * x).requires_grad

    @no_grad()
    def square(x):
        return x * x

    assert not square(x).requires_grad and (x * x).requires_grad


def test_a_chain_of_100_000_operations():
    x = Tensor(1.0, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.backward()
    assert (y.item(), x.grad) == (100_001, 1)
    for _ in range(100_000):
        y = y + x
    del y  # a chain that nobody walks: freeing it needs no recursion either


def test_the_tape_keeps_only_what_a_backward_needs():
    x = leaf(np.ones(5))
    y = x * 2
    kept = weakref.ref(y.data)
    z = (y + 1)[1:].reshape(2, 2).mT.sum()
    del y
    assert kept() is None
    z.backward()
    assert x.grad.tolist() == [0, 2, 2, 2, 2]
    y = x.exp()
    kept, z = weakref.ref(y.data), y.sum()
    del y
    assert kept() is not None  # the slope of exp
    z.backward()
    assert kept() is None


def test_values_can_not_be_changed_under_a_backward():
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    for values in (x.data, y.data):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 5
    y.sum().backward()
    assert x.grad.tolist() == [2, 4]


@pytest.mark.parametrize("symbol", ["iadd", "isub", "imul", "itruediv", "ipow", "imatmul"])
def test_in_place_operations(symbol):
    operation = getattr(operator, symbol)
    x = leaf(np.eye(2))
    with pytest.raises(TypeError, match=r"can't be changed in place.* write w.data = w.data - lr"):
        operation(x, 2.0)
    y = before = Tensor(np.eye(2) * 2)
    y = operation(y, np.eye(2) + 1)
    assert np.allclose(y.data, getattr(operator, symbol[1:])(np.eye(2) * 2, np.eye(2) + 1))
    assert y is not before and before.data.tolist() == [[2, 0], [0, 2]]
    y = x * 1
    y = operation(y, np.eye(2) + 1)  # computed: Python makes a new tensor
    assert y.requires_grad


@pytest.mark.parametrize(
    ("g", "shape", "expected"),
    [
        (np.ones((2, 3)), (2, 3), np.ones((2, 3))),
        (np.ones((4, 2, 3)), (2, 3), np.full((2, 3), 4)),
        (np.arange(6.0).reshape(2, 3), (2, 1), [[3], [12]]),
        (np.arange(6.0).reshape(2, 3), (1, 3), [[3, 5, 7]]),
        (np.arange(6.0).reshape(2, 3), (3,), [3, 5, 7]),
        (np.arange(6.0).reshape(2, 3), (), 15),
        (np.ones((5, 4, 2, 3)), (1, 3), [[40, 40, 40]]),
        (np.ones((1, 1)), (1,), [1]),
        (np.ones((0, 3)), (3,), [0, 0, 0]),
    ],
)
def test_unbroadcast_sums_over_what_was_repeated(g, shape, expected):
    found = unbroadcast(g, shape)
    assert found.shape == shape and np.array_equal(found, expected)


# -- errors ----------------------------------------------------------------------------------------

ONE, TWO = Tensor([1.0]), Tensor([[1.0, 2], [3, 4]])
ERRORS = [
    (lambda: Tensor([[1.0, 2]]) @ Tensor([[1.0, 2]]), ValueError,
     r"matmul: \[1, 2\] @ \[1, 2\]: 2 ≠ 1; did you mean b.mT or a.mT\?"),
    (lambda: Tensor(np.ones((3, 2))) @ Tensor(np.ones((3, 4))), ValueError,
     r"2 ≠ 3; did you mean a.mT\?"),
    (lambda: Tensor(np.ones((3, 2))) @ Tensor(np.ones((4, 2))), ValueError,
     r"2 ≠ 4; did you mean b.mT\?"),
    (lambda: Tensor(np.ones((3, 2))) @ Tensor(np.ones((4, 5))), ValueError, "2 ≠ 4$"),
    (lambda: Tensor(np.ones(3)) @ Tensor(np.ones(2)), ValueError, "3 ≠ 2$"),
    (lambda: TWO @ 2, ValueError, r"matmul: \[2, 2\] @ \[\]: .* did you mean \*\?"),
    (lambda: 2 @ TWO, ValueError, r"matmul: \[\] @ \[2, 2\]: .* did you mean \*\?"),
    (lambda: Tensor(np.ones((2, 1, 1))) @ Tensor(np.ones((3, 1, 1))), ValueError,
     r"matmul, the batch axes: \[2\] and \[3\] do not broadcast"),
    (lambda: Tensor([1.0, 2]) + Tensor([1.0, 2, 3]), ValueError,
     r"add: \[2\] and \[3\] do not broadcast"),
    (lambda: Tensor([1.0, 2]) < [1.0, 2, 3], ValueError, r"less: \[2\] and \[3\] do not"),
    (lambda: ONE + np.array([True]), TypeError, "add: one side is boolean"),
    (lambda: np.array([True]) - ONE, TypeError, "sub: one side is boolean"),
    (lambda: Tensor([0.0]) / 0, ValueError, "^div: this makes NaN: 0/0 or inf/inf"),
    (lambda: Tensor([-1.0]).log(), ValueError, "^log: this makes NaN: .* logarithm of a negative"),
    (lambda: Tensor([-1.0]).sqrt(), ValueError, "^sqrt: this makes NaN: the square root of a neg"),
    (lambda: Tensor([-1.0]) ** 0.5, ValueError, "^pow: this makes NaN: .* fractional power"),
    (lambda: Tensor([0.0]) * INF, ValueError, "^mul: this makes NaN: 0 · inf"),
    (lambda: Tensor([INF]) - INF, ValueError, "^sub: this makes NaN: inf − inf"),
    (lambda: Tensor([INF, -INF]).sum(), ValueError, "^sum: this makes NaN: inf − inf"),
    (lambda: Tensor([[INF, 1]]) @ Tensor([[0.0], [1]]), ValueError, "^matmul: this makes NaN"),
    (lambda: Tensor([[1], [2, 3]]), ValueError, "^Tensor: can't make an array of numbers"),
    (lambda: Tensor(["a"]), TypeError, r"^Tensor: can't hold <U1 as .*; it holds real numbers as"),
    (lambda: Tensor([1j]), TypeError, "^Tensor: can't hold complex128"),
    (lambda: Tensor(None), TypeError, "^Tensor: can't hold object"),
    (lambda: Tensor([1.0], dtype=np.int32), TypeError, "^Tensor: can't hold float64 as int32"),
    (lambda: Tensor([1.5], dtype=np.int64), TypeError, "^Tensor: .* round first if you mean whole"),
    (lambda: Tensor([1e39]), ValueError, "^Tensor: a value is too large for float32"),
    (lambda: Tensor([2**63]), ValueError, "^Tensor: a value is too large for int64"),
    (lambda: Tensor([70000.0], dtype=np.float16), ValueError, "too large for float16"),
    (lambda: Tensor([1], requires_grad=True), TypeError,
     "requires_grad=True needs floating-point values, not int64"),
    (lambda: setattr(ONE, "data", [1.0, 2]), ValueError, r"^data: \[2\] can't replace \[1\]"),
    (lambda: Tensor([1.0, 2]).item(), ValueError, r"^item: .* got shape \[2\]"),
    (lambda: leaf([1.0]).numpy(), TypeError, "requires a gradient, and NumPy would forget"),
    (lambda: ONE.retain_grad(), RuntimeError, "^retain_grad: this tensor is a constant"),
    (lambda: ONE.sum(3), IndexError, "^sum: there is no axis 3 in a tensor with 1 axes"),
    (lambda: ONE.sum(-2), IndexError, "^sum: there is no axis -2"),
    (lambda: ONE.mean(1), IndexError, "^mean: there is no axis 1 in"),
    (lambda: ONE.var(1), IndexError, "^var: there is no axis 1"),
    (lambda: ONE.max(1), IndexError, "^max: there is no axis 1"),
    (lambda: ONE.softmax(1), IndexError, "^softmax: there is no axis 1"),
    (lambda: ONE.log_softmax(1), IndexError, "^log_softmax: there is no axis 1"),
    (lambda: ONE.logsumexp(1), IndexError, "^logsumexp: there is no axis 1"),
    (lambda: ONE.sum(1.0), TypeError, "^sum: an axis is a whole number, got 1.0"),
    (lambda: ONE.sum(True), TypeError, "^sum: an axis is a whole number, got True"),
    (lambda: TWO.sum((0, -2)), ValueError, r"^sum: an axis is named twice in \[0, 0\]"),
    (lambda: Tensor([]).mean(), ValueError, r"^mean: there are no values in shape \[0\]"),
    (lambda: Tensor(np.ones((2, 0))).max(1), ValueError, r"^max: .* no values in shape \[2, 0\]"),
    (lambda: Tensor([]).var(), ValueError, r"^var: there are no values"),
    (lambda: ONE.var(), ValueError, r"^var: 1 value\(s\) with correction=1 leave nothing"),
    (lambda: Tensor([INF]).softmax(0), ValueError, r"^softmax: found \+inf"),
    (lambda: Tensor([INF]).log_softmax(0), ValueError, r"^log_softmax: found \+inf"),
    (lambda: Tensor([INF]).logsumexp(0), ValueError, r"^logsumexp: found \+inf"),
    (lambda: TWO.reshape(3, 2), ValueError, r"^reshape: \[2, 2\] holds 4 values, \[3, 2\] does"),
    (lambda: TWO.reshape("a"), ValueError, r"^reshape: \[2, 2\] holds 4 values, \['a'\]"),
    (lambda: TWO.permute(0), ValueError, r"^permute: \[0\] must name each of the 2 axes of \[2, 2"),
    (lambda: TWO.permute(0, 2), IndexError, "^permute: there is no axis 2"),
    (lambda: TWO.transpose(0, 2), IndexError, "^transpose: there is no axis 2"),
    (lambda: TWO.transpose(2, 0), IndexError, "^transpose: there is no axis 2"),
    (lambda: ONE.mT, ValueError, r"^mT: needs at least two axes, got shape \[1\]"),
    (lambda: TWO[None].T, ValueError, r"^T: needs a matrix, got \[1, 2, 2\]; did you mean mT\?"),
    (lambda: TWO[5], IndexError, r"^index into \[2, 2\]: .*5"),
    (lambda: operator.setitem(ONE, 0, 1), TypeError, "can't be set in place"),
    (lambda: ONE.masked_fill([[True], [False]], 0), ValueError,
     r"^masked_fill: the mask and the value make \[2, 1\] out of \[1\]"),
    (lambda: ONE.masked_fill([1], 0), TypeError, "^where: the condition must be .* got int64"),
    (lambda: where([True], [1.0, 2], [1.0, 2, 3]), ValueError, r"^where: \[2\] and \[3\] do not"),
    (lambda: where([True] * 3, [1.0, 2], 0.0), ValueError, r"^where: \[3\] and \[2\] do not"),
    (lambda: len(Tensor(1.0)), TypeError, "^len: a tensor with no axes"),
    (lambda: bool(TWO), ValueError, r"^bool: shape \[2, 2\] is not one truth value"),
    (lambda: bool(Tensor([])), ValueError, r"^bool: shape \[0\] is not one truth value"),
    (lambda: Tensor([2]) ** -1, ValueError, "^pow: a whole number to a negative power"),
    (lambda: cat([]), ValueError, "^cat: needs at least one tensor"),
    (lambda: cat([TWO, ONE]), ValueError, r"^cat: along axis 0, \[2, 2\], \[1\] differ"),
    (lambda: cat([TWO, TWO], 2), IndexError, "^cat: there is no axis 2"),
    (lambda: stack([]), ValueError, "^stack: needs at least one tensor"),
    (lambda: stack([TWO, ONE]), ValueError, r"^stack: all shapes .* got \[2, 2\], \[1\]; did you"),
    (lambda: stack([TWO], 3), IndexError, "^stack: there is no axis 3 in a tensor with 3 axes"),
    (lambda: unbroadcast(np.ones((2, 3)), (2, 2)), ValueError, r"^unbroadcast: \[2, 2\] does not"),
    (lambda: ONE.backward(), RuntimeError, "^backward: this tensor is a constant"),
    (lambda: leaf([1.0, 2]).backward(), RuntimeError, r"^backward: the result has shape \[2\]"),
    (lambda: leaf([1.0, 2]).backward([1.0]), ValueError,
     r"^backward: the gradient has shape \[1\], the result \[2\]"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("act", "kind", "words"), ERRORS, ids=[re.sub(r"\W+", " ", words)[:40] for *_, words in ERRORS]
)
def test_errors_name_the_trouble(act, kind, words):
    with pytest.raises(kind, match=words):
        act()


# -- how it is shown -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (Tensor([1.0, 2.0]), "Tensor([1., 2.], shape=[2])"),
        (Tensor(1.5), "Tensor(1.5)"),
        (Tensor([1, 2]), "Tensor([1, 2], shape=[2])"),
        (Tensor([True]), "Tensor([ True], shape=[1])"),
        (Tensor([1 / 3, -1e-5]), "Tensor([0.3333, 0.    ], shape=[2])"),
        (Tensor([1e-5]), "Tensor([1.e-05], shape=[1])"),
        (Tensor([1e-4]), "Tensor([0.0001], shape=[1])"),
        (Tensor([1e6]), "Tensor([1.e+06], shape=[1])"),
        (Tensor([999999.0, INF]), "Tensor([999999.,     inf], shape=[2])"),
        (Tensor([0.0, math.nan]), "Tensor([ 0., nan], shape=[2])"),
        (Tensor(np.ones(1)), "Tensor([1.], shape=[1], dtype=float64)"),
        (Tensor(np.ones(1, np.float16)), "Tensor([1.], shape=[1], dtype=float16)"),
        (leaf([1.0], np.float32), "Tensor([1.], shape=[1], requires_grad=True)"),
        (Tensor([]), "Tensor([], shape=[0])"),
        (
            Tensor([[1.0, 2], [3, 4]]),
            "Tensor([[1., 2.],\n        [3., 4.]], shape=[2, 2])",
        ),
    ],
)
def test_repr_is_short(tensor, text):
    assert repr(tensor) == text


def test_repr_leaves_out_the_middle_of_what_is_long():
    text = repr(Tensor(np.arange(31.0, dtype=np.float32)))
    assert text == "Tensor([ 0.,  1., ..., 29., 30.], shape=[31])"
    assert "..." not in repr(Tensor(np.arange(30.0)))
    lines = repr(Tensor(np.linspace(0, 1, 30))).splitlines()
    assert [len(line) for line in lines[:-1]] == [87, 87]


def test_repr_does_not_depend_on_numpys_print_options():
    tensor = Tensor([1 / 3, math.nan, -INF])
    before = repr(tensor)
    odd = {"precision": 1, "sign": "+", "nanstr": "NULL", "infstr": "oo", "suppress": True}
    with np.printoptions(**odd, formatter={"all": lambda _: "x"}, floatmode="fixed", legacy="1.13"):
        assert repr(tensor) == before
