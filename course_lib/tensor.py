"""A NumPy array that remembers how it was made, and can hand gradients back along the way.

Every operation below reads the same way: compute the result (forward), then say how a gradient of
the result turns into gradients of what it was made from (backward). `tape` keeps these records.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from course_lib._arrays import (
    Array,
    Dims,
    _axis,
    _check_broadcast,
    _check_matmul,
    _check_no_new_nan,
    _count,
    _dims,
    _gelu,
    _no_new_nan,
    _product,
    _rows,
    _shifted_exp,
    _spread,
    _to_array,
    _unpack,
)
from course_lib._checks import array_of
from course_lib.tape import Grads, Node, no_grad, recording, unbroadcast, walk

__all__ = [
    "Tensor",
    "cat",
    "no_grad",
    "stack",
    "unbroadcast",
    "where",
]


def _comparison(ufunc: np.ufunc) -> Callable[[Tensor, ArrayLike], Any]:
    def compare(self: Tensor, other: ArrayLike) -> Any:
        try:
            a, b = _operands(ufunc.__name__, self, other)
        except TypeError:
            return NotImplemented  # what is no number is not equal, and has no order
        return _result(ufunc(a._data, b._data), (), None, ufunc.__name__)

    return compare


class Tensor:
    """An array of numbers with a memory of the operation that made it.

    Parameters
    ----------
    data : number, nested list, ndarray or Tensor
        The values; they are copied. Python numbers and lists of fractions become float32; NumPy's
        float16, float32 and float64 keep their dtype; integers become int64 (which wraps around
        beyond 2⁶³, as NumPy's does); booleans stay. Beside a Tensor of fractions, numbers and
        lists take its dtype.
    requires_grad : bool
        Whether `backward` shall leave a gradient in `grad`. Only for floating-point tensors.
    dtype : numpy dtype, optional
        Overrides the rule above: float16, float32, float64, int64 or bool.

    Attributes
    ----------
    data : ndarray
        The values, read-only: a recorded operation may still need them for its backward. To move a
        parameter, assign a new array: ``w.data = w.data - lr * w.grad``.
    grad : ndarray or None
        The sum of all gradients that `backward` has brought here, in the shape and dtype of `data`.

    Raises
    ------
    TypeError
        For values that are not numbers, for fractions where `dtype` is int64, and for
        ``requires_grad=True`` on integers or booleans.
    ValueError
        For ragged lists and for numbers that do not fit in the dtype.
    """

    __slots__ = (
        "__weakref__",
        "_data",
        "_node",
        "_requires_grad",
        "grad",
    )
    __array_ufunc__ = None  # makes `ndarray + Tensor` ask Tensor.__radd__, not loop over elements
    __hash__ = object.__hash__  # `==` compares elements, so Python would drop the default hash

    _node: Node | None  # the operation that made this tensor, if it was recorded
    grad: Array | None

    def __init__(
        self, data: ArrayLike, *, requires_grad: bool = False, dtype: DTypeLike | None = None
    ) -> None:
        self._data = _to_array(_plain(data), dtype)
        self._data.setflags(write=False)
        self._node = None
        self.requires_grad = requires_grad
        self.grad = None

    @property
    def data(self) -> Array:
        return self._data

    @data.setter
    def data(self, value: ArrayLike) -> None:
        array = _to_array(_plain(value), self.dtype)
        if array.shape != self.shape:
            raise ValueError(
                f"data: {list(array.shape)} can't replace {list(self.shape)}; "
                "a tensor keeps its shape. Did a gradient broadcast?"
            )
        array.setflags(write=False)
        self._data = array

    @property
    def requires_grad(self) -> bool:
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value and self.dtype.kind != "f":
            raise TypeError(
                f"Tensor: requires_grad=True needs floating-point values, not {self.dtype}; "
                "a gradient of whole numbers has no meaning. Write 2.0 instead of 2?"
            )
        self._requires_grad = bool(value)
        if not value:
            self._node = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self._data.shape

    @property
    def ndim(self) -> int:
        return self._data.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._data.dtype

    def item(self) -> Any:
        """Return the one value as a Python number; ValueError if there are more, or none."""
        if self._data.size != 1:
            raise ValueError(f"item: needs exactly one value, got shape {list(self.shape)}")
        return self._data.item()

    def numpy(self) -> Array:
        """Return a copy of the values; raises TypeError if the tensor requires a gradient."""
        return np.array(self)

    def detach(self) -> Tensor:
        """Return a tensor with the same values that no gradient flows through."""
        return _result(self._data, (), None, "detach")

    def retain_grad(self) -> None:
        """Ask `backward` to leave a gradient here too, although this tensor was computed.

        Raises RuntimeError on a constant.
        """
        if not self._requires_grad:
            raise RuntimeError("retain_grad: this tensor is a constant; no gradient reaches it")
        if self._node is not None:  # a leaf gets its gradient anyway
            self._node.retained_by = self

    # -- the walk back ---------------------------------------------------------------------------

    def backward(self, gradient: ArrayLike | None = None) -> None:
        """Add ∂self/∂leaf, times `gradient`, to the `grad` of every leaf that requires one.

        Walks the recorded operations from last to first and frees them on the way. If one fails,
        no `grad` has been changed.

        Parameters
        ----------
        gradient : array-like of the shape of self, optional
            The gradient that arrives at self. May be left out for a single value, where it is 1.

        Raises
        ------
        RuntimeError
            On a constant, on a non-scalar without `gradient`, or on a graph already walked.
        ValueError
            If `gradient` has another shape, or if a gradient becomes NaN where it was numbers.
        """
        seed = self._seed(gradient)
        walk(self if self._node is None else self._node, seed)

    def _seed(self, gradient: ArrayLike | None) -> Array:
        """Check that a walk can start here, and return the gradient it starts with."""
        if not self._requires_grad:
            raise RuntimeError(
                "backward: this tensor is a constant: nothing it was made from has "
                "requires_grad=True (or it was computed inside no_grad)"
            )
        if gradient is None:
            if self._data.size != 1:
                raise RuntimeError(
                    f"backward: the result has shape {list(self.shape)}, not one value; "
                    "pass a gradient of that shape, or reduce it first (.sum() or .mean())"
                )
            return np.ones_like(self._data)
        seed = _to_array(_plain(gradient), self.dtype)
        if seed.shape != self.shape:
            raise ValueError(
                f"backward: the gradient has shape {list(seed.shape)}, "
                f"the result {list(self.shape)}; they must be equal"
            )
        return seed

    # -- arithmetic; `backward` sums each gradient over the axes that broadcasting repeated -------

    @_no_new_nan
    def __add__(self, other: ArrayLike) -> Tensor:
        a, b = _operands("add", self, other)
        return _result(a._data + b._data, (a, b), lambda g: (g, g), "add")

    @_no_new_nan
    def __sub__(self, other: ArrayLike) -> Tensor:
        a, b = _operands("sub", self, other)
        return _result(a._data - b._data, (a, b), lambda g: (g, -g), "sub")

    @_no_new_nan
    def __mul__(self, other: ArrayLike) -> Tensor:
        a, b = _operands("mul", self, other)
        x, y = a._data, b._data

        def backward(g: Array) -> Grads:
            return g * y if a._requires_grad else None, g * x if b._requires_grad else None

        return _result(x * y, (a, b), backward, "mul")

    @_no_new_nan
    def __truediv__(self, other: ArrayLike) -> Tensor:
        a, b = _operands("div", self, other)
        y = b._data
        out = a._data / y

        def backward(g: Array) -> Grads:
            return g / y, -g * out / y if b._requires_grad else None

        return _result(out, (a, b), backward, "div")

    @_no_new_nan
    def __pow__(self, other: ArrayLike) -> Tensor:
        a, b = _operands("pow", self, other)
        x, n = a._data, b._data
        if n.dtype.kind != "f" and (n < 0).any():
            raise ValueError(
                "pow: a whole number to a negative power is a fraction; write 2.0 ** n"
            )
        out = x**n

        def backward(g: Array) -> Grads:
            # x⁰ is constant; without the test, 0 · 0⁻¹ would be NaN at x = 0
            slope = np.where(n == 0, 0, n * np.where(n == 0, 1, x) ** (n - 1))
            log_x = np.log(np.where(x == 0, 1, x)) if b._requires_grad else 0
            return g * slope, g * out * log_x

        return _result(out, (a, b), backward, "pow")

    def __matmul__(self, other: ArrayLike) -> Tensor:
        a, b = _operands("matmul", self, other)
        _check_matmul(a.shape, b.shape)
        if b.ndim == 1:  # a column, for now
            column = a @ b.reshape(-1, 1)
            return column.reshape(column.shape[:-1])
        if a.ndim == 1:  # a row, for now
            row = a.reshape(1, -1) @ b
            return row.reshape(row.shape[:-2] + row.shape[-1:])
        x, y = a._data, b._data  # [..., M, K], [..., K, N]

        def backward(g: Array) -> Grads:  # [..., M, N]
            grad_a = _product(g, y.mT) if a._requires_grad else None
            if not b._requires_grad:
                return grad_a, None
            if b.ndim == 2:  # one large product sums over the batch too
                return grad_a, _rows(x).T @ _rows(g)
            return grad_a, x.mT @ g

        with np.errstate(all="ignore"):
            out = _product(x, y)
        _check_no_new_nan("matmul", out, x, y)
        return _result(out, (a, b), backward, "matmul")

    def __neg__(self) -> Tensor:
        return self * -1

    def __radd__(self, other: ArrayLike) -> Tensor:
        return _beside(self, other) + self

    def __rsub__(self, other: ArrayLike) -> Tensor:
        return _beside(self, other) - self

    def __rmul__(self, other: ArrayLike) -> Tensor:
        return _beside(self, other) * self

    def __rtruediv__(self, other: ArrayLike) -> Tensor:
        return _beside(self, other) / self

    def __rpow__(self, other: ArrayLike) -> Tensor:
        return _beside(self, other) ** self

    def __rmatmul__(self, other: ArrayLike) -> Tensor:
        return _beside(self, other) @ self

    def _refuse_in_place(self, other: ArrayLike) -> Any:
        if self._requires_grad and self._node is None:
            raise TypeError(
                "a tensor with requires_grad=True can't be changed in place; to move a parameter "
                "write w.data = w.data - lr * w.grad"
            )
        return NotImplemented  # Python then computes x = x + other, a new tensor

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ipow__ = __imatmul__ = _refuse_in_place

    # -- comparisons: booleans, which no gradient flows through ----------------------------------

    __eq__ = _comparison(np.equal)  # type: ignore[assignment]
    __ne__ = _comparison(np.not_equal)  # type: ignore[assignment]
    __lt__ = _comparison(np.less)
    __le__ = _comparison(np.less_equal)
    __gt__ = _comparison(np.greater)
    __ge__ = _comparison(np.greater_equal)

    # -- one value at a time ---------------------------------------------------------------------

    @_no_new_nan
    def exp(self) -> Tensor:
        """eˣ for each value. This and the next four keep the shape; integers become float32."""
        x = _floating(self)
        out = np.exp(x._data)
        return _result(out, (x,), lambda g: (g * out,), "exp")

    @_no_new_nan
    def log(self) -> Tensor:
        """The natural logarithm, −inf at 0. Raises ValueError below 0."""
        x = _floating(self)
        values = x._data
        return _result(np.log(values), (x,), lambda g: (g / values,), "log")

    @_no_new_nan
    def sqrt(self) -> Tensor:
        """The square root. Raises ValueError below 0."""
        x = _floating(self)
        out = np.sqrt(x._data)
        return _result(out, (x,), lambda g: (g / (2 * out),), "sqrt")

    def tanh(self) -> Tensor:
        """The hyperbolic tangent."""
        x = _floating(self)
        out = np.tanh(x._data)
        return _result(out, (x,), lambda g: (g * (1 - out * out),), "tanh")

    def relu(self) -> Tensor:
        """max(x, 0). Its slope at 0 is 0, as in PyTorch."""
        x = _floating(self)
        out = np.maximum(x._data, 0)
        return _result(out, (x,), lambda g: (np.where(out > 0, g, 0),), "relu")

    @_no_new_nan
    def gelu(self) -> Tensor:
        """x · ½(1 + tanh(√(2/π)(x + 0.044715x³))): Hendrycks & Gimpel 2016, §2; GPT-2's form.

        PyTorch's ``gelu(approximate="tanh")``. Shape and dtype as self.
        """
        x = _floating(self)
        out, backward = _gelu(x._data)
        return _result(out, (x,), lambda g: (backward(g),), "gelu")

    # -- many values to fewer --------------------------------------------------------------------

    @_no_new_nan
    def sum(self, dim: Dims = None, keepdim: bool = False) -> Tensor:
        """The sum over `dim`: one axis, several of them, or all (None).

        With `keepdim` these axes stay, with size 1. IndexError names an axis that is not there. The
        operations below take both in the same way.
        """
        dims, shape = _dims("sum", dim, self.ndim), self.shape
        out = self._data.sum(axis=dims, keepdims=keepdim)
        return _result(out, (self,), lambda g: (_spread(g, shape, dims, keepdim),), "sum")

    @_no_new_nan
    def mean(self, dim: Dims = None, keepdim: bool = False) -> Tensor:
        """The mean over `dim`; integers become float32. Raises ValueError over no values."""
        x, dims, shape = _floating(self), _dims("mean", dim, self.ndim), self.shape
        n = _count("mean", shape, dims)
        out = x._data.mean(axis=dims, keepdims=keepdim)
        return _result(out, (x,), lambda g: (_spread(g / n, shape, dims, keepdim),), "mean")

    @_no_new_nan
    def var(self, dim: Dims = None, keepdim: bool = False, correction: int = 1) -> Tensor:
        """Variance over `dim`: Σ(x − mean)² / (count − correction), PyTorch's default of 1.

        Raises ValueError where count ≤ correction, which would be 0/0.
        """
        x, dims = _floating(self), _dims("var", dim, self.ndim)
        n = _count("var", x.shape, dims) - correction
        if n <= 0:
            raise ValueError(
                f"var: {n + correction} value(s) with correction={correction} leave nothing to "
                "divide by; take more values, or correction=0"
            )
        values = x._data
        out = values.var(axis=dims, keepdims=keepdim, ddof=correction)

        def backward(g: Array) -> Grads:
            centered = values - values.mean(axis=dims, keepdims=True)
            return (_spread(g * (2 / n), values.shape, dims, keepdim) * centered,)

        return _result(out, (x,), backward, "var")

    def max(self, dim: Dims = None, keepdim: bool = False) -> Tensor:
        """Largest value over `dim` (values only, as `torch.amax`); ties share the gradient.

        Raises ValueError if there are no values.
        """
        dims, values = _dims("max", dim, self.ndim), self._data
        _count("max", self.shape, dims)
        top = values.max(axis=dims, keepdims=True)

        def backward(g: Array) -> Grads:
            at_top = (values == top).astype(g.dtype)
            share = at_top / at_top.sum(axis=dims, keepdims=True)
            return (_spread(g, values.shape, dims, keepdim) * share,)

        return _result(top if keepdim else top.squeeze(dims), (self,), backward, "max")

    @_no_new_nan
    def logsumexp(self, dim: Dims, keepdim: bool = False) -> Tensor:
        """log Σ exp(x) over `dim`, with the maximum taken out first so that nothing overflows.

        Raises ValueError on +inf, as do `softmax` and `log_softmax`.
        """
        x, dims = _floating(self), _dims("logsumexp", dim, self.ndim)
        e, total, top = _shifted_exp("logsumexp", x._data, dims)
        out = np.log(total) + top

        def backward(g: Array) -> Grads:
            return (_spread(g, e.shape, dims, keepdim) * e / np.where(total == 0, 1, total),)

        return _result(out if keepdim else out.squeeze(dims), (x,), backward, "logsumexp")

    # -- weights from scores ---------------------------------------------------------------------

    @_no_new_nan
    def softmax(self, dim: Dims) -> Tensor:
        """exp(x) / Σ exp(x) over `dim`: values ≥ 0 that sum to 1 (Bridle 1990).

        The maximum is subtracted first, which changes nothing but what can overflow. Where every
        entry is −inf the result is 0, not 0/0; so is its gradient. Raises ValueError on +inf.
        """
        x, dims = _floating(self), _dims("softmax", dim, self.ndim)
        s, total, _ = _shifted_exp("softmax", x._data, dims)
        s /= np.where(total == 0, 1, total)

        def backward(g: Array) -> Grads:
            # ∂x_i = s_i (g_i − Σ_j g_j s_j)
            return (s * (g - (g * s).sum(axis=dims, keepdims=True)),)

        return _result(s, (x,), backward, "softmax")

    @_no_new_nan
    def log_softmax(self, dim: Dims) -> Tensor:
        """log(softmax(x)), computed as x − logsumexp(x) so that a small weight is not rounded to 0.

        Where every entry is −inf the result is −inf and the gradient 0. Raises ValueError on +inf.
        """
        x, dims = _floating(self), _dims("log_softmax", dim, self.ndim)
        e, total, top = _shifted_exp("log_softmax", x._data, dims)
        sees_nothing = total == 0
        total = np.where(sees_nothing, 1, total)
        out = x._data - (np.log(total) + top)

        def backward(g: Array) -> Grads:
            grad = g - e / total * g.sum(axis=dims, keepdims=True)
            return (np.where(sees_nothing, 0, grad),)

        return _result(out, (x,), backward, "log_softmax")

    # -- the same values, arranged otherwise -----------------------------------------------------

    def reshape(self, *shape: Any) -> Tensor:
        """The same values in the same order in another shape; one size may be −1, to be worked out.

        Raises ValueError if they do not fit.
        """
        before, after = self.shape, _unpack(shape)
        try:
            out = self._data.reshape(after)
        except (TypeError, ValueError):
            raise ValueError(
                f"reshape: {list(before)} holds {self._data.size} values, "
                f"{list(after)} does not fit them"
            ) from None
        return _result(out, (self,), lambda g: (g.reshape(before),), "reshape")

    def permute(self, *dims: Any) -> Tensor:
        """The axes in another order: axis n of the result is axis dims[n] of self.

        Raises ValueError unless each axis is named once.
        """
        dims = _dims("permute", _unpack(dims), self.ndim)
        if len(dims) != self.ndim:
            raise ValueError(
                f"permute: {list(dims)} must name each of the {self.ndim} axes of "
                f"{list(self.shape)} once"
            )
        out, back = self._data.transpose(dims), np.argsort(dims)
        return _result(out, (self,), lambda g: (g.transpose(back),), "permute")

    def transpose(self, dim0: int, dim1: int) -> Tensor:
        """Axes `dim0` and `dim1` change places."""
        a, b = _axis("transpose", dim0, self.ndim), _axis("transpose", dim1, self.ndim)
        out = self._data.swapaxes(a, b)
        return _result(out, (self,), lambda g: (g.swapaxes(a, b),), "transpose")

    @property
    def mT(self) -> Tensor:
        """The last two axes swapped: a matrix, or each matrix of a batch, transposed.

        Raises ValueError if there are fewer than two axes.
        """
        if self.ndim < 2:
            raise ValueError(f"mT: needs at least two axes, got shape {list(self.shape)}")
        return self.transpose(-2, -1)

    @property
    def T(self) -> Tensor:
        """A matrix transposed; ValueError for anything else. For a batch of matrices use `mT`."""
        if self.ndim != 2:
            raise ValueError(f"T: needs a matrix, got {list(self.shape)}; did you mean mT?")
        return self.transpose(0, 1)

    def __getitem__(self, index: Any) -> Tensor:
        try:
            index = tuple(map(_fixed, index if isinstance(index, tuple) else (index,)))
            out = self._data[index]
        except (IndexError, ValueError, OverflowError) as error:
            raise IndexError(f"index into {list(self.shape)}: {error}") from None
        shape, dtype = self.shape, self.dtype
        may_repeat = any(isinstance(i, np.ndarray) for i in index)

        def backward(g: Array) -> Grads:
            grad = np.zeros(shape, dtype)
            if may_repeat:
                np.add.at(grad, index, g)  # `grad[index] += g` would lose repeated positions
            else:
                grad[index] = g
            return (grad,)

        return _result(out, (self,), backward, "index")

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError(
            "a tensor's values can't be set in place, a backward may need them; "
            "use where(condition, a, b) or masked_fill(mask, value)"
        )

    def masked_fill(self, mask: ArrayLike, value: ArrayLike) -> Tensor:
        """Return self with `value` wherever the boolean `mask` is True (PyTorch's polarity).

        Both broadcast to the shape of self. Raises ValueError if they do not, TypeError if `mask`
        is not boolean.
        """
        out = where(mask, value, self)
        if out.shape != self.shape:
            raise ValueError(
                f"masked_fill: the mask and the value make {list(out.shape)} out of "
                f"{list(self.shape)}; both must broadcast to the tensor, not it to them"
            )
        return out

    # -- Python's own protocols ------------------------------------------------------------------

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len: a tensor with no axes (one number) has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __float__(self) -> float:
        return float(self.item())

    def __bool__(self) -> bool:
        if self._data.size != 1:
            raise ValueError(
                f"bool: shape {list(self.shape)} is not one truth value; "
                "use .data.all() or .data.any()"
            )
        return bool(self._data.item())

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        if self._requires_grad:
            raise TypeError(
                "this tensor requires a gradient, and NumPy would forget how it was made; "
                "use Tensor operations, or .data (or .detach()) if you mean the values alone"
            )
        return np.array(self._data, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        values, plain = self._data, True
        if self.dtype.kind == "f":
            largest = float(np.abs(values[np.isfinite(values)]).max(initial=0))
            plain = largest == 0 or 1e-4 <= largest < 1e6
            if plain:  # + 0 because −0.00001 would round to "-0."
                values = np.round(values.astype(np.float64), 4) + 0
        with np.printoptions(
            precision=4, threshold=30, edgeitems=2, linewidth=88, suppress=plain, sign="-",
            floatmode="maxprec", nanstr="nan", infstr="inf", formatter=None, legacy=False,
        ):  # fmt: skip
            text = np.array2string(values, separator=", ", prefix="Tensor(")
        parts = [text, f"shape={list(self.shape)}"] if self.ndim else [text]
        parts += [f"dtype={self.dtype}"] if self.dtype in (np.float16, np.float64) else []
        parts += ["requires_grad=True"] if self._requires_grad else []
        return f"Tensor({', '.join(parts)})"


# -- functions of several tensors ----------------------------------------------------------------


def where(condition: ArrayLike, a: ArrayLike, b: ArrayLike) -> Tensor:
    """Take `a` where the boolean `condition` is True and `b` elsewhere, all three broadcast.

    Raises TypeError if `condition` is not boolean, ValueError if the shapes do not broadcast.
    """
    keep = array_of("where", _plain(condition)).copy()
    if keep.dtype != np.bool_:
        raise TypeError(
            f"where: the condition must be boolean, got {keep.dtype}; "
            "write a comparison such as mask == 0"
        )
    a, b = _operands("where", a, b)
    _check_broadcast("where", keep.shape, np.broadcast_shapes(a.shape, b.shape))

    def backward(g: Array) -> Grads:
        return np.where(keep, g, 0), np.where(keep, 0, g)

    return _result(np.where(keep, a._data, b._data), (a, b), backward, "where")


def cat(tensors: Iterable[ArrayLike], dim: int = 0) -> Tensor:
    """Join tensors along an axis that they have: [2, 3] and [4, 3] make [6, 3].

    Raises ValueError where another axis differs, or if there are none.
    """
    tensors = _one_dtype("cat", tensors)
    axis = _axis("cat", dim, tensors[0].ndim)
    try:
        out = np.concatenate([t._data for t in tensors], axis=axis)
    except ValueError:
        shapes = ", ".join(str(list(t.shape)) for t in tensors)
        raise ValueError(f"cat: along axis {axis}, {shapes} differ in another axis") from None
    ends = list(itertools.accumulate([t.shape[axis] for t in tensors]))

    def backward(g: Array) -> Grads:
        g = g.swapaxes(0, axis)
        starts = [0, *ends[:-1]]
        return tuple([g[a:b].swapaxes(0, axis) for a, b in zip(starts, ends, strict=True)])

    return _result(out, tensors, backward, "cat")


def stack(tensors: Iterable[ArrayLike], dim: int = 0) -> Tensor:
    """Join n tensors of one shape along a new axis: [2, 3] and [2, 3] make [2, 2, 3].

    Raises ValueError where the shapes differ, or if there are none.
    """
    tensors = _one_dtype("stack", tensors)
    shape = tensors[0].shape
    if any(t.shape != shape for t in tensors):
        shapes = ", ".join(str(list(t.shape)) for t in tensors)
        raise ValueError(f"stack: all shapes must be equal, got {shapes}; did you mean cat?")
    axis = _axis("stack", dim, len(shape) + 1)
    return cat([t.reshape(*shape[:axis], 1, *shape[axis:]) for t in tensors], axis)


# -- behind the scenes -----------------------------------------------------------------------------


def _result(
    data: Array, parents: tuple[Tensor, ...], backward: Callable[[Array], Grads] | None, op: str
) -> Tensor:
    """Wrap what an operation computed; remember how only if a gradient may come back."""
    out = Tensor.__new__(Tensor)
    out._data = np.asarray(data)
    out._data.setflags(write=False)
    out.grad, out._requires_grad, out._node = None, False, None
    if backward is not None and recording() and any([p._requires_grad for p in parents]):
        nodes = [(p._node or p) if p._requires_grad else None for p in parents]
        out._requires_grad, out._node = True, Node(op, out._data, tuple(nodes), backward)
    return out


def _plain(value: Any) -> Any:
    return value._data if isinstance(value, Tensor) else value


def _beside(other: Any, value: Any) -> Tensor:
    """Make a Tensor of what stands beside `other`: a number or a list takes its float dtype."""
    if isinstance(value, Tensor):
        return value
    dtype = getattr(other, "dtype", None)
    dtype = dtype if dtype is not None and dtype.kind == "f" else None
    if dtype and type(value) in (int, float) and -60000 < value < 60000:  # fits all: the usual case
        return _result(np.array(value, dtype), (), None, "constant")
    return _result(_to_array(value, beside=dtype), (), None, "constant")


def _operands(op: str, a: ArrayLike, b: ArrayLike) -> tuple[Tensor, Tensor]:
    """Make Tensors of one dtype of both sides."""
    a, b = _beside(b, a), _beside(a, b)
    if op != "matmul" and a.shape != b.shape and a.shape and b.shape:
        _check_broadcast(op, a.shape, b.shape)
    if a.dtype == b.dtype and a.dtype.kind == "f":
        return a, b
    if op in ("add", "sub") and np.bool_ in (a.dtype, b.dtype):
        raise TypeError(
            f"{op}: one side is boolean. True would count as 1, which masks nothing; use "
            "masked_fill(mask, value) or where(mask, a, b), or an additive mask of 0 and -inf"
        )
    dtype = _common_dtype(a, b)
    if op in ("mul", "pow", "matmul") and dtype == np.bool_:
        dtype = np.dtype(np.int64)
    if op == "div" and dtype.kind != "f":
        dtype = np.dtype(np.float32)
    return _cast(a, dtype), _cast(b, dtype)


def _common_dtype(*tensors: Tensor) -> np.dtype[Any]:
    dtypes = {t._data.dtype for t in tensors}
    if len(dtypes) == 1:
        return dtypes.pop()
    floats = [d for d in dtypes if d.kind == "f"]
    if floats:
        return np.result_type(*floats)  # NumPy alone would make float64 of int64 and float32
    return np.dtype(np.int64)


def _cast(x: Tensor, dtype: np.dtype[Any]) -> Tensor:
    if x._data.dtype == dtype:
        return x
    with np.errstate(over="ignore"):
        return _result(x._data.astype(dtype), (x,), lambda g: (g,), "cast")


def _floating(x: Tensor) -> Tensor:
    return x if x.dtype.kind == "f" else _cast(x, np.dtype(np.float32))


def _one_dtype(op: str, tensors: Iterable[ArrayLike]) -> tuple[Tensor, ...]:
    given = list(tensors)
    if not given:
        raise ValueError(f"{op}: needs at least one tensor")
    made = [_beside(given[0], t) for t in given]
    dtype = _common_dtype(*made)
    return tuple([_cast(t, dtype) for t in made])


def _fixed(index: Any) -> Any:
    """Part of an index that nobody else can change: Tensors and lists as arrays, arrays copied."""
    if not isinstance(index, (Tensor, np.ndarray, list)):
        return index
    array = np.array(_plain(index))
    return array.astype(np.int64) if isinstance(index, list) and not index else array
