"""A tiny GPT: embeddings, blocks of attention and MLP, and one next-token guess per position.

The shape is GPT-2's (Radford et al. 2019, §2.3): layer norm before attention and MLP, learned
absolute positions, and one table for the token embeddings and the last layer.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from course_lib._arrays import Array
from course_lib._checks import array_of, check_sizes
from course_lib.attention import AttentionSteps, KVCache, MultiHeadAttention, causal_mask
from course_lib.functional import cross_entropy
from course_lib.nn import MLP, Embedding, LayerNorm, Module
from course_lib.tensor import Tensor, no_grad

__all__ = ["GPT", "Block", "GPTConfig", "GPTSteps"]


@dataclass(frozen=True)
class GPTConfig:
    """The sizes of a GPT.

    Attributes
    ----------
    vocab_size : int
        Number of different tokens.
    block_size : int
        Number of positions: the longest context the model can see.
    n_layer, n_head, n_embd : int
        Blocks, heads in each, and the width D of a token; head_dim = n_embd / n_head.
    """

    vocab_size: int
    block_size: int
    n_layer: int
    n_head: int
    n_embd: int

    @classmethod
    def tiny(cls, vocab_size: int, block_size: int = 64, n_layer: int = 2) -> GPTConfig:
        """Return the course's configuration: n_embd 64, n_head 4, so head_dim 16."""
        return cls(vocab_size, block_size, n_layer, n_head=4, n_embd=64)


@dataclass(frozen=True)
class GPTSteps:
    """What a GPT computed on the way to its logits.

    hidden holds n_layer + 1 Tensors [B, T, D]: the embeddings, then the tokens after each block.
    attention holds the n_layer `AttentionSteps`, their weights [B, H, T, T_total].
    """

    hidden: list[Tensor]
    attention: list[AttentionSteps]


class Block(Module):
    """x + attention(norm(x)), then x + MLP(norm(x)): the pre-norm form (Xiong et al. 2020).

    The attention moves information between tokens, the MLP works on each token alone.

    Parameters
    ----------
    n_embd, n_head : int
    rng : numpy.random.Generator
    """

    def __init__(self, n_embd: int, n_head: int, rng: np.random.Generator) -> None:
        self.ln_1 = LayerNorm(n_embd)
        self.attn = MultiHeadAttention(n_embd, n_head, rng)
        self.ln_2 = LayerNorm(n_embd)
        self.mlp = MLP(n_embd, rng)

    def forward(
        self,
        x: Tensor,
        mask: ArrayLike | None = None,
        return_steps: bool = False,
        cache: KVCache | None = None,
    ) -> Tensor | tuple[Tensor, AttentionSteps]:
        """Map x [B, T, D] to [B, T, D]; the rest as in `MultiHeadAttention`."""
        out = self.attn(self.ln_1(x), mask, return_steps, cache)
        attended, steps = out if return_steps else (out, None)
        x = x + attended
        x = x + self.mlp(self.ln_2(x))
        return x if steps is None else (x, steps)


