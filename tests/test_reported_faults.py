"""Faults that other projects had: the input each was reported with, its right value, its kind.

A test named after a case (b01 …) has the reported input; the test below it, of_its_kind, looks
through random input. Cases of figures, files and generation stand where those are tested.
"""

import itertools
import operator
import re
from pathlib import Path

import numpy as np
import pytest

from course_lib.attention import (
    MultiHeadAttention,
    attention,
    blocked_attention,
    causal_keep,
    fused_attention,
)
from course_lib.functional import cross_entropy, embedding
from course_lib.gpt import GPT, GPTConfig
from course_lib.gradcheck import check_gradients
from course_lib.tensor import Tensor, cat, no_grad

CASES = [f"b{number:02}" for number in range(1, 26)]
SEEDS = pytest.mark.parametrize("seed", range(5))


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("case", CASES)
def test_every_case_has_a_test_of_its_name(case):
    tests = Path(__file__).parent.rglob("test_*.py")
    named = rf"def test_{case}_|id=.{case.upper()}\b"
    assert any(re.search(named, path.read_text(encoding="utf-8")) for path in tests)


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


@SEEDS
def test_of_its_kind_b01_values_used_many_times(rng):
    steps = [(rng.integers(n), rng.integers(n), rng.integers(3)) for n in range(2, 14)]

    def tangle(a, b):
        values = [a, b]
        for i, j, kind in steps:
            values.append((operator.add, operator.sub, operator.mul)[kind](values[i], values[j]))
        return sum((value.tanh() for value in values[1:]), start=a)

    assert check_gradients(tangle, *rng.normal(size=(2, 3)))


def test_b02_5000_operations_need_no_recursion():
    x = leaf(1.0)
    y = x
    for _ in range(5000):
        y = y + 1
    y.backward()
    assert (y.item(), x.grad) == (5001, 1)


@pytest.mark.parametrize(
    "step",
    [
        lambda x: x - 1,
        lambda x: x * 1.0001,
        lambda x: x.tanh(),
        lambda x: x.softmax(dim=-1),
        lambda x: x.reshape(2, 1).permute(1, 0),
        lambda x: x @ np.eye(2),
        lambda x: cat([x[:, 1:], x[:, :1]], dim=1),
    ],
)
def test_of_its_kind_b02_long_chains_of_any_operation(step):
    x = leaf([[0.3, -0.2]])
    y = x
    for _ in range(3000):
        y = step(y)
    y.sum().backward()
    assert np.isfinite(x.grad).all()


def test_b03_an_array_on_the_left():
    x = leaf(np.eye(3))
    y = np.eye(3) + x
    assert isinstance(y, Tensor) and np.array_equal(y.data, 2 * np.eye(3))
    y.sum().backward()
    assert np.array_equal(x.grad, np.ones((3, 3)))


@SEEDS
@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow", "matmul", "lt", "eq"])
def test_of_its_kind_b03_an_array_on_the_left_is_a_tensor_on_the_left(name, rng):
    operation = getattr(operator, name)
    array = rng.uniform(0.5, 2, size=(3, 3))
    x, y = (leaf(rng.uniform(0.5, 2, size=(3, 3))) for _ in range(2))
    y.data = x.data
    found, right = operation(array, x), operation(Tensor(array), y)
    assert isinstance(found, Tensor) and found.dtype == right.dtype
    assert np.array_equal(found.data, operation(array, x.data))
    if right.requires_grad:
        g = rng.normal(size=(3, 3))
        found.backward(g)
        right.backward(g)
        assert np.array_equal(x.grad, y.grad)


def test_b04_gradients_are_unbroadcast():
    a, b = leaf([2.0]), leaf(np.arange(20.0).reshape(5, 4))
    (a * b).sum().backward()
    assert a.grad.tolist() == [190] and np.array_equal(b.grad, np.full((5, 4), 2))
    a, b = leaf([[1.0], [2], [3], [4]]), leaf([[1.0, 2, 3, 4]])
    (a * b).sum().backward()
    assert np.array_equal(a.grad, np.full((4, 1), 10)) and np.array_equal(b.grad, [[10] * 4])


