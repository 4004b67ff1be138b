"""Right answers to the exercises of lesson 07, and wrong ones under the names of their mistakes."""

import math

import numpy as np

from course_lib import attention as library
from course_lib.tensor import Tensor, stack


def softmax(scores, axis=-1):
    e = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def dots(q, k):
    return q @ np.swapaxes(k, -1, -2)


def scaled(q, k):
    return dots(q, k) / np.sqrt(q.shape[-1])


def attention_numpy(q, k, v, mask):
    return softmax(scaled(q, k) + mask) @ v


def attention_loops(q, k, v, mask):
    out = np.zeros((*q.shape[:2], v.shape[2]))
    for b, i in np.ndindex(q.shape[:2]):
        scores = [q[b, i] @ k[b, j] / math.sqrt(q.shape[2]) for j in range(k.shape[1])]
        seen = [j for j in range(k.shape[1]) if mask[i, j] == 0]
        top = max(scores[j] for j in seen)
        total = sum(math.exp(scores[j] - top) for j in seen)
        for j in seen:
            out[b, i] += math.exp(scores[j] - top) / total * v[b, j]
    return out


def attention_tensor(q, k, v, mask):
    scores = (q @ k.permute(0, 2, 1)) * (1 / math.sqrt(q.shape[-1]))
    return (scores + mask).softmax(dim=-1) @ v


def attention_in_place_on_copies(q, k, v, mask):
    scores = np.matmul(q, k.transpose(0, 2, 1))
    scores /= math.sqrt(q.shape[-1])
    scores += mask
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores @ v


def attention_einsum(q, k, v, mask):
    scores = np.einsum("bid,bjd->bij", q, k) / q.shape[-1] ** 0.5 + mask
    return np.einsum("bij,bjd->bid", softmax(scores), v)


def attention_broadcast(q, k, v, mask):
    scores = (q[:, :, None] * k[:, None]).sum(-1) / np.sqrt(k.shape[-1])
    return (softmax(np.where(mask == 0, scores, -np.inf))[..., None] * v[:, None]).sum(axis=2)


def attention_normalized_last(q, k, v, mask):
    scores = scaled(q, k) + mask
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (e @ v) / e.sum(axis=-1, keepdims=True)


def with_gradients(q, k, v, mask):
    return attention_tensor(*(Tensor(x, requires_grad=True) for x in (q, k, v)), mask)


def after(weigh):
    return lambda q, k, v, mask: weigh(scaled(q, k), mask) @ v


def after_tensor(weigh):
    def answer(q, k, v, mask):
        return weigh(q @ k.permute(0, 2, 1) / math.sqrt(q.shape[-1]), mask) @ v

    return answer


def divided_by(width):
    return lambda q, k, v, mask: softmax(dots(q, k) / width(q) + mask) @ v


def divided_by_tensor(width):
    return lambda q, k, v, mask: (q @ k.permute(0, 2, 1) / width(q) + mask).softmax(dim=-1) @ v


def naive(scores, mask):
    e = np.exp(scores + mask)
    return e / e.sum(axis=-1, keepdims=True)


def naive_tensor(scores, mask):
    e = (scores + mask).exp()
    return e / e.sum(dim=-1, keepdim=True)


def stable_exp(scores):
    return np.exp(scores - scores.max(axis=-1, keepdims=True))


def shares(scores, mask):
    kept = np.abs(np.where(mask == 0, scores, 0))
    return kept / kept.sum(axis=-1, keepdims=True)


def best_only(q, k, v, mask):
    best = (scaled(q, k) + mask).argmax(axis=-1)
    return np.stack([v[b][best[b]] for b in range(len(v))])


def best_only_one_hot(q, k, v, mask):
    scores = Tensor(scaled(q, k) + mask)
    return (scores == scores.max(dim=-1, keepdim=True)) * Tensor(1.0) @ v


RIGHT = {
    "attention": [
        attention_numpy,
        attention_loops,
        attention_tensor,
        attention_in_place_on_copies,
        attention_einsum,
        attention_broadcast,
        attention_normalized_last,
        with_gradients,
        library.attention,
        lambda q, k, v, mask: [attention_numpy(*one, mask) for one in zip(q, k, v, strict=True)],
        lambda q, k, v, mask: stack(
            [library.attention(*one, mask) for one in zip(q, k, v, strict=True)]
        ),
        lambda q, k, v, mask: attention_numpy(
            *(x.astype(np.float32) for x in (q, k, v)), mask
        ).astype(np.float32),
    ],
}

