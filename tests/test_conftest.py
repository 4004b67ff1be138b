"""What is missing is skipped with its reason, or is an error where COURSE_REQUIRE names it."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def root_conftest(monkeypatch, tmp_path):
    """A fresh copy of the module conftest.py, on a machine with an empty PATH."""
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.delenv("COURSE_REQUIRE", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    spec = importlib.util.spec_from_file_location("root_conftest", ROOT / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def executable(path):
    path.touch(mode=0o755)
    return str(path)


def test_chromium_named_by_the_environment_comes_first(root_conftest, monkeypatch, tmp_path):
    executable(tmp_path / "chromium")
    monkeypatch.setenv("CHROMIUM", executable(tmp_path / "mine"))
    assert root_conftest.find_chromium() == str(tmp_path / "mine")


def test_a_wrong_name_in_the_environment_is_no_chromium(root_conftest, monkeypatch, tmp_path):
    executable(tmp_path / "chromium")
    monkeypatch.setenv("CHROMIUM", str(tmp_path / "nothing"))
    assert root_conftest.find_chromium() is None


@pytest.mark.skipif(sys.platform == "win32", reason="an empty file is no program on Windows")
@pytest.mark.parametrize("name", ["chromium", "chromium-browser", "google-chrome"])
def test_chromium_is_found_on_the_path(root_conftest, tmp_path, name):
    program = executable(tmp_path / name)
    assert root_conftest.find_chromium() == program


def test_only_what_is_required_and_missing_stops_the_run(root_conftest, monkeypatch):
    monkeypatch.setattr(root_conftest, "why_not", {"browser": "no Chromium", "torch": None}.get)
    root_conftest.pytest_sessionstart()
    monkeypatch.setenv("COURSE_REQUIRE", "torch")
    root_conftest.pytest_sessionstart()
    monkeypatch.setenv("COURSE_REQUIRE", "browser,torch")
    with pytest.raises(pytest.UsageError, match="COURSE_REQUIRE=browser: no Chromium"):
        root_conftest.pytest_sessionstart()


def test_a_missing_pytorch_is_said(root_conftest, monkeypatch):
    monkeypatch.setattr(root_conftest.importlib.util, "find_spec", lambda name: None)
    assert "PyTorch: it is not installed" in root_conftest.why_not("torch")


def test_the_skip_says_why_in_one_line(tmp_path, monkeypatch):
    """In a run of its own: two browser tests, skipped in one line; required, they are an error."""
    test = "import pytest\n\n@pytest.mark.browser\n@pytest.mark.parametrize('n', [1, 2])\n"
    test += "def test_page(n, chromium):\n    assert False\n"
    (tmp_path / "test_page.py").write_text(test, encoding="utf-8")
    conftest = (ROOT / "conftest.py").read_text(encoding="utf-8")
    (tmp_path / "conftest.py").write_text(conftest, encoding="utf-8")
    monkeypatch.setenv("CHROMIUM", str(tmp_path / "nothing"))
    monkeypatch.delenv("COURSE_REQUIRE", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests" / "notebooks"))

    def run():
        command = [sys.executable, "-m", "pytest", "-rs", "-q", "test_page.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8")
        return done.returncode, done.stdout + done.stderr

    code, text = run()
    assert code == 0
    assert text.count("SKIPPED [2]") == 1 and "no Chromium found" in text
    monkeypatch.setenv("COURSE_REQUIRE", "browser")
    code, text = run()
    assert code != 0
    assert "COURSE_REQUIRE=browser: browser tests: no Chromium found" in text
