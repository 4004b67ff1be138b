"""Every notebook keeps every rule, and every rule notices a notebook that breaks it."""

import json
from pathlib import Path

import notebook_rules as rules
import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
RULES = [
    rules.run_in_order,
    rules.ids_are_unique,
    rules.nothing_on_stderr,
    rules.no_widget_state,
    rules.live_figures_shown_once,
    rules.python_kernel,
    rules.no_path_or_address,
    rules.small,
    rules.short_code_cells,
    rules.a_sentence_with_every_picture,
    rules.stored_errors_are_announced,
    rules.headings_without_gaps,
    rules.no_loading_widget,
    rules.exercises_have_hint_and_solution,
]


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_rule(path, rule):
    assert rule(rules.load(path)) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_resolve(path):
    assert rules.links_resolve(rules.load(path), path, ROOT) == []


@pytest.mark.parametrize(
    "path", [path for path in NOTEBOOKS if path.stem != "00_start_here"], ids=lambda path: path.stem
)
def test_length_of_a_lesson(path):
    assert rules.length_of_a_lesson(rules.load(path)) == []


@pytest.mark.parametrize(
    ("path", "after"),
    list(zip(NOTEBOOKS, [*NOTEBOOKS[1:], NOTEBOOKS[0]], strict=True)),
    ids=lambda path: path.stem,
)
def test_a_lesson_ends_with_a_link_to_the_next(path, after):
    assert after.name in rules.links(rules.load(path)["cells"][-1])


def test_the_map_links_to_all_lessons():
    start = rules.load(NOTEBOOKS[0])
    links = {link for cell in rules.markdown_cells(start) for link in rules.links(cell)}
    assert {path.name for path in NOTEBOOKS[1:]} <= links


# Little notebooks, to break one rule each.


def notebook(*cells, **metadata):
    numbered = [{"id": f"c{number}", **cell} for number, cell in enumerate(cells)]
    return {"cells": numbered, "metadata": {"kernelspec": {"name": "python3"}, **metadata}}


def markdown(source, **course):
    return {"cell_type": "markdown", "source": source, "metadata": {"course": course}}


def code(source, *outputs, count=1, tags=(), **course):
    return {
        "cell_type": "code",
        "source": source,
        "outputs": list(outputs),
        "execution_count": count,
        "metadata": {"tags": list(tags), "course": course},
    }


def stream(name, text):
    return {"output_type": "stream", "name": name, "text": text}


def display(**data):
    kinds = {"plain": "text/plain", "html": "text/html", "png": "image/png"}
    return {
        "output_type": "display_data",
        "data": {kinds.get(kind, kind): value for kind, value in data.items()},
        "metadata": {},
    }


WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
EXPLORE = "from course_lib.live import a\na.explore()"
PICTURE = display(png="")
ERROR = {"output_type": "error", "ename": "E", "evalue": "", "traceback": ["E"]}
HINT = "<details><summary>Hint</summary>\n\nLook up.\n\n</details>"
SOLUTION = (
    "<details><summary>Solution</summary>\n\n```python\ndef f():\n    return 1\n```\n\n</details>"
)
STUB = code("def f():\n    ...\n\ncheck.f(f)", tags=["exercise"], exercise="f")

GOOD = notebook(
    markdown("# Title\n\n[there](other.ipynb#Two-words)\n\n## Part\n\n[up](#Title)"),
    code("show(figure)", display(png="iVBORw0KGgo=", plain="The weights saturate.")),
    code("1 / 0", ERROR, count=2, tags=["raises-exception"]),
    {**STUB, "execution_count": 3},
    markdown(HINT),
    markdown(SOLUTION, solution="f"),
)

