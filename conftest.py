"""What the tests need from outside, and what happens where it is missing.

Two kinds of test need something that not every machine has:

- ``@pytest.mark.browser``: Chromium. The fixture ``chromium`` is the path of its executable.
- ``@pytest.mark.torch``: PyTorch, for comparison. The fixture ``torch`` is the module; a test that
  takes it needs no import of its own.

Where it is missing the tests of that kind are skipped, and the last lines of the run say why.
``COURSE_REQUIRE=browser,torch`` makes what is missing an error instead.
"""

import functools
import importlib.util
import os
import shutil
from pathlib import Path

import pytest

pytest_plugins = ["nbval_pictures"]

# The matrices here are small: two threads of BLAS on a busy machine wait for each other, and lesson
# 09 would train for minutes. The notebooks' kernels take it from here; NumPy is not imported yet.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@functools.cache
def find_chromium():
    """Return the path of a Chromium: $CHROMIUM, one on the PATH, or playwright's own; else None."""
    if named := os.environ.get("CHROMIUM"):
        return named if Path(named).exists() else None
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


def why_not(kind):
    """Return the reason why tests of this kind cannot run here, or None if they can."""
    if kind == "browser" and find_chromium() is None:
        return "browser tests: no Chromium found; install it, or name it in CHROMIUM"
    if kind == "torch" and importlib.util.find_spec("torch") is None:
        return "comparisons with PyTorch: it is not installed; pip install torch"
    return None


def pytest_sessionstart():
    for kind in filter(None, os.environ.get("COURSE_REQUIRE", "").split(",")):
        if reason := why_not(kind):
            raise pytest.UsageError(f"COURSE_REQUIRE={kind}: {reason}")


def pytest_runtest_setup(item):
    for kind in ("browser", "torch"):
        if item.get_closest_marker(kind) and (reason := why_not(kind)):
            pytest.skip(reason)


@pytest.fixture(scope="session")
def chromium():
    return find_chromium()


@pytest.fixture(scope="session")
def torch():
    import torch

    return torch
