"""tools/plant_mutants.py: every mistake can still be planted, and has a lesson about it."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
KINDS = [
    "scale dropped",
    "max not subtracted",
    "mask polarity",
    "mask off by one",
    "base ignored",
    "softmax over axis −2",
    "heads split without transpose",
    "targets not shifted",
]


def test_every_mistake_can_be_planted(plant_script):
    for mutant in plant_script.MUTANTS:
        source = (ROOT / "course_lib" / mutant.file).read_text(encoding="utf-8")
        planted = mutant.plant(source)
        assert ast.dump(ast.parse(planted)) != ast.dump(ast.parse(source)), mutant.mistake
        for path in plant_script.targets(ROOT, mutant.lesson).values():
            assert path.is_file(), mutant.mistake


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_planted(plant_script, kind):
    assert any(mutant.mistake.startswith(kind) for mutant in plant_script.MUTANTS)


@pytest.mark.parametrize("source", ["b = 1", "a = 1\na = 1\n"])
def test_a_line_that_is_not_there_once_is_told(plant_script, source):
    mutant = plant_script.Mutant("a mistake", "04", "some.py", "a = 1", "a = 2")
    assert mutant.plant("a = 1\nb = 1\n") == "a = 2\nb = 1\n"
    with pytest.raises(ValueError, match=r"a mistake: some\.py holds"):
        mutant.plant(source)
