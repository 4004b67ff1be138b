"""Judge a learner's answer: right, a mistake known by name, or where it differs first."""

import dis
import html
import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from course_lib.check.call import TIME_LIMIT, NotNumbers, as_array, call, error_in_words

TOLERANCE = 1e-4  # absolute and relative; a float32 answer is as good as a float64 one
HALF_TOLERANCE = 1e-2  # for float16

RIGHT, WRONG, NOT_ATTEMPTED = "right", "wrong", "not attempted"
_HEADLINES = {RIGHT: "right.", WRONG: "not right yet.", NOT_ATTEMPTED: "not attempted yet."}
_COLORS = {RIGHT: "#1a7f37", WRONG: "#bc4c00", NOT_ATTEMPTED: "#6e7781"}


@dataclass(frozen=True)
class Result:
    """What a checker says. As the last line of a cell, it shows its text."""

    exercise: str
    status: str  # "right", "wrong" or "not attempted"
    message: str = ""  # one sentence more
    mistake: str | None = None  # the name of a known mistake, such as "M04"
    printed: str = ""  # what the learner's function printed

    def __repr__(self):
        headline = f"{self.exercise}: {_HEADLINES[self.status]}"
        return "\n".join(part for part in (headline, self.message, self._printed()) if part)

    def _repr_html_(self):
        color = _COLORS[self.status]
        return (
            f'<div style="border-left: 4px solid {color}; padding-left: 0.75em; '
            f'white-space: pre-wrap">{html.escape(repr(self))}</div>'
        )

    def _printed(self):
        lines = self.printed.splitlines()
        if not lines:
            return ""
        shown = [f"    {line[:80]}" for line in lines[:8]]
        more = ["    …"] if len(lines) > 8 else []
        return "\n".join(["Your function printed:", *shown, *more])


@dataclass(frozen=True)
class Mistake:
    """A mistake known by name: `answers` give, on the same inputs, what it leads to."""

    name: str
    says: str  # one sentence that points to the idea
    answers: tuple[Callable, ...]


@dataclass(frozen=True)
class Case:
    """The arguments of one call, by name, and the arrays that a right answer returns."""

    inputs: dict[str, object]
    expected: tuple[np.ndarray, ...]


def judge(exercise, function, cases, outputs, mistakes=()):
    """Judge a learner's function.

    Parameters
    ----------
    exercise : str
        The exercise's name, which starts the text.
    function : callable or Ellipsis
        The learner's function.
    cases : list of Case
        Judged in order; the first that fails decides.
    outputs : dict of str to str
        Each returned array's name and its shape in letters, such as ``{"scores": "[B, T, T]"}``.
    mistakes : sequence of Mistake
        Compared in order with a wrong answer.

    Returns
    -------
    Result
    """
    if function is Ellipsis:
        return Result(exercise, NOT_ATTEMPTED)
    if not callable(function):
        says = f"Give the function itself, without calling it: check.{exercise}(my_function)."
        return Result(exercise, WRONG, says)
    printed = ""
    for case in cases:
        if not _accepts(function, case.inputs):
            says = f"The checker calls it with {_list_words(list(case.inputs))}, in this order."
            return Result(exercise, WRONG, says)
        made = call(function, case.inputs, len(outputs))
        printed = printed or made.printed
        if _is_unfilled(function, made):
            says = "" if _does_nothing(function) else "There is still something to fill in."
            return Result(exercise, NOT_ATTEMPTED, says, printed=printed)
        trouble = _trouble(made, case)
        if trouble:
            return Result(exercise, WRONG, trouble, printed=made.printed)
        wrong = _wrong(made, case, outputs, mistakes)
        if wrong:
            name, says = wrong
            return Result(exercise, WRONG, says, name, made.printed)
    return Result(exercise, RIGHT, printed=printed)


