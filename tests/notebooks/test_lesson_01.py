"""Lesson 01: its tape and the backwards of its exercises are the library's tensor."""

import executed
import numpy as np
import pytest

from course_lib import tensor
from course_lib.tensor import Tensor

SEEDS = range(6)


@pytest.fixture(scope="module")
def lesson():
    return executed.names_of("01")


@pytest.fixture(params=SEEDS)
def rng(request):
    return np.random.default_rng(request.param)


def leaves_of(*arrays):
    return [Tensor(array, requires_grad=True) for array in arrays]


def grow(leaves, rng):
    """Build a random expression out of [3, 3] leaves; a step may use any earlier value again."""
    values = list(leaves)
    for _ in range(12):
        x, y = (values[i] for i in rng.integers(len(values), size=2))
        values.append([x + y, x * y, x @ y][rng.integers(3)])
    last = values[-1]
    for leaf in leaves:  # so that every leaf has a gradient
        last = last + leaf * leaf
    return last


def test_the_tape_gives_the_librarys_values_and_gradients(lesson, rng):
    arrays = rng.normal(size=(3, 3, 3)) / 2
    state = rng.bit_generator.state
    ours = [lesson["Value"](array) for array in arrays]
    loss = lesson["total"](grow(ours, rng))
    lesson["backward"](loss)
    rng.bit_generator.state = state  # the same expression again
    theirs = leaves_of(*arrays)
    right = grow(theirs, rng).sum()
    right.backward()
    assert loss.data == pytest.approx(right.item(), rel=1e-12)
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x.grad, y.grad, rtol=1e-9, atol=1e-12)


def test_the_tape_lists_each_value_once_and_after_its_parents(lesson, rng):
    last = grow([lesson["Value"](array) for array in rng.normal(size=(3, 3, 3))], rng)
    order = lesson["tape"](last)
    assert order[-1] is last
    place = {id(value): n for n, value in enumerate(order)}
    assert len(place) == len(order)
    assert all(place[id(p)] < place[id(value)] for value in order for p in value.parents)


@pytest.mark.parametrize(
    ("shape", "result"),
    [((3, 1), (3, 4)), ((4,), (3, 4)), ((), (2, 3)), ((1, 1), (2, 5, 3)), ((2, 3), (2, 3))],
)
def test_unbroadcast_is_the_librarys(shape, result, rng):
    unbroadcast = executed.lesson("01").solved["unbroadcast"]["unbroadcast"]
    assert unbroadcast is not tensor.unbroadcast
    g = rng.normal(size=result)
    np.testing.assert_allclose(unbroadcast(g, shape), tensor.unbroadcast(g, shape), rtol=1e-12)


@pytest.mark.parametrize(("a", "b"), [((3, 1), (1, 4)), ((4,), (2, 3, 4)), ((2, 2), ())])
def test_mul_backward_is_the_librarys(lesson, a, b, rng):
    x, y = leaves_of(rng.normal(size=a), rng.normal(size=b))
    out = x * y
    g = rng.normal(size=out.shape)
    out.backward(g)
    for found, leaf in zip(lesson["mul_backward"](g, x.data, y.data), (x, y), strict=True):
        np.testing.assert_allclose(found, leaf.grad, rtol=1e-12)


@pytest.mark.parametrize(("a", "b"), [((2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4))])
def test_matmul_backward_is_the_librarys(lesson, a, b, rng):
    x, y = leaves_of(rng.normal(size=a), rng.normal(size=b))
    out = x @ y
    g = rng.normal(size=out.shape)
    out.backward(g)
    for found, leaf in zip(lesson["matmul_backward"](g, x.data, y.data), (x, y), strict=True):
        np.testing.assert_allclose(found, leaf.grad, rtol=1e-12, atol=1e-14)


def test_finite_differences_are_the_tapes_gradient(lesson, rng):
    (x,) = leaves_of(rng.normal(size=(2, 3)))
    (x * x * x).sum().backward()
    found = lesson["numeric_gradient"](lambda x: (x**3).sum(), x.data)
    np.testing.assert_allclose(found, x.grad, atol=1e-7)


@pytest.mark.parametrize("name", ["exp", "tanh", "sqrt"])
def test_the_wrong_backward_is_the_one_that_differs_from_the_librarys(lesson, name, rng):
    (x,) = leaves_of(rng.uniform(0.2, 2, size=5))
    g = rng.normal(size=5)
    getattr(x, name)().backward(g)
    backward = lesson[f"{name}_backward"]
    assert np.allclose(backward(g, x.data), x.grad) == (backward is not lesson["wrong_one"])
