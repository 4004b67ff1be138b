"""Lesson 07: its attention, and the gradient it derives by hand, are the library's."""

import executed
import numpy as np
import pytest

from course_lib.attention import attention, causal_mask
from course_lib.tensor import Tensor


@pytest.fixture(scope="module")
def lesson():
    return executed.names_of("07")


@pytest.fixture(params=range(4))
def rng(request):
    return np.random.default_rng(request.param)


def three_tokens(rng):
    """Return q, k and v [3, 2] that require gradients."""
    return [Tensor(rng.normal(size=(3, 2)), requires_grad=True) for _ in range(3)]


@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_the_librarys(lesson, masked, rng):
    q, k = rng.normal(size=(2, 2, 5, 3))  # [B, T, d_k] each
    v = rng.normal(size=(2, 5, 4))
    mask = causal_mask(5) if masked else np.zeros((5, 5))
    found = lesson["attention"](q, k, v, mask)
    np.testing.assert_allclose(found, attention(q, k, v, mask).data, rtol=1e-12)


def test_every_step_of_the_whole_formula_is_the_librarys(rng):
    q, k, v = three_tokens(rng)
    names = executed.rerun("07", "masked = scaled + causal_mask(3)", q=q, k=k, v=v)
    output, steps = attention(q, k, v, causal_mask(3), return_steps=True)
    for ours, theirs in [
        ("raw", steps.raw),
        ("scaled", steps.scaled),
        ("masked", steps.masked),
        ("a", steps.weights),
        ("out", output),
    ]:
        np.testing.assert_allclose(names[ours].data, theirs.data, rtol=1e-12, err_msg=ours)


def test_the_gradients_by_hand_are_the_librarys(rng):
    q, k, v = three_tokens(rng)
    output, steps = attention(q, k, v, causal_mask(3), return_steps=True)
    steps.scaled.retain_grad()
    g = rng.normal(size=(3, 2))
    names = executed.rerun("07", "grad_v = A.T @ g", a=steps.weights, q=q, k=k, v=v, g=g)
    output.backward(g)
    np.testing.assert_allclose(names["grad_s"], steps.scaled.grad, rtol=1e-9, atol=1e-12)
    for name, leaf in (("grad_q", q), ("grad_k", k), ("grad_v", v)):
        np.testing.assert_allclose(names[name], leaf.grad, rtol=1e-9, atol=1e-12, err_msg=name)


def test_the_function_whose_gradient_is_checked_is_attention(lesson, rng):
    ours = three_tokens(rng)
    theirs = [Tensor(x.data, requires_grad=True) for x in ours]
    g = rng.normal(size=(3, 2))
    found, right = lesson["whole"](*ours), attention(*theirs, causal_mask(3))
    np.testing.assert_allclose(found.data, right.data, rtol=1e-12)
    found.backward(g)
    right.backward(g)
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x.grad, y.grad, rtol=1e-9, atol=1e-12)


def test_two_tokens_by_hand(lesson):
    eye = np.eye(2)
    output = attention(eye, eye, eye).data
    np.testing.assert_allclose(lesson["my_output"], output, atol=5e-4)
    np.testing.assert_allclose((lesson["by_code"] @ lesson["eye"]).data, output)
