"""The gradient check: what it accepts, and each kind of wrong gradient that it finds."""

import numpy as np
import pytest

from course_lib.gradcheck import check_gradients
from course_lib.tensor import Tensor

X, Y = np.random.default_rng(0).normal(size=(2, 2, 3))


def test_right_gradients_of_all_inputs_are_accepted(capsys):
    before = X.copy(), Y.copy()
    assert check_gradients(lambda x, y: x * x * y, X, Y)
    assert check_gradients(lambda x, y: x * 3, Tensor(X), Y)  # y plays no part: its gradient is 0
    assert capsys.readouterr().out == ""
    assert np.array_equal(X, before[0]) and np.array_equal(Y, before[1])


def test_a_gradient_that_is_wrong_is_shown(capsys):
    def wrong(x, y):
        return x + y * 2 + y.detach()  # a third of y's slope is hidden from the tape

    assert not check_gradients(wrong, X, Y)
    words = r"input 1 at [0, 0]: backward gives 2, finite differences 3"
    assert capsys.readouterr().out == words + "\n"


def test_one_wrong_entry_is_enough(capsys):
    spoiled = np.zeros((2, 3))
    spoiled[1, 2] = 1e-3
    assert not check_gradients(lambda x: x * x + x.detach() * spoiled, X)
    assert capsys.readouterr().out.startswith("input 0 at [1, 2]: ")


def test_results_can_not_hide_one_another():
    def swapped(x):  # the sum of all results has the right gradient, no single result has
        return x.detach() + x[::-1] - x[::-1].detach()

    assert not check_gradients(swapped, X)


def test_step_and_tolerance_can_be_chosen():
    def nearly(x):
        return x * 2 + x.detach() * 1e-4

    assert not check_gradients(nearly, X)
    assert check_gradients(nearly, X, tolerance=1e-3)
    assert not check_gradients(lambda x: x**3, X, eps=0.1)
    # a slope of 1000 may be off by 0.5, with a tolerance of 1e-3 of 1 + 1000
    assert check_gradients(lambda x: x * 1000 + x.detach() * 0.5, X, tolerance=1e-3)
    assert not check_gradients(lambda x: x * 1000 + x.detach() * 1.1, X, tolerance=1e-3)


@pytest.mark.parametrize("inputs", [(), (X.astype(np.float32),), (X, np.arange(3))])
def test_inputs_are_float64(inputs):
    found = [str(x.dtype) for x in inputs]
    with pytest.raises(TypeError, match="check_gradients: needs float64 inputs, got") as error:
        check_gradients(lambda *x: x[0], *inputs)
    assert str(found) in str(error.value)
