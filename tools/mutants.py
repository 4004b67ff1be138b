"""Mutation testing: which small change of course_lib would no test notice?

    python tools/mutants.py                   every module of MODULES
    python tools/mutants.py text gpt          these
    python tools/mutants.py --again text      only what was changed, or not noticed, the last time

mutmut makes the mutants and runs the tests that reach each, in copies of the project below
.mutants/. A mutant that survives is listed in tests/survivors.toml, with the reason why it changes
nothing that a user can see, or it is a test that is missing.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import libcst as cst

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / ".mutants"
LISTED = ROOT / "tests" / "survivors.toml"
# name: the share that must be killed, the files of course_lib, and the tests that run
MODULES = {
    "tensor": (0.95, "tensor.py tape.py _arrays.py", "test_tensor.py test_reported_faults.py"),
    "functional": (0.95, "functional.py gradcheck.py", "test_functional.py test_gradcheck.py"),
    "nn": (0.95, "nn.py _checks.py", "test_nn.py test_bad_input.py"),
    "attention": (0.95, "attention.py", "test_attention.py test_blocked_attention.py"),
    "gpt": (0.95, "gpt.py", "test_gpt.py test_gpt_file.py"),
    "train": (0.90, "train.py", "test_train.py"),
    "text": (0.90, "text.py", "test_text.py"),
    "check": (0.90, "check/*", "check"),
}
SURVIVED = (0, 5, 33)  # exit codes: all tests passed, there was none, none reaches it
KILLED = 1  # any other code is a mutant that hung, or broke Python or the tests' collection
# Imported once, before the processes that run the tests part; course_lib is not among them, so
# that what runs while it is imported is mutated too.
PRELOADED = """
IPython.display hypothesis.extra.numpy numpy pytest tqdm.auto tqdm.notebook
"""
# What ran while course_lib was imported counts as reached by every test. The quickest tests run
# first: the first that fails ends a mutant's run.
PLUGIN = """
from mutmut.state import state

imported = set()


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: state().duration_by_test.get(item.nodeid, 0))


def pytest_collection_finish():
    imported.update(state()._stats)


def pytest_runtest_setup():
    state()._stats.update(imported)
"""
SETUP_CFG = """
[mutmut]
source_paths = course_lib
only_mutate =
    {files}
also_copy = mutants_plugin.py
pytest_add_cli_args =
    -oaddopts=
    -pmutants_plugin
    -pno:cacheprovider
    -pno:unraisableexception
pytest_add_cli_args_test_selection =
    -m
    not torch
    {tests}
process_isolation = forkserver
forkserver_warmup = import
preload_modules_file = preloaded.txt
timeout_constant = 20.0
timeout_multiplier = 1.5
use_git_change_detection = false
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="*", metavar="module", help=", ".join(MODULES))
    parser.add_argument("--again", action="store_true", help="keep what was killed the last time")
    options = parser.parse_args()
    if unknown := set(options.modules) - set(MODULES):
        parser.error(f"no such module: {', '.join(sorted(unknown))}; known: {', '.join(MODULES)}")
    good = True
    for module in options.modules or MODULES:
        if not options.again:
            shutil.rmtree(WORK / module, ignore_errors=True)
        prepare(module)
        mutate(module)
        good &= report(module)
    sys.exit(0 if good else 1)


def prepare(module):
    """Bring the module's copy of the project up to date."""
    copy = WORK / module
    copy.mkdir(parents=True, exist_ok=True)
    files = [ROOT / "pyproject.toml"]
    files += [path for folder in ("course_lib", "tests") for path in (ROOT / folder).rglob("*.py")]
    for path in files:
        text = path.read_text(encoding="utf-8")
        if path.is_relative_to(ROOT / "course_lib"):
            text = cst.parse_module(text).visit(_MadeReady()).code
        write(copy / path.relative_to(ROOT), text)
    write(copy / "mutants_plugin.py", PLUGIN)
    write(copy / "preloaded.txt", "\n".join(PRELOADED.split()))
    _, files, tests = MODULES[module]
    files = "\n    ".join(f"course_lib/{name}" for name in files.split())
    tests = "\n    ".join(f"tests/{name}" for name in tests.split())
    write(copy / "setup.cfg", SETUP_CFG.format(files=files, tests=tests))


