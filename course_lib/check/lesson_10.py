"""Lesson 10: the cache, and softmax a block at a time."""

from collections.abc import Callable

import numpy as np

from course_lib._arrays import Array
from course_lib.attention import causal_keep
from course_lib.check.call import Inputs
from course_lib.check.formulas import dots, normal
from course_lib.check.judge import Case, Exercise, Mistake, Result, judge
from course_lib.check.lesson_06 import additive, causal_mistakes, mask_mistakes, masked_weights


def mask_for_step(function: object) -> Result:
    """Check `mask_for_step(base, t)`: the mask for t new tokens after `base` cached ones.

    Parameters
    ----------
    function : callable
        ``mask_for_step(base, t)`` returns [t, base + t], to be added to the scores: 0 where key
        j ≤ i + base and −inf elsewhere. The first case is base = 4, t = 2.

    Returns
    -------
    Result
    """
    return judge(MASK_FOR_STEP, function)


def embed_new_tokens(function: object) -> Result:
    """Check `embed_new_tokens(ids, base, token_table, position_table)`.

    Parameters
    ----------
    function : callable
        With ids [B, t], integers, token_table [vocab_size, D] and position_table [block_size, D]
        it returns [B, t, D]: each new token's vector plus that of its position in the whole text,
        of which `base` tokens are cached.

    Returns
    -------
    Result
    """
    return judge(EMBED_NEW_TOKENS, function)


def attend_with_cache(function: object) -> Result:
    """Check `attend_with_cache(q, k, v, cached_k, cached_v)`.

    Parameters
    ----------
    function : callable
        With q, k [B, t, d_k] and v [B, t, d_v] of the new tokens, cached_k [B, base, d_k] and
        cached_v [B, base, d_v] it returns (output [B, t, d_v], all_k [B, base + t, d_k],
        all_v [B, base + t, d_v]): scaled and causal, old keys before new ones.

    Returns
    -------
    Result
    """
    return judge(ATTEND_WITH_CACHE, function)


def running_softmax(function: object) -> Result:
    """Check `running_softmax(m, total, scores)`: one more block for the maximum and the sum.

    Parameters
    ----------
    function : callable
        With m [T], the largest score of each row so far (−inf at the start), total [T], the sum of
        exp(score − m) so far, and scores [T, K], the next block, it returns (m [T], total [T])
        over all scores, those of the block included.

    Returns
    -------
    Result
    """
    return judge(RUNNING_SOFTMAX, function)


def _causal(base: int, t: int, shift: int = 0, based: bool = True) -> Array:
    return np.tri(t, base + t, base * based + shift, dtype=bool)


MASK_FOR_STEP = Exercise(
    "mask_for_step",
    {"mask": "[t, base + t]"},
    tuple(
        Case({"base": base, "t": t}, (additive(_causal(base, t)),))
        for base, t in ((4, 2), (0, 3), (7, 1))
    ),
    (
        *mask_mistakes(_causal),
        *causal_mistakes(_causal),
        Mistake(
            "new keys only",
            "There is no column for the cached keys: which keys does a new query meet?",
            (lambda base, t: additive(_causal(0, t)),),
        ),
    ),
)


def _embed_cases() -> tuple[Case, ...]:
    rng = np.random.default_rng(10)
    cases = []
    for base, t in ((4, 3), (0, 2)):
        inputs: Inputs = {
            "ids": rng.integers(11, size=(2, t)),
            "base": base,
            "token_table": normal(rng, (11, 6)),
            "position_table": normal(rng, (9, 6)),
        }
        cases.append(Case(inputs, (_embedded(**inputs),)))
    return tuple(cases)


def _embedded(ids: Array, base: int, token_table: Array, position_table: Array) -> Array:
    return token_table[ids] + position_table[base : base + ids.shape[1]]


