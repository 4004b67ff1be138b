"""Lesson 08: its split, its merge and its whole layer are the library's heads."""

import copy

import executed
import numpy as np
import pytest

from course_lib.attention import MultiHeadAttention, attention, causal_mask, fused_attention
from course_lib.tensor import Tensor, cat


@pytest.fixture(scope="module")
def lesson():
    return executed.names_of("08")


@pytest.fixture(params=range(4))
def rng(request):
    return np.random.default_rng(request.param)


@pytest.fixture(params=[(1, 12, 1), (2, 12, 3), (3, 8, 8)])
def drawn(request, rng):
    """Return q, k, v [B, T, D], T = 5, and the number of heads."""
    b, d, n_head = request.param
    return rng.normal(size=(3, b, 5, d)), n_head


def test_split_and_merge_are_what_the_librarys_layer_does(lesson, drawn):
    (q, k, v), n_head = drawn
    split = [lesson["split_heads"](x, n_head) for x in (q, k, v)]  # [B, H, T, head_dim]
    merged = lesson["merge_heads"](attention(*split, causal_mask(5)).data)
    qkv = cat([Tensor(q), Tensor(k), Tensor(v)], dim=-1)
    right = fused_attention(qkv, n_head, causal_mask(5)).data
    np.testing.assert_allclose(merged, right, rtol=1e-10)


def test_multi_head_is_the_librarys(lesson, drawn):
    (q, k, v), n_head = drawn
    right = fused_attention(cat([Tensor(q), Tensor(k), Tensor(v)], dim=-1), n_head).data
    np.testing.assert_allclose(lesson["multi_head"](q, k, v, n_head), right, rtol=1e-10)


def test_the_cut_and_the_way_back_are_the_exercises(lesson, rng):
    names = executed.rerun(
        "08", "split = cut.transpose(1, 2)", x=Tensor(rng.normal(size=(1, 4, 6)))
    )
    split, x = names["split"].data, names["x"].data
    np.testing.assert_array_equal(split, lesson["split_heads"](x, 3))
    names = executed.rerun("08", "back = split.transpose(1, 2)", split=Tensor(split), x=Tensor(x))
    np.testing.assert_array_equal(names["merged"].data, lesson["merge_heads"](split))


def test_all_heads_at_once_are_the_librarys_attention(rng):
    shape = {"b": 3, "h": 2, "t": 7, "head_dim": 5}
    q, k, v = (Tensor(rng.normal(size=(3, 2, 7, 5))) for _ in range(3))
    line = "the mask [T, T] serves every head"
    names = executed.rerun("08", line, q=q, k=k, v=v, **shape)
    right = attention(q, k, v, causal_mask(7))
    np.testing.assert_allclose(names["out"].data, right.data, rtol=1e-10)


def test_the_whole_layer_is_the_librarys_with_every_gradient(lesson, drawn, rng):
    (x, g, _), n_head = drawn
    layer = MultiHeadAttention(x.shape[-1], n_head, rng).double()
    twin = copy.deepcopy(layer)
    x_ours, x_theirs = (Tensor(x, requires_grad=True) for _ in range(2))
    ours = lesson["whole_layer"](layer, x_ours, n_head, causal_mask(5))
    theirs = twin(x_theirs, causal_mask(5))
    np.testing.assert_allclose(ours.data, theirs.data, rtol=1e-10)
    ours.backward(g)
    theirs.backward(g)
    np.testing.assert_allclose(x_ours.grad, x_theirs.grad, rtol=1e-8, atol=1e-12)
    for (name, p), q in zip(layer.named_parameters(), twin.parameters(), strict=True):
        np.testing.assert_allclose(p.grad, q.grad, rtol=1e-8, atol=1e-12, err_msg=name)
