"""Attention: against its formula in plain loops, in every form; masks, heads and the cache."""

import math

import numpy as np
import pytest

from course_lib.attention import (
    KVCache,
    MultiHeadAttention,
    attention,
    causal_keep,
    causal_mask,
    fused_attention,
)
from course_lib.gradcheck import check_gradients
from course_lib.tensor import Tensor, no_grad

SEES_NOTHING = np.array([[True, False, True], [False] * 3, [True] * 3])


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def by_hand(q, k, v, bias):
    """Attend in plain Python: q [T, d_k], k [T_total, d_k], v [T_total, d_v], bias [T, T_total]."""
    out = np.zeros((len(q), v.shape[1]))
    for i in range(len(q)):
        scores = [q[i] @ k[j] / math.sqrt(q.shape[1]) + bias[i, j] for j in range(len(k))]
        exps = [math.exp(score) for score in scores]
        for j in range(len(k)):
            out[i] += exps[j] / (sum(exps) or 1) * v[j]
    return out


# -- masks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("t", "t_total"), [(3, 3), (1, 4), (2, 5), (0, 0), (0, 2), (1, 1)])
def test_a_query_sees_the_keys_up_to_itself(t, t_total):
    expected = [[j <= i + (t_total - t) for j in range(t_total)] for i in range(t)]
    keep, mask = causal_keep(t, t_total), causal_mask(t, t_total)
    assert keep.dtype == bool and keep.shape == (t, t_total) and keep.tolist() == expected
    assert mask.dtype == np.float32
    assert np.array_equal(mask, np.where(keep, 0, -np.inf))


def test_without_cached_tokens_the_mask_is_square():
    assert np.array_equal(causal_keep(4), causal_keep(4, 4))
    assert np.array_equal(causal_mask(np.int64(4)), causal_mask(4, 4))


@pytest.mark.parametrize("make", [causal_keep, causal_mask])
@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ((-1,), "t must be a whole number of at least 0, got -1"),
        ((2.0,), "t must be a whole number of at least 0, got 2.0"),
        ((True,), "t must be a whole number of at least 0, got True"),
        ((2, 2.5), "t_total must be a whole number of at least 0, got 2.5"),
        ((3, 2), "causal mask: t_total = 2 keys are fewer than t = 3 queries"),
    ],
)
def test_sizes_that_make_no_mask_are_refused(make, sizes, words):
    with pytest.raises(ValueError, match=words):
        make(*sizes)


# -- attention -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [None, causal_mask(3, 5), normal(3, 5), causal_keep(3, 5)])
def test_attention_is_its_formula(mask):
    q, k, v = normal(3, 4), normal(5, 4, seed=1), normal(5, 2, seed=2)
    bias = np.zeros((3, 5)) if mask is None else mask
    bias = np.where(bias, 0, -np.inf) if bias.dtype == bool else bias
    expected = by_hand(q, k, v, bias)
    assert np.allclose(attention(Tensor(q), Tensor(k), Tensor(v), mask).data, expected, atol=1e-14)
    assert np.allclose(attention(q, k, v, mask).data, expected, atol=1e-14)
    assert check_gradients(lambda q, k, v: attention(q, k, v, mask), q, k, v)


def test_every_sample_and_head_attends_for_itself():
    q, k, v = normal(2, 3, 4, 2), normal(2, 3, 5, 2, seed=1), normal(2, 3, 5, 6, seed=2)
    out = attention(Tensor(q), Tensor(k), Tensor(v), causal_keep(4, 5))
    assert out.shape == (2, 3, 4, 6)
    for b in range(2):
        for h in range(3):
            expected = by_hand(q[b, h], k[b, h], v[b, h], causal_mask(4, 5))
            assert np.allclose(out.data[b, h], expected, atol=1e-14)


def test_the_steps_are_what_was_computed_on_the_way():
    q, k, v = Tensor(normal(3, 4)), Tensor(normal(3, 4, seed=1)), Tensor(normal(3, 2, seed=2))
    out, steps = attention(q, k, v, causal_keep(3), return_steps=True)
    raw = q.data @ k.data.T
    assert np.allclose(steps.raw.data, raw)
    assert np.allclose(steps.scaled.data, raw / 2)
    assert np.allclose(steps.masked.data, np.where(causal_keep(3), raw / 2, -np.inf))
    exps = np.exp(raw / 2) * causal_keep(3)
    assert np.allclose(steps.weights.data, exps / exps.sum(axis=1, keepdims=True))
    assert np.allclose(steps.output.data, steps.weights.data @ v.data) and steps.output is out
    _, steps = attention(q, k, v, return_steps=True)
    assert np.array_equal(steps.masked.data, steps.scaled.data)


