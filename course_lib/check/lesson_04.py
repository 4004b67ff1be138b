"""Lesson 04: the scores, and their standard deviation."""

from collections.abc import Callable

import numpy as np

from course_lib._arrays import Array
from course_lib.check.formulas import dots, normal
from course_lib.check.judge import Case, Exercise, Mistake, Result, judge, judge_value

Scores = Callable[[Array, Array], Array]  # from q and k


def scores(function: object) -> Result:
    """Check `scores(q, k)`: the scaled dot product of each query with each key.

    Parameters
    ----------
    function : callable
        ``scores(q, k)`` with q and k [B, T, d_k] returns [B, T, T]: entry [b, i, j] is
        q_i · k_j / √d_k. NumPy arrays or Tensors.

    Returns
    -------
    Result
    """
    return judge(SCORES, function)


def sigma_at_100(answer: object) -> Result:
    """Check the predicted standard deviation of q · k at d_k = 100, unscaled.

    Parameters
    ----------
    answer : float
        Accepted within 5 %, so that a measured value is right too.

    Returns
    -------
    Result
    """
    otherwise = "Which variance has a sum of 100 independent products, and how is σ made from it?"
    return judge_value("sigma_at_100", answer, 10.0, otherwise, SIGMA_MISTAKES, tolerance=0.05)


def _cases() -> tuple[Case, ...]:
    rng = np.random.default_rng(4)
    cases = []
    for shape, dtype in (((2, 7, 5), np.float64), ((3, 4, 6), np.float32)):
        q = normal(rng, shape, dtype)
        k = normal(rng, shape, dtype)
        cases.append(Case({"q": q, "k": k}, (dots(q, k) / np.sqrt(shape[-1]),)))
    return tuple(cases)


def _scaled_by(width: float | Callable[[Array], float]) -> Scores:
    """The scores divided by √width, where `width` is a number or comes from q."""
    of = width if callable(width) else lambda q: width
    return lambda q, k: dots(q, k) / np.sqrt(of(q))


def _whole_width(n_head: int) -> Callable[[Array], int]:
    return lambda q: n_head * q.shape[-1]


def _scaled_or_not(products: Scores) -> tuple[Scores, Scores]:
    return (products, lambda q, k: products(q, k) / np.sqrt(q.shape[-1]))


_MISTAKES = (
    Mistake(
        "M04",
        "These are the bare dot products: what happens to their spread as d_k grows?",
        (dots,),
    ),
    Mistake(
        "M05",
        "The spread of these scores shrinks as d_k grows: is d_k the variance of a dot product, "
        "or its standard deviation?",
        (lambda q, k: dots(q, k) / q.shape[-1],),
    ),
    Mistake(
        "M06",
        "The scale follows the number of tokens: how many products does one score add up?",
        (_scaled_by(lambda q: q.shape[-2]),),
    ),
    Mistake(
        "M07",
        "The scale fits the width of the whole model: how many components do these queries and "
        "keys have?",
        (
            _scaled_by(64),
            *(_scaled_by(_whole_width(n_head)) for n_head in (2, 3, 4, 8)),
        ),
    ),
    Mistake(
        "fixed scale",
        "The scale does not follow d_k: is it a fixed number, the size of another axis, or a name "
        "from an earlier cell?",
        tuple(_scaled_by(d_k) for d_k in (2, 4, 16, 100, 256, 1024)),
    ),
    Mistake(
        "M08",
        "The keys play no part here: a score compares a query with a key.",
        _scaled_or_not(lambda q, k: dots(q, q)),
    ),
    Mistake(
        "M08",
        "The products are not added up: a score is one number for each pair of tokens.",
        _scaled_or_not(lambda q, k: q * k),
    ),
    Mistake(
        "M09",
        "Row i belongs to key i here: it should hold what query i makes of each key.",
        _scaled_or_not(lambda q, k: dots(k, q)),
    ),
    Mistake(
        "reshaped",
        "The keys are reshaped, which keeps their numbers in reading order: their last two axes "
        "should change places.",
        _scaled_or_not(lambda q, k: q @ k.reshape(len(k), k.shape[2], k.shape[1])),
    ),
    Mistake(
        "multiplied",
        "The scores are multiplied by √d_k: should their spread become larger or smaller?",
        (lambda q, k: dots(q, k) * np.sqrt(q.shape[-1]),),
    ),
)

SCORES = Exercise("scores", {"scores": "[B, T, T]"}, _cases(), _MISTAKES)

SIGMA_MISTAKES = (
    Mistake(
        "variance",
        "That is the variance: the standard deviation is in the units of the scores themselves.",
        (lambda: 100.0,),
    ),
    Mistake(
        "scaled",
        "That is the standard deviation of the scaled scores: here nothing is divided yet.",
        (lambda: 1.0,),
    ),
)
