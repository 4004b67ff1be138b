"""The exercises' checkers: one function per exercise, such as ``check.scores(my_scores)``.

Each returns a `Result`; as the last line of a cell it shows one line of text and, on a mistake,
one sentence more.
"""

from course_lib.check.judge import Result
from course_lib.check.lesson_01 import (
    find_wrong_backward,
    matmul_backward,
    mul_backward,
    unbroadcast,
)
from course_lib.check.lesson_02 import soft_lookup, soft_lookup_by_hand
from course_lib.check.lesson_03 import parameter_count, project, raw_scores
from course_lib.check.lesson_04 import scores, sigma_at_100
from course_lib.check.lesson_05 import softmax, softmax_backward
from course_lib.check.lesson_06 import causal_mask, keep_to_additive, masked_softmax
from course_lib.check.lesson_07 import attention, attention_by_hand

__all__ = [
    "Result",
    "attention",
    "attention_by_hand",
    "causal_mask",
    "find_wrong_backward",
    "keep_to_additive",
    "masked_softmax",
    "matmul_backward",
    "mul_backward",
    "parameter_count",
    "project",
    "raw_scores",
    "scores",
    "sigma_at_100",
    "soft_lookup",
    "soft_lookup_by_hand",
    "softmax",
    "softmax_backward",
    "unbroadcast",
]
