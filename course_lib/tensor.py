"""A NumPy array that remembers how it was made, and can hand gradients back along the way.

Every operation below reads the same way: compute the result (forward), then say how a gradient of
the result turns into gradients of what it was made from (backward). `Tensor.backward` walks these
records from last to first: reverse-mode automatic differentiation (Griewank & Walther, *Evaluating
Derivatives*, 2nd ed., ch. 3).
"""

from __future__ import annotations

import contextlib
import contextvars
import math

import numpy as np

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

_recording = contextvars.ContextVar("recording", default=True)


@contextlib.contextmanager
def no_grad():
    """Inside this block (or a function it decorates) operations are computed but not recorded."""
    token = _recording.set(False)
    try:
        yield
    finally:
        _recording.reset(token)


class Tensor:
    """An array of numbers with a memory of the operation that made it.

    Parameters
    ----------
    data : number, nested list, ndarray or Tensor
        The values; they are copied. Python numbers and lists of fractions become float32; NumPy's
        float16, float32 and float64 arrays keep their dtype; integers become int64; booleans stay.
    requires_grad : bool
        Whether `backward` shall leave a gradient in `grad`. Only for floating-point tensors.
    dtype : numpy dtype, optional
        Overrides the rule above.

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
        For values that are not numbers, and for ``requires_grad=True`` on integers or booleans.
    ValueError
        For ragged lists and for numbers that do not fit in the dtype.
    """

    __slots__ = (
        "__weakref__",
        "_backward",
        "_data",
        "_op",
        "_parents",
        "_retain",
        "grad",
        "requires_grad",
    )
    __array_ufunc__ = None  # makes `ndarray + Tensor` ask Tensor.__radd__, not loop over elements
    __hash__ = object.__hash__  # `==` compares elements, so Python would drop the default hash

    def __init__(self, data, *, requires_grad=False, dtype=None):
        self._data = _frozen(_to_array(data, dtype))
        if requires_grad and self._data.dtype.kind != "f":
            raise TypeError(
                f"Tensor: requires_grad=True needs floating-point values, not {self.dtype}; "
                "a gradient of whole numbers has no meaning. Write 2.0 instead of 2?"
            )
        self.requires_grad = bool(requires_grad)
        self.grad = None
        self._parents, self._backward, self._op, self._retain = (), None, "leaf", False

    @property
    def data(self):
        return self._data

    @data.setter
    def data(self, value):
        array = _to_array(value, self.dtype)
        if array.shape != self.shape:
            raise ValueError(
                f"data: {_dims_text(array.shape)} can't replace {_dims_text(self.shape)}; "
                "a tensor keeps its shape. Did a gradient broadcast?"
            )
        self._data = _frozen(array)

    @property
    def shape(self):
        return self._data.shape

    @property
    def ndim(self):
        return self._data.ndim

    @property
    def dtype(self):
        return self._data.dtype

    def item(self):
        """Return the one value of a one-element tensor as a Python number."""
        if self._data.size != 1:
            raise ValueError(f"item: needs exactly one value, got shape {_dims_text(self.shape)}")
        return self._data.item()

    def detach(self):
        """Return a tensor with the same values that no gradient flows through."""
        return _result(self._data, (), None, "detach")

    def retain_grad(self):
        """Ask `backward` to leave a gradient here too, although this tensor was computed."""
        if not self.requires_grad:
            raise RuntimeError("retain_grad: this tensor is a constant; no gradient reaches it")
        self._retain = True

    # -- the walk back ---------------------------------------------------------------------------

    def backward(self, gradient=None):
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
            If `gradient` has another shape, or if a backward makes a NaN out of numbers.
        """
        order = self._tape()
        arriving = {id(self): self._seed(gradient)}
        leaves = []
        while order:
            node = order.pop()
            g = arriving.pop(id(node))
            if node._backward is None or node._retain:
                leaves.append((node, g))
            if node._backward is None:
                continue
            with _nan_is_an_error(f"the backward of {node._op}"):
                grads = node._backward(g)
            for parent, grad in zip(node._parents, grads, strict=True):
                if parent.requires_grad:
                    grad = grad.astype(parent.dtype, copy=False)
                    seen = arriving.get(id(parent))
                    # not in place: two parents may have been handed the same array
                    arriving[id(parent)] = grad if seen is None else seen + grad
            node._parents, node._backward = (), _already_walked
        for node, g in leaves:
            node.grad = np.array(g) if node.grad is None else node.grad + g

    def _tape(self):
        """List self and all it was made from, each after everything that it was made from."""
        if not self.requires_grad:
            raise RuntimeError(
                "backward: this tensor is a constant: nothing it was made from has "
                "requires_grad=True (or it was computed inside no_grad)"
            )
        order, visited, stack = [], set(), [(self, False)]
        while stack:
            node, done = stack.pop()
            if done:
                order.append(node)
            elif id(node) not in visited:
                if node._backward is _already_walked:
                    _already_walked(None)
                visited.add(id(node))
                stack.append((node, True))
                stack.extend((p, False) for p in node._parents if p.requires_grad)
        return order

    def _seed(self, gradient):
        if gradient is None:
            if self._data.size != 1:
                raise RuntimeError(
                    f"backward: the result has shape {_dims_text(self.shape)}, not one value; "
                    "pass a gradient of that shape, or reduce it first (.sum() or .mean())"
                )
            return np.ones_like(self._data)
        seed = _to_array(gradient, self.dtype)
        if seed.shape != self.shape:
            raise ValueError(
                f"backward: the gradient has shape {_dims_text(seed.shape)}, "
                f"the result {_dims_text(self.shape)}; they must be equal"
            )
        return seed

    # -- arithmetic ------------------------------------------------------------------------------

    def __add__(self, other):
        a, b = _operands("add", self, other)
        with _nan_is_an_error("add"):
            out = a._data + b._data
        return _result(
            out, (a, b), lambda g: (unbroadcast(g, a.shape), unbroadcast(g, b.shape)), "add"
        )

    def __sub__(self, other):
        a, b = _operands("sub", self, other)
        with _nan_is_an_error("sub"):
            out = a._data - b._data
        return _result(
            out, (a, b), lambda g: (unbroadcast(g, a.shape), unbroadcast(-g, b.shape)), "sub"
        )

    def __mul__(self, other):
        a, b = _operands("mul", self, other)
        with _nan_is_an_error("mul"):
            out = a._data * b._data

        def backward(g):
            return _for(a, lambda: g * b._data), _for(b, lambda: g * a._data)

        return _result(out, (a, b), backward, "mul")

    def __truediv__(self, other):
        a, b = _operands("div", self, other)
        with _nan_is_an_error("div"):
            out = a._data / b._data

        def backward(g):
            return _for(a, lambda: g / b._data), _for(b, lambda: -g * out / b._data)

        return _result(out, (a, b), backward, "div")

    def __pow__(self, other):
        a, b = _operands("pow", self, other)
        with _nan_is_an_error("pow"):
            out = a._data**b._data

        def backward(g):
            x, n = a._data, b._data
            # x⁰ is constant; without the test, 0 · 0⁻¹ would be NaN at x = 0
            slope = np.where(n == 0, 0, n * np.where(n == 0, 1, x) ** (n - 1))
            log_x = np.log(np.where(x > 0, x, 1))
            return _for(a, lambda: g * slope), _for(b, lambda: g * out * log_x)

        return _result(out, (a, b), backward, "pow")

    def __neg__(self):
        return self * -1

    def __radd__(self, other):
        return _operands("add", other, self)[0] + self

    def __rsub__(self, other):
        return _operands("sub", other, self)[0] - self

    def __rmul__(self, other):
        return _operands("mul", other, self)[0] * self

    def __rtruediv__(self, other):
        return _operands("div", other, self)[0] / self

    def __rpow__(self, other):
        return _operands("pow", other, self)[0] ** self

    def __rmatmul__(self, other):
        return _operands("matmul", other, self)[0] @ self

    def __matmul__(self, other):
        a, b = _operands("matmul", self, other)
        _check_matmul(a.shape, b.shape)
        out = _matmul(a._data, b._data)

        def backward(g):
            x = a._data[None, :] if a.ndim == 1 else a._data  # [..., M, K]
            y = b._data[:, None] if b.ndim == 1 else b._data  # [..., K, N]
            g = g[..., None] if b.ndim == 1 else g
            g = g[..., None, :] if a.ndim == 1 else g  # [..., M, N]
            grad_a = grad_b = None
            if a.requires_grad:
                grad_a = unbroadcast(_matmul(g, y.mT), x.shape).reshape(a.shape)
            if b.requires_grad and b.ndim == 2:  # one large product sums over the batch too
                grad_b = x.reshape(-1, x.shape[-1]).T @ g.reshape(-1, g.shape[-1])
            elif b.requires_grad:
                grad_b = unbroadcast(_matmul(x.mT, g), y.shape).reshape(b.shape)
            return grad_a, grad_b

        return _result(out, (a, b), backward, "matmul")

    def _refuse_in_place(self, other):
        if self.requires_grad and self._backward is None:
            raise TypeError(
                "a tensor with requires_grad=True can't be changed in place; to move a parameter "
                "write w.data = w.data - lr * w.grad"
            )
        return NotImplemented  # Python then computes x = x + other, a new tensor

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ipow__ = __imatmul__ = _refuse_in_place

    # -- comparisons: booleans, which no gradient flows through ----------------------------------

    def __eq__(self, other):
        return _compare(np.equal, self, other)

    def __ne__(self, other):
        return _compare(np.not_equal, self, other)

    def __lt__(self, other):
        return _compare(np.less, self, other)

    def __le__(self, other):
        return _compare(np.less_equal, self, other)

    def __gt__(self, other):
        return _compare(np.greater, self, other)

    def __ge__(self, other):
        return _compare(np.greater_equal, self, other)

    # -- one value at a time ---------------------------------------------------------------------

    def exp(self):
        x = _floating("exp", self)
        with np.errstate(over="ignore"):
            out = np.exp(x._data)
        return _result(out, (x,), lambda g: (g * out,), "exp")

    def log(self):
        x = _floating("log", self)
        with _nan_is_an_error("log"):
            out = np.log(x._data)
        return _result(out, (x,), lambda g: (g / x._data,), "log")

    def sqrt(self):
        x = _floating("sqrt", self)
        with _nan_is_an_error("sqrt"):
            out = np.sqrt(x._data)
        return _result(out, (x,), lambda g: (g / (2 * out),), "sqrt")

    def tanh(self):
        x = _floating("tanh", self)
        out = np.tanh(x._data)
        return _result(out, (x,), lambda g: (g * (1 - out * out),), "tanh")

    def relu(self):
        x = _floating("relu", self)
        return _result(np.maximum(x._data, 0), (x,), lambda g: (g * (x._data > 0),), "relu")

    def gelu(self):
        """½x(1 + tanh(√(2/π)(x + 0.044715x³))): Hendrycks & Gimpel 2016, §2; GPT-2's form.

        PyTorch's ``gelu(approximate="tanh")``. Shape and dtype as self.
        """
        x = _floating("gelu", self)
        c = math.sqrt(2 / math.pi)
        with np.errstate(over="ignore"):
            gate = x._data * x._data  # x**3 would be a hundred times slower than products
            gate *= 0.044715 * c
            gate += c
            gate *= x._data
        gate = np.tanh(gate)
        gate += 1
        gate *= 0.5  # ½(1 + tanh(…)), between 0 and 1
        out = x._data * gate

        def backward(g):
            # (x · gate)' = gate + x · gate', where 1 − tanh² = 4 gate (1 − gate)
            slope = x._data * x._data
            slope *= 6 * 0.044715 * c
            slope += 2 * c
            slope *= 1 - gate
            slope *= out
            slope += gate
            slope *= g
            return (slope,)

        return _result(out, (x,), backward, "gelu")

    # -- many values to fewer --------------------------------------------------------------------

    def sum(self, dim=None, keepdim=False):
        dims = _dims("sum", dim, self.ndim)
        out = self._data.sum(axis=dims, keepdims=keepdim)

        def backward(g):
            return (np.broadcast_to(g if keepdim else np.expand_dims(g, dims), self.shape),)

        return _result(out, (self,), backward, "sum")

    def mean(self, dim=None, keepdim=False):
        x = _floating("mean", self)
        count = _count("mean", x.shape, _dims("mean", dim, x.ndim))
        return x.sum(dim, keepdim) / count

    def var(self, dim=None, keepdim=False, correction=1):
        """Variance over `dim`: Σ(x − mean)² / (count − correction), PyTorch's default of 1.

        Raises ValueError where count ≤ correction, which would be 0/0.
        """
        x = _floating("var", self)
        count = _count("var", x.shape, _dims("var", dim, x.ndim))
        if count <= correction:
            raise ValueError(
                f"var: {count} value(s) with correction={correction} leave nothing to divide by; "
                "take more values, or correction=0"
            )
        centered = x - x.mean(dim, keepdim=True)
        return (centered * centered).sum(dim, keepdim) / (count - correction)

    def max(self, dim=None, keepdim=False):
        """Largest value over `dim` (values only, as `torch.amax`); ties share the gradient."""
        dims = _dims("max", dim, self.ndim)
        _count("max", self.shape, dims)
        top = self._data.max(axis=dims, keepdims=True)
        out = top if keepdim else np.squeeze(top, axis=dims)

        def backward(g):
            at_top = self._data == top
            share = at_top / at_top.sum(axis=dims, keepdims=True)
            return ((g if keepdim else np.expand_dims(g, dims)) * share,)

        return _result(out, (self,), backward, "max")

    def logsumexp(self, dim, keepdim=False):
        """log Σ exp(x) over `dim`, with the maximum taken out first so that nothing overflows."""
        x, dims = _floating("logsumexp", self), _dims("logsumexp", dim, self.ndim)
        e, total, top = _shifted_exp("logsumexp", x._data, dims)
        with np.errstate(divide="ignore"):
            kept = np.log(total) + top
        out = kept if keepdim else np.squeeze(kept, axis=dims)

        def backward(g):
            g = g if keepdim else np.expand_dims(g, dims)
            return (g * e / np.where(total == 0, 1, total),)

        return _result(out, (x,), backward, "logsumexp")

    # -- weights from scores ---------------------------------------------------------------------

    def softmax(self, dim):
        """exp(x) / Σ exp(x) over `dim`: values ≥ 0 that sum to 1 (Bridle 1990).

        The maximum is subtracted first, which changes nothing but what can overflow. Where every
        entry is −inf the result is 0, not 0/0; so is its gradient. Raises ValueError on +inf.
        """
        x, dims = _floating("softmax", self), _dims("softmax", dim, self.ndim)
        s, total, _ = _shifted_exp("softmax", x._data, dims)
        s /= np.where(total == 0, 1, total)

        def backward(g):
            # ∂x_i = s_i (g_i − Σ_j g_j s_j)
            return (s * (g - (g * s).sum(axis=dims, keepdims=True)),)

        return _result(s, (x,), backward, "softmax")

    def log_softmax(self, dim):
        """log(softmax(x)), computed as x − logsumexp(x) so that a small weight is not rounded to 0.

        Where every entry is −inf the result is −inf and the gradient 0.
        """
        x, dims = _floating("log_softmax", self), _dims("log_softmax", dim, self.ndim)
        e, total, top = _shifted_exp("log_softmax", x._data, dims)
        safe = np.where(total == 0, 1, total)
        out = x._data - (np.log(safe) + top)

        def backward(g):
            s = e / safe
            # an all −inf row has s = 0 everywhere; no gradient may pass there
            return (np.where(total == 0, 0, g - s * g.sum(axis=dims, keepdims=True)),)

        return _result(out, (x,), backward, "log_softmax")

    # -- the same values, arranged otherwise -----------------------------------------------------

    def reshape(self, *shape):
        shape = _unpack(shape)
        try:
            out = self._data.reshape(shape)
        except (TypeError, ValueError):
            raise ValueError(
                f"reshape: {_dims_text(self.shape)} holds {self._data.size} values, "
                f"{_dims_text(shape)} does not fit them"
            ) from None
        return _result(out, (self,), lambda g: (g.reshape(self.shape),), "reshape")

    def permute(self, *dims):
        dims = _dims("permute", _unpack(dims), self.ndim)
        if len(dims) != self.ndim:
            raise ValueError(
                f"permute: {list(dims)} must name each of the {self.ndim} axes of "
                f"{_dims_text(self.shape)} once"
            )
        back = np.argsort(dims)
        return _result(
            self._data.transpose(dims), (self,), lambda g: (g.transpose(back),), "permute"
        )

    def transpose(self, dim0, dim1):
        (a,), (b,) = _dims("transpose", dim0, self.ndim), _dims("transpose", dim1, self.ndim)
        return _result(
            self._data.swapaxes(a, b), (self,), lambda g: (g.swapaxes(a, b),), "transpose"
        )

    @property
    def mT(self):
        """The last two axes swapped: a matrix, or each matrix of a batch, transposed."""
        if self.ndim < 2:
            raise ValueError(f"mT: needs at least two axes, got shape {_dims_text(self.shape)}")
        return self.transpose(-2, -1)

    @property
    def T(self):
        """A matrix transposed. For a batch of matrices use `mT`."""
        if self.ndim != 2:
            raise ValueError(f"T: needs a matrix, got {_dims_text(self.shape)}; did you mean mT?")
        return self.transpose(0, 1)

    def __getitem__(self, index):
        index = tuple(_plain(i) for i in index) if isinstance(index, tuple) else _plain(index)
        try:
            out = self._data[index]
        except IndexError as error:
            raise IndexError(f"index into {_dims_text(self.shape)}: {error}") from None

        def backward(g):
            grad = np.zeros_like(self._data)
            np.add.at(grad, index, g)  # `grad[index] += g` would lose repeated positions
            return (grad,)

        return _result(out, (self,), backward, "index")

    def __setitem__(self, index, value):
        raise TypeError(
            "a tensor's values can't be set in place, a backward may need them; "
            "use where(condition, a, b) or masked_fill(mask, value)"
        )

    def masked_fill(self, mask, value):
        """Return self with `value` wherever the boolean `mask` is True (PyTorch's polarity)."""
        return where(mask, value, self)

    # -- Python's own protocols ------------------------------------------------------------------

    def __len__(self):
        if self.ndim == 0:
            raise TypeError("len: a tensor with no axes (one number) has no length")
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __float__(self):
        return float(self.item())

    def __bool__(self):
        if self._data.size != 1:
            raise ValueError(
                f"bool: shape {_dims_text(self.shape)} is not one truth value; "
                "use .data.all() or .data.any()"
            )
        return bool(self._data.item())

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad:
            raise TypeError(
                "this tensor requires a gradient, and NumPy would forget how it was made; "
                "use Tensor operations, or .data (or .detach()) if you mean the values alone"
            )
        return np.array(self._data, dtype=dtype)

    def __repr__(self):
        values = np.round(self._data, 4) + 0 if self.dtype.kind == "f" else self._data
        with np.printoptions(
            precision=4, threshold=30, edgeitems=2, linewidth=88, suppress=True, sign="-",
            floatmode="maxprec", nanstr="nan", infstr="inf", formatter=None, legacy=False,
        ):  # fmt: skip
            text = np.array2string(values, separator=", ", prefix="Tensor(")
        default = self.dtype in (np.float32, np.int64, np.bool_)
        parts = [text, f"shape={_dims_text(self.shape)}"] if self.ndim else [text]
        parts += [] if default else [f"dtype={self.dtype}"]
        parts += ["requires_grad=True"] if self.requires_grad else []
        return f"Tensor({', '.join(parts)})"


# -- functions of several tensors ----------------------------------------------------------------


def where(condition, a, b):
    """Take `a` where the boolean `condition` is True and `b` elsewhere, all three broadcast.

    Raises TypeError if `condition` is not boolean, ValueError if the shapes do not broadcast.
    """
    keep = _plain(condition)
    if getattr(keep, "dtype", None) != np.bool_:
        raise TypeError(
            f"where: the condition must be boolean, got {getattr(keep, 'dtype', type(keep))}; "
            "write a comparison such as mask == 0"
        )
    a, b = _operands("where", a, b)
    _check_broadcast("where", keep.shape, np.broadcast_shapes(a.shape, b.shape))
    keep = keep.copy()

    def backward(g):
        return unbroadcast(np.where(keep, g, 0), a.shape), unbroadcast(
            np.where(keep, 0, g), b.shape
        )

    return _result(np.where(keep, a._data, b._data), (a, b), backward, "where")


def cat(tensors, dim=0):
    """Join tensors along an axis they have; all other axes must be equal."""
    tensors = _same_dtype("cat", tensors)
    (axis,) = _dims("cat", dim, tensors[0].ndim)
    try:
        out = np.concatenate([t._data for t in tensors], axis=axis)
    except ValueError:
        shapes = ", ".join(_dims_text(t.shape) for t in tensors)
        raise ValueError(f"cat: along axis {axis}, {shapes} differ in another axis") from None
    ends = np.cumsum([t.shape[axis] for t in tensors])[:-1]
    return _result(out, tuple(tensors), lambda g: np.split(g, ends, axis=axis), "cat")


def stack(tensors, dim=0):
    """Join tensors of one shape along a new axis."""
    tensors = _same_dtype("stack", tensors)
    if len({t.shape for t in tensors}) > 1:
        shapes = ", ".join(_dims_text(t.shape) for t in tensors)
        raise ValueError(f"stack: all shapes must be equal, got {shapes}; did you mean cat?")
    (axis,) = _dims("stack", dim, tensors[0].ndim + 1)
    out = np.stack([t._data for t in tensors], axis=axis)
    return _result(out, tuple(tensors), lambda g: list(np.moveaxis(g, axis, 0)), "stack")


def embedding(ids, weight):
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
    TypeError, IndexError
        For ids that are not integers, or that have no row.
    """
    ids = _integer_ids("embedding", ids, len(weight))

    def backward(g):
        flat, rows = ids.ravel(), g.reshape(-1, *weight.shape[1:])
        # `grad[ids] += g` would lose repeated ids, np.add.at is slow: sort, then add up each run
        order = np.argsort(flat, kind="stable")
        seen, starts = np.unique(flat[order], return_index=True)
        grad = np.zeros_like(weight._data)
        grad[seen] = np.add.reduceat(rows[order], starts, axis=0)
        return (grad,)

    return _result(weight._data[ids], (weight,), backward, "embedding")


def layer_norm(x, weight, bias, eps=1e-5):
    """(x − mean) / √(var + eps) · weight + bias over the last axis (Ba et al. 2016, eq. 3–4).

    x is [..., D], `weight` and `bias` [D]; the variance divides by D. Returns [..., D]. Raises
    ValueError where the last axis is not D.
    """
    if x.ndim == 0 or x.shape[-1:] != weight.shape or weight.shape != bias.shape:
        raise ValueError(
            f"layer_norm: x {_dims_text(x.shape)}, weight {_dims_text(weight.shape)}, bias "
            f"{_dims_text(bias.shape)}: the last axis of x must be the one axis of both"
        )
    mean = np.full((x.shape[-1], 1), 1 / x.shape[-1], x.dtype)  # x @ mean: faster than x.mean(-1)
    normed = x._data - x._data @ mean
    rstd = 1 / np.sqrt((normed * normed) @ mean + x.dtype.type(eps))
    normed *= rstd
    out = normed * weight._data
    out += bias._data

    def backward(g):
        dx = g * weight._data
        along = (dx * normed) @ mean
        dx -= dx @ mean
        dx -= normed * along
        dx *= rstd
        return dx, _sum_rows(g * normed), _sum_rows(g)

    return _result(out, (x, weight, bias), backward, "layer_norm")


def linear(x, weight, bias):
    """x @ weight + bias as one operation: x [..., D], weight [D, E], bias [E]; returns [..., E]."""
    x = _floating("linear", x)
    out = _matmul(x._data, weight._data)
    out += bias._data

    def backward(g):
        rows, g_rows = x._data.reshape(-1, weight.shape[0]), g.reshape(-1, weight.shape[1])
        dx = _matmul(g, weight._data.T) if x.requires_grad else None
        return dx, rows.T @ g_rows, _sum_rows(g)

    return _result(out, (x, weight, bias), backward, "linear")


def cross_entropy(logits, targets, ignore_index=-100):
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
    ids = np.asarray(_plain(targets))
    if ids.shape != logits.shape[:-1]:
        raise ValueError(
            f"cross_entropy: logits {_dims_text(logits.shape)} need targets "
            f"{_dims_text(logits.shape[:-1])}, got {_dims_text(ids.shape)}"
        )
    kept = ids != ignore_index
    count = int(kept.sum())
    if count == 0:
        raise ValueError(
            f"cross_entropy: all {ids.size} targets are ignored (ignore_index={ignore_index}); "
            "there is nothing to average"
        )
    ids = _integer_ids("cross_entropy", np.where(kept, ids, 0), logits.shape[-1])
    e, total, top = _shifted_exp("cross_entropy", _floating("cross_entropy", logits)._data, (-1,))
    at = ids[..., None]
    picked = np.take_along_axis(logits._data, at, axis=-1)
    with _nan_is_an_error("cross_entropy"):
        losses = (np.log(total) + top - picked)[..., 0]
    out = np.where(kept, losses, 0).sum(dtype=losses.dtype) / losses.dtype.type(count)

    def backward(g):
        grad = e / total
        np.put_along_axis(grad, at, np.take_along_axis(grad, at, axis=-1) - 1, axis=-1)
        return (grad * (kept[..., None] * (g / count)),)

    return _result(out, (logits,), backward, "cross_entropy")


def unbroadcast(g, shape):
    """Sum a gradient over the axes along which an operand of `shape` was repeated.

    If one value was used for many results, each of them sends a gradient back; they add up.
    """
    if g.shape == shape:
        return g
    g = g.sum(axis=tuple(range(g.ndim - len(shape))))
    repeated = tuple(i for i, n in enumerate(shape) if n == 1 and g.shape[i] != 1)
    return g.sum(axis=repeated, keepdims=True)


def check_gradients(fn, *inputs, eps=1e-6, tolerance=1e-6):
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
    arrays = [np.array(x.data if isinstance(x, Tensor) else x) for x in inputs]
    if not arrays or any(a.dtype != np.float64 for a in arrays):
        raise TypeError(
            f"check_gradients: needs float64 inputs, got {[str(a.dtype) for a in arrays]}; "
            "in float32 rounding is larger than the differences that are measured"
        )

    def value(*tensors):
        out = fn(*tensors)
        weights = np.cos(np.arange(out._data.size)).reshape(out.shape)
        return (out * weights).sum()

    leaves = [Tensor(a, requires_grad=True) for a in arrays]
    value(*leaves).backward()
    for n, (array, leaf) in enumerate(zip(arrays, leaves, strict=True)):
        found = np.zeros_like(array) if leaf.grad is None else leaf.grad
        for at in np.ndindex(array.shape):
            sides = []
            for step in (eps, -eps):
                moved = array.copy()
                moved[at] += step
                with no_grad():
                    sides.append(
                        value(*[Tensor(moved if m == n else a) for m, a in enumerate(arrays)])
                    )
            numeric = (sides[0].item() - sides[1].item()) / (2 * eps)
            if not abs(found[at] - numeric) <= tolerance * (1 + abs(numeric)):
                print(
                    f"input {n} at {list(at)}: backward gives {found[at]:.6g}, "
                    f"finite differences {numeric:.6g}"
                )
                return False
    return True


# -- behind the scenes -----------------------------------------------------------------------------


def _result(data, parents, backward, op):
    """Wrap what an operation computed; remember how only if a gradient may come back."""
    out = Tensor.__new__(Tensor)
    out._data = _frozen(np.asarray(data))
    out.grad, out._retain, out._op = None, False, op
    out.requires_grad = _recording.get() and any(p.requires_grad for p in parents)
    out._parents, out._backward = (parents, backward) if out.requires_grad else ((), None)
    return out


def _already_walked(_):
    raise RuntimeError(
        "backward: this graph was walked before and has been freed; compute the result again, "
        "or add the losses up and call backward once"
    )


def _frozen(array):
    array.flags.writeable = False
    return array


def _to_array(data, dtype=None):
    """Copy `data` into an array of a dtype that tensors have, or say why that can't be."""
    data = data._data if isinstance(data, Tensor) else data
    try:
        with np.errstate(over="raise"):
            array = np.array(data, dtype=dtype)
            if dtype is None and array.dtype.kind in "iuf":
                from_python = not isinstance(data, (np.ndarray, np.generic))
                array = array.astype(_kept_dtype(array.dtype, from_python), copy=False)
    except FloatingPointError:
        raise ValueError(
            "Tensor: a value is too large for its dtype; pass dtype=np.float64"
        ) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"Tensor: can't make an array of numbers of this: {error}") from None
    if array.dtype.kind not in "fib" or array.dtype.itemsize > 8:
        raise TypeError(f"Tensor: needs real numbers or booleans, got dtype {array.dtype}")
    return array


