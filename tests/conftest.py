"""Fixtures for the tests of the tools."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def load_tool(name):
    spec = importlib.util.spec_from_file_location(f"tools_{name}", ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def setup_script():
    """A fresh copy of the module tools/setup.py."""
    return load_tool("setup")


@pytest.fixture
def notebooks_script():
    """A fresh copy of the module tools/notebooks.py."""
    return load_tool("notebooks")


@pytest.fixture
def plant_script():
    """A fresh copy of the module tools/plant_mutants.py."""
    return load_tool("plant_mutants")
