"""Faults that other projects had in tensor, mask and attention: small inputs, right values."""

import numpy as np
import pytest

from course_lib.attention import attention, causal_keep
from course_lib.tensor import Tensor, cross_entropy, embedding


def leaf(values):
    return Tensor(values, requires_grad=True, dtype=np.float64)


def test_b01_a_reused_node_is_walked_once():
    a = leaf(1.0)
    b = a + a
    b.retain_grad()
    (b + b).backward()
    assert (a.grad, b.grad) == (4, 2)
    a = leaf(1.0)
    b = a + a
    b.retain_grad()
    (b + (b + a)).backward()
    assert (a.grad, b.grad) == (5, 2)


def test_b02_5000_operations_need_no_recursion():
    x = leaf(1.0)
    y = x
    for _ in range(5000):
        y = y + 1
    y.backward()
    assert (y.item(), x.grad) == (5001, 1)


def test_b03_an_array_on_the_left():
    x = leaf(np.eye(3))
    y = np.eye(3) + x
    assert isinstance(y, Tensor) and np.array_equal(y.data, 2 * np.eye(3))
    y.sum().backward()
    assert np.array_equal(x.grad, np.ones((3, 3)))


def test_b04_gradients_are_unbroadcast():
    a, b = leaf([2.0]), leaf(np.arange(20.0).reshape(5, 4))
    (a * b).sum().backward()
    assert a.grad.tolist() == [190] and np.array_equal(b.grad, np.full((5, 4), 2))
    a, b = leaf([[1.0], [2], [3], [4]]), leaf([[1.0, 2, 3, 4]])
    (a * b).sum().backward()
    assert np.array_equal(a.grad, np.full((4, 1), 10)) and np.array_equal(b.grad, [[10] * 4])


def test_b05_repeated_indices_add_up():
    x = leaf([1.0])
    x[[0, 0]].sum().backward()
    assert x.grad.tolist() == [2]
    table = leaf(np.zeros((4, 2)))
    embedding([[1, 3, 1], [1, 0, 3]], table).backward(np.arange(1.0, 13).reshape(2, 3, 2))
    assert table.grad.tolist() == [[9, 10], [13, 16], [0, 0], [14, 16]]


def test_b06_permute_is_undone():
    u = leaf(np.arange(6.0).reshape(2, 3))
    u.permute(-1, -2).backward(np.arange(6.0).reshape(3, 2))
    assert u.grad.tolist() == [[0, 2, 4], [1, 3, 5]]
    u, g = leaf(np.zeros((2, 3, 4))), np.random.default_rng(0).normal(size=(4, 2, 3))
    u.permute(2, 0, 1).backward(g)
    assert np.array_equal(u.grad, g.transpose(1, 2, 0))


def test_b07_softmax_does_not_overflow():
    x = np.array([-249.873, -424.127, -460.293, 378.097, -292.615], np.float32)
    assert Tensor(x).softmax(dim=-1).data.tolist() == [0, 0, 0, 1, 0]
    s = Tensor(np.array([1000, 1000.5, 999])).softmax(dim=-1).data
    assert s == pytest.approx([0.33149896, 0.54654939, 0.12195165])


def test_b08_ignored_targets():
    with pytest.raises(ValueError, match="ignored"):
        cross_entropy(Tensor(np.zeros((5, 10))), [-100] * 5)
    logits = leaf([[2, 0, 0], [0, 2, 0], [0, 0, 2], [1, 1, 1]])
    loss = cross_entropy(logits, [0, -100, 1, -100])
    loss.backward()
    assert loss.item() == pytest.approx(1.23954477)
    assert not logits.grad[[1, 3]].any() and logits.grad[[0, 2]].all()


def test_b09_a_row_that_sees_nothing_is_zero():
    rng = np.random.default_rng(0)
    q, k, v = leaf(rng.normal(size=(6, 4))), leaf(rng.normal(size=(10, 4))), leaf(np.ones((10, 2)))
    keep = np.tri(6, 10, dtype=bool)
    keep[5] = False
    out = attention(q, k, v, keep)
    out.backward(rng.normal(size=(6, 2)))
    assert not out.data[5].any() and np.allclose(out.data[:5], 1)
    assert not q.grad[5].any()
    assert all(np.isfinite(x.grad).all() for x in (q, k, v))


def test_b10_a_cached_query_sees_all_keys():
    assert causal_keep(1, 8).all()
    v = Tensor(np.arange(16.0).reshape(8, 2))
    out = attention(Tensor(np.zeros((1, 2))), Tensor(np.zeros((8, 2))), v, causal_keep(1, 8))
    assert np.allclose(out.data, [[7, 8]])


def test_b11_true_means_may_attend():
    zeros, v = Tensor(np.zeros((4, 1))), Tensor(np.arange(4.0)[:, None])
    out = attention(zeros, zeros, v, ~np.triu(np.ones((4, 4), bool), 1))
    assert out.data.ravel() == pytest.approx([0, 0.5, 1, 1.5])


def test_b12_a_boolean_is_never_added():
    keep = np.array([True, True, False, False])
    with pytest.raises(TypeError, match="boolean"):
        Tensor([1.0, 2, 3, 4]) + keep
    s = Tensor([1.0, 2, 3, 4]).masked_fill(~keep, -np.inf).softmax(dim=-1)
    assert s.data == pytest.approx([0.26894142, 0.73105858, 0, 0])


def test_b13_masks_go_by_sample_then_head():
    keep = (np.arange(3) < np.array([3, 1])[:, None])[:, None, None, :]  # [B, 1, 1, T]
    zeros = Tensor(np.zeros((2, 2, 3, 1)))
    out = attention(zeros, zeros, Tensor(np.arange(12.0).reshape(2, 2, 3, 1)), keep)
    assert np.allclose(out.data[:, :, 0, 0], [[1, 4], [6, 9]])


@pytest.mark.filterwarnings("error")
def test_b14_minus_1e9_in_float16():
    q = Tensor(np.ones((1, 1), np.float16))
    k = Tensor(np.array([[1], [2], [3], [4]], np.float16))
    v = Tensor(np.eye(4, dtype=np.float16))
    out = attention(q, k, v, np.array([[0, 0, -1e9, -1e9]]))
    assert out.dtype == np.float16
    assert out.data[0] == pytest.approx([0.2688, 0.7310, 0, 0], abs=1e-3)


def test_b15_the_scale_is_that_of_the_head():
    k = Tensor(np.stack([np.ones(16), np.zeros(16)]))
    _, steps = attention(Tensor(np.ones((1, 16))), k, k, return_steps=True)
    assert steps.scaled.data.tolist() == [[4, 0]]
    assert steps.weights.data[0] == pytest.approx([0.98201379, 0.01798621])


def test_b16_heads_are_split_with_a_transpose():
    heads = Tensor(np.arange(24.0).reshape(1, 4, 6)).reshape(1, 4, 3, 2).transpose(1, 2)
    assert heads.data[0, 0].tolist() == [[0, 1], [6, 7], [12, 13], [18, 19]]


def test_b17_two_new_tokens_after_four():
    assert causal_keep(2, 6).astype(int).tolist() == [[1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]]
    v = Tensor(np.arange(6.0)[:, None])
    out = attention(Tensor(np.zeros((2, 1))), Tensor(np.zeros((6, 1))), v, causal_keep(2, 6))
    assert out.data.ravel() == pytest.approx([2, 2.5])