class GPT(Module):
    """A model that guesses the next token at every position.

    Parameters
    ----------
    config : GPTConfig
    rng : numpy.random.Generator
        The source of the first weights. Linear layers start as PyTorch's do; the embeddings are
        drawn from N(0, 1/n_embd): the token table is the last layer as well, and this gives its
        logits a variance of 1. (GPT-2's 0.02² is small at n_embd = 64; training then starts late.)
    mask : callable
        mask(t, t_total) gives the mask [t, t_total] for `attention`.

    Raises
    ------
    ValueError
        If a size is no whole number of at least 1, or n_embd is not a multiple of n_head.
    """

    def __init__(
        self,
        config: GPTConfig,
        rng: np.random.Generator,
        mask: Callable[[int, int], ArrayLike] = causal_mask,
    ) -> None:
        check_sizes("GPT", **asdict(config))
        self.config = config
        self.mask = mask
        self.wte = Embedding(config.vocab_size, config.n_embd, rng)
        self.wpe = Embedding(config.block_size, config.n_embd, rng)
        for table in (self.wte, self.wpe):
            table.weight.data = config.n_embd**-0.5 * table.weight.data
        self.blocks = [Block(config.n_embd, config.n_head, rng) for _ in range(config.n_layer)]
        self.ln_f = LayerNorm(config.n_embd)

    def forward(
        self,
        ids: ArrayLike,
        targets: ArrayLike | None = None,
        cache: list[KVCache] | None = None,
        return_steps: bool = False,
    ) -> tuple[Tensor, Tensor | None] | tuple[Tensor, Tensor | None, GPTSteps]:
        """Guess the token after each of ids.

        Parameters
        ----------
        ids : integers [B, T]
            With a cache, only the new tokens.
        targets : integers [B, T], optional
            The token that really came after each; −100 where it counts for nothing.
        cache : list of KVCache, optional
            As `new_cache` makes it. The new tokens are added to it.
        return_steps : bool
            Also return the GPTSteps.

        Returns
        -------
        logits : Tensor [B, T, vocab_size]
        loss : Tensor [] or None
            The mean cross-entropy in nats, where there are targets.

        Raises
        ------
        ValueError
            If ids are not [B, T], or cached and new tokens are more than block_size.
        IndexError, TypeError
            If an id is not in the vocabulary, or no integer.
        """
        ids = array_of("GPT", ids)
        base = 0 if cache is None else len(cache[0])
        if ids.ndim != 2:
            raise ValueError(
                f"GPT: ids must be [B, T], got {list(ids.shape)}; ids[None] adds B = 1"
            )
        if base + ids.shape[1] > self.config.block_size:
            raise ValueError(
                f"GPT: {base} cached and {ids.shape[1]} new tokens are more than block_size = "
                f"{self.config.block_size} positions; crop the text with ids[:, -block_size:]"
            )
        t, t_total = ids.shape[1], base + ids.shape[1]
        x = self.wte(ids) + self.wpe.weight[base:t_total]  # [B, T, D] + [T, D]: token and position
        mask = self.mask(t, t_total)
        steps = GPTSteps(hidden=[x], attention=[])
        caches = [None] * len(self.blocks) if cache is None else cache
        for block, block_cache in zip(self.blocks, caches, strict=True):
            x = block(x, mask, return_steps, block_cache)
            if return_steps:
                x, attended = x
                steps.attention.append(attended)
                steps.hidden.append(x)
        logits = self.ln_f(x) @ self.wte.weight.T  # [B, T, D] @ [D, vocab_size]
        loss = None if targets is None else cross_entropy(logits, targets)
        return (logits, loss, steps) if return_steps else (logits, loss)

    def new_cache(self, batch: int = 1) -> list[KVCache]:
        """Return one empty KVCache per block, with room for block_size tokens."""
        check_sizes("new_cache", batch=batch)
        c = self.config
        sizes = (batch, c.n_head, c.block_size, c.n_embd // c.n_head, self.wte.weight.dtype)
        return [KVCache(*sizes) for _ in self.blocks]

    @no_grad()
    def generate(
        self,
        ids: ArrayLike,
        n: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        rng: np.random.Generator | None = None,
        cache: bool = True,
    ) -> Array:
        """Continue a text by n tokens, each drawn from the model's guess for it.

        Past block_size the model sees the last block_size tokens. Each of them then stands at a new
        position in every step, so nothing that was cached is true any more: the window is computed
        anew, with and without a cache.

        Parameters
        ----------
        ids : integers [T] or [B, T]
            The text so far, at least one token.
        n : int
            How many tokens to add.
        temperature : float
            Divides the logits: below 1 likely tokens become likelier; 0 takes the likeliest.
        top_k : int, optional
            Draw from the k likeliest tokens only.
        rng : numpy.random.Generator
            Needed unless temperature is 0.
        cache : bool
            Keep keys and values, and compute only what is new. Changes the time, not the result.

        Returns
        -------
        ndarray of int64, ids with n more on the last axis

        Raises
        ------
        ValueError
            If n < 0, temperature is negative or not finite, top_k is not in 1 … vocab_size, or ids
            are empty or have more than two axes.
        TypeError
            If rng is needed and not a Generator.
        """
        text = np.atleast_2d(array_of("generate", ids))
        if text.ndim != 2 or text.size == 0:
            raise ValueError(
                f"generate: ids {list(np.shape(ids))} must be [T] or [B, T] with at least one "
                "token to start from"
            )
        _check_sampling(n, temperature, top_k, rng, self.config.vocab_size)
        kept = None
        for _ in range(n):
            new = text[:, -self.config.block_size :]
            if cache:
                if kept is None or len(kept[0]) == self.config.block_size:
                    kept = self.new_cache(len(text))
                new = new[:, len(kept[0]) :]
            logits, _ = self(new, cache=kept)
            token = _pick(logits.data[:, -1], temperature, top_k, rng)
            text = np.concatenate([text, token[:, None]], axis=1)
        return text if np.ndim(ids) > 1 else text[0]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write configuration and parameters to `path` (.npz); whole or not at all.

        They go to a file beside it first, which then takes its name.
        """
        path = Path(path)
        state: dict[str, Any] = {f"config.{n}": size for n, size in asdict(self.config).items()}
        state |= self.state_dict()
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        try:
            with open(temporary, "wb") as file:
                np.savez(file, **state)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Take over the parameters that `save` wrote for a model of the same configuration.

        Raises
        ------
        ValueError
            If the file is damaged or holds something else, or its configuration, names, shapes or
            values do not fit. The model is then unchanged.
        OSError
            If the file can't be opened.
        """
        state = _read_npz(path, room=_room_for(self))
        sizes = asdict(self.config)
        found = {name: state.pop(f"config.{name}", np.array(None)) for name in sizes}
        differ = [
            f"{n} is {found[n]} there, {sizes[n]} here"
            for n in sizes
            if not np.array_equal(found[n], sizes[n])
        ]
        if differ:
            raise ValueError(f"load: {path} is of another model: {'; '.join(differ)}")
        bad = [n for n, v in state.items() if v.dtype.kind == "f" and not np.isfinite(v).all()]
        if bad:
            raise ValueError(f"load: {path} holds NaN or inf in {bad}")
        try:
            self.load_state_dict(state)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"load: {path}: {error.args[0]}") from None


