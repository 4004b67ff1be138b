"""Lesson 00's live figure."""

import pytest

from course_lib.live import one_number


@pytest.mark.parametrize("number", [0, 1, 40, 100])
def test_the_bar_is_as_long_as_the_number(number):
    picture = one_number.draw(one_number.compute(7))
    picture.update(one_number.compute(number))
    (bar,) = picture.figure.axes[0].patches
    assert (bar.get_x(), bar.get_width()) == (0, number)


def test_the_slider_turns_picture_and_sentence():
    explorer = one_number.explore()
    before = explorer.figure.frame
    explorer.controls["number"].value = 73
    assert explorer.figure.frame != before
    assert explorer.figure.says == "The number is 73."


def test_without_a_view_nothing_has_moved():
    explorer = one_number.explore()
    explorer.controls["number"].value = 73
    assert not explorer.has_moved()