@SEEDS
@pytest.mark.parametrize("b", [(), (1,), (4,), (3, 1), (1, 4), (3, 4), (2, 1, 1), (5, 2, 3, 4)])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv"])
def test_of_its_kind_b04_as_if_written_out_in_full(name, b, rng):
    operation = getattr(operator, name)
    x, y = leaf(rng.normal(size=(2, 3, 4))), leaf(rng.uniform(0.5, 2, size=b))
    out = operation(x, y)
    full = [leaf(np.broadcast_to(one.data, out.shape)) for one in (x, y)]
    g = rng.normal(size=out.shape)
    out.backward(g)
    operation(*full).backward(g)
    for one, written_out in zip((x, y), full, strict=True):
        copies = np.broadcast_to(np.arange(one.data.size).reshape(one.shape), out.shape)
        summed = np.bincount(copies.ravel(), written_out.grad.ravel())
        assert one.grad.shape == one.shape
        assert one.grad.ravel() == pytest.approx(summed, abs=1e-12)


def test_b05_repeated_indices_add_up():
    x = leaf([1.0])
    x[[0, 0]].sum().backward()
    assert x.grad.tolist() == [2]
    table = leaf(np.zeros((4, 2)))
    embedding([[1, 3, 1], [1, 0, 3]], table).backward(np.arange(1.0, 13).reshape(2, 3, 2))
    assert table.grad.tolist() == [[9, 10], [13, 16], [0, 0], [14, 16]]


@SEEDS
@pytest.mark.parametrize("shape", [(), (7,), (3, 4), (0,)])
def test_of_its_kind_b05_as_a_product_with_a_one_hot_table(shape, rng):
    ids, g = rng.integers(0, 4, size=shape), rng.normal(size=(*shape, 3))
    right = np.eye(4)[ids.ravel()].T @ g.reshape(-1, 3)
    for look_up in (lambda table: embedding(ids, table), lambda table: table[ids]):
        table = leaf(rng.normal(size=(4, 3)))
        look_up(table).backward(g)
        assert table.grad == pytest.approx(right)


def test_b06_permute_is_undone():
    u = leaf(np.arange(6.0).reshape(2, 3))
    u.permute(-1, -2).backward(np.arange(6.0).reshape(3, 2))
    assert u.grad.tolist() == [[0, 2, 4], [1, 3, 5]]
    u, g = leaf(np.zeros((2, 3, 4))), np.random.default_rng(0).normal(size=(4, 2, 3))
    u.permute(2, 0, 1).backward(g)
    assert np.array_equal(u.grad, g.transpose(1, 2, 0))


@pytest.mark.parametrize("dims", list(itertools.permutations(range(4))))
def test_of_its_kind_b06_every_order_of_four_axes(dims):
    u = np.arange(120.0).reshape(2, 3, 4, 5)
    for signed in (dims, [d - 4 for d in dims], [d - 4 * (d % 2) for d in dims]):
        x = leaf(u)
        x.permute(*signed).backward(u.transpose(dims))  # each entry gets its own number back
        assert np.array_equal(x.grad, u)


def test_b07_softmax_does_not_overflow():
    x = np.array([-249.873, -424.127, -460.293, 378.097, -292.615], np.float32)
    assert Tensor(x).softmax(dim=-1).data.tolist() == [0, 0, 0, 1, 0]
    s = Tensor(np.array([1000, 1000.5, 999])).softmax(dim=-1).data
    assert s == pytest.approx([0.33149896, 0.54654939, 0.12195165])


@SEEDS
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 100, 30_000])
def test_of_its_kind_b07_logits_of_any_size(dtype, size, rng):
    x = (rng.normal(size=(4, 6)) * size).clip(-60_000, 60_000).astype(dtype)
    s = Tensor(x).softmax(dim=-1).data
    assert s.dtype == dtype and (s >= 0).all()
    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=-1, keepdims=True))
    tolerance = 4 * float(np.finfo(dtype).eps)
    assert s == pytest.approx(powers / powers.sum(axis=-1, keepdims=True), abs=tolerance)
    loss = cross_entropy(Tensor(wide), wide.argmax(axis=-1)).item()
    assert loss == pytest.approx(np.log(powers.sum(axis=-1)).mean())


def test_b08_ignored_targets():
    with pytest.raises(ValueError, match="ignored"):
        cross_entropy(Tensor(np.zeros((5, 10))), [-100] * 5)
    logits = leaf([[2, 0, 0], [0, 2, 0], [0, 0, 2], [1, 1, 1]])
    loss = cross_entropy(logits, [0, -100, 1, -100])
    loss.backward()
    assert loss.item() == pytest.approx(1.23954477)
    assert not logits.grad[[1, 3]].any() and logits.grad[[0, 2]].all()


