"""Layers: things that hold parameters and compute with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from course_lib._arrays import Array
from course_lib._checks import array_of, check_rng, check_sizes
from course_lib.functional import embedding, layer_norm, linear, mlp
from course_lib.tensor import Tensor, _beside

__all__ = ["MLP", "Embedding", "LayerNorm", "Linear", "Module", "weights_of"]


class Module:
    """A layer, or a model made of layers.

    Its parameters are the Tensors with ``requires_grad=True`` among its attributes; those of the
    modules (or lists of modules) among its attributes are its own too, under a dotted name such as
    ``blocks.0.attn.c_q.weight``.
    """

    forward: Callable[..., Any]  # what calling the module computes; each kind has its own

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def modules(self) -> Iterator[Module]:
        """Yield this module and all modules inside it."""
        yield self
        for value in vars(self).values():
            for child in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(child, Module):
                    yield from child.modules()

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Yield (name, Tensor), each Tensor once: a tied weight keeps its first name."""
        seen = set()
        for name, parameter in _walk(self):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                yield name, parameter

    def parameters(self) -> list[Tensor]:
        """Return all parameters as a list."""
        return [parameter for _, parameter in self.named_parameters()]

    def num_parameters(self) -> int:
        """Return how many numbers the parameters hold together."""
        return sum(parameter.data.size for parameter in self.parameters())

    def zero_grad(self) -> None:
        """Forget all gradients; otherwise the next backward adds to them."""
        for parameter in self.parameters():
            parameter.grad = None

    def double(self) -> Self:
        """Turn all parameters into float64, as a gradient check needs it, and return self."""
        for parameter in self.parameters():
            Tensor.__init__(parameter, parameter.data, requires_grad=True, dtype=np.float64)
        return self

    def state_dict(self) -> dict[str, Array]:
        """Return {name: a copy of the values} of all parameters."""
        return {name: parameter.data.copy() for name, parameter in self.named_parameters()}

    def load_state_dict(self, state: Mapping[str, ArrayLike]) -> None:
        """Take all parameters' values from `state`, as `state_dict` gave them.

        Raises
        ------
        TypeError
            If `state` is no mapping.
        KeyError
            If names are missing in `state`, or are not of this module.
        ValueError
            If a shape differs, a value is not a number array or is too large for the parameter's
            dtype. The module is then unchanged.
        """
        if not isinstance(state, Mapping):
            raise TypeError(
                f"load_state_dict: expected what state_dict() gave, got {type(state).__name__}; "
                "to read a file, use load(path)"
            )
        own = dict(self.named_parameters())
        missing, foreign = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
        if missing or foreign:
            raise KeyError(
                f"load_state_dict: missing {missing}, not of this module {foreign}; "
                "was it saved by a model of another configuration?"
            )
        new = {name: array_of("load_state_dict", state[name]) for name in own}
        for name, values in new.items():
            if values.shape != own[name].shape or values.dtype.kind != "f":
                raise ValueError(
                    f"load_state_dict: {name} is {list(own[name].shape)} of fractions here, "
                    f"but {list(values.shape)} of {values.dtype} in the state"
                )
        fit = {name: Tensor(values, dtype=own[name].dtype) for name, values in new.items()}
        for name, tensor in fit.items():
            own[name].data = tensor.data


class Linear(Module):
    """y = xW + b.

    Parameters
    ----------
    in_features, out_features : int
    rng : numpy.random.Generator
        Weight and bias are drawn from U(−1/√in_features, 1/√in_features), PyTorch's default
        (after LeCun et al. 1998, "Efficient BackProp", §4.6).
    bias : bool

    Attributes
    ----------
    weight : Tensor [in_features, out_features]
        As the formula is written; PyTorch stores the transpose.
    bias : Tensor [out_features] or None

    Raises
    ------
    ValueError
        If a size is no whole number of at least 1, or the last axis of x is not in_features.
    TypeError
        If rng is no Generator. The other layers raise the same.
    """

    def __init__(
        self, in_features: int, out_features: int, rng: np.random.Generator, bias: bool = True
    ) -> None:
        check_sizes("Linear", in_features=in_features, out_features=out_features)
        check_rng("Linear", rng)
        bound = in_features**-0.5
        self.weight = _uniform(rng, bound, (in_features, out_features))
        self.bias = _uniform(rng, bound, (out_features,)) if bias else None

    def forward(self, x: ArrayLike) -> Tensor:
        """Map x [..., in_features] to [..., out_features]."""
        x = _beside(self.weight, x)
        if x.ndim == 0 or x.shape[-1] != self.weight.shape[0]:
            raise ValueError(
                f"Linear: x is {list(x.shape)}, its last axis must be {self.weight.shape[0]} "
                "(in_features)"
            )
        if self.bias is None:
            return x @ self.weight  # [..., in_features] @ [in_features, out_features]
        return linear(x, self.weight, self.bias)  # x @ W + b


