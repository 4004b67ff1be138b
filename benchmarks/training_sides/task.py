"""What every side has in common: sizes, first weights, batches, and the optimizer's numbers."""

import itertools

import numpy as np

from course_lib.gpt import GPT, GPTConfig

CONFIG = GPTConfig.tiny(vocab_size=96, block_size=64, n_layer=2)
BATCH = 16
LR, BETAS, EPS, WEIGHT_DECAY, MAX_NORM = 1e-3, (0.9, 0.99), 1e-8, 0.1, 1.0


def first_weights():
    """Return {name: float32 array} as the course's GPT starts."""
    return GPT(CONFIG, np.random.default_rng(0)).state_dict()


def decays(name):
    """Say whether weight decay works on a parameter: the matrices of the linear layers."""
    return ".c_" in name and name.endswith("weight")


def batches():
    """Yield (inputs, targets), int64 [B, T], for ever: eight of them in a circle."""
    rng = np.random.default_rng(1)
    shape = (8, BATCH, CONFIG.block_size + 1)
    ids = rng.integers(0, CONFIG.vocab_size, shape)
    pairs = [(np.ascontiguousarray(x[:, :-1]), np.ascontiguousarray(x[:, 1:])) for x in ids]
    return itertools.cycle(pairs)
