"""What the checkers of several lessons are made of: formulas in NumPy, and random numbers."""

import numpy as np
from numpy.typing import DTypeLike

from course_lib._arrays import Array, Dims
from course_lib.tensor import Tensor

Axis = int | tuple[int, ...] | None  # as NumPy's; None means all axes


def dots(q: Array, k: Array) -> Array:
    """Dot products of queries [..., T, d_k] with keys [..., T_total, d_k]: [..., T, T_total]."""
    return q @ k.mT


def softmax(scores: Array, dim: Dims = -1) -> Array:
    """Weights of the scores' shape that sum to 1 over `dim`; Tensor's softmax, for arrays."""
    return Tensor(scores).softmax(dim=dim).data


def exp_shifted(x: Array, axis: Axis = -1) -> Array:
    """exp(x − max), with one maximum over `axis`: never above 1."""
    e: Array = np.exp(x - x.max(axis=axis, keepdims=True))
    return e


def normalized(x: Array, axis: Axis = -1) -> Array:
    """x divided by its sums over `axis`."""
    shares: Array = x / x.sum(axis=axis, keepdims=True)
    return shares


def normal(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: DTypeLike = np.float64
) -> Array:
    """Independent standard normal numbers, drawn in float64 whatever their dtype will be."""
    return rng.normal(size=shape).astype(dtype)
