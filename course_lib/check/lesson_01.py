"""Lesson 01: the backward of broadcasting, of `*` and of `@`."""

from collections.abc import Callable

import numpy as np

from course_lib import tensor
from course_lib._arrays import Array
from course_lib.check.judge import (
    NOT_ATTEMPTED,
    RIGHT,
    WRONG,
    Case,
    Exercise,
    Mistake,
    Result,
    judge,
)


def unbroadcast(function: object) -> Result:
    """Check `unbroadcast(g, shape)`: a gradient brought back to the shape before broadcasting.

    Parameters
    ----------
    function : callable
        ``unbroadcast(g, shape)`` with an array g and a tuple `shape` that broadcasts to g's shape
        returns an array of `shape`: g summed over every axis along which values were repeated.

    Returns
    -------
    Result
    """
    return judge(UNBROADCAST, function)


def mul_backward(function: object) -> Result:
    """Check `mul_backward(g, a, b)`: the gradients of a and b in a * b.

    Parameters
    ----------
    function : callable
        ``mul_backward(g, a, b)`` returns (grad_a, grad_b), each in the shape of its operand; g has
        the shape of a * b. In the last cases a or b was broadcast.

    Returns
    -------
    Result
    """
    return judge(MUL_BACKWARD, function)


def matmul_backward(function: object) -> Result:
    """Check `matmul_backward(g, a, b)`: the gradients of a and b in a @ b.

    Parameters
    ----------
    function : callable
        ``matmul_backward(g, a, b)`` with a [M, K], b [K, N] and g [M, N] returns
        (grad_a [M, K], grad_b [K, N]); the last case is a batch: [B, M, K], [B, K, N], [B, M, N].

    Returns
    -------
    Result
    """
    return judge(MATMUL_BACKWARD, function)


def find_wrong_backward(answer: object) -> Result:
    """Check which of the lesson's three backward functions is wrong.

    The lesson defines ``exp_backward(g, x)`` as g · exp(x), ``tanh_backward(g, x)`` as
    g · (1 − tanh(x)), and ``sqrt_backward(g, x)`` as g / (2 √x). The second forgets a square.

    Parameters
    ----------
    answer : str or callable
        The function or its name, with or without "_backward".

    Returns
    -------
    Result
    """
    if answer is Ellipsis:
        return Result("find_wrong_backward", NOT_ATTEMPTED)
    name = answer if isinstance(answer, str) else getattr(answer, "__name__", "")
    name = str(name).strip().lower().removesuffix("_backward")
    if name == "tanh":
        return Result("find_wrong_backward", RIGHT)
    if name in ("exp", "sqrt"):
        says = "This one agrees with finite differences: compare the others with theirs."
        return Result("find_wrong_backward", WRONG, says, "not this one")
    says = 'Give one of the names "exp_backward", "tanh_backward" and "sqrt_backward".'
    return Result("find_wrong_backward", WRONG, says)


def _unbroadcast_cases() -> tuple[Case, ...]:
    rng = np.random.default_rng(1)
    shapes = (
        ((4, 3), (3,)),
        ((4, 3), (4, 1)),
        ((4, 3), (1, 3)),
        ((2, 4, 3), (4, 1)),
        ((2, 4, 3), (2, 1, 3)),
        ((4, 3), (4, 3)),
        ((4, 3), ()),
    )
    cases = []
    for big, shape in shapes:
        g = rng.normal(size=big)
        cases.append(Case({"g": g, "shape": shape}, (tensor.unbroadcast(g, shape),)))
    return tuple(cases)


def _reduced(reduce: Callable[..., Array]) -> Callable[[Array, tuple[int, ...]], Array]:
    """What comes out when the repeated entries are reduced otherwise than by their sum."""

    def answer(g: Array, shape: tuple[int, ...]) -> Array:
        padded = (1,) * (g.ndim - len(shape)) + tuple(shape)
        repeated = tuple(i for i, n in enumerate(padded) if n == 1 and g.shape[i] > 1)
        return reduce(g, axis=repeated, keepdims=True).reshape(shape)

    return answer


def _leading_axes_only(g: Array, shape: tuple[int, ...]) -> Array:
    total: Array = g.sum(axis=tuple(range(g.ndim - len(shape))))
    return total


