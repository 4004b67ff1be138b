"""Right answers to the exercises of lesson 05, and wrong ones under the names of their mistakes."""

import math

import numpy as np

from course_lib.tensor import Tensor, stack


def softmax_loops(x):
    out = np.zeros_like(x)
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            top = max(x[b, i])
            total = sum(math.exp(value - top) for value in x[b, i])
            for j in range(x.shape[2]):
                out[b, i, j] = math.exp(x[b, i, j] - top) / total
    return out


def softmax_lists(x):
    def row(values):
        e = [math.exp(value - max(values)) for value in values]
        return [value / sum(e) for value in e]

    return [[row(values) for values in matrix.tolist()] for matrix in x]


def softmax_numpy(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def softmax_in_place_on_a_copy(x):
    x = x.copy()
    x -= x.max(axis=-1, keepdims=True)
    np.exp(x, out=x)
    x /= x.sum(axis=-1, keepdims=True)
    return x


def softmax_einsum(x):
    e = np.exp(x - np.max(x, -1)[:, :, None])
    return np.einsum("btk,bt->btk", e, 1 / np.einsum("btk->bt", e))


def softmax_by_logsumexp(x):
    top = x.max(axis=-1, keepdims=True)
    return np.exp(x - (top + np.log(np.exp(x - top).sum(axis=-1, keepdims=True))))


def softmax_tensor_by_hand(x):
    e = (x - x.max(dim=-1, keepdim=True)).exp()
    return e / e.sum(dim=-1, keepdim=True)


def softmax_one_by_one(x):
    # a_i = 1 / Σ_j exp(x_j − x_i)
    return 1 / np.exp(x[..., None, :] - x[..., :, None]).sum(axis=-1)


def backward_by_jacobian(s, g):
    out = np.empty_like(s)
    for b, i in np.ndindex(s.shape[:2]):
        row = s[b, i]
        out[b, i] = (np.diag(row) - np.outer(row, row)) @ g[b, i]
    return out


def backward_by_loops(s, g):
    out = []
    for weights, gradients in zip(s, g, strict=True):
        rows = []
        for row, upstream in zip(weights, gradients, strict=True):
            total = sum(a * b for a, b in zip(row, upstream, strict=True))
            rows.append([a * (b - total) for a, b in zip(row, upstream, strict=True)])
        out.append(rows)
    return out


def backward_by_the_tape(s, g):
    x = Tensor(np.log(s), requires_grad=True)
    x.softmax(dim=-1).backward(g)
    return x.grad


def backward_in_place_on_a_copy(s, g):
    out = g.copy()
    out -= (g * s).sum(axis=-1, keepdims=True)
    out *= s
    return out


def backward_by_einsum_jacobian(s, g):
    jacobian = np.einsum("bti,ij->btij", s, np.eye(s.shape[-1])) - s[..., :, None] * s[..., None, :]
    return np.einsum("btij,btj->bti", jacobian, g)


def overflowing_tensors(x):
    e = x.exp()
    return e / e.sum(dim=-1, keepdim=True)


def one_maximum_tensors(x):
    e = (x - x.max()).exp()
    return e / e.sum(dim=-1, keepdim=True)


def stable_exp(x):
    return np.exp(x - x.max(axis=-1, keepdims=True))


def shifted(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


RIGHT = {
    "softmax": [
        softmax_numpy,
        softmax_loops,
        softmax_lists,
        softmax_in_place_on_a_copy,
        softmax_einsum,
        softmax_by_logsumexp,
        softmax_tensor_by_hand,
        softmax_one_by_one,
        lambda x: x.softmax(dim=-1),
        lambda x: Tensor(x, requires_grad=True).softmax(2),
        lambda x: stack([x[0].softmax(-1), x[1].softmax(-1)]),
        lambda x: softmax_numpy(x).astype(np.float32),
        lambda x: [softmax_numpy(matrix) for matrix in x],
    ],
    "softmax_backward": [
        lambda s, g: s * (g - (g * s).sum(axis=-1, keepdims=True)),
        backward_by_jacobian,
        backward_by_loops,
        backward_by_the_tape,
        backward_in_place_on_a_copy,
        backward_by_einsum_jacobian,
        lambda s, g: s * (g - (g * s).sum(dim=-1, keepdim=True)),
        lambda s, g: s * g - s * np.einsum("btk,btk->bt", s, g)[..., None],
        lambda s, g: s * (g - (g[..., None, :] @ s[..., None])[..., 0]),
        lambda s, g: [a * (b - np.vecdot(a, b)[:, None]) for a, b in zip(s, g, strict=True)],
        lambda s, g: (s * (g - np.sum(s * g, -1, keepdims=True))).astype(np.float32),
    ],
}

WRONG = {
    "softmax": {
        "M10": [
            lambda x: np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True),
            lambda x: [[[a / sum(np.exp(r)) for a in np.exp(r)] for r in matrix] for matrix in x],
            overflowing_tensors,
        ],
        "M11": [
            lambda x: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True),
            lambda x: np.exp(x) / np.exp(x).sum(axis=0),
            lambda x: x.softmax(dim=1),
            lambda x: stable_exp(x) / stable_exp(x).sum(axis=1, keepdims=True),
            lambda x: stable_exp(x) / stable_exp(x).sum(axis=0),
        ],
        "M12": [
            lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum(),
            lambda x: np.exp(x) / np.exp(x).sum(axis=(1, 2), keepdims=True),
            lambda x: x.exp() / x.exp().sum(),
            lambda x: stable_exp(x) / stable_exp(x).sum(),
            lambda x: stable_exp(x) / stable_exp(x).sum(axis=(1, 2), keepdims=True),
        ],
        "M13": [
            lambda x: shifted(x, None),
            lambda x: shifted(x, (1, 2)),
            one_maximum_tensors,
        ],
        "M14": [
            lambda x: np.abs(x) / np.abs(x).sum(axis=-1, keepdims=True),
            lambda x: x / x.sum(axis=-1, keepdims=True),
            lambda x: x / x.sum(dim=-1, keepdim=True),
        ],
        "max of a column": [
            lambda x: shifted(x, 1),
            lambda x: shifted(x, 0),
        ],
        "another constant": [
            lambda x: (e := np.exp(x - x.mean(-1, keepdims=True))) / e.sum(-1, keepdims=True),
            lambda x: (e := np.exp(x - x.min(-1, keepdims=True))) / e.sum(-1, keepdims=True),
            lambda x: (e := (x - x.mean(-1, keepdim=True)).exp()) / e.sum(-1, keepdim=True),
        ],
        "not normalized": [np.exp, stable_exp, lambda x: (x - x.max(-1, keepdim=True)).exp()],
    },
    "softmax_backward": {
        "M15": [lambda s, g: s * g, lambda s, g: Tensor(s) * Tensor(g)],
        "M16": [
            lambda s, g: s * (1 - s) * g,
            lambda s, g: np.einsum("btk,btk->btk", s - s**2, g),
            lambda s, g: (s - s * s).permute(0, 1, 2) * g,
        ],
        "one sum": [
            lambda s, g: s * (g - (g * s).sum()),
            lambda s, g: s * (g - (g * s).sum(axis=1, keepdims=True)),
            lambda s, g: s * (g - (g * s).sum(axis=0)),
            lambda s, g: s * (g - (g * s).sum(dim=(1, 2), keepdim=True)),
        ],
        "plain mean": [
            lambda s, g: s * (g - g.mean(axis=-1, keepdims=True)),
            lambda s, g: s * (g - g.sum(axis=-1, keepdims=True)),
            lambda s, g: s * (g - g.mean(dim=-1, keepdim=True)),
        ],
        "no weight": [
            lambda s, g: g - (g * s).sum(axis=-1, keepdims=True),
            lambda s, g: s * g - (g * s).sum(axis=-1, keepdims=True),
            lambda s, g: g - (g * s).sum(dim=-1, keepdim=True),
        ],
        "sign": [
            lambda s, g: s * ((g * s).sum(axis=-1, keepdims=True) - g),
            lambda s, g: -s * (g - (g * s).sum(dim=-1, keepdim=True)),
        ],
    },
}
