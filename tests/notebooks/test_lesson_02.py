"""Lesson 02: its soft lookup is the library's attention, and its story holds."""

import executed
import numpy as np
import pytest

from course_lib.attention import attention


@pytest.fixture(scope="module")
def lesson():
    return executed.names_of("02")


@pytest.fixture(params=range(5))
def drawn(request):
    """Return a query [1, 3], keys [6, 3] and values [6, 2]."""
    rng = np.random.default_rng(request.param)
    return rng.normal(size=(1, 3)), rng.normal(size=(6, 3)), rng.normal(size=(6, 2))


def test_weigh_at_the_root_of_d_k_is_attention(lesson, drawn):
    q, k, v = drawn
    output, steps = attention(q, k, v, return_steps=True)
    weights = lesson["weigh"](q[0], k, temperature=3**0.5)
    assert weights == pytest.approx(steps.weights.data[0])
    assert weights @ v == pytest.approx(output.data[0])


def test_soft_lookup_is_attention_without_the_scale(lesson, drawn):
    q, k, v = drawn
    found = lesson["soft_lookup"](q[0], k, v)
    assert found == pytest.approx(attention(q * 3**0.5, k, v).data[0])


def test_the_running_example_looks_as_in_the_other_lessons(lesson):
    output, steps = attention(lesson["q"], lesson["k"], lesson["v"], return_steps=True)
    assert lesson["all_weights"] == pytest.approx(steps.weights.data)
    assert lesson["outputs"] == pytest.approx(output.data)
    assert round(lesson["all_weights"][2, 1], 2) == 0.77


def test_the_context_decides_the_meaning(lesson):
    alone, river, money = lesson["picks"]
    assert alone.tolist() == [0.5, 0.5]
    assert river[0] > 0.8 and money[1] > 0.8