BROKEN = [
    (rules.run_in_order, notebook(code("1", count=1), code("2", count=3)), "[1, 3], not 1 to 2"),
    (rules.run_in_order, notebook(code("1", count=None)), "[None], not 1 to 1"),
    (rules.ids_are_unique, notebook({"id": "a", **code("1")}, {"id": "a", **code("2")}), "'a'"),
    (rules.ids_are_unique, notebook({"id": None, **code("1")}), "no id"),
    pytest.param(
        rules.nothing_on_stderr,
        notebook(code("1", stream("stdout", "1"), stream("stderr", "UserWarning: x"))),
        "'c0' (1) wrote",
        id="B24",
    ),
    pytest.param(
        rules.no_widget_state,
        notebook(widgets={WIDGET_STATE: {"id": {}}}),
        "metadata.widgets",
        id="B23",
    ),
    pytest.param(
        rules.live_figures_shown_once,
        notebook(code(EXPLORE, PICTURE, PICTURE)),
        "shows 2 pictures of 1",
        id="B22: twice",
    ),
    pytest.param(
        rules.live_figures_shown_once,
        notebook(code(EXPLORE)),
        "shows 0 pictures of 1",
        id="B22: never",
    ),
    (rules.live_figures_shown_once, notebook(code("interact(f)")), "uses interact"),
    (rules.no_widget_state, notebook(code("w", display(**{rules.WIDGET_VIEW: {}}))), "widget view"),
    (rules.python_kernel, notebook(kernelspec={"name": "course"}), "'course'"),
    (rules.python_kernel, {"cells": [], "metadata": {}}, "None"),
    (rules.no_path_or_address, notebook(code("f", stream("stdout", "at 0x7f3a12bc"))), "0x7f3a12"),
    (rules.no_path_or_address, notebook(code("f", display(plain="'/home/ann/x'"))), "/home/a"),
    (rules.no_path_or_address, notebook(code("f", {**ERROR, "traceback": ["~/x.py"]})), "~/x"),
    (rules.no_path_or_address, notebook(markdown(r"In C:\Users\ann")), r"C:\U"),
    (rules.small, notebook(code("1", display(png="A" * 1_000_000))), "bytes"),
    (rules.short_code_cells, notebook(code("1\n" * 21)), "21 lines"),
    (rules.length_of_a_lesson, notebook(*[code("1")] * 29), "29 cells"),
    (rules.length_of_a_lesson, notebook(*[code("1")] * 61), "61 cells"),
    (
        rules.a_sentence_with_every_picture,
        notebook(code("f", display(png="A", plain="<Figure size 640x480 with 1 Axes>"))),
        "<Figure",
    ),
    (rules.a_sentence_with_every_picture, notebook(code("f", display(png="A"))), "''"),
    (rules.stored_errors_are_announced, notebook(code("f", ERROR)), "stores an error"),
    (
        rules.stored_errors_are_announced,
        notebook(code("f", tags=["raises-exception"])),
        "stores no error",
    ),
    (rules.headings_without_gaps, notebook(markdown("# A\n\n### B")), "'B' of level 3"),
    (rules.headings_without_gaps, notebook(markdown("# A"), markdown("# B")), "[1, 1]"),
    (rules.headings_without_gaps, notebook(markdown("## A")), "[2]"),
    (rules.no_loading_widget, notebook(code("w", display(html="Loading widget..."))), "Loading"),
    (rules.exercises_have_hint_and_solution, notebook(STUB, markdown(HINT)), "folded solution"),
    (
        rules.exercises_have_hint_and_solution,
        notebook(STUB, markdown(SOLUTION, solution="f")),
        "folded hint",
    ),
    (
        rules.exercises_have_hint_and_solution,
        notebook(STUB, markdown(HINT), markdown(SOLUTION, solution="g")),
        "its solutions {'g'}",
    ),
    (
        rules.exercises_have_hint_and_solution,
        notebook(STUB, code("2"), markdown(HINT), markdown(SOLUTION, solution="f")),
        "folded hint",
    ),
    (
        rules.exercises_have_hint_and_solution,
        notebook({**STUB, "source": "check.f(f)\nf()"}, markdown(HINT)),
        "calling its checker",
    ),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_good_notebook_has_no_complaint(rule):
    assert rule(GOOD) == []


@pytest.mark.parametrize(("rule", "broken", "complaint"), BROKEN)
def test_a_broken_notebook_is_noticed(rule, broken, complaint):
    complaints = rule(broken)
    assert any(complaint in one for one in complaints), complaints


def test_every_rule_was_seen_to_complain():
    complaining = {getattr(row, "values", row)[0] for row in BROKEN}
    assert complaining == {*RULES, rules.length_of_a_lesson}


@pytest.fixture
def other_lesson(tmp_path):
    path = tmp_path / "notebooks" / "other.ipynb"
    path.parent.mkdir()
    other = notebook(markdown("# Other\n\n## Two words"))
    path.write_text(json.dumps(other), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("link", "complaint"),
    [
        ("[a](other.ipynb#Two-words)", None),
        ("[a](../notebooks/other.ipynb)", None),
        ("[a](https://example.org/Other.ipynb)", None),
        ("[a](#Here)", None),
        ("[a](Other.ipynb)", "links to Other.ipynb"),
        ("[a](missing.ipynb)", "links to missing.ipynb"),
        ("![a](missing.png)", "links to missing.png"),
        ('<img src="missing.png">', "links to missing.png"),
        ("[a](other.ipynb#two-words)", "links to #two-words"),
        ("[a](#there)", "links to #there"),
    ],
)
def test_links(other_lesson, link, complaint):
    here = notebook(markdown(f"# Here\n\n{link}"))
    complaints = rules.links_resolve(here, other_lesson, other_lesson.parents[1])
    assert [complaint in one for one in complaints] == ([] if complaint is None else [True])
