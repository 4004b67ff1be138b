"""Lesson 09's live figure: the loss so far, and its running mean."""

import pytest

from course_lib.live import loss_curve
from course_lib.train import History


def test_the_running_mean_takes_in_the_last_steps_only():
    history = History(loss=[5.0] * 20 + [1.0] * 20)
    state = loss_curve.compute(history, 40, 3.0, 30)
    assert len(state.losses) == 30
    assert state.smooth[0] == 5 and state.smooth[19] == 5
    assert state.smooth[-1] == pytest.approx((10 * 5 + 10 * 1) / 20)


def test_a_loss_that_comes_in_later_moves_the_figure():
    history = History()
    explorer = loss_curve.explore(history, 10, 3.66)
    assert explorer.figure.says == "No step yet; a guess has a loss of 3.66."
    history.loss += [3.0, 2.0]
    explorer.controls["step"].value = 2
    assert explorer.figure.says == "After 2 of 10 steps the loss is 2.50; a guess has 3.66."
