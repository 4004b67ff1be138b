"""Texts, tokens and batches: what a tiny GPT reads."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from course_lib._arrays import Array, _row_ids
from course_lib._checks import array_of, check_rng, check_sizes

__all__ = [
    "CharTokenizer",
    "WordTokenizer",
    "bank_sentences",
    "batches",
    "python_reference",
    "train_val_split",
]


class CharTokenizer:
    """Number the characters that occur in a text.

    Parameters
    ----------
    text : str

    Attributes
    ----------
    symbols : list of str
        All different characters, sorted; a token id is a place in this list.

    Raises
    ------
    TypeError, ValueError
        If the text is no str, or empty.
    """

    def __init__(self, text: str) -> None:
        self.symbols = sorted(set(self._parts(text)))
        if not self.symbols:
            raise ValueError(
                f"{type(self).__name__}: the text is empty, there is nothing to number"
            )
        self._ids = {symbol: i for i, symbol in enumerate(self.symbols)}

    def __len__(self) -> int:
        """Return the number of different symbols: vocab_size."""
        return len(self.symbols)

    def encode(self, text: str) -> Array:
        """Return the ids of a text, int64 [T]; ValueError names symbols that have none."""
        parts = self._parts(text)
        unknown = sorted(set(parts) - self._ids.keys())
        if unknown:
            raise ValueError(
                f"encode: {unknown} did not occur in the text that this "
                f"{type(self).__name__} was made from, so they have no id"
            )
        return np.array([self._ids[part] for part in parts], dtype=np.int64)

    def decode(self, ids: ArrayLike) -> str:
        """Return the text of ids [T].

        Raises TypeError for ids that are no integers, IndexError outside 0 … vocab_size − 1,
        ValueError for another rank.
        """
        ids = array_of("decode", ids)
        if ids.ndim != 1:
            raise ValueError(f"decode: ids {list(ids.shape)} must be [T]")
        return self._joint.join(self.symbols[i] for i in _row_ids("decode", ids, len(self)))

    def _parts(self, text: str) -> list[str]:
        if not isinstance(text, str):
            raise TypeError(f"{type(self).__name__}: expected a str, got {type(text).__name__}")
        return self._split(text)

    _joint = ""

    @staticmethod
    def _split(text: str) -> list[str]:
        return list(text)


class WordTokenizer(CharTokenizer):
    """Number the words (whatever stands between spaces) that occur in a text.

    As `CharTokenizer`, with words for characters; `decode` puts one space between two words.
    """

    _joint = " "

    @staticmethod
    def _split(text: str) -> list[str]:
        return text.split()


def train_val_split(ids: ArrayLike, val_share: float = 0.1) -> tuple[Array, Array]:
    """Cut a text in two: the first part to train on, the rest to check with.

    Parameters
    ----------
    ids : integers [N]
    val_share : float
        The share of the second part, between 0 and 1.

    Returns
    -------
    train, val : integers, [N − n] and [n]
        Views of ids; n is N · val_share, rounded.

    Raises
    ------
    ValueError
        If ids are not [N], or val_share does not lie between 0 and 1.
    """
    ids = array_of("train_val_split", ids)
    if ids.ndim != 1:
        raise ValueError(f"train_val_split: ids {list(ids.shape)} must be [N]")
    if not 0 < val_share < 1:
        raise ValueError(f"train_val_split: val_share must lie between 0 and 1, got {val_share!r}")
    cut = round(len(ids) * (1 - val_share))
    return ids[:cut], ids[cut:]


def batches(
    ids: ArrayLike, batch_size: int, block_size: int, rng: np.random.Generator
) -> Iterator[tuple[Array, Array]]:
    """Return an endless iterator over (inputs, targets): windows from random places of a text.

    Parameters
    ----------
    ids : integers [N]
    batch_size, block_size : int
        B and T.
    rng : numpy.random.Generator

    Yields
    ------
    inputs, targets : integers [B, T]
        The targets are shifted by one: targets[b, t] is the token after inputs[b, t].

    Raises
    ------
    ValueError
        If the text is shorter than one window and its last target, or a size is below 1.
    TypeError
        If rng is no Generator.
    """
    ids = array_of("batches", ids)
    check_sizes("batches", batch_size=batch_size, block_size=block_size)
    check_rng("batches", rng)
    if ids.ndim != 1 or len(ids) <= block_size:
        raise ValueError(
            f"batches: ids {list(ids.shape)} must be [N] with N > block_size = {block_size}: "
            "a window, and one more token for its last target"
        )

    def draw() -> Iterator[tuple[Array, Array]]:
        while True:
            starts = rng.integers(len(ids) - block_size, size=batch_size)
            windows = ids[starts[:, None] + np.arange(block_size + 1)]  # [B, T + 1]
            yield windows[:, :-1], windows[:, 1:]

    return draw()


_TOPICS = {
    "river": ("river", "boat", "fish", "water", "bridge"),
    "money": ("money", "loan", "coin", "debt", "account"),
}
_BANK_DOES = {"river": "flooded", "money": "paid"}
_STATES = ("old", "new", "small", "gone", "near", "late")
_WHO = ("we", "they", "he", "she")
_NOTICED = ("saw", "said", "knew", "heard")
_WHEN = ("again", "today", "in may", "at night", "at last")


def bank_sentences(n: int, rng: np.random.Generator) -> str:
    """Return n sentences of the course's small language, as one text.

    Half of them end on the bank: what it does, "flooded" or "paid", is decided by one word, five to
    nine words earlier; nothing in between gives it away. All words of one place are equally likely.
    Raises ValueError if n is no whole number of at least 0, TypeError if rng is no Generator.
    """
    check_sizes("bank_sentences", at_least=0, n=n)
    check_rng("bank_sentences", rng)
    return " ".join(_bank_sentence(rng) for _ in range(n))


def _bank_sentence(rng: np.random.Generator) -> str:
    topic = rng.choice(list(_TOPICS))
    start = f"the {rng.choice(_TOPICS[topic])} was {rng.choice(_STATES)}"
    if rng.random() < 0.5:
        return f"{start} {rng.choice(_WHEN)} ."
    that = rng.choice((" that", ""))
    when = rng.choice(_WHEN)
    who = f"{rng.choice(_WHO)} {rng.choice(_NOTICED)}{that}"
    return f"{start} and {who} the bank {_BANK_DOES[topic]} {when} ."


def python_reference() -> str:
    """Return real English prose that comes with Python: its language reference, as plain ASCII.

    Where a Python was installed without pydoc_data, the docstrings of its built-in types and
    functions stand in.
    """
    try:
        from pydoc_data.topics import topics

        parts = [topics[name] for name in sorted(topics)]
    except ImportError:
        parts = [inspect.getdoc(getattr(builtins, name)) or "" for name in sorted(dir(builtins))]
    text = "\n".join(parts)
    return "".join(c for c in text if c == "\n" or " " <= c <= "~")
