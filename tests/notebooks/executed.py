"""The cells of a lesson, run once in this process with its solutions, for all tests of the lesson.

`names_of` is for comparing what a lesson defines with the library; `rerun` takes one of its cells
and runs it on other inputs. What they return is shared: a test must not change it.
"""

import ast
import contextlib
import functools
from dataclasses import dataclass, field
from pathlib import Path

import notebook_rules as rules

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
TRAIN = {"09"}  # too slow to run again: only imports, functions, classes and exercises are run


@dataclass
class Executed:
    """What running a lesson gave.

    names holds all that the lesson defines, with the solutions in place of the stubs; solved, for
    each exercise, what was defined right after its solution; stubs and solutions, for each
    exercise, what its checker says.
    """

    names: dict = field(default_factory=lambda: {"__name__": "__main__"})
    solved: dict = field(default_factory=dict)
    stubs: dict = field(default_factory=dict)
    solutions: dict = field(default_factory=dict)


def notebook_of(number):
    """Load the notebook of a lesson, such as "02"."""
    (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
    return rules.load(path)


@functools.cache
def lesson(number):
    """Run the code cells of a lesson; after each exercise's stub, run its solution too."""
    notebook, done = notebook_of(number), Executed()
    solutions = rules.solutions(notebook)
    with contextlib.chdir(NOTEBOOKS):
        for cell in rules.code_cells(notebook):
            source = rules.text(cell["source"])
            if "exercise" in rules.tags(cell):
                name = cell["metadata"]["course"]["exercise"]
                done.stubs[name] = run(source, done.names)
                solution = solutions[name] + "\n" + rules.last_line(cell)
                done.solutions[name] = run(solution, done.names)
                done.solved[name] = dict(done.names)
            elif "raises-exception" in rules.tags(cell):
                with contextlib.suppress(Exception):
                    run(source, done.names)
            else:
                run(definitions(source) if number in TRAIN else source, done.names)
    return done


def names_of(number):
    """Return what the cells of a lesson define, with the solutions of its exercises."""
    return lesson(number).names


def rerun(number, line, **given):
    """Run the one cell that holds `line` again, on what is given; return the names it then has.

    Where the cell itself assigns a name that is given, that assignment is left out.
    """
    sources = [rules.text(cell["source"]) for cell in rules.code_cells(notebook_of(number))]
    found = [source for source in sources if line in source]
    assert len(found) == 1, f"lesson {number}: {len(found)} cells hold {line!r}"
    names = {**names_of(number), **given}
    kept = [one for one in ast.parse(found[0]).body if not assigned(one) <= given.keys()]
    run(ast.unparse(ast.Module(kept, [])), names)
    return names


def assigned(statement):
    """Return the names that an assignment gives values to; {None} for any other statement."""
    if not isinstance(statement, ast.Assign):
        return {None}
    targets = [one for target in statement.targets for one in getattr(target, "elts", [target])]
    return {getattr(target, "id", None) for target in targets}


def run(source, names):
    """Execute Python and return the value of its last line, as a notebook cell does."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if last else None


def definitions(source):
    """Return the imports, functions and classes among the statements of a cell."""
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    kept = [statement for statement in ast.parse(source).body if isinstance(statement, kinds)]
    return ast.unparse(ast.Module(kept, []))