def test_a_mask_may_be_a_tensor_and_learn():
    q, k, v, bias = normal(3, 4), normal(5, 4, seed=1), normal(5, 2, seed=2), normal(3, 5, seed=3)
    assert check_gradients(lambda q, bias: attention(q, Tensor(k), Tensor(v), bias), q, bias)
    fixed = attention(Tensor(q), Tensor(k), Tensor(v), Tensor(bias))
    assert np.array_equal(fixed.data, attention(q, k, v, bias).data)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("mask", [None, causal_keep(3), np.zeros((3, 3)), causal_mask(3)])
def test_the_dtype_is_that_of_the_queries(dtype, mask):
    q, k, v = (Tensor(normal(3, 4, seed=i).astype(dtype), requires_grad=True) for i in range(3))
    out = attention(q, k, v, mask)
    out.sum().backward()
    assert out.dtype == q.grad.dtype == v.grad.dtype == dtype


Q, K, V = normal(2, 3, 4), normal(2, 5, 4, seed=1), normal(2, 5, 6, seed=2)


@pytest.mark.parametrize(
    ("q", "k", "v", "mask", "kind", "words"),
    [
        (Q[0, 0], K, V, None, ValueError, r"q \[4\], k \[2, 5, 4\].* \[..., tokens, width\]"),
        (Q, K[0, 0], V, None, ValueError, r"k \[4\].* each needs \[..., tokens, width\]"),
        (Q, K, V[0, 0], None, ValueError, r"v \[6\].* each needs \[..., tokens, width\]"),
        (Q[..., 1:], K, V, None, ValueError, r"q \[2, 3, 3\], k \[2, 5, 4\].* one width d_k"),
        (Q, K[:, 1:], V, None, ValueError, r"k \[2, 4, 4\], v \[2, 5, 6\].* needs its value"),
        (Q, K[:, :0], V[:, :0], None, ValueError, r"k \[2, 0, 4\].* no key"),
        (Q[..., :0], K[..., :0], V, None, ValueError, r"q \[2, 3, 0\].* no key"),
        (Q, K, V, np.ones((3, 4), bool), ValueError, r"mask \[3, 4\] .* scores \[2, 3, 5\]"),
        (Q, K, V, np.ones((4, 2, 3, 5), bool), ValueError, r"mask \[4, 2, 3, 5\] does not"),
        (Q, K, V, Tensor(np.zeros((3, 4))), ValueError, r"mask \[3, 4\] does not broadcast"),
        (Q, K, V, np.ones((3, 5), int), TypeError, "mask holds int64.* Use booleans"),
        (Q, K, V, np.full((3, 5), np.nan), ValueError, r"additive mask .* found NaN or \+inf"),
        (Q, K, V, np.full((3, 5), np.inf), ValueError, r"additive mask .* found NaN or \+inf"),
    ],
)
def test_what_does_not_fit_is_named(q, k, v, mask, kind, words):
    with pytest.raises(kind, match=f"^attention: .*{words}"):
        attention(q, k, v, mask)


@pytest.mark.filterwarnings("error")
def test_a_large_negative_number_is_minus_inf_to_float16():
    q, k = Tensor(np.ones((1, 2), np.float16)), Tensor(np.ones((3, 2), np.float16))
    _, steps = attention(q, k, k, np.array([[0, -1e9, 0]]), return_steps=True)
    assert steps.weights.data.tolist() == [[0.5, 0, 0.5]]


def test_a_mask_that_learns_is_checked_too():
    for mask, words in ((np.ones((3, 4)), "does not broadcast"), (np.full((3, 5), np.nan), "NaN")):
        with pytest.raises(ValueError, match=words):
            attention(Q, K, V, Tensor(mask, requires_grad=True))


# -- fused: one operation for all heads ------------------------------------------------------------


