"""Right answers to the exercises of lesson 04, and wrong ones under the names of their mistakes."""

import math

import numpy as np

from course_lib.tensor import Tensor, stack


def loops(q, k):
    b, t, d_k = q.shape
    out = np.zeros((b, t, t))
    for n in range(b):
        for i in range(t):
            for j in range(t):
                for c in range(d_k):
                    out[n, i, j] += q[n, i, c] * k[n, j, c]
                out[n, i, j] /= math.sqrt(d_k)
    return out


def nested_lists(q, k):
    return [
        [[float(np.dot(one, other)) / len(one) ** 0.5 for other in k[n]] for one in q[n]]
        for n in range(len(q))
    ]


def in_place_on_a_copy(q, k):
    q = q.copy()
    q /= np.sqrt(q.shape[-1])
    return np.matmul(q, k.transpose(0, 2, 1))


def in_float32(q, k):
    q, k = q.astype(np.float32), k.astype(np.float32)
    return (q @ k.transpose(0, 2, 1) / np.sqrt(np.float32(q.shape[-1]))).astype(np.float32)


def with_gradients(q, k):
    q, k = Tensor(q, requires_grad=True), Tensor(k, requires_grad=True)
    return (q @ k.mT) * (1 / math.sqrt(q.shape[-1]))


def a_row_at_a_time(q, k):
    rows = [(q[:, i : i + 1] * k).sum(dim=-1) for i in range(q.shape[1])]
    return stack(rows, dim=1) / q.shape[-1] ** 0.5


RIGHT = {
    "scores": [
        loops,
        nested_lists,
        in_place_on_a_copy,
        in_float32,
        with_gradients,
        a_row_at_a_time,
        lambda q, k: np.einsum("bid,bjd->bij", q, k) / np.sqrt(q.shape[2]),
        lambda q, k: (q[:, :, None, :] * k[:, None, :, :]).sum(axis=-1) * q.shape[-1] ** -0.5,
        lambda q, k: q @ np.swapaxes(k, 1, 2) / math.sqrt(k.shape[-1]),
        lambda q, k: (q @ k.permute(0, 2, 1)) * (1 / math.sqrt(q.shape[-1])),
        lambda q, k: (q @ k.transpose(-2, -1)) / math.sqrt(q.shape[-1]),
        lambda q, k: [(q[n] @ k[n].T) / math.sqrt(q.shape[-1]) for n in range(len(q))],
        lambda q, k: (q / q.shape[-1] ** 0.25) @ (k / q.shape[-1] ** 0.25).mT,
        lambda q, k: (q @ k.mT / math.sqrt(q.shape[-1])).astype(np.float16),
    ],
}

WRONG = {
    "scores": {
        "M04": [
            lambda q, k: np.einsum("bid,bjd->bij", q, k),
            lambda q, k: q @ k.permute(0, 2, 1),
        ],
        "M05": [
            lambda q, k: q @ np.swapaxes(k, 1, 2) / q.shape[2],
            lambda q, k: (q @ k.permute(0, 2, 1)) * (1 / q.shape[-1]),
        ],
        "M06": [
            lambda q, k: q @ np.swapaxes(k, 1, 2) / np.sqrt(q.shape[1]),
            lambda q, k: (q @ k.permute(0, 2, 1)) / math.sqrt(k.shape[-2]),
        ],
        "M07": [
            lambda q, k: q @ np.swapaxes(k, 1, 2) / np.sqrt(64),
            lambda q, k: (q @ k.permute(0, 2, 1)) / math.sqrt(4 * q.shape[-1]),
        ],
        "M08": [
            lambda q, k: q @ np.swapaxes(q, 1, 2) / np.sqrt(q.shape[2]),
            lambda q, k: (q @ q.permute(0, 2, 1)) / math.sqrt(q.shape[-1]),
            lambda q, k: np.einsum("bid,bjd->bij", q, q),
            lambda q, k: q * k / np.sqrt(q.shape[2]),
            lambda q, k: Tensor(q) * Tensor(k),
        ],
        "M09": [
            lambda q, k: k @ np.swapaxes(q, 1, 2) / np.sqrt(q.shape[2]),
            lambda q, k: (k @ q.permute(0, 2, 1)) / math.sqrt(q.shape[-1]),
            lambda q, k: np.einsum("bid,bjd->bji", q, k),
        ],
        "fixed scale": [
            lambda q, k: q @ np.swapaxes(k, 1, 2) / np.sqrt(2),
            lambda q, k: (q @ k.permute(0, 2, 1)) / 4,
            lambda q, k: q @ np.swapaxes(k, 1, 2) / np.sqrt(len(q)),
            lambda q, k: q @ np.swapaxes(k, 1, 2) / np.sqrt(1024),
        ],
        "reshaped": [
            lambda q, k: q @ k.reshape(len(k), k.shape[2], k.shape[1]) / np.sqrt(q.shape[2]),
            lambda q, k: Tensor(q) @ Tensor(k).reshape(len(k), k.shape[2], k.shape[1]),
        ],
        "multiplied": [
            lambda q, k: q @ np.swapaxes(k, 1, 2) * np.sqrt(q.shape[2]),
            lambda q, k: (q @ k.permute(0, 2, 1)) * math.sqrt(q.shape[-1]),
        ],
    },
}
