"""Lesson 06's second live figure: its presets, its clicks and keys, and its empty rows."""

import numpy as np
import pytest

from course_lib.live import mask_editor
from course_lib.live.figure import Pointer

CAUSAL, NOT_ITSELF, NONE, PADDING, WINDOW = mask_editor.PRESETS


def state(preset=CAUSAL, t=3, base=0, query=0, key=0, flipped=mask_editor.NO_FLIPS):
    return mask_editor.compute(preset, t, base, query, key, flipped)


@pytest.mark.parametrize(
    ("preset", "base", "keep"),
    [
        (CAUSAL, 0, ["100", "110", "111"]),
        (CAUSAL, 2, ["11100", "11110", "11111"]),
        (NOT_ITSELF, 0, ["000", "100", "110"]),
        (NOT_ITSELF, 1, ["1000", "1100", "1110"]),
        (NONE, 1, ["1111", "1111", "1111"]),
        (PADDING, 0, ["100", "110", "000"]),
        (WINDOW, 0, ["100", "110", "011"]),
        (WINDOW, 2, ["01100", "00110", "00011"]),
    ],
)
def test_presets(preset, base, keep):
    made = state(preset, base=base).keep
    assert ["".join(str(int(one)) for one in row) for row in made] == keep


@pytest.mark.parametrize("preset", mask_editor.PRESETS)
def test_weights_are_0_where_forbidden_and_sum_to_1_elsewhere(preset):
    made = state(preset, t=5, base=3)
    assert (made.weights[~made.keep] == 0).all()
    sums = np.where(made.keep.any(axis=1), 1, 0)
    np.testing.assert_allclose(made.weights.sum(axis=1), sums)


def test_a_cached_query_gets_the_row_it_would_have_without_the_cache():
    """Query i of a mask with base b is query b + i of the whole text."""
    whole, cached = state(t=5), state(t=3, base=2)
    np.testing.assert_allclose(cached.weights, whole.weights[2:], rtol=1e-6)


def test_a_flipped_cell_opens_or_closes():
    made = state(flipped=((0, 2), (2, 1), (4, 4)))  # the last lies outside
    assert made.keep.tolist() == [[True, False, True], [True, True, False], [True, False, True]]
    assert made.flips == 2
    assert state(query=0, key=2, flipped=mask_editor.CHOSEN).keep[0].tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (
            {"base": 2},
            "mask [3, 5], “causal (j ≤ i + base)”: the queries see 3, 4, 5 of 5 keys",
        ),
        ({"preset": NOT_ITSELF}, "see 0, 1, 2 of 3 keys; query 0 gets only zeros; query 0 gives"),
        ({"query": 0, "key": 2}, "query 0 gives key 2 no weight, as it is forbidden."),
        ({"query": 0, "key": 0}, "query 0 gives key 0 the weight 1.00."),
        ({"flipped": ((0, 2),)}, "with 1 flipped by hand"),
    ],
)
def test_the_sentence(values, says):
    assert says in mask_editor.says(state(**values))


@pytest.fixture
def explorer():
    explorer = mask_editor.explore()
    explorer.controls["base"].value = 0
    yield explorer
    explorer.close()


def press(explorer, i, j, axes="Mask", kind="down"):
    explorer._on_pointer(j + 0.3, i - 0.3, Pointer(kind, axes))


def test_a_click_flips_a_cell_and_a_second_click_takes_it_back(explorer):
    press(explorer, 0, 3)
    assert explorer.state.keep[0].tolist() == [True, False, False, True]
    press(explorer, 1, 0)
    assert explorer.state.keep[1].tolist() == [False, True, False, False]
    assert explorer.state.flips == 2
    press(explorer, 0, 3)
    press(explorer, 1, 0)
    assert explorer.values["flipped"] == mask_editor.NO_FLIPS
    assert (explorer.state.keep == np.tri(4, dtype=bool)).all()


def test_other_presses_flip_nothing(explorer):
    press(explorer, 0, 3, axes="Weights")
    assert explorer.state.chosen == (0, 3)
    press(explorer, 1, 3, kind="move")
    press(explorer, 0, 6)  # outside the mask
    press(explorer, 1, 1, axes="seen")
    assert explorer.state.chosen == (0, 3)
    assert explorer.state.flips == 0


def test_keys_move_the_choice_and_space_flips_it(explorer):
    for key in ("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "ArrowRight", "ArrowRight"):
        explorer._on_key(key)
    assert explorer.state.chosen == (1, 3)
    explorer._on_key(" ")
    assert explorer.state.keep[1].tolist() == [True, True, False, True]
    explorer._on_key("a")
    assert explorer.state.flips == 1


def test_the_named_controls_flip_and_take_back(explorer):
    explorer.controls["query"].value, explorer.controls["key"].value = 0, 1
    explorer.controls["flipped"].value = mask_editor.CHOSEN
    assert explorer.state.keep[0].tolist() == [True, True, False, False]
    press(explorer, 2, 0)  # the chosen cell stays flipped
    assert explorer.values["flipped"] == ((0, 1), (2, 0))
    explorer.controls["flipped"].value = mask_editor.NO_FLIPS
    assert explorer.state.flips == 0
