"""Training: AdamW, the learning rate's course, and a loop that can be stopped and resumed."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
from dataclasses import dataclass, field

import numpy as np
import tqdm.auto
import tqdm.notebook
from IPython.display import display

from course_lib.nn import Embedding
from course_lib.tensor import no_grad

__all__ = ["AdamW", "History", "clip_grad_norm", "evaluate", "train", "warmup_cosine"]


class AdamW:
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2).

    Only the matrices of linear layers decay, not the biases, norms and embeddings.

    Parameters
    ----------
    model : Module
    lr : float
        The learning rate.
    betas : (float, float)
        How much of the running means of g and g² each step keeps.
    eps : float
    weight_decay : float
        Each step takes lr · weight_decay of itself away from every matrix.
    """

    def __init__(self, model, lr=3e-3, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1):
        self.parameters = model.parameters()
        self.lr, self.betas, self.eps, self.weight_decay = lr, betas, eps, weight_decay
        tables = {id(m.weight) for m in model.modules() if isinstance(m, Embedding)}
        decays = {id(p) for p in self.parameters if p.ndim > 1} - tables
        # all parameters in one array, those that decay first: a step is then a few long operations
        self._order = sorted(self.parameters, key=lambda p: id(p) not in decays)
        self._n_decay = sum(p.data.size for p in self.parameters if id(p) in decays)
        self._values = _flat(p.data for p in self._order)
        self._mean, self._square = np.zeros_like(self._values), np.zeros_like(self._values)
        self._steps = 0

    def step(self, lr=None):
        """Move every parameter against its gradient, at the rate `lr` or else the one given before.

        Raises RuntimeError if a parameter has no gradient.
        """
        if any(p.grad is None for p in self.parameters):
            raise RuntimeError("AdamW: a parameter has no gradient; call loss.backward() first")
        lr = self.lr if lr is None else lr
        g = _flat(p.grad for p in self._order)
        beta_1, beta_2 = self.betas
        self._steps += 1
        self._mean *= beta_1
        self._mean += (1 - beta_1) * g
        self._square *= beta_2
        g *= g
        g *= 1 - beta_2
        self._square += g
        # both means started at 0; the division by 1 − βⁿ takes that out again
        root = np.sqrt(self._square)
        root *= (1 - beta_2**self._steps) ** -0.5
        root += self.eps
        move = self._mean / root
        move *= lr / (1 - beta_1**self._steps)
        self._values[: self._n_decay] *= 1 - lr * self.weight_decay
        self._values -= move
        start = 0
        for p in self._order:
            end = start + p.data.size
            p.data = self._values[start:end].reshape(p.shape)
            start = end


def clip_grad_norm(parameters, max_norm):
    """Shorten all gradients together to a length of at most `max_norm` (Pascanu et al. 2013).

    Returns the length before, √Σ g². Every parameter must have a gradient.
    """
    norm = math.sqrt(sum(float(np.vdot(p.grad, p.grad)) for p in parameters))
    if norm > max_norm:
        for p in parameters:
            p.grad *= max_norm / norm
    return norm


def warmup_cosine(step, steps, warmup):
    """Return the share of the learning rate at `step` of 0 … steps − 1.

    It rises in a line for `warmup` steps, because the first gradients are those of a random model,
    and then falls along half a cosine to a tenth (Loshchilov & Hutter 2017, eq. 5).
    """
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup) / max(1, steps - warmup)
    return 0.1 + 0.9 * (1 + math.cos(math.pi * done)) / 2


@dataclass
class History:
    """One entry per training step: the loss, the learning rate, the gradient's length."""

    loss: list[float] = field(default_factory=list)
    lr: list[float] = field(default_factory=list)
    grad_norm: list[float] = field(default_factory=list)


