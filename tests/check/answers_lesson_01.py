"""Right answers to the exercises of lesson 01, and wrong ones under the names of their mistakes."""

import numpy as np

from course_lib import tensor
from course_lib.tensor import Tensor


def unbroadcast_loop(g, shape):
    while g.ndim > len(shape):
        g = g.sum(axis=0)
    for axis, n in enumerate(shape):
        if n == 1:
            g = g.sum(axis=axis, keepdims=True)
    return g


def unbroadcast_reshape(g, shape):
    padded = (1,) * (g.ndim - len(shape)) + shape
    axes = tuple(axis for axis, n in enumerate(padded) if n == 1)
    return g.sum(axis=axes).reshape(shape)


def unbroadcast_entry_by_entry(g, shape):
    out = np.zeros(shape)
    for index in np.ndindex(g.shape):
        own = index[len(index) - len(shape) :]
        out[tuple(0 if n == 1 else i for i, n in zip(own, shape, strict=True))] += g[index]
    return out


def unbroadcast_by_the_tape(g, shape):
    x = Tensor(np.ones(shape), requires_grad=True)
    (x * np.ones(g.shape)).backward(g)
    return x.grad


def unbroadcast_tensor(g, shape):
    g = g * 1.0
    while len(g.shape) > len(shape):
        g = g.sum(dim=0)
    for axis, n in enumerate(shape):
        if n == 1:
            g = g.sum(dim=axis, keepdim=True)
    return g


def unbroadcast_einsum(g, shape):
    letters = "abcdef"[: g.ndim]
    own = letters[g.ndim - len(shape) :]
    kept = "".join(letter for letter, n in zip(own, shape, strict=True) if n > 1)
    return np.einsum(f"{letters}->{kept}", g).reshape(shape)


def unbroadcast_add_at(g, shape):
    out = np.zeros(shape, dtype=np.float32)
    view = np.broadcast_to(np.arange(out.size).reshape(shape), g.shape)
    np.add.at(out.reshape(-1), view, g)
    return out


def mean_of_repeats(g, shape):
    while g.ndim > len(shape):
        g = g.mean(axis=0)
    for axis, n in enumerate(shape):
        if n == 1:
            g = g.mean(axis=axis, keepdims=True)
    return g


def mean_of_repeats_tensor(g, shape):
    while len(g.shape) > len(shape):
        g = g.mean(dim=0)
    for axis, n in enumerate(shape):
        if n == 1:
            g = g.mean(dim=axis, keepdim=True)
    return g


def first_of_repeats(g, shape):
    while g.ndim > len(shape):
        g = g[0]
    return g[tuple(slice(0, n) for n in shape)]


def leading_only_tensor(g, shape):
    while len(g.shape) > len(shape):
        g = g.sum(dim=0)
    return g


def no_keepdims(g, shape):
    return np.squeeze(unbroadcast_loop(g, shape))


def mul_loops(g, a, b):
    a_all, b_all = np.broadcast_arrays(a, b)
    grad_a, grad_b = np.zeros(g.shape), np.zeros(g.shape)
    for index in np.ndindex(g.shape):
        grad_a[index] = g[index] * b_all[index]
        grad_b[index] = g[index] * a_all[index]
    return unbroadcast_loop(grad_a, a.shape), unbroadcast_loop(grad_b, b.shape)


def mul_by_the_tape(g, a, b):
    a, b = Tensor(a, requires_grad=True), Tensor(b, requires_grad=True)
    (a * b).backward(g)
    return a.grad, b.grad


def matmul_loops(g, a, b):
    if g.ndim == 3:
        pairs = [matmul_loops(*one) for one in zip(g, a, b, strict=True)]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    grad_a, grad_b = np.zeros(a.shape), np.zeros(b.shape)
    for i in range(g.shape[0]):
        for j in range(g.shape[1]):
            for k in range(a.shape[1]):
                grad_a[i, k] += g[i, j] * b[k, j]
                grad_b[k, j] += g[i, j] * a[i, k]
    return grad_a, grad_b


def matmul_by_the_tape(g, a, b):
    a, b = Tensor(a, requires_grad=True), Tensor(b, requires_grad=True)
    (a @ b).backward(g)
    return a.grad, b.grad


def matmul_two_cases(g, a, b):
    if g.ndim == 2:
        return g @ b.T, a.T @ g
    return g @ b.transpose(0, 2, 1), a.transpose(0, 2, 1) @ g


def matmul_into_copies(g, a, b):
    grad_a, grad_b = a.copy(), b.copy()
    grad_a[...] = np.matmul(g, np.swapaxes(b, -1, -2))
    grad_b[...] = np.matmul(np.swapaxes(a, -1, -2), g)
    return grad_a, grad_b