def _kept_dtype(dtype, from_python):
    if dtype.kind in "iu":
        return np.int64
    return np.float32 if from_python else dtype


def _plain(value):
    """The array behind a Tensor; a list as an array; anything else (slice, None, int) as it is."""
    if isinstance(value, Tensor):
        return value._data
    return np.asarray(value) if isinstance(value, (list, bool, np.bool_)) else value


def _operands(op, a, b):
    """Make Tensors of one dtype of both sides; a bare number takes the dtype of the other side."""
    sides = [a, b]
    for i in (0, 1):
        if not isinstance(sides[i], Tensor):
            other = sides[1 - i]
            weak = isinstance(sides[i], (int, float, np.generic)) and isinstance(other, Tensor)
            sides[i] = _number(op, sides[i], other) if weak else Tensor(sides[i])
    a, b = sides
    if op in ("add", "sub") and np.bool_ in (a.dtype, b.dtype):
        raise TypeError(
            f"{op}: one side is boolean. True would count as 1, which masks nothing; use "
            "masked_fill(mask, value) or where(mask, a, b), or an additive mask of 0 and -inf"
        )
    if op not in ("matmul",):
        _check_broadcast(op, a.shape, b.shape)
    dtype = _common_dtype(op, a.dtype, b.dtype)
    return _cast(a, dtype), _cast(b, dtype)


