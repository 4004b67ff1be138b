"""Lesson 07: the weighted sum, and the whole formula."""

from collections.abc import Callable

import numpy as np

from course_lib._arrays import Array
from course_lib.attention import causal_keep
from course_lib.check.formulas import Axis, dots, exp_shifted, normalized, softmax
from course_lib.check.judge import Case, Exercise, Mistake, Result, judge, judge_value
from course_lib.check.lesson_06 import additive

Output = Callable[[Array, Array, Array, Array], Array]  # from q, k, v and mask


def attention_by_hand(answer: object) -> Result:
    """Check the 2 × 2 example worked out by hand, rounded to three decimals.

    Parameters
    ----------
    answer : array_like [2, 2]
        The output for Q = K = V = I with d_k = 2, no mask. As V = I, the weights are the same.

    Returns
    -------
    Result
    """
    expected = _attention(_IDENTITY, _IDENTITY, _IDENTITY, 0.0)
    otherwise = "Which of the steps differs: the scores, the exponentials or the sums of the rows?"
    return judge_value(
        "attention_by_hand", answer, expected, otherwise, _BY_HAND_MISTAKES, tolerance=1e-3
    )


def attention(function: object) -> Result:
    """Check `attention(q, k, v, mask)`: softmax(q kᵀ/√d_k + mask) v.

    Parameters
    ----------
    function : callable
        ``attention(q, k, v, mask)`` with q [B, T, d_k], k [B, T_total, d_k], v [B, T_total, d_v]
        and an additive mask [T, T_total] (0 and −inf; every row sees a key) returns [B, T, d_v].
        It must survive scores near 1000, also beside rows near −1000.

    Returns
    -------
    Result
    """
    return judge(ATTENTION, function)


def _scores(q: Array, k: Array) -> Array:
    scaled: Array = dots(q, k) / np.sqrt(q.shape[-1])
    return scaled


def _attention(q: Array, k: Array, v: Array, mask: Array | float) -> Array:
    return softmax(_scores(q, k) + mask) @ v


def _cases() -> tuple[Case, ...]:
    rng = np.random.default_rng(7)
    cases = []
    for base, near, dtype in ((0, 0, float), (2, 0, float), (2, 0, np.float32), (0, 1000, float)):
        q = rng.normal(size=(2, 5, 4))
        k = rng.normal(size=(2, 5 + base, 4))
        v = rng.normal(size=(2, 5 + base, 3))
        if near:  # every score is near 1000, and exact in float32 too
            q, k = np.round(q * 4) / 4, np.round(k * 4) / 4
            q[..., 0], k[..., 0] = 2, near
        cases.append(_case(*(x.astype(dtype) for x in (q, k, v))))
    q, k, v = rng.normal(size=(3, 2, 5, 4))
    q[:, ::2, 0], q[:, 1::2, 0], k[..., 0] = 1, -1, 1000  # the scores of a row near 500 or −500
    cases.append(_case(q, k, v))
    return tuple(cases)


def _case(q: Array, k: Array, v: Array) -> Case:
    mask = additive(causal_keep(q.shape[1], k.shape[1]))
    return Case({"q": q, "k": k, "v": v, "mask": mask}, (_attention(q, k, v, mask),))


def _after(weigh: Callable[[Array, Array], Array]) -> Output:
    """The output of a wrong way from scores and mask to weights."""
    return lambda q, k, v, mask: weigh(_scores(q, k), mask) @ v


def _scaled_by(width: float | Callable[[Array], float]) -> Output:
    of = width if callable(width) else lambda q: width
    return lambda q, k, v, mask: softmax(dots(q, k) / np.sqrt(of(q)) + mask) @ v


def _naive(scores: Array, mask: Array) -> Array:
    return normalized(np.exp(scores + mask))


def _one_maximum(axis: Axis) -> Callable[[Array, Array], Array]:
    """Weights from scores less the maximum of more than one row."""
    return lambda scores, mask: normalized(exp_shifted(scores + mask, axis))


def _shares(scores: Array, mask: Array) -> Array:
    return normalized(np.abs(scores) * (mask == 0))


def _best_value_only(q: Array, k: Array, v: Array, mask: Array) -> Array:
    best = (_scores(q, k) + mask).argmax(axis=-1)  # [B, T]
    return np.take_along_axis(v, best[..., None], axis=1)


def _transposed_weights(q: Array, k: Array, v: Array, mask: Array) -> Array:
    return softmax(_scores(q, k) + mask).mT @ v


