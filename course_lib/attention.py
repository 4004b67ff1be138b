"""Attention(Q, K, V) = softmax(QKᵀ/√d_k + M)·V (Vaswani et al. 2017, eq. 1), and its masks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from course_lib.nn import Linear, Module
from course_lib.tensor import Tensor

__all__ = ["AttentionSteps", "MultiHeadAttention", "attention", "causal_keep", "causal_mask"]


def causal_keep(t, t_total=None):
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
    for name, size in (("t", t), ("t_total", t_total)):
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 0:
            raise ValueError(f"causal mask: {name} must be a whole number ≥ 0, got {size!r}")
    if t_total < t:
        raise ValueError(
            f"causal mask: t_total = {t_total} keys are fewer than t = {t} queries; "
            "t_total counts the cached keys and the new ones"
        )
    return np.tri(t, t_total, t_total - t, dtype=bool)


def causal_mask(t, t_total=None):
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


def attention(q, k, v, mask=None, return_steps=False):
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


class MultiHeadAttention(Module):
    """n_head attentions side by side, each on its own n_embd / n_head components.

    Vaswani et al. 2017, §3.2.2, with GPT-2's names for the four linear layers.

    Attributes
    ----------
    c_q, c_k, c_v, c_proj : Linear [n_embd, n_embd]

    Raises
    ------
    ValueError
        If n_embd is not a multiple of n_head.
    """

    def __init__(self, n_embd, n_head, rng):
        if n_head < 1 or n_embd % n_head:
            raise ValueError(
                f"MultiHeadAttention: n_embd = {n_embd} can't be split into n_head = {n_head} "
                "heads of equal width"
            )
        self.n_head = n_head
        self.c_q = Linear(n_embd, n_embd, rng)
        self.c_k = Linear(n_embd, n_embd, rng)
        self.c_v = Linear(n_embd, n_embd, rng)
        self.c_proj = Linear(n_embd, n_embd, rng)

    def forward(self, x, mask=None, return_steps=False):
        """Map x [B, T, D] to [B, T, D]; `mask` and `return_steps` as in `attention`."""
        q, k, v = (self._split(layer(x)) for layer in (self.c_q, self.c_k, self.c_v))
        heads, steps = attention(q, k, v, mask, return_steps=True)  # [B, H, T, head_dim]
        out = self.c_proj(heads.transpose(1, 2).reshape(x.shape))
        return (out, steps) if return_steps else out

    def _split(self, x):
        b, t, d = x.shape
        return x.reshape(b, t, self.n_head, d // self.n_head).transpose(1, 2)  # [B, H, T, head_dim]


def _apply_mask(scores, mask):
    mask = mask if isinstance(mask, Tensor) else np.asarray(mask)
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
        keep = mask.data if isinstance(mask, Tensor) else mask
        return scores.masked_fill(~keep, -np.inf)
    if mask.dtype.kind != "f":
        raise TypeError(
            f"attention: the mask holds {mask.dtype}; 0 and 1 added to scores mask nothing. "
            "Use booleans (True = may attend), or floats of 0 and -inf"
        )
    values = mask.data if isinstance(mask, Tensor) else mask
    if np.isnan(values).any() or np.isposinf(values).any():
        raise ValueError("attention: an additive mask is 0 or −inf (or finite), found NaN or +inf")
    if not isinstance(mask, Tensor):
        with np.errstate(over="ignore"):  # −1e9 does not fit in float16; −inf is what it means
            mask = Tensor(mask.astype(scores.dtype))
    return scores + mask


def _check_shapes(q, k, v):
    shapes = f"q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}"
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ValueError(f"attention: {shapes}: each needs [..., tokens, width]")
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"attention: {shapes}: queries and keys need one width d_k")
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"attention: {shapes}: each key needs its value (T_total)")
    if k.shape[-2] == 0 or q.shape[-1] == 0:
        raise ValueError(f"attention: {shapes}: there is no key to attend to")
