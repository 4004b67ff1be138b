"""The operations of a neural network's layers: one record each on the tape, so that they are fast.

Named as in PyTorch's `torch.nn.functional`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from course_lib._arrays import (
    Array,
    _affine,
    _check_no_new_nan,
    _column_sum,
    _gelu,
    _no_new_nan,
    _row_ids,
    _rows,
    _shifted_exp,
)
from course_lib._checks import array_of
from course_lib.tape import Grads
from course_lib.tensor import Tensor, _beside, _floating, _one_dtype, _plain, _result

__all__ = ["cross_entropy", "embedding", "layer_norm", "linear", "mlp"]


def embedding(ids: ArrayLike, weight: Tensor) -> Tensor:
    """Look up rows of a table.

    Parameters
    ----------
    ids : integers [...]
        Which rows, each in 0 … num_embeddings − 1.
    weight : Tensor [num_embeddings, embedding_dim]

    Returns
    -------
    Tensor [..., embedding_dim]
        A row that is looked up twice gets both gradients.

    Raises
    ------
    TypeError, IndexError, ValueError
        For ids that are not integers, or that have no row, and for a table that is no matrix.
    """
    weight = _beside(None, weight)
    if weight.ndim != 2:
        raise ValueError(f"embedding: the table must be a matrix, got shape {list(weight.shape)}")
    ids = _row_ids("embedding", array_of("embedding", _plain(ids)), len(weight))
    table = weight._data

    def backward(g: Array) -> Grads:
        grad = np.zeros_like(table)
        if ids.size:  # sorted, the gradients of one row lie together and are summed in one go
            order = np.argsort(ids, axis=None, kind="stable")
            rows, starts = np.unique(ids.flat[order], return_index=True)
            grad[rows] = np.add.reduceat(_rows(g)[order], starts, axis=0)
        return (grad,)

    return _result(table[ids], (weight,), backward, "embedding")


def linear(x: ArrayLike, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W + b as one operation: x [..., in], `weight` [in, out], `bias` [out]; returns [..., out].

    Raises ValueError where the shapes are others.
    """
    x = _beside(weight, x)
    if bias is None:
        return x @ weight
    x, weight, bias = _one_dtype("linear", (x, weight, bias))
    _check_linear("linear", x, weight, bias)
    with np.errstate(all="ignore"):
        out, back = _affine(_rows(x._data), weight._data, bias._data)
    _check_no_new_nan("linear", out, x._data, weight._data, bias._data)

    def backward(g: Array) -> Grads:
        grad, *others = back(_rows(g))
        return grad.reshape(x.shape), *others

    return _result(out.reshape(*x.shape[:-1], out.shape[1]), (x, weight, bias), backward, "linear")


def mlp(x: ArrayLike, w_fc: Tensor, b_fc: Tensor, w_proj: Tensor, b_proj: Tensor) -> Tensor:
    """gelu(x W_fc + b_fc) W_proj + b_proj as one operation (Vaswani et al. 2017, §3.3).

    x is [..., in], the weights [in, hidden] and [hidden, out], the biases [hidden] and [out];
    returns [..., out]. Raises ValueError where the shapes are others.
    """
    operands = _one_dtype("mlp", (_beside(w_fc, x), w_fc, b_fc, w_proj, b_proj))
    _check_linear("mlp", *operands[:3])
    _check_linear("mlp, the second layer", operands[1], *operands[3:])
    values, w_1, b_1, w_2, b_2 = [operand._data for operand in operands]
    with np.errstate(all="ignore"):
        inside, back_fc = _affine(_rows(values), w_1, b_1)  # [N, hidden]
        active, back_gelu = _gelu(inside)
        out, back_proj = _affine(active, w_2, b_2)  # [N, out]
    _check_no_new_nan("mlp", out, values, w_1, b_1, w_2, b_2)

    def backward(g: Array) -> Grads:
        g, *of_proj = back_proj(_rows(g))
        g, *of_fc = back_fc(back_gelu(g))
        return g.reshape(values.shape), *of_fc, *of_proj

    return _result(out.reshape(*values.shape[:-1], out.shape[1]), operands, backward, "mlp")


def _check_linear(op: str, x: Tensor, weight: Tensor, bias: Tensor) -> None:
    if weight.ndim != 2 or x.shape[-1:] != weight.shape[:1] or bias.shape != weight.shape[1:]:
        raise ValueError(
            f"{op}: x {list(x.shape)}, weight {list(weight.shape)}, bias {list(bias.shape)} "
            "must be [..., in], [in, out] and [out]"
        )