def _number(op, value, like):
    if like.dtype.kind == "f" and not isinstance(value, (bool, np.bool_)):
        return Tensor(value, dtype=like.dtype)
    return Tensor(value.item() if isinstance(value, np.generic) else value)


def _common_dtype(op, a, b):
    floats = [d for d in (a, b) if d.kind == "f"]
    if floats:
        return np.result_type(*floats)  # NumPy alone would make float64 of int64 and float32
    if op == "div":
        return np.dtype(np.float32)
    return np.dtype(np.int64) if op != "where" or a != b else a


def _cast(x, dtype):
    if x.dtype == dtype:
        return x
    return _result(x._data.astype(dtype), (x,), lambda g: (g,), "cast")


def _floating(op, x):
    return x if x.dtype.kind == "f" else _cast(x, np.dtype(np.float32))


def _same_dtype(op, tensors):
    tensors = [t if isinstance(t, Tensor) else Tensor(t) for t in tensors]
    if not tensors:
        raise ValueError(f"{op}: needs at least one tensor")
    dtype = tensors[0].dtype
    for t in tensors[1:]:
        dtype = dtype if dtype == t.dtype else _common_dtype(op, dtype, t.dtype)
    return [_cast(t, dtype) for t in tensors]


def _compare(ufunc, a, b):
    b = b._data if isinstance(b, Tensor) else np.asarray(b)
    _check_broadcast(ufunc.__name__, a.shape, b.shape)
    return _result(ufunc(a._data, b), (), None, ufunc.__name__)


