"""Measure blocked attention, forward and backward: its time at T = 8192, and its memory as T grows.

Four heads, head_dim 16, float32. The time, once with all keys and once causal on both sides, is
held against PyTorch's `scaled_dot_product_attention`. "Naive" is `fused_attention`, which holds all
T × T scores (two arrays of them, the least that naive attention can do with).

Memory is what the process's peak grew by while one attention ran, each in a process of its own; it
ran a small one before, so that the libraries' own buffers do not count. Linear means
that twice the tokens take about twice the memory, where the naive form takes four times.

Run it with ``python benchmarks/attention.py``. It exits with 1 where a bar is missed.
"""

import functools
import platform
import statistics

import harness
import numpy as np

from course_lib.attention import blocked_attention, fused_attention
from course_lib.tensor import Tensor

HEADS, HEAD_DIM = 4, 16
T, ROUNDS = 8192, 5
OF_SDPA = 1.25  # at most so much of PyTorch's time
T_MEMORY, RUNS = (2048, 4096, 8192), 3
OF_NAIVE = 25  # the naive one takes at least so many times as much, at T = 4096
PER_DOUBLING = 2.2  # and twice the tokens take at most so many times as much
BLOCKED, SDPA, NAIVE = "course_lib, blocked", "PyTorch, sdpa", "course_lib, naive"


def arrays(t):
    """Return q, k, v and the gradient of the output, float32 [1, H, t, head_dim]."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal((1, HEADS, t, HEAD_DIM), np.float32) for _ in range(4)]


def some_of(*results):
    """Return a few numbers of each result [1, H, t, head_dim], to hold against another side's."""
    return [x[0, :, :: max(1, x.shape[2] // 16), 0].tolist() for x in results]


def blocked(t, causal=False):
    q, k, v, g = arrays(t)
    inputs = [Tensor(x, requires_grad=True) for x in (q, k, v)]

    def work():
        for x in inputs:
            x.grad = None
        out = blocked_attention(*inputs, causal=causal)
        out.backward(g)
        return some_of(out.data, *(x.grad for x in inputs))

    return work


def naive(t):
    def merged(x):
        return x.swapaxes(1, 2).reshape(1, t, -1)  # [1, t, D]

    def heads(x):
        return x.reshape(1, t, HEADS, HEAD_DIM).swapaxes(1, 2)

    *qkv, g = (merged(x) for x in arrays(t))
    qkv = Tensor(np.concatenate(qkv, axis=-1), requires_grad=True)  # [1, t, 3 D]

    def work():
        qkv.grad = None
        out = fused_attention(qkv, HEADS)
        out.backward(g)
        return some_of(*(heads(x) for x in (out.data, *np.split(qkv.grad, 3, axis=-1))))

    return work


def sdpa(t, causal=False):
    import torch

    torch.set_num_threads(1)
    q, k, v, g = (torch.from_numpy(x) for x in arrays(t))
    inputs = [x.requires_grad_() for x in (q, k, v)]

    def work():
        for x in inputs:
            x.grad = None
        attend = torch.nn.functional.scaled_dot_product_attention
        out = attend(*inputs, is_causal=causal)
        out.backward(g)
        return some_of(out.detach(), *(x.grad for x in inputs))

    return work


def peak_megabytes():
    """Return the most memory that this process ever held."""
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if platform.system() == "Darwin" else 2**10)  # bytes there, else kB


def memory(attend, t):
    attend(8)()
    work = attend(t)

    def grown_by():
        before = peak_megabytes()
        work()
        return peak_megabytes() - before

    return grown_by


def of_memory(name, t):
    return f"memory, {name}, T = {t}"


KINDS = {BLOCKED: blocked, SDPA: sdpa, NAIVE: naive}
ALL_KEYS = {name: functools.partial(attend, T) for name, attend in KINDS.items()}
CAUSAL = {
    f"{name}, causal": functools.partial(KINDS[name], T, causal=True) for name in (BLOCKED, SDPA)
}
MEMORY = {
    of_memory(name, t): functools.partial(memory, attend, t)
    for name, attend in KINDS.items()
    for t in T_MEMORY[: 2 if name == NAIVE else None]
}


def report_time(report, names):
    blocked, *others = names
    seconds, values = harness.take_turns(__file__, names, ROUNDS)
    report.costs(seconds)
    for other in others:
        bar = {"at_most": OF_SDPA} if "sdpa" in other else {}
        report.ratio(f"of {other}", seconds, blocked, other, **bar)
    ours = np.array(values[blocked])
    differ = [np.linalg.norm(np.array(v) - ours) / np.linalg.norm(ours) for v in values.values()]
    report.figure("largest relative difference between the results", max(differ), at_most=1e-4)
    print()


def report_memory(report):
    grown = {}  # MB
    for name in MEMORY:
        sides = harness.start(__file__, [name] * RUNS)
        runs = [side.run()[1] for side in sides]
        if runs:
            grown[name] = statistics.median(runs)
            print(f"{grown[name]:9.1f} MB ({min(runs):.1f} … {max(runs):.1f})  {name}")
    if not grown:
        return
    smaller = grown[of_memory(NAIVE, 4096)] / grown[of_memory(BLOCKED, 4096)]
    report.figure("times the blocked one's memory, naive, T = 4096", smaller, at_least=OF_NAIVE)
    for t in T_MEMORY[1:]:
        growth = grown[of_memory(BLOCKED, t)] / grown[of_memory(BLOCKED, t // 2)]
        name = f"times the memory, blocked, from T = {t // 2} to {t}"
        report.figure(name, growth, at_most=PER_DOUBLING)


def measure():
    report = harness.Report("One attention, forward and backward, one thread", ["numpy", "torch"])
    report_time(report, ALL_KEYS)
    report_time(report, CAUSAL)
    report_memory(report)
    report.end()


if __name__ == "__main__":
    harness.main(ALL_KEYS | CAUSAL | MEMORY, measure)