def layer_norm(x: ArrayLike, weight: ArrayLike, bias: ArrayLike, eps: float = 1e-5) -> Tensor:
    """(x − mean) / √(var + eps) · weight + bias over the last axis (Ba et al. 2016, eq. 3–4).

    x is [..., D], `weight` and `bias` [D]; the variance divides by D. Returns [..., D]. Raises
    ValueError where the last axis is not D, and where the variance overflows.
    """
    x, weight, bias = map(_floating, _one_dtype("layer_norm", (x, weight, bias)))
    if x.ndim == 0 or x.shape[-1:] != weight.shape or weight.shape != bias.shape:
        raise ValueError(
            f"layer_norm: x {list(x.shape)}, weight {list(weight.shape)}, bias "
            f"{list(bias.shape)}: the last axis of x must be the one axis of both"
        )
    shape, w = x.shape, weight._data
    # float16 would overflow soon
    rows = _rows(x._data).astype(np.promote_types(x.dtype, np.float32), copy=False)  # [N, D]
    with np.errstate(all="ignore"):
        normed = rows - _row_mean(rows)
        variance = _row_mean(normed * normed)  # [N, 1]
        rstd = 1 / np.sqrt(variance + eps)
        normed *= rstd
        out = normed * w
        out += bias._data
    if np.isinf(variance).any():
        raise ValueError("layer_norm: the values are too large, their squares overflow")
    _check_no_new_nan("layer_norm", out, rows, w, bias._data)

    def backward(g: Array) -> Grads:
        g = _rows(g)
        g_normed = g * normed
        share = (w / len(w))[:, None]  # with it, a product is the mean over a row of g · w
        grad = g * w
        grad -= g @ share
        grad -= normed * (g_normed @ share)
        grad *= rstd
        return grad.reshape(shape), _column_sum(g_normed), _column_sum(g)

    out = out.astype(x.dtype, copy=False).reshape(x.shape)
    return _result(out, (x, weight, bias), backward, "layer_norm")


@_no_new_nan
def cross_entropy(logits: ArrayLike, targets: ArrayLike, ignore_index: int = -100) -> Tensor:
    """Mean of −log softmax(logits)[target] over the targets that are not ignored.

    Parameters
    ----------
    logits : Tensor [..., C]
        Scores for C classes on the last axis (PyTorch puts C on axis 1).
    targets : integers [...]
        The right class of each position, or `ignore_index`: such a position counts for nothing.
    ignore_index : int

    Returns
    -------
    Tensor []
        In nats.

    Raises
    ------
    TypeError, IndexError, ValueError
        For targets that are not integers, that name no class, whose shape is not that of the
        logits without C, or that are all ignored (the mean of nothing has no value).
    """
    logits = _floating(_beside(None, logits))
    ids = array_of("cross_entropy", _plain(targets)).copy()
    if logits.ndim == 0 or ids.shape != logits.shape[:-1]:
        raise ValueError(
            f"cross_entropy: logits {list(logits.shape)} need targets "
            f"{list(logits.shape[:-1])}, got {list(ids.shape)}"
        )
    kept = ids.ravel() != ignore_index
    n = int(kept.sum())
    if n == 0:
        raise ValueError(
            f"cross_entropy: all {ids.size} targets are ignored (ignore_index={ignore_index}); "
            "there is nothing to average"
        )
    shape, rows = logits.shape, _rows(logits._data)  # [n, C]
    if n < len(kept):
        rows = rows[kept]
    at = np.arange(n), _row_ids("cross_entropy", ids.ravel()[kept], shape[-1])
    e, total, top = _shifted_exp("cross_entropy", rows, (1,))
    out = ((np.log(total) + top)[:, 0] - rows[at]).mean()

    def backward(g: Array) -> Grads:
        weights = e * (g / n / total)
        weights[at] -= g / n
        if n < len(kept):
            weights, some = np.zeros((len(kept), shape[-1]), e.dtype), weights
            weights[kept] = some
        return (weights.reshape(shape),)

    return _result(out, (logits,), backward, "cross_entropy")


def _row_mean(x: Array) -> Array:
    """x.mean(axis=-1, keepdims=True) of a matrix, its sum as a product, which is faster."""
    mean: Array = x @ np.ones((x.shape[-1], 1), x.dtype) / x.shape[-1]
    return mean
