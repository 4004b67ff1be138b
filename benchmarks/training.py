"""Measure one training step of the tiny GPT (2 layers, T = 64, B = 16) against others' same step.

All sides start from the same weights, see the same batches, and must reach the same losses. Run it
with ``python benchmarks/training.py``; it exits with 1 where a bar is missed.
"""

import sys

import harness

OF_PYTORCH = 0.90  # at most so much of PyTorch eager's time
OF_FLOOR = 1.08  # and so much of the same mathematics by hand, with no tape
ROUNDS, REPEAT = 40, 5
COURSE, FLOOR, TORCH = "course_lib", "NumPy by hand, no tape", "PyTorch eager"


def course():
    from training_sides.course import prepare

    return prepare()


def by_hand():
    from training_sides.by_hand import prepare

    return prepare()


def pytorch():
    from training_sides.pytorch import prepare

    return prepare()


def pytorch_fused():
    from training_sides.pytorch import prepare

    return prepare(sdpa=True, fused=True)


SIDES = {
    COURSE: course,
    FLOOR: by_hand,
    TORCH: pytorch,
    "PyTorch, sdpa and fused AdamW": pytorch_fused,
}


def main():
    sides = harness.start(__file__, SIDES)
    seconds, losses = harness.take_turns(sides, ROUNDS, REPEAT, warm_up=10)
    report = harness.Report(
        "One training step of the tiny GPT, CPU time", ["numpy", "torch", "mygrad", "autograd"]
    )
    for name in seconds:
        print(f"{harness.milliseconds(seconds[name])}  {name}, loss {losses[name]:.4f}")
    report.ratio("of PyTorch eager", seconds, COURSE, TORCH, OF_PYTORCH)
    report.ratio("of NumPy by hand", seconds, COURSE, FLOOR, OF_FLOOR)
    for name in list(SIDES)[3:]:
        report.ratio(f"of {name}", seconds, COURSE, name)
    report.figure(
        "largest difference between the sides' losses",
        max(losses.values()) - min(losses.values()),
        0.01,
    )
    report.end()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--side"]:
        harness.serve(SIDES[sys.argv[2]])
    else:
        main()
