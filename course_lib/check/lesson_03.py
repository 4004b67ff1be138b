"""Lesson 03: the projections, what they make of the scores, and their parameters."""

import numpy as np

from course_lib.check.formulas import dots, normal
from course_lib.check.judge import Case, Exercise, Mistake, Result, judge, judge_value


def project(function: object) -> Result:
    """Check `project(x, w, b)`: a linear layer, y = xW + b.

    Parameters
    ----------
    function : callable
        ``project(x, w, b)`` with x [B, T, D_in], w [D_in, D_out] and b [D_out] returns
        [B, T, D_out].

    Returns
    -------
    Result
    """
    return judge(PROJECT, function)


def raw_scores(function: object) -> Result:
    """Check `raw_scores(x, w_q, w_k)`: project x twice, then compare each query with each key.

    Parameters
    ----------
    function : callable
        ``raw_scores(x, w_q, w_k)`` with x [B, T, D] and both weights [D, D] returns [B, T, T]:
        entry [b, i, j] is q_i · k_j, not scaled, with q = x w_q and k = x w_k (no biases).

    Returns
    -------
    Result
    """
    return judge(RAW_SCORES, function)


def parameter_count(answer: object) -> Result:
    """Check the number of parameters of c_q, c_k and c_v together at D = 64, biases included.

    Parameters
    ----------
    answer : int

    Returns
    -------
    Result
    """
    otherwise = "Count one layer first: how many numbers has its W, and how many has its b?"
    return judge_value(
        "parameter_count", answer, 3 * (64 * 64 + 64), otherwise, _COUNTS, tolerance=0
    )


def _cases() -> tuple[Case, ...]:
    rng = np.random.default_rng(3)
    cases = []
    for d_out, dtype in ((4, np.float64), (6, np.float64), (4, np.float32)):  # M01 needs a square w
        x = normal(rng, (2, 3, 4), dtype)
        w = normal(rng, (4, d_out), dtype)
        b = normal(rng, (d_out,), dtype)
        cases.append(Case({"x": x, "w": w, "b": b}, (x @ w + b,)))
    return tuple(cases)


PROJECT = Exercise(
    "project",
    {"y": "[B, T, D_out]"},
    _cases(),
    (
        Mistake(
            "M01",
            "W is turned round: it is [D, D_out], so which of its axes meets the last axis of x?",
            (lambda x, w, b: x @ w.T + b, lambda x, w, b: x @ w.T),
        ),
        Mistake(
            "M02",
            "The bias plays no part: what does the layer give for x = 0?",
            (lambda x, w, b: x @ w,),
        ),
    ),
)


def _score_cases() -> tuple[Case, ...]:
    rng = np.random.default_rng(30)
    cases = []
    for dtype in (np.float64, np.float32):
        x = normal(rng, (2, 5, 4), dtype)
        w_q, w_k = (normal(rng, (4, 4), dtype) for _ in range(2))
        inputs = {"x": x, "w_q": w_q, "w_k": w_k}
        cases.append(Case(inputs, (dots(x @ w_q, x @ w_k),)))
    return tuple(cases)


RAW_SCORES = Exercise(
    "raw_scores",
    {"scores": "[B, T, T]"},
    _score_cases(),
    (
        Mistake(
            "M01",
            "Each W is turned round: y = xW, so which axis of W meets the last axis of x?",
            (lambda x, w_q, w_k: dots(x @ w_q.T, x @ w_k.T),),
        ),
        Mistake(
            "M03",
            "The scores are symmetric: with one W for both, i makes of j what j makes of i.",
            (
                lambda x, w_q, w_k: dots(x @ w_q, x @ w_q),
                lambda x, w_q, w_k: dots(x @ w_k, x @ w_k),
            ),
        ),
        Mistake(
            "x itself",
            "x is compared with itself: which vectors ask, and which are asked?",
            (lambda x, w_q, w_k: dots(x, x),),
        ),
        Mistake(
            "M09",
            "Row i belongs to key i here: it should hold what query i makes of each key.",
            (lambda x, w_q, w_k: dots(x @ w_k, x @ w_q),),
        ),
        Mistake(
            "reshaped",
            "The keys are reshaped, which keeps their numbers in reading order: their last two "
            "axes should change places.",
            (lambda x, w_q, w_k: x @ w_q @ (x @ w_k).reshape(len(x), x.shape[2], x.shape[1]),),
        ),
        Mistake(
            "scaled",
            "The scores are divided by something: here they are the dot products as they are.",
            (
                lambda x, w_q, w_k: dots(x @ w_q, x @ w_k) / np.sqrt(x.shape[-1]),
                lambda x, w_q, w_k: dots(x @ w_q, x @ w_k) / x.shape[-1],
            ),
        ),
    ),
)

_COUNTS = (
    Mistake(
        "M02",
        "That counts the weights only: what else does a layer y = xW + b learn?",
        (lambda: 3 * 64 * 64,),
    ),
    Mistake(
        "one layer",
        "That is one layer: how many does attention project with?",
        (lambda: 64 * 64 + 64, lambda: 64 * 64),
    ),
    Mistake(
        "one bias number",
        "That gives each layer a single number as its bias: how many outputs does b shift?",
        (lambda: 3 * (64 * 64 + 1),),
    ),
)
