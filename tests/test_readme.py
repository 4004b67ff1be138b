"""README.md and CONTRIBUTING.md: their links resolve, and the map names every lesson."""

import re
from pathlib import Path

import notebook_rules as rules
import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_resolve(name):
    source = (ROOT / name).read_text(encoding="utf-8")
    page = {"cells": [{"cell_type": "markdown", "source": source}]}
    assert rules.links_resolve(page, ROOT / name, ROOT) == []


def test_the_map_links_every_lesson():
    linked = re.findall(r"^\| \d\d \| \[[^]]+\]\((notebooks/[^)]+)\)", README, flags=re.MULTILINE)
    lessons = sorted(path.relative_to(ROOT) for path in (ROOT / "notebooks").glob("*.ipynb"))
    assert linked == [path.as_posix() for path in lessons]


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_every_make_command_exists(name):
    source = (ROOT / name).read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):", makefile, flags=re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make (\w+)", source, flags=re.MULTILINE)) <= targets
