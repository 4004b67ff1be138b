"""Right answers to the exercises of lesson 10, and wrong ones under the names of their mistakes."""

import math

import answers_lesson_06
import numpy as np

from course_lib import attention as library
from course_lib.functional import embedding
from course_lib.tensor import Tensor, cat, where


def by_total(function):
    """An answer of lesson 06, which is told t and t_total, as one that is told base and t."""
    return lambda base, t: function(t, base + t)


def embed_loops(ids, base, token_table, position_table):
    out = np.zeros((*ids.shape, token_table.shape[1]))
    for b, i in np.ndindex(ids.shape):
        out[b, i] = token_table[ids[b, i]] + position_table[base + i]
    return out


def embed_tensor(ids, base, token_table, position_table):
    positions = np.arange(base, base + ids.shape[1])
    return embedding(ids, Tensor(token_table)) + embedding(positions, Tensor(position_table))


def embed_one_hot(ids, base, token_table, position_table):
    tokens = np.eye(len(token_table))[ids] @ token_table
    return tokens + np.eye(len(position_table))[base:][: ids.shape[1]] @ position_table


def embed_in_place_on_a_copy(ids, base, token_table, position_table):
    x = token_table[ids].copy()
    for i in range(ids.shape[1]):
        x[:, i] += position_table[base + i]
    return x


def softmax(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attend(q, k, v, mask, width=None):
    return softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(width or q.shape[-1]) + mask) @ v, k, v


def attend_tensor(q, k, v, mask, width=None):
    q, k, v = Tensor(q), Tensor(k), Tensor(v)
    scores = q @ k.permute(0, 2, 1) * (1 / math.sqrt(width or q.shape[-1]))
    return (scores + mask).softmax(dim=-1) @ v, k, v


def mask_of(q, k, based=True):
    t, t_total = q.shape[1], k.shape[1]
    return np.triu(np.full((t, t_total), -np.inf), (t_total - t) * based + 1)


def cached(attend, join, mask=mask_of, new_first=False, width=None):
    def answer(q, k, v, cached_k, cached_v):
        pairs = [(cached_k, k), (cached_v, v)]
        k, v = (join(pair[::-1] if new_first else pair) for pair in pairs)
        return attend(q, k, v, mask(q, k), width)

    return answer


def concatenate(pair):
    return np.concatenate(pair, axis=1)


def concatenate_tensors(pair):
    return cat([Tensor(x) for x in pair], dim=1)


def into_a_buffer(pair):
    old, new = pair
    buffer = np.empty((old.shape[0], old.shape[1] + new.shape[1], old.shape[2]))
    buffer[:, : old.shape[1]], buffer[:, old.shape[1] :] = old, new
    return buffer


def query_by_query(q, k, v, cached_k, cached_v):
    rows, base = [], cached_k.shape[1]
    k, v = concatenate((cached_k, k)), concatenate((cached_v, v))
    for i in range(q.shape[1]):
        end = base + i + 1
        rows.append(attend(q[:, i : i + 1], k[:, :end], v[:, :end], 0)[0])
    return np.concatenate(rows, axis=1), k, v


def token_by_token(q, k, v, cached_k, cached_v):
    rows = []
    for i in range(q.shape[1]):
        cached_k = concatenate((cached_k, k[:, i : i + 1]))
        cached_v = concatenate((cached_v, v[:, i : i + 1]))
        rows.append(attend(q[:, i : i + 1], cached_k, cached_v, 0)[0])
    return np.concatenate(rows, axis=1), cached_k, cached_v


def with_the_library(q, k, v, cached_k, cached_v):
    k, v = concatenate_tensors((cached_k, k)), concatenate_tensors((cached_v, v))
    mask = library.causal_mask(q.shape[1], k.shape[1])
    return library.attention(q, k, v, mask), k, v


def with_einsum(q, k, v, cached_k, cached_v):
    k, v = np.hstack((cached_k, k)), np.hstack((cached_v, v))
    scores = np.einsum("bid,bjd->bij", q, k) / math.sqrt(q.shape[-1]) + mask_of(q, k)
    return np.einsum("bij,bjd->bid", softmax(scores), v), k, v


def new_only(q, k, v, cached_k, cached_v):
    return attend(q, k, v, mask_of(q, k))