def _for(parent, grad):
    return unbroadcast(grad(), parent.shape) if parent.requires_grad else None


def _matmul(x, y):
    # some BLAS builds raise floating-point flags that mean nothing
    with np.errstate(all="ignore"):
        if x.ndim > 2 and y.ndim == 2:  # one large product is faster than many small ones
            return (x.reshape(-1, x.shape[-1]) @ y).reshape(*x.shape[:-1], y.shape[-1])
        return x @ y


def _sum_rows(g):
    """Sum over all axes but the last, as a matrix product: faster than .sum()."""
    rows = g.reshape(-1, g.shape[-1])
    return np.ones(len(rows), g.dtype) @ rows


def _shifted_exp(op, x, dims):
    """exp(x − max), its sum and the max over `dims`; a row of only −inf has max 0, sum 0."""
    if 0 in [x.shape[d] for d in dims]:
        raise ValueError(f"{op}: an axis of {_dims_text(x.shape)} is empty; nothing to normalize")
    top = x.max(axis=dims, keepdims=True, initial=-np.inf)  # the start value makes it faster
    if np.isposinf(top).any():
        raise ValueError(f"{op}: found +inf; its weight would be inf/inf. Did an exp overflow?")
    top = np.where(np.isneginf(top), top.dtype.type(0), top)
    e = x - top
    np.exp(e, out=e)
    return e, e.sum(axis=dims, keepdims=True), top


