"""Execute the notebooks from top to bottom and write them back in one normal form.

    python tools/notebooks.py                             every notebook of the course
    python tools/notebooks.py notebooks/04_scores.ipynb   this one

A run that changes nothing changes no byte: what differs from run to run (times, widget numbers,
metadata of the editor) is left out, and a picture with the same pixels keeps its old bytes.
"""

import argparse
import base64
import copy
import io
import sys
from pathlib import Path

import nbformat
from IPython.utils.path import compress_user
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from PIL import Image, ImageChops

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
CELL_METADATA = ("course", "jupyter", "tags")
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"  # without its kernel, "model not found"


class Refused(Exception):
    """A notebook that must not be written; the message names the cell."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: every notebook")
    paths = parser.parse_args().notebooks or sorted((ROOT / "notebooks").glob("*.ipynb"))
    refused = 0
    for path in paths:
        try:
            print(f"{path.name}: {'rewritten' if rewrite(path) else 'unchanged'}", flush=True)
        except Refused as error:
            print(f"{path.name}: not written. {error}", file=sys.stderr)
            refused += 1
    sys.exit(1 if refused else 0)


def rewrite(path):
    """Execute and normalize one notebook file. Return whether it changed."""
    before = path.read_text(encoding="utf-8")
    stored = nbformat.reads(before, as_version=4)
    notebook = copy.deepcopy(stored)
    execute(notebook, path.parent)
    normalize(notebook)
    keep_equal_pictures(notebook, stored)
    after = nbformat.writes(notebook) + "\n"
    if after == before:
        return False
    path.write_text(after, encoding="utf-8", newline="\n")
    return True


def execute(notebook, folder):
    """Run all cells in a fresh kernel; refuse an error that no tag announces, and any stderr."""
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        extra_arguments=["--IPKernelApp.log_level=40"],  # a kernel of our own needs no encryption
        timeout=600,
        resources={"metadata": {"path": str(folder)}},
        store_widget_state=False,
        record_timing=False,
        coalesce_streams=True,
    )
    try:
        client.execute()
    except CellExecutionError as error:
        failed = [cell for cell in code_cells(notebook) if cell.execution_count is not None][-1]
        raise Refused(f"{name(failed)} raised an exception:\n{error}") from None
    for cell in code_cells(notebook):
        if noise := [out.text for out in cell.outputs if out.get("name") == "stderr"]:
            raise Refused(f"{name(cell)} wrote to stderr:\n{noise[0]}")


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def name(cell):
    first_line = cell.source.partition("\n")[0]
    return f"Cell {cell.id!r} ({first_line})"


def normalize(notebook):
    """Keep what belongs to the course and drop what belongs to one run on one machine."""
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict(NOTEBOOK_METADATA)
    for cell in notebook.cells:
        cell.metadata = keep(cell.metadata, CELL_METADATA)
        cell.source = cell.source.rstrip()
    for cell in code_cells(notebook):
        for output in cell.outputs:
            if "data" in output:
                output.data.pop(WIDGET_VIEW, None)
                output.metadata = keep(output.metadata, output.data)
            if output.output_type == "execute_result":
                output.execution_count = cell.execution_count
            if output.output_type == "error":
                output.traceback = [without_root(line) for line in output.traceback]


def keep(metadata, keys):
    return nbformat.from_dict({key: metadata[key] for key in keys if key in metadata})


def without_root(line):
    for root in (str(ROOT), compress_user(str(ROOT))):
        line = line.replace(root + "/", "").replace(root + "\\", "")
    return line


def keep_equal_pictures(notebook, stored):
    """Give a picture whose pixels did not change its old bytes: a new PNG encoder is no change."""
    old = {cell.id: cell.outputs for cell in code_cells(stored)}
    for cell in code_cells(notebook):
        for new_output, old_output in zip(cell.outputs, old[cell.id], strict=False):
            new_png, old_png = picture(new_output), picture(old_output)
            if new_png and old_png and equal_pixels(new_png, old_png):
                new_output.data["image/png"] = old_png


def picture(output):
    return output.get("data", {}).get("image/png")


def equal_pixels(one, other):
    one, other = (Image.open(io.BytesIO(base64.b64decode(png))) for png in (one, other))
    if one.size != other.size:
        return False
    difference = ImageChops.difference(one.convert("RGBA"), other.convert("RGBA"))
    return not difference.getbbox(alpha_only=False)


if __name__ == "__main__":
    main()
