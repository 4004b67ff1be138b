"""Right answers to the exercises of lesson 06, and wrong ones under the names of their mistakes."""

import numpy as np

from course_lib.tensor import Tensor, where

INF = float("inf")


def mask_loops(t, t_total):
    base = t_total - t
    mask = np.zeros((t, t_total))
    for i in range(t):
        for j in range(t_total):
            if j > i + base:
                mask[i, j] = -INF
    return mask


def mask_slices(t, t_total):
    mask = np.zeros((t, t_total), dtype=np.float32)
    for i in range(t):
        mask[i, i + t_total - t + 1 :] = -np.inf
    return mask


def mask_triu(t, t_total):
    return np.triu(np.full((t, t_total), -np.inf), k=t_total - t + 1)


def mask_aranges(t, t_total):
    forbidden = np.arange(t_total) > np.arange(t)[:, None] + (t_total - t)
    mask = np.zeros((t, t_total))
    mask[forbidden] = -np.inf
    return mask


def mask_tensor(t, t_total):
    forbidden = np.arange(t_total)[None, :] > np.arange(t)[:, None] + t_total - t
    return Tensor(np.zeros((t, t_total))).masked_fill(forbidden, -INF)


def mask_blocks(t, t_total):
    cached = np.zeros((t, t_total - t))
    return np.concatenate([cached, np.triu(np.full((t, t), -np.inf), 1)], axis=1)


def allowed(t, t_total, shift=0):
    return np.tri(t, t_total, t_total - t + shift, dtype=bool)


def additive(keep, low=-np.inf):
    return np.where(keep, 0, low)


def additive_loops(keep):
    return [[0.0 if cell else -INF for cell in row] for row in keep]


def additive_assigned(keep):
    mask = np.zeros(keep.shape)
    mask[~keep] = -np.inf
    return mask


def additive_filled(keep):
    mask = np.full(keep.shape, -np.inf, dtype=np.float32)
    mask[keep] = 0
    return mask


def additive_putmask(keep):
    mask = np.zeros_like(keep, dtype=float)
    np.putmask(mask, ~keep, -np.inf)
    return mask