def composed(qkv, n_head, mask=None):
    """The same out of small operations."""
    b, t, width = qkv.shape
    heads = qkv.reshape(b, t, 3, n_head, width // 3 // n_head).permute(2, 0, 3, 1, 4)
    return attention(heads[0], heads[1], heads[2], mask).transpose(1, 2).reshape(b, t, width // 3)


MASKS = {
    "none": None,
    "causal": causal_keep(3),
    "additive": causal_mask(3),
    "a row sees nothing": SEES_NOTHING,
    "by sample": normal(2, 1, 3, 3, seed=5),
}


@pytest.mark.parametrize("n_head", [1, 2])
@pytest.mark.parametrize("name", MASKS)
@pytest.mark.filterwarnings("error")
def test_fused_attention_is_attention_in_values_and_gradients(name, n_head):
    x = normal(2, 3, 12)
    fused, small = Tensor(x, requires_grad=True), Tensor(x, requires_grad=True)
    out, expected = (
        fused_attention(fused, n_head, MASKS[name]),
        composed(small, n_head, MASKS[name]),
    )
    assert out.shape == (2, 3, 4) and np.allclose(out.data, expected.data, rtol=0, atol=1e-14)
    g = normal(2, 3, 4, seed=7)
    out.backward(g)
    expected.backward(g)
    assert np.allclose(fused.grad, small.grad, rtol=0, atol=1e-14)


def test_fused_attention_does_not_overflow_and_keeps_the_dtype():
    x = Tensor((normal(1, 3, 12) * 100).astype(np.float32), requires_grad=True)
    out = fused_attention(x, 2, causal_keep(3))
    out.sum().backward()
    assert out.dtype == x.grad.dtype == np.float32
    assert np.allclose(out.data, composed(x, 2, causal_keep(3)).data, atol=1e-4)


def test_a_gradient_that_is_not_finite_is_told_of_by_name():
    x = Tensor(normal(1, 2, 6), requires_grad=True)
    with pytest.raises(ValueError, match="the backward of attention makes NaN"):
        fused_attention(x, 1).backward(np.full((1, 2, 2), [math.inf, -math.inf]))
    assert x.grad is None


def test_fused_attention_refuses_what_attention_refuses():
    for n_head in (5, 8):
        with pytest.raises(ValueError, match=rf"\[2, 3, 12\] is not 3 × {n_head} heads"):
            fused_attention(Tensor(normal(2, 3, 12)), n_head)
    with pytest.raises(ValueError, match=r"mask \[4, 4\] .* scores \[2, 2, 3, 3\]"):
        fused_attention(Tensor(normal(2, 3, 12)), 2, np.ones((4, 4), bool))
    x = normal(2, 3, 12)
    x[1, 2, 3] = np.inf
    with pytest.raises(ValueError, match=r"attention: a score is NaN or \+inf"):
        fused_attention(Tensor(x), 2)


# -- many heads ------------------------------------------------------------------------------------


def layer_and_input():
    return MultiHeadAttention(6, 3, np.random.default_rng(0)).double(), Tensor(normal(2, 4, 6))


@pytest.mark.parametrize("mask", [None, causal_keep(4)])
def test_heads_attend_in_parallel_each_on_its_own_components(mask):
    layer, x = layer_and_input()
    q, k, v = ((x @ c.weight + c.bias).data for c in (layer.c_q, layer.c_k, layer.c_v))
    bias = np.zeros((4, 4)) if mask is None else causal_mask(4)
    heads = np.zeros((2, 4, 6))
    for b in range(2):
        for own in (slice(0, 2), slice(2, 4), slice(4, 6)):
            heads[b, :, own] = by_hand(q[b, :, own], k[b, :, own], v[b, :, own], bias)
    expected = heads @ layer.c_proj.weight.data + layer.c_proj.bias.data
    assert np.allclose(layer(x, mask).data, expected, rtol=0, atol=1e-14)
    out, steps = layer(x, mask, return_steps=True)
    assert np.allclose(out.data, expected, rtol=0, atol=1e-14)
    assert steps.weights.shape == (2, 3, 4, 4) and steps.output.shape == (2, 3, 4, 2)


def test_with_and_without_steps_the_gradients_are_the_same():
    grads = []
    for return_steps in (False, True):
        layer, x = layer_and_input()
        x.requires_grad = True
        out = layer(x, causal_keep(4), return_steps=return_steps)
        (out[0] if return_steps else out).backward(normal(2, 4, 6, seed=9))
        grads.append([x.grad, *[parameter.grad for parameter in layer.parameters()]])
    for one, other in zip(*grads, strict=True):
        assert np.allclose(one, other, rtol=0, atol=1e-13)


def test_cached_tokens_are_attended_to():
    layer, x = layer_and_input()
    whole = layer(x, causal_keep(4)).data
    with no_grad():
        cache = KVCache(2, 3, 4, 2, np.float64)
        first = layer(x[:, :3], causal_keep(3), cache=cache)
        last, steps = layer(x[:, 3:], causal_keep(1, 4), return_steps=True, cache=cache)
    assert np.allclose(np.concatenate([first.data, last.data], axis=1), whole, atol=1e-14)
    assert steps.weights.shape == (2, 3, 1, 4) and len(cache) == 4


def test_the_four_layers_start_apart():
    layer, _ = layer_and_input()
    names = [f"c_{part}.{kind}" for part in ("q", "k", "v", "proj") for kind in ("weight", "bias")]
    assert [name for name, _ in layer.named_parameters()] == names
    weights = [p.data for name, p in layer.named_parameters() if name.endswith("weight")]
    assert all(w.shape == (6, 6) for w in weights)
    assert len({w.tobytes() for w in weights}) == 4


def test_the_layer_says_what_width_it_needs_and_refuses_a_new_nan():
    layer, x = layer_and_input()
    with pytest.raises(ValueError, match=r"x must be \[B, T, 6\], got \[2, 4, 5\]"):
        layer(x[..., :5])
    layer.c_proj.weight.data = np.full((6, 6), math.inf)
    layer.c_v.weight.data, layer.c_v.bias.data = np.zeros((6, 6)), np.zeros(6)
    with pytest.raises(ValueError, match="attention: this makes NaN: 0 · inf"):
        layer(x)


def test_one_head_takes_the_whole_width():
    layer = MultiHeadAttention(6, 1, np.random.default_rng(0))
    _, steps = layer(Tensor(normal(1, 2, 6)), return_steps=True)
    assert steps.output.shape == (1, 1, 2, 6)


def test_heads_of_unequal_width_are_refused():
    words = "MultiHeadAttention: n_embd = 6 can't be split into n_head = 4"
    with pytest.raises(ValueError, match=words):
        MultiHeadAttention(6, 4, np.random.default_rng(0))


# -- the cache -------------------------------------------------------------------------------------


def test_a_cache_hands_out_all_keys_and_values_in_order():
    keys, values = normal(2, 3, 4, 5), normal(2, 3, 4, 5, seed=1)
    cache = KVCache(2, 3, 4, 5, np.float64)
    assert len(cache) == 0
    for start, end in ((0, 1), (1, 3), (3, 4)):
        k, v = cache.append(Tensor(keys[:, :, start:end]), Tensor(values[:, :, start:end]))
        assert np.array_equal(k.data, keys[:, :, :end])
        assert np.array_equal(v.data, values[:, :, :end])
        assert len(cache) == end and not k.requires_grad
    assert k.dtype == np.float64 and KVCache(1, 1, 1, 1).append(k0(), k0())[0].dtype == np.float32


def k0(t=1, **options):
    return Tensor(np.zeros((1, 1, t, 1), np.float32), **options)


@pytest.mark.parametrize(
    ("k", "v", "kind", "words"),
    [
        (k0(2), k0(2), ValueError, r"KVCache: 2 cached and 2 new tokens do not fit in 3"),
        (k0().reshape(1, 1, 1), k0(), ValueError, r"keys \[1, 1, 1\] .* must be \[1, 1, T, 1\]"),
        (k0(), k0().reshape(1, 1), ValueError, r"values \[1, 1\] must be \[1, 1, T, 1\]"),
        (k0(2).reshape(2, 1, 1, 1), k0(), ValueError, r"keys \[2, 1, 1, 1\]"),
        (k0(2).reshape(1, 2, 1, 1), k0(), ValueError, r"keys \[1, 2, 1, 1\]"),
        (k0(), k0(2).reshape(1, 1, 1, 2), ValueError, r"values \[1, 1, 1, 2\]"),
        (k0(), k0(2), ValueError, r"values \[1, 1, 2, 1\]"),
        (k0(2), k0(), ValueError, r"values \[1, 1, 1, 1\]"),
        (k0(requires_grad=True), k0(), RuntimeError, "KVCache: .* no gradient"),
        (k0(), k0(requires_grad=True), RuntimeError, "KVCache: .* no gradient"),
    ],
)
def test_a_cache_refuses_what_does_not_fit_and_stays_as_it_is(k, v, kind, words):
    cache = KVCache(1, 1, 3, 1)
    cache.append(k0(2), k0(2))
    with pytest.raises(kind, match=words):
        cache.append(k, v)
    assert len(cache) == 2
