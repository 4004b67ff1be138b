"""Lesson 09: what a language model is trained on, and a training loop."""

import numpy as np
from numpy.typing import DTypeLike

from course_lib._arrays import Array
from course_lib.check.call import Inputs
from course_lib.check.formulas import normal
from course_lib.check.judge import Case, Exercise, Mistake, Result, judge


def shift_targets(function: object) -> Result:
    """Check `shift_targets(ids)`: what the model reads, and what it is to predict.

    Parameters
    ----------
    function : callable
        ``shift_targets(ids)`` with ids [B, T + 1], integers, returns (inputs [B, T],
        targets [B, T]): the target of each token is the one after it.

    Returns
    -------
    Result
    """
    return judge(SHIFT_TARGETS, function)


def fit(function: object) -> Result:
    """Check `fit(w, x, y, lr, steps)`: gradient descent on the error of x @ w.

    Parameters
    ----------
    function : callable
        ``fit(w, x, y, lr, steps)`` with w [D], x [N, D] and y [N] starts from w and returns the
        losses [steps]: the mean of (x @ w − y)², taken before each of the steps
        w ← w − lr · gradient. `w` itself stays as it was.

    Returns
    -------
    Result
    """
    return judge(FIT, function)


def _ids_cases() -> tuple[Case, ...]:
    rng = np.random.default_rng(9)
    cases = []
    for shape in ((2, 6), (3, 5)):
        ids = rng.permutation(shape[0] * shape[1]).reshape(shape)  # no two tokens are the same
        cases.append(Case({"ids": ids}, (ids[:, :-1], ids[:, 1:])))
    return tuple(cases)


SHIFT_TARGETS = Exercise(
    "shift_targets",
    {"inputs": "[B, T]", "targets": "[B, T]"},
    _ids_cases(),
    (
        Mistake(
            "M29",
            "The targets are the inputs themselves: what does a model learn that is asked for the "
            "token it has just read?",
            (
                lambda ids: (ids[:, :-1], ids[:, :-1]),
                lambda ids: (ids, ids),
                lambda ids: (ids[:, 1:], ids[:, 1:]),
            ),
        ),
        Mistake(
            "backward",
            "The targets come before the inputs: which way does the text go on?",
            (lambda ids: (ids[:, 1:], ids[:, :-1]),),
        ),
        Mistake(
            "rolled",
            "The last target is the first token of the same row: does the text go on there?",
            (
                lambda ids: (ids, np.roll(ids, -1, axis=1)),
                lambda ids: (ids, np.roll(ids, -1)),
            ),
        ),
        Mistake(
            "batch axis",
            "The shift goes from one text to another: along which axis does a text run?",
            (lambda ids: (ids[:-1], ids[1:]),),
        ),
    ),
)


def _losses(
    w: Array,
    x: Array,
    y: Array,
    lr: float,
    steps: int,
    keeps: float = 0.0,
    direction: float = -1.0,
    after: bool = False,
) -> Array:
    """The losses of gradient descent; `keeps` is the share of the old gradient that stays."""
    losses, gradient = [], 0.0
    for _ in range(steps):
        before = np.mean((x @ w - y) ** 2)
        gradient = keeps * gradient + 2 * x.T @ (x @ w - y) / len(y)
        w = w + direction * lr * gradient
        losses.append(np.mean((x @ w - y) ** 2) if after else before)
    return np.array(losses)


def _fit_case(dtype: DTypeLike) -> Case:
    rng = np.random.default_rng(90)
    w, x, y = (normal(rng, shape, dtype) for shape in ((3,), (8, 3), (8,)))
    inputs: Inputs = {"w": w, "x": x, "y": y, "lr": 0.1, "steps": 5}
    return Case(inputs, (_losses(**inputs),))


FIT = Exercise(
    "fit",
    {"losses": "[steps]"},
    (_fit_case(np.float64), _fit_case(np.float32)),
    (
        Mistake(
            "M30",
            "Each step also follows the gradients of the steps before: what does backward do with "
            "a gradient that is already there?",
            (lambda w, x, y, lr, steps: _losses(w, x, y, lr, steps, keeps=1.0),),
        ),
        Mistake(
            "uphill",
            "The loss grows from step to step: which way does the gradient point?",
            (lambda w, x, y, lr, steps: _losses(w, x, y, lr, steps, direction=1.0),),
        ),
        Mistake(
            "standing still",
            "The loss never changes: does w move?",
            (lambda w, x, y, lr, steps: _losses(w, x, y, 0.0, steps),),
        ),
        Mistake(
            "after the step",
            "These are the losses after each step: the first should be that of the first w.",
            (lambda w, x, y, lr, steps: _losses(w, x, y, lr, steps, after=True),),
        ),
    ),
)