def softmax(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def weights_numpy(scores, keep):
    scores = np.where(keep, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def weights_nan_to_num(scores, keep):
    return np.nan_to_num(softmax(scores + additive(keep)))


def weights_loops(scores, keep):
    out = np.zeros(scores.shape)
    for b, i in np.ndindex(scores.shape[:2]):
        seen = [j for j in range(scores.shape[2]) if keep[i, j]]
        total = sum(np.exp(scores[b, i, j]) for j in seen)
        for j in seen:
            out[b, i, j] = np.exp(scores[b, i, j]) / total
    return out


def weights_of_each_row(scores, keep):
    out = np.zeros_like(scores)
    for b, i in np.ndindex(*scores.shape[:2]):
        if keep[i].any():
            out[b, i, keep[i]] = softmax(scores[b, i, keep[i]])
    return out


def weights_renormalized(scores, keep):
    weights = np.exp(scores) * keep
    total = weights.sum(axis=-1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


def weights_large_number_then_zeroed(scores, keep):
    return softmax(np.where(keep, scores, -1e9)) * keep


def weights_comprehension(scores, keep):
    def row(values, sees):
        e = [np.exp(v) if s else 0.0 for v, s in zip(values, sees, strict=True)]
        return [v / (sum(e) or 1.0) for v in e]

    return [[row(*pair) for pair in zip(matrix, keep, strict=True)] for matrix in scores]


def weights_einsum(scores, keep):
    kept = np.exp(scores, where=keep, out=np.zeros_like(scores))
    e = np.einsum("bij,ij->bij", kept, keep.astype(scores.dtype))
    return np.einsum("bij,bi->bij", e, 1 / np.maximum(e.sum(-1), 1e-30))


RIGHT = {
    "causal_mask": [
        mask_loops,
        mask_slices,
        mask_triu,
        mask_aranges,
        mask_tensor,
        mask_blocks,
        lambda t, t_total: additive(allowed(t, t_total)),
        lambda t, t_total: [
            [0.0 if j <= i + t_total - t else -INF for j in range(t_total)] for i in range(t)
        ],
        lambda t, t_total: np.log(np.tri(t, t_total, t_total - t)),
        lambda t, t_total: np.fromfunction(
            lambda i, j: np.where(j > i + t_total - t, -np.inf, 0), (t, t_total)
        ),
        lambda t, t_total: where(allowed(t, t_total), 0.0, Tensor(-INF)),
        lambda t, t_total: additive(allowed(t, t_total)).astype(np.float16),
    ],
    "keep_to_additive": [
        lambda keep: np.where(keep, 0.0, -np.inf),
        additive_loops,
        additive_assigned,
        additive_filled,
        additive_putmask,
        lambda keep: np.log(keep.astype(np.float32)),
        lambda keep: Tensor(np.zeros(keep.shape)).masked_fill(~keep, -INF),
        lambda keep: where(keep, Tensor(0.0), Tensor(-INF)),
        lambda keep: np.array([-np.inf, 0.0])[keep.astype(int)],
        lambda keep: np.select([keep, ~keep], [0.0, -np.inf]),
        lambda keep: np.ma.masked_array(np.zeros(keep.shape), ~keep).filled(-np.inf),
    ],
    "masked_softmax": [
        weights_numpy,
        weights_nan_to_num,
        weights_loops,
        weights_of_each_row,
        weights_large_number_then_zeroed,
        weights_comprehension,
        weights_einsum,
        lambda scores, keep: scores.masked_fill(~keep, -INF).softmax(dim=-1),
        lambda scores, keep: where(keep, scores, -INF).softmax(dim=-1),
        lambda scores, keep: (scores + additive(keep)).softmax(dim=-1),
        lambda scores, keep: weights_numpy(scores, keep).astype(np.float32),
    ],
}

MASK_WRONG = {
    "M17": [lambda keep: np.where(keep, -np.inf, 0), lambda keep: where(~keep, 0.0, Tensor(-INF))],
    "M22": [lambda keep: keep.astype(float), lambda keep: ~keep, lambda keep: Tensor(keep) * 1.0],
    "M24": [
        lambda keep: np.where(keep, 0, -1e9),
        lambda keep: Tensor(np.zeros(keep.shape)).masked_fill(~keep, -1e9),
        lambda keep: np.where(keep, 0, np.finfo(np.float32).min),
        lambda keep: (1.0 - keep) * -10000.0,
    ],
    "0 times inf": [
        lambda keep: (1.0 - keep) * -np.inf,
        lambda keep: ~keep * -INF,
        lambda keep: Tensor((~keep).astype(float)) * -INF,
    ],
}


def mask_wrong(keep_of):
    """The same wrong answers, of a mask that is first made by `keep_of`."""
    return {
        mistake: [lambda *inputs, f=f: f(keep_of(*inputs)) for f in answers]
        for mistake, answers in MASK_WRONG.items()
    }


WRONG = {
    "causal_mask": {
        **mask_wrong(allowed),
        "M22": [
            lambda t, t_total: allowed(t, t_total).astype(float),
            lambda t, t_total: np.tri(t, t_total),
            lambda t, t_total: np.triu(np.ones((t, t_total)), 1),
        ],
        "M18": [
            lambda t, t_total: additive(allowed(t, t_total, -1)),
            lambda t, t_total: np.triu(np.full((t, t_total), -np.inf), t_total - t),
            lambda t, t_total: Tensor(additive(allowed(t, t_total, -1))),
        ],
        "M19": [
            lambda t, t_total: additive(allowed(t, t_total, 1)),
            lambda t, t_total: np.triu(np.full((t, t_total), -np.inf), t_total - t + 2),
            lambda t, t_total: Tensor(additive(allowed(t, t_total, 1))),
        ],
        "M23": [
            lambda t, t_total: additive(np.tri(t, t_total, dtype=bool)),
            lambda t, t_total: np.triu(np.full((t, t_total), -np.inf), 1),
            lambda t, t_total: Tensor(np.triu(np.full((t, t_total), -np.inf), 1)),
        ],
        "base from outside": [
            lambda t, t_total: additive(np.tri(t, t_total, 4, dtype=bool)),
            lambda t, t_total: Tensor(additive(np.tri(t, t_total, 4, dtype=bool))),
        ],
    },
    "keep_to_additive": MASK_WRONG,
    "masked_softmax": {
        "M17": [
            lambda scores, keep: softmax(np.where(keep, -np.inf, scores)),
            lambda scores, keep: scores.masked_fill(keep, -INF).softmax(dim=-1),
        ],
        "M20": [
            lambda scores, keep: softmax(scores) * keep,
            lambda scores, keep: scores.softmax(dim=-1).masked_fill(~keep, 0.0),
        ],
        "M21": [
            lambda scores, keep: softmax(scores * keep),
            lambda scores, keep: scores.masked_fill(~keep, 0.0).softmax(dim=-1),
        ],
        "M22": [
            lambda scores, keep: softmax(scores + keep),
            lambda scores, keep: softmax(scores + (1 - keep)),
            lambda scores, keep: (scores + keep.astype(float)).softmax(dim=-1),
        ],
        "M24": [
            lambda scores, keep: softmax(np.where(keep, scores, -1e9)),
            lambda scores, keep: softmax(scores + np.where(keep, 0, -1e9)),
            lambda scores, keep: scores.masked_fill(~keep, -1e9).softmax(dim=-1),
        ],
        "no mask": [
            lambda scores, keep: softmax(scores),
            lambda scores, keep: scores.softmax(dim=-1),
        ],
        "no key": [
            lambda scores, keep: softmax(scores + additive(keep)),
            lambda scores, keep: (
                (e := scores.masked_fill(~keep, -INF).exp()) / e.sum(dim=-1, keepdim=True)
            ),
        ],
        "too late": [
            weights_renormalized,
            lambda scores, keep: (w := softmax(scores) * keep) / (w.sum(-1, keepdims=True) + 1e-12),
        ],
    },
}
