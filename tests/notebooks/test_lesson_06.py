"""Lesson 06: its masks are the library's, its leak is a fact, and PyTorch does what it says."""

import executed
import numpy as np
import pytest

from course_lib.attention import attention, causal_keep, causal_mask
from course_lib.tensor import Tensor


@pytest.fixture(scope="module")
def lesson():
    return executed.names_of("06")


@pytest.mark.parametrize(("t", "t_total"), [(1, 1), (3, 3), (2, 6), (1, 8), (4, 5)])
def test_causal_mask_is_the_librarys(lesson, t, t_total):
    np.testing.assert_array_equal(lesson["causal_mask"](t, t_total), causal_mask(t, t_total))
    keep = causal_keep(t, t_total)
    np.testing.assert_array_equal(lesson["keep_to_additive"](keep), causal_mask(t, t_total))


def test_masked_softmax_is_the_librarys(lesson):
    scores = np.random.default_rng(6).normal(size=(2, 3, 5)) * 3
    keep = causal_keep(3, 5)
    keep[1] = False  # a row that sees nothing
    right = Tensor(scores).masked_fill(~keep, -np.inf).softmax(dim=-1).data
    np.testing.assert_allclose(lesson["masked_softmax"](scores, keep), right, rtol=1e-12)


def test_outputs_are_the_librarys_attention(lesson):
    x, mask = lesson["x"], lesson["mask"]
    q, k, v = (Tensor(x @ lesson[w]) for w in ("W_q", "W_k", "W_v"))
    np.testing.assert_allclose(lesson["outputs"](x), attention(q, k, v).data)
    np.testing.assert_allclose(lesson["outputs"](x, mask), attention(q, k, v, mask).data)


def test_the_leak_and_its_end(lesson):
    x, changed = lesson["x"], lesson["x_changed"]
    outputs, zeroed, mask = lesson["outputs"], lesson["outputs_zeroed"], lesson["mask"]
    assert (outputs(x) != outputs(changed)).any(axis=1).all()
    assert outputs(x, mask)[:2].tobytes() == outputs(changed, mask)[:2].tobytes()
    assert (zeroed(x)[1] != zeroed(changed)[1]).any()


# What the lesson says of PyTorch 2.13.


@pytest.fixture
def rows(torch):
    """Return q, k, v [1, 1, 3, 4] and a keep mask whose last row is empty."""
    rng = torch.Generator().manual_seed(6)
    q, k, v = (torch.randn(1, 1, 3, 4, generator=rng).requires_grad_() for _ in range(3))
    keep = torch.tensor([[True, False, False], [True, True, False], [False, False, False]])
    return q, k, v, keep


@pytest.mark.torch
def test_torch_softmax_of_an_empty_row_is_nan(torch):
    scores = torch.zeros(3, requires_grad=True)
    weights = (scores + float("-inf")).softmax(dim=-1)
    weights.sum().backward()
    assert weights.isnan().all()
    assert scores.grad.isnan().all()


@pytest.mark.torch
@pytest.mark.parametrize("additive", [False, True])
def test_torch_attention_of_an_empty_row_is_zeros(torch, rows, additive):
    q, k, v, keep = rows
    mask = torch.zeros(3, 3).masked_fill(~keep, float("-inf")) if additive else keep
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    out.sum().backward()
    assert (out[0, 0, 2] == 0).all()
    assert (out[0, 0, 0] == v[0, 0, 0]).all()  # True means: may attend
    assert all(one.grad.isfinite().all() for one in (q, k, v))


@pytest.mark.torch
def test_torch_multihead_attention_of_an_empty_row_depends_on_the_path(torch, rows):
    q, *_, keep = rows
    layer = torch.nn.MultiheadAttention(4, 1, batch_first=True)
    torch.nn.init.constant_(layer.out_proj.bias, 1.0)
    x = q[0].detach()
    out, weights = layer(x, x, x, attn_mask=~keep)  # True means: forbidden
    assert weights[0, 0].tolist() == [1, 0, 0]
    assert out[0, 2].isnan().all()
    out, _ = layer(x, x, x, attn_mask=~keep, need_weights=False)
    assert (out[0, 2] == 1).all()  # zeros, then the bias of the last layer


@pytest.mark.torch
def test_torch_is_causal_ignores_base(torch):
    q, k = torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 8, 2)
    v = torch.arange(16.0).reshape(1, 1, 8, 2)
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert out.ravel().tolist() == v[0, 0, 0].tolist()


@pytest.mark.torch
def test_torch_converts_minus_1e9_to_minus_inf_and_refuses_to_fill_with_it(torch):
    scores = torch.zeros(2, 2, dtype=torch.float16)
    with pytest.raises(RuntimeError, match="overflow"):
        scores.masked_fill(torch.eye(2, dtype=torch.bool), -1e9)
    assert torch.tensor(-1e9).to(torch.float16).isneginf()
