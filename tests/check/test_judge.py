"""What a checker says where it knows no name for what is wrong."""

import numpy as np

from course_lib import check


def right_scores(q, k):
    return q @ np.swapaxes(k, 1, 2) / np.sqrt(q.shape[-1])


def test_the_first_entry_that_differs_is_named():
    def one_entry_off(q, k):
        scores = right_scores(q, k)
        scores[1, 2, 3] = scores[1, 4, 0] = 7
        return scores

    message = check.scores(one_entry_off).message
    assert message.startswith("The first difference is at scores[1, 2, 3]: expected ")
    assert message.endswith(", found 7.")


def test_zero_has_no_sign():
    message = check.causal_mask(lambda t, t_total: np.full((t, t_total), -0.0)).message
    assert message == "The first difference is at mask[0, 5]: expected -inf, found 0."


def test_a_wrong_shape_is_told_in_numbers_and_letters():
    message = check.scores(lambda q, k: np.sum(q)).message
    assert message == (
        "scores has shape []; expected [2, 7, 7], which is [B, T, T]. "
        "The inputs were q [2, 7, 5] and k [2, 7, 5]."
    )


def test_one_array_in_place_of_two_is_not_cut_in_two():
    message = check.mul_backward(lambda g, a, b: g * b).message
    assert message == "It returned one array [2, 3], where 2 are expected."


def test_of_several_outputs_the_one_that_differs_is_named():
    message = check.mul_backward(lambda g, a, b: (g * b, g * b)).message
    assert message.startswith("The first difference is at grad_b[0, 0]: ")


def test_too_few_outputs_are_counted():
    result = check.mul_backward(lambda g, a, b: (g * b,))
    assert result.message == "It returned a sequence of length 1, where 2 arrays are expected."


def test_a_number_that_is_not_known_is_led_to_the_idea():
    assert repr(check.sigma_at_100(7)) == (
        "sigma_at_100: not right yet.\n"
        "Which variance has a sum of 100 independent products, and how is σ made from it?"
    )


def test_nan_is_explained():
    message = check.scores(lambda q, k: right_scores(q, k) * np.nan).message
    assert message.endswith("found nan. NaN comes from 0/0, ∞/∞, ∞ − ∞ or 0 · ∞.")


def test_an_error_that_only_arrays_raise_is_not_told_to_one_who_uses_tensors():
    message = check.scores(lambda q, k: q @ k.transpose(-2, -1) / sqrt_of_d_k).message  # noqa: F821
    assert message.startswith("NameError ")


def test_the_text_of_a_right_answer_is_one_line():
    assert repr(check.scores(right_scores)) == "scores: right."


def square_only(x, w, b):
    if w.shape[0] == w.shape[1]:
        return x @ w + b
    return w


def test_a_case_on_which_a_mistake_cannot_be_made_is_survived():
    result = check.project(square_only)
    assert (result.mistake, result.status) == (None, "wrong")
    assert "y has shape [4, 6]" in result.message


def test_an_error_about_nan_on_such_a_case_is_no_known_mistake():
    def raises(x, w, b):
        if w.shape[0] != w.shape[1]:
            raise ValueError("this makes NaN")
        return x @ w + b

    assert check.project(raises).mistake is None
