"""Lesson 06's first live figure: a leak is seen, and without one an output is the same to a bit."""

import numpy as np
import pytest

from course_lib.live import leak
from course_lib.live.figure import Pointer

BANK, RIVER, THE = "bank", "river", "the"
NO_MASK, CAUSAL, ZEROED = leak.MASKS
AMOUNTS = [-2.0, -0.1, 0.1, 1.0, 2.0]


def weights_by_hand(x):
    """Return the weights [T, T] without a mask, in plain NumPy."""
    scores = (x @ leak.W_Q) @ (x @ leak.W_K).T / np.sqrt(2)
    e = np.exp(scores)
    return e / e.sum(axis=1, keepdims=True)


def test_the_projections_are_those_of_the_running_example():
    assert (leak.X @ leak.W_Q).tolist() == [[1, 0], [1, 1], [0, 2]]
    assert (leak.X @ leak.W_K).tolist() == [[1, 0], [0, 2], [1, 1]]
    assert (leak.X @ leak.W_V).tolist() == [[0, 0], [0, 2], [1, 1]]


@pytest.mark.parametrize("amount", AMOUNTS)
def test_without_a_mask_every_output_moves_with_the_last_token(amount):
    state = leak.compute(BANK, amount, NO_MASK)
    x = leak.X.copy()
    x[2] += amount * leak.TOWARDS
    after, before = (weights_by_hand(one) @ one @ leak.W_V for one in (x, leak.X))
    assert (state.moves > 0).all()
    np.testing.assert_allclose(state.moves, np.abs(after - before).max(axis=1))


@pytest.mark.parametrize("amount", AMOUNTS)
@pytest.mark.parametrize("changed, earlier", [(RIVER, 1), (BANK, 2)])
def test_under_the_causal_mask_no_earlier_output_moves(changed, earlier, amount):
    state = leak.compute(changed, amount, CAUSAL)
    assert (state.moves[:earlier] == 0).all()
    assert (state.moves[earlier:] > 0).all()
    assert (np.triu(state.weights, 1) == 0).all()


@pytest.mark.parametrize("amount", AMOUNTS)
def test_a_mask_after_softmax_leaks(amount):
    state = leak.compute(BANK, amount, ZEROED)
    assert (np.triu(state.weights, 1) == 0).all()
    assert state.moves[1] > 0


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ((BANK, 1.0, NO_MASK), "“the” and “river” saw a later token: a leak."),
        ((BANK, 1.0, CAUSAL), "“the” by exactly 0, “river” by exactly 0, “bank” by 0.92; no earl"),
        ((BANK, 1.0, ZEROED), "“river” saw a later token: a leak."),
        ((BANK, 0.0, NO_MASK), "nothing moved at all."),
        ((THE, 1.0, NO_MASK), "no earlier output moved."),
    ],
)
def test_the_sentence_tells_a_leak(values, says):
    assert says in leak.says(leak.compute(*values))


def test_a_press_chooses_the_token_to_change():
    explorer = leak.explore()
    explorer._on_pointer(0.2, 1.0, Pointer("down", "weights"))
    assert explorer.values["changed"] == THE
    explorer._on_pointer(5.0, 0.3, Pointer("move", "moves"))
    assert explorer.values["changed"] == BANK
    explorer.close()
