"""Judge a learner's answer: right, a mistake known by name, or where it differs first."""

import dis
import html
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from course_lib._arrays import Array
from course_lib.check.call import (
    TIME_LIMIT,
    Call,
    Function,
    Inputs,
    NotNumbers,
    Unfilled,
    as_array,
    call,
    error_in_words,
    where,
)

Answer = Callable[..., Any]  # makes of a case's inputs what one mistake leads to
Verdict = tuple[str | None, str]  # the name of a known mistake, and one sentence

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

    def __repr__(self) -> str:
        headline = f"{self.exercise}: {_HEADLINES[self.status]}"
        return "\n".join(part for part in (headline, self.message, self._printed()) if part)

    def _repr_html_(self) -> str:
        color = _COLORS[self.status]
        return (
            f'<div style="border-left: 4px solid {color}; padding-left: 0.75em; '
            f'white-space: pre-wrap">{html.escape(repr(self))}</div>'
        )

    def _printed(self) -> str:
        lines = self.printed.splitlines()
        if not lines:
            return ""
        shown = [f"    {line[:80]}" for line in lines[:8]]
        more = ["    …"] if len(lines) > 8 else []
        return "\n".join(["Your function printed:", *shown, *more])


@dataclass(frozen=True)
class Mistake:
    """A mistake known by name: `answers` give, from the same inputs, what it leads to."""

    name: str
    says: str  # one sentence that points to the idea
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class Case:
    """The arguments of one call, by name and in order, and the arrays of a right answer."""

    inputs: Inputs
    expected: tuple[Array, ...]


@dataclass(frozen=True)
class Exercise:
    """A function that the learner writes.

    `outputs` has each returned array's name and its shape in letters; of the `cases`, the first
    that fails decides; a wrong answer is compared with the `mistakes` in order.
    """

    name: str
    outputs: dict[str, str]
    cases: tuple[Case, ...]
    mistakes: tuple[Mistake, ...] = ()


def judge(exercise: Exercise, function: object) -> Result:
    """Judge a learner's function.

    Parameters
    ----------
    exercise : Exercise
    function : callable or Ellipsis

    Returns
    -------
    Result
    """
    name = exercise.name
    if function is Ellipsis:
        return Result(name, NOT_ATTEMPTED)
    if not callable(function):
        says = f"Give the function itself, without calling it: check.{name}(my_function)."
        return Result(name, WRONG, says)
    printed = ""
    for case in exercise.cases:
        if not _accepts(function, case.inputs):
            says = f"The checker calls it with {_list_words(list(case.inputs))}, in this order."
            return Result(name, WRONG, says)
        made = call_either_way(function, case)
        printed = printed or made.printed
        if _is_unfilled(function, made):
            says = "" if _does_nothing(function) else "There is still something to fill in."
            return Result(name, NOT_ATTEMPTED, says, printed=printed)
        wrong = _known_mistake(exercise, case, made) or _trouble(case, made)
        wrong = wrong or _difference(exercise, case, made)
        if wrong:
            mistake, says = wrong
            return Result(name, WRONG, says, mistake, made.printed)
    return Result(name, RIGHT, printed=printed)


def judge_value(
    name: str,
    answer: object,
    expected: ArrayLike,
    otherwise: str,
    mistakes: Sequence[Mistake] = (),
    tolerance: float = TOLERANCE,
) -> Result:
    """Judge a value that the learner worked out: a number, or an array of them.

    Parameters
    ----------
    name : str
        The exercise's name, which starts the text.
    answer : object
        What the learner gave; `...` stands for "not attempted yet".
    expected : float or array_like
    otherwise : str
        The sentence for a wrong number that is no known mistake; of an array, the first entry that
        differs is named as well.
    mistakes : sequence of Mistake
        Their answers are called without arguments.
    tolerance : float
        Absolute and relative.

    Returns
    -------
    Result
    """
    expected = np.asarray(expected, dtype=float)
    kind = f"numbers of shape {list(expected.shape)}" if expected.ndim else "one number, no comma"
    try:
        found = as_array(answer)
    except Unfilled:
        return Result(name, NOT_ATTEMPTED)
    except Exception:
        return Result(name, WRONG, f"Give {kind}.")
    if expected.ndim == 0 and found.size == 1:
        found = found.reshape(())
    if found.shape != expected.shape or found.dtype == bool:
        return Result(name, WRONG, f"Give {kind}.")
    if _close(found, expected, tolerance).all():
        return Result(name, RIGHT)
    for mistake in mistakes:
        for wrong in mistake.answers:
            if _close(found, np.asarray(wrong(), dtype=float), tolerance).all():
                return Result(name, WRONG, mistake.says, mistake.name)
    if expected.ndim:
        otherwise = f"{_first_difference('entry ', found, expected, tolerance)} {otherwise}"
    return Result(name, WRONG, otherwise)