def _first_slice(g: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    return g[tuple(slice(0, 1) if i in axis else slice(None) for i in range(g.ndim))]


UNBROADCAST = Exercise(
    "unbroadcast",
    {"gradient": "the given shape"},
    _unbroadcast_cases(),
    (
        Mistake(
            "mean",
            "The repeated gradients are averaged: if one value is used four times, how much more "
            "does the result change?",
            (_reduced(np.mean),),
        ),
        Mistake(
            "one slice",
            "One of the repeated gradients is kept and the others are dropped: each use of a value "
            "sends one back.",
            (_reduced(_first_slice),),
        ),
        Mistake(
            "leading axes only",
            "An axis of length 1 was repeated too, and its gradients are not added up yet.",
            (_leading_axes_only,),
        ),
        Mistake(
            "axis lost",
            "An axis of length 1 got lost: it was summed over, and it must stay.",
            (lambda g, shape: _reduced(np.sum)(g, shape).squeeze(),),
        ),
        Mistake(
            "not summed", "Nothing is added up: compare the two shapes.", (lambda g, shape: g,)
        ),
    ),
)


def _mul_cases() -> tuple[Case, ...]:
    rng = np.random.default_rng(10)
    cases = []
    for shape_a, shape_b in (((2, 3), (2, 3)), ((2, 3), (3,)), ((4, 1, 3), (2, 1))):
        a, b = rng.normal(size=shape_a), rng.normal(size=shape_b)
        g = rng.normal(size=np.broadcast_shapes(shape_a, shape_b))
        expected = tensor.unbroadcast(g * b, shape_a), tensor.unbroadcast(g * a, shape_b)
        cases.append(Case({"g": g, "a": a, "b": b}, expected))
    return tuple(cases)


MUL_BACKWARD = Exercise(
    "mul_backward",
    {"grad_a": "the shape of a", "grad_b": "the shape of b"},
    _mul_cases(),
    (
        Mistake(
            "swapped",
            "Each gradient is multiplied by its own operand: if a grows a little, what decides how "
            "much a * b grows?",
            (lambda g, a, b: (g * a, g * b),),
        ),
        Mistake(
            "no upstream",
            "g plays no part: the chain rule starts from the gradient that arrives.",
            (lambda g, a, b: (b, a),),
        ),
        Mistake(
            "not unbroadcast",
            "A gradient has the shape of the product: what shape has the operand itself?",
            (lambda g, a, b: (g * b, g * a),),
        ),
    ),
)


def _matmul_cases() -> tuple[Case, ...]:
    rng = np.random.default_rng(11)
    cases = []
    # square first: there even a wrong order has fitting shapes
    for shape_a, shape_b in (((3, 3), (3, 3)), ((4, 2), (2, 5)), ((2, 4, 3), (2, 3, 5))):
        a, b = rng.normal(size=shape_a), rng.normal(size=shape_b)
        g = rng.normal(size=(a @ b).shape)
        cases.append(Case({"g": g, "a": a, "b": b}, (g @ b.mT, a.mT @ g)))
    return tuple(cases)


MATMUL_BACKWARD = Exercise(
    "matmul_backward",
    {"grad_a": "[..., M, K]", "grad_b": "[..., K, N]"},
    _matmul_cases(),
    (
        Mistake(
            "not transposed",
            "The shapes fit here because all are square: would they with a [4, 2] and b [2, 5]?",
            (lambda g, a, b: (g @ b, a @ g),),
        ),
        Mistake(
            "wrong order",
            "The factors stand in the wrong order: which axis of g is that of the rows of a?",
            (
                lambda g, a, b: (b.mT @ g, g @ a.mT),
                lambda g, a, b: (g @ b.mT, g @ a.mT),
                lambda g, a, b: (b.mT @ g, a.mT @ g),
            ),
        ),
        Mistake(
            "swapped",
            "The two gradients have changed places: the first belongs to a.",
            (lambda g, a, b: (a.mT @ g, g @ b.mT),),
        ),
        Mistake(
            "own operand",
            "Each gradient is made of its own operand: how does a change of a reach the product?",
            (
                lambda g, a, b: (g @ a.mT, b.mT @ g),
                lambda g, a, b: (g @ a, b @ g),
            ),
        ),
        Mistake(
            "elementwise",
            "That is the backward of the elementwise product.",
            (lambda g, a, b: (g * b, g * a),),
        ),
    ),
)
