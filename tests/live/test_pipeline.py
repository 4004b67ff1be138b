"""The second live figure of lesson 07: every number of one attention."""

import numpy as np
import pytest

from course_lib.live import pipeline
from course_lib.live.figure import Pointer


def by_hand(causal):
    """Attention of the running example, in plain loops."""
    out = []
    for i in range(3):
        seen = range(i + 1) if causal else range(3)
        e = {j: np.exp(sum(pipeline.Q[i] * pipeline.K[j]) / 2**0.5) for j in seen}
        out.append(sum(e[j] * pipeline.V[j] for j in seen) / sum(e.values()))
    return np.array(out)


@pytest.mark.parametrize("causal", [False, True])
def test_the_output_is_that_of_plain_loops(causal):
    state = pipeline.compute("bank", "river", causal)
    assert state.steps.output.data == pytest.approx(by_hand(causal))


def test_the_sums_in_words_hold_the_numbers_of_the_lesson():
    words = pipeline._spelled_out(pipeline.compute("bank", "river", False))
    for part in ("0·0 + 2·2 = 4", "4 ÷ √2 = 2.83", "= 0.77", "= (0.19, 1.72)"):
        assert part in words


def test_a_forbidden_pair_is_called_so():
    state = pipeline.compute("the", "bank", True)
    assert "forbidden by the mask, weight 0.00" in pipeline.says(state)
    assert "exp(−∞" in pipeline._spelled_out(state)


def test_a_click_on_a_cell_chooses_the_pair():
    explorer = pipeline.explore()
    left, top = pipeline.PLACES["QKᵀ"]
    x, y = left + 0.5 * pipeline.CELL, top - 1.5 * pipeline.CELL  # first column, second row
    explorer._on_pointer(x, y, Pointer("down", "page"))
    assert (explorer.values["query"], explorer.values["key"]) == ("river", "the")
