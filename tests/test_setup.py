"""tools/setup.py: what it says, and when it installs. No test here installs anything."""

import ast
import subprocess
import sys
from collections import namedtuple

import pytest

VersionInfo = namedtuple("VersionInfo", "major minor micro releaselevel serial")


@pytest.fixture
def course(setup_script, tmp_path, monkeypatch):
    """The script on a folder of its own; its commands are noted, not run."""
    for name in ("requirements.txt", "pyproject.toml"):
        (tmp_path / name).write_text("as it was", encoding="utf-8")
    venv = tmp_path / ".venv"
    monkeypatch.setattr(setup_script, "ROOT", str(tmp_path))
    monkeypatch.setattr(setup_script, "VENV", str(venv))
    monkeypatch.setattr(setup_script, "PYTHON", str(venv / "python"))
    monkeypatch.setattr(setup_script, "STAMP", str(venv / "course-setup.txt"))
    setup_script.commands = []

    def note(command, **_):
        setup_script.commands.append(command)
        if command[1:3] == ["-m", "venv"]:
            (venv / "python").touch()
        if setup_script.fails_at and setup_script.fails_at in command:
            raise subprocess.CalledProcessError(1, command)

    setup_script.fails_at = None
    monkeypatch.setattr(setup_script.subprocess, "check_call", note)
    return setup_script


def installs(course):
    """Run the set-up and return its commands, shortened to what they install."""
    course.commands.clear()
    course.main()
    return [" ".join(command).partition(" -m ")[2].split()[0] for command in course.commands]


def test_the_first_call_installs_and_the_second_does_nothing(course):
    assert installs(course) == ["venv", "pip", "pip"]
    assert "--require-hashes" in course.commands[1] and "--editable" in course.commands[2]
    assert installs(course) == []


@pytest.mark.parametrize("name", ["requirements.txt", "pyproject.toml"])
def test_a_changed_file_installs_again(course, tmp_path, name):
    installs(course)
    (tmp_path / name).write_text("changed", encoding="utf-8")
    assert installs(course) == ["pip", "pip"]


@pytest.mark.parametrize("fails_at", ["venv", "--require-hashes", "--editable"])
def test_an_interrupted_set_up_starts_afresh(course, tmp_path, fails_at):
    course.fails_at = fails_at
    with pytest.raises(subprocess.CalledProcessError):
        course.main()
    half = tmp_path / ".venv" / "half-installed"
    half.touch()
    course.fails_at = None
    assert installs(course) == ["venv", "pip", "pip"]
    assert not half.exists()
    assert installs(course) == []


def test_an_environment_without_its_python_is_made_anew(course, tmp_path):
    installs(course)
    (tmp_path / ".venv" / "python").unlink()
    assert installs(course) == ["venv", "pip", "pip"]


def test_an_environment_made_by_hand_is_kept(course, tmp_path):
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "python").touch()
    assert installs(course) == ["pip", "pip"]


@pytest.mark.parametrize("version", [(2, 7), (3, 10), (3, 15)])
def test_another_python_is_refused_in_one_line(course, monkeypatch, version):
    monkeypatch.setattr(sys, "version_info", VersionInfo(*version, 1, "final", 0))
    with pytest.raises(SystemExit) as stop:
        course.main()
    message = stop.value.code
    assert "needs Python 3.11 to 3.14, and this is Python {}.{}.".format(*version) in message
    assert "\n" not in message
    assert course.commands == []


def test_a_missing_venv_is_named_in_one_line(course, monkeypatch):
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(SystemExit) as stop:
        course.main()
    assert "sudo apt-get install python3-venv" in stop.value.code
    assert "\n" not in stop.value.code
    assert course.commands == []


def test_an_old_python_can_read_the_script(setup_script):
    with open(setup_script.__file__, encoding="ascii") as file:
        tree = ast.parse(file.read(), feature_version=(3, 7))
    newer = (ast.JoinedStr, ast.NamedExpr, ast.AnnAssign, ast.AsyncFunctionDef, ast.Nonlocal)
    assert [node for node in ast.walk(tree) if isinstance(node, newer)] == []
