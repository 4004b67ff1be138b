"""The live figure of lesson 01: its gradients are those of finite differences."""

import pytest

from course_lib.live import expression_graph


def loss(a, b, c):
    return (a * b + a) * c


@pytest.mark.parametrize("point", [(2.0, 3.0, -1.0), (-1.5, 0.5, 4.0), (0.0, -1.0, 2.0)])
def test_the_gradients_are_the_slopes(point):
    state = expression_graph.compute(*point)
    for n, name in enumerate("abc"):
        up, down = list(point), list(point)
        up[n] += 1e-6
        down[n] -= 1e-6
        slope = (loss(*up) - loss(*down)) / 2e-6
        assert state.gradients[name] == pytest.approx(slope, abs=1e-5)


def test_the_slopes_along_the_paths_make_the_gradients():
    state = expression_graph.compute(2.0, 3.0, -1.0)
    for start in "abcde":
        through = sum(
            slope * state.gradients[end]
            for (begin, end), slope in state.slopes.items()
            if begin == start
        )
        assert through == state.gradients[start]


def test_the_sentence_adds_both_paths_to_a():
    says = expression_graph.says(expression_graph.compute(2.0, 3.0, -1.0))
    assert "−3.00 by way of d and −1.00 by way of e, together ∂L/∂a = −4.00" in says
