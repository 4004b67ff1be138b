"""Lesson 06: the causal mask, its two forms, and a softmax under it."""

from collections.abc import Callable

import numpy as np

from course_lib._arrays import Array
from course_lib.attention import causal_keep
from course_lib.check.formulas import exp_shifted, normal, normalized, softmax
from course_lib.check.judge import Case, Exercise, Mistake, Result, judge


def causal_mask(function: object) -> Result:
    """Check `causal_mask(t, t_total)`: the mask that is added to the scores.

    Parameters
    ----------
    function : callable
        ``causal_mask(t, t_total)`` returns [t, t_total]: 0 where key j ≤ i + base and −inf where
        j > i + base, with base = t_total − t.

    Returns
    -------
    Result
    """
    return judge(CAUSAL_MASK, function)


def keep_to_additive(function: object) -> Result:
    """Check `keep_to_additive(keep)`: from a boolean mask to one that is added to scores.

    Parameters
    ----------
    function : callable
        ``keep_to_additive(keep)`` with keep [T, T_total], booleans, True where a query may attend,
        returns [T, T_total]: 0 there and −inf elsewhere.

    Returns
    -------
    Result
    """
    return judge(KEEP_TO_ADDITIVE, function)


def masked_softmax(function: object) -> Result:
    """Check `masked_softmax(scores, keep)`: weights of 0 where a query may not attend.

    Parameters
    ----------
    function : callable
        ``masked_softmax(scores, keep)`` with scores [B, T, T_total] and keep [T, T_total],
        booleans, returns [B, T, T_total]: each row sums to 1, and a row that may see nothing is
        all zeros.

    Returns
    -------
    Result
    """
    return judge(MASKED_SOFTMAX, function)


def additive(keep: Array, forbidden: float = -np.inf) -> Array:
    """The mask to add: 0 where `keep` is True, `forbidden` elsewhere."""
    return np.where(keep, 0.0, forbidden)


def masked_weights(scores: Array, keep: Array | bool) -> Array:
    """Softmax over the kept scores only; a row that keeps none is all zeros."""
    return softmax(np.where(keep, scores, -np.inf))


# What people write for "a very large negative number".
_LARGE = (-1e9, -1e4, -1e5, -1e6, -1e8, -1e10, -1e12, -1e20, -1e30)
LARGE_NEGATIVE = (*_LARGE, float(np.finfo(np.float32).min), float(np.finfo(np.float64).min))


def mask_mistakes(keep_of: Callable[..., Array]) -> tuple[Mistake, ...]:
    """The mistakes that any additive mask can hold; `keep_of` makes the mask from the inputs."""
    return (
        Mistake(
            "M17",
            "The polarity is inverted: this hides what may be seen, and shows what may not.",
            (lambda *inputs: additive(~keep_of(*inputs)),),
        ),
        Mistake(
            "M22",
            "This mask holds 0 and 1: added to a score, does a 1 forbid anything?",
            (keep_of, lambda *inputs: ~keep_of(*inputs)),
        ),
        Mistake(
            "M24",
            "A large negative number is not −inf: what becomes of a row in which every key has it?",
            tuple(
                lambda *inputs, low=low: additive(keep_of(*inputs), low) for low in LARGE_NEGATIVE
            ),
        ),
        Mistake(
            "0 times inf",
            "It holds NaN: what is 0 · (−inf)?",
            (
                lambda *inputs: ~keep_of(*inputs) * -np.inf,
                lambda *inputs: keep_of(*inputs) * -np.inf,
            ),
        ),
    )


def causal_mistakes(keep_with: Callable[..., Array]) -> tuple[Mistake, ...]:
    """The mistakes of a causal mask; `keep_with(shift)` gives the keep mask that sees `shift` more.

    The functions take the exercise's inputs.
    """
    return (
        Mistake(
            "M18",
            "A token is hidden from itself here: does token i know its own vector?",
            (lambda *inputs: additive(keep_with(*inputs, shift=-1)),),
        ),
        Mistake(
            "M19",
            "Each token sees one token ahead: which is the one that it is to predict?",
            (lambda *inputs: additive(keep_with(*inputs, shift=1)),),
        ),
        Mistake(
            "M23",
            "`base` plays no part: query 0 is a new token, and which keys came before it?",
            (lambda *inputs: additive(keep_with(*inputs, based=False)),),
        ),
        Mistake(
            "M22",
            "This mask holds 0 and 1, and `base` plays no part: which number forbids a key?",
            (
                lambda *inputs: keep_with(*inputs, based=False),
                lambda *inputs: ~keep_with(*inputs, based=False),
            ),
        ),
    )


