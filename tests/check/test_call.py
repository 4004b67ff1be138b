"""A learner's function can neither hang, nor crash, nor change anything but its own copies."""

import _thread
import gc
import random
import signal
import sys
import threading
import time
import warnings

import numpy as np
import pytest

from course_lib import check
from course_lib.check import call as calling
from course_lib.check.call import PRINT_LIMIT, call, error_in_words
from course_lib.tensor import Tensor

INPUTS = {"x": np.arange(6.0).reshape(2, 3)}


@pytest.fixture
def short_limit(monkeypatch):
    monkeypatch.setattr(calling, "TIME_LIMIT", 0.2)


def learners_at_work():
    return [thread for thread in threading.enumerate() if "work" in thread.name]


def test_an_endless_loop_is_stopped(short_limit):
    def endless(x):
        while True:
            pass

    made = call(endless, INPUTS, 1)
    assert not made.in_time and made.stopped
    assert not learners_at_work()


def test_a_slow_function_is_not_called_again(short_limit):
    calls = []

    def endless(q, k):
        calls.append(1)
        while True:
            pass

    assert "longer than" in check.scores(endless).message
    assert len(calls) == 1


def test_an_endless_loop_that_catches_exceptions_is_stopped(short_limit):
    def endless(x):
        while True:
            try:
                time.sleep(0.01)
            except Exception:
                pass

    made = call(endless, INPUTS, 1)
    assert not made.in_time and made.stopped


def test_what_cannot_be_stopped_is_left_behind(short_limit):
    release = threading.Event()

    def stuck(q, k):
        while not release.is_set():
            try:
                time.sleep(0.01)
            except:  # noqa: E722 (a learner may write this)
                pass

    result = check.scores(stuck)
    release.set()
    assert "a loop that never ends?" in result.message
    assert "Restart the kernel" in result.message


@pytest.fixture
def interruptible():
    """A shell's background job ignores SIGINT, and its Python with it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_interrupting_the_kernel_ends_the_call(interruptible):
    def endless(x):
        threading.Timer(0.2, _thread.interrupt_main).start()
        while True:
            pass

    with pytest.raises(KeyboardInterrupt):
        call(endless, INPUTS, 1)
    assert not learners_at_work()


def test_prints_are_kept_but_not_without_end(capsys):
    def chatty(x):
        for _ in range(100_000):
            print("shape", x.shape)
        print("an error", file=sys.stderr)
        return x * 2

    made = call(chatty, INPUTS, 1)
    assert made.printed.startswith("shape (2, 3)\n") and len(made.printed) == PRINT_LIMIT
    assert capsys.readouterr() == ("", "")


def test_a_closed_output_is_survived():
    def closes(x):
        print("last words")
        sys.stdout.close()
        return x

    assert call(closes, INPUTS, 1).printed == "last words\n"


def test_prints_are_shown_below_the_verdict():
    def chatty(q, k):
        print("hello")
        return q

    lines = repr(check.scores(chatty)).splitlines()
    assert lines[2:] == ["Your function printed:", "    hello"]


def test_warnings_do_not_reach_the_notebook():
    def warns(x):
        warnings.warn("careful", stacklevel=1)
        return np.log(x - 10) / 0.0

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(call(warns, INPUTS, 1).outputs[0]).all()


def test_a_coroutine_leaves_no_warning_behind():
    async def later(q, k):
        return q

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        check.scores(later)
        gc.collect()
    assert not seen


def test_random_states_and_error_settings_stay_as_they_were():
    def careless(x):
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        np.seterr(all="raise")
        return x

    before = np.random.get_state()[1].copy(), random.getstate(), np.geterr()  # noqa: NPY002
    call(careless, INPUTS, 1)
    assert np.array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert (random.getstate(), np.geterr()) == before[1:]


def test_a_change_in_place_is_noticed_and_does_not_spoil_the_inputs():
    def halves(q, k):
        q /= np.sqrt(q.shape[-1])
        return q @ np.swapaxes(k, 1, 2)

    for _ in range(2):
        result = check.scores(halves)
        assert (result.status, result.mistake) == ("wrong", "in place")
        assert "its input q in place" in result.message


def test_in_place_means_nothing_to_a_tensor():
    def in_tensor_style(q, k):
        q /= q.shape[-1] ** 0.5  # makes a new Tensor
        return q @ k.permute(0, 2, 1)

    assert check.scores(in_tensor_style).status == "right"


def test_a_wrong_answer_that_comes_of_a_change_in_place_is_told_so():
    def shares_its_input(q, k):
        scaled = q
        scaled /= q.shape[-1] ** 0.5
        return q @ np.swapaxes(k / q.shape[-1] ** 0.5, 1, 2)

    assert check.scores(shares_its_input).mistake == "in place"


def test_a_change_of_shape_in_place_is_noticed():
    def reshapes(x):
        x.resize(6, refcheck=False)
        return x

    assert call(reshapes, INPUTS, 1).changed == "x"


def test_arrays_come_first_then_tensors():
    seen = []

    def notes(q, k):
        seen.append(type(q))
        return q @ k.permute(0, 2, 1) / q.shape[-1] ** 0.5

    assert check.scores(notes).status == "right"
    assert seen[:2] == [np.ndarray, Tensor]


def test_a_method_that_means_another_thing_to_an_array_is_accepted():
    def with_tensors_in_mind(g, a, b):
        return g @ b.transpose(-2, -1), a.transpose(-2, -1) @ g

    assert check.matmul_backward(with_tensors_in_mind).status == "right"


def test_an_error_is_shown_with_the_learners_line_and_the_shapes():
    def wrong_product(q, k):
        return q @ k

    message = check.scores(wrong_product).message
    assert "(`return q @ k`)" in message and "on line " in message
    assert "5 columns on the left meet 7 rows on the right" in message
    assert "q [2, 7, 5] and k [2, 7, 5]" in message


def test_of_two_errors_the_one_that_came_further_is_shown():
    def slips(q, k):
        kt = k.permute(0, 2, 1)
        return q @ kt @ kt

    assert "(`return q @ kt @ kt`)" in check.scores(slips).message

    def misspells(q, k):
        return q.dott(k)

    assert "numpy.ndarray" in check.scores(misspells).message


def test_code_without_a_source_has_a_line_number_only():
    exec(compile("def hidden(q, k):\n    raise KeyError('x')", "<hidden>", "exec"), space := {})
    assert check.scores(space["hidden"]).message.startswith("KeyError on line 2: 'x'")


def test_only_pythons_own_not_implemented_stands_for_a_stub():
    class NoInputHere(NotImplementedError):
        pass  # a kernel raises such an error for input()

    def asks(q, k):
        raise NoInputHere("no input")

    assert check.scores(asks).status == "wrong"


def test_an_error_message_holds_no_address():
    assert error_in_words(ValueError("<A object at 0x7f12ab>")) == "ValueError: <A object>"


def test_the_result_in_html_is_escaped():
    def scripted(q, k):
        print("<script>alert(1)</script>")
        raise ValueError("<b>bold</b>")

    page = check.scores(scripted)._repr_html_()
    assert "<script>" not in page and "<b>" not in page
    assert "&lt;script&gt;" in page


def test_masked_entries_are_no_numbers():
    def masked(q, k):
        return np.ma.masked_array(q @ np.swapaxes(k, 1, 2) / q.shape[-1] ** 0.5, mask=True)

    assert "found nan" in check.scores(masked).message
