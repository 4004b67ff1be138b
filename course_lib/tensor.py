"""A NumPy array that remembers how it was made, and can hand gradients back along the way.

Every operation below reads the same way: compute the result (forward), then say how a gradient of
the result turns into gradients of what it was made from (backward). `Tensor.backward` walks these
records from last to first: reverse-mode automatic differentiation (Griewank & Walther, *Evaluating
Derivatives*, 2nd ed., ch. 3).
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

__all__ = [
    "Tensor",
    "cat",
    "check_gradients",
    "cross_entropy",
    "embedding",
    "layer_norm",
    "linear",
    "no_grad",
    "stack",
    "unbroadcast",
    "where",
]

P, R = ParamSpec("P"), TypeVar("R")
Array = NDArray[Any]
Grads = Iterable[Array | None]  # one for each parent; None where it requires none
Dims = int | Sequence[int] | None
DTYPES = tuple(np.dtype(t) for t in (np.float16, np.float32, np.float64, np.int64, np.bool_))

_recording = contextvars.ContextVar("recording", default=True)


@contextlib.contextmanager
def no_grad() -> Iterator[None]:
    """Inside this block (or a function it decorates) operations are computed but not recorded."""
    token = _recording.set(False)
    try:
        yield
    finally:
        _recording.reset(token)


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


def _comparison(ufunc: np.ufunc) -> Callable[[Tensor, ArrayLike], Tensor]:
    def compare(self: Tensor, other: ArrayLike) -> Tensor:
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
        "_backward",
        "_data",
        "_op",
        "_parents",
        "_requires_grad",
        "_retain",
        "grad",
    )
    __array_ufunc__ = None  # makes `ndarray + Tensor` ask Tensor.__radd__, not loop over elements
    __hash__ = object.__hash__  # `==` compares elements, so Python would drop the default hash

    _backward: Callable[[Array], Grads] | None
    _parents: tuple[Tensor, ...]
    grad: Array | None

    def __init__(
        self, data: ArrayLike, *, requires_grad: bool = False, dtype: DTypeLike | None = None
    ) -> None:
        self._data = _to_array(data, dtype)
        self._data.setflags(write=False)
        self._parents, self._backward, self._op, self._retain = (), None, "leaf", False
        self.requires_grad = requires_grad
        self.grad = None

    @property
    def data(self) -> Array:
        return self._data

    @data.setter
    def data(self, value: ArrayLike) -> None:
        array = _to_array(value, self.dtype)
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
        """Return the one value of a one-element tensor as a Python number."""
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
        """Ask `backward` to leave a gradient here too, although this tensor was computed."""
        if not self._requires_grad:
            raise RuntimeError("retain_grad: this tensor is a constant; no gradient reaches it")
        self._retain = True

    # -- the walk back ---------------------------------------------------------------------------

    def backward(self, gradient: ArrayLike | None = None) -> None:
        """Add ∂self/∂leaf, times `gradient`, to the `grad` of every leaf that requires one.

        Walks the recorded operations from last to first without recursion, and frees them on the
        way. If an operation fails, no `grad` has been changed.

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
        arriving, uses = {self: self._seed(gradient)}, self._uses()
        ready, reached, suspects = [self], [], []
        # NumPy calls when a NaN is made, at times without cause; it counts if one arrives
        with np.errstate(all="ignore", invalid="call", call=lambda *_: suspects.append(node._op)):
            while ready:
                node = ready.pop()
                g = arriving.pop(node)
                if node._backward is None or node._retain:
                    reached.append((node, g))
                if node._backward is None:
                    continue
                for parent, grad in zip(node._parents, node._backward(g), strict=True):
                    if parent._requires_grad:
                        like = parent._data
                        if grad.shape != like.shape:
                            grad = unbroadcast(grad, like.shape)
                        if grad.dtype != like.dtype:
                            grad = grad.astype(like.dtype)
                        # a new sum, not `+=`: two parents may have been handed the same array
                        arriving[parent] = arriving[parent] + grad if parent in arriving else grad
                        uses[parent] -= 1
                        if uses[parent] == 0:  # all gradients have arrived
                            del uses[parent]
                            ready.append(parent)
                node._parents, node._backward = (), _already_walked
            grads = [
                np.array(g) if node.grad is None else np.add(node.grad, g, dtype=g.dtype)
                for node, g in reached
            ]
        if suspects and any(np.isnan(grad).any() for grad in grads):
            raise ValueError(
                f"backward: the backward of {suspects[0]} makes NaN: 0 · inf, 0/0 or inf − inf; "
                "look for a value that is inf, or for a slope that is (√x and log x at 0)"
            )
        for (node, _), grad in zip(reached, grads, strict=True):
            node.grad = grad

    def _uses(self) -> dict[Tensor, int]:
        """Count how many recorded operations behind self use each tensor."""
        uses: dict[Tensor, int] = {}
        stack = [self]
        while stack:
            node = stack.pop()
            if node._backward is _already_walked:
                _already_walked()
            for parent in node._parents:
                if parent._requires_grad:
                    if parent not in uses:
                        stack.append(parent)
                    uses[parent] = uses.get(parent, 0) + 1
        return uses

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
        seed = _to_array(gradient, self.dtype)
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

    @_no_new_nan
    def __matmul__(self, other: ArrayLike) -> Tensor:
        a, b = _operands("matmul", self, other)
        _check_matmul(a.shape, b.shape)
        if b.ndim == 1:  # a column, for now
            out = a @ b.reshape(-1, 1)
            return out.reshape(out.shape[:-1])
        if a.ndim == 1:  # a row, for now
            out = a.reshape(1, -1) @ b
            return out.reshape(out.shape[:-2] + out.shape[-1:])
        x, y = a._data, b._data  # [..., M, K], [..., K, N]

        def backward(g: Array) -> Grads:  # [..., M, N]
            grad_a = _product(g, y.mT) if a._requires_grad else None
            if not b._requires_grad:
                return grad_a, None
            if b.ndim == 2:  # one large product sums over the batch too
                return grad_a, _rows(x).T @ _rows(g)
            return grad_a, x.mT @ g

        return _result(_matmul(x, y), (a, b), backward, "matmul")

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
        if self._requires_grad and self._backward is None:
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
        x = _floating(self)
        out = np.exp(x._data)
        return _result(out, (x,), lambda g: (g * out,), "exp")

    @_no_new_nan
    def log(self) -> Tensor:
        x = _floating(self)
        values = x._data
        return _result(np.log(values), (x,), lambda g: (g / values,), "log")

    @_no_new_nan
    def sqrt(self) -> Tensor:
        x = _floating(self)
        out = np.sqrt(x._data)
        return _result(out, (x,), lambda g: (g / (2 * out),), "sqrt")

    def tanh(self) -> Tensor:
        x = _floating(self)
        out = np.tanh(x._data)
        return _result(out, (x,), lambda g: (g * (1 - out * out),), "tanh")

    def relu(self) -> Tensor:
        x = _floating(self)
        out = np.maximum(x._data, 0)
        return _result(out, (x,), lambda g: (np.where(out > 0, g, 0),), "relu")

    @_no_new_nan
    def gelu(self) -> Tensor:
        """x · ½(1 + tanh(√(2/π)(x + 0.044715x³))): Hendrycks & Gimpel 2016, §2; GPT-2's form.

        PyTorch's ``gelu(approximate="tanh")``. Shape and dtype as self.
        """
        x = _floating(self)
        values, c = x._data, math.sqrt(2 / math.pi)
        gate = np.empty_like(values)  # the parts of the formula in place: half the time
        np.multiply(values, values, out=gate)
        gate *= 0.044715 * c
        gate += c
        gate *= values
        np.tanh(gate, out=gate)
        gate += 1
        gate *= 0.5
        out = values * gate

        def backward(g: Array) -> Grads:
            w = 1 - gate
            w *= out  # 0 for large |x|, so that the x² beside it can't overflow
            slope = w * values
            slope *= values
            slope *= 3 * 0.044715
            slope += w
            slope *= 2 * c
            slope += gate
            slope *= g
            return (slope,)

        return _result(out, (x,), backward, "gelu")

    # -- many values to fewer --------------------------------------------------------------------

    @_no_new_nan
    def sum(self, dim: Dims = None, keepdim: bool = False) -> Tensor:
        dims, shape = _dims("sum", dim, self.ndim), self.shape
        out = self._data.sum(axis=dims, keepdims=keepdim)
        return _result(out, (self,), lambda g: (_spread(g, shape, dims, keepdim),), "sum")

    @_no_new_nan
    def mean(self, dim: Dims = None, keepdim: bool = False) -> Tensor:
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
        """Largest value over `dim` (values only, as `torch.amax`); ties share the gradient."""
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
        dims = _dims("permute", _unpack(dims), self.ndim)
        if len(dims) != self.ndim:
            raise ValueError(
                f"permute: {list(dims)} must name each of the {self.ndim} axes of "
                f"{list(self.shape)} once"
            )
        out, back = self._data.transpose(dims), np.argsort(dims)
        return _result(out, (self,), lambda g: (g.transpose(back),), "permute")

    def transpose(self, dim0: int, dim1: int) -> Tensor:
        (a,), (b,) = _dims("transpose", dim0, self.ndim), _dims("transpose", dim1, self.ndim)
        out = self._data.swapaxes(a, b)
        return _result(out, (self,), lambda g: (g.swapaxes(a, b),), "transpose")

    @property
    def mT(self) -> Tensor:
        """The last two axes swapped: a matrix, or each matrix of a batch, transposed."""
        if self.ndim < 2:
            raise ValueError(f"mT: needs at least two axes, got shape {list(self.shape)}")
        return self.transpose(-2, -1)

    @property
    def T(self) -> Tensor:
        """A matrix transposed. For a batch of matrices use `mT`."""
        if self.ndim != 2:
            raise ValueError(f"T: needs a matrix, got {list(self.shape)}; did you mean mT?")
        return self.transpose(0, 1)

    def __getitem__(self, index: Any) -> Tensor:
        index = tuple(map(_fixed, index if isinstance(index, tuple) else (index,)))
        try:
            out = self._data[index]
        except IndexError as error:
            raise IndexError(f"index into {list(self.shape)}: {error}") from None
        like = self._data
        may_repeat = any(isinstance(i, np.ndarray) for i in index)

        def backward(g: Array) -> Grads:
            grad = np.zeros_like(like)
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
        """Return self with `value` wherever the boolean `mask` is True (PyTorch's polarity)."""
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
            largest = np.abs(values[np.isfinite(values)]).max(initial=0)
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
    keep = np.array(_plain(condition))
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
    """Join tensors along an axis they have; all other axes must be equal."""
    tensors = _one_dtype("cat", tensors)
    (axis,) = _dims("cat", dim, tensors[0].ndim)
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
    """Join tensors of one shape along a new axis."""
    tensors = _one_dtype("stack", tensors)
    shape = tensors[0].shape
    if any(t.shape != shape for t in tensors):
        shapes = ", ".join(str(list(t.shape)) for t in tensors)
        raise ValueError(f"stack: all shapes must be equal, got {shapes}; did you mean cat?")
    (axis,) = _dims("stack", dim, len(shape) + 1)
    return cat([t.reshape(*shape[:axis], 1, *shape[axis:]) for t in tensors], axis)


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
    ids = _row_ids("embedding", ids, len(weight))
    table = weight._data

    def backward(g: Array) -> Grads:
        grad = np.zeros_like(table)
        if ids.size:  # sorted, the gradients of one row lie together and are summed in one go
            order = np.argsort(ids, axis=None, kind="stable")
            rows, starts = np.unique(ids.flat[order], return_index=True)
            grad[rows] = np.add.reduceat(_rows(g)[order], starts, axis=0)
        return (grad,)

    return _result(table[ids], (weight,), backward, "embedding")