@SEEDS
def test_of_its_kind_b08_ignored_rows_might_as_well_be_left_out(rng):
    targets = rng.integers(0, 5, size=(3, 4))
    ignored = rng.random((3, 4)) < 0.5
    ignored[0, 0] = False
    logits = leaf(rng.normal(size=(3, 4, 5)))
    loss = cross_entropy(logits, np.where(ignored, -100, targets))
    few = leaf(logits.data[~ignored])
    right = cross_entropy(few, targets[~ignored])
    loss.backward()
    right.backward()
    assert loss.item() == pytest.approx(right.item())
    assert not logits.grad[ignored].any()
    assert logits.grad[~ignored] == pytest.approx(few.grad)


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


@SEEDS
@pytest.mark.parametrize("additive", [False, True])
def test_of_its_kind_b09_empty_rows_change_nothing_else(additive, rng):
    keep = rng.random((2, 1, 6, 6)) < 0.5
    keep[:, :, rng.integers(6)] = False
    empty = ~keep.any(axis=-1)[..., None]  # [B, 1, T, 1]
    mask = np.where(keep, 0, -np.inf) if additive else keep
    qkv = leaf(rng.normal(size=(2, 6, 3 * 8)))
    heads = [qkv.data.reshape(2, 6, 3, 2, 4)[:, :, n].swapaxes(1, 2) for n in range(3)]
    q, k, v = map(leaf, heads)  # [B, H, T, head_dim] each
    out, g = attention(q, k, v, mask), rng.normal(size=(2, 2, 6, 4))
    filled = attention(q.data, k.data, v.data, keep | empty).data  # empty rows see everything
    assert out.data == pytest.approx(np.where(empty, 0, filled))
    out.backward(g)
    fused = fused_attention(qkv, 2, mask)
    assert fused.data == pytest.approx(out.data.swapaxes(1, 2).reshape(2, 6, 8))
    fused.backward(g.swapaxes(1, 2).reshape(2, 6, 8))
    for x in (q, k, v, qkv):
        assert np.isfinite(x.grad).all()
    assert not q.grad[np.broadcast_to(empty, q.shape)].any()


def test_b10_a_cached_query_sees_all_keys():
    assert causal_keep(1, 8).all()
    v = Tensor(np.arange(16.0).reshape(8, 2))
    out = attention(Tensor(np.zeros((1, 2))), Tensor(np.zeros((8, 2))), v, causal_keep(1, 8))
    assert np.allclose(out.data, [[7, 8]])


@SEEDS
@pytest.mark.parametrize("t", [1, 2, 5, 8])
def test_of_its_kind_b10_new_queries_get_their_rows_of_the_whole(t, rng):
    q, k, v = (Tensor(x) for x in rng.normal(size=(3, 2, 8, 4)))
    assert np.array_equal(causal_keep(t, 8), causal_keep(8)[8 - t :])
    whole = attention(q, k, v, causal_keep(8)).data[:, 8 - t :]
    assert attention(q[:, 8 - t :], k, v, causal_keep(t, 8)).data == pytest.approx(whole)
    assert blocked_attention(q[:, 8 - t :], k, v, 3, causal=True).data == pytest.approx(whole)


def test_b11_true_means_may_attend():
    zeros, v = Tensor(np.zeros((4, 1))), Tensor(np.arange(4.0)[:, None])
    out = attention(zeros, zeros, v, ~np.triu(np.ones((4, 4), bool), 1))
    assert out.data.ravel() == pytest.approx([0, 0.5, 1, 1.5])


@SEEDS
def test_of_its_kind_b11_a_forbidden_key_changes_nothing(rng):
    q, k, v = rng.normal(size=(3, 5, 4))
    keep = rng.random((5, 5)) < 0.6
    before = attention(q, k, v, keep).data
    for j in range(5):
        k_2, v_2 = k.copy(), v.copy()
        k_2[j] += 1
        v_2[j] += 1
        after = attention(q, k_2, v_2, keep).data
        assert np.array_equal((before != after).any(axis=1), keep[:, j])


