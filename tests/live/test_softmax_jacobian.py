"""Lesson 05's second live figure: its Jacobian is that of softmax, and it fades."""

import numpy as np
import pytest

from course_lib.live import softmax_jacobian
from course_lib.live.figure import Pointer
from course_lib.tensor import Tensor

RIVER = softmax_jacobian.TOKENS[1]


def state(factor, raised=RIVER):
    return softmax_jacobian.compute(factor, raised)


def test_the_scores_are_those_of_the_query_bank():
    q, k = np.array([0, 2]), np.array([[1, 0], [0, 2], [1, 1]])  # lesson 04
    np.testing.assert_allclose(softmax_jacobian.SCORES, k @ q / 2**0.5)
    np.testing.assert_allclose(state(1).weights, [0.0454, 0.7679, 0.1867], atol=1e-4)


@pytest.mark.parametrize("factor", [0.0, 0.5, 1.0, 4.0])
def test_the_jacobian_agrees_with_finite_differences(factor):
    x, step = softmax_jacobian.SCORES * factor, 1e-6
    columns = [
        (Tensor(x + move).softmax(dim=0).data - Tensor(x - move).softmax(dim=0).data) / (2 * step)
        for move in np.eye(3) * step
    ]
    np.testing.assert_allclose(state(factor).jacobian, np.transpose(columns), atol=1e-9)


def test_it_fades_as_the_weights_saturate():
    assert state(0).size == pytest.approx(2**0.5 / 3)  # two eigenvalues of 1/3
    assert state(4).weights.max() > 0.99
    assert state(4).size < 0.01


def test_no_entry_leaves_the_fixed_scale():
    jacobians = [state(factor).jacobian for factor in softmax_jacobian.FACTORS]
    assert np.abs(jacobians).max() <= softmax_jacobian.LARGEST


def test_the_sentence_names_the_rates_of_the_raised_score():
    says = softmax_jacobian.says(state(1))
    assert "weights are 0.05, 0.77, 0.19" in says
    assert "raising the score of “river” moves them at the rates −0.03, 0.18, −0.14" in says
    assert "size 0.317" in says


def test_the_pointer_sets_the_factor_and_the_raised_score():
    explorer = softmax_jacobian.explore()
    labels = [axes.get_label() for axes in explorer._screen.picture.figure.axes]
    explorer._on_pointer(2.52, 0.1, Pointer("down", labels[2]))
    assert explorer.values["factor"] == pytest.approx(2.5)
    explorer._on_pointer(9.0, 0.1, Pointer("move", labels[2]))
    assert explorer.values["factor"] == 4
    explorer._on_pointer(2.2, 1.0, Pointer("down", labels[1]))
    assert explorer.state.raised == 2
    explorer._on_pointer(-0.7, 0.5, Pointer("down", labels[0]))
    assert explorer.state.raised == 0
    explorer.close()
