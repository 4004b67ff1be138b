"""Attention(Q, K, V) = softmax(QKᵀ/√d_k + M)·V (Vaswani et al. 2017, eq. 1), and its masks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from course_lib._arrays import Array, _affine, _check_no_new_nan, _rows
from course_lib._checks import array_of, check_sizes
from course_lib.nn import Linear, Module, weights_of
from course_lib.tape import Grads
from course_lib.tensor import Tensor, _beside, _floating, _one_dtype, _result

__all__ = [
    "AttentionSteps",
    "KVCache",
    "MultiHeadAttention",
    "attention",
    "blocked_attention",
    "causal_keep",
    "causal_mask",
    "fused_attention",
]


def causal_keep(t: int, t_total: int | None = None) -> Array:
    """Say which keys each query may attend to, as booleans.

    Parameters
    ----------
    t : int
        Number of queries (new tokens).
    t_total : int, optional
        Number of keys; the first base = t_total − t of them are cached. By default t.

    Returns
    -------
    ndarray of bool [t, t_total]
        True where query i may attend to key j: j ≤ i + base.

    Raises
    ------
    ValueError
        If a size is not a whole number, negative, or t_total < t.
    """
    t_total = t if t_total is None else t_total
    check_sizes("causal mask", at_least=0, t=t, t_total=t_total)
    if t_total < t:
        raise ValueError(
            f"causal mask: t_total = {t_total} keys are fewer than t = {t} queries; "
            "t_total counts the cached keys and the new ones"
        )
    return np.tri(t, t_total, t_total - t, dtype=bool)


def causal_mask(t: int, t_total: int | None = None) -> Array:
    """Return `causal_keep` in the form that is added to scores: 0 where it is True, −inf elsewhere.

    Returns ndarray of float32 [t, t_total]; raises as `causal_keep`.
    """
    return np.where(causal_keep(t, t_total), np.float32(0), np.float32(-np.inf))


@dataclass(frozen=True)
class AttentionSteps:
    """Every intermediate of one attention, as Tensors on the tape.

    raw, scaled, masked and weights are [..., T, T_total]; output is [..., T, d_v].
    """

    raw: Tensor
    scaled: Tensor
    masked: Tensor
    weights: Tensor
    output: Tensor


@overload
def attention(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, mask: ArrayLike | None = None
) -> Tensor: ...
@overload
def attention(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, mask: ArrayLike | None, return_steps: Literal[True]
) -> tuple[Tensor, AttentionSteps]: ...
def attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    mask: ArrayLike | None = None,
    return_steps: bool = False,
) -> Tensor | tuple[Tensor, AttentionSteps]:
    """Let each query collect values: softmax(q kᵀ/√d_k + mask) v (Vaswani et al. 2017, eq. 1).

    Parameters
    ----------
    q : Tensor [..., T, d_k]
    k : Tensor [..., T_total, d_k]
    v : Tensor [..., T_total, d_v]
    mask : array or Tensor, broadcast to [..., T, T_total], optional
        Booleans: True where a query may attend to a key. Floats: added to the scores, 0 where it
        may and −inf where it may not. A query that may see nothing gets exactly zeros, and sends
        back no gradient.
    return_steps : bool
        Also return what was computed on the way.

    Returns
    -------
    Tensor [..., T, d_v], or (that, AttentionSteps)

    Raises
    ------
    ValueError
        If shapes do not fit, or a float mask holds NaN or +inf.
    TypeError
        If the mask holds integers: 0 and 1 would be added to the scores and mask nothing.
    """
    q, k, v = (x if isinstance(x, Tensor) else Tensor(x) for x in (q, k, v))
    _check_shapes(q, k, v)
    raw = q @ k.mT  # [..., T, T_total]
    scaled = raw * (1 / math.sqrt(q.shape[-1]))
    masked = scaled if mask is None else _apply_mask(scaled, mask)
    weights = masked.softmax(dim=-1)
    output = weights @ v  # [..., T, d_v]
    steps = AttentionSteps(raw, scaled, masked, weights, output)
    return (output, steps) if return_steps else output


@np.errstate(all="ignore")  # what is no number is found by the checks
def fused_attention(qkv: ArrayLike, n_head: int, mask: ArrayLike | None = None) -> Tensor:
    """Split into heads, attend, merge: one operation with its backward written out, to be fast.

    The same numbers as `attention` gives for each head. The weights stay un-normalized,
    e = exp(scores − row maximum), and each row of the output is divided by its sum of e: T · d_k
    divisions in place of T · T (Dao et al. 2022, "FlashAttention", §3.1).

    Parameters
    ----------
    qkv : Tensor [B, T, 3 D]
        Queries, keys and values side by side, of all heads.
    n_head : int
    mask : array, optional
        As in `attention`, broadcast to [B, n_head, T, T].

    Returns
    -------
    Tensor [B, T, D]

    Raises
    ------
    ValueError, TypeError
        As `attention`; also if a score is NaN.
    """
    qkv = _floating(_beside(None, qkv))
    check_sizes("attention", n_head=n_head)
    if qkv.ndim != 3 or qkv.shape[-1] % (3 * n_head) or not qkv.shape[-1]:
        raise ValueError(
            f"attention: {list(qkv.shape)} is not 3 × {n_head} heads of equal width, [B, T, 3 D]"
        )
    out, backward = _attend(qkv.data, n_head, mask)
    _check_no_new_nan("attention", out, qkv.data)
    return _result(out, (qkv,), lambda g: (backward(g),), "attention")


def _attend(
    qkv: Array, n_head: int, mask: ArrayLike | None
) -> tuple[Array, Callable[[Array], Array]]:
    """Compute `fused_attention`, and return its backward too."""
    b, t, width = qkv.shape
    q, k, v = _split_heads(qkv, n_head)  # views [B, H, T, head_dim]
    scale = qkv.dtype.type(1 / math.sqrt(q.shape[-1]))
    q = q * scale
    e = q @ k.mT  # [B, H, T, T]
    if mask is not None:
        e += _additive(mask, e)
    e -= _row_max(e)
    np.exp(e, out=e)
    total = _row_sum(e)
    total[total == 0] = 1  # a query that may see nothing gets 0 / 1
    out = np.matmul(e, v, out=np.empty_like(q))
    out /= total

    def backward(g: Array) -> Array:
        g = g.reshape(b, t, n_head, q.shape[-1]).swapaxes(1, 2) / total
        ds = g @ v.mT
        ds -= _row_dot(g, out)  # softmax's backward: s (g − Σ g s), and that sum is g · out
        ds *= e
        d_qkv = np.empty_like(qkv)
        dq, dk, dv = _split_heads(d_qkv, n_head)
        np.matmul(ds, k, out=dq)
        dq *= scale
        np.matmul(ds.mT, q, out=dk)
        np.matmul(e.mT, g, out=dv)
        return d_qkv

    return out.swapaxes(1, 2).reshape(b, t, width // 3), backward


@np.errstate(all="ignore")  # as above
def blocked_attention(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, block: int = 192, causal: bool = False
) -> Tensor:
    """Compute `attention` in tiles of block × block scores, so that memory grows with T, not T².

    Each query keeps a running maximum and a running sum while the keys pass by, block after block
    (Milakov & Gimelshein 2018, "Online normalizer calculation for softmax"); the backward computes
    each tile again from the sums that were kept (Dao et al. 2022, "FlashAttention", algorithm 4).

    Parameters
    ----------
    q : Tensor [..., T, d_k]
    k, v : Tensor [..., T_total, d_k], [..., T_total, d_v]
        With the batch axes and the dtype of q.
    block : int
        Queries and keys in a tile.
    causal : bool
        Whether query i may see only the keys j ≤ i + base, base = T_total − T, as `causal_mask`.

    Returns
    -------
    Tensor [..., T, d_v]

    Raises
    ------
    ValueError
        If shapes do not fit, block < 1, a causal T_total is below T, or a score is NaN or +inf.
    """
    q, k, v = (_floating(_beside(None, x)) for x in (q, k, v))
    _check_shapes(q, k, v)
    _check_same_batch(q, k, v)
    sizes = (q.shape[-2], k.shape[-2], block, causal)
    scale = q.dtype.type(1 / math.sqrt(q.shape[-1]))
    # One more component, 1 in each key and value: what is to be added to all scores of a query
    # stands there in the query, and the product does the adding.
    queries = _with_component(q.data * scale, 0)  # [..., T, d_k + 1]
    keys = np.ascontiguousarray(_with_component(k.data, 1).mT)  # [..., d_k + 1, T_total]
    out = np.empty_like(q.data, shape=(*q.shape[:-1], v.shape[-1]))

    for rows, columns in _tiles(*sizes):
        nothing = np.zeros((), q.dtype)
        top, total, mix = nothing - np.inf, nothing, nothing
        for cols, hidden in columns:
            e = queries[..., rows, :] @ keys[..., cols]  # [..., block, block]
            if hidden is not None:
                e += hidden
            new_top = np.maximum(top, _row_max(e))
            e -= new_top
            np.exp(e, out=e)
            shrink = np.exp(top - new_top)  # what was summed so far, relative to the new maximum
            total = total * shrink + _row_sum(e)
            mix = mix * shrink + e @ v.data[..., cols, :]
            top = new_top
        out[..., rows, :] = mix / total
        queries[..., rows, -1:] = -(top + np.log(total))  # −log Σ exp(scores)
    _check_no_new_nan("attention", out, v.data)

    def backward(g: Array) -> Grads:
        grads = _with_component(g, -_row_dot(g, out))  # [..., T, d_v + 1]
        values = np.ascontiguousarray(_with_component(v.data, 1).mT)  # [..., d_v + 1, T_total]
        dq, dk, dv = (np.zeros_like(x.data) for x in (q, k, v))
        for rows, columns in _tiles(*sizes):
            for cols, hidden in columns:
                s = queries[..., rows, :] @ keys[..., cols]
                if hidden is not None:
                    s += hidden
                np.exp(s, out=s)  # the weights again
                dv[..., cols, :] += s.mT @ g[..., rows, :]
                ds = grads[..., rows, :] @ values[..., cols]
                ds *= s
                dq[..., rows, :] += ds @ k.data[..., cols, :]
                dk[..., cols, :] += ds.mT @ queries[..., rows, :-1]
        dq *= scale
        return dq, dk, dv

    return _result(out, (q, k, v), backward, "blocked attention")


class KVCache:
    """The keys and values of all tokens that one attention layer has seen, kept for the next ones.

    The room for all of them is taken once; `append` writes into it and hands out a view.

    Parameters
    ----------
    batch, n_head, max_tokens, head_dim : int
    dtype : numpy dtype

    Raises
    ------
    ValueError
        If a size is no whole number of at least 1.
    """

    def __init__(
        self, batch: int, n_head: int, max_tokens: int, head_dim: int, dtype: DTypeLike = np.float32
    ) -> None:
        sizes = {"batch": batch, "n_head": n_head, "max_tokens": max_tokens, "head_dim": head_dim}
        check_sizes("KVCache", **sizes)
        self._keys = np.empty((batch, n_head, max_tokens, head_dim), dtype)
        self._values = np.empty_like(self._keys)
        self._length = 0

    def __len__(self) -> int:
        """Return how many tokens are cached: `base` for the mask of the next ones."""
        return self._length

    def append(self, k: ArrayLike, v: ArrayLike) -> tuple[Tensor, Tensor]:
        """Add the new tokens' keys and values [B, H, T, head_dim] behind the cached ones.

        Returns
        -------
        (Tensor, Tensor) [B, H, T_total, head_dim]
            All keys and all values so far.

        Raises
        ------
        ValueError
            If the shape does not fit, or there is no room left.
        RuntimeError
            If a gradient would have to flow through the cache.
        """
        k, v = _beside(None, k), _beside(None, v)
        batch, n_head, room, head_dim = self._keys.shape
        for x in (k, v):
            if x.ndim != 4 or x.shape != (batch, n_head, k.shape[2], head_dim):
                raise ValueError(
                    f"KVCache: keys {list(k.shape)} and values {list(v.shape)} must be "
                    f"[{batch}, {n_head}, T, {head_dim}] ([B, H, T, head_dim])"
                )
        if k.requires_grad or v.requires_grad:
            raise RuntimeError(
                "KVCache: it keeps numbers, no gradient can flow back through it; "
                "generate inside no_grad(), train without a cache"
            )
        start, end = self._length, self._length + k.shape[2]
        if end > room:
            raise ValueError(
                f"KVCache: {start} cached and {k.shape[2]} new tokens do not fit in {room}; "
                "start a new cache with the last tokens only"
            )
        self._keys[:, :, start:end] = k.data
        self._values[:, :, start:end] = v.data
        self._length = end
        kept = (self._keys[:, :, :end], self._values[:, :, :end])
        keys, values = (_result(x, (), None, "cache") for x in kept)
        return keys, values


class MultiHeadAttention(Module):
    """n_head attentions side by side, each on its own n_embd / n_head components.

    Vaswani et al. 2017, §3.2.2, with GPT-2's names for the four linear layers.

    Parameters
    ----------
    n_embd, n_head : int
        The width D of a token, and the number of heads; head_dim = n_embd / n_head.
    rng : numpy.random.Generator

    Attributes
    ----------
    c_q, c_k, c_v, c_proj : Linear [n_embd, n_embd]

    Raises
    ------
    ValueError
        If n_embd is not a multiple of n_head, or x is not [B, T, n_embd].
    """

    def __init__(self, n_embd: int, n_head: int, rng: np.random.Generator) -> None:
        check_sizes("MultiHeadAttention", n_embd=n_embd, n_head=n_head)
        if n_embd % n_head:
            raise ValueError(
                f"MultiHeadAttention: n_embd = {n_embd} can't be split into n_head = {n_head} "
                "heads of equal width"
            )
        self.n_head = n_head
        self.c_q = Linear(n_embd, n_embd, rng)
        self.c_k = Linear(n_embd, n_embd, rng)
        self.c_v = Linear(n_embd, n_embd, rng)
        self.c_proj = Linear(n_embd, n_embd, rng)

    def forward(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        return_steps: bool = False,
        cache: KVCache | None = None,
    ) -> Tensor | tuple[Tensor, AttentionSteps]:
        """Map x [B, T, D] to [B, T, D].

        `mask` and `return_steps` are as in `attention`; with a `cache` (KVCache) the T tokens of x
        also attend to the cached ones, and the mask is [T, T_total].
        """
        layers = (self.c_q, self.c_k, self.c_v)
        x = _beside(self.c_q.weight, x)
        if x.ndim != 3:
            raise ValueError(f"MultiHeadAttention: x must be [B, T, D], got {list(x.shape)}")
        if cache is None and not return_steps:
            return self._fused(x, mask)
        q, k, v = (self._split(layer(x)) for layer in layers)  # [B, H, T, head_dim]
        if cache is not None:
            k, v = cache.append(k, v)  # [B, H, T_total, head_dim]
        heads, steps = attention(q, k, v, mask, return_steps=True)  # [B, H, T, head_dim]
        out: Tensor = self.c_proj(heads.transpose(1, 2).reshape(x.shape))
        return (out, steps) if return_steps else out

    @np.errstate(all="ignore")  # as in fused_attention
    def _fused(self, x: Tensor, mask: ArrayLike | None) -> Tensor:
        """Compute the whole layer as one operation, Q, K and V in one product."""
        layers = weights_of(self.c_q, self.c_k, self.c_v, self.c_proj)
        operands = _one_dtype("attention", (x, *layers))
        values, *given, w_proj, b_proj = [operand._data for operand in operands]
        d = len(w_proj)
        if x.shape[-1] != d:
            raise ValueError(f"MultiHeadAttention: x must be [B, T, {d}], got {list(x.shape)}")
        w_qkv, b_qkv = np.concatenate(given[::2], axis=1), np.concatenate(given[1::2])  # [D, 3 D]
        qkv, back_qkv = _affine(_rows(values), w_qkv, b_qkv)
        merged, back_heads = _attend(qkv.reshape(*x.shape[:-1], 3 * d), self.n_head, mask)
        out, back_proj = _affine(_rows(merged), w_proj, b_proj)
        _check_no_new_nan("attention", out, values, *given, w_proj, b_proj)

        def backward(g: Array) -> Grads:
            g, *of_proj = back_proj(_rows(g))
            g, dw, db = back_qkv(_rows(back_heads(g)))
            of_qkv = [grad[..., i : i + d] for i in range(0, 3 * d, d) for grad in (dw, db)]
            return g.reshape(values.shape), *of_qkv, *of_proj

        return _result(out.reshape(values.shape), operands, backward, "attention")

    def _split(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        return x.reshape(b, t, self.n_head, d // self.n_head).transpose(1, 2)  # [B, H, T, head_dim]


def _tiles(
    t: int, t_total: int, block: int, causal: bool
) -> Iterator[tuple[slice, list[tuple[slice, Array | None]]]]:
    """Yield (rows, [(columns, what to add to the scores or None), ...]) without hidden tiles."""
    check_sizes("blocked attention", block=block)
    if causal and t_total < t:
        causal_keep(t, t_total)  # raises
    base = t_total - t
    for top in range(0, t, block):
        end = min(top + block, t)
        columns = []
        for left in range(0, end + base if causal else t_total, block):
            right = min(left + block, t_total)
            hidden = None
            if causal and right - 1 > top + base:  # the diagonal runs through this tile
                keep = np.tri(end - top, right - left, top + base - left, dtype=bool)
                hidden = np.where(keep, np.float32(0), np.float32(-np.inf))
            columns.append((slice(left, right), hidden))
        yield slice(top, end), columns


def _with_component(x: Array, value: Array | float) -> Array:
    """Append one component to each vector of x [..., T, d]: returns [..., T, d + 1]."""
    column = np.empty_like(x[..., :1])
    column[...] = value
    return np.concatenate([x, column], axis=-1)


def _split_heads(qkv: Array, n_head: int) -> Array:
    """View an array [B, T, 3 D] as three of [B, H, T, head_dim]."""
    b, t, width = qkv.shape
    return qkv.reshape(b, t, 3, n_head, width // (3 * n_head)).transpose(2, 0, 3, 1, 4)


def _row_max(scores: Array) -> Array:
    """Each row's largest score; the lowest finite number where a row sees nothing."""
    # a start value is also what lets NumPy take its fast path along short rows
    top: Array = scores.max(axis=-1, keepdims=True, initial=np.finfo(scores.dtype).min)
    if not np.isfinite(top).all():
        raise ValueError(
            "attention: a score is NaN or +inf, its weight would be inf/inf; "
            "did the projections overflow? Look at the learning rate and the inputs"
        )
    return top