class Embedding(Module):
    """A table with one row per token id, drawn from N(0, 1) as in PyTorch.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
    rng : numpy.random.Generator

    Attributes
    ----------
    weight : Tensor [num_embeddings, embedding_dim]
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, rng: np.random.Generator) -> None:
        check_sizes("Embedding", num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        check_rng("Embedding", rng)
        table = rng.standard_normal((num_embeddings, embedding_dim), dtype=np.float32)
        self.weight = Tensor(table, requires_grad=True)

    def forward(self, ids: ArrayLike) -> Tensor:
        """Look up ids [...] (integers): returns [..., embedding_dim]."""
        return embedding(ids, self.weight)


class LayerNorm(Module):
    """Give each vector mean 0 and variance 1, then scale and shift (Ba et al. 2016).

    Parameters
    ----------
    normalized_shape : int
        The width of a vector.
    eps : float
        Added to the variance.

    Attributes
    ----------
    weight, bias : Tensor [normalized_shape]
        Start at 1 and 0.
    """

    def __init__(self, normalized_shape: int, eps: float = 1e-5) -> None:
        check_sizes("LayerNorm", normalized_shape=normalized_shape)
        self.weight = Tensor(np.ones(normalized_shape, np.float32), requires_grad=True)
        self.bias = Tensor(np.zeros(normalized_shape, np.float32), requires_grad=True)
        self.eps = eps

    def forward(self, x: ArrayLike) -> Tensor:
        """Map x [..., normalized_shape] to the same shape."""
        return layer_norm(x, self.weight, self.bias, self.eps)


class MLP(Module):
    """Two linear layers with a GELU between, four times as wide inside (Vaswani et al. 2017, §3.3).

    Parameters
    ----------
    n_embd : int
    rng : numpy.random.Generator

    Attributes
    ----------
    c_fc, c_proj : Linear [n_embd, 4 n_embd] and [4 n_embd, n_embd]
    """

    def __init__(self, n_embd: int, rng: np.random.Generator) -> None:
        check_sizes("MLP", n_embd=n_embd)
        self.c_fc = Linear(n_embd, 4 * n_embd, rng)
        self.c_proj = Linear(4 * n_embd, n_embd, rng)

    def forward(self, x: ArrayLike) -> Tensor:
        """Map x [..., n_embd] to the same shape; each token is worked on alone."""
        return mlp(x, *weights_of(self.c_fc, self.c_proj))


def weights_of(*layers: Linear) -> list[Tensor]:
    """Return weight and bias of each layer in turn."""
    return [p for layer in layers for p in (layer.weight, layer.bias) if p is not None]


def _walk(value: object, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield (name, parameter) for all parameters in `value`, in the order they were assigned."""
    if isinstance(value, Tensor):
        if value.requires_grad:
            yield name, value
        return
    children: Iterable[tuple[object, object]]
    if isinstance(value, Module):
        children = vars(value).items()
    elif isinstance(value, (list, tuple)):
        children = enumerate(value)
    else:
        return
    for key, child in children:
        yield from _walk(child, f"{name}.{key}" if name else str(key))


def _uniform(rng: np.random.Generator, bound: float, shape: tuple[int, ...]) -> Tensor:
    return Tensor(rng.uniform(-bound, bound, shape).astype(np.float32), requires_grad=True)
