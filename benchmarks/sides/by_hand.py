"""The floor: the same step in NumPy, every derivative written by hand, with no tape.

It does what is known to help: one array for all parameters and one for all gradients, Q, K and V in
one product, bias and softmax in place, heads as views, sums as matrix products.
"""

import math

import numpy as np

from course_lib.train import keep_freed_memory
from sides import task

C = task.CONFIG
B, T, D, H, V = task.BATCH, C.block_size, C.n_embd, C.n_head, C.vocab_size
N = B * T
ROOT_2_PI = math.sqrt(2 / math.pi)
MEAN = np.full((D, 1), 1 / D, np.float32)
ONES_N, ONES_T = np.ones(N, np.float32), np.ones((T, 1), np.float32)
MASK = np.where(np.tri(T, dtype=bool), np.float32(0), np.float32(-np.inf))
LOWEST = np.finfo(np.float32).min


def with_one_qkv(weights):
    """Put Q, K and V of each layer side by side, as one weight and one bias."""
    weights = dict(weights)
    for i in range(C.n_layer):
        for kind in ("weight", "bias"):
            parts = [weights.pop(f"blocks.{i}.attn.c_{r}.{kind}") for r in "qkv"]
            weights[f"blocks.{i}.attn.c_attn.{kind}"] = np.concatenate(parts, axis=-1)
    return weights


def linear(x, p, name):
    y = x @ p[f"{name}.weight"]
    y += p[f"{name}.bias"]
    return y


def linear_back(g, x, p, d, name):
    np.matmul(x.T, g, out=d[f"{name}.weight"])
    np.matmul(ONES_N, g, out=d[f"{name}.bias"])
    return g @ p[f"{name}.weight"].T


def norm(x, p, name):
    normed = x - x @ MEAN
    rstd = 1 / np.sqrt((normed * normed) @ MEAN + np.float32(1e-5))
    normed *= rstd
    y = normed * p[f"{name}.weight"]
    y += p[f"{name}.bias"]
    return y, (normed, rstd)


def norm_back(g, kept, p, d, name):
    normed, rstd = kept
    np.matmul(ONES_N, g * normed, out=d[f"{name}.weight"])
    np.matmul(ONES_N, g, out=d[f"{name}.bias"])
    dx = g * p[f"{name}.weight"]
    along = (dx * normed) @ MEAN
    dx -= dx @ MEAN
    dx -= normed * along
    dx *= rstd
    return dx


def heads(qkv):
    """View [N, 3 D] as q, k and v [B, H, T, head_dim]."""
    return qkv.reshape(B, T, 3, H, D // H).transpose(2, 0, 3, 1, 4)


def attend(qkv):
    q, k, v = heads(qkv)
    q *= np.float32((D // H) ** -0.5)
    e = q @ k.mT
    e += MASK
    e -= e.max(axis=-1, keepdims=True, initial=LOWEST)
    np.exp(e, out=e)
    total = e @ ONES_T
    out = np.empty((B, T, H, D // H), np.float32).swapaxes(1, 2)
    np.matmul(e, v, out=out)
    out /= total
    return out.swapaxes(1, 2).reshape(N, D), (q, k, v, e, total, out)


def attend_back(g, kept):
    q, k, v, e, total, out = kept
    g = g.reshape(B, T, H, D // H).swapaxes(1, 2) / total
    ds = g @ v.mT
    ds -= np.einsum("...td,...td->...t", g, out)[..., None]
    ds *= e
    d_qkv = np.empty((N, 3 * D), np.float32)
    dq, dk, dv = heads(d_qkv)
    np.matmul(ds, k, out=dq)
    dq *= np.float32((D // H) ** -0.5)
    np.matmul(ds.mT, q, out=dk)
    np.matmul(e.mT, g, out=dv)
    return d_qkv


def gelu(x):
    gate = x * x
    gate *= np.float32(0.044715 * ROOT_2_PI)
    gate += np.float32(ROOT_2_PI)
    gate *= x
    np.tanh(gate, out=gate)
    gate += 1
    gate *= np.float32(0.5)
    return x * gate, (x, gate)


def gelu_back(g, y, kept):
    x, gate = kept
    slope = x * x
    slope *= np.float32(6 * 0.044715 * ROOT_2_PI)
    slope += np.float32(2 * ROOT_2_PI)
    slope *= 1 - gate
    slope *= y
    slope += gate
    slope *= g
    return slope


def rows_by_id(ids, g, into):
    """Add up the rows of g that belong to one id: a product with the one-hot matrix."""
    one_hot = np.zeros((V, N), np.float32)
    one_hot[ids, np.arange(N)] = 1
    into += one_hot @ g


def loss_and_gradients(p, d, ids, targets):
    """Run forward and backward; fill d, the gradients, and return the loss."""
    x = (p["wte.weight"][ids] + p["wpe.weight"]).reshape(N, D)
    layers = []
    for i in range(C.n_layer):
        name = f"blocks.{i}"
        n1, kept_1 = norm(x, p, f"{name}.ln_1")
        merged, kept_a = attend(linear(n1, p, f"{name}.attn.c_attn"))
        x = x + linear(merged, p, f"{name}.attn.c_proj")
        n2, kept_2 = norm(x, p, f"{name}.ln_2")
        y, kept_g = gelu(linear(n2, p, f"{name}.mlp.c_fc"))
        x = x + linear(y, p, f"{name}.mlp.c_proj")
        layers.append((n1, kept_1, merged, kept_a, n2, kept_2, y, kept_g))
    last, kept_f = norm(x, p, "ln_f")
    e = last @ p["wte.weight"].T
    at = (np.arange(N), targets.ravel())
    top = e.max(axis=-1, keepdims=True, initial=LOWEST)
    picked = e[at] - top[:, 0]
    e -= top
    np.exp(e, out=e)
    total = e @ np.ones((V, 1), np.float32)
    loss = float((np.log(total[:, 0]) - picked).mean())

    e /= total * np.float32(N)
    e[at] -= np.float32(1 / N)
    np.matmul(e.T, last, out=d["wte.weight"])
    g = norm_back(e @ p["wte.weight"], kept_f, p, d, "ln_f")
    for i in reversed(range(C.n_layer)):
        name = f"blocks.{i}"
        n1, kept_1, merged, kept_a, n2, kept_2, y, kept_g = layers[i]
        dy = gelu_back(linear_back(g, y, p, d, f"{name}.mlp.c_proj"), y, kept_g)
        g = g + norm_back(
            linear_back(dy, n2, p, d, f"{name}.mlp.c_fc"), kept_2, p, d, f"{name}.ln_2"
        )
        da = attend_back(linear_back(g, merged, p, d, f"{name}.attn.c_proj"), kept_a)
        g = g + norm_back(
            linear_back(da, n1, p, d, f"{name}.attn.c_attn"), kept_1, p, d, f"{name}.ln_1"
        )
    rows_by_id(ids.ravel(), g, d["wte.weight"])
    np.sum(g.reshape(B, T, D), axis=0, out=d["wpe.weight"])
    return loss


def prepare():
    """Return a function that takes one step and returns the loss."""
    keep_freed_memory()
    optimizer = task.FlatAdamW(with_one_qkv(task.first_weights()))
    batches = task.batches()

    def step():
        loss = loss_and_gradients(optimizer.parameters, optimizer.gradients, *next(batches))
        optimizer.step()
        return loss

    return step
