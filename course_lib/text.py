"""Texts, tokens and batches: what a tiny GPT reads."""

from __future__ import annotations

import builtins
import inspect

import numpy as np

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

    Attributes
    ----------
    symbols : list of str
        All different characters, sorted; a token id is a place in this list.
    """

    def __init__(self, text):
        self.symbols = sorted(set(self._split(text)))
        if not self.symbols:
            raise ValueError(
                f"{type(self).__name__}: the text is empty, there is nothing to number"
            )
        self._ids = {symbol: i for i, symbol in enumerate(self.symbols)}

    def __len__(self):
        """Return the number of different symbols: vocab_size."""
        return len(self.symbols)

    def encode(self, text):
        """Return the ids of a text, int64 [T]; ValueError names symbols that have none."""
        parts = self._split(text)
        unknown = sorted(set(parts) - self._ids.keys())
        if unknown:
            raise ValueError(
                f"encode: {unknown} did not occur in the text that this "
                f"{type(self).__name__} was made from, so they have no id"
            )
        return np.array([self._ids[part] for part in parts], dtype=np.int64)

    def decode(self, ids):
        """Return the text of ids [T]; IndexError if one is outside 0 … vocab_size − 1."""
        ids = np.asarray(ids, dtype=np.int64)
        if ids.ndim != 1 or np.any((ids < 0) | (ids >= len(self))):
            raise IndexError(f"decode: ids must be [T] and in 0 … {len(self) - 1}, got {ids}")
        return self._joint.join(self.symbols[i] for i in ids)

    _joint = ""

    @staticmethod
    def _split(text):
        return list(text)


class WordTokenizer(CharTokenizer):
    """Number the words (whatever stands between spaces) that occur in a text."""

    _joint = " "

    @staticmethod
    def _split(text):
        return text.split()


def train_val_split(ids, val_share=0.1):
    """Cut ids [N] in two: the first part to train on, the last `val_share` of it to check with."""
    if not 0 < val_share < 1:
        raise ValueError(f"train_val_split: val_share must lie between 0 and 1, got {val_share!r}")
    cut = round(len(ids) * (1 - val_share))
    return ids[:cut], ids[cut:]


def batches(ids, batch_size, block_size, rng):
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
        If the text is shorter than one window and its last target.
    """
    ids = np.asarray(ids)
    if ids.ndim != 1 or len(ids) <= block_size:
        raise ValueError(
            f"batches: ids {list(ids.shape)} must be [N] with N > block_size = {block_size}: "
            "a window, and one more token for its last target"
        )

    def draw():
        while True:
            starts = rng.integers(0, len(ids) - block_size, size=batch_size)
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


def bank_sentences(n, rng):
    """Return n sentences of the course's small language, as one text.

    Half of them end on the bank: what it does, "flooded" or "paid", is decided by one word, five to
    nine words earlier; nothing in between gives it away.
    """
    return " ".join(_bank_sentence(rng) for _ in range(n))


def _bank_sentence(rng):
    topic = rng.choice(list(_TOPICS))
    start = f"the {rng.choice(_TOPICS[topic])} was {rng.choice(_STATES)}"
    if rng.random() < 0.5:
        return f"{start} {rng.choice(_WHEN)} ."
    that = rng.choice((" that", ""))
    when = rng.choice(_WHEN)
    who = f"{rng.choice(_WHO)} {rng.choice(_NOTICED)}{that}"
    return f"{start} and {who} the bank {_BANK_DOES[topic]} {when} ."


def python_reference():
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
