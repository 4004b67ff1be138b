"""Lesson 05: softmax and its backward."""

from collections.abc import Callable

import numpy as np

from course_lib._arrays import Array, Dims
from course_lib.check import formulas
from course_lib.check.formulas import Axis, exp_shifted, normalized
from course_lib.check.judge import Case, Exercise, Mistake, Result, judge


def softmax(function: object) -> Result:
    """Check `softmax(x)`: each row of scores becomes weights that sum to 1.

    Parameters
    ----------
    function : callable
        ``softmax(x)`` with x [B, T, K] returns [B, T, K], normalized over the last axis; it must
        survive rows near 1000, rows near −1000, both in one matrix, and both in one row.

    Returns
    -------
    Result
    """
    return judge(SOFTMAX, function)


def softmax_backward(function: object) -> Result:
    """Check `softmax_backward(s, g)`: from the gradient of the weights to that of the scores.

    Parameters
    ----------
    function : callable
        ``softmax_backward(s, g)`` with s [B, T, K], the softmax's output, and g [B, T, K], the
        gradient that arrives there, returns [B, T, K]: s_i · (g_i − Σ_j g_j s_j).

    Returns
    -------
    Result
    """
    return judge(SOFTMAX_BACKWARD, function)


def _cases() -> tuple[Case, ...]:
    rng = np.random.default_rng(5)
    x = np.round(rng.normal(size=(2, 4, 5)) * 8) / 8  # so that 1000 + x is exact in float32 too
    levels = np.array([500.0, 0.0, -500.0, 0.0])[:, None]  # one for each row
    return tuple(
        Case({"x": scores}, (formulas.softmax(scores),))
        for scores in (x, x.astype(np.float32), x + 1000, x - 1000, x + levels, x * 1000)
    )


def _softmax_over(dim: Dims) -> Callable[[Array], Array]:
    return lambda x: formulas.softmax(x, dim)


def _shifted_by(axis: Axis) -> Callable[[Array], Array]:
    return lambda x: normalized(exp_shifted(x, axis))


SOFTMAX = Exercise(
    "softmax",
    {"weights": "[B, T, K]"},
    _cases(),
    (
        Mistake(
            "another constant",
            "It gives NaN for a row that holds both large and small scores: after which "
            "subtraction is no score above 0?",
            (
                lambda x: normalized(np.exp(x - x.min(axis=-1, keepdims=True))),
                lambda x: normalized(np.exp(x - x.mean(axis=-1, keepdims=True))),
            ),
        ),
        Mistake(
            "M10",
            "It gives NaN for scores near 1000 or −1000: how large a number can exp return, and "
            "how small a sum can one divide by?",
            (lambda x: normalized(np.exp(x)),),
        ),
        Mistake(
            "M11",
            "The sums over another axis are 1: which numbers of a matrix are one query's weights?",
            (
                _softmax_over(-2),
                _softmax_over(0),
                lambda x: normalized(exp_shifted(x), -2),
                lambda x: normalized(exp_shifted(x), 0),
            ),
        ),
        Mistake(
            "M12",
            "All weights of a matrix together sum to 1: how many queries share them?",
            (
                _softmax_over((-2, -1)),
                _softmax_over(None),
                lambda x: normalized(exp_shifted(x), (-2, -1)),
                lambda x: normalized(exp_shifted(x), None),
            ),
        ),
        Mistake(
            "M13",
            "One maximum serves many rows, and a row far below it becomes 0/0: whose largest score "
            "should a row be compared with?",
            (_shifted_by((-2, -1)), _shifted_by(None)),
        ),
        Mistake(
            "M14",
            "These are shares of the scores themselves: what makes a negative score a positive "
            "weight, and keeps the order?",
            (lambda x: normalized(np.abs(x)), lambda x: normalized(x)),
        ),
        Mistake(
            "max of a column",
            "The numbers of one row have different maxima taken off: what may be subtracted from "
            "them without changing their weights?",
            (_shifted_by(-2), _shifted_by(0)),
        ),
        Mistake(
            "not normalized",
            "The weights of a row do not sum to 1: what is left to divide by?",
            (exp_shifted, np.exp),
        ),
    ),
)


def _minus_the_mean(mean: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """s · (g − mean), with a mean of g made in a wrong way."""
    return lambda s, g: s * (g - mean(s, g))


def _sum_over(axis: Axis) -> Callable[[Array, Array], Array]:
    return lambda s, g: (g * s).sum(axis=axis, keepdims=True)


def _backward_cases() -> tuple[Case, ...]:
    rng = np.random.default_rng(50)
    s = formulas.softmax(rng.normal(size=(2, 4, 5)))
    g = rng.normal(size=(2, 4, 5))
    expected = s * (g - (g * s).sum(axis=-1, keepdims=True))
    return tuple(
        Case({"s": s.astype(dtype), "g": g.astype(dtype)}, (expected,))
        for dtype in (np.float64, np.float32)
    )


SOFTMAX_BACKWARD = Exercise(
    "softmax_backward",
    {"gradient": "[B, T, K]"},
    _backward_cases(),
    (
        Mistake(
            "M15",
            "The sum is left out: when one weight of a row grows, what must the others do?",
            (lambda s, g: s * g,),
        ),
        Mistake(
            "M16",
            "Each score moves only its own weight here: which other weights does it move?",
            (lambda s, g: s * (1 - s) * g,),
        ),
        Mistake(
            "one sum",
            "The sum runs over more than one row, or along a column: whose weights share a sum?",
            tuple(_minus_the_mean(_sum_over(axis)) for axis in (None, (-2, -1), -2, 0)),
        ),
        Mistake(
            "plain mean",
            "From g is taken a plain sum or mean: how much does each g_j count in the mean?",
            (
                _minus_the_mean(lambda s, g: g.sum(axis=-1, keepdims=True)),
                _minus_the_mean(lambda s, g: g.mean(axis=-1, keepdims=True)),
            ),
        ),
        Mistake(
            "no weight",
            "A factor is missing: how does a score with a weight of 0 move the others?",
            (
                lambda s, g: g - (g * s).sum(axis=-1, keepdims=True),
                lambda s, g: s * g - (g * s).sum(axis=-1, keepdims=True),
            ),
        ),
        Mistake(
            "sign",
            "The sign is turned: which way does a weight move when its own score rises?",
            (lambda s, g: s * ((g * s).sum(axis=-1, keepdims=True) - g),),
        ),
    ),
)
