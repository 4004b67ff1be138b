"""The same GPT for other automatic differentiations of NumPy code: MyGrad and HIPS autograd.

One model serves both, as both take NumPy's functions from a module of their own (here `xp`). Each
brings what it has that is faster: MyGrad its softmax and cross-entropy, autograd a way to leave the
softmax's maximum off the tape.
"""

import math

import numpy as np

from course_lib.train import keep_freed_memory
from sides import task

C = task.CONFIG
B, T, D, H = task.BATCH, C.block_size, C.n_embd, C.n_head
MASK = np.where(np.tri(T, dtype=bool), np.float32(0), np.float32(-np.inf))
# float32: MyGrad would take a Python number for float64, and the rest of the step with it
EPS, HALF, ONE, CUBIC = (np.float32(x) for x in (1e-5, 0.5, 1, 0.044715))
SCALE, ROOT_2_PI = np.float32((D // H) ** -0.5), np.float32(math.sqrt(2 / math.pi))


def linear(p, name, x):
    return x @ p[f"{name}.weight"] + p[f"{name}.bias"]


def norm(xp, p, name, x):
    x = x - xp.mean(x, axis=-1, keepdims=True)
    variance = xp.mean(x * x, axis=-1, keepdims=True)
    return x / xp.sqrt(variance + EPS) * p[f"{name}.weight"] + p[f"{name}.bias"]


def gelu(xp, x):
    return HALF * x * (xp.tanh(ROOT_2_PI * (x + CUBIC * (x * x * x))) + ONE)


def attend(xp, p, name, x, softmax):
    def heads(role):
        y = linear(p, f"{name}.c_{role}", x)  # [N, D]
        return xp.transpose(y.reshape(B, T, H, D // H), (0, 2, 1, 3))  # [B, H, T, head_dim]

    q, k, v = (heads(role) for role in "qkv")
    scores = q * SCALE @ xp.transpose(k, (0, 1, 3, 2)) + MASK
    out = xp.transpose(softmax(scores) @ v, (0, 2, 1, 3))
    return linear(p, f"{name}.c_proj", out.reshape(B * T, D))


def forward(xp, p, ids, targets, softmax, cross_entropy):
    """Return the loss."""
    x = (p["wte.weight"][ids] + p["wpe.weight"]).reshape(B * T, D)
    for i in range(C.n_layer):
        name = f"blocks.{i}"
        x = x + attend(xp, p, f"{name}.attn", norm(xp, p, f"{name}.ln_1", x), softmax)
        y = linear(p, f"{name}.mlp.c_fc", norm(xp, p, f"{name}.ln_2", x))
        x = x + linear(p, f"{name}.mlp.c_proj", gelu(xp, y))
    logits = norm(xp, p, "ln_f", x) @ p["wte.weight"].T
    return cross_entropy(logits, targets.ravel())


def prepare_mygrad():
    """Return a function that takes one step and returns the loss."""
    import mygrad as mg
    from mygrad.nnet.activations import softmax
    from mygrad.nnet.losses import softmax_crossentropy

    mg.turn_memory_guarding_off()  # its documentation's advice where speed counts

    def gradients(parameters, ids, targets):
        p = {name: mg.tensor(w, copy=False) for name, w in parameters.items()}
        loss = forward(mg, p, ids, targets, softmax, softmax_crossentropy)
        loss.backward()
        return loss.item(), {name: tensor.grad for name, tensor in p.items()}

    return _step(gradients)


def prepare_autograd():
    """Return a function that takes one step and returns the loss."""
    import autograd.numpy as xp
    from autograd import value_and_grad
    from autograd.tracer import getval

    def shifted(x):
        return x - getval(x).max(axis=-1, keepdims=True)

    def softmax(x):
        e = xp.exp(shifted(x))
        return e / xp.sum(e, axis=-1, keepdims=True)

    def cross_entropy(logits, targets):
        x = shifted(logits)
        picked = x[np.arange(len(targets)), targets]
        return xp.mean(xp.log(xp.sum(xp.exp(x), axis=-1)) - picked)

    def loss(parameters, ids, targets):
        return forward(xp, parameters, ids, targets, softmax, cross_entropy)

    return _step(value_and_grad(loss))


def _step(loss_and_gradients):
    keep_freed_memory()
    optimizer, batches = task.FlatAdamW(task.first_weights()), task.batches()

    def step():
        loss, gradients = loss_and_gradients(optimizer.parameters, *next(batches))
        for name, g in gradients.items():
            optimizer.gradients[name][...] = g
        optimizer.step()
        return float(loss)

    return step
