"""A stale, a missing and an extra picture fail; another machine's letters do not."""

import base64
import io
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import nbval_pictures
import pytest
from IPython.display import display
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from nbformat import v4
from PIL import ImageChops

TEXT = {"text/plain": "Three bars."}


def draw(height, **look):
    """Return a picture of three bars, as an output's data."""
    figure = Figure(figsize=(4, 3))
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.bar([0, 1, 2], [1, height, 2], **look)
    axes.set(ylim=(0, 3), title="Three bars and a title")
    buffer = io.BytesIO()
    figure.savefig(buffer)
    return TEXT | {"image/png": base64.b64encode(buffer.getvalue()).decode("ascii")}


def show(data):
    """Display a picture or only its text, from a cell of the notebook below."""
    display(data, raw=True)


def cell(source, stored):
    outputs = [v4.new_output("display_data", stored)]
    source = f"from test_nbval_pictures import TEXT, draw, show\n{source}"
    return v4.new_code_cell(source, outputs=outputs, execution_count=1)


def test_stale_missing_and_extra_pictures_fail(tmp_path):
    cells = [
        cell("show(draw(1))", draw(1)),
        cell("show(draw(1))", draw(2)),
        cell("show(TEXT)", draw(1)),
        cell("show(draw(1))", TEXT),
    ]
    nbformat.write(v4.new_notebook(cells=cells), tmp_path / "bars.ipynb")
    options = ["--nbval", "--nbval-current-env", "-p", "nbval_pictures", "-q", "-rA", "--color=no"]
    # under CI=true pytest's summary would say each complaint a second time
    variables = {name: value for name, value in os.environ.items() if name != "CI"}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "bars.ipynb"],
        cwd=tmp_path,
        env={**variables, "PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    lines = [line.partition(" - ")[0] for line in run.stdout.splitlines()]
    assert [line for line in lines if line.startswith(("PASSED", "FAILED"))] == [
        "PASSED bars.ipynb::Cell 0",
        "FAILED bars.ipynb::Cell 1",
        "FAILED bars.ipynb::Cell 2",
        "FAILED bars.ipynb::Cell 3",
    ], run.stdout
    assert run.stdout.count("Pictures differ") == 3
    assert "of its pixels differ" in run.stdout
    assert "The notebook stores 1 pictures, the run drew 0." in run.stdout
    assert "The notebook stores 0 pictures, the run drew 1." in run.stdout


def image(height, **look):
    return nbval_pictures.decode(draw(height, **look)["image/png"])


def test_a_shift_by_one_pixel_and_a_shade_are_no_difference():
    shifted = ImageChops.offset(image(1), 1, 0)
    assert nbval_pictures.compare(image(1), shifted) is None
    assert nbval_pictures.compare(image(1, color="#1f77b4"), image(1, color="#2080c0")) is None


@pytest.mark.parametrize("look", [{"color": "red"}, {"width": 0.6}, {"hatch": "///"}])
def test_another_look_is_a_difference(look):
    assert "of its pixels differ" in nbval_pictures.compare(image(1), image(1, **look))


def test_another_size_is_a_difference():
    cut = image(1).crop((0, 0, 380, 300))
    assert "were (400, 300) and are (380, 300)" in nbval_pictures.compare(image(1), cut)


def test_other_letters_are_no_difference_where_matplotlib_is_another(monkeypatch):
    before, after = image(1), image(1)
    after.paste(after.resize((160, 20), box=(100, 10, 300, 35)), (110, 12))  # a smaller title
    monkeypatch.setattr(nbval_pictures, "same_letters", lambda: True)
    assert nbval_pictures.compare(before, after) is not None
    monkeypatch.setattr(nbval_pictures, "same_letters", lambda: False)
    assert nbval_pictures.compare(before, after) is None
    assert nbval_pictures.compare(before, image(2)) is not None