def train(model, batches, steps, optimizer, history, callback=None, progress=True):
    """Train until `history` holds `steps` steps; interrupt it, and call it again to go on.

    The rate warms up over the first twentieth of the steps, see `warmup_cosine`; gradients are
    clipped to a length of 1.

    Parameters
    ----------
    model : Module
        model(inputs, targets) gives (logits, loss).
    batches : iterator of (inputs, targets)
        Both integers [B, T].
    steps : int
        Number of steps in all, those in `history` included.
    optimizer : AdamW
        Made for this model; its rate is the highest one.
    history : History
        Gets one entry per step.
    callback : callable, optional
        callback(history) after each step, for a figure that lives while the model learns.
    progress : bool
        Whether to show a bar with the loss and the tokens per second.

    Returns
    -------
    bool
        True when all steps are done, False if the kernel was interrupted before. Model, optimizer
        and history then stand at the last whole step.

    Raises
    ------
    ValueError
        If the optimizer was made for another model.
    FloatingPointError
        If the loss or the gradient is not finite; that step is not taken.
    """
    if [id(p) for p in model.parameters()] != [id(p) for p in optimizer.parameters]:
        raise ValueError(
            "train: this optimizer was made for another model; after a new model, make a new "
            "AdamW and a new History too"
        )
    keep_freed_memory()
    bar = _progress_bar(len(history.loss), steps, progress)
    with bar, _interrupts_wait() as interrupted:
        while len(history.loss) < steps and not interrupted:
            inputs, targets = next(batches)
            step = len(history.loss)
            lr = optimizer.lr * warmup_cosine(step, steps, warmup=max(1, steps // 20))
            loss, norm = _gradients(model, inputs, targets, step, lr)
            optimizer.step(lr)
            history.loss.append(loss)
            history.lr.append(lr)
            history.grad_norm.append(norm)
            rate = bar.format_dict["rate"] or 0  # steps per second
            bar.set_postfix(
                loss=f"{loss:.3f}", tokens_per_s=f"{rate * inputs.size:,.0f}", refresh=False
            )
            bar.update()
            if callback is not None:
                callback(history)
    return len(history.loss) >= steps


@no_grad()
def evaluate(model, batches, n):
    """Return the model's mean loss on the next n batches, as a float; nothing is learned."""
    return sum(model(*next(batches))[1].item() for _ in range(n)) / n


def _gradients(model, inputs, targets, step, lr):
    """Leave fresh, clipped gradients in the model; return the loss and the length before."""
    model.zero_grad()
    _, loss = model(inputs, targets)
    loss.backward()
    norm = clip_grad_norm(model.parameters(), 1.0)
    if not math.isfinite(loss.item() + norm):
        raise FloatingPointError(
            f"train: at step {step} the loss is {loss.item()} and its gradient's length {norm}; "
            f"the model is as it was before this step. The learning rate ({lr:.2g}) may be too "
            "high, or the inputs hold something odd; look at history.loss and history.grad_norm"
        )
    return loss.item(), norm


def keep_freed_memory():
    """Make glibc's malloc keep what a training step frees, for the next step.

    Otherwise it gives the memory back to the system, which has to clear and map it again: a third
    of a step's time. Having seen a large block freed, malloc keeps twice its size (mallopt(3),
    M_MMAP_THRESHOLD). Elsewhere this does nothing.
    """
    np.empty(2**24, np.uint8)


def _flat(arrays):
    return np.concatenate([a.ravel() for a in arrays])


@contextlib.contextmanager
def _interrupts_wait():
    """Collect interrupts (the stop button, Ctrl+C) in the list that is yielded, instead of raising.

    A step that is half done would leave a model that no number of whole steps leads to.
    """
    interrupted = []
    if threading.current_thread() is not threading.main_thread():
        yield interrupted  # no interrupt arrives in another thread
        return
    before = signal.signal(signal.SIGINT, lambda *_: interrupted.append(True))
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def _progress_bar(done, steps, show):
    """Make a bar: in a notebook as a widget, elsewhere as text on stderr."""
    sizes = {"initial": done, "total": steps, "dynamic_ncols": True}
    # without tqdm's steps per second it fits in a narrow cell, and tokens per second say more
    sizes["bar_format"] = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"
    if not show or not issubclass(tqdm.auto.tqdm, tqdm.notebook.tqdm):
        return tqdm.auto.tqdm(**sizes, disable=not show)
    bar = tqdm.notebook.tqdm(**sizes, display=False)
    bar.container.layout.overflow = "visible"  # a row that scrolls can't be reached by keyboard
    # a page without a kernel shows the text; tqdm's own would say "0%" there for ever
    text = {"text/plain": "(a progress bar, while the cell runs)"}
    display(bar.container._repr_mimebundle_() | text, raw=True)
    return bar
