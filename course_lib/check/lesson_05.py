"""Lesson 05: softmax and its backward."""

import numpy as np

from course_lib.check.judge import Case, Exercise, Mistake, judge
from course_lib.tensor import Tensor


def softmax(function):
    """Check `softmax(x)`: each row of scores becomes weights that sum to 1.

    Parameters
    ----------
    function : callable
        ``softmax(x)`` with x [B, T, K] returns [B, T, K], normalized over the last axis; it must
        survive rows near 1000, rows near −1000, and rows of very different size in one matrix.

    Returns
    -------
    Result
    """
    return judge(SOFTMAX, function)


def softmax_backward(function):
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


def _cases():
    rng = np.random.default_rng(5)
    x = np.round(rng.normal(size=(2, 4, 5)) * 8) / 8  # so that 1000 + x is exact in float32 too
    levels = np.array([500.0, 0.0, -500.0, 0.0])[:, None]  # one for each row
    return tuple(
        Case({"x": scores}, (Tensor(scores).softmax(dim=-1).data,))
        for scores in (x, x.astype(np.float32), x + 1000, x - 1000, x + levels)
    )


def _normalized(x, axis):
    return x / x.sum(axis=axis, keepdims=True)


def _softmax_over(axis):
    return lambda x: Tensor(x).softmax(dim=axis).data


def _shifted_by(axis):
    return lambda x: _normalized(np.exp(x - x.max(axis=axis, keepdims=True)), -1)


SOFTMAX = Exercise(
    "softmax",
    {"weights": "[B, T, K]"},
    _cases(),
    (
        Mistake(
            "M10",
            "It gives NaN for scores near 1000 or −1000: how large a number can exp return, and "
            "how small a sum can one divide by?",
            (lambda x: _normalized(np.exp(x), -1),),
        ),
        Mistake(
            "M11",
            "The sums over another axis are 1: which numbers of a matrix are one query's weights?",
            (_softmax_over(-2), _softmax_over(0)),
        ),
        Mistake(
            "M12",
            "All weights of a matrix together sum to 1: how many queries share them?",
            (_softmax_over((-2, -1)), _softmax_over(None)),
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
            (lambda x: _normalized(np.abs(x), -1), lambda x: _normalized(x, -1)),
        ),
        Mistake(
            "max of a column",
            "The numbers of one row have different maxima taken off: what may be subtracted from "
            "them without changing their weights?",
            (_shifted_by(-2), _shifted_by(0)),
        ),
    ),
)


def _backward_cases():
    rng = np.random.default_rng(50)
    s = Tensor(rng.normal(size=(2, 4, 5))).softmax(dim=-1).data
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
    ),
)
