"""Plant one mistake at a time in a copy of the library: the lesson about it must turn red.

    python tools/plant_mutants.py            every mistake
    python tools/plant_mutants.py mask       those with "mask" in their name

For each mistake, the lesson's notebook runs under nbval, and then the tests of that lesson. Both
must be green without it. The table says which of the two noticed; a mistake that neither noticed
makes the exit code 1.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("course_lib", "notebooks", "tests", "tools", "conftest.py", "pyproject.toml")


@dataclass(frozen=True)
class Mutant:
    """A mistake: in `file` of course_lib, `old` becomes `new`; `lesson` is about it."""

    mistake: str
    lesson: str
    file: str
    old: str
    new: str

    def plant(self, source):
        """Return the source with the mistake in it; ValueError if it is not clear where."""
        if (found := source.count(self.old)) != 1:
            raise ValueError(
                f"{self.mistake}: {self.file} holds {found} times, not once: {self.old!r}; "
                "the library has changed, so change the mutant"
            )
        return source.replace(self.old, self.new)


MUTANTS = [
    Mutant(
        "scale dropped", "04", "attention.py",
        "scaled = raw * (1 / math.sqrt(q.shape[-1]))",
        "scaled = raw * 1.0",
    ),
    Mutant(
        "scale dropped, fused", "08", "attention.py",
        "scale = qkv.dtype.type(1 / math.sqrt(q.shape[-1]))",
        "scale = qkv.dtype.type(1)",
    ),
    Mutant(
        "scale dropped, blocked", "10", "attention.py",
        "scale = q.dtype.type(1 / math.sqrt(q.shape[-1]))",
        "scale = q.dtype.type(1)",
    ),
    Mutant("max not subtracted", "05", "_arrays.py", "np.asarray(x - top)", "np.array(x)"),
    Mutant("max not subtracted, fused", "08", "attention.py", "e -= _row_max(e)", "_row_max(e)"),
    Mutant(
        "max not subtracted, blocked", "10", "attention.py",
        "new_top = np.maximum(top, _row_max(e))",
        "new_top = 0 * _row_max(e)",
    ),
    Mutant(
        "mask polarity", "06", "attention.py",
        "return np.tri(t, t_total, t_total - t, dtype=bool)",
        "return ~np.tri(t, t_total, t_total - t, dtype=bool)",
    ),
    Mutant(
        "mask polarity, additive", "06", "attention.py",
        "np.where(causal_keep(t, t_total), np.float32(0), np.float32(-np.inf))",
        "np.where(causal_keep(t, t_total), np.float32(-np.inf), np.float32(0))",
    ),
    Mutant(
        "mask polarity, from booleans", "06", "attention.py",
        "np.where(mask, scores.dtype.type(0), scores.dtype.type(-np.inf))",
        "np.where(mask, scores.dtype.type(-np.inf), scores.dtype.type(0))",
    ),
    Mutant(
        "mask polarity, blocked", "10", "attention.py",
        "np.where(keep, np.float32(0), np.float32(-np.inf))",
        "np.where(keep, np.float32(-np.inf), np.float32(0))",
    ),
    Mutant(
        "mask off by one, sees the next", "06", "attention.py",
        "np.tri(t, t_total, t_total - t, dtype=bool)",
        "np.tri(t, t_total, t_total - t + 1, dtype=bool)",
    ),
    Mutant(
        "mask off by one, hides itself", "06", "attention.py",
        "np.tri(t, t_total, t_total - t, dtype=bool)",
        "np.tri(t, t_total, t_total - t - 1, dtype=bool)",
    ),
    Mutant(
        "mask off by one, blocked", "10", "attention.py",
        "np.tri(end - top, right - left, top + base - left, dtype=bool)",
        "np.tri(end - top, right - left, top + base - left + 1, dtype=bool)",
    ),
    Mutant(
        "base ignored", "06", "attention.py",
        "np.tri(t, t_total, t_total - t, dtype=bool)",
        "np.tri(t, t_total, 0, dtype=bool)",
    ),
    Mutant(
        "base ignored, with a cache", "10", "attention.py",
        "np.tri(t, t_total, t_total - t, dtype=bool)",
        "np.tri(t, t_total, 0, dtype=bool)",
    ),
    Mutant("base ignored, blocked", "10", "attention.py", "base = t_total - t\n", "base = 0\n"),
    Mutant(
        "base ignored, positions", "10", "gpt.py",
        "self.wpe.weight[base:t_total]",
        "self.wpe.weight[:t]",
    ),
    Mutant(
        "softmax over axis −2", "05", "tensor.py",
        '_dims("softmax", dim, self.ndim)',
        '_dims("softmax", -2 if self.ndim > 1 else dim, self.ndim)',
    ),
    Mutant(
        "softmax over axis −2, attention", "07", "attention.py",
        "masked.softmax(dim=-1)",
        "masked.softmax(dim=-2)",
    ),
    Mutant(
        "softmax over axis −2, fused", "08", "attention.py",
        "total = _row_sum(e)\n    total[",
        "total = _row_sum(e.mT)\n    total[",
    ),
    Mutant(
        "heads split without transpose", "08", "attention.py",
        "x.reshape(b, t, self.n_head, d // self.n_head).transpose(1, 2)",
        "x.reshape(b, self.n_head, t, d // self.n_head)",
    ),
    Mutant(
        "heads split without transpose, fused", "08", "attention.py",
        "qkv.reshape(b, t, 3, n_head, width // (3 * n_head)).transpose(2, 0, 3, 1, 4)",
        "qkv.reshape(b, t, 3, -1).transpose(2, 0, 1, 3).reshape(3, b, n_head, t, -1)",
    ),
    Mutant(
        "targets not shifted", "09", "text.py",
        "yield windows[:, :-1], windows[:, 1:]",
        "yield windows[:, :-1], windows[:, :-1]",
    ),
]  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", nargs="?", default="", help="part of a mistake's name")
    wanted = parser.parse_args().name
    chosen = [mutant for mutant in MUTANTS if wanted in mutant.mistake]
    if not chosen:
        sys.exit(f"no mistake has {wanted!r} in its name: {[m.mistake for m in MUTANTS]}")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "course"
        copy_project(copy)
        for lesson in sorted({mutant.lesson for mutant in chosen}):
            for kind, target in targets(copy, lesson).items():
                if red := first_failure(copy, target):
                    sys.exit(f"lesson {lesson} is red without any mistake: {kind}, {red}")
        survivors = [mutant for mutant in chosen if not noticed(copy, mutant)]
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mistakes noticed")
    sys.exit(1 if survivors else 0)


def copy_project(copy):
    copy.mkdir()
    ignore = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=ignore)
        else:
            shutil.copy(ROOT / name, copy / name)
    probe = run(copy, "-c", "import course_lib; print(course_lib.__file__)")
    if Path(probe.stdout.strip()).parent != (copy / "course_lib").resolve():
        sys.exit(f"the copy does not use its own library: {probe.stdout}{probe.stderr}")


def targets(copy, lesson):
    """Return what is to be run for a lesson: its notebook and its tests."""
    (notebook,) = (copy / "notebooks").glob(f"{lesson}_*.ipynb")
    return {
        "notebook": notebook,
        "tests": copy / "tests" / "notebooks" / f"test_lesson_{lesson}.py",
    }


def noticed(copy, mutant):
    """Plant a mistake, run the lesson about it, print a line of the table, undo the mistake."""
    path = copy / "course_lib" / mutant.file
    source = path.read_text(encoding="utf-8")
    path.write_text(mutant.plant(source), encoding="utf-8")
    try:
        red = {k: first_failure(copy, target) for k, target in targets(copy, mutant.lesson).items()}
    finally:
        path.write_text(source, encoding="utf-8")
    verdict = "noticed" if any(red.values()) else "SURVIVED"
    print(f"{verdict:8}  {mutant.lesson}  {mutant.mistake}", flush=True)
    for kind, failure in red.items():
        print(f"              {kind:8}  {failure or 'green'}", flush=True)
    return any(red.values())


def first_failure(copy, target):
    """Run the tests of one file; return the name of the first that fails, or None."""
    done = run(copy, "-m", "pytest", "-q", "-rfE", "--maxfail=1", str(target))
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode == 0:
        return None
    if done.returncode != 1 or not failed:
        sys.exit(f"pytest ended with {done.returncode} on {target}:\n{done.stdout}{done.stderr}")
    return failed[0].partition("::")[2].partition(" - ")[0].removeprefix("ipynb::")


def run(copy, *arguments):
    """Run Python in the copy, with the copy's course_lib."""
    # no .pyc files: two mutants of the same size within a second would look the same to Python
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=copy, env=environment, capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip


if __name__ == "__main__":
    main()
