"""The exercises' checkers: one function per exercise, such as ``check.scores(my_scores)``.

Each returns a `Result`; as the last line of a cell it shows one line of text and, on a mistake,
one sentence more.
"""

from course_lib.check.judge import Result
from course_lib.check.lesson_04 import scores, sigma_at_100
from course_lib.check.lesson_05 import softmax, softmax_backward
from course_lib.check.lesson_06 import causal_mask, keep_to_additive, masked_softmax

__all__ = [
    "Result",
    "causal_mask",
    "keep_to_additive",
    "masked_softmax",
    "scores",
    "sigma_at_100",
    "softmax",
    "softmax_backward",
]