def test_b12_a_boolean_is_never_added():
    keep = np.array([True, True, False, False])
    with pytest.raises(TypeError, match="boolean"):
        Tensor([1.0, 2, 3, 4]) + keep
    s = Tensor([1.0, 2, 3, 4]).masked_fill(~keep, -np.inf).softmax(dim=-1)
    assert s.data == pytest.approx([0.26894142, 0.73105858, 0, 0])


@SEEDS
def test_of_its_kind_b12_no_boolean_and_no_integer_is_added(rng):
    scores, keep = Tensor(rng.normal(size=(3, 4))), rng.random((3, 4)) < 0.5
    for other in (keep, Tensor(keep), keep[0], keep[:, :1]):
        for add in (operator.add, operator.sub):
            with pytest.raises(TypeError, match="boolean"):
                add(scores, other)
            with pytest.raises(TypeError, match="boolean"):
                add(other, scores)
    q, k, v = rng.normal(size=(3, 4, 2))
    mask = rng.random((4, 4)) < 0.5
    with pytest.raises(TypeError, match="int64"):
        attention(q, k, v, mask.astype(np.int64))
    additive = np.where(mask, 0, -np.inf)
    assert attention(q, k, v, mask).data == pytest.approx(attention(q, k, v, additive).data)


def test_b13_masks_go_by_sample_then_head():
    keep = (np.arange(3) < np.array([3, 1])[:, None])[:, None, None, :]  # [B, 1, 1, T]
    zeros = Tensor(np.zeros((2, 2, 3, 1)))
    out = attention(zeros, zeros, Tensor(np.arange(12.0).reshape(2, 2, 3, 1)), keep)
    assert np.allclose(out.data[:, :, 0, 0], [[1, 4], [6, 9]])


@SEEDS
def test_of_its_kind_b13_a_batch_is_its_samples_one_by_one(rng):
    q, k, v = rng.normal(size=(3, 4, 2, 5, 3))  # [B, H, T, head_dim] each
    keep = (np.arange(5) < rng.integers(1, 6, size=(4, 1)))[:, None, None, :]  # [B, 1, 1, T]
    qkv = np.concatenate([x.swapaxes(1, 2).reshape(4, 5, 6) for x in (q, k, v)], axis=-1)
    together = attention(q, k, v, keep).data
    fused = fused_attention(Tensor(qkv), 2, keep).data.reshape(4, 5, 2, 3).swapaxes(1, 2)
    for b, h in np.ndindex(4, 2):
        alone = attention(q[b, h], k[b, h], v[b, h], keep[b, 0]).data
        assert together[b, h] == pytest.approx(alone)
        assert fused[b, h] == pytest.approx(alone)


@pytest.mark.filterwarnings("error")
def test_b14_minus_1e9_in_float16():
    q = Tensor(np.ones((1, 1), np.float16))
    k = Tensor(np.array([[1], [2], [3], [4]], np.float16))
    v = Tensor(np.eye(4, dtype=np.float16))
    out = attention(q, k, v, np.array([[0, 0, -1e9, -1e9]]))
    assert out.dtype == np.float16
    assert out.data[0] == pytest.approx([0.2688, 0.7310, 0, 0], abs=1e-3)


@SEEDS
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_of_its_kind_b14_any_mask_in_any_dtype(dtype, rng):
    q, k, v = rng.normal(size=(3, 4, 4)).astype(dtype)
    keep = rng.random((4, 4)) < 0.6
    keep[:, 0] = True
    right = attention(*(x.astype(np.float64) for x in (q, k, v)), keep).data
    for forbidden in (-1e9, -np.inf, np.finfo(np.float32).min, np.finfo(np.float64).min):
        for mask in (keep, np.where(keep, 0.0, forbidden)):
            out = attention(q, k, v, mask).data
            assert out.dtype == dtype
            assert out == pytest.approx(right, abs=20 * float(np.finfo(dtype).eps))


def test_b15_the_scale_is_that_of_the_head():
    k = Tensor(np.stack([np.ones(16), np.zeros(16)]))
    _, steps = attention(Tensor(np.ones((1, 16))), k, k, return_steps=True)
    assert steps.scaled.data.tolist() == [[4, 0]]
    assert steps.weights.data[0] == pytest.approx([0.98201379, 0.01798621])


