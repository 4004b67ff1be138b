"""Functions that are no answer to any exercise, and stubs that nobody has filled in yet."""

import fractions
import functools
import itertools
import sys

import numpy as np

from course_lib.tensor import Tensor


class Hostile(Exception):
    def __str__(self):
        raise RuntimeError("no message for you")

    __repr__ = __str__


class Unreadable:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("not an array")


def raising(error):
    def answer(*_):
        raise error

    return answer


def returning(value):
    return lambda *_: [value, 1][0]  # more than one constant, or it would pass for a stub


def holds_itself(*_):
    loop = []
    loop.append(loop)
    return loop


def calls_itself(*inputs):
    return calls_itself(*inputs)


def leaves_the_program(*_):
    sys.exit("goodbye")


async def coroutine(*_):
    return 1.0


def generator(*_):
    yield from itertools.count()


class Callable:
    def __call__(self, *_):
        return self


FUNCTIONS = [
    *map(
        returning,
        [
            None,
            "text",
            b"bytes",
            {"a": 1.0},
            {1.0, 2.0},
            object(),
            object,
            len,
            np,
            Unreadable(),
            1 + 2j,
            True,
            float("nan"),
            10**400,
            fractions.Fraction(1, 3),
            [],
            [[1.0, 2.0], [3.0]],
            [np.eye(2), np.eye(3)],
            [None, 1.0],
            np.array([1.0, None], dtype=object),
            np.array(["a", "b"]),
            np.datetime64("2024-01-01"),
            np.zeros((2, 7, 7), dtype=complex),
            np.zeros(0),
            np.ma.masked,
            np.ma.masked_array([1.0, 2.0], mask=[True, False]),
            np.broadcast_to(0.0, (10**5, 10**5, 10**5)),
            np.full((2, 7, 7), np.nan),
            np.zeros(3, dtype=[("a", float), ("b", int)]),
            Tensor([[1.0, 2.0]], requires_grad=True),
            Tensor([True, False]),
        ],
    ),
    *map(
        raising,
        [
            ValueError("at <object at 0x7f00>"),
            ZeroDivisionError(),
            KeyboardInterrupt(),
            SystemExit(1),
            GeneratorExit(),
            StopIteration(),
            MemoryError(),
            Hostile(),
            KeyError("<script>"),
        ],
    ),
    holds_itself,
    calls_itself,
    leaves_the_program,
    coroutine,
    generator,
    Callable(),
    Callable,
    functools.partial(returning("text")),
    lambda: None,
    max,
    np.linalg.inv,
]


def only_dots(*_): ...


def only_a_docstring(*_):
    """Return something."""


def only_pass(*_):
    pass


def returns_dots(*_):
    return ...


def half_filled(*_):
    weights = ...
    return weights * 2


def half_filled_list(*_):
    return [[1.0, ...], [0.0, 1.0]]


def dots_in_numpy(*_):
    scores = ...
    return np.exp(scores)


STUBS = [
    ...,
    only_dots,
    only_a_docstring,
    only_pass,
    returns_dots,
    half_filled,
    half_filled_list,
    dots_in_numpy,
    lambda *_: None,
    raising(NotImplementedError()),
]
