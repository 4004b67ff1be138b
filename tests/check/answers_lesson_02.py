"""Right answers to the exercises of lesson 02, and wrong ones under the names of their mistakes."""

import math

import numpy as np

from course_lib.tensor import Tensor


def lookup_loops(query, keys, values):
    weights = []
    for key in keys:
        weights.append(math.exp(sum(a * b for a, b in zip(query, key, strict=True))))
    out = [0.0] * values.shape[1]
    for weight, value in zip(weights, values, strict=True):
        for c in range(len(out)):
            out[c] += weight / sum(weights) * value[c]
    return out


def lookup_numpy(query, keys, values):
    e = np.exp(keys @ query)
    return (e / e.sum()) @ values


def lookup_max_first(query, keys, values):
    scores = np.dot(keys, query)
    scores -= scores.max()
    weights = np.exp(scores)
    weights /= weights.sum()
    return np.dot(weights, values)


def lookup_tensor_by_hand(query, keys, values):
    e = (Tensor(keys, requires_grad=True) @ query).exp()
    return (e / e.sum()) @ values


def weights_of(query, keys):
    e = np.exp(keys @ query)
    return e / e.sum()


RIGHT = {
    "soft_lookup": [
        lookup_loops,
        lookup_numpy,
        lookup_max_first,
        lookup_tensor_by_hand,
        lambda query, keys, values: (keys @ query).softmax(dim=-1) @ values,
        lambda query, keys, values: (query @ keys.T).softmax(dim=0) @ values,
        lambda query, keys, values: np.einsum("n,nd->d", weights_of(query, keys), values),
        lambda query, keys, values: (weights_of(query, keys)[:, None] * values).sum(axis=0),
        lambda query, keys, values: sum(
            w * v for w, v in zip(weights_of(query, keys), values, strict=True)
        ),
        lambda query, keys, values: np.average(values, axis=0, weights=np.exp(keys @ query)),
        lambda query, keys, values: lookup_numpy(query, keys, values).astype(np.float32),
    ],
}

WRONG = {
    "soft_lookup": {
        "M26": [
            lambda query, keys, values: values[np.argmax(keys @ query)],
            lambda query, keys, values: Tensor(values)[int(np.argmax(keys @ query))],
        ],
        "average": [
            lambda query, keys, values: values.mean(axis=0),
            lambda query, keys, values: values.mean(dim=0),
        ],
        "not normalized": [
            lambda query, keys, values: np.exp(keys @ query) @ values,
            lambda query, keys, values: (keys @ query).exp() @ values,
        ],
        "M14": [
            lambda query, keys, values: (keys @ query) / (keys @ query).sum() @ values,
            lambda query, keys, values: np.abs(keys @ query) / np.abs(keys @ query).sum() @ values,
            lambda query, keys, values: (
                Tensor(keys) @ query / (Tensor(keys) @ query).sum() @ values
            ),
        ],
        "scores as weights": [
            lambda query, keys, values: keys @ query @ values,
            lambda query, keys, values: (query @ keys.permute(1, 0)) @ values,
        ],
        "mix of keys": [
            lambda query, keys, values: weights_of(query, keys) @ keys,
            lambda query, keys, values: (keys @ query).softmax(dim=-1) @ keys,
        ],
        "scaled": [
            lambda query, keys, values: weights_of(query / np.sqrt(len(query)), keys) @ values,
            lambda query, keys, values: (keys @ query / len(query)).softmax(dim=-1) @ values,
        ],
    },
}
