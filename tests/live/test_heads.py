"""The live figure of lessons 08 and 09: the weights of all heads."""

import numpy as np
import pytest

from course_lib.live import heads
from course_lib.live.figure import Pointer
from course_lib.tensor import Tensor

TOKENS = ["a", "b", "c"]
WEIGHTS = np.array(
    [
        [[1, 0, 0], [0.25, 0.75, 0], [0.1, 0.6, 0.3]],
        [[1, 0, 0], [0.5, 0.5, 0], [0.7, 0.2, 0.1]],
    ]
)


def test_the_sentence_names_the_two_largest_weights():
    explorer = heads.explore(Tensor(WEIGHTS), TOKENS)
    says = explorer.figure.says
    assert says == (
        "With head 1, c (position 2) looks most at a (position 0) with 0.70, "
        "then at b (position 1) with 0.20."
    )


@pytest.mark.parametrize(
    ("row", "looks"),
    [
        (
            [0.4, 0.4, 0.2],
            "a (position 0) and b (position 1) with 0.40 each, then at c (position 2)",
        ),
        ([0.996, 0.001, 0.003], "a (position 0) with 1.00."),
        ([0.6, 0.2, 0.2], "a (position 0) with 0.60."),
    ],
)
def test_the_sentence_tells_ties_and_leaves_out_what_is_nothing(row, looks):
    weights = WEIGHTS.copy()
    weights[1, 2] = row
    explorer = heads.explore(weights, TOKENS)
    explorer.controls["head"].value = 1
    says = explorer.figure.says
    assert says.startswith(f"With head 1, c (position 2) looks most at {looks}"), says


def test_a_click_chooses_the_head_and_the_query():
    explorer = heads.explore(WEIGHTS, TOKENS)
    assert explorer.values == {"head": 1, "query": 2}
    explorer._on_pointer(0, 0, Pointer("down", "head 0"))
    explorer._on_pointer(0, 0.8, Pointer("down", "chosen head"))
    assert explorer.values == {"head": 0, "query": 1}


def test_a_film_shows_the_weights_of_the_chosen_training_step():
    explorer = heads.explore({0: WEIGHTS[::-1], 50: WEIGHTS}, TOKENS)
    assert explorer.figure.says.startswith("After 50 training steps, with head 1, c")
    explorer.controls["when"].value = 0
    assert np.array_equal(explorer.state.weights, WEIGHTS[::-1])


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 4), (0, 3, 3), (9, 3, 3)])
def test_other_shapes_are_refused_with_both_shapes_named(shape):
    with pytest.raises(ValueError, match=r"heads: weights \[.*for 3 tokens; expected \[H, 3, 3\]"):
        heads.explore(np.zeros(shape), TOKENS)