def _room_for(model: GPT) -> int:
    """Return the most bytes in a file of this model: float64 values, and a header for each."""
    names = len(asdict(model.config)) + len(list(model.parameters()))
    return 8 * model.num_parameters() + 1024 * names


def _read_npz(path: str | os.PathLike[str], room: int) -> dict[str, Array]:
    """Read all arrays of an .npz file of at most `room` bytes unpacked, never unpickling any."""
    with open(os.fspath(path), "rb") as file:  # an int would be a file that Python has open
        try:
            with np.load(file, allow_pickle=False) as archive:
                held = sum(member.file_size for member in archive.zip.infolist())
                if held > room:  # a small file can unpack to more than the memory holds
                    raise ValueError(f"{held:,} bytes unpacked, at most {room:,} are expected")
                arrays = {name: archive[name] for name in archive.files}
            strange = [name for name, value in arrays.items() if not isinstance(value, np.ndarray)]
            if strange:
                raise ValueError(f"no arrays: {strange}")
            return arrays
        except Exception as error:  # a damaged zip can fail in a dozen ways
            raise ValueError(
                f"load: {path} is no model that save() wrote, or it is damaged "
                f"({type(error).__name__}: {error})"
            ) from None


def _check_sampling(
    n: int, temperature: float, top_k: int | None, rng: object, vocab_size: int
) -> None:
    check_sizes("generate", at_least=0, n=n)
    if not isinstance(temperature, numbers.Real) or not 0 <= temperature < np.inf:
        raise ValueError(
            f"generate: temperature must be at least 0 and finite, got {temperature!r}; "
            "0 always takes the likeliest token"
        )
    if top_k is not None and (
        not isinstance(top_k, (int, np.integer)) or not 1 <= top_k <= vocab_size
    ):
        raise ValueError(
            f"generate: top_k must be a whole number in 1 … {vocab_size} (vocab_size), "
            f"got {top_k!r}"
        )
    if temperature > 0 and not isinstance(rng, np.random.Generator):
        raise TypeError(
            "generate: drawing tokens needs rng=np.random.default_rng(seed); "
            "temperature=0 needs none"
        )


def _pick(
    logits: Array, temperature: float, top_k: int | None, rng: np.random.Generator | None
) -> Array:
    """Choose one token for each row of logits [B, vocab_size]."""
    if temperature == 0:
        likeliest: Array = logits.argmax(axis=1)
        return likeliest
    assert rng is not None  # _check_sampling has seen to it
    logits = logits.astype(np.float64)  # rng.choice wants weights that sum to 1 very closely
    logits = (logits - logits.max(axis=1, keepdims=True)) / temperature
    if top_k is not None:
        unlikely = np.argsort(-logits, kind="stable")[:, top_k:]
        np.put_along_axis(logits, unlikely, -np.inf, axis=1)
    weights = np.exp(logits)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.array([rng.choice(len(row), p=row) for row in weights])
