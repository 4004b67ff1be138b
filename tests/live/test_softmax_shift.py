"""Lesson 05's first live figure: where the plain formula of softmax ends, and where it does not."""

import math
import warnings

import numpy as np
import pytest

from course_lib.live import softmax_shift
from course_lib.live.figure import Pointer

SCORES = {"score_1": 0.0, "score_2": 2.8, "score_3": 1.4, "score_4": -1.0}
STABLE, PLAIN_32, PLAIN_64 = range(3)


def state(constant, **scores):
    return softmax_shift.compute(**(SCORES | scores), constant=constant)


def right_weights():
    e = [math.exp(score) for score in SCORES.values()]
    return [one / sum(e) for one in e]


@pytest.mark.parametrize("constant", [-800, -100, 0, 86, 100, 800])
def test_with_the_maximum_subtracted_no_constant_moves_a_weight(constant):
    np.testing.assert_allclose(state(constant).weights[STABLE], right_weights(), atol=1e-4)


@pytest.mark.parametrize("n, last", [(PLAIN_32, 88.72), (PLAIN_64, 709.78)])
def test_the_plain_formula_ends_just_above_the_last_score(n, last):
    """float32 overflows at 88.73, float64 at 709.79; the other scores add too little to matter."""
    low = dict.fromkeys(["score_1", "score_3", "score_4"], -5.0)
    constant = 10 * round(last / 10)
    alive = state(constant, **low, score_2=last - constant)
    assert np.isfinite(alive.weights[n]).all()
    dead = state(constant, **low, score_2=last + 0.01 - constant)
    assert np.isnan(dead.weights[n][1])
    assert dead.weights[n][0] == 0  # a finite number divided by infinity


def test_a_sum_overflows_before_its_terms_do():
    made = state(88, score_1=0.5, score_2=0.5, score_3=0.5, score_4=0.5)
    assert made.weights[PLAIN_32].tolist() == [0, 0, 0, 0]
    assert (
        "divides by a sum of ∞ in float32 and gives the same weights in float64"
        in softmax_shift.says(made)
    )


@pytest.mark.parametrize(
    ("constant", "says"),
    [
        (0, "gives the same weights in float32 and gives the same weights in float64"),
        (100, "largest score is 102.8"),
        (100, "divides ∞ by ∞ in float32 and gives the same weights in float64"),
        (800, "divides ∞ by ∞ in float32 and divides ∞ by ∞ in float64"),
        (-104, "is off by 0.05 in float32 and gives the same weights in float64"),
        (-200, "divides 0 by 0 in float32 and gives the same weights in float64"),
        (-800, "divides 0 by 0 in float32 and divides 0 by 0 in float64"),
    ],
)
def test_the_sentence_says_how_each_formula_ends(constant, says):
    assert says in softmax_shift.says(state(constant))


def test_nothing_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state(800)


def test_a_press_on_the_range_moves_the_scores_there():
    explorer = softmax_shift.explore()
    explorer._on_pointer(-302.0, 0.5, Pointer("down", "range"))
    assert explorer.values["constant"] == -300
    assert abs(explorer.state.scores.mean() - -300) < 1
    explorer._on_pointer(-2000.0, 0.5, Pointer("move", "range"))
    assert explorer.values["constant"] == -800
    explorer._on_pointer(10.0, 0.5, Pointer("down", softmax_shift.FORMULAS[0]))
    assert explorer.values["constant"] == -800
    explorer.close()
