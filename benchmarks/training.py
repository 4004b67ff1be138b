"""Measure one training step of the tiny GPT (2 layers, T = 64, B = 16) against others' same step.

All sides start from the same weights, see the same batches, and must reach the same losses. Run it
with ``python benchmarks/training.py``; it exits with 1 where a bar is missed.
"""

import harness

OF_PYTORCH = 0.90  # at most so much of PyTorch eager's time
OF_FLOOR = 1.08  # and so much of the same mathematics by hand, with no tape
ROUNDS, REPEAT = 40, 5
COURSE, FLOOR, TORCH = "course_lib", "NumPy by hand, no tape", "PyTorch eager"
BARS = {TORCH: {"at_most": OF_PYTORCH}, FLOOR: {"at_most": OF_FLOOR}}


def course():
    from sides.course import prepare

    return prepare()


def by_hand():
    from sides.by_hand import prepare

    return prepare()


def pytorch():
    from sides.pytorch import prepare

    return prepare()


def pytorch_fused():
    from sides.pytorch import prepare

    return prepare(sdpa=True, fused=True)


def mygrad():
    from sides.numpy_like import prepare_mygrad

    return prepare_mygrad()


def autograd():
    from sides.numpy_like import prepare_autograd

    return prepare_autograd()


SIDES = {
    COURSE: course,
    FLOOR: by_hand,
    TORCH: pytorch,
    "PyTorch, sdpa and fused AdamW": pytorch_fused,
    "MyGrad": mygrad,
    "HIPS autograd": autograd,
}


def measure():
    report = harness.Report(
        "One training step of the tiny GPT, one thread", ["numpy", "torch", "mygrad", "autograd"]
    )
    seconds, losses = harness.take_turns(__file__, SIDES, ROUNDS, REPEAT, warm_up=10)
    report.costs(seconds)
    for other in list(SIDES)[1:]:
        report.ratio(f"of {other}", seconds, COURSE, other, **BARS.get(other, {}))
    difference = max(losses.values()) - min(losses.values())
    report.figure("largest difference between the sides' losses", difference, at_most=0.01)
    report.end()


if __name__ == "__main__":
    harness.main(SIDES, measure)