def _row_sum(e: Array) -> Array:
    return e @ np.ones((e.shape[-1], 1), e.dtype)  # as a matrix product: faster than .sum(-1)


def _row_dot(a: Array, b: Array) -> Array:
    dots: Array = np.einsum("...td,...td->...t", a, b)
    return dots[..., None]


def _apply_mask(scores: Tensor, mask: ArrayLike) -> Tensor:
    if isinstance(mask, Tensor) and mask.requires_grad:
        _additive(mask, scores)  # checks it
        return scores + mask
    return scores + _additive(mask, scores)


def _additive(mask: ArrayLike, scores: Array | Tensor) -> Array:
    """Check a mask against the scores and return it as an array of 0 and −inf to add to them."""
    mask = mask.data if isinstance(mask, Tensor) else array_of("attention", mask)
    try:
        fits = np.broadcast_shapes(scores.shape, mask.shape) == scores.shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"attention: the mask {list(mask.shape)} does not broadcast to the scores "
            f"{list(scores.shape)} ([..., T, T_total])"
        )
    if mask.dtype == np.bool_:
        additive: Array = np.where(mask, scores.dtype.type(0), scores.dtype.type(-np.inf))
        return additive
    if mask.dtype.kind != "f":
        raise TypeError(
            f"attention: the mask holds {mask.dtype}; 0 and 1 added to scores mask nothing. "
            "Use booleans (True = may attend), or floats of 0 and -inf"
        )
    if not (mask < np.inf).all():
        raise ValueError("attention: an additive mask is 0 or −inf (or finite), found NaN or +inf")
    with np.errstate(over="ignore"):  # −1e9 does not fit in float16; −inf is what it means
        return mask.astype(scores.dtype, copy=False)


def _check_shapes(q: Tensor, k: Tensor, v: Tensor) -> None:
    shapes = f"q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}"
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ValueError(f"attention: {shapes}: each needs [..., tokens, width]")
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"attention: {shapes}: queries and keys need one width d_k")
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"attention: {shapes}: each key needs its value (T_total)")
    if k.shape[-2] == 0 or q.shape[-1] == 0:
        raise ValueError(f"attention: {shapes}: there is no key to attend to")


def _check_same_batch(q: Tensor, k: Tensor, v: Tensor) -> None:
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2] or not q.dtype == k.dtype == v.dtype:
        raise ValueError(
            f"attention: q {list(q.shape)} {q.dtype}, k {list(k.shape)} {k.dtype}, "
            f"v {list(v.shape)} {v.dtype}: batch axes and dtype must be equal here"
        )
