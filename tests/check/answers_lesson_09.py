"""Right answers to the exercises of lesson 09, and wrong ones under the names of their mistakes."""

import numpy as np

from course_lib.tensor import Tensor


def shift_loops(ids):
    inputs, targets = [], []
    for row in ids:
        inputs.append([row[i] for i in range(len(row) - 1)])
        targets.append([row[i + 1] for i in range(len(row) - 1)])
    return inputs, targets


def descent(zero=True, sign=-1.0, moves=True, after=False):
    """Gradient descent by the tape, with what can be done wrongly."""

    def fit(w, x, y, lr, steps):
        w = Tensor(w, requires_grad=True)
        losses = []
        for _ in range(steps):
            if zero:
                w.grad = None
            loss = ((x @ w - y) ** 2).mean()
            loss.backward()
            losses.append(loss.item())
            if moves:
                w.data = w.data + sign * lr * w.grad
            if after:
                losses[-1] = ((x @ w - y) ** 2).mean().item()
        return losses

    return fit


def descent_numpy(zero=True, sign=-1.0, moves=True, after=False):
    """The same by hand."""

    def fit(w, x, y, lr, steps):
        w, gradient, losses = w.copy(), np.zeros_like(w), np.zeros(steps)
        for step in range(steps):
            gradient = np.zeros_like(w) if zero else gradient
            error = x @ w - y
            losses[step] = np.mean(error**2)
            gradient += 2 * x.T @ error / len(y)
            w += sign * lr * gradient * moves
            losses[step] = np.mean((x @ w - y) ** 2) if after else losses[step]
        return losses

    return fit


def fit_with_a_new_leaf(w, x, y, lr, steps):
    losses = []
    for _ in range(steps):
        w = Tensor(w, requires_grad=True)
        loss = ((Tensor(x) @ w - y) * (Tensor(x) @ w - y)).sum() / len(y)
        loss.backward()
        losses.append(loss)
        w = w.data - lr * w.grad
    return losses


def fit_recursive(w, x, y, lr, steps):
    if steps == 0:
        return []
    error = x @ w - y
    return [
        np.mean(error**2),
        *fit_recursive(w - lr * 2 * x.T @ error / len(y), x, y, lr, steps - 1),
    ]


def fit_einsum(w, x, y, lr, steps):
    out = np.empty(steps, dtype=np.float32)
    for i in range(steps):
        error = np.einsum("nd,d->n", x, w) - y
        out[i] = np.einsum("n,n->", error, error) / error.size
        w = w - (2 * lr / error.size) * np.einsum("nd,n->d", x, error)
    return out


def fit_loops(w, x, y, lr, steps):
    w, losses = w.tolist(), []
    for _ in range(steps):
        errors = [
            sum(a * b for a, b in zip(row, w, strict=True)) - target
            for row, target in zip(x, y, strict=True)
        ]
        losses.append(sum(error**2 for error in errors) / len(errors))
        for d in range(len(w)):
            w[d] -= lr * 2 * sum(e * x[n, d] for n, e in enumerate(errors)) / len(errors)
    return losses


RIGHT = {
    "shift_targets": [
        lambda ids: (ids[:, :-1], ids[:, 1:]),
        lambda ids: [ids[:, :-1].copy(), ids[:, 1:].copy()],
        shift_loops,
        lambda ids: (Tensor(ids)[:, :-1], Tensor(ids)[:, 1:]),
        lambda ids: (np.delete(ids, -1, axis=1), np.delete(ids, 0, axis=1)),
        lambda ids: (ids[:, :-1], np.roll(ids, -1, axis=1)[:, :-1]),
        lambda ids: np.stack([ids[:, :-1], ids[:, 1:]]),
        lambda ids: (ids[:, : ids.shape[1] - 1].tolist(), ids[:, 1:].tolist()),
    ],
    "fit": [
        descent(),
        descent_numpy(),
        fit_with_a_new_leaf,
        fit_recursive,
        fit_einsum,
        fit_loops,
        lambda *inputs: np.array(descent()(*inputs)),
        lambda *inputs: tuple(descent_numpy()(*inputs)),
    ],
}

WRONG = {
    "shift_targets": {
        "M29": [
            lambda ids: (ids[:, :-1], ids[:, :-1]),
            lambda ids: (ids, ids),
            lambda ids: (Tensor(ids)[:, :-1], Tensor(ids)[:, :-1]),
        ],
        "backward": [
            lambda ids: (ids[:, 1:], ids[:, :-1]),
            lambda ids: (Tensor(ids)[:, 1:], Tensor(ids)[:, :-1]),
        ],
        "rolled": [
            lambda ids: (ids, np.roll(ids, -1, axis=1)),
            lambda ids: (Tensor(ids), Tensor(np.roll(ids, -1))),
        ],
        "batch axis": [
            lambda ids: (ids[:-1], ids[1:]),
            lambda ids: (Tensor(ids)[:-1], Tensor(ids)[1:]),
        ],
    },
    "fit": {
        "M30": [descent(zero=False), descent_numpy(zero=False)],
        "uphill": [descent(sign=1.0), descent_numpy(sign=1.0)],
        "standing still": [descent(moves=False), descent_numpy(moves=False)],
        "after the step": [descent(after=True), descent_numpy(after=True)],
    },
}
