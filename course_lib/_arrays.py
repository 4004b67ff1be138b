"""What the operations ask of plain arrays: checks of arguments, fast sums, parts of layers.

Nothing here knows of tensors or gradients. All errors name the operation that was called.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

P = ParamSpec("P")
R = TypeVar("R")
Array = NDArray[Any]
Dims = int | Sequence[int] | None
DTYPES = tuple(np.dtype(t) for t in (np.float16, np.float32, np.float64, np.int64, np.bool_))


def _no_new_nan(operation: Callable[P, R]) -> Callable[P, R]:
    """Make `operation` refuse to make a NaN out of numbers; NaNs that were put in pass through."""
    causes = {
        "divide": "0/0 or inf/inf; did an exp overflow? (softmax subtracts the maximum first)",
        "log": "the logarithm of a negative number",
        "sqrt": "the square root of a negative number",
        "power": "a negative number to a fractional power",
        "multiply": "0 · inf",
    }

    @functools.wraps(operation)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with np.errstate(all="ignore", invalid="raise"):
                return operation(*args, **kwargs)
        except FloatingPointError as error:  # "invalid value encountered in divide"
            op = operation.__name__.strip("_").removeprefix("true")
            cause = causes.get(str(error).split()[-1], "inf − inf")
            raise ValueError(f"{op}: this makes NaN: {cause}") from None

    return guarded


def _to_array(data: ArrayLike, dtype: DTypeLike | None = None, beside: Any = None) -> Array:
    """Copy `data` into an array of a dtype that tensors have, or say why that can't be.

    Numbers and lists take the dtype `beside` if that is given.
    """
    try:
        array = np.array(data)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Tensor: can't make an array of numbers of this: {error}") from None
    kind = array.dtype.kind
    if dtype is None:
        if beside is not None and kind in "iuf" and getattr(data, "ndim", 0) == 0:
            dtype = beside
        elif kind in "iu":
            dtype = np.int64
        else:
            dtype = array.dtype if kind == "b" or hasattr(data, "dtype") else np.float32
    if kind not in "iufb" or np.dtype(dtype) not in DTYPES:
        raise TypeError(
            f"Tensor: can't hold {array.dtype} as {np.dtype(dtype)}; it holds real numbers as "
            "float16, float32, float64 or int64, and booleans"
        )
    try:
        with np.errstate(all="ignore", over="raise"):
            if kind == "u" and (array > np.iinfo(np.int64).max).any():
                raise FloatingPointError
            return array.astype(dtype, casting="same_kind", copy=False)
    except FloatingPointError:
        raise ValueError(f"Tensor: a value is too large for {np.dtype(dtype)}") from None
    except TypeError as error:
        wanted = "round first if you mean whole numbers"
        if np.dtype(dtype) == np.bool_:
            wanted = "for True where a number is not 0, write x != 0"
        raise TypeError(f"Tensor: {error}; {wanted}") from None


def _rows(x: Array) -> Array:
    """[..., D] as [N, D]."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _product(x: Array, y: Array) -> Array:
    if x.ndim > 2 and y.ndim == 2:  # one large product is faster than many small ones
        return (_rows(x) @ y).reshape(*x.shape[:-1], y.shape[-1])
    return x @ y


def _column_sum(x: Array) -> Array:
    """x.sum(axis=0) of a matrix, as a product, which is faster."""
    return np.ones(len(x), x.dtype) @ x


def _affine(rows: Array, w: Array, b: Array) -> tuple[Array, Callable[[Array], Any]]:
    """Return rows @ w + b, and its backward: from the gradient of that to those of all three.

    rows is [N, in], w [in, out] and b [out]. No NaN is looked for: it shows in what comes out last.
    """
    out = rows @ w
    out += b
    return out, lambda g: (g @ w.T, rows.T @ g, _column_sum(g))


