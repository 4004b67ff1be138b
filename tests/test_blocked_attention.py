"""Blocked attention computes what attention does, in memory that grows with T."""

import tracemalloc

import numpy as np
import pytest

from course_lib.attention import KVCache, attention, blocked_attention, causal_mask
from course_lib.tensor import Tensor


def inputs(t, t_total, dtype=np.float64):
    rng = np.random.default_rng(t)
    shapes = ((2, t, 4), (2, t_total, 4), (2, t_total, 3))
    return [Tensor(rng.normal(size=s).astype(dtype), requires_grad=True) for s in shapes]


@pytest.mark.parametrize(("t", "t_total"), [(1, 1), (7, 7), (8, 8), (3, 10), (1, 9), (13, 13)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("block", [1, 4, 100])
def test_values_and_gradients_are_those_of_attention(t, t_total, causal, block):
    results = []
    for blocked in (True, False):
        q, k, v = inputs(t, t_total)
        if blocked:
            out = blocked_attention(q, k, v, block=block, causal=causal)
        else:
            out = attention(q, k, v, causal_mask(t, t_total) if causal else None)
        out.backward(np.cos(np.arange(out.data.size)).reshape(out.shape))
        results.append([out.data, q.grad, k.grad, v.grad])
    for ours, expected in zip(*results, strict=True):
        assert np.allclose(ours, expected, rtol=0, atol=1e-12)


def test_scores_near_1000_do_not_overflow():
    q, k, v = inputs(6, 6)
    q.data = q.data * 1000
    out = blocked_attention(q, k, v, block=2)
    assert np.allclose(out.data, attention(q, k, v).data)


def test_memory_grows_with_t_and_not_with_its_square():
    def peak(t):
        q, k, v = inputs(t, t, np.float32)
        tracemalloc.start()
        blocked_attention(q, k, v, block=64).sum().backward()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(2048) < 2.5 * peak(1024)


def test_a_cache_keeps_order_and_refuses_what_does_not_fit():
    cache = KVCache(1, 1, 4, 2, np.float64)
    x = Tensor(np.arange(8.0).reshape(1, 1, 4, 2))
    cache.append(x[:, :, :3], x[:, :, :3])
    k, _ = cache.append(x[:, :, 3:], x[:, :, 3:])
    assert np.array_equal(k.data, x.data) and len(cache) == 4
    with pytest.raises(ValueError, match="do not fit in 4"):
        cache.append(x[:, :, :1], x[:, :, :1])
    with pytest.raises(ValueError, match=r"\[1, 1, T, 2\]"):
        KVCache(1, 1, 4, 2).append(x[..., :1], x[..., :1])
    y = Tensor(np.ones((1, 1, 1, 2)), requires_grad=True)
    with pytest.raises(RuntimeError, match="no gradient"):
        KVCache(1, 1, 4, 2).append(y, y)