def new_only_but_joined(q, k, v, cached_k, cached_v):
    joined = concatenate_tensors((cached_k, k)), concatenate_tensors((cached_v, v))
    return attend_tensor(q, k, v, mask_of(q, k))[0], *joined


def running(m, total, scores):
    new = np.maximum(m, scores.max(axis=1))
    return new, total * np.exp(m - new) + np.exp(scores - new[:, None]).sum(axis=1)


def running_loops(m, total, scores):
    out_m, out_total = [], []
    for old, so_far, row in zip(m, total, scores, strict=True):
        for score in row:
            new = max(old, score)
            so_far = so_far * math.exp(old - new) + math.exp(score - new)
            old = new
        out_m.append(old)
        out_total.append(so_far)
    return out_m, out_total


def running_in_place_on_copies(m, total, scores):
    m, total = m.copy(), total.copy()
    for column in scores.T:
        new = np.where(column > m, column, m)
        total *= np.exp(m - new)
        total += np.exp(column - new)
        m[:] = new
    return m, total


def running_tensor(m, total, scores):
    block = Tensor(scores).max(dim=1)
    new = where(block > m, block, Tensor(m))
    old = total * (Tensor(m) - new).exp()
    return new, old + (Tensor(scores) - new.reshape(-1, 1)).exp().sum(dim=1)


def running_by_two_blocks(m, total, scores):
    block = scores.max(axis=1)
    of_block = np.exp(scores - block[:, None]).sum(axis=1)
    new = np.maximum(m, block)
    return new, total * np.exp(m - new) + of_block * np.exp(block - new)


def running_by_logs(m, total, scores):
    new = np.maximum(m, scores.max(axis=1))
    logs = np.concatenate([(m + np.log(total))[:, None], scores], axis=1)
    return new, np.exp(np.logaddexp.reduce(logs, axis=1) - new)


def running_einsum(m, total, scores):
    new = np.max(np.column_stack([m, scores]), axis=1)
    parts = np.column_stack([np.exp(m - new) * total, np.exp(scores - new[:, None])])
    return np.stack([new, np.einsum("tk->t", parts)])


def sums(sum_of):
    def answer(m, total, scores):
        new = np.maximum(m, scores.max(axis=1))
        return new, sum_of(m, total, scores, new)

    return answer


def sums_tensor(sum_of):
    def answer(m, total, scores):
        m, scores = Tensor(m), Tensor(scores)
        block = scores.max(dim=1)
        new = where(block > m, block, m)
        return new, sum_of(m, total, scores, new)

    return answer


RIGHT = {
    "mask_for_step": [
        *(by_total(function) for function in answers_lesson_06.RIGHT["causal_mask"]),
        lambda base, t: library.causal_mask(t, base + t),
    ],
    "embed_new_tokens": [
        lambda ids, base, tokens, positions: tokens[ids] + positions[base : base + ids.shape[1]],
        embed_loops,
        embed_tensor,
        embed_one_hot,
        embed_in_place_on_a_copy,
        lambda ids, base, tokens, positions: (
            tokens.take(ids, axis=0) + positions.take(base + np.arange(ids.shape[1]), axis=0)
        ),
        lambda ids, base, tokens, positions: [
            [tokens[token] + positions[base + i] for i, token in enumerate(row)] for row in ids
        ],
        lambda ids, base, tokens, positions: (
            Tensor(tokens)[ids] + Tensor(positions)[base : base + ids.shape[1]]
        ),
        lambda *inputs: embed_loops(*inputs).astype(np.float32),
    ],
    "attend_with_cache": [
        cached(attend, concatenate),
        cached(attend_tensor, concatenate_tensors),
        cached(attend, into_a_buffer),
        query_by_query,
        token_by_token,
        with_the_library,
        with_einsum,
        lambda *inputs: list(with_einsum(*inputs)),
        lambda *inputs: tuple(part.tolist() for part in query_by_query(*inputs)),
        lambda *inputs: tuple(part.astype(np.float32) for part in with_einsum(*inputs)),
    ],
    "running_softmax": [
        running,
        running_loops,
        running_in_place_on_copies,
        running_tensor,
        running_by_two_blocks,
        running_by_logs,
        running_einsum,
        lambda *inputs: tuple(part.astype(np.float32) for part in running(*inputs)),
    ],
}

