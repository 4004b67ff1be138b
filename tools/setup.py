"""Set up .venv: the locked requirements, and course_lib as an editable package.

`make lab` and `make test` call this first; when nothing changed it returns at once. It needs
nothing but Python, and is written so that an old Python can read it and say that it is too old.
"""

import hashlib
import os
import shutil
import subprocess
import sys

OLDEST, NEWEST = (3, 11), (3, 14)

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "Scripts" if os.name == "nt" else "bin", "python")
STAMP = os.path.join(VENV, "course-setup.txt")
UNFINISHED = "unfinished"


def what_is_missing():
    """Return one line that says what this Python lacks, or None."""
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        return (
            "The course needs Python %d.%d to %d.%d, and this is Python %d.%d. "
            "Name another one like this: make lab PYTHON=python3.12"
            % (OLDEST + NEWEST + sys.version_info[:2])
        )
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return (
            "This Python cannot make a virtual environment: its venv is missing. "
            "On Debian or Ubuntu, install it with: sudo apt-get install python3-venv"
        )
    return None


def fingerprint():
    """Return a hash of the two files that decide what .venv holds."""
    digest = hashlib.sha256()
    for name in ("requirements.txt", "pyproject.toml"):
        with open(os.path.join(ROOT, name), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def read_stamp():
    if not os.path.exists(STAMP):
        return None
    with open(STAMP, "rb") as file:
        return file.read().decode("ascii")


def write_stamp(text):
    with open(STAMP, "wb") as file:
        file.write(text.encode("ascii"))


def pip_install(*arguments):
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.check_call(pip + list(arguments), cwd=ROOT)


def main():
    if read_stamp() == fingerprint() and os.path.exists(PYTHON):
        return
    problem = what_is_missing()
    if problem:
        sys.exit(problem)
    # Half an installation cannot be trusted: pip takes a half-copied package for a whole one.
    if os.path.exists(VENV) and (read_stamp() == UNFINISHED or not os.path.exists(PYTHON)):
        shutil.rmtree(VENV)
    if not os.path.exists(VENV):
        os.mkdir(VENV)
    print("Installing into .venv what the course needs. It takes a minute or two, once.")
    sys.stdout.flush()
    write_stamp(UNFINISHED)
    if not os.path.exists(PYTHON):
        subprocess.check_call([sys.executable, "-m", "venv", VENV])
    pip_install("--require-hashes", "-r", "requirements.txt")
    pip_install("--no-deps", "--no-build-isolation", "--editable", ".")
    write_stamp(fingerprint())


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError:
        sys.exit("The set-up did not finish (see above). Run the same command again to repair it.")
