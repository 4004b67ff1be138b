"""Right answers to the exercises of lesson 03, and wrong ones under the names of their mistakes."""

import numpy as np

from course_lib.tensor import Tensor, stack


def project_loops(x, w, b):
    out = np.zeros((*x.shape[:2], w.shape[1]))
    for n, i in np.ndindex(x.shape[:2]):
        for o in range(w.shape[1]):
            out[n, i, o] = b[o]
            for c in range(w.shape[0]):
                out[n, i, o] += x[n, i, c] * w[c, o]
    return out


def project_flat(x, w, b):
    n, t, d = x.shape
    flat = x.reshape(n * t, d)
    return (flat @ w + b).reshape(n, t, w.shape[1])


def project_flat_tensor(x, w, b):
    n, t, d = x.shape
    return (Tensor(x).reshape(n * t, d) @ w + b).reshape(n, t, -1)


def project_in_place(x, w, b):
    out = x @ w
    out += b
    return out


def project_with_a_one(x, w, b):
    ones = np.ones((*x.shape[:2], 1), dtype=x.dtype)
    return np.concatenate([x, ones], axis=-1) @ np.vstack([w, b])


def dots(q, k):
    return q @ np.swapaxes(k, -1, -2)


def scores_loops(x, w_q, w_k):
    b, t, _ = x.shape
    out = np.zeros((b, t, t))
    for n in range(b):
        for i in range(t):
            for j in range(t):
                out[n, i, j] = (x[n, i] @ w_q) @ (x[n, j] @ w_k)
    return out


def scores_of_one_matrix(x, w_q, w_k):
    return x @ (w_q @ w_k.T) @ np.swapaxes(x, 1, 2)


RIGHT = {
    "project": [
        lambda x, w, b: x @ w + b,
        project_loops,
        project_flat,
        project_flat_tensor,
        project_in_place,
        project_with_a_one,
        lambda x, w, b: np.einsum("btd,de->bte", x, w) + b,
        lambda x, w, b: (x[..., None] * w).sum(axis=2) + b[None, None, :],
        lambda x, w, b: [[[*(row @ w + b)] for row in rows] for rows in x],
        lambda x, w, b: stack([Tensor(rows) @ w + b for rows in x]),
        lambda x, w, b: np.tensordot(x, w, axes=1).astype(np.float32) + b.astype(np.float32),
        lambda x, w, b: Tensor(x, requires_grad=True) @ Tensor(w, requires_grad=True) + b,
    ],
    "raw_scores": [
        lambda x, w_q, w_k: dots(x @ w_q, x @ w_k),
        scores_loops,
        scores_of_one_matrix,
        lambda x, w_q, w_k: (x @ w_q) @ (x @ w_k).permute(0, 2, 1),
        lambda x, w_q, w_k: (Tensor(x) @ w_q) @ (Tensor(x) @ w_k).mT,
        lambda x, w_q, w_k: np.einsum("bic,cd,bjf,fd->bij", x, w_q, x, w_k),
        lambda x, w_q, w_k: ((x @ w_q)[:, :, None] * (x @ w_k)[:, None]).sum(axis=-1),
        lambda x, w_q, w_k: [(rows @ w_q) @ (rows @ w_k).T for rows in x],
        lambda x, w_q, w_k: dots(x @ w_q, x @ w_k).astype(np.float32),
    ],
}

WRONG = {
    "project": {
        "M01": [
            lambda x, w, b: x @ w.T + b,
            lambda x, w, b: x @ w.permute(1, 0) + b,
            lambda x, w, b: np.einsum("btd,ed->bte", x, w),
        ],
        "M02": [
            lambda x, w, b: x @ w,
            lambda x, w, b: Tensor(x) @ w,
            lambda x, w, b: np.einsum("btd,de->bte", x, w),
        ],
    },
    "raw_scores": {
        "M01": [
            lambda x, w_q, w_k: dots(x @ w_q.T, x @ w_k.T),
            lambda x, w_q, w_k: (x @ w_q.permute(1, 0)) @ (x @ w_k.permute(1, 0)).mT,
        ],
        "M03": [
            lambda x, w_q, w_k: dots(x @ w_q, x @ w_q),
            lambda x, w_q, w_k: dots(x @ w_k, x @ w_k),
            lambda x, w_q, w_k: (x @ w_q) @ (x @ w_q).permute(0, 2, 1),
        ],
        "x itself": [
            lambda x, w_q, w_k: dots(x, x),
            lambda x, w_q, w_k: x @ x.permute(0, 2, 1),
        ],
        "M09": [
            lambda x, w_q, w_k: dots(x @ w_k, x @ w_q),
            lambda x, w_q, w_k: ((x @ w_q) @ (x @ w_k).mT).permute(0, 2, 1),
        ],
        "reshaped": [
            lambda x, w_q, w_k: (x @ w_q) @ (x @ w_k).reshape(2, 4, 5),
            lambda x, w_q, w_k: Tensor(x @ w_q) @ Tensor(x @ w_k).reshape(2, 4, 5),
        ],
        "scaled": [
            lambda x, w_q, w_k: dots(x @ w_q, x @ w_k) / 2,
            lambda x, w_q, w_k: (x @ w_q) @ (x @ w_k).mT / x.shape[-1],
        ],
    },
}