WRONG = {
    "mask_for_step": {
        **{
            mistake: [by_total(function) for function in answers]
            for mistake, answers in answers_lesson_06.WRONG["causal_mask"].items()
            if mistake != "base from outside"  # here it is an argument
        },
        "new keys only": [
            lambda base, t: np.triu(np.full((t, t), -np.inf), 1),
            lambda base, t: Tensor(library.causal_mask(t)),
        ],
    },
    "embed_new_tokens": {
        "M31": [
            lambda ids, base, tokens, positions: tokens[ids] + positions[: ids.shape[1]],
            lambda ids, base, tokens, positions: embed_tensor(ids, 0, tokens, positions),
        ],
        "one position": [
            lambda ids, base, tokens, positions: tokens[ids] + positions[base],
            lambda ids, base, tokens, positions: Tensor(tokens)[ids] + Tensor(positions)[base],
        ],
        "one too far": [
            lambda ids, base, *tables: embed_loops(ids, base + 1, *tables),
            lambda ids, base, *tables: embed_tensor(ids, base + 1, *tables),
        ],
        "no position": [
            lambda ids, base, tokens, positions: tokens[ids],
            lambda ids, base, tokens, positions: embedding(ids, Tensor(tokens)),
        ],
    },
    "attend_with_cache": {
        "M32": [
            cached(attend, concatenate, new_first=True),
            cached(attend_tensor, concatenate_tensors, new_first=True),
            cached(
                attend,
                concatenate,
                mask=lambda q, k: np.roll(mask_of(q, k), q.shape[1], axis=1),
                new_first=True,
            ),
        ],
        "M23": [
            cached(attend, concatenate, mask=lambda q, k: mask_of(q, k, based=False)),
            cached(attend_tensor, concatenate_tensors, mask=lambda q, k: mask_of(q, k, False)),
        ],
        "no mask": [
            cached(attend, concatenate, mask=lambda q, k: 0.0),
            cached(attend_tensor, concatenate_tensors, mask=lambda q, k: 0.0),
        ],
        "M04": [
            cached(attend, concatenate, width=1),
            cached(attend_tensor, concatenate_tensors, width=1),
        ],
        "cache unused": [new_only, new_only_but_joined],
    },
    "running_softmax": {
        "not rescaled": [
            sums(lambda m, total, scores, new: total + np.exp(scores - new[:, None]).sum(axis=1)),
            sums_tensor(
                lambda m, total, scores, new: total + (scores - new.reshape(-1, 1)).exp().sum(dim=1)
            ),
        ],
        "rescaled the wrong way": [
            sums(
                lambda m, total, scores, new: (
                    total * np.exp(new - m) + np.exp(scores - new[:, None]).sum(axis=1)
                )
            ),
            sums_tensor(
                lambda m, total, scores, new: (
                    (new - m).exp() * total + (scores - new.reshape(-1, 1)).exp().sum(dim=1)
                )
            ),
        ],
        "two maxima": [
            sums(
                lambda m, total, scores, new: (
                    total * np.exp(m - new)
                    + np.exp(scores - scores.max(axis=1, keepdims=True)).sum(axis=1)
                )
            ),
            sums(lambda m, total, scores, new: total + np.exp(scores - m[:, None]).sum(axis=1)),
            sums_tensor(
                lambda m, total, scores, new: (
                    total + (scores - scores.max(dim=1, keepdim=True)).exp().sum(dim=1)
                )
            ),
        ],
        "M10": [
            sums(lambda m, total, scores, new: total + np.exp(scores).sum(axis=1)),
            sums_tensor(lambda m, total, scores, new: total + scores.exp().sum(dim=1)),
        ],
        "maximum of the block": [
            lambda m, total, scores: (
                scores.max(axis=1),
                total * np.exp(m - scores.max(axis=1))
                + np.exp(scores - scores.max(axis=1, keepdims=True)).sum(axis=1),
            ),
            lambda m, total, scores: (
                scores.max(dim=1),
                total * (m - scores.max(dim=1)).exp()
                + (scores - scores.max(dim=1, keepdim=True)).exp().sum(dim=1),
            ),
        ],
    },
}