def call_either_way(function: Function, case: Case) -> Call:
    """Call with arrays and, if that does not give the right answer, with Tensors.

    Not only after an error: `x.transpose(-2, -1)` of a matrix means one thing to an array and
    another to a Tensor.
    """
    made = call(function, case.inputs, len(case.expected))
    changed_an_array = made.changed and made.error is None  # as `q /= 2` does, but not to a Tensor
    if _same(made.outputs, case.expected) or changed_an_array or not made.in_time:
        return made
    with_tensors = call(function, case.inputs, len(case.expected), as_tensors=True)
    if _same(with_tensors.outputs, case.expected):
        return with_tensors
    if made.error is None or with_tensors.error is None:
        return made if made.error is None else with_tensors
    # Both raised: an array lacks the Tensor's methods, or `transpose(1, 2)` means another thing to
    # it, so tell what the Tensors met beyond that.
    wants_tensors = isinstance(made.error, AttributeError | TypeError)
    wants_tensors = wants_tensors or "axes don't match" in error_in_words(made.error)
    return with_tensors if wants_tensors and _unlike(made.error, with_tensors.error) else made


def _unlike(error: BaseException, other: BaseException) -> bool:
    return type(error) is not type(other) or where(error) != where(other)


def _accepts(function: Function, inputs: Inputs) -> bool:
    try:
        inspect.signature(function).bind(*inputs.values())
    except TypeError:
        return False
    except Exception:  # some builtins have no signature: the call will tell
        return True
    return True


def _is_unfilled(function: object, made: Call) -> bool:
    if made.answer is None and _does_nothing(function):
        return True
    in_the_way = isinstance(made.error, TypeError | AttributeError) and "llipsis" in str(made.error)
    return in_the_way or type(made.error) in (Unfilled, NotImplementedError)


def _does_nothing(function: object) -> bool:
    """Whether its body is only `...`, `pass`, a docstring or `return None`."""
    code = getattr(function, "__code__", None)
    idle = {"RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"}
    return code is not None and {step.opname for step in dis.get_instructions(code)} <= idle


def _known_mistake(exercise: Exercise, case: Case, made: Call) -> Verdict | None:
    # A Tensor raises where an array would go on with NaN: the same mistake.
    raised_nan = isinstance(made.error, ValueError) and "NaN" in str(made.error)
    if not (made.outputs or raised_nan) or made.changed or _same(made.outputs, case.expected):
        return None
    for mistake in exercise.mistakes:
        for answer in mistake.answers:
            wrong = _what_it_leads_to(answer, case)
            made_nan = raised_nan and any(np.isnan(array).any() for array in wrong)
            if made_nan or (made.outputs and _same(made.outputs, wrong)):
                return mistake.name, mistake.says
    return None


def _what_it_leads_to(answer: Answer, case: Case) -> tuple[Array, ...]:
    try:
        with np.errstate(all="ignore"):
            outputs = answer(*case.inputs.values())
    except ValueError:  # shapes that do not fit: this mistake cannot be made on these inputs
        return ()
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _trouble(case: Case, made: Call) -> Verdict | None:
    """Why a call gave no arrays of numbers."""
    if not made.in_time:
        says = f"It took longer than {TIME_LIMIT:.0f} seconds: is there a loop that never ends?"
        return None, says if made.stopped else f"{says} Restart the kernel to stop it."
    if isinstance(made.error, NotNumbers):
        return None, f"It returned {made.error}"
    if made.error is not None:
        return None, f"{error_in_words(made.error)}. {_inputs_in_words(case.inputs)}"
    if made.changed:
        return "in place", f"It changes its input {made.changed} in place: work on a copy."
    return None


def _inputs_in_words(inputs: Inputs) -> str:
    words = [
        f"{name} {list(value.shape)}" if isinstance(value, np.ndarray) else f"{name} = {value}"
        for name, value in inputs.items()
    ]
    return f"The inputs were {_list_words(words)}."


def _list_words(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _difference(exercise: Exercise, case: Case, made: Call) -> Verdict | None:
    """The first entry that differs, or the first shape; None if the answer is right."""
    parts = zip(exercise.outputs.items(), made.outputs, case.expected, strict=True)
    for (name, letters), found, expected in parts:
        if found.shape != expected.shape:
            if isinstance(made.answer, np.ndarray) and len(case.expected) > 1:
                one = f"one array {list(made.answer.shape)}"
                return None, f"It returned {one}, where {len(case.expected)} are expected."
            return None, (
                f"{name} has shape {list(found.shape)}; expected {list(expected.shape)}, "
                f"which is {letters}. {_inputs_in_words(case.inputs)}"
            )
        if not _same((found,), (expected,)):
            return None, _first_difference(name, found, expected, _tolerance(found))
    return None


def _first_difference(name: str, found: Array, expected: Array, tolerance: float) -> str:
    index = tuple(np.argwhere(~_close(found, expected, tolerance))[0].tolist())
    place = f"The first difference is at {name}{list(index)}" if index else "It differs"
    says = f"{place}: expected {_number(expected[index])}, found {_number(found[index])}."
    if np.isnan(found[index]):
        says += " NaN comes from 0/0, ∞/∞, ∞ − ∞ or 0 · ∞."
    return says


def _number(value: float) -> str:
    return f"{float(value) + 0.0:.4g}"  # + 0.0 turns -0 into 0


def _same(found: tuple[Array, ...], expected: tuple[Array, ...]) -> bool:
    return len(found) == len(expected) and all(
        one.shape == other.shape and _close(one, other, _tolerance(one)).all()
        for one, other in zip(found, expected, strict=True)
    )


def _tolerance(array: Array) -> float:
    return HALF_TOLERANCE if array.dtype == np.float16 else TOLERANCE


def _close(found: Array, expected: Array, tolerance: float) -> Array:
    found = found.astype(float)
    return np.isclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