def judge_value(exercise, answer, expected, mistakes=(), tolerance=TOLERANCE):
    """Judge a value that the learner worked out: a number, or an array of them.

    Parameters
    ----------
    exercise : str
        The exercise's name, which starts the text.
    answer : object
        What the learner gave; `...` stands for "not attempted yet".
    expected : float or array_like
    mistakes : sequence of Mistake
        Each answer is called without arguments.
    tolerance : float
        Absolute and relative.

    Returns
    -------
    Result
    """
    if _holds_ellipsis(answer):
        return Result(exercise, NOT_ATTEMPTED)
    expected = np.asarray(expected, dtype=float)
    kind = "one number" if expected.ndim == 0 else f"numbers of shape {list(expected.shape)}"
    try:
        found = as_array(answer)
    except Exception:
        found = None
    if found is None or found.dtype == bool:
        return Result(exercise, WRONG, f"Give {kind}.")
    if expected.ndim == 0 and found.size == 1:
        found = found.reshape(())
    if found.shape != expected.shape:
        return Result(exercise, WRONG, f"Give {kind}; this has shape {list(found.shape)}.")
    if _close(found, expected, tolerance).all():
        return Result(exercise, RIGHT)
    for mistake in mistakes:
        for wrong in mistake.answers:
            if _close(found, np.asarray(wrong(), dtype=float), tolerance).all():
                return Result(exercise, WRONG, mistake.says, mistake.name)
    says = "" if expected.ndim == 0 else _first_difference("", found, expected, tolerance)
    return Result(exercise, WRONG, says)


def _accepts(function, inputs):
    try:
        inspect.signature(function).bind(*inputs.values())
    except TypeError:
        return False
    except ValueError:  # some builtins have no signature: the call will tell
        return True
    return True


def _is_unfilled(function, made):
    """Whether a `...` of the stub still stands, or NotImplementedError, or nothing at all."""
    if isinstance(made.error, NotImplementedError):
        return True
    if isinstance(made.error, TypeError | AttributeError) and "ellipsis" in str(made.error):
        return True
    return _holds_ellipsis(made.answer) or (made.answer is None and _does_nothing(function))


def _holds_ellipsis(answer):
    return answer is Ellipsis or (
        isinstance(answer, list | tuple) and any(_holds_ellipsis(entry) for entry in answer)
    )


def _does_nothing(function):
    code = getattr(function, "__code__", None)
    idle = {"RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"}
    return code is not None and {step.opname for step in dis.get_instructions(code)} <= idle


def _trouble(made, case):
    """A sentence on a call that gave no arrays of numbers, or None."""
    if not made.in_time:
        says = f"It took longer than {TIME_LIMIT:.0f} seconds: is there a loop that never ends?"
        unstopped = " It could not be stopped: restart the kernel."
        return says if made.stopped else says + unstopped
    if isinstance(made.error, NotNumbers):
        hint = ": is there a return?" if made.answer is None else ", not an array of numbers."
        return f"It returned {made.error}{hint}"
    if made.error is not None:
        return f"{error_in_words(made.error)}. {_inputs_in_words(case.inputs)}"
    return None


def _inputs_in_words(inputs):
    words = [
        f"{name} {list(value.shape)}" if isinstance(value, np.ndarray) else f"{name} = {value}"
        for name, value in inputs.items()
    ]
    return f"The inputs were {_list_words(words)}."


def _list_words(words):
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _wrong(made, case, outputs, mistakes):
    """The name and the sentence of what is wrong with the outputs, or None if they are right."""
    if made.changed:
        return "in place", f"It changes its input {made.changed} in place: work on a copy."
    if _same(made.outputs, case.expected):
        return None
    with np.errstate(all="ignore"):
        for mistake in mistakes:
            for answer in mistake.answers:
                wrong = answer(*case.inputs.values())
                wrong = wrong if isinstance(wrong, tuple) else (wrong,)
                if _same(made.outputs, wrong):
                    return mistake.name, mistake.says
    return None, _difference(made.outputs, case, outputs)


def _difference(found, case, outputs):
    for (name, letters), one, expected in zip(outputs.items(), found, case.expected, strict=True):
        if one.shape != expected.shape:
            return (
                f"{name} has shape {list(one.shape)}; expected {list(expected.shape)}, "
                f"which is {letters}."
            )
        if not _same((one,), (expected,)):
            return _first_difference(name, one, expected, _tolerance(one))


def _first_difference(name, found, expected, tolerance):
    index = tuple(np.argwhere(~_close(found, expected, tolerance))[0].tolist())
    place = f"The first difference is at {name}{list(index)}" if index else "It differs"
    return f"{place}: expected {_number(expected[index])}, found {_number(found[index])}."


def _number(value):
    return f"{float(value) + 0.0:.4g}"  # + 0.0 turns -0 into 0


def _same(found, expected):
    return len(found) == len(expected) and all(
        one.shape == other.shape and _close(one, other, _tolerance(one)).all()
        for one, other in zip(found, expected, strict=True)
    )


def _tolerance(array):
    return HALF_TOLERANCE if array.dtype == np.float16 else TOLERANCE


def _close(found, expected, tolerance):
    found = found.astype(float)
    return np.isclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
