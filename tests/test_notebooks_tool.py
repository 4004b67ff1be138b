"""tools/notebooks.py: executes, normalizes, and changes nothing the second time."""

import base64
import io
import json

import nbformat
import pytest
from nbformat import v4
from PIL import Image

DRAW = """\
import io
from IPython.display import display
from PIL import Image
file = io.BytesIO()
Image.new("RGB", (8, 8), "teal").save(file, "png")
display({"image/png": __import__("base64").b64encode(file.getvalue()).decode("ascii")}, raw=True)
"""


@pytest.fixture
def write(tmp_path):
    def write(*sources, **metadata):
        cells = [v4.new_code_cell(source, metadata=metadata) for source in sources]
        path = tmp_path / "lesson.ipynb"
        nbformat.write(v4.new_notebook(cells=cells, metadata={"widgets": {}}), path)
        return path

    return write


def test_it_executes_and_leaves_out_what_belongs_to_one_run(write, notebooks_script):
    slider = "import ipywidgets\nipywidgets.IntSlider()"
    path = write("print(1)", slider, trusted=True, tags=["kept"], course={"exercise": "kept"})
    ids = [cell["id"] for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    assert notebooks_script.rewrite(path)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert [cell["execution_count"] for cell in notebook["cells"]] == [1, 2]
    assert [cell["id"] for cell in notebook["cells"]] == ids
    assert notebook["cells"][0]["outputs"][0]["text"] == ["1\n"]
    assert notebook["cells"][0]["metadata"] == {"tags": ["kept"], "course": {"exercise": "kept"}}
    assert notebook["cells"][1]["outputs"][0]["data"] == {"text/plain": ["IntSlider(value=0)"]}
    assert list(notebook["metadata"]) == ["kernelspec", "language_info"]
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"


def test_a_second_run_changes_no_byte(write, notebooks_script):
    path = write("import ipywidgets\nipywidgets.IntSlider()", DRAW)
    assert notebooks_script.rewrite(path)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    data = notebook["cells"][1]["outputs"][0]["data"]
    same = io.BytesIO()
    Image.open(io.BytesIO(base64.b64decode(data["image/png"]))).save(same, "png", compress_level=0)
    as_another_encoder = base64.b64encode(same.getvalue()).decode("ascii")
    assert as_another_encoder != data["image/png"]
    data["image/png"] = as_another_encoder
    nbformat.write(nbformat.from_dict(notebook), path)
    before = path.read_bytes()
    assert not notebooks_script.rewrite(path)
    assert path.read_bytes() == before


def test_a_changed_picture_is_written(write, notebooks_script):
    path = write(DRAW)
    notebooks_script.rewrite(path)
    text = path.read_text(encoding="utf-8").replace("teal", "navy")
    path.write_text(text, encoding="utf-8")
    assert notebooks_script.rewrite(path)
    assert path.read_text(encoding="utf-8") != text


def test_an_announced_exception_is_stored_without_a_machines_path(write, notebooks_script):
    path = write("from course_lib.tensor import Tensor\nTensor('x')", tags=["raises-exception"])
    notebooks_script.rewrite(path)
    (output,) = json.loads(path.read_text(encoding="utf-8"))["cells"][0]["outputs"]
    assert output["output_type"] == "error"
    assert "course_lib/tensor.py" in "".join(output["traceback"])
    assert str(notebooks_script.ROOT) not in "".join(output["traceback"])


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("print(1)\n1 / 0", r"Cell '.*' \(print\(1\)\) raised an exception:\n.*ZeroDivisionError"),
        ("import warnings\nwarnings.warn('x')", r"Cell '.*' \(import warnings\) wrote to stderr"),
    ],
)
def test_an_error_and_a_warning_are_refused(write, notebooks_script, source, complaint):
    path = write("1", source)
    before = path.read_bytes()
    with pytest.raises(notebooks_script.Refused, match=f"(?s){complaint}"):
        notebooks_script.rewrite(path)
    assert path.read_bytes() == before