def write(path, text):
    """Write a file, unless it holds that text: mutmut goes by the time of the last change."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


class _MadeReady(cst.CSTTransformer):
    """Write the same in a way that lets mutmut mutate what matters, and only that.

    ``@d def f`` becomes what it means, ``f = d(f)``: mutmut mutates no decorated function. Prose
    (two spaces or more) becomes an f-string, whose words mutmut leaves alone: the tests hold a
    message to what it names, not to every word.
    """

    def leave_SimpleString(self, original_node, updated_node):
        text = updated_node.value
        if text.startswith('"') and not text.startswith('"""') and text.count(" ") > 1:
            return cst.parse_expression("f" + text.replace("{", "{{").replace("}", "}}"))
        return updated_node

    def leave_FunctionDef(self, original_node, updated_node):
        decorators = [cst.Module([]).code_for_node(d.decorator) for d in updated_node.decorators]
        if not decorators or decorators in (["staticmethod"], ["classmethod"]):
            return updated_node
        name = function = updated_node.name.value
        if decorators[0].endswith(".setter"):  # needs the property that has the name
            function = f"set_{name}"
        value = function
        for decorator in reversed(decorators):
            value = f"{decorator}({value})"
        plain = updated_node.with_changes(decorators=(), name=cst.Name(function))
        return cst.FlattenSentinel([plain, cst.parse_statement(f"{name} = {value}")])


def mutate(module):
    """Let mutmut make and test the module's mutants."""
    copy = WORK / module
    for meta in copy.glob("mutants/course_lib/**/*.meta"):
        data = json.loads(meta.read_text(encoding="utf-8"))
        codes = data["exit_code_by_key"]
        codes.update({name: None for name, code in codes.items() if code != KILLED})
        meta.write_text(json.dumps(data), encoding="utf-8")
    (copy / "mutants" / "mutmut-stats.json").unlink(missing_ok=True)  # which test reaches what
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # the mutated files are long
    command = [Path(sys.executable).with_name("mutmut"), "run", "--max-children", "1"]
    print(f"== {module}", flush=True)
    subprocess.run(command, cwd=copy, env=environment, check=True)


def report(module):
    """Print the module's figures and its unlisted survivors; return whether all is well."""
    copy = WORK / module
    codes = {}
    for meta in copy.glob("mutants/course_lib/**/*.meta"):
        codes |= json.loads(meta.read_text(encoding="utf-8"))["exit_code_by_key"]
    survivors = sorted(name for name, code in codes.items() if code in SURVIVED)
    share, least = 1 - len(survivors) / len(codes), MODULES[module][0]
    listed = tomllib.loads(LISTED.read_text(encoding="utf-8")).get(module, [])
    unused = [change for entry in listed for change in entry["changes"]]
    patterns = {known: ".*".join(map(re.escape, known.split("*"))) for known in unused}
    missing = 0
    for name in survivors:
        change = change_of(copy, name)
        reasons = [known for known, pattern in patterns.items() if re.fullmatch(pattern, change)]
        unused = [known for known in unused if known not in reasons]
        if not reasons:
            missing += 1
            print(f"survives: {name}\n    {change}")
    for change in unused:
        print(f"listed, but it does not survive: {change}")
    print(
        f"{module}: {len(codes)} mutants, {share:.1%} killed (at least {least:.0%} wanted); "
        f"{len(survivors)} survive, {missing} of them without a reason",
        flush=True,
    )
    return share >= least and not missing and not unused


def change_of(copy, name):
    """Describe a mutant in one line: the function, what was there, what is there now."""
    command = [Path(sys.executable).with_name("mutmut"), "show", name]
    shown = subprocess.run(command, cwd=copy, check=True, capture_output=True, encoding="utf-8")
    diff = shown.stdout.splitlines()
    before = " ".join(line[1:].strip() for line in diff if re.match(r"-(?!--)", line))
    after = " ".join(line[1:].strip() for line in diff if re.match(r"\+(?!\+\+)", line))
    function = name.partition("__mutmut")[0].rpartition(".")[2].removeprefix("x").strip("_ǁ")
    return f"{function.replace('ǁ', '.')}: {before} → {after}"


if __name__ == "__main__":
    main()