def _gelu(x: Array) -> tuple[Array, Callable[[Array], Array]]:
    """Return the GELU of x (see Tensor.gelu) and its backward."""
    c = math.sqrt(2 / math.pi)
    gate = np.empty_like(x)  # the parts of the formula in place: half the time
    np.multiply(x, x, out=gate)
    gate *= 0.044715 * c
    gate += c
    gate *= x
    np.tanh(gate, out=gate)
    gate += 1
    gate *= 0.5
    out = x * gate

    def backward(g: Array) -> Array:
        w = 1 - gate
        w *= out  # 0 for large |x|, so that the x² beside it can't overflow
        slope = w * x
        slope *= x
        slope *= 3 * 0.044715
        slope += w
        slope *= 2 * c
        slope += gate
        slope *= g
        return slope

    return out, backward


def _check_no_new_nan(op: str, out: Array, *operands: Array) -> None:
    """Refuse a new NaN here, not where some later operation meets it.

    For products: some BLAS builds raise NumPy's floating-point flags without cause.
    """
    if np.isnan(np.maximum.reduce(out, axis=None, initial=0)):
        if not any(np.isnan(x).any() for x in operands):
            raise ValueError(f"{op}: this makes NaN: 0 · inf or inf − inf")


def _shifted_exp(op: str, x: Array, dims: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """exp(x − max), its sum, and the max over `dims`, which is finite even if all x are −inf."""
    top = x.max(axis=dims, keepdims=True, initial=np.finfo(x.dtype).min)
    if np.isposinf(top).any():
        raise ValueError(f"{op}: found +inf; its weight would be inf/inf. Did an exp overflow?")
    e = np.asarray(x - top)
    np.exp(e, out=e)
    return e, e.sum(axis=dims, keepdims=True), top


def _spread(g: Array, shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> Array:
    """Give each value that was reduced over `dims` the gradient of its result."""
    return np.broadcast_to(g if keepdim else np.expand_dims(g, dims), shape)


def _dims(op: str, dim: Dims, ndim: int) -> tuple[int, ...]:
    """Axis numbers as a tuple of distinct, non-negative ints; None means all axes."""
    if dim is None:
        return tuple(range(ndim))
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    for d in dims:
        if not isinstance(d, (int, np.integer)) or isinstance(d, bool):
            raise TypeError(f"{op}: an axis is a whole number, got {d!r}")
        if not -ndim <= d < ndim:
            raise IndexError(f"{op}: there is no axis {d} in a tensor with {ndim} axes")
    dims = tuple(int(d) % ndim for d in dims)
    if len(set(dims)) < len(dims):
        raise ValueError(f"{op}: an axis is named twice in {list(dims)}")
    return dims


def _axis(op: str, dim: Any, ndim: int) -> int:
    if dim is None or isinstance(dim, (tuple, list)):
        raise TypeError(f"{op}: needs one axis, a whole number, got {dim!r}")
    return _dims(op, dim, ndim)[0]


def _count(op: str, shape: tuple[int, ...], dims: tuple[int, ...]) -> int:
    count = math.prod(shape[d] for d in dims)
    if count == 0:
        raise ValueError(f"{op}: there are no values in shape {list(shape)}")
    return count


def _unpack(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else args


def _check_broadcast(op: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        raise ValueError(
            f"{op}: {list(a)} and {list(b)} do not broadcast: read from the right, "
            "each pair of sizes must be equal or one of them 1"
        ) from None


def _check_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    text = f"matmul: {list(a)} @ {list(b)}: "
    if not a or not b:
        raise ValueError(text + "a single number has no rows; did you mean *?")
    inner = b[-2] if len(b) > 1 else b[0]
    if a[-1] != inner:
        fits = [n for n, ok in [("b.mT", len(b) > 1 and a[-1] == b[-1]),
                                ("a.mT", len(a) > 1 and a[-2] == inner)] if ok]  # fmt: skip
        hint = f"; did you mean {' or '.join(fits)}?" if fits else ""
        raise ValueError(f"{text}{a[-1]} ≠ {inner}{hint}")
    _check_broadcast("matmul, the batch axes", a[:-2], b[:-2])


def _row_ids(op: str, ids: ArrayLike, n: int) -> Array:
    ids = np.array(ids)
    if ids.size == 0:
        ids = np.zeros(ids.shape, np.int64)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"{op}: ids must be whole numbers, got {ids.dtype}")
    bad = ids[(ids < 0) | (ids >= n)]
    if bad.size:
        raise IndexError(f"{op}: there is no id {bad[0]} among {n} (0 … {n - 1})")
    return ids
