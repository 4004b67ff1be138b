"""What layers, models and texts ask of their arguments. All errors name who was called."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from course_lib._arrays import Array


def check_sizes(owner: str, at_least: int = 1, **sizes: object) -> None:
    for name, size in sizes.items():
        whole = isinstance(size, (int, np.integer)) and not isinstance(size, bool)
        if not whole or size < at_least:  # type: ignore[operator]
            raise ValueError(
                f"{owner}: {name} must be a whole number of at least {at_least}, got {size!r}"
            )
        if size >= 2**31:  # type: ignore[operator]
            raise ValueError(f"{owner}: {name} = {size} is more than fits in any memory")


def check_rng(owner: str, rng: object) -> None:
    if not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"{owner}: rng must be a NumPy Generator, got {type(rng).__name__}; "
            "make one with np.random.default_rng(0)"
        )


def array_of(owner: str, values: ArrayLike) -> Array:
    """`values` as an array; ValueError where the rows of a list have several lengths."""
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(f"{owner}: expected an array, got rows of several lengths") from None
