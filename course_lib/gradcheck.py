"""Is a gradient right? Compare it with what small moves of each input really do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from course_lib._checks import array_of
from course_lib.tensor import Tensor, _plain, no_grad

__all__ = ["check_gradients"]


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
    ValueError
        If eps is not above 0 and finite.
    TypeError
        If an input is not float64: in float32 the rounding drowns the difference.
    """
    if not 0 < eps < np.inf:
        raise ValueError(f"check_gradients: eps must be above 0 and finite, got {eps!r}")
    arrays = [array_of("check_gradients", _plain(x)).copy() for x in inputs]
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
