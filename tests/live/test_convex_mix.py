"""The first live figure of lesson 07: a mix stays in the triangle of its values."""

import numpy as np
import pytest

from course_lib.live import convex_mix
from course_lib.live.figure import Pointer


def test_equal_amounts_give_the_average():
    state = convex_mix.compute(0.4, 0.4, 0.4)
    assert state.weights == pytest.approx([1 / 3] * 3)
    assert state.output == pytest.approx([1 / 3, 1.0])


def test_amounts_of_zero_are_said_to_be_a_query_that_sees_nothing():
    state = convex_mix.compute(0.0, 0.0, 0.0)
    assert state.output.tolist() == [0.0, 0.0]
    assert "may see nothing" in convex_mix.says(state)


@pytest.mark.parametrize(
    ("x", "y", "amounts"),
    [
        (0.0, 2.0, (0, 1, 0)),
        (0.5, 1.5, (0, 0.5, 0.5)),
        (0.25, 1.0, (0.38, 0.38, 0.25)),
        (-3.0, 9.0, (0, 1, 0)),
    ],
)
def test_a_point_is_turned_into_weights_that_are_not_negative(x, y, amounts):
    assert convex_mix.amounts_at(x, y) == pytest.approx(amounts, abs=0.011)


def test_the_output_can_be_dragged():
    explorer = convex_mix.explore()
    explorer._on_pointer(1.0, 1.0, Pointer("down", "plane"))
    assert explorer.values == {"the": 0.0, "river": 0.0, "bank": 1.0}
    assert np.allclose(explorer.state.output, [1.0, 1.0])
