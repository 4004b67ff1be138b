"""pyproject.toml, requirements.txt, environment.yml and the public CI tell the same story."""

import itertools
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from rattler import MatchSpec

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements.txt").read_text(encoding="utf-8")
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
CI = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))

GROUPS = PYPROJECT["dependency-groups"]
RUNTIME = PYPROJECT["project"]["dependencies"]
LOCKED_DIRECTLY = RUNTIME + GROUPS["test"] + GROUPS["dev"] + PYPROJECT["build-system"]["requires"]
PYTHONS = SpecifierSet(PYPROJECT["project"]["requires-python"])
VERSIONS = [version for minor in range(40) if (version := f"3.{minor}") in PYTHONS]
SYSTEMS = ["linux", "darwin", "win32"]

CONDA_NAMES = {"matplotlib": "matplotlib-base"}  # conda's matplotlib brings a whole Qt


def locked():
    """Return the lock as pairs: the requirement, and the lines that stand below it."""
    entries = re.split(r"^(?=[A-Za-z0-9])", LOCK, flags=re.MULTILINE)[1:]
    return [(Requirement(entry.partition("\\\n")[0]), entry) for entry in entries]


@pytest.mark.parametrize("line", [*RUNTIME, *itertools.chain(*GROUPS.values())])
def test_ranges_have_both_ends(line):
    operators = sorted(clause.operator for clause in Requirement(line).specifier)
    assert operators == ["<", ">="]


def test_the_lock_pins_and_hashes_every_package():
    assert len(locked()) > 50
    for requirement, entry in locked():
        assert re.fullmatch(r"==[^*]+", str(requirement.specifier)), requirement
        assert "--hash=sha256:" in entry, requirement


def test_the_lock_names_no_index():
    assert not re.search(r"https?:|file:|^-", LOCK, flags=re.MULTILINE)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_lock_holds_each_requirement_once(version, system):
    """For each system and Python: one version of everything, inside the range of pyproject.toml."""
    here = {"python_version": version, "python_full_version": f"{version}.4"}
    here |= {"sys_platform": system, "platform_python_implementation": "CPython"}
    pins = {}
    for requirement, _ in locked():
        if requirement.marker is None or requirement.marker.evaluate(here):
            name = canonicalize_name(requirement.name)
            assert name not in pins, f"{name} is pinned twice"
            pins[name] = str(requirement.specifier).removeprefix("==")
    for wanted in map(Requirement, LOCKED_DIRECTLY):
        assert pins[canonicalize_name(wanted.name)] in wanted.specifier


def test_what_the_course_is_compared_with_is_not_installed_with_it():
    compared = [Requirement(line).name for line in GROUPS["compare"] + GROUPS["bench"]]
    assert sorted(compared) == ["autograd", "mygrad", "torch"]
    assert not {requirement.name for requirement, _ in locked()} & set(compared)


def test_the_set_up_accepts_the_same_pythons(setup_script):
    oldest, newest = setup_script.OLDEST, setup_script.NEWEST
    assert (f"{oldest[0]}.{oldest[1]}", f"{newest[0]}.{newest[1]}") == (VERSIONS[0], VERSIONS[-1])


def conda_lines():
    return [line for line in ENVIRONMENT["dependencies"] if isinstance(line, str)]


@pytest.mark.parametrize("line", conda_lines())
def test_conda_reads_each_line(line):
    spec = MatchSpec(line)
    assert str(spec.version) == line.partition(" ")[2]
    assert spec.build is None and spec.build_number is None


def clauses(text):
    return set(re.sub(r"\s", "", text).split(","))


def test_conda_gets_the_same_ranges():
    conda = dict(line.split(" ", 1) for line in conda_lines())
    assert conda.pop("pip")
    assert clauses(conda.pop("python")) == clauses(str(PYTHONS))
    wanted = {r.name: clauses(str(r.specifier)) for r in map(Requirement, RUNTIME)}
    wanted = {CONDA_NAMES.get(name, name): range_ for name, range_ in wanted.items()}
    assert {name: clauses(range_) for name, range_ in conda.items()} == wanted


def test_conda_installs_the_course_itself():
    assert ENVIRONMENT["channels"] == ["conda-forge", "nodefaults"]
    assert [line for line in ENVIRONMENT["dependencies"] if isinstance(line, dict)] == [
        {"pip": ["-e ."]}
    ]


def test_ci_runs_the_oldest_and_the_newest_python_on_every_system():
    matrix = CI["jobs"]["pinned"]["strategy"]["matrix"]
    assert matrix["python"] == [VERSIONS[0], VERSIONS[-1]]
    assert {system.partition("-")[0] for system in matrix["os"]} == {"ubuntu", "macos", "windows"}
