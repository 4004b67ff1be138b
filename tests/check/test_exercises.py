"""Every exercise × its right answers, its mistakes by name, and nonsense: one table."""

import itertools

import answers_lesson_01
import answers_lesson_02
import answers_lesson_03
import answers_lesson_04
import answers_lesson_05
import answers_lesson_06
import answers_lesson_07
import answers_lesson_08
import answers_lesson_09
import answers_lesson_10
import nonsense
import numpy as np
import pytest

from course_lib import check
from course_lib.check import (
    lesson_01,
    lesson_02,
    lesson_03,
    lesson_04,
    lesson_05,
    lesson_06,
    lesson_07,
    lesson_08,
    lesson_09,
    lesson_10,
)
from course_lib.check.judge import TOLERANCE, Exercise, call_either_way
from course_lib.tensor import Tensor

ANSWERS = [
    answers_lesson_01,
    answers_lesson_02,
    answers_lesson_03,
    answers_lesson_04,
    answers_lesson_05,
    answers_lesson_06,
    answers_lesson_07,
    answers_lesson_08,
    answers_lesson_09,
    answers_lesson_10,
]
LESSONS = [
    lesson_01,
    lesson_02,
    lesson_03,
    lesson_04,
    lesson_05,
    lesson_06,
    lesson_07,
    lesson_08,
    lesson_09,
    lesson_10,
]

RIGHT = {name: answers for module in ANSWERS for name, answers in module.RIGHT.items()}
WRONG = {name: answers for module in ANSWERS for name, answers in module.WRONG.items()}
EXERCISES = {
    exercise.name: exercise
    for module in LESSONS
    for exercise in vars(module).values()
    if isinstance(exercise, Exercise)
}


RIGHT_ROWS = [(name, answer) for name, answers in RIGHT.items() for answer in answers]
WRONG_ROWS = [
    (name, mistake, answer)
    for name, mistakes in WRONG.items()
    for mistake, answers in mistakes.items()
    for answer in answers
]


def test_the_table_is_whole():
    assert set(RIGHT) == set(WRONG) == set(EXERCISES)
    for name, exercise in EXERCISES.items():
        assert {mistake.name for mistake in exercise.mistakes} == set(WRONG[name])


@pytest.mark.parametrize(("name", "answer"), RIGHT_ROWS)
def test_a_right_answer_in_any_style_is_accepted(name, answer):
    result = getattr(check, name)(answer)
    assert (result.status, result.mistake) == ("right", None), result


@pytest.mark.parametrize(("name", "mistake", "answer"), WRONG_ROWS)
def test_a_known_mistake_is_called_by_its_name(name, mistake, answer):
    result = getattr(check, name)(answer)
    assert (result.status, result.mistake) == ("wrong", mistake), result
    assert len(repr(result).splitlines()) == 2


@pytest.mark.parametrize("answer", nonsense.FUNCTIONS)
def test_nonsense_is_explained_and_nothing_leaks(answer, capfd):
    for name in EXERCISES:
        result = getattr(check, name)(answer)
        assert result.status == "wrong", name
        assert len(repr(result).splitlines()) == 2, name
        assert " at 0x" not in repr(result), name
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("stub", nonsense.STUBS)
def test_a_stub_is_not_attempted(stub):
    for name in EXERCISES:
        assert getattr(check, name)(stub).status == "not attempted", name


@pytest.mark.parametrize("thing", [None, 1, "text", np.eye(2)])
def test_what_is_no_function_is_said_so(thing):
    for name in EXERCISES:
        assert f"check.{name}(" in getattr(check, name)(thing).message


def outputs(exercise, answer):
    """What an answer gives on each case; nothing where it raises."""
    return [call_either_way(answer, case).outputs for case in exercise.cases]


def differ(ones, others):
    """Whether two answers differ clearly on one of the cases."""
    for one, other in zip(ones, others, strict=True):
        if len(one) != len(other):
            return True
        for a, b in zip(one, other, strict=True):
            if a.shape != b.shape:
                return True
            a, b = a.astype(float), b.astype(float)
            # NaN and inf only equal themselves
            finite = np.isfinite(a) & np.isfinite(b)
            if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
                return True
            if (np.abs(a[finite] - b[finite]) > 10 * TOLERANCE * (1 + np.abs(b[finite]))).any():
                return True
    return False


@pytest.mark.parametrize("name", EXERCISES)
def test_answers_that_mean_different_things_differ_clearly_on_the_inputs(name):
    exercise = EXERCISES[name]
    right = [("right", outputs(exercise, answer)) for answer in RIGHT[name][:1]]
    wrong = [
        (mistake, outputs(exercise, answer))
        for mistake, answers in WRONG[name].items()
        for answer in answers
    ]
    for (one, ones), (other, others) in itertools.combinations(right + wrong, 2):
        assert one == other or differ(ones, others), f"{one} and {other} are too close"


# name: right answers, then wrong ones under the names of their mistakes
VALUES = {
    "find_wrong_backward": (
        ["tanh_backward", "tanh"],
        {"not this one": ["exp_backward", "sqrt"], None: ["relu", 1, None, np.eye(2)]},
    ),
    "soft_lookup_by_hand": (
        [14.25, np.float32(14.246)],
        {"M26": [10], "average": [20.0], "M14": [13.33], "not normalized": [158.25], None: [14]},
    ),
    "parameter_count": (
        [12480, 12480.0, np.int64(12480)],
        {
            "M02": [12288],
            "one layer": [4160, 4096],
            "one bias number": [12291],
            None: [12481, 16640, "many", True, None, [12480, 12480]],
        },
    ),
    "sigma_at_100": (
        [10, np.float32(9.8), Tensor(10.0)],
        {"variance": [100], "scaled": [1], None: [8, 0.1, None, True, "ten", np.nan, 10 + 0j]},
    ),
    "attention_by_hand": (
        [[[0.670, 0.330], [0.330, 0.670]], np.array([[0.6698, 0.3302], [0.3302, 0.6698]])],
        {
            "M04": [[[0.731, 0.269], [0.269, 0.731]]],
            "M05": [[[0.622, 0.378], [0.378, 0.622]]],
            "M12": [[[0.335, 0.165], [0.165, 0.335]]],
            "scores": [[[0.707, 0], [0, 0.707]], np.eye(2)],
            "not normalized": [[[2.028, 1], [1, 2.028]]],
            None: [[[0.67, 0.33], [0.67, 0.33]], 0.67, None, [[1, 2], [3]]],
        },
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_that_is_worked_out_on_paper(name):
    right, wrong = VALUES[name]
    judge = getattr(check, name)
    assert judge(...).status == "not attempted"
    for answer in right:
        assert judge(answer).status == "right", answer
    for mistake, answers in wrong.items():
        for answer in answers:
            result = judge(answer)
            assert (result.status, result.mistake) == ("wrong", mistake), answer


def test_every_checker_is_in_the_table():
    assert set(EXERCISES) | set(VALUES) == set(check.__all__) - {"Result"}


def test_every_mistake_of_the_course_is_known():
    known = {mistake for mistakes in WRONG.values() for mistake in mistakes}
    assert {f"M{number:02}" for number in range(1, 33)} <= known