@SEEDS
@pytest.mark.parametrize(("n_embd", "n_head"), [(64, 4), (8, 1), (12, 3), (6, 6)])
def test_of_its_kind_b15_b16_a_head_has_its_own_components(n_embd, n_head, rng):
    layer = MultiHeadAttention(n_embd, n_head, rng).double()
    for one in (layer.c_q, layer.c_k, layer.c_v, layer.c_proj):
        one.weight.data, one.bias.data = np.eye(n_embd), np.zeros(n_embd)
    x, width = rng.normal(size=(2, 5, n_embd)), n_embd // n_head
    out, steps = layer(Tensor(x), return_steps=True)
    fast = layer(Tensor(x)).data
    for h in range(n_head):
        columns = x[..., h * width : (h + 1) * width]  # [B, T, head_dim]
        scaled = np.einsum("bic,bjc->bij", columns, columns) / width**0.5
        assert steps.scaled.data[:, h] == pytest.approx(scaled)
        right = attention(columns, columns, columns).data
        for found in (out.data, fast):
            assert found[..., h * width : (h + 1) * width] == pytest.approx(right)


def test_b16_heads_are_split_with_a_transpose():
    heads = Tensor(np.arange(24.0).reshape(1, 4, 6)).reshape(1, 4, 3, 2).transpose(1, 2)
    assert heads.data[0, 0].tolist() == [[0, 1], [6, 7], [12, 13], [18, 19]]


def test_b17_two_new_tokens_after_four():
    assert causal_keep(2, 6).astype(int).tolist() == [[1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]]
    v = Tensor(np.arange(6.0)[:, None])
    out = attention(Tensor(np.zeros((2, 1))), Tensor(np.zeros((6, 1))), v, causal_keep(2, 6))
    assert out.data.ravel() == pytest.approx([2, 2.5])


@SEEDS
@pytest.mark.parametrize("parts", [[4, 2], [4, 1, 1], [1] * 6, [6], [2, 3, 1]])
def test_of_its_kind_b17_a_prompt_in_any_parts(parts, rng):
    model = GPT(GPTConfig(7, 6, n_layer=2, n_head=2, n_embd=8), rng).double()
    ids = rng.integers(0, 7, size=(2, 6))
    whole = model(ids)[0].data
    cache, start = model.new_cache(batch=2), 0
    for n in parts:
        with no_grad():
            logits = model(ids[:, start : start + n], cache=cache)[0].data
        assert np.abs(logits - whole[:, start : start + n]).max() < 1e-10
        start += n


@SEEDS
@pytest.mark.parametrize("cache", [False, True])
@pytest.mark.parametrize("block_size", [1, 3, 8])
def test_of_its_kind_b18_a_window_of_any_size(block_size, cache, rng):
    model = GPT(GPTConfig(7, block_size, n_layer=1, n_head=1, n_embd=4), rng).double()
    prompt = rng.integers(0, 7, size=rng.integers(1, 12))
    text = prompt
    for _ in range(10):
        logits, _ = model(text[None, -block_size:])
        text = np.append(text, logits.data[0, -1].argmax())
    assert np.array_equal(model.generate(prompt, 10, temperature=0, cache=cache), text)


@pytest.mark.parametrize(("logits", "index"), [([1, 3, 2], 1), ([0, -1, 2], 2)])
def test_b19_these_logits_at_temperature_0(logits, index):
    for _ in range(3):
        assert generated([logits], temperature=0) == [index]


@SEEDS
@pytest.mark.parametrize("size", [1e-30, 1, 1e30])
def test_of_its_kind_b19_the_likeliest_of_any_logits(size, rng):
    logits = rng.normal(size=(6, 3)) * size  # [B, V]
    right = logits.argmax(axis=-1).tolist()
    assert generated(logits, temperature=0) == right
    assert generated(logits, temperature=1e-3 * size, rng=rng) == right


def generated(logits, **given):
    """Return each text's next token, drawn from logits [B, 3] that a model is made to give."""
    model = GPT(GPTConfig(3, 4, n_layer=1, n_head=1, n_embd=4), np.random.default_rng(0)).double()
    model.forward = lambda ids, cache=None: (Tensor(np.array(logits, float)[:, None]), None)
    prompt = np.zeros((len(logits), 1), int)
    return model.generate(prompt, 1, cache=False, **given)[:, -1].tolist()
