"""Measure several programs that do the same work: each in its own process, in turns.

A benchmark file names its sides and hands them to `main`. Started again with ``--side NAME`` it is
the worker of that side, which waits for its turn. Ratios are taken between neighbors in time, so
that what else the machine does weighs on both.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version

# One thread each; and no BLAS kernel chosen by hand, which PyTorch's side would not see.
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}
CHOSEN_BY_HAND = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def main(sides, measure):
    """Be the worker of one side if the command line names one; otherwise run measure().

    sides is {name: function that prepares and returns the side's work, a function}.
    """
    if sys.argv[1:2] == ["--side"]:
        _serve(sides[sys.argv[2]])
    else:
        measure()


class Side:
    """A worker process that does its work when asked to."""

    def __init__(self, file, name):
        environment = {k: v for k, v in os.environ.items() if k not in CHOSEN_BY_HAND}
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, file, "--side", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment | ONE_THREAD,
            text=True,
            encoding="utf-8",
        )
        self.missing = self._answer()["missing"]

    def run(self, repeat=1):
        """Do the work `repeat` times; return (CPU seconds for one time, what the work returned)."""
        self._process.stdin.write(f"{repeat}\n")
        self._process.stdin.flush()
        answer = self._answer()
        return answer["seconds"] / repeat, answer["value"]

    def close(self):
        """End the worker."""
        self._process.stdin.close()
        self._process.wait()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker of {self.name!r} ended; its message stands above")
        return json.loads(line)


def _serve(prepare):
    """Make the work with prepare(), then do it as often as each line of stdin says."""
    try:
        work = prepare()
    except ModuleNotFoundError as error:
        print(json.dumps({"missing": error.name}), flush=True)
        return
    print(json.dumps({"missing": None}), flush=True)
    for line in sys.stdin:
        start = time.process_time()
        for _ in range(int(line)):
            value = work()
        seconds = time.process_time() - start
        print(json.dumps({"seconds": seconds, "value": value}), flush=True)


def start(file, names):
    """Start the sides; leave out, with a line, those whose package is not installed."""
    sides = [Side(file, name) for name in names]
    for side in sides:
        if side.missing:
            print(f"left out: {side.name}, because {side.missing} is not installed")
    return [side for side in sides if not side.missing]


def take_turns(file, names, rounds, repeat=1, warm_up=1):
    """Return {name: [CPU seconds for one time, ...]}, and {name: what its work returned last}.

    The first turns only warm up; the order changes from round to round.
    """
    sides = start(file, names)
    values = {side.name: side.run(warm_up)[1] for side in sides}
    seconds = {side.name: [] for side in sides}
    for i in range(rounds):
        for side in sides[i % len(sides) :] + sides[: i % len(sides)]:
            cost, values[side.name] = side.run(repeat)
            seconds[side.name].append(cost)
    for side in sides:
        side.close()
    return seconds, values


class Report:
    """Prints costs and figures, holds figures to their bars, and remembers whether one missed."""

    def __init__(self, title, packages):
        self.missed = False
        print(f"{title}\n{cpu_name()}; {platform.system()}, Python {platform.python_version()}")
        print(", ".join(f"{name} {_version(name)}" for name in packages), end="\n\n")

    def costs(self, seconds):
        """Print each side's median and quartiles."""
        for name, values in seconds.items():
            low, middle, high = (1e3 * s for s in statistics.quantiles(values, n=4))
            print(f"{middle:9.2f} ms ({low:.2f} … {high:.2f})  {name}")

    def ratio(self, name, seconds, of, to, **bar):
        """Print the median over the rounds of seconds[of] / seconds[to], and its quartiles."""
        if to in seconds:
            ratios = [a / b for a, b in zip(seconds[of], seconds[to], strict=True)]
            low, middle, high = statistics.quantiles(ratios, n=4)
            self.figure(f"{name} ({low:.2f} … {high:.2f})", middle, **bar)

    def figure(self, name, value, at_most=None, at_least=None):
        """Print one figure; with a bar, it misses it where it is on the other side, or NaN."""
        verdict = ""
        for words, bar, met in (
            ("at most", at_most, at_most is None or value <= at_most),
            ("at least", at_least, at_least is None or value >= at_least),
        ):
            if bar is not None:
                self.missed |= not met
                verdict += f"  {words} {bar:.3g}: {'met' if met else 'MISSED'}"
        print(f"{value:9.3g}  {name}{verdict}")

    def end(self):
        """Exit, with 1 where a bar was missed."""
        sys.exit(1 if self.missed else 0)


def cpu_name():
    """Return what the system calls its processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
        return f"{names[0]}, {len(names)} cores"
    except (OSError, IndexError):
        return f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def _version(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"
