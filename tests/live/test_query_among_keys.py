"""Lesson 02's live figure."""

import math

import pytest

from course_lib.live import query_among_keys
from course_lib.live.figure import Pointer


def by_hand(query, temperature):
    """Return weights and output, term by term, for the keys and values as the figure shows them."""
    terms = []
    for key in query_among_keys.KEYS.tolist():
        score = query[0] * key[0] + query[1] * key[1]
        terms.append(math.exp(score / temperature))
    weights = [term / sum(terms) for term in terms]
    return weights, sum(w * v for w, v in zip(weights, (2, 1, 0, -1, -2), strict=True))


@pytest.mark.parametrize("query", [(0.5, 1.0), (-2.4, 1.3), (2.4, -2.4)])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_weights_and_output(query, temperature):
    state = query_among_keys.compute(*query, temperature)
    weights, output = by_hand(query, temperature)
    assert state.weights == pytest.approx(weights, abs=1e-6)
    assert state.output == pytest.approx(output, abs=1e-6)


@pytest.mark.parametrize(("query", "value"), [((0.0, 2.4), 2), ((2.4, 0.0), -2), ((-2.0, -2.0), 0)])
def test_a_low_temperature_is_a_choice(query, value):
    state = query_among_keys.compute(*query, temperature=0.01)
    assert state.weights.max() == pytest.approx(1)
    assert state.output == pytest.approx(value, abs=1e-6)


def test_a_high_temperature_is_an_average():
    state = query_among_keys.compute(2.4, 2.4, temperature=1000)
    assert state.weights == pytest.approx([0.2] * 5, abs=0.002)


@pytest.mark.parametrize("temperature", [0.01, 1000])
def test_a_query_of_zeros_cannot_choose(temperature):
    state = query_among_keys.compute(0.0, 0.0, temperature)
    assert state.weights == pytest.approx([0.2] * 5)
    assert "−0.00" not in query_among_keys.says(state)


def test_the_picture_shows_the_query_and_the_output():
    picture = query_among_keys.draw(query_among_keys.compute(0.0, 0.0, 1.0))
    picture.update(query_among_keys.compute(0.0, 2.0, 0.01))
    keys, weights, values = picture.figure.axes
    assert any(line.get_xydata().tolist() == [[0, 0], [0, 2]] for line in keys.lines)
    assert [round(bar.get_width(), 2) for bar in weights.patches] == [1, 0, 0, 0, 0]
    assert [text.get_text() for text in values.texts] == ["2.00"]


def test_the_query_is_dragged_and_stays_in_the_plane():
    explorer = query_among_keys.explore()
    explorer._on_pointer(-0.52, 9.0, Pointer("move", "keys"))
    assert (explorer.values["query_1"], explorer.values["query_2"]) == (-0.5, 2.4)
    explorer._on_pointer(1.0, 1.0, Pointer("down", "weights"))
    assert (explorer.values["query_1"], explorer.values["query_2"]) == (-0.5, 2.4)


def test_arrow_keys_move_the_query_one_step():
    explorer = query_among_keys.explore()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "a"):
        explorer._on_key(key)
    assert (explorer.values["query_1"], explorer.values["query_2"]) == (0.6, 0.8)