ATTENTION = Exercise(
    "attention",
    {"output": "[B, T, d_v]"},
    _cases(),
    (
        Mistake(
            "M04",
            "The scores are not scaled: what happens to their spread as d_k grows?",
            (lambda q, k, v, mask: softmax(dots(q, k) + mask) @ v,),
        ),
        Mistake(
            "M05",
            "The scores are divided by d_k: is that their variance or their standard deviation?",
            (_scaled_by(lambda q: q.shape[-1] ** 2),),
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
            (_scaled_by(64), _scaled_by(lambda q: 2 * q.shape[-1])),
        ),
        Mistake(
            "fixed scale",
            "The scale does not follow d_k: is it a fixed number, the size of another axis, or a "
            "name from an earlier cell?",
            tuple(_scaled_by(d_k) for d_k in (2, 3)),  # d_v is 3
        ),
        Mistake(
            "M08",
            "The queries are compared with themselves: a score compares a query with a key.",
            (lambda q, k, v, mask: _attention(q, q, v, mask),),
        ),
        Mistake(
            "M09",
            "Row i of the scores belongs to key i: it should hold what query i makes of each key.",
            (lambda q, k, v, mask: _attention(k, q, v, mask),),
        ),
        Mistake(
            "M10",
            "It gives NaN for scores near 1000: how large a number can exp return?",
            (_after(_naive),),
        ),
        Mistake(
            "M11",
            "The weights are normalized over the queries: which of them share one query's weight?",
            (_after(lambda scores, mask: softmax(scores + mask, dim=-2)),),
        ),
        Mistake(
            "M12",
            "All weights of a matrix together sum to 1: how many queries share them?",
            (
                _after(lambda scores, mask: softmax(scores + mask, dim=(-2, -1))),
                _after(lambda scores, mask: softmax(scores + mask, dim=None)),
                _after(lambda scores, mask: normalized(exp_shifted(scores + mask), (-2, -1))),
                _after(lambda scores, mask: normalized(exp_shifted(scores + mask), None)),
            ),
        ),
        Mistake(
            "M13",
            "One maximum serves many rows, and a row far below it becomes 0/0: whose largest score "
            "should a row be compared with?",
            (_after(_one_maximum((-2, -1))), _after(_one_maximum(None))),
        ),
        Mistake(
            "not normalized",
            "The weights of a row do not sum to 1: is the output still between the values?",
            (
                _after(lambda scores, mask: exp_shifted(scores + mask)),
                _after(lambda scores, mask: np.exp(scores + mask)),
            ),
        ),
        Mistake(
            "no softmax",
            "The scores themselves are used as weights: which step makes them positive, and lets "
            "them sum to 1?",
            (_after(lambda scores, mask: scores + mask), _after(lambda scores, mask: scores)),
        ),
        Mistake(
            "M14",
            "The weights are shares of the scores themselves: what makes a negative score a "
            "positive weight?",
            (_after(_shares),),
        ),
        Mistake(
            "M20",
            "The weights of a row do not sum to 1: forbidden keys took their share before the "
            "mask came.",
            (_after(lambda scores, mask: softmax(scores) * (mask == 0)),),
        ),
        Mistake(
            "M21",
            "A forbidden key still has weight: what is exp(0)?",
            (_after(lambda scores, mask: softmax(scores * (mask == 0))),),
        ),
        Mistake(
            "M22",
            "A mask of 0 and 1 was added to the scores: which number, added, leaves no weight?",
            (
                _after(lambda scores, mask: softmax(scores + (mask == 0))),
                _after(lambda scores, mask: softmax(scores + (mask != 0))),
            ),
        ),
        Mistake(
            "M17",
            "The polarity of the mask is inverted: the weight goes where a query may not attend.",
            (_after(lambda scores, mask: softmax(scores + additive(mask != 0))),),
        ),
        Mistake(
            "mask not added",
            "It gives NaN: the mask of 0 and −∞ is to be added to the scores, before softmax.",
            (
                _after(lambda scores, mask: normalized(exp_shifted(scores * mask))),
                _after(lambda scores, mask: softmax(scores) * mask),
                _after(lambda scores, mask: softmax(scores + mask) * mask),
                _after(lambda scores, mask: normalized(exp_shifted(scores - mask))),
            ),
        ),
        Mistake(
            "no mask",
            "The mask plays no part: what may the first token see?",
            (_after(lambda scores, mask: softmax(scores)),),
        ),
        Mistake(
            "M25",
            "Row i of the weights belongs to query i, and here its output is made of a column.",
            (_transposed_weights,),
        ),
        Mistake(
            "M26",
            "Each output is one value only, the best: what happens to the other weights?",
            (_best_value_only,),
        ),
    ),
)

_IDENTITY = np.eye(2)
_BY_HAND_MISTAKES = (
    Mistake(
        "M04",
        "That is the softmax of the bare dot products: what are they divided by?",
        (lambda: softmax(_IDENTITY),),
    ),
    Mistake(
        "M05",
        "The dot products were divided by d_k: is that their standard deviation?",
        (lambda: softmax(_IDENTITY / 2),),
    ),
    Mistake(
        "M12",
        "All four numbers together sum to 1: what should each row sum to?",
        (lambda: softmax(_IDENTITY / np.sqrt(2), dim=None),),
    ),
    Mistake(
        "scores",
        "These are scores: which steps are left, from scores to weights and to the output?",
        (lambda: _IDENTITY / np.sqrt(2), lambda: _IDENTITY),
    ),
    Mistake(
        "not normalized",
        "These are the exponentials: what should each row sum to?",
        (lambda: np.exp(_IDENTITY / np.sqrt(2)),),
    ),
)