@_no_new_nan
def linear(x: ArrayLike, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W + b as one operation: x [..., in], `weight` [in, out], `bias` [out]; returns [..., out].

    Raises ValueError where the shapes are others.
    """
    x = _beside(weight, x)
    if bias is None:
        return x @ weight
    x, weight, bias = _one_dtype("linear", (x, weight, bias))
    if weight.ndim != 2 or x.shape[-1:] != weight.shape[:1] or bias.shape != weight.shape[1:]:
        raise ValueError(
            f"linear: x {list(x.shape)}, weight {list(weight.shape)}, bias {list(bias.shape)} "
            "must be [..., in], [in, out] and [out]"
        )
    rows, w = _rows(x._data), weight._data
    out = _matmul(rows, w)
    out += bias._data

    def backward(g: Array) -> Grads:
        grad_x = _product(g, w.T) if x._requires_grad else None
        return grad_x, rows.T @ _rows(g), g

    return _result(out.reshape(*x.shape[:-1], w.shape[1]), (x, weight, bias), backward, "linear")


@_no_new_nan
def layer_norm(x: ArrayLike, weight: ArrayLike, bias: ArrayLike, eps: float = 1e-5) -> Tensor:
    """(x − mean) / √(var + eps) · weight + bias over the last axis (Ba et al. 2016, eq. 3–4).

    x is [..., D], `weight` and `bias` [D]; the variance divides by D. Returns [..., D]. Raises
    ValueError where the last axis is not D, and where the variance overflows.
    """
    x, weight, bias = (_floating(t) for t in _one_dtype("layer_norm", (x, weight, bias)))
    if x.ndim == 0 or x.shape[-1:] != weight.shape or weight.shape != bias.shape:
        raise ValueError(
            f"layer_norm: x {list(x.shape)}, weight {list(weight.shape)}, bias "
            f"{list(bias.shape)}: the last axis of x must be the one axis of both"
        )
    w = weight._data
    # float16 would overflow soon
    values = x._data.astype(np.promote_types(x.dtype, np.float32), copy=False)
    normed = values - _row_mean(values)
    variance = _row_mean(normed, normed)
    if np.isinf(variance).any():
        raise ValueError("layer_norm: the values are too large, their squares overflow")
    rstd = 1 / np.sqrt(variance + eps)
    normed *= rstd
    out = normed * w
    out += bias._data

    def backward(g: Array) -> Grads:
        g_normed = g * normed
        grad = g * w
        grad -= _row_mean(grad)
        grad -= normed * _row_mean(g_normed, w)
        grad *= rstd
        return grad, g_normed, g

    return _result(out.astype(x.dtype, copy=False), (x, weight, bias), backward, "layer_norm")


@_no_new_nan
def cross_entropy(logits: ArrayLike, targets: ArrayLike, ignore_index: int = -100) -> Tensor:
    """Mean of −log softmax(logits)[target] over the targets that are not ignored.

    Parameters
    ----------
    logits : Tensor [..., C]
        Scores for C classes on the last axis (PyTorch puts C on axis 1).
    targets : integers [...]
        The right class of each position, or `ignore_index`: such a position counts for nothing.

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
    ids = np.array(_plain(targets))
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


def unbroadcast(g: Array, shape: tuple[int, ...]) -> Array:
    """Sum a gradient over the axes along which an operand of `shape` was repeated.

    If one value was used for many results, each of them sends a gradient back; they add up.
    Raises ValueError if `shape` does not broadcast to that of g.
    """
    if g.shape == shape:
        return g
    new = g.ndim - len(shape)  # axes that the operand did not have
    if new > 0:  # summed as a matrix product, which is faster than .sum
        n, rest = math.prod(g.shape[:new]), g.shape[new:]
        g = (np.ones(n, g.dtype) @ g.reshape(n, math.prod(rest))).reshape(rest)
    repeated = tuple([i for i, n in enumerate(shape[: g.ndim]) if n == 1 and g.shape[i] != 1])
    if repeated:
        g = g.sum(axis=repeated, keepdims=True)
    if g.shape != shape:
        raise ValueError(f"unbroadcast: {list(shape)} does not broadcast to the gradient's shape")
    return g


def check_gradients(
    fn: Callable[..., Tensor], *inputs: ArrayLike, eps: float = 1e-6, tolerance: float = 1e-6
) -> bool:
    """Compare `fn`'s gradients with central differences, for every element of every input.

    Each element x is moved by ± eps, (f(x + eps) − f(x − eps)) / 2 eps is compared with what
    `backward` gives (error of order eps²). A result of many values is first reduced to one by
    fixed weights, all different, so that no value can hide another.

    Parameters
    ----------
    fn : callable
        Takes the inputs as Tensors, returns a Tensor.
    *inputs : Tensor, float64
        Where to check. They are not changed.
    eps : float
        The step.
    tolerance : float
        The largest difference accepted, relative to 1 + |numeric|.

    Returns
    -------
    bool
        Whether all agree; if not, the first element that differs is printed.

    Raises
    ------
    TypeError
        If an input is not float64: in float32 the rounding drowns the difference.
    """
    arrays = [np.array(_plain(x)) for x in inputs]
    if not arrays or any(array.dtype != np.float64 for array in arrays):
        raise TypeError(
            f"check_gradients: needs float64 inputs, got {[str(a.dtype) for a in arrays]}; "
            "in float32 rounding is larger than the differences that are measured"
        )

    def value(*tensors: Tensor) -> Tensor:
        out = fn(*tensors)
        return (out * np.cos(np.arange(out.data.size)).reshape(out.shape)).sum()

    leaves = [Tensor(array, requires_grad=True) for array in arrays]
    value(*leaves).backward()
    for n, (array, leaf) in enumerate(zip(arrays, leaves, strict=True)):
        found = np.zeros_like(array) if leaf.grad is None else leaf.grad
        for at in np.ndindex(array.shape):

            def moved(step: float, n: int = n, at: tuple[int, ...] = at) -> float:
                inputs = [array.copy() for array in arrays]
                inputs[n][at] += step
                with no_grad():
                    return float(value(*map(Tensor, inputs)))

            numeric = (moved(eps) - moved(-eps)) / (2 * eps)
            if not abs(found[at] - numeric) <= tolerance * (1 + abs(numeric)):
                print(
                    f"input {n} at {list(at)}: backward gives {found[at]:.6g}, "
                    f"finite differences {numeric:.6g}"
                )
                return False
    return True


# -- behind the scenes -----------------------------------------------------------------------------


def _result(
    data: Array, parents: tuple[Tensor, ...], backward: Callable[[Array], Grads] | None, op: str
) -> Tensor:
    """Wrap what an operation computed; remember how only if a gradient may come back."""
    out = Tensor.__new__(Tensor)
    out._data = np.asarray(data)
    out._data.setflags(write=False)
    out.grad, out._retain, out._op = None, False, op
    out._requires_grad = _recording.get() and any([p._requires_grad for p in parents])
    out._parents, out._backward = (parents, backward) if out._requires_grad else ((), None)
    return out


def _already_walked(_: Any = None) -> NoReturn:
    raise RuntimeError(
        "backward: this graph was walked before and has been freed; compute the result again, "
        "or add the losses up and call backward once"
    )


def _to_array(data: ArrayLike, dtype: DTypeLike | None = None, beside: Any = None) -> Array:
    """Copy `data` into an array of a dtype that tensors have, or say why that can't be.

    Numbers and lists take the dtype `beside` if that is given.
    """
    try:
        array = np.array(_plain(data))
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
        raise TypeError(f"Tensor: {error}; round first if you mean whole numbers") from None


def _plain(value: Any) -> Any:
    return value._data if isinstance(value, Tensor) else value


def _beside(other: Any, value: ArrayLike) -> Tensor:
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
    tensors = list(tensors)
    if not tensors:
        raise ValueError(f"{op}: needs at least one tensor")
    tensors = [_beside(tensors[0], t) for t in tensors]
    dtype = _common_dtype(*tensors)
    return tuple([_cast(t, dtype) for t in tensors])


def _rows(x: Array) -> Array:
    """[..., D] as [N, D]."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _row_mean(x: Array, weight: Array | None = None) -> Array:
    """The mean over the last axis of x, or of x · weight: faster than .mean, and no array made."""
    total = np.einsum("...d->...", x) if weight is None else np.einsum("...d,...d->...", x, weight)
    return total[..., None] / x.shape[-1]


def _product(x: Array, y: Array) -> Array:
    if x.ndim > 2 and y.ndim == 2:  # one large product is faster than many small ones
        return (_rows(x) @ y).reshape(*x.shape[:-1], y.shape[-1])
    return x @ y


def _matmul(x: Array, y: Array) -> Array:
    """x @ y, for a forward: refuse a new NaN here, not where some later operation meets it."""
    with np.errstate(all="ignore"):  # some BLAS builds raise floating-point flags without cause
        out = _product(x, y)
    if np.isnan(np.maximum.reduce(out, axis=None, initial=0)):
        if not (np.isnan(x).any() or np.isnan(y).any()):
            raise ValueError("matmul: this makes NaN: 0 · inf or inf − inf")
    return out


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


def _count(op: str, shape: tuple[int, ...], dims: tuple[int, ...]) -> int:
    count = math.prod(shape[d] for d in dims)
    if count == 0:
        raise ValueError(f"{op}: there are no values in shape {list(shape)}")
    return count


def _unpack(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else args


def _fixed(index: Any) -> Any:
    """Part of an index that nobody else can change: Tensors and lists as arrays, arrays copied."""
    if not isinstance(index, (Tensor, np.ndarray, list)):
        return index
    array = np.array(_plain(index))
    return array.astype(np.int64) if isinstance(index, list) and not index else array


def _row_ids(op: str, ids: ArrayLike, n: int) -> Array:
    ids = np.array(_plain(ids))
    if ids.size == 0:
        ids = ids.astype(np.int64)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"{op}: ids must be whole numbers, got {ids.dtype}")
    bad = ids[(ids < 0) | (ids >= n)]
    if bad.size:
        raise IndexError(f"{op}: there is no id {bad[0]} among {n} (0 … {n - 1})")
    return ids


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
