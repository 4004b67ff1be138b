"""Each exercise: the stub as committed is "not attempted"; with its solution it is "right"."""

import ast
import contextlib
from pathlib import Path

import notebook_rules as rules
import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
WITH_EXERCISES = [path for path in NOTEBOOKS if rules.exercises(rules.load(path))]


def run(source, namespace):
    """Execute Python and return the value of its last line, as a notebook cell does."""
    *body, last = ast.parse(source).body
    exec(compile(ast.Module(body, []), "<cell>", "exec"), namespace)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)
    exec(compile(ast.Module([last], []), "<cell>", "exec"), namespace)
    return None


@pytest.mark.parametrize("path", WITH_EXERCISES, ids=lambda path: path.stem)
def test_the_checkers_accept_the_solutions(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    notebook = rules.load(path)
    solutions = rules.solutions(notebook)
    namespace = {"__name__": "__main__"}
    for cell in rules.code_cells(notebook):
        announced = "raises-exception" in rules.tags(cell)
        with contextlib.suppress(Exception) if announced else contextlib.nullcontext():
            value = run(rules.text(cell["source"]), namespace)
        if "exercise" in rules.tags(cell):
            name = cell["metadata"]["course"]["exercise"]
            assert value.status == "not attempted", f"{name}: the stub as committed: {value}"
            solved = solutions[name] + "\n" + rules.last_line(cell)
            value = run(solved, dict(namespace))
            assert value.status == "right", f"{name}: the solution: {value}"
