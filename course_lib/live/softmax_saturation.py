"""Lesson 04's live figure: slide d_k from 1 to 512 and watch softmax saturate.

Many draws of ten queries and ten keys come from one seeded pool of independent standard normals. A
larger d_k only adds components to the vectors of a smaller one, so the picture moves smoothly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import ipywidgets
import numpy as np
from matplotlib.figure import Figure

from course_lib._arrays import Array
from course_lib.live.figure import Explorer, Picture, Pointer, picture
from course_lib.plots import LIGHT, WIDEST, Look, Theme, headline, new_figure, number, panel
from course_lib.tensor import Tensor

DRAWS, TOKENS, D_MAX = 100, 10, 512
SEED = 0
# The weights shown are those of one query. Of all that put more than 0.9 on one key at d_k = 512
# unscaled, and never 0.5 when scaled, this one's largest weight stays nearest to the average.
SHOWN = (86, 4)

SCALES = ("no scale", "÷ √d_k", "÷ d_k")
MEASURES = ("Largest weight, average", "Entropy, average", "Jacobian, average")
UNITS = ("", "nats", "Frobenius norm")
TICKS = ((0, 0.5, 1), (0, 1, 2), (0, 0.25, 0.5))
TOPS = (1, np.log(TOKENS), 0.5)
REACH = 40  # the histogram's axis ends at ± this score


@dataclass(frozen=True)
class State:
    """What the figure shows at one position of its controls.

    Attributes
    ----------
    d_k : int
    scale : str
        One of `SCALES`.
    q_is_k : bool
        Whether the keys are the queries.
    edges, heights : ndarray, [n + 1] and [n]
        The histogram of all scores; 1 is as high as the normal density of theory at 0.
    outside : float
        Share of the scores beyond the histogram's axis.
    sigma, theory : float
        Standard deviation of the scores, measured and predicted; with Q = K, of those between
        different tokens.
    own : float or None
        With Q = K, the mean score of a query with itself.
    weights : ndarray, [3, T]
        One query's weights, for each of the scales.
    curves : ndarray, [3, 3, D_MAX]
        Mean over all queries: measure × scale × d_k.
    """

    d_k: int
    scale: str
    q_is_k: bool
    edges: Array
    heights: Array
    outside: float
    sigma: float
    theory: float
    own: float | None
    weights: Array
    curves: Array


# ------------------------------------------------------------------------------------ compute


@cache
def pool() -> Array:
    """Return all queries and all keys, each [DRAWS, T, D_MAX] float32."""
    rng = np.random.default_rng(SEED)
    return rng.standard_normal((2, DRAWS, TOKENS, D_MAX), dtype=np.float32)


def divisors(d_k: Any) -> tuple[Any, Any, Any]:
    """Return what each of `SCALES` divides a score by; `d_k` may be an array."""
    return d_k**0.0, d_k**0.5, d_k**1.0


def measure(weights: Array, dim: int) -> tuple[Array, Array, Array]:
    """Return three measures of how far rows of weights along `dim` are from an even mix.

    The largest weight; the entropy −Σ s log s in nats, at most log T; and the size of the Jacobian
    diag(s) − s sᵀ of softmax: its Frobenius norm, √(Σ s² − 2 Σ s³ + (Σ s²)²).
    """
    entropy = -(weights * np.log(np.maximum(weights, 1e-30))).sum(dim)
    square, cube = (weights**2).sum(dim), (weights**2 * weights).sum(dim)
    size = np.sqrt(np.maximum(square - 2 * cube + square**2, 0))
    return weights.max(dim), entropy, size


def curves(q: Array, k: Array) -> Array:
    """Return the measures' means over all queries, for every d_k: [measure, scale, D].

    Parameters
    ----------
    q, k : ndarray, [N, T, D]
    """
    d_k = np.arange(1, q.shape[-1] + 1, dtype=q.dtype)
    total = np.zeros((len(SCALES), len(MEASURES), len(d_k)))
    for q_n, k_n in zip(q, k, strict=True):  # one draw fits the processor's cache, all do not
        # The running sum over the components of q · k holds the scores of every smaller d_k.
        scores = np.cumsum(q_n[:, None] * k_n, axis=-1)  # [T, T, D]
        weights = [Tensor(scores / divisor).softmax(dim=1).data for divisor in divisors(d_k)]
        total += np.array([[m.mean(axis=0) for m in measure(w, 1)] for w in weights])
    return total.swapaxes(0, 1) / len(q)


@cache
def pool_curves(q_is_k: bool) -> Array:
    """Return `curves` of the pool, computed once."""
    q, k = pool()
    return curves(q, q if q_is_k else k)


def compute(d_k: int, scale: str, q_is_k: bool) -> State:
    """Return the state for the first `d_k` components of the pool's vectors."""
    q, k = (Tensor(vectors[:, :, :d_k]) for vectors in pool())  # [N, T, d_k]
    if q_is_k:
        k = q
    raw = q @ k.permute(0, 2, 1)  # [N, T, T]
    draw, query = SHOWN
    weights = [(raw[draw, query] / divisor).softmax(dim=-1).data for divisor in divisors(d_k)]
    divisor = divisors(d_k)[SCALES.index(scale)]
    scores = (raw / divisor).data
    theory = d_k**0.5 / divisor
    itself = np.eye(TOKENS, dtype=bool) & q_is_k
    edges, heights = histogram(scores, theory)
    return State(
        d_k=d_k,
        scale=scale,
        q_is_k=q_is_k,
        edges=edges,
        heights=heights,
        outside=float((np.abs(scores) > REACH).mean()),
        sigma=float(scores[:, ~itself].std()),
        theory=theory,
        own=float(scores[:, itself].mean()) if q_is_k else None,
        weights=np.array(weights),
        curves=pool_curves(q_is_k),
    )


