"""Lesson 08: heads split, merged, and at work side by side."""

from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike

from course_lib._arrays import Array
from course_lib.check.formulas import dots, normal, softmax
from course_lib.check.judge import Case, Exercise, Mistake, Result, judge


def split_heads(function: object) -> Result:
    """Check `split_heads(x, n_head)`: the width D cut into n_head heads.

    Parameters
    ----------
    function : callable
        ``split_heads(x, n_head)`` with x [B, T, D] returns [B, H, T, head_dim]: head h of each
        token has its components h · head_dim to (h + 1) · head_dim.

    Returns
    -------
    Result
    """
    return judge(SPLIT_HEADS, function)


def merge_heads(function: object) -> Result:
    """Check `merge_heads(x)`: the heads of each token put side by side again.

    Parameters
    ----------
    function : callable
        ``merge_heads(x)`` with x [B, H, T, head_dim] returns [B, T, H · head_dim].

    Returns
    -------
    Result
    """
    return judge(MERGE_HEADS, function)


def multi_head(function: object) -> Result:
    """Check `multi_head(q, k, v, n_head)`: split, attend in each head, merge.

    Parameters
    ----------
    function : callable
        ``multi_head(q, k, v, n_head)`` with q, k, v [B, T, D] returns [B, T, D]; no mask, and
        nothing projected before or after.

    Returns
    -------
    Result
    """
    return judge(MULTI_HEAD, function)


def _split(x: Array, n_head: int) -> Array:
    b, t, d = x.shape
    return x.reshape(b, t, n_head, d // n_head).swapaxes(1, 2)  # [B, H, T, head_dim]


def _merge(x: Array) -> Array:
    b, h, t, head_dim = x.shape
    return x.swapaxes(1, 2).reshape(b, t, h * head_dim)  # [B, T, D]


def _split_by_reshape(x: Array, n_head: int) -> Array:
    b, t, d = x.shape
    return x.reshape(b, n_head, t, d // n_head)


def _merge_by_reshape(x: Array) -> Array:
    b, h, t, head_dim = x.shape
    return x.reshape(b, t, h * head_dim)


def _multi_head(
    q: Array,
    k: Array,
    v: Array,
    n_head: int,
    split: Callable[[Array, int], Array] = _split,
    merge: Callable[[Array], Array] = _merge,
    width: int | None = None,
) -> Array:
    q, k, v = (split(x, n_head) for x in (q, k, v))
    scores = dots(q, k) / np.sqrt(width or q.shape[-1])  # [B, H, T, T]
    return merge(softmax(scores) @ v)


def _numbers(seed: int, shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> Array:
    return normal(np.random.default_rng(seed), shape, dtype)


_SIZES = (
    ((2, 5, 12), 3),
    ((3, 4, 8), 2),
    ((2, 4, 8), 4),
)  # [B, T, D] and n_head; T ≠ H, then T = H

SPLIT_HEADS = Exercise(
    "split_heads",
    {"heads": "[B, H, T, head_dim]"},
    tuple(
        Case({"x": x, "n_head": n_head}, (_split(x, n_head),))
        for x, n_head in ((_numbers(8, shape), n_head) for shape, n_head in _SIZES)
    ),
    (
        Mistake(
            "M27",
            "A head holds pieces of different tokens: reshape keeps the order of the numbers, so "
            "which axis must already be next to which?",
            (_split_by_reshape,),
        ),
        Mistake(
            "not transposed",
            "The heads are cut rightly, but a token's heads still lie together: which axis does a "
            "batched matmul run over?",
            (lambda x, n_head: _split(x, n_head).swapaxes(1, 2),),
        ),
        Mistake(
            "interleaved",
            "Head 0 takes every H-th component: it should have its components side by side.",
            (
                lambda x, n_head: x.reshape(*x.shape[:2], x.shape[2] // n_head, n_head).transpose(
                    0, 3, 1, 2
                ),
            ),
        ),
    ),
)

MERGE_HEADS = Exercise(
    "merge_heads",
    {"x": "[B, T, D]"},
    tuple(
        Case({"x": heads}, (_merge(heads),))
        for heads in (_split(_numbers(80, shape), n_head) for shape, n_head in _SIZES)
    ),
    (
        Mistake(
            "M28",
            "A token's row holds pieces of other tokens: which axis must stand next to head_dim "
            "before the two become one?",
            (_merge_by_reshape,),
        ),
        Mistake(
            "interleaved",
            "The components of the heads alternate: a token's heads should stand side by side.",
            (lambda x: x.transpose(0, 2, 3, 1).reshape(x.shape[0], x.shape[2], -1),),
        ),
        Mistake(
            "heads added",
            "The heads are added up or averaged: each has its own place in the width D.",
            (lambda x: x.sum(axis=1), lambda x: x.mean(axis=1)),
        ),
    ),
)

MULTI_HEAD = Exercise(
    "multi_head",
    {"output": "[B, T, D]"},
    tuple(
        Case({"q": q, "k": k, "v": v, "n_head": n_head}, (_multi_head(q, k, v, n_head),))
        for q, k, v, n_head in (
            (*_numbers(88, (3, *shape), dtype), n_head)
            for (shape, n_head), dtype in zip(
                _SIZES, (np.float64, np.float64, np.float32), strict=True
            )
        )
    ),
    (
        Mistake(
            "M07",
            "The scale fits the whole width D: how many components does a query have in one head?",
            (lambda q, k, v, n_head: _multi_head(q, k, v, n_head, width=q.shape[-1]),),
        ),
        Mistake(
            "M04",
            "The scores are not scaled: what happens to their spread as head_dim grows?",
            (lambda q, k, v, n_head: _multi_head(q, k, v, n_head, width=1),),
        ),
        Mistake(
            "M27",
            "A head holds pieces of different tokens: what order of the numbers does reshape keep?",
            (
                lambda q, k, v, n_head: _multi_head(q, k, v, n_head, split=_split_by_reshape),
                lambda q, k, v, n_head: _multi_head(
                    q, k, v, n_head, split=_split_by_reshape, merge=_merge_by_reshape
                ),
            ),
        ),
        Mistake(
            "M28",
            "A token's row holds pieces of other tokens: which axis must stand next to head_dim "
            "before the two become one?",
            (lambda q, k, v, n_head: _multi_head(q, k, v, n_head, merge=_merge_by_reshape),),
        ),
        Mistake(
            "one head",
            "All of D is compared at once: what does n_head change?",
            (lambda q, k, v, n_head: _multi_head(q, k, v, 1),),
        ),
    ),
)
