"""Training: AdamW, the learning rate's course, and a loop that can be stopped and resumed."""

from __future__ import annotations

import contextlib
import itertools
import math
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tqdm.auto
import tqdm.notebook
from IPython.display import display

from course_lib._arrays import Array
from course_lib._checks import check_sizes
from course_lib.nn import Embedding, Module
from course_lib.tensor import Tensor, no_grad

__all__ = ["AdamW", "History", "clip_grad_norm", "evaluate", "train", "warmup_cosine"]

Batch = tuple[Array, Array]  # inputs and targets, integers [B, T]


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

    def __init__(
        self,
        model: Module,
        lr: float = 3e-3,
        betas: tuple[float, float] = (0.9, 0.99),
        eps: float = 1e-8,
        weight_decay: float = 0.1,
    ) -> None:
        self.parameters = model.parameters()
        self.lr, self.betas, self.eps, self.weight_decay = lr, betas, eps, weight_decay
        tables = {id(m.weight) for m in model.modules() if isinstance(m, Embedding)}
        decays = {id(p) for p in self.parameters if p.ndim > 1} - tables
        # all parameters in one array, those that decay first: a step is then a few long operations
        self._order = sorted(self.parameters, key=lambda p: id(p) not in decays)
        self._n_decay = sum(p.data.size for p in self.parameters if id(p) in decays)
        ends = itertools.accumulate((p.data.size for p in self._order), initial=0)
        self._parts = [slice(*pair) for pair in itertools.pairwise(ends)]
        self._mean = np.zeros_like(_flat(p.data for p in self._order))
        self._square = np.zeros_like(self._mean)
        self._steps = 0

    def step(self, lr: float | None = None) -> None:
        """Move every parameter against its gradient, at the rate `lr` or else the one given before.

        Raises
        ------
        RuntimeError
            If a parameter has no gradient.
        ValueError
            If the rate is negative or not finite.
        FloatingPointError
            If a gradient is not finite or its square overflows. Nothing has then moved.
        """
        grads = [p.grad for p in self._order if p.grad is not None]
        if len(grads) < len(self._order):
            raise RuntimeError("AdamW: a parameter has no gradient; call loss.backward() first")
        lr = self.lr if lr is None else lr
        if not 0 <= lr < math.inf:
            raise ValueError(f"AdamW: lr must be at least 0 and finite, got {lr!r}")
        g = _flat(grads)
        if not math.isfinite(float(np.vdot(g, g))):
            raise FloatingPointError(
                "AdamW: the gradient is not finite, or too large to be squared; did the loss "
                "overflow? clip_grad_norm shortens it"
            )
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
        values = _flat(p.data for p in self._order)
        values[: self._n_decay] *= 1 - lr * self.weight_decay
        values -= move
        values.setflags(write=False)
        for p, part in zip(self._order, self._parts, strict=True):
            p._data = values[part].reshape(p.shape)  # a view, not the copy that `.data =` makes

    def zero_grad(self) -> None:
        """Forget all gradients; otherwise the next backward adds to them."""
        for p in self.parameters:
            p.grad = None


def clip_grad_norm(parameters: Iterable[Tensor], max_norm: float) -> float:
    """Shorten all gradients together to a length of at most `max_norm` (Pascanu et al. 2013).

    Returns the length before, √Σ g². A parameter without a gradient counts for nothing, as in
    PyTorch. A length that is not finite stays as it is. Raises ValueError if `max_norm` is no
    number of at least 0.
    """
    if not max_norm >= 0:
        raise ValueError(f"clip_grad_norm: max_norm must be at least 0, got {max_norm!r}")
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = math.sqrt(sum(float(np.vdot(g, g)) for g in grads))
    if max_norm < norm < math.inf:
        for g in grads:
            g *= max_norm / norm
    return norm


def warmup_cosine(step: int, steps: int, warmup: int) -> float:
    """Return the share of the learning rate at `step` of 0 … steps − 1.

    It rises in a line for `warmup` steps, because the first gradients are those of a random model,
    and then falls along half a cosine to a tenth (Loshchilov & Hutter 2017, eq. 5).
    """
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup) / (steps - warmup)
    return 0.1 + 0.9 * (1 + math.cos(math.pi * done)) / 2


@dataclass
class History:
    """One entry per training step: the loss in nats, the learning rate, the gradient's length."""

    loss: list[float] = field(default_factory=list)
    lr: list[float] = field(default_factory=list)
    grad_norm: list[float] = field(default_factory=list)


def train(
    model: Module,
    batches: Iterator[Batch],
    steps: int,
    optimizer: AdamW,
    history: History,
    callback: Callable[[History], None] | None = None,
    progress: bool = True,
) -> bool:
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
        If steps is no whole number of at least 0, the optimizer was made for another model, or a
        step makes NaN; it is not taken.
    FloatingPointError
        If the loss or the gradient is not finite; that step is not taken.
    """
    check_sizes("train", at_least=0, steps=steps)
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
            loss, norm = _gradients(model, optimizer, inputs, targets, step, lr)
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
def evaluate(model: Module, batches: Iterator[Batch], n: int) -> float:
    """Return the model's mean loss on the next n batches, in nats; nothing is learned.

    Model and batches are as in `train`. Raises ValueError if n is no whole number of at least 1.
    """
    check_sizes("evaluate", n=n)
    return sum(float(model(*next(batches))[1]) for _ in range(n)) / n


def _gradients(
    model: Module, optimizer: AdamW, inputs: Array, targets: Array, step: int, lr: float
) -> tuple[float, float]:
    """Leave fresh, clipped gradients in the model; return the loss and the length before."""
    optimizer.zero_grad()
    _, loss = model(inputs, targets)
    loss.backward()
    norm = clip_grad_norm(optimizer.parameters, 1.0)
    if not math.isfinite(loss.item() + norm):
        raise FloatingPointError(
            f"train: at step {step} the loss is {loss.item()} and its gradient's length {norm}; "
            f"the model is as it was before this step. The learning rate ({lr:.2g}) may be too "
            "high, or the inputs hold something odd; look at history.loss and history.grad_norm"
        )
    return loss.item(), norm


def keep_freed_memory() -> None:
    """Make glibc's malloc keep what a training step frees, for the next step.

    Otherwise it gives the memory back to the system, which has to clear and map it again: a third
    of a step's time. Having seen a large block freed, malloc keeps twice its size (mallopt(3),
    M_MMAP_THRESHOLD). Elsewhere this does nothing.
    """
    np.empty(2**24, np.uint8)


def _flat(arrays: Iterable[Array]) -> Array:
    return np.concatenate([a.ravel() for a in arrays])


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[list[bool]]:
    """Collect interrupts (the stop button, Ctrl+C) in the list that is yielded, instead of raising.

    A step that is half done would leave a model that no number of whole steps leads to.
    """
    interrupted: list[bool] = []
    if threading.current_thread() is not threading.main_thread():
        yield interrupted  # no interrupt arrives in another thread
        return
    before = signal.signal(signal.SIGINT, lambda *_: interrupted.append(True))
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def _progress_bar(done: int, steps: int, show: bool) -> tqdm.auto.tqdm:
    """Make a bar: in a notebook as a widget, elsewhere as text on stderr."""
    sizes: dict[str, Any] = {"initial": done, "total": steps, "dynamic_ncols": True}
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