EMBED_NEW_TOKENS = Exercise(
    "embed_new_tokens",
    {"x": "[B, t, D]"},
    _embed_cases(),
    (
        Mistake(
            "M31",
            "The new tokens stand at positions 0, 1, 2 again: how many came before them?",
            (lambda ids, base, *tables: _embedded(ids, 0, *tables),),
        ),
        Mistake(
            "one position",
            "All new tokens have the same position: which is the second one's?",
            (
                lambda ids, base, tokens, positions: tokens[ids] + positions[base],
                lambda ids, base, tokens, positions: tokens[ids] + positions[base + ids.shape[1]],
            ),
        ),
        Mistake(
            "one too far",
            "Each position is off by one: which is the position of the first token of all?",
            (
                lambda ids, base, *tables: _embedded(ids, base + 1, *tables),
                lambda ids, base, *tables: _embedded(ids, base - 1, *tables),
            ),
        ),
        Mistake(
            "no position",
            "The position plays no part: can the model tell the first token from the last?",
            (lambda ids, base, tokens, positions: tokens[ids],),
        ),
    ),
)


def _attend(q: Array, k: Array, v: Array, keep: Array | bool, width: int) -> tuple[Array, ...]:
    scores = dots(q, k) / np.sqrt(width)  # [B, t, base + t]
    return masked_weights(scores, keep) @ v, k, v


def _joined(first: Array, second: Array) -> Array:
    return np.concatenate([first, second], axis=1)


def _with_cache(
    q: Array,
    k: Array,
    v: Array,
    cached_k: Array,
    cached_v: Array,
    *,
    keep: Array | bool | None = None,
    width: int | None = None,
) -> tuple[Array, ...]:
    """The right answer, but for what `keep` or `width` replaces."""
    t, base = q.shape[1], cached_k.shape[1]
    keep = causal_keep(t, base + t) if keep is None else keep
    return _attend(q, _joined(cached_k, k), _joined(cached_v, v), keep, width or q.shape[-1])


def _new_first(q: Array, k: Array, v: Array, cached_k: Array, cached_v: Array) -> tuple[Array, ...]:
    # the new keys are handed over as the cached ones, and the other way round
    return _with_cache(q, cached_k, cached_v, k, v, keep=_causal(cached_k.shape[1], q.shape[1]))


def _new_first_and_masked_so(
    q: Array, k: Array, v: Array, cached_k: Array, cached_v: Array
) -> tuple[Array, ...]:
    t, base = q.shape[1], cached_k.shape[1]
    keep = np.roll(_causal(base, t), t, axis=1)
    return _with_cache(q, cached_k, cached_v, k, v, keep=keep)


def _new_keys_before_old_but_not_values(
    q: Array, k: Array, v: Array, cached_k: Array, cached_v: Array
) -> tuple[Array, ...]:
    keep = _causal(cached_k.shape[1], q.shape[1])
    return _attend(q, _joined(k, cached_k), _joined(cached_v, v), keep, q.shape[-1])


def _base_ignored(
    q: Array, k: Array, v: Array, cached_k: Array, cached_v: Array
) -> tuple[Array, ...]:
    keep = _causal(cached_k.shape[1], q.shape[1], based=False)
    return _with_cache(q, k, v, cached_k, cached_v, keep=keep)


def _new_only(q: Array, k: Array, v: Array, cached_k: Array, cached_v: Array) -> tuple[Array, ...]:
    return _attend(q, k, v, causal_keep(q.shape[1]), q.shape[-1])


def _new_only_but_joined(
    q: Array, k: Array, v: Array, cached_k: Array, cached_v: Array
) -> tuple[Array, ...]:
    output, _, _ = _new_only(q, k, v, cached_k, cached_v)
    return output, _joined(cached_k, k), _joined(cached_v, v)


def _cache_cases() -> tuple[Case, ...]:
    rng = np.random.default_rng(100)
    cases = []
    for base, t, dtype in ((4, 3, np.float64), (6, 1, np.float64), (4, 3, np.float32)):
        shapes = {
            "q": (2, t, 5),
            "k": (2, t, 5),
            "v": (2, t, 6),
            "cached_k": (2, base, 5),
            "cached_v": (2, base, 6),
        }
        inputs = {name: normal(rng, shape, dtype) for name, shape in shapes.items()}
        cases.append(Case(inputs, _with_cache(*inputs.values())))
    return tuple(cases)