RIGHT = {
    "unbroadcast": [
        unbroadcast_loop,
        unbroadcast_reshape,
        unbroadcast_entry_by_entry,
        unbroadcast_by_the_tape,
        unbroadcast_tensor,
        unbroadcast_einsum,
        unbroadcast_add_at,
        tensor.unbroadcast,
        lambda g, shape: unbroadcast_loop(g, shape).tolist(),
        lambda g, shape: unbroadcast_loop(g.astype(np.float32), shape),
    ],
    "mul_backward": [
        lambda g, a, b: (unbroadcast_loop(g * b, a.shape), unbroadcast_loop(g * a, b.shape)),
        lambda g, a, b: [unbroadcast_tensor(g * b, a.shape), unbroadcast_tensor(g * a, b.shape)],
        mul_loops,
        mul_by_the_tape,
        lambda g, a, b: tuple(
            unbroadcast_reshape(np.multiply(g, other), one.shape) for one, other in ((a, b), (b, a))
        ),
        lambda g, a, b: (
            unbroadcast_einsum(np.einsum("...,...->...", g, b), a.shape),
            unbroadcast_einsum(np.einsum("...,...->...", g, a), b.shape),
        ),
        lambda g, a, b: tuple(
            unbroadcast_loop(x.astype(np.float32), y.shape) for x, y in ((g * b, a), (a * g, b))
        ),
        lambda g, a, b: (
            unbroadcast_loop(g * b, a.shape).tolist(),
            unbroadcast_loop(g * a, b.shape).tolist(),
        ),
    ],
    "matmul_backward": [
        lambda g, a, b: (g @ np.swapaxes(b, -1, -2), np.swapaxes(a, -1, -2) @ g),
        lambda g, a, b: (g @ b.mT, a.mT @ g),
        lambda g, a, b: (g @ b.transpose(-2, -1), a.transpose(-2, -1) @ g),
        lambda g, a, b: (
            np.einsum("...mn,...kn->...mk", g, b),
            np.einsum("...mk,...mn->...kn", a, g),
        ),
        lambda g, a, b: (
            (g[..., :, None, :] * b[..., None, :, :]).sum(-1),
            (a[..., :, :, None] * g[..., :, None, :]).sum(-3),
        ),
        matmul_loops,
        matmul_by_the_tape,
        matmul_two_cases,
        matmul_into_copies,
        lambda g, a, b: [(g @ b.mT).astype(np.float32), (a.mT @ g).astype(np.float32)],
    ],
}

WRONG = {
    "unbroadcast": {
        "mean": [mean_of_repeats, mean_of_repeats_tensor],
        "one slice": [first_of_repeats],
        "leading axes only": [
            leading_only_tensor,
            lambda g, shape: g.sum(axis=tuple(range(g.ndim - len(shape)))),
        ],
        "axis lost": [no_keepdims, lambda g, shape: Tensor(no_keepdims(g, shape))],
        "not summed": [lambda g, shape: g + 0, lambda g, shape: Tensor(g)],
    },
    "mul_backward": {
        "swapped": [lambda g, a, b: (g * a, g * b), lambda g, a, b: (Tensor(g) * a, Tensor(g) * b)],
        "no upstream": [lambda g, a, b: (b + 0, a + 0), lambda g, a, b: (Tensor(b), Tensor(a))],
        "not unbroadcast": [
            lambda g, a, b: (g * b, g * a),
            lambda g, a, b: (Tensor(g) * b, Tensor(g) * a),
        ],
    },
    "matmul_backward": {
        "not transposed": [
            lambda g, a, b: (g @ b, a @ g),
            lambda g, a, b: (Tensor(g) @ b, Tensor(a) @ g),
        ],
        "wrong order": [
            lambda g, a, b: (b.T @ g, g @ a.T),
            lambda g, a, b: (g @ b.T, g @ a.T),
            lambda g, a, b: (Tensor(b).T @ g, Tensor(a).T @ g),
        ],
        "swapped": [
            lambda g, a, b: (a.T @ g, g @ b.T),
            lambda g, a, b: (a.transpose(-1, -2) @ g, g @ b.transpose(-1, -2)),
        ],
        "own operand": [
            lambda g, a, b: (g @ a.T, b.T @ g),
            lambda g, a, b: (Tensor(g) @ a, Tensor(b) @ g),
        ],
        "elementwise": [
            lambda g, a, b: (g * b, g * a),
            lambda g, a, b: (Tensor(g) * b, Tensor(g) * a),
        ],
    },
}