def histogram(scores: Array, theory: float) -> tuple[Array, Array]:
    """Return edges and heights; the bins are a quarter of the predicted σ wide."""
    width = theory / 4
    last = int(min(np.abs(scores).max(), REACH) / width) + 1
    edges = (np.arange(-last, last + 2) - 0.5) * width
    share = np.histogram(scores, edges)[0] / scores.size
    return edges, share / width * theory * np.sqrt(2 * np.pi)


# ------------------------------------------------------------------------------------ draw


def draw(state: State, theme: Theme = LIGHT) -> Picture:
    """Draw the scores, one row of weights for each scale, and three measures over all d_k."""
    figure = new_figure(WIDEST, 4.9, theme, layout=None)
    headline(figure, "Without a scale, long vectors push softmax onto one key", theme)
    updates = [_scores(figure, theme), _weights(figure, theme)]
    updates += [_curve(figure, theme, n) for n in range(len(MEASURES))]
    return picture(figure, state, updates)


def _scores(figure: Figure, theme: Theme) -> Callable[[State], None]:
    """Draw the histogram of the scores against the normal density of theory."""
    box = (0.25, 2.65, 3.2, 1.6)
    axes = panel(figure, box, "scores", "The scores of all queries and keys", theme)
    axes.set(xlim=(-REACH, REACH), ylim=(0, 1.7), yticks=(), xlabel="score")
    moves: Look = {"animated": True, "zorder": 3, "color": theme.ink}
    x = np.linspace(-4, 4, 81)
    bell = np.exp(-(x**2) / 2)
    bars = axes.stairs([0], [0, 1], fill=True, alpha=0.65, animated=True)
    (dashes,) = axes.plot([], [], linestyle=(0, (4, 3)), linewidth=1.5, **moves)
    (span,) = axes.plot([], [], marker="|", markersize=9, **moves)
    corner: Look = {"transform": axes.transAxes, "color": theme.ink, "fontsize": 9}
    rows = (0.9, 0.77)
    for y, name in zip(rows, ("measured σ", "theory, dashed"), strict=True):
        axes.text(0, y, name, **corner)
    # What moves is as short as can be: a text costs its length to draw.
    right = corner | {"ha": "right", "animated": True}
    measured, theory = (axes.text(0.43, y, "", **right) for y in rows)
    own, outside = (axes.text(1, y, "", **right) for y in rows)
    (own_at,) = axes.plot([], [], marker="v", markersize=7, **moves)

    def update(state: State) -> None:
        bars.set_data(state.heights, state.edges)
        bars.set_color(theme.accents[SCALES.index(state.scale)])
        dashes.set_data(x * state.theory, bell)
        span.set_data([-state.sigma, state.sigma], [np.exp(-0.5)] * 2)
        measured.set_text(number(state.sigma))
        theory.set_text(number(state.theory))
        outside.set_text(f"outside: {state.outside:.0%}" if state.outside > 0.005 else "")
        own.set_text("" if state.own is None else f"▼ with itself: {state.own:.1f}")
        own_at.set_data(([], []) if state.own is None else ([state.own], [0.2]))

    return update


