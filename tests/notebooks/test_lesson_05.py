"""Lesson 05: its softmax and its backward are the library's, and it quotes the library as it is."""

import inspect

import executed
import notebook_rules as rules
import numpy as np
import pytest

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


def test_every_line_of_the_backward_is_read():
    """Each line that the lesson explains stands in the source that it prints."""
    source = inspect.getsource(Tensor.softmax)
    notebook = rules.load(executed.NOTEBOOKS / "05_softmax.ipynb")
    (printed,) = [
        "".join(text for output in cell["outputs"] for text in output["text"])
        for cell in rules.code_cells(notebook)
        if "getsource" in rules.text(cell["source"])
    ]
    assert source in printed
    table = next(
        rules.text(cell["source"])
        for cell in rules.markdown_cells(notebook)
        if "| code | mathematics |" in rules.text(cell["source"])
    )
    for line in ("s /= np.where(total == 0, 1, total)", "(g * s).sum(axis=dims, keepdims=True)"):
        assert line in table
        assert line in source
