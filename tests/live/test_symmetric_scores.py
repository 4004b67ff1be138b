"""Lesson 03's live figure."""

import pytest

from course_lib.live import symmetric_scores
from course_lib.live.figure import Pointer

# Worked out by hand from the course's running example.
SCORES = {
    "x itself": [[2, 1, 1], [1, 2, 1], [1, 1, 2]],
    "one W for both": [[1, 1, 0], [1, 2, 2], [0, 2, 4]],
    "Q and K": [[1, 0, 1], [1, 2, 2], [0, 4, 2]],
}


@pytest.mark.parametrize("way", SCORES)
def test_the_scores(way):
    assert symmetric_scores.compute(way, 2, 1).scores.tolist() == SCORES[way]


def test_the_vectors_of_the_running_example():
    state = symmetric_scores.compute("Q and K", 2, 1)
    assert state.asks.tolist() == [[1, 0], [1, 1], [0, 2]]
    assert state.found.tolist() == [[1, 0], [0, 2], [1, 1]]


@pytest.mark.parametrize(
    ("way", "parts"),
    [
        (
            "x itself",
            ["is symmetric", "no token scores another", "(0, 0, 1, 1) · (0, 1, 0, 1) = 1"],
        ),
        ("one W for both", ["is symmetric", "no token scores another", "(0, 2) · (1, 1) = 2"]),
        ("Q and K", ["not symmetric", "and bank scores another", "(1, 1) · (1, 1) = 2"]),
    ],
)
def test_the_sentence(way, parts):
    sentence = symmetric_scores.says(symmetric_scores.compute(way, 2, 1))
    assert all(part in sentence for part in parts), sentence


def test_the_picture_shows_every_score():
    picture = symmetric_scores.draw(symmetric_scores.compute("x itself", 0, 0))
    picture.update(symmetric_scores.compute("Q and K", 2, 1))
    scores, _, pair = picture.figure.axes
    assert [text.get_text() for text in scores.texts] == list("101122042")
    assert pair.texts[-1].get_text() == "Two different numbers"


def test_a_cell_is_clicked_or_reached_by_the_arrows():
    explorer = symmetric_scores.explore()
    explorer._on_pointer(2.4, -0.2, Pointer("down", "scores"))
    assert (explorer.values["i"], explorer.values["j"]) == (0, 2)
    for key in ("ArrowDown", "ArrowLeft", "ArrowUp", "ArrowUp", "Enter"):
        explorer._on_key(key)
    assert (explorer.values["i"], explorer.values["j"]) == (0, 1)
    explorer._on_pointer(0.0, 2.0, Pointer("down", "pair"))
    assert (explorer.values["i"], explorer.values["j"]) == (0, 1)