def _weights(figure: Figure, theme: Theme) -> Callable[[State], None]:
    """Draw one query's weights, a row of bars for each scale."""
    rows = []
    keys = np.arange(TOKENS)
    for n, scale in enumerate(SCALES):
        box = (4.45, 3.81 - 0.58 * n, 1.8, 0.44)
        axes = panel(figure, box, scale, "" if n else "The weights of one query", theme, "y")
        axes.set(xlim=(-0.6, TOKENS - 0.4), ylim=(0, 1), yticks=(1,), xticks=())
        axes.set_ylabel(scale, rotation=0, ha="right", va="center", color=theme.accents[n])
        axes.yaxis.set_label_coords(-0.04, 0.4)
        # Thick lines: one artist, drawn in a fifth of the time that ten rectangles take.
        bars = axes.vlines(keys, 0, 0, theme.accents[n], linewidth=9.5, animated=True)
        largest = axes.text(0, 0, "", color=theme.ink, fontsize=9, animated=True)
        rows.append((bars, largest))
    axes.set_xticks(keys)
    axes.set_xlabel("key j")

    def update(state: State) -> None:
        for scale, (bars, largest), weights in zip(SCALES, rows, state.weights, strict=True):
            ends = np.stack([keys, keys, keys * 0, weights], axis=1).reshape(TOKENS, 2, 2)
            bars.set(segments=ends.swapaxes(1, 2), alpha=1 if scale == state.scale else 0.5)
            best, weight = int(weights.argmax()), float(weights.max())
            largest.set_text(number(weight))
            if weight < 0.6:  # above its bar, or beside it
                largest.set(x=best, y=weight + 0.08, ha="center")
            elif best < 5:
                largest.set(x=best + 0.6, y=0.55, ha="left")
            else:
                largest.set(x=best - 0.6, y=0.55, ha="right")

    return update


def _curve(figure: Figure, theme: Theme, n: int) -> Callable[[State], None]:
    """Draw one measure over all d_k, a line for each scale, with a marker at the slider."""
    box = ((0.4, 2.5, 4.75)[n], 0.5, 1.5, 1.3)
    axes = panel(figure, box, MEASURES[n], MEASURES[n], theme, "y")
    axes.set_xscale("log", base=2)
    axes.set(xlim=(0.85, D_MAX * 1.15), ylim=(0, 1.05 * TOPS[n]), yticks=TICKS[n])
    axes.set(xlabel="d_k", ylabel=UNITS[n])
    axes.set_xticks([1, 8, 64, 512], ["1", "8", "64", "512"])
    axes.tick_params(pad=7)  # room for a dot at 0
    d_k = np.unique(np.geomspace(1, D_MAX, 40).round().astype(int))  # evenly along the axis
    here = axes.axvline(1, color=theme.muted, linewidth=1, animated=True)
    lines = [axes.plot(d_k, d_k, color=c, animated=True)[0] for c in theme.accents]
    dots = axes.scatter([1] * 3, [1] * 3, c=theme.accents, animated=True, zorder=3, clip_on=False)

    def update(state: State) -> None:
        here.set_xdata([state.d_k, state.d_k])
        for line, curve in zip(lines, state.curves[n], strict=True):
            line.set_ydata(curve[d_k - 1])
        dots.set_offsets([(state.d_k, curve[state.d_k - 1]) for curve in state.curves[n]])
        dots.set_sizes([70 if scale == state.scale else 20 for scale in SCALES])

    return update


# ------------------------------------------------------------------------------------ explore


def says(state: State) -> str:
    """Return in one sentence what the scores and the weights do."""
    chosen = SCALES.index(state.scale)
    how = ("with no scale", "divided by √d_k", "divided by d_k")[chosen]
    spread = f"σ = {state.sigma:.2f} (theory {state.theory:.2f})"
    if state.q_is_k:
        scores = f"each query scores {state.own:.1f} with itself, the others spread with {spread}"
    else:
        scores = f"the scores spread with {spread}"
    if state.q_is_k:
        how += ", with Q = K"
    average, entropy, _ = state.curves[:, chosen, state.d_k - 1]
    return (
        f"At d_k = {state.d_k}, {how}, {scores}; the largest of the {TOKENS} weights shown is "
        f"{state.weights[chosen].max():.2f}, on average {average:.2f}, and the entropy is "
        f"{entropy:.2f} of at most {np.log(TOKENS):.2f}."
    )


def explore() -> Explorer:
    """Return the explorer: d_k from 1 to 512, the scale, and whether K is Q."""
    controls = {
        "d_k": ipywidgets.IntSlider(64, 1, D_MAX, description="d_k"),
        "scale": ipywidgets.ToggleButtons(options=SCALES, description="Scores"),
        "q_is_k": ipywidgets.Checkbox(False, description="Q = K: the keys are the queries"),
    }

    def on_pointer(x: float, _y: float, pointer: Pointer) -> None:
        if pointer.axes in MEASURES:
            controls["d_k"].value = int(np.clip(round(x), 1, D_MAX))

    name = "How the scores and the softmax of ten keys change with d_k"
    return Explorer(name, compute, draw, says, controls, on_pointer)
