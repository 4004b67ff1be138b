"""Each exercise: the stub as committed is "not attempted"; with its solution it is "right"."""

import executed
import notebook_rules as rules
import pytest

EXERCISES = [
    (path.stem[:2], name)
    for path in sorted(executed.NOTEBOOKS.glob("*.ipynb"))
    for name in rules.exercises(rules.load(path))
]


def test_there_are_exercises():
    assert len(EXERCISES) > 20


@pytest.mark.parametrize(("number", "name"), EXERCISES)
def test_the_checker_accepts_the_solution_and_no_stub(number, name):
    lesson = executed.lesson(number)
    assert lesson.stubs[name].status == "not attempted", str(lesson.stubs[name])
    assert lesson.solutions[name].status == "right", str(lesson.solutions[name])