@contextlib.contextmanager
def _nan_is_an_error(op):
    """Turn 'a NaN was made out of numbers' into an error; NaNs that were put in pass through."""
    try:
        with np.errstate(invalid="raise", divide="ignore", over="ignore"):
            yield
    except FloatingPointError:
        causes = {
            "log": "the logarithm of a negative number",
            "sqrt": "the square root of a negative number",
            "div": "0/0 or inf/inf; did an exp overflow? (softmax subtracts the maximum first)",
            "pow": "a negative number to a fractional power",
            "mul": "0 · inf",
        }
        raise ValueError(
            f"{op}: this makes NaN: {causes.get(op, 'inf − inf or 0 · inf')}"
        ) from None


def _dims(op, dim, ndim):
    """Axis numbers as a tuple of distinct, non-negative ints; None means all axes."""
    if dim is None:
        return tuple(range(ndim))
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    for d in dims:
        if not isinstance(d, (int, np.integer)) or isinstance(d, bool):
            raise TypeError(f"{op}: an axis is a whole number, got {d!r}")
        if not -ndim <= d < ndim:
            raise IndexError(f"{op}: axis {d} of a tensor with {ndim} axes (0 … {ndim - 1})")
    dims = tuple(int(d) % ndim for d in dims)
    if len(set(dims)) < len(dims):
        raise ValueError(f"{op}: an axis is named twice in {list(dims)}")
    return dims


