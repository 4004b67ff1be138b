"""The tape: which operation made what out of what, and the walk back along it.

The walk is reverse-mode automatic differentiation (Griewank & Walther, *Evaluating Derivatives*,
2nd ed., ch. 3). The tape holds no values: what a backward needs, its function has kept, and all
else is freed as soon as nobody uses it.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, Protocol

import numpy as np

from course_lib._arrays import Array, _column_sum

__all__ = ["Grads", "Leaf", "Node", "no_grad", "recording", "unbroadcast", "walk"]

Grads = Iterable[Any]  # an Array for each parent; None where no gradient is wanted
_recording = contextvars.ContextVar("recording", default=True)


class Leaf(Protocol):
    """Where a gradient ends up: a Tensor that no recorded operation made."""

    grad: Array | None

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...


class Node:
    """One recorded operation.

    Parameters
    ----------
    op : str
        Its name.
    result : ndarray
        What it computed; only the shape and the dtype are kept.
    parents : tuple of Node, Leaf or None
        What made its operands; None for an operand that wants no gradient.
    backward : callable
        From the gradient of the result to those of the operands.
    """

    __slots__ = ("backward", "dtype", "op", "parents", "retained_by", "shape")

    def __init__(
        self,
        op: str,
        result: Array,
        parents: tuple[Node | Leaf | None, ...],
        backward: Callable[[Array], Grads],
    ) -> None:
        self.op, self.shape, self.dtype = op, result.shape, result.dtype
        self.parents, self.backward = parents, backward
        self.retained_by: Leaf | None = None  # a Tensor that asked to see this gradient too


@contextlib.contextmanager
def no_grad() -> Iterator[None]:
    """Inside this block (or a function it decorates) operations are computed but not recorded."""
    token = _recording.set(False)
    try:
        yield
    finally:
        _recording.reset(token)


def recording() -> bool:
    """Say whether operations are recorded here: not inside `no_grad`."""
    return _recording.get()


def walk(root: Node | Leaf, seed: Array) -> None:
    """Bring ∂root/∂leaf, times `seed`, to the `grad` of every leaf behind root.

    Takes the operations from last to first, without recursion, and frees each on the way.

    Raises
    ------
    RuntimeError
        If an operation was walked before.
    ValueError
        If a gradient becomes NaN where it was numbers. No `grad` has then been changed.
    """
    arriving: dict[Node | Leaf, Array] = {root: seed}
    ready = [root] if isinstance(root, Node) else []
    uses = _uses(ready)
    op, suspects = "", []
    reached: list[tuple[Any, Array]] = []
    # NumPy calls when a NaN is made, at times without cause; it counts if one arrives
    with np.errstate(all="ignore", invalid="call", call=lambda *_: suspects.append(op)):
        while ready:
            node = ready.pop()
            op, g = node.op, arriving.pop(node)
            if node.retained_by is not None:
                reached.append((node.retained_by, g))
            for parent, grad in zip(node.parents, node.backward(g), strict=True):
                if parent is None:
                    continue
                if grad.shape != parent.shape:
                    grad = unbroadcast(grad, parent.shape)
                if grad.dtype != parent.dtype:
                    grad = grad.astype(parent.dtype)
                # a new sum, not `+=`: two parents may have been handed the same array
                arriving[parent] = arriving[parent] + grad if parent in arriving else grad
                if isinstance(parent, Node):
                    uses[parent] -= 1
                    if uses[parent] == 0:  # all gradients have arrived
                        ready.append(parent)
            node.parents, node.backward, node.retained_by = (), _already_walked, None
        reached += arriving.items()  # what is left has no backward: the leaves
        grads = [
            np.array(g) if leaf.grad is None else np.add(leaf.grad, g, dtype=g.dtype)
            for leaf, g in reached
        ]
    if suspects and any(np.isnan(grad).any() for grad in grads):
        raise ValueError(
            f"backward: the backward of {suspects[0]} makes NaN: 0 · inf, 0/0 or inf − inf; "
            "look for a value that is inf, or for a slope that is (√x and log x at 0)"
        )
    for (leaf, _), grad in zip(reached, grads, strict=True):
        leaf.grad = grad


def _uses(roots: Iterable[Node]) -> dict[Node, int]:
    """Count how many recorded operations behind the roots use each node."""
    uses: dict[Node, int] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.backward is _already_walked:
            _already_walked()
        for parent in node.parents:
            if isinstance(parent, Node):
                if parent not in uses:
                    stack.append(parent)
                uses[parent] = uses.get(parent, 0) + 1
    return uses


def _already_walked(_: Any = None) -> NoReturn:
    raise RuntimeError(
        "backward: this graph was walked before and has been freed; compute the result again, "
        "or add the losses up and call backward once"
    )


def unbroadcast(g: Array, shape: tuple[int, ...]) -> Array:
    """Sum a gradient over the axes along which an operand of `shape` was repeated.

    If one value was used for many results, each of them sends a gradient back; they add up.
    Raises ValueError if `shape` does not broadcast to that of g.
    """
    if g.shape == shape:
        return g
    new = g.ndim - len(shape)  # axes that the operand did not have
    if new > 0:
        n, rest = math.prod(g.shape[:new]), g.shape[new:]
        g = _column_sum(g.reshape(n, math.prod(rest))).reshape(rest)
    repeated = tuple([i for i, n in enumerate(shape[: g.ndim]) if n == 1 and g.shape[i] != 1])
    if repeated:
        g = g.sum(axis=repeated, keepdims=True)
    if g.shape != shape:
        raise ValueError(f"unbroadcast: {list(shape)} does not broadcast to the gradient's shape")
    return g
