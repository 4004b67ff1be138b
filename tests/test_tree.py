"""What holds for every file of the project: its encoding, its imports, what it must not name."""

import ast
import re
import shutil
import subprocess
from pathlib import Path

import notebook_rules
import pytest

ROOT = Path(__file__).resolve().parents[1]


if not (ROOT / ".git").exists() or not shutil.which("git"):
    pytest.skip("tests of the whole tree: this is no git clone", allow_module_level=True)


def tracked(*patterns):
    """Return the paths of the files that git tracks."""
    command = ["git", "ls-files", "-z", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    names = listed.stdout.decode("utf-8").split("\0")
    return [path for name in names if name and (path := ROOT / name).is_file()]


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def python_sources(path):
    """Return the Python in a file: one source, or those of a notebook's code cells."""
    if path.suffix == ".py":
        return [path.read_text(encoding="utf-8")]
    notebook = notebook_rules.load(path)
    return [notebook_rules.text(cell["source"]) for cell in notebook_rules.code_cells(notebook)]


# Text files: what Windows reads without an encoding is another text, or an error.


def without_encoding(source):
    """Return the line numbers of calls that open a file as text and name no encoding."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if opens_text(call) and not names_encoding(call)]


def opens_text(call):
    function = call.func
    name = getattr(function, "attr", getattr(function, "id", None))
    if name in ("read_text", "write_text", "NamedTemporaryFile", "TemporaryFile"):
        return name.endswith("_text") or "b" not in mode(call, position=0, default="w+b")
    if name == "open" and not owner(function) & {"Image", "os", "webbrowser", "zipfile"}:
        is_method = isinstance(function, ast.Attribute) and owner(function) != {"io"}
        return "b" not in mode(call, position=0 if is_method else 1, default="r")
    return name in ("run", "Popen", "check_output") and any(
        keyword.arg in ("text", "universal_newlines") for keyword in call.keywords
    )


def owner(function):
    value = getattr(function, "value", None)
    return {value.id} if isinstance(value, ast.Name) else set()


def mode(call, position, default):
    named = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    given = named or call.args[position : position + 1]
    return getattr(given[0], "value", default) if given else default


def names_encoding(call):
    return any(keyword.arg in ("encoding", None) for keyword in call.keywords)


@pytest.mark.parametrize("path", tracked("*.py", "*.ipynb"), ids=name_of)
def test_every_text_file_is_opened_with_its_encoding(path):
    assert [line for source in python_sources(path) for line in without_encoding(source)] == []


@pytest.mark.parametrize(
    "call",
    [
        "open('a')",
        "open('a', 'w')",
        "io.open('a')",
        "path.open()",
        "path.open(mode='a')",
        "path.read_text()",
        "Path('a').write_text('b')",
        "subprocess.run(['a'], text=True)",
        "tempfile.NamedTemporaryFile('w')",
    ],
)
def test_a_call_without_encoding_is_noticed(call):
    assert without_encoding(f"x = 1\n{call}") == [2]


@pytest.mark.parametrize(
    "call",
    [
        "open('a', encoding='utf-8')",
        "open('a', 'rb')",
        "path.open('wb')",
        "path.read_text(encoding='utf-8')",
        "path.read_bytes()",
        "Image.open('a')",
        "subprocess.run(['a'])",
        "subprocess.run(['a'], text=True, encoding='utf-8')",
    ],
)
def test_a_call_with_encoding_passes(call):
    assert without_encoding(call) == []


@pytest.mark.parametrize("text", ["a curly \u201dquote\u201d", "an arrow \u2192, an accent \u00e9"])
def test_b25_what_is_written_is_read_again(tmp_path, text):
    """These two are what Windows breaks: with an error, and without one."""
    path = tmp_path / "text.txt"
    path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
    assert path.read_bytes() == text.encode("utf-8")


# Imports run one way:
# notebooks → live, check → plots → (attention, gpt, train) → nn → functional → tensor → tape.

LAYERS = [
    {"_arrays"},
    {"_checks", "tape"},
    {"tensor"},
    {"functional", "gradcheck"},
    {"nn"},
    {"attention", "gpt", "train", "text"},
    {"plots"},
    {"live", "check"},
]


def course_imports(source):
    """Return the parts of course_lib that a source imports, such as {"tensor", "live"}."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level:
            raise AssertionError(f"line {node.lineno}: a relative import; write it out")
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("course_lib.")}
    return found


def layer(part):
    return next(number for number, parts in enumerate(LAYERS) if part in parts)


@pytest.mark.parametrize("path", tracked("course_lib/*.py"), ids=name_of)
def test_imports_run_one_way(path):
    part = path.relative_to(ROOT / "course_lib").parts[0].removesuffix(".py")
    imported = course_imports(path.read_text(encoding="utf-8")) - {part}
    if part == "__init__":
        assert imported == set()
    else:
        assert {other for other in imported if not may_import(part, other)} == set()


def may_import(part, other):
    """A part imports what lies below it; attention, gpt, train and text may import each other."""
    return layer(other) < layer(part) or (layer(other) == layer(part) == layer("gpt"))


@pytest.mark.parametrize("path", tracked("course_lib/*.py"), ids=name_of)
def test_the_library_imports_no_test_and_no_framework(path):
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module.partition(".")[0])
    assert modules & {"tests", "notebooks", "conftest", "torch", "tensorflow", "jax"} == set()


def test_the_arrows_are_seen():
    source = (
        "from course_lib import plots\nfrom course_lib.live.figure import Picture\nimport numpy"
    )
    assert course_imports(source) == {"plots", "live"}
    assert not may_import("tensor", "nn") and not may_import("plots", "live")
    assert may_import("live", "plots") and may_import("gpt", "attention")


# A machine's path or a registry's host in a file would tie the project to one place.

# One letter of each stands in brackets, so that this line is no find itself.
FORBIDDEN = re.compile(
    r"p[y]pi\.org|p[y]thonhosted|n[p]mjs\.org|a[n]aconda\.org|/w[o]rk/|/r[o]ot/|/t[m]p/w"
)


@pytest.mark.parametrize("path", tracked(), ids=name_of)
def test_no_file_names_a_machine_or_a_registry(path):
    text = path.read_bytes().decode("utf-8", errors="replace")
    found = FORBIDDEN.search(text)
    assert found is None, f"{found.group()} in line {text.count(chr(10), 0, found.start()) + 1}"


def test_there_is_no_second_lock():
    assert [name_of(path) for path in tracked("*.lock", "setup.cfg", "setup.py")] == []