def _count(op, shape, dims):
    count = math.prod(shape[d] for d in dims)
    if count == 0:
        raise ValueError(f"{op}: there are no values in shape {_dims_text(shape)}")
    return count


def _unpack(args):
    return tuple(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else args


def _dims_text(shape):
    return str(list(shape))


def _integer_ids(op, ids, n):
    ids = np.array(_plain(ids))
    if ids.dtype.kind not in "iu":
        raise TypeError(f"{op}: ids must be whole numbers, got {ids.dtype}")
    bad = ids[(ids < 0) | (ids >= n)]
    if bad.size:
        raise IndexError(f"{op}: id {bad.flat[0]} has no row; there are {n} (0 … {n - 1})")
    return ids


def _check_broadcast(op, a, b):
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        raise ValueError(
            f"{op}: {_dims_text(a)} and {_dims_text(b)} do not broadcast: read from the right, "
            "each pair of sizes must be equal or one of them 1"
        ) from None


def _check_matmul(a, b):
    text = f"matmul: {_dims_text(a)} @ {_dims_text(b)}: "
    if not a or not b:
        raise ValueError(text + "a single number has no rows; did you mean *?")
    inner = b[-2] if len(b) > 1 else b[0]
    if a[-1] != inner:
        fits = [n for n, ok in [("b.mT", len(b) > 1 and a[-1] == b[-1]),
                                ("a.mT", len(a) > 1 and a[-2] == inner)] if ok]  # fmt: skip
        hint = f"; did you mean {' or '.join(fits)}?" if fits else ""
        raise ValueError(f"{text}{a[-1]} ≠ {inner}{hint}")
    _check_broadcast("matmul, the batch axes", a[:-2], b[:-2])
