"""Run every benchmark, one after the other: ``python benchmarks``.

Each prints what it measured; a figure outside its bar makes it exit with 1, and then this does too.
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

OTHERS = ("torch", "mygrad", "autograd")


def main(folder):
    """Run all benchmarks in `folder`; return the exit code."""
    if not all(find_spec(name) for name in OTHERS):
        print(
            "PyTorch, MyGrad and HIPS autograd are compared with where they are installed:\n"
            "    .venv/bin/python -m uv pip install --group compare --group bench"
        )
    failed = []
    for file in sorted(folder.glob("[!_]*.py")):
        print(f"\n== {file.name}", flush=True)
        if subprocess.run([sys.executable, file], check=False).returncode:
            failed.append(file.name)
    print(f"\nNot as claimed: {', '.join(failed)}" if failed else "\nAll as claimed.")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parent))
