"""The tensor: values against NumPy, gradients against finite differences, errors in words."""

import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from course_lib.tensor import (
    Tensor,
    cat,
    check_gradients,
    cross_entropy,
    embedding,
    layer_norm,
    no_grad,
    stack,
    where,
)

X = np.random.default_rng(0).normal(size=(2, 3, 4))
Y = np.random.default_rng(1).normal(size=(3, 1)) + 3
UNARY = {
    "exp": lambda x: x.exp(),
    "log": lambda x: (x * x + 1).log(),
    "sqrt": lambda x: (x * x + 1).sqrt(),
    "tanh": lambda x: x.tanh(),
    "relu": lambda x: x.relu(),
    "gelu": lambda x: x.gelu(),
    "negative": lambda x: -x,
    "power": lambda x: x**3,
    "sum": lambda x: x.sum(),
    "sum over two": lambda x: x.sum((0, 2), keepdim=True),
    "mean": lambda x: x.mean(1),
    "max": lambda x: x.max(-1),
    "var": lambda x: x.var(0),
    "softmax": lambda x: x.softmax(dim=1),
    "log_softmax": lambda x: x.log_softmax(dim=-1),
    "logsumexp": lambda x: x.logsumexp(dim=1),
    "reshape": lambda x: x.reshape(4, 6),
    "permute": lambda x: x.permute(2, 0, 1),
    "transpose": lambda x: x.transpose(0, -1),
    "mT": lambda x: x.mT,
    "index": lambda x: x[:, [0, 0, 2], 1:],
    "masked_fill": lambda x: x.masked_fill(X > 0, 5.0),
    "cross_entropy": lambda x: cross_entropy(x, [[0, 1, 3], [2, -100, 0]]),
    "used twice": lambda x: x * x + x,
}
BINARY = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "pow": lambda x, y: (x * x + 1) ** y,
    "where": lambda x, y: where(X > 0, x, y),
}


@pytest.mark.parametrize("name", UNARY)
def test_gradients_of_one_input_are_finite_differences(name):
    assert check_gradients(UNARY[name], X)


@pytest.mark.parametrize("name", BINARY)
def test_gradients_of_two_broadcast_inputs_are_finite_differences(name):
    assert check_gradients(BINARY[name], X, Y)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (2, 3, 4)),
        ((5, 2, 3), (3, 4)),
        ((5, 1, 2, 3), (6, 3, 4)),
    ],
)
def test_matmul_of_all_ranks(a, b):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=a), rng.normal(size=b)
    assert np.allclose((Tensor(x) @ Tensor(y)).data, x @ y)
    assert check_gradients(lambda x, y: x @ y, x, y)


def test_gradients_of_functions_of_several_tensors():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    w, b = rng.normal(size=3), rng.normal(size=3)
    assert check_gradients(lambda x, y: cat([x, y, x], dim=1), x, y)
    assert check_gradients(lambda x, y: stack([x, y], dim=-1), x, y)
    assert check_gradients(layer_norm, x, w, b)
    assert check_gradients(lambda table: embedding([[1, 1], [0, 1]], table), x)


def test_the_check_finds_a_gradient_that_is_wrong(capsys):
    def wrong(x):
        return x * 2 + x.detach()  # half a slope is hidden from the tape

    assert not check_gradients(wrong, X)
    assert "input 0 at [0, 0, 0]" in capsys.readouterr().out
    with pytest.raises(TypeError, match="float64"):
        check_gradients(wrong, X.astype(np.float32))


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


@pytest.mark.parametrize(
    ("data", "dtype"),
    [(1.5, np.float32), ([1, 2], np.int64), ([True], bool), (np.ones(2), np.float64),
     (np.ones(2, np.float16), np.float16), (np.int8(3), np.int64)],
)  # fmt: skip
def test_dtypes(data, dtype):
    assert Tensor(data).dtype == dtype


def test_a_bare_number_takes_the_dtype_of_the_tensor():
    x = Tensor([1.0, 2.0])
    for out in (x * np.sqrt(2.0), 2 / x, x**2, np.float64(3) - x):
        assert out.dtype == np.float32


@pytest.mark.parametrize(
    ("act", "kind", "words"),
    [
        (lambda: Tensor([[1.0, 2]]) @ Tensor([[1.0, 2]]), ValueError, "did you mean"),
        (lambda: Tensor([1.0, 2]) + Tensor([1.0, 2, 3]), ValueError, "do not broadcast"),
        (lambda: Tensor([1.0]) + np.array([True]), TypeError, "boolean"),
        (lambda: Tensor([0.0]) / 0, ValueError, "NaN"),
        (lambda: Tensor([-1.0]).log(), ValueError, "log"),
        (lambda: Tensor([[1], [2, 3]]), ValueError, "array"),
        (lambda: Tensor(["a"]), TypeError, "numbers"),
        (lambda: Tensor([1], requires_grad=True), TypeError, "floating"),
        (lambda: Tensor([1.0]).sum(3), IndexError, "axis 3"),
        (lambda: embedding([7], Tensor(np.ones((3, 2)))), IndexError, "7"),
        (lambda: cross_entropy(Tensor(np.zeros((2, 3))), [-100, -100]), ValueError, "ignored"),
        (lambda: Tensor([1.0]).backward(), RuntimeError, "constant"),
        (lambda: Tensor([1.0, 2], requires_grad=True).backward(), RuntimeError, "gradient"),
    ],
)  # fmt: skip
def test_errors_name_the_trouble(act, kind, words):
    with pytest.raises(kind, match=words):
        act()


def test_backward_twice_is_an_error_and_gradients_accumulate():
    x = Tensor(2.0, requires_grad=True)
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match=r"freed|walked"):
        y.backward()
    assert x.grad == 4
    (x * x).backward()
    assert x.grad == 8


def test_no_grad_records_nothing_and_ends_after_an_error():
    x = Tensor(2.0, requires_grad=True)
    with pytest.raises(KeyError), no_grad():
        assert not (x * x).requires_grad
        raise KeyError
    assert (x * x).requires_grad


def test_a_chain_of_100_000_operations():
    x = Tensor(1.0, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.backward()
    assert (y.item(), x.grad) == (100_001, 1)


def test_values_can_not_be_changed_under_a_backward():
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    with pytest.raises(ValueError, match="read-only"):
        x.data[0] = 5
    y.sum().backward()
    assert x.grad.tolist() == [2, 4]


def test_repr_is_short():
    assert repr(Tensor([1.0, 2.0])) == "Tensor([1., 2.], shape=[2])"