def _causal(t: int, t_total: int, shift: int = 0, based: bool = True) -> Array:
    return np.tri(t, t_total, (t_total - t) * based + shift, dtype=bool)


CAUSAL_MASK = Exercise(
    "causal_mask",
    {"mask": "[t, t_total]"},
    tuple(
        Case({"t": t, "t_total": t_total}, (additive(causal_keep(t, t_total)),))
        for t, t_total in ((3, 7), (4, 4), (1, 5), (2, 3))
    ),
    (
        *mask_mistakes(_causal),
        *causal_mistakes(_causal),
        Mistake(
            "M17",
            "The polarity is inverted, and `base` plays no part: this hides what may be seen.",
            (lambda t, t_total: additive(~_causal(t, t_total, based=False)),),
        ),
        Mistake(
            "base from outside",
            "`base` is the same whatever t and t_total are: is it a name from an earlier cell?",
            tuple(
                lambda t, t_total, base=base: additive(np.tri(t, t_total, base, dtype=bool))
                for base in (2, 4)
            ),
        ),
    ),
)

_KEEP = np.array(
    [
        [True, False, True, False, False],
        [False, True, True, True, False],
        [False, False, False, False, False],
        [True, True, False, False, True],
    ]
)

KEEP_TO_ADDITIVE = Exercise(
    "keep_to_additive",
    {"mask": "[T, T_total]"},
    (Case({"keep": _KEEP}, (additive(_KEEP),)),),
    mask_mistakes(lambda keep: keep),
)


def _softmax_cases() -> tuple[Case, ...]:
    scores = normal(np.random.default_rng(6), (2, 4, 5))  # [B, T, T_total]
    some = causal_keep(4, 5)  # every row sees a key
    return tuple(
        Case({"scores": values, "keep": keep}, (masked_weights(values, keep),))
        for values, keep in (
            (scores, some),
            (scores.astype(np.float32), some),
            (scores, _KEEP),  # row 2 sees nothing
            (np.where(some, scores, 1000.0), some),  # what is forbidden would outweigh all else
        )
    )


def _normalized_if_any(weights: Array) -> Array:
    total = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(total == 0, 1, total)


def _naive_softmax(scores: Array) -> Array:
    return normalized(exp_shifted(scores))


MASKED_SOFTMAX = Exercise(
    "masked_softmax",
    {"weights": "[B, T, T_total]"},
    _softmax_cases(),
    (
        Mistake(
            "M17",
            "The polarity is inverted: the weight goes where a query may not attend.",
            (
                lambda scores, keep: masked_weights(scores, ~keep),
                lambda scores, keep: _naive_softmax(np.where(keep, -np.inf, scores)),
            ),
        ),
        Mistake(
            "too late",
            "Beside a forbidden score of 1000 nothing is left of the allowed keys: does the mask "
            "come before the exponential?",
            (
                lambda scores, keep: _normalized_if_any(softmax(scores) * keep),
                lambda scores, keep: _normalized_if_any(np.exp(scores) * keep),
            ),
        ),
        Mistake(
            "M20",
            "The rows no longer sum to 1: forbidden keys took their share before the mask came.",
            (lambda scores, keep: softmax(scores) * keep,),
        ),
        Mistake(
            "M21",
            "A forbidden key still has weight: what is exp(0)?",
            (lambda scores, keep: softmax(scores * keep),),
        ),
        Mistake(
            "M22",
            "A mask of 0 and 1 was added to the scores: which number, added, leaves no weight?",
            (
                lambda scores, keep: softmax(scores + keep),
                lambda scores, keep: softmax(scores + ~keep),
            ),
        ),
        Mistake(
            "M24",
            "A row that may see nothing spreads its weight over forbidden keys: what should be "
            "left of it?",
            (
                lambda scores, keep: softmax(np.where(keep, scores, -1e9)),
                lambda scores, keep: softmax(scores + additive(keep, -1e4)),
            ),
        ),
        Mistake(
            "no mask",
            "The mask plays no part: which weights should be 0?",
            (lambda scores, keep: softmax(scores),),
        ),
        Mistake(
            "no key",
            "A row that may see nothing became NaN: what is its sum, and what does one divide by?",
            (lambda scores, keep: _naive_softmax(np.where(keep, scores, -np.inf)),),
        ),
    ),
)
