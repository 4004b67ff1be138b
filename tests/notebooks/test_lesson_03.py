"""Lesson 03: its projection is the library's Linear, and its numbers are those of lesson 02."""

import executed
import numpy as np
import pytest

from course_lib.attention import MultiHeadAttention, attention
from course_lib.live import symmetric_scores
from course_lib.nn import Linear
from course_lib.tensor import Tensor


@pytest.fixture(scope="module")
def lesson():
    return executed.names_of("03")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_project_is_linear(lesson, rng):
    layer = Linear(4, 6, rng)
    x = rng.normal(size=(2, 3, 4)).astype(np.float32)
    found = lesson["project"](x, layer.weight.data, layer.bias.data)
    assert found == pytest.approx(layer(Tensor(x)).data)


def test_raw_scores_are_those_of_attention(lesson, rng):
    x = rng.normal(size=(2, 5, 4))
    w_q, w_k = rng.normal(size=(2, 4, 4))
    _, steps = attention(x @ w_q, x @ w_k, x, return_steps=True)
    assert lesson["raw_scores"](x, w_q, w_k) == pytest.approx(steps.raw.data)


def test_the_count_is_that_of_the_gpts_layers(lesson, rng):
    layers = MultiHeadAttention(64, 4, rng)
    count = sum(layer.num_parameters() for layer in (layers.c_q, layers.c_k, layers.c_v))
    assert count == sum(lesson["counts"].values()) == lesson["my_count"] == 12_480


@pytest.mark.parametrize("name", ["q", "k", "v"])
def test_the_projections_give_the_vectors_of_lesson_02(lesson, name):
    assert lesson[name].tolist() == executed.names_of("02")[name].tolist()


def test_the_live_figure_has_the_numbers_of_the_lesson(lesson):
    assert lesson["x"].tolist() == symmetric_scores.X.tolist()
    assert lesson["w_q"].tolist() == symmetric_scores.W_Q.tolist()
    assert lesson["w_k"].tolist() == symmetric_scores.W_K.tolist()


def test_the_step_lifts_one_score_more_than_its_mirror_image(lesson):
    rise = lesson["s_new"] - lesson["s"]
    assert rise[2, 1] > 2 * rise[1, 2] > 0
