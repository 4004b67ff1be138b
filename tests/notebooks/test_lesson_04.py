"""Lesson 04: its scores are those of the library's attention."""

import executed
import numpy as np
import pytest

from course_lib.attention import attention
from course_lib.tensor import Tensor


@pytest.fixture(scope="module")
def lesson():
    return executed.names_of("04")


@pytest.fixture(params=range(4))
def rng(request):
    return np.random.default_rng(request.param)


def steps_of(q, k):
    return attention(q, k, np.zeros((*k.shape[:-1], 1), k.dtype), return_steps=True)[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("q", "k"), [((3, 2), (3, 2)), ((2, 5, 4), (2, 7, 4)), ((2, 3, 4, 9), (2, 3, 6, 9))]
)
def test_scores_are_the_librarys(lesson, q, k, dtype, rng):
    q, k = rng.normal(size=q).astype(dtype), rng.normal(size=k).astype(dtype)
    found = lesson["scores"](q, k)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, steps_of(q, k).scaled.data, rtol=1e-4, atol=1e-5)


def test_permute_and_matmul_give_the_librarys_scores_of_a_batch(rng):
    q, k = (Tensor(rng.normal(size=(3, 4, 5))) for _ in range(2))
    line = "k_t = k_batch.permute(0, 2, 1)"
    names = executed.rerun("04", line, q_batch=q, k_batch=k)
    np.testing.assert_allclose(names["s_batch"].data, steps_of(q, k).raw.data, rtol=1e-12)


@pytest.mark.parametrize("d_k", [4, 64])
def test_the_measured_weights_are_those_of_attention(lesson, d_k, rng, monkeypatch):
    state = rng.bit_generator.state
    monkeypatch.setitem(lesson, "rng", rng)
    found = lesson["mean_largest_weight"](d_k, d_k**0.5, draws=30, t=7)
    rng.bit_generator.state = state  # the same queries and keys again
    q, k = rng.standard_normal((30, 1, d_k)), rng.standard_normal((30, 7, d_k))
    assert found == pytest.approx(steps_of(q, k).weights.data.max(axis=-1).mean())


def test_the_running_example_looks_as_in_the_other_lessons(lesson):
    steps = steps_of(lesson["q"], lesson["k"])
    np.testing.assert_array_equal(lesson["raw"].data, steps.raw.data)
    np.testing.assert_allclose(lesson["scaled"].data, steps.scaled.data, rtol=1e-6)
    np.testing.assert_array_equal(lesson["q"].data, executed.names_of("02")["q"])
    np.testing.assert_array_equal(lesson["k"].data, executed.names_of("02")["k"])


def test_the_scale_in_a_gpt_is_the_librarys(lesson, rng):
    head_dim = lesson["head_dim"]
    q, k = (Tensor(rng.normal(size=(3, head_dim))) for _ in range(2))
    np.testing.assert_allclose((q @ k.mT * lesson["scale"]).data, steps_of(q, k).scaled.data)