ATTEND_WITH_CACHE = Exercise(
    "attend_with_cache",
    {
        "output": "[B, t, d_v]",
        "all_k": "[B, base + t, d_k]",
        "all_v": "[B, base + t, d_v]",
    },
    _cache_cases(),
    (
        Mistake(
            "M32",
            "The new keys stand before the old ones: in which order was the text read?",
            (_new_first, _new_first_and_masked_so, _new_keys_before_old_but_not_values),
        ),
        Mistake(
            "M23",
            "`base` plays no part in the mask: query 0 is a new token, and which keys came before "
            "it?",
            (_base_ignored,),
        ),
        Mistake(
            "no mask",
            "The new tokens see each other's future: which of them may the first one see?",
            (lambda *inputs: _with_cache(*inputs, keep=True),),
        ),
        Mistake(
            "M04",
            "The scores are not scaled: what happens to their spread as d_k grows?",
            (lambda *inputs: _with_cache(*inputs, width=1),),
        ),
        Mistake(
            "cache unused",
            "The output is made of the new values only: where do the cached ones come in?",
            (_new_only_but_joined, _new_only),
        ),
    ),
)


def _running(m: Array, total: Array, scores: Array) -> tuple[Array, Array]:
    new = np.maximum(m, scores.max(axis=-1))
    return new, total * np.exp(m - new) + np.exp(scores - new[:, None]).sum(axis=-1)


def _running_cases() -> tuple[Case, ...]:
    rng = np.random.default_rng(101)
    blocks = np.round(rng.normal(size=(3, 4, 5)) * 8) / 8  # 3 blocks of scores [T, K]
    blocks[1] += np.array([2.0, -2.0, 2.0, -2.0])[:, None]  # a larger maximum in half of the rows
    m, total = np.full(4, -np.inf), np.zeros(4)
    cases = []
    for scores in (blocks[0], blocks[1], blocks[2] + 1000):
        expected = _running(m, total, scores)
        cases.append(Case({"m": m, "total": total, "scores": scores}, expected))
        m, total = expected
    return (cases[1], cases[0], cases[2])  # first one that has something to rescale


def _running_with(sum_of: Callable[..., Array]) -> Callable[..., tuple[Array, Array]]:
    def answer(m: Array, total: Array, scores: Array) -> tuple[Array, Array]:
        new = np.maximum(m, scores.max(axis=-1))
        return new, sum_of(m, total, scores, new)

    return answer


RUNNING_SOFTMAX = Exercise(
    "running_softmax",
    {"m": "[T]", "total": "[T]"},
    _running_cases(),
    (
        Mistake(
            "not rescaled",
            "The old sum was taken from the old maximum: what is each of its terms worth now?",
            (
                _running_with(
                    lambda m, total, scores, new: total + np.exp(scores - new[:, None]).sum(axis=-1)
                ),
            ),
        ),
        Mistake(
            "rescaled the wrong way",
            "The old sum was rescaled the wrong way: does it grow when the maximum grows?",
            (
                _running_with(
                    lambda m, total, scores, new: (
                        total * np.exp(new - m) + np.exp(scores - new[:, None]).sum(axis=-1)
                    )
                ),
            ),
        ),
        Mistake(
            "two maxima",
            "The two sums are taken from different maxima: can they be added?",
            (
                _running_with(
                    lambda m, total, scores, new: (
                        total * np.exp(m - new)
                        + np.exp(scores - scores.max(axis=-1, keepdims=True)).sum(axis=-1)
                    )
                ),
                _running_with(
                    lambda m, total, scores, new: (
                        total + np.exp(scores - scores.max(axis=-1, keepdims=True)).sum(axis=-1)
                    )
                ),
                _running_with(
                    lambda m, total, scores, new: total + np.exp(scores - m[:, None]).sum(axis=-1)
                ),
            ),
        ),
        Mistake(
            "M10",
            "No maximum is subtracted: how large a number can exp return?",
            (
                _running_with(lambda m, total, scores, new: total + np.exp(scores).sum(axis=-1)),
                _running_with(
                    lambda m, total, scores, new: (
                        total * np.exp(m - new) + np.exp(scores).sum(axis=-1)
                    )
                ),
            ),
        ),
        Mistake(
            "maximum of the block",
            "The maximum is that of the new block only: what if an older score was larger?",
            (
                lambda m, total, scores: (
                    scores.max(axis=-1),
                    total * np.exp(m - scores.max(axis=-1))
                    + np.exp(scores - scores.max(axis=-1, keepdims=True)).sum(axis=-1),
                ),
            ),
        ),
    ),
)
