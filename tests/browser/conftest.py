"""One JupyterLab and one Chromium for all browser tests, on a copy of the notebooks."""

import shutil
from types import SimpleNamespace

import pytest
import real_lab


# Not for the whole session: playwright's event loop would be in the way of the notebook tests.
@pytest.fixture(scope="package")
def lab(chromium, tmp_path_factory):
    """Address and token of the JupyterLab, the folder it serves, and the browser."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(real_lab.NOTEBOOKS, folder, dirs_exist_ok=True)
    private = tmp_path_factory.mktemp("private")
    with (
        real_lab.jupyterlab(folder, private) as (address, token),
        real_lab.chromium(chromium) as browser,
    ):
        yield SimpleNamespace(address=address, token=token, folder=folder, browser=browser)


@pytest.fixture(scope="module")
def open_notebook(lab):
    """A function that opens a notebook of the served folder; it is closed after the module."""
    opened = []

    def open_notebook(name, **window):
        notebook = real_lab.OpenNotebook(lab.browser, lab.address, lab.token, name, **window)
        opened.append(notebook)
        return notebook

    yield open_notebook
    for notebook in opened:
        notebook.close()
