"""The exercises' checkers: one function per exercise, such as ``check.scores(my_scores)``.

Each returns a `Result`; as the last line of a cell it shows one line of text and, on a mistake,
one sentence more.
"""

from course_lib.check.judge import Result
from course_lib.check.lesson_04 import scores, sigma_at_100

__all__ = ["Result", "scores", "sigma_at_100"]
