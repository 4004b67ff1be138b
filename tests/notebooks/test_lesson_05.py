"""Lesson 05: its softmax and its backward are the library's, and it quotes the library as it is."""

import inspect
import re

import executed
import notebook_rules as rules
import numpy as np
import pytest

from course_lib import tensor
from course_lib.tensor import Tensor


@pytest.fixture(scope="module")
def lesson():
    return executed.names_of("05")


@pytest.fixture(params=[0, 1000, -1000])
def scores(request):
    """Return scores [2, 3, 5] around a level."""
    return np.random.default_rng(5).normal(size=(2, 3, 5)) * 3 + request.param


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax_is_the_librarys(lesson, scores, dtype):
    found = lesson["softmax"](scores.astype(dtype))
    assert found.dtype == dtype
    right = Tensor(scores.astype(dtype)).softmax(dim=-1).data
    np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-7)


def test_softmax_backward_is_the_librarys(lesson, scores):
    g = np.random.default_rng(50).normal(size=scores.shape)
    x = Tensor(scores, requires_grad=True)
    s = x.softmax(dim=-1)
    s.backward(g)
    np.testing.assert_allclose(lesson["softmax_backward"](s.data, g), x.grad, rtol=1e-9, atol=1e-12)


def test_the_plain_formula_agrees_only_near_0(lesson):
    small = np.random.default_rng(5).normal(size=(3, 5))
    right = Tensor(small).softmax(dim=-1).data
    np.testing.assert_allclose(lesson["plain_softmax"](small), right)
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.isnan(lesson["plain_softmax"](small + 1000)).all()


def test_the_running_example_looks_as_in_the_other_lessons(lesson):
    q = Tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    k = Tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    np.testing.assert_array_equal(lesson["raw"], (q @ k.mT).data)
    right = (q @ k.mT / 2**0.5).softmax(dim=-1).data
    np.testing.assert_allclose(lesson["weights"], right, atol=1e-6)


def test_every_line_that_is_read_stands_in_the_library():
    """The source is printed as it is, and each piece of code in the table is found in it."""
    notebook = rules.load(executed.NOTEBOOKS / "05_softmax.ipynb")
    source = inspect.getsource(tensor._shifted_exp) + "\n" + inspect.getsource(Tensor.softmax)
    (printed,) = [
        rules.text(cell["outputs"][0]["text"])
        for cell in rules.code_cells(notebook)
        if "getsource" in rules.text(cell["source"])
    ]
    assert printed.strip() == source.strip()
    (table,) = [
        rules.text(cell["source"])
        for cell in rules.markdown_cells(notebook)
        if "| code | mathematics |" in rules.text(cell["source"])
    ]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    quoted = [code for row in rows for code in re.findall("`(.*?)`", row)]
    assert len(quoted) == 9
    for code in quoted:
        for piece in code.split("…"):
            assert piece in source, piece