WRONG = {
    "attention": {
        "M04": [divided_by(lambda q: 1), divided_by_tensor(lambda q: 1)],
        "M05": [divided_by(lambda q: q.shape[-1]), divided_by_tensor(lambda q: q.shape[-1])],
        "M06": [
            divided_by(lambda q: q.shape[1] ** 0.5),
            divided_by_tensor(lambda q: q.shape[1] ** 0.5),
        ],
        "M07": [divided_by(lambda q: 8), divided_by_tensor(lambda q: (2 * q.shape[-1]) ** 0.5)],
        "M08": [
            lambda q, k, v, mask: attention_numpy(q, q, v, mask),
            lambda q, k, v, mask: attention_tensor(q, q, v, mask),
        ],
        "M09": [
            lambda q, k, v, mask: attention_numpy(k, q, v, mask),
            lambda q, k, v, mask: attention_tensor(k, q, v, mask),
        ],
        "M10": [after(naive), after_tensor(naive_tensor)],
        "M11": [
            after(lambda scores, mask: softmax(scores + mask, axis=1)),
            after_tensor(lambda scores, mask: (scores + mask).softmax(dim=1)),
        ],
        "M12": [
            after(lambda scores, mask: softmax(scores + mask, axis=(1, 2))),
            after_tensor(lambda scores, mask: (scores + mask).softmax(dim=(0, 1, 2))),
            after(lambda scores, mask: (e := stable_exp(scores + mask)) / e.sum()),
            after(
                lambda scores, mask: (e := stable_exp(scores + mask)) / e.sum((1, 2), keepdims=True)
            ),
        ],
        "M13": [
            after(lambda scores, mask: naive(scores - (scores + mask).max(), mask)),
            after_tensor(lambda scores, mask: naive_tensor(scores - (scores + mask).max(), mask)),
        ],
        "fixed scale": [
            divided_by(lambda q: 2**0.5),
            divided_by_tensor(lambda q: math.sqrt(3)),
            lambda q, k, v, mask: softmax(dots(q, k) / v.shape[-1] ** 0.5 + mask) @ v,
        ],
        "not normalized": [
            after(lambda scores, mask: stable_exp(scores + mask)),
            after_tensor(lambda scores, mask: (scores + mask).exp()),
        ],
        "no softmax": [
            after(lambda scores, mask: scores + mask),
            after_tensor(lambda scores, mask: scores),
        ],
        "mask not added": [
            after(lambda scores, mask: softmax(scores * mask)),
            after(lambda scores, mask: softmax(scores) * mask),
            after(lambda scores, mask: softmax(scores - mask)),
        ],
        "M14": [after(shares), lambda q, k, v, mask: Tensor(shares(scaled(q, k), mask)) @ v],
        "M17": [
            after(
                lambda scores, mask: np.nan_to_num(softmax(np.where(mask == 0, -np.inf, scores)))
            ),
            after_tensor(lambda scores, mask: scores.masked_fill(mask == 0, -np.inf).softmax(-1)),
        ],
        "M20": [
            after(lambda scores, mask: softmax(scores) * np.exp(mask)),
            after_tensor(lambda scores, mask: scores.softmax(-1).masked_fill(mask < 0, 0.0)),
        ],
        "M21": [
            after(lambda scores, mask: softmax(scores * (mask == 0))),
            after_tensor(lambda scores, mask: scores.masked_fill(mask < 0, 0.0).softmax(-1)),
        ],
        "M22": [
            after(lambda scores, mask: softmax(scores + (mask == 0))),
            after(lambda scores, mask: softmax(scores + (mask != 0))),
            after_tensor(lambda scores, mask: (scores + mask.exp()).softmax(-1)),
        ],
        "no mask": [
            after(lambda scores, mask: softmax(scores)),
            after_tensor(lambda scores, mask: scores.softmax(-1)),
        ],
        "M25": [
            lambda q, k, v, mask: np.swapaxes(softmax(scaled(q, k) + mask), 1, 2) @ v,
            lambda q, k, v, mask: (
                (q @ k.mT / math.sqrt(q.shape[-1]) + mask).softmax(-1).permute(0, 2, 1) @ v
            ),
        ],
        "M26": [best_only, best_only_one_hot],
    },
}
