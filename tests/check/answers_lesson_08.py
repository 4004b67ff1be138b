"""Right answers to the exercises of lesson 08, and wrong ones under the names of their mistakes."""

import math

import numpy as np

from course_lib import attention as library
from course_lib.tensor import Tensor, cat, stack


def split(x, n_head):
    b, t, d = x.shape
    return x.reshape(b, t, n_head, d // n_head).transpose(0, 2, 1, 3)


def split_tensor(x, n_head):
    b, t, d = x.shape
    return x.reshape(b, t, n_head, d // n_head).permute(0, 2, 1, 3)


def split_loops(x, n_head):
    b, t, d = x.shape
    head_dim = d // n_head
    out = np.zeros((b, n_head, t, head_dim))
    for h in range(n_head):
        for c in range(head_dim):
            out[:, h, :, c] = x[:, :, h * head_dim + c]
    return out


def split_slices(x, n_head):
    size = x.shape[-1] // n_head
    return np.stack([x[..., h * size : (h + 1) * size] for h in range(n_head)], axis=1)


def merge(x):
    b, h, t, d = x.shape
    return x.transpose(0, 2, 1, 3).reshape(b, t, h * d)


def merge_tensor(x):
    b, h, t, d = x.shape
    return x.permute(0, 2, 1, 3).reshape(b, t, h * d)


def merge_loops(x):
    b, h, t, d = x.shape
    out = np.empty((b, t, h * d), dtype=x.dtype)
    for head in range(h):
        out[:, :, head * d : (head + 1) * d] = x[:, head]
    return out


def softmax(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attend(q, k, v, width=None):
    return softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(width or q.shape[-1])) @ v


def attend_tensor(q, k, v, width=None):
    return (q @ k.mT / math.sqrt(width or q.shape[-1])).softmax(dim=-1) @ v


def head_by_head(q, k, v, n_head):
    size = q.shape[-1] // n_head
    cuts = [slice(h * size, (h + 1) * size) for h in range(n_head)]
    return np.concatenate([attend(q[..., c], k[..., c], v[..., c]) for c in cuts], axis=-1)


def head_by_head_tensor(q, k, v, n_head):
    size = q.shape[-1] // n_head
    heads = []
    for h in range(n_head):
        own = slice(h * size, (h + 1) * size)
        heads.append(attend_tensor(*(Tensor(x)[:, :, own] for x in (q, k, v))))
    return cat(heads, dim=-1)


def with_einsum(q, k, v, n_head):
    q, k, v = (x.reshape(*x.shape[:2], n_head, -1) for x in (q, k, v))
    weights = softmax(np.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(q.shape[-1]))
    return np.einsum("bhij,bjhd->bihd", weights, v).reshape(*q.shape[:2], -1)


def with_loops(q, k, v, n_head):
    out = np.zeros(q.shape)
    size = q.shape[-1] // n_head
    for b, i, h in np.ndindex(*q.shape[:2], n_head):
        own = slice(h * size, (h + 1) * size)
        scores = np.array([q[b, i, own] @ key[own] for key in k[b]]) / math.sqrt(size)
        out[b, i, own] = softmax(scores) @ v[b, :, own]
    return out


def with_flat_heads(q, k, v, n_head):
    b, t, d = q.shape
    q, k, v = (split_tensor(x, n_head).reshape(b * n_head, t, d // n_head) for x in (q, k, v))
    return merge_tensor(attend_tensor(q, k, v).reshape(b, n_head, t, d // n_head))


def built_from(split, attend, merge):
    return lambda q, k, v, n_head: merge(attend(*(split(x, n_head) for x in (q, k, v))))


def too_wide(split, attend, merge):
    return lambda q, k, v, n_head: merge(
        attend(*(split(x, n_head) for x in (q, k, v)), q.shape[-1])
    )


def split_by_reshape(x, n_head):
    b, t, d = x.shape
    return x.reshape(b, n_head, t, d // n_head)


def merge_by_reshape(x):
    b, h, t, d = x.shape
    return x.reshape(b, t, h * d)


RIGHT = {
    "split_heads": [
        split,
        split_tensor,
        split_loops,
        split_slices,
        lambda x, n_head: np.array(np.split(x, n_head, axis=-1)).swapaxes(0, 1),
        lambda x, n_head: np.einsum("bthd->bhtd", x.reshape(*x.shape[:2], n_head, -1)),
        lambda x, n_head: np.moveaxis(x.reshape(*x.shape[:2], n_head, -1), 2, 1).tolist(),
        lambda x, n_head: Tensor(x).reshape(*x.shape[:2], n_head, -1).transpose(1, 2),
        lambda x, n_head: stack(
            [
                Tensor(x)[:, :, np.arange(x.shape[2]) // (x.shape[2] // n_head) == h]
                for h in range(n_head)
            ],
            dim=1,
        ),
        lambda x, n_head: split(x, n_head).astype(np.float32),
    ],
    "merge_heads": [
        merge,
        merge_tensor,
        merge_loops,
        lambda x: np.concatenate(list(x.swapaxes(0, 1)), axis=-1),
        lambda x: np.einsum("bhtd->bthd", x).reshape(x.shape[0], x.shape[2], -1),
        lambda x: np.moveaxis(x, 1, 2).reshape(len(x), x.shape[2], -1).tolist(),
        lambda x: x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1),
        lambda x: cat([Tensor(x)[:, h] for h in range(x.shape[1])], dim=-1),
        lambda x: [np.hstack(list(heads)) for heads in x],
        lambda x: merge(x).astype(np.float32),
    ],
    "multi_head": [
        built_from(split, attend, merge),
        built_from(split_tensor, attend_tensor, merge_tensor),
        built_from(split_tensor, library.attention, merge_tensor),
        head_by_head,
        head_by_head_tensor,
        with_einsum,
        with_loops,
        with_flat_heads,
        lambda q, k, v, n_head: head_by_head(q, k, v, n_head).tolist(),
        lambda q, k, v, n_head: head_by_head(q, k, v, n_head).astype(np.float32),
    ],
}

WRONG = {
    "split_heads": {
        "M27": [split_by_reshape, lambda x, n_head: split_by_reshape(Tensor(x), n_head)],
        "not transposed": [
            lambda x, n_head: x.reshape(*x.shape[:2], n_head, -1),
            lambda x, n_head: Tensor(x).reshape(*x.shape[:2], n_head, -1),
        ],
        "interleaved": [
            lambda x, n_head: x.reshape(*x.shape[:2], -1, n_head).transpose(0, 3, 1, 2),
            lambda x, n_head: x.reshape(*x.shape[:2], -1, n_head).permute(0, 3, 1, 2),
        ],
    },
    "merge_heads": {
        "M28": [merge_by_reshape, lambda x: merge_by_reshape(Tensor(x))],
        "interleaved": [
            lambda x: x.transpose(0, 2, 3, 1).reshape(x.shape[0], x.shape[2], -1),
            lambda x: x.permute(0, 2, 3, 1).reshape(x.shape[0], x.shape[2], -1),
        ],
        "heads added": [lambda x: x.sum(axis=1), lambda x: x.mean(dim=1)],
    },
    "multi_head": {
        "M07": [
            too_wide(split, attend, merge),
            too_wide(split_tensor, attend_tensor, merge_tensor),
        ],
        "M04": [
            built_from(split, lambda q, k, v: attend(q, k, v, 1), merge),
            built_from(split_tensor, lambda q, k, v: attend_tensor(q, k, v, 1), merge_tensor),
        ],
        "M27": [
            built_from(split_by_reshape, attend, merge),
            built_from(split_by_reshape, attend, merge_by_reshape),
            built_from(split_by_reshape, attend_tensor, merge_tensor),
        ],
        "M28": [
            built_from(split, attend, merge_by_reshape),
            built_from(split_tensor, attend_tensor, merge_by_reshape),
        ],
        "one head": [
            lambda q, k, v, n_head: attend(q, k, v),
            lambda q, k, v, n_head: attend_tensor(Tensor(q), Tensor(k), Tensor(v)),
        ],
    },
}
