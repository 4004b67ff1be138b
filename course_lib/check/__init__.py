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
from course_lib.check.lesson_08 import merge_heads, multi_head, split_heads
from course_lib.check.lesson_09 import fit, shift_targets
from course_lib.check.lesson_10 import (
    attend_with_cache,
    embed_new_tokens,
    mask_for_step,
    running_softmax,
)

__all__ = [
    "Result",
    "attend_with_cache",
    "attention",
    "attention_by_hand",
    "causal_mask",
    "embed_new_tokens",
    "find_wrong_backward",
    "fit",
    "keep_to_additive",
    "mask_for_step",
    "masked_softmax",
    "matmul_backward",
    "merge_heads",
    "mul_backward",
    "multi_head",
    "parameter_count",
    "project",
    "raw_scores",
    "running_softmax",
    "scores",
    "shift_targets",
    "sigma_at_100",
    "soft_lookup",
    "soft_lookup_by_hand",
    "softmax",
    "softmax_backward",
    "split_heads",
    "unbroadcast",
]
