"""What the cells of a lesson define, for the tests that compare it with the library."""

from pathlib import Path

import notebook_rules as rules

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


def names_of(lesson):
    """Run the cells of a lesson ("02") with the solutions of its exercises; return its names."""
    (path,) = NOTEBOOKS.glob(f"{lesson}_*.ipynb")
    notebook = rules.load(path)
    solutions = rules.solutions(notebook)
    names = {"__name__": "__main__"}
    for cell in rules.code_cells(notebook):
        exec(rules.text(cell["source"]), names)
        if "exercise" in rules.tags(cell):
            exec(solutions[cell["metadata"]["course"]["exercise"]], names)
    return names
