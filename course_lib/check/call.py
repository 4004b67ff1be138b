"""Call a learner's function so that it can neither hang, nor crash, nor change anything."""

import contextlib
import ctypes
import inspect
import io
import linecache
import os
import random
import re
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from course_lib._arrays import Array
from course_lib.tensor import Tensor

Function = Callable[..., object]  # the learner's: it may take and return anything
Inputs = dict[str, Any]  # a function's arguments by name, in order

TIME_LIMIT = 5.0  # seconds for one call
PRINT_LIMIT = 2000  # characters kept of what one call prints

_LIBRARIES = tuple(
    str(folder)
    for folder in (
        Path(__file__).parents[1],
        Path(np.__file__).parent,
        Path(os.__file__).parent,
        "<frozen",
    )
)


class _TooSlow(BaseException):
    """Raised inside the learner's code when its time is over."""


class NotNumbers(Exception):
    """An answer is no array of numbers; the message says what it is instead."""


class Unfilled(Exception):
    """A `...` of the stub still stands in the answer."""


@dataclass
class Call:
    """What one call of the learner's function came to."""

    answer: object = None  # as returned
    outputs: tuple[Array, ...] = ()  # the same as arrays
    error: BaseException | None = None
    in_time: bool = True
    stopped: bool = True
    printed: str = ""
    changed: str | None = None  # the input that the function changed in place


def call(function: Function, inputs: Inputs, n_outputs: int, as_tensors: bool = False) -> Call:
    """Call `function` with copies of `inputs`.

    Parameters
    ----------
    function : callable
        The learner's function.
    inputs : dict of str to object
        The arguments by name, in order. They are passed by position.
    n_outputs : int
        How many arrays the function should return.
    as_tensors : bool
        Whether it gets its floating-point arrays as Tensors.

    Returns
    -------
    Call
    """
    copy = _copy_as_tensor if as_tensors else _copy
    given = {name: copy(value) for name, value in inputs.items()}
    result = Call()
    finished = threading.Event()

    def work() -> None:
        with contextlib.suppress(_TooSlow):
            try:
                with np.errstate(all="ignore"):
                    result.answer = function(*given.values())
                    result.outputs = _as_arrays(result.answer, n_outputs)
            except _TooSlow:
                raise
            except BaseException as error:  # sys.exit() must not end the kernel either
                result.error = error
            finished.set()

    printed = _Printed()
    with _state_kept(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            result.in_time = _wait(finished, TIME_LIMIT)
        finally:  # too slow, or the learner interrupted the kernel
            result.stopped = _stop(thread)
    result.printed = printed.getvalue()
    result.changed = next((name for name in inputs if _differs(given[name], inputs[name])), None)
    return result


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _copy_as_tensor(value: Any) -> Any:
    is_float = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return Tensor(value) if is_float else _copy(value)


@contextlib.contextmanager
def _state_kept() -> Iterator[None]:
    """Put the random generators and the warning filters back as they were."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)


def _wait(finished: threading.Event, seconds: float) -> bool:
    # In short slices: on Windows one long wait would not notice an interrupted kernel.
    end = time.monotonic() + seconds
    while not finished.wait(0.05):
        if time.monotonic() > end:
            return False
    return True


def _stop(thread: threading.Thread) -> bool:
    """Raise _TooSlow in `thread` until it ends, for a second at most: whether it ended."""
    for _ in range(20):
        thread.join(0.05)
        if thread.ident is None or not thread.is_alive():
            return True
        ident = ctypes.c_ulong(thread.ident)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(_TooSlow))
    return False


class _Printed(io.StringIO):
    """Keeps the first PRINT_LIMIT characters written to it."""

    def write(self, text: str) -> int:
        super().write(text[: max(0, PRINT_LIMIT - self.tell())])
        return len(text)

    def close(self) -> None:
        """Stay open: the checker reads it when the learner's code has ended."""


def _differs(given: Any, original: Any) -> bool:
    if not isinstance(original, np.ndarray):
        return False
    now = given.data if isinstance(given, Tensor) else given
    return not np.array_equal(now, original, equal_nan=True)


def _as_arrays(answer: object, n_outputs: int) -> tuple[Array, ...]:
    if inspect.iscoroutine(answer):
        answer.close()  # or Python warns that nobody awaited it
    if n_outputs == 1 or answer is None or answer is Ellipsis:
        return (as_array(answer),)
    if isinstance(answer, tuple | list):
        answer = [as_array(entry) for entry in answer]
    elif not isinstance(answer, np.ndarray) or answer.ndim == 0:
        raise NotNumbers(f"{_in_words(answer)}, where {n_outputs} arrays are expected.")
    if len(answer) != n_outputs:
        raise NotNumbers(
            f"a sequence of length {len(answer)}, where {n_outputs} arrays are expected."
        )
    return tuple(as_array(entry) for entry in answer)


def as_array(answer: object) -> Array:
    """An answer as an array of numbers: a Tensor, an array, a number, or lists of these.

    Raises
    ------
    NotNumbers
        If it is anything else, with the answer in words.
    Unfilled
        If it is `...`, or a list that holds one.
    """
    if answer is Ellipsis:
        raise Unfilled
    if answer is None:
        raise NotNumbers("None: is there a return?")
    if isinstance(answer, Tensor):
        return answer.data
    if isinstance(answer, list | tuple):
        answer = [as_array(entry) for entry in answer]
        if len({entry.shape for entry in answer}) > 1:
            raise NotNumbers("a list whose rows have different shapes.")
    if isinstance(answer, np.ma.MaskedArray):
        answer = np.ma.filled(answer.astype(float), np.nan)
    array = np.asarray(answer)
    if array.dtype == object and isinstance(answer, np.ndarray):
        array = np.reshape([as_array(entry) for entry in array.flat], array.shape)
    if array.dtype.kind == "c":
        raise NotNumbers("complex numbers.")
    if array.dtype.kind not in "biuf":
        raise NotNumbers(f"{_in_words(answer)}, not an array of numbers.")
    return array


def _in_words(answer: object) -> str:
    if isinstance(answer, np.ndarray):
        return f"an array {list(answer.shape)} of {answer.dtype.name}"
    return f"something of type {type(answer).__name__}"


def where(error: BaseException) -> tuple[int, str] | None:
    """The learner's own line in an error: its number and text, or None if it has none."""
    found = None
    for frame, number in traceback.walk_tb(error.__traceback__):
        filename = frame.f_code.co_filename
        if not filename.startswith(_LIBRARIES):
            found = number, linecache.getline(filename, number).strip()[:100]
    return found


def error_in_words(error: BaseException) -> str:
    """An exception's name, the learner's line and the message, as one sentence without its end."""
    try:
        message = re.sub(r" at 0x[0-9a-fA-F]+", "", str(error))  # an address differs on every run
    except Exception:
        message = ""
    sizes = re.search(r"matmul: .*size (\d+) is different from (\d+)", message)
    if sizes:  # NumPy's own message speaks of "core dimensions" and "gufunc signatures"
        message = f"matmul: {sizes[2]} columns on the left meet {sizes[1]} rows on the right"
    message = " ".join(message.split())[:300].rstrip(".")
    number, text = where(error) or (None, "")
    at_line = f" on line {number}" if number else ""
    at_line += f" (`{text}`)" if text else ""
    return f"{type(error).__name__}{at_line}" + (f": {message}" if message else "")
