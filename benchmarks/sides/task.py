"""What the sides have in common: sizes, first weights, batches, and the optimizer's arithmetic."""

import itertools
import math

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


class FlatAdamW:
    """Clipping and AdamW in place on one array, for the sides that bring no optimizer.

    Attributes
    ----------
    parameters, gradients : {name: view of the one array}
    """

    def __init__(self, weights):
        weights = dict(sorted(weights.items(), key=lambda item: not decays(item[0])))
        self._n_decay = sum(w.size for name, w in weights.items() if decays(name))
        self._flat = np.concatenate([w.ravel() for w in weights.values()])
        self._grad, self._mean, self._square = (np.zeros_like(self._flat) for _ in range(3))
        self.parameters = _views(self._flat, weights)
        self.gradients = _views(self._grad, weights)
        self._steps = 0

    def step(self):
        """Clip the gradients, and move the parameters."""
        flat, grad, mean, square = self._flat, self._grad, self._mean, self._square
        b1, b2 = BETAS
        self._steps += 1
        length = math.sqrt(np.vdot(grad, grad))
        if length > MAX_NORM:
            grad *= MAX_NORM / length
        mean *= b1
        mean += (1 - b1) * grad
        square *= b2
        grad *= grad
        grad *= 1 - b2
        square += grad
        move = np.sqrt(square)
        move *= (1 - b2**self._steps) ** -0.5
        move += EPS
        np.divide(mean, move, out=move)
        move *= LR / (1 - b1**self._steps)
        flat[: self._n_decay] *= 1 - LR * WEIGHT_DECAY
        flat -= move


def _views(flat, like):
    """Cut a flat array into views, one for each array in `like`."""
    cut, start = {}, 0
    for name, w in like.items():
        cut[name] = flat[start : start + w.size].reshape(w.shape)
        start += w.size
    return cut
