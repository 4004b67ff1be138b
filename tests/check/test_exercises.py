"""Every exercise × its right answers, its mistakes by name, and nonsense: one table."""

import itertools

import answers_lesson_04
import answers_lesson_05
import answers_lesson_06
import nonsense
import numpy as np
import pytest

from course_lib import check
from course_lib.check import lesson_04, lesson_05, lesson_06
from course_lib.check.call import call
from course_lib.check.judge import TOLERANCE, Exercise

ANSWERS = [answers_lesson_04, answers_lesson_05, answers_lesson_06]
LESSONS = [lesson_04, lesson_05, lesson_06]

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


@pytest.mark.parametrize("name", EXERCISES)
@pytest.mark.parametrize("answer", nonsense.FUNCTIONS)
def test_nonsense_is_explained_and_nothing_leaks(name, answer, capfd):
    result = getattr(check, name)(answer)
    assert result.status == "wrong"
    assert len(repr(result).splitlines()) == 2
    assert " at 0x" not in repr(result)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", EXERCISES)
@pytest.mark.parametrize("stub", nonsense.STUBS)
def test_a_stub_is_not_attempted(name, stub):
    assert getattr(check, name)(stub).status == "not attempted"


@pytest.mark.parametrize("name", EXERCISES)
@pytest.mark.parametrize("thing", [None, 1, "text", np.eye(2)])
def test_what_is_no_function_is_said_so(name, thing):
    result = getattr(check, name)(thing)
    assert f"check.{name}(" in result.message


def outputs(exercise, answer):
    """What an answer gives on each case; None where it raises."""
    return [call(answer, case.inputs, len(exercise.outputs)).outputs for case in exercise.cases]


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
            if (np.abs(a - b)[finite] > 10 * TOLERANCE * (1 + np.abs(b[finite]))).any():
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


def test_values_that_are_worked_out_on_paper():
    assert check.sigma_at_100(10).status == "right"
    assert check.sigma_at_100(np.float32(9.8)).status == "right"
    assert check.sigma_at_100(100).mistake == "variance"
    assert check.sigma_at_100(1).mistake == "scaled"
    assert check.sigma_at_100(8).status == "wrong"
