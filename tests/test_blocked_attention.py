"""Blocked attention computes what attention does, in memory that grows with T."""

import tracemalloc

import numpy as np
import pytest

from course_lib.attention import attention, blocked_attention, causal_mask
from course_lib.tensor import Tensor


def inputs(t, t_total, dtype=np.float64):
    rng = np.random.default_rng(t)
    shapes = ((2, t, 4), (2, t_total, 4), (2, t_total, 3))
    return [Tensor(rng.normal(size=s).astype(dtype), requires_grad=True) for s in shapes]


@pytest.mark.parametrize(
    ("t", "t_total"), [(1, 1), (7, 7), (8, 8), (3, 10), (1, 9), (13, 13), (5, 7)]
)
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


def test_without_causality_there_may_be_more_queries_than_keys():
    q, k, v = inputs(9, 4)
    assert np.allclose(blocked_attention(q, k, v, block=2).data, attention(q, k, v).data)
    with pytest.raises(ValueError, match="t_total = 4 keys are fewer than t = 9 queries"):
        blocked_attention(q, k, v, block=2, causal=True)


def test_by_default_every_key_is_seen_in_float32_too():
    q, k, v = inputs(300, 300, np.float32)
    out = blocked_attention(q, k, v)
    out.sum().backward()
    assert np.allclose(out.data, attention(q, k, v).data, atol=1e-5)
    assert out.dtype == q.grad.dtype == k.grad.dtype == v.grad.dtype == np.float32


@pytest.mark.parametrize("block", [0, -1, 2.5, True, None])
def test_a_block_is_a_whole_number_of_at_least_1(block):
    with pytest.raises(
        ValueError, match=f"block must be a whole number of at least 1, got {block}"
    ):
        blocked_attention(*inputs(3, 3), block=block)
    assert blocked_attention(*inputs(3, 3), block=np.int64(1)).shape == (2, 3, 3)


def test_shapes_batch_axes_and_dtypes_must_fit():
    q, k, v = inputs(3, 5)
    for one, other, third in ((q[0], k, v), (q, k[0], v), (q, k, v[0])):
        shapes = ".*".join(str(list(x.shape)).replace("[", r"\[") for x in (one, other, third))
        with pytest.raises(ValueError, match=rf"^attention: .*{shapes}.* must be equal here"):
            blocked_attention(one, other, third)
    with pytest.raises(ValueError, match=r"float64, k .* float32, .* dtype must be equal here"):
        blocked_attention(q, Tensor(k.data, dtype=np.float32), v)
    with pytest.raises(ValueError, match="queries and keys need one width"):
        blocked_attention(q, k[..., :2], v)


def test_numbers_that_are_not_finite_are_told_of_by_name():
    q, k, v = inputs(3, 3)
    with pytest.raises(ValueError, match="the backward of blocked attention makes NaN"):
        blocked_attention(q, k, v, block=2).backward(np.full((2, 3, 3), [1, np.inf, -np.inf]))
    assert q.grad is None
    k.data = np.where(k.data > 1, np.nan, k.data)
    with pytest.raises(ValueError, match="attention: a score is NaN or"):
        blocked_attention(q, k, v, block=2)
